// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package blob

import (
	"errors"
	"io/fs"
	"os"

	"pleach/internal/fault"
)

// wrap says what was being done to which file, and whose fault it is. The path
// that the os package puts into its errors is dropped: it would stand twice,
// and may be a temporary name that means nothing to the reader.
func wrap(doing, path string, err error) error {
	if err == nil {
		return nil
	}
	err = cause(err)
	switch {
	case full(err):
		return fault.Machinef("blob: %s %s: the disk is full: %w", doing, path, err)
	case errors.Is(err, fs.ErrNotExist):
		return fault.Dataf("blob: %s %s: %w", doing, path, err)
	}
	return fault.Machinef("blob: %s %s: %w", doing, path, err)
}

func cause(err error) error {
	var pe *fs.PathError
	var le *os.LinkError
	switch {
	case errors.As(err, &pe):
		return pe.Err
	case errors.As(err, &le):
		return le.Err
	}
	return err
}

func tooLarge(path string, size, limit int64) error {
	return fault.Dataf("blob: reading %s: got %d bytes, want at most %d", path, size, limit)
}

func badName(name string) error {
	return fault.Dataf("blob: name %q: want a relative path with slashes and without \"..\": %w",
		name, fs.ErrInvalid)
}
