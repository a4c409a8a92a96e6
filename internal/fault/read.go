// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package fault

import (
	"errors"
	"fmt"
	"io"
)

// Damagef is fmt.Errorf for an error about bytes: of kind [Data], or of kind
// [Machine] where they could not be read at all and a run may try again.
func Damagef(format string, args ...any) error {
	err := fmt.Errorf(format, args...)
	if errors.Is(err, Machine) {
		return As(Machine, err)
	}
	return As(Data, err)
}

// Reader is r with failures of kind [Machine], unless they are of kind [Data]
// already, as those of a store can be.
func Reader(r io.ReaderAt) io.ReaderAt { return reader{r} }

type reader struct{ io.ReaderAt }

func (r reader) ReadAt(b []byte, off int64) (int, error) {
	n, err := r.ReaderAt.ReadAt(b, off)
	if err != nil && err != io.EOF && !errors.Is(err, Data) {
		err = As(Machine, err)
	}
	return n, err
}

// ReadFull reads len(b) bytes at off that are known to be there.
func ReadFull(r io.ReaderAt, b []byte, off int64) error {
	n, err := r.ReadAt(b, off)
	if n == len(b) {
		return nil
	}
	if err == nil || err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}
