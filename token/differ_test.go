// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package token

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
)

// TestRandomTokenizers compares ids and decoded text with those of the
// references for small random tokenizers; see testdata/differ.py. Those kept are
// a few of each kind, and the ones that once differed. PLEACH_DIFFER names a
// file with others, as the script writes them.
func TestRandomTokenizers(t *testing.T) {
	name := os.Getenv("PLEACH_DIFFER")
	if name == "" {
		name = "testdata/differ.jsonl.gz"
	}
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var r io.Reader = bufio.NewReader(f)
	if strings.HasSuffix(name, ".gz") {
		if r, err = gzip.NewReader(r); err != nil {
			t.Fatal(err)
		}
	}
	cases, rows := 0, 0
	for d := json.NewDecoder(r); ; cases++ {
		var c randomCase
		if err := d.Decode(&c); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		rows += len(c.Rows)
		c.compare(t)
	}
	if cases < 20 || rows < 20*cases {
		t.Errorf("%d tokenizers, %d texts, want at least 20 with 20 each", cases, rows)
	}
	t.Logf("%d tokenizers, %d texts", cases, rows)
}

// randomCase is a line of such a file.
type randomCase struct {
	Name string
	File []byte
	Rows []json.RawMessage // of [text, ids, decoded text]
}

func (c *randomCase) compare(t *testing.T) {
	t.Helper()
	tok, err := parse(c.File)
	if err != nil {
		if strings.Contains(err.Error(), "is normalized to") {
			return // two added tokens that cannot be told apart are refused
		}
		t.Errorf("%s: %v", c.Name, err)
		return
	}
	for _, row := range c.Rows {
		var text []byte
		var want []int32
		var back string
		if err := json.Unmarshal(row, &[]any{&text, &want, &back}); err != nil {
			t.Fatal(err)
		}
		for range 2 { // the second time from the cache
			if got := tok.Encode(nil, text); !slices.Equal(got, want) {
				t.Errorf("%s: %.200q:\n got ids %v\nwant ids %v", c.Name, text, got, want)
				return
			}
		}
		if got := string(appendValid(nil, []byte(tok.Decode(want)))); got != back {
			t.Errorf("%s: %v:\n got %q\nwant %q", c.Name, want, got, back)
			return
		}
	}
}
