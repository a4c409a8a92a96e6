// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package track

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math"
	"reflect"
	"strings"
	"time"

	"pleach/internal/fault"
)

// Record is one line of a file.
type Record struct {
	Line  int // from 1
	Time  time.Time
	Event Event
}

// lineLimit is the longest line that is read: the documents of a spike over a
// large batch take some 10 MB.
const lineLimit = 64 << 20

// Read calls f for every event of an events.jsonl, in order, until f fails. The
// numbers of lines that are not an object with event and time, as a process that
// died while writing leaves, are returned in torn, and so are lines of an event
// whose fields have other types than ours. Empty lines are nothing. A line of
// more than 64 MiB is an error of kind fault.Data.
func Read(r io.Reader, f func(Record) error) (torn []int, err error) {
	br := bufio.NewReaderSize(r, 64<<10)
	for n := 1; ; n++ {
		line, err := readLine(br)
		if err != nil && err != io.EOF {
			return torn, fault.Dataf("track: line %d: %w", n, err)
		}
		last := err == io.EOF
		if line = bytes.TrimSpace(line); len(line) > 0 {
			rec, err := Decode(line)
			if err != nil {
				torn = append(torn, n)
			} else {
				rec.Line = n
				if err := f(rec); err != nil {
					return torn, err
				}
			}
		}
		if last {
			return torn, nil
		}
	}
}

// readLine is one line, with io.EOF after the last.
func readLine(r *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		line = append(line, part...)
		if len(line) > lineLimit {
			return nil, errors.New("longer than 64 MiB")
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, err
		}
	}
}

// Decode reads one line.
func Decode(line []byte) (Record, error) {
	var head struct {
		Event     string            `json:"event"`
		Time      time.Time         `json:"time"`
		Nonfinite map[string]string `json:"nonfinite"`
	}
	if err := json.Unmarshal(line, &head); err != nil {
		return Record{}, fault.Dataf("track: %w", err)
	}
	head.Time = head.Time.UTC() // which may leave the years that RFC 3339 has
	if y := head.Time.Year(); head.Event == "" || head.Time.IsZero() || y < 0 || y > 9999 {
		return Record{}, fault.Dataf("track: want an object with event and time")
	}
	e := blank(head.Event)
	if e == nil {
		u := Unknown{head.Event, bytes.Clone(line)}
		return Record{Time: head.Time, Event: u}, nil
	}
	if err := json.Unmarshal(line, e); err != nil {
		return Record{}, fault.Dataf("track: event %q: %w", head.Event, err)
	}
	v := reflect.ValueOf(e).Elem()
	restore(v, head.Nonfinite)
	return Record{Time: head.Time, Event: v.Interface().(Event)}, nil
}

// blank is a pointer to an empty event of a kind, or nil.
func blank(kind string) any {
	switch kind {
	case Start{}.Kind():
		return new(Start)
	case Step{}.Kind():
		return new(Step)
	case Eval{}.Kind():
		return new(Eval)
	case Checkpoint{}.Kind():
		return new(Checkpoint)
	case Spike{}.Kind():
		return new(Spike)
	case Source{}.Kind():
		return new(Source)
	case Restart{}.Kind():
		return new(Restart)
	case Fault{}.Kind():
		return new(Fault)
	case Warning{}.Kind():
		return new(Warning)
	case End{}.Kind():
		return new(End)
	}
	return nil
}

// restore puts back the numbers that JSON does not have.
func restore(v reflect.Value, nonfinite map[string]string) {
	for i := range v.NumField() {
		name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
		f := v.Field(i)
		if f.Kind() != reflect.Float64 {
			continue
		}
		switch nonfinite[name] {
		case "NaN":
			f.SetFloat(math.NaN())
		case "+Inf":
			f.SetFloat(math.Inf(1))
		case "-Inf":
			f.SetFloat(math.Inf(-1))
		}
	}
}
