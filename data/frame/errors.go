// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package frame

import (
	"errors"
	"fmt"
	"io"

	"pleach/internal/fault"
)

// damaged is an error of kind fault.Data, or of kind fault.Machine where the bytes
// could not be read at all: a run may try again then.
func damaged(format string, args ...any) error {
	err := fmt.Errorf(format, args...)
	if errors.Is(err, fault.Machine) {
		return fault.As(fault.Machine, err)
	}
	return fault.As(fault.Data, err)
}

// tagged is a reader whose failures are of kind fault.Machine unless they say
// otherwise, as those of a store do.
type tagged struct{ r io.ReaderAt }

func (t tagged) ReadAt(b []byte, off int64) (int, error) {
	n, err := t.r.ReadAt(b, off)
	if err != nil && err != io.EOF && !errors.Is(err, fault.Data) {
		err = fault.As(fault.Machine, err)
	}
	return n, err
}
