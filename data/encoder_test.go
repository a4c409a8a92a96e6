// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package data

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// failing is an encoder that gives up, as one whose splitting pattern takes too
// long does.
type failing struct{ err error }

func (f failing) Encode(dst []int32, text []byte) []int32 { return append(dst, 1, 2, 3) }
func (f failing) Err() error                              { return f.err }

// TestEncoderFails: what an encoder made of a text that it failed at is not
// trained on, and the document is named.
func TestEncoderFails(t *testing.T) {
	file := filepath.Join(t.TempDir(), "a.txt")
	if err := os.WriteFile(file, []byte(strings.Repeat("words ", 100)), 0o666); err != nil {
		t.Fatal(err)
	}
	broken := errors.New("the pattern takes too long")
	for _, want := range []error{nil, broken} {
		l, err := Open(Spec{Sequence: 4, Lanes: 1, Sources: []Source{{Paths: []string{file}}}}, failing{want})
		if err != nil {
			t.Fatal(err)
		}
		_, err = l.Next(1)
		l.Close()
		if !errors.Is(err, want) || want != nil && !strings.Contains(err.Error(), "a.txt") {
			t.Errorf("got %v, want %v with the document", err, want)
		}
	}
}
