// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package fault

import (
	"errors"
	"io"
	"strings"
	"testing"
)

type failing struct{ err error }

func (f failing) ReadAt([]byte, int64) (int, error) { return 0, f.err }

// TestReader: what cannot be read is the machine's fault, unless the reader knows
// better; what is read and wrong is the file's.
func TestReader(t *testing.T) {
	plain := errors.New("i/o error")
	for _, tt := range []struct{ err, want error }{
		{plain, Machine}, {Dataf("another version"), Data}, {Machinef("no answer"), Machine},
	} {
		_, err := Reader(failing{tt.err}).ReadAt(make([]byte, 1), 0)
		if !errors.Is(err, tt.err) || !errors.Is(err, tt.want) {
			t.Errorf("%v: got %v", tt.err, err)
		}
		if got := Damagef("page 3: %w", err); !errors.Is(got, tt.want) || errors.Is(got, Data) != (tt.want == Data) {
			t.Errorf("%v: got %v of another kind", tt.err, got)
		}
	}
	if _, err := Reader(failing{io.EOF}).ReadAt(make([]byte, 1), 0); err != io.EOF {
		t.Errorf("the end: got %v", err)
	}
	if err := Damagef("page 3: %w", plain); !errors.Is(err, Data) {
		t.Errorf("got %v, want damage", err)
	}
}

func TestReadFull(t *testing.T) {
	r := strings.NewReader("0123456789")
	b := make([]byte, 4)
	if err := ReadFull(r, b, 6); err != nil || string(b) != "6789" {
		t.Errorf("got %q, %v", b, err)
	}
	if err := ReadFull(r, b, 7); err != io.ErrUnexpectedEOF {
		t.Errorf("beyond the end: got %v", err)
	}
	if err := ReadFull(failing{io.ErrClosedPipe}, b, 0); err != io.ErrClosedPipe {
		t.Errorf("got %v", err)
	}
}
