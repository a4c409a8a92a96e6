// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"strconv"
	"strings"
	"unicode/utf8"

	"pleach/internal/fault"
)

// line is a line of a JSONL file and where it stands.
type line struct {
	text  []byte // valid until the next line
	where string // FILE:LINE
}

// longestLine bounds the memory that a line can take.
const longestLine = 64 << 20

// lines reads a file line by line, "-" being stdin; blank lines are passed over.
// It ends with the first error, which comes with a line of no text.
func lines(path string, stdin io.Reader) iter.Seq2[line, error] {
	return func(yield func(line, error) bool) {
		name := path
		if path == "-" {
			name = "stdin"
		} else {
			f, err := os.Open(path)
			if err != nil {
				yield(line{}, fault.Dataf("reading lines: %w", err))
				return
			}
			defer f.Close()
			stdin = f
		}
		s := bufio.NewScanner(stdin)
		s.Buffer(make([]byte, 64<<10), longestLine)
		n := 0
		for s.Scan() {
			n++
			l := line{s.Bytes(), fmt.Sprintf("%s:%d", name, n)}
			if len(bytes.TrimSpace(l.text)) > 0 && !yield(l, nil) {
				return
			}
		}
		switch err := s.Err(); {
		case errors.Is(err, bufio.ErrTooLong):
			yield(line{}, fault.Dataf("%s:%d: a line is longer than %d MiB", name, n+1, longestLine>>20))
		case err != nil:
			yield(line{}, fault.Dataf("%s:%d: %w", name, n+1, err))
		}
	}
}

// parse reads a JSON value. Bytes that are not UTF-8 are refused, since JSON
// would quietly put others in their place.
func (l line) parse(into any) error {
	if !utf8.Valid(l.text) {
		return l.errorf("not UTF-8")
	}
	if _, ids := into.(*[]int32); ids && bytes.Contains(l.text, []byte("null")) {
		return l.errorf("got a JSON null, want a list of ids") // it would pass as id 0
	}
	err := json.Unmarshal(l.text, into)
	var kind *json.UnmarshalTypeError
	if errors.As(err, &kind) {
		return l.errorf("got a JSON %s, want %s", kind.Value, wanted(into))
	}
	if err != nil {
		return l.errorf("not JSON: %w", err)
	}
	return nil
}

// wanted says in words what a line is read as.
func wanted(into any) string {
	switch into.(type) {
	case *string:
		return "a string"
	case *[]int32:
		return "a list of ids"
	}
	return "an object"
}

func (l line) errorf(format string, args ...any) error {
	return fault.Dataf("%s: "+format, append([]any{l.where}, args...)...)
}

// printJSON writes a value as one line, with text as it is and not made safe for
// HTML.
func printJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	return printed(e.Encode(v))
}

// printInert is printJSON of somebody else's texts, without what some terminals obey.
func printInert(w io.Writer, v any) error {
	var b bytes.Buffer
	if err := printJSON(&b, v); err != nil {
		return err
	}
	_, err := w.Write(inert(b.Bytes()))
	return printed(err)
}

// printed gives a failure to write results its kind.
func printed(err error) error {
	if err != nil {
		return fault.Machinef("writing the result: %w", err)
	}
	return nil
}

// parseIDs reads ids as people write them: 1,2,3, with spaces or without, as
// JSON lists or not.
func parseIDs(text string) ([]int32, error) {
	text = strings.TrimSpace(text)
	text = strings.TrimSuffix(strings.TrimPrefix(text, "["), "]")
	fields := strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(", \t\n", r) })
	ids := make([]int32, len(fields))
	for i, f := range fields {
		id, err := strconv.ParseInt(f, 10, 32)
		if err != nil {
			return nil, fmt.Errorf("got %q, want an id", f)
		}
		ids[i] = int32(id)
	}
	return ids, nil
}
