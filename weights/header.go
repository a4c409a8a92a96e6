// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package weights

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"pleach/blob"
	"pleach/half"
	"pleach/internal/fault"
)

// headerLimit is the largest header that the reference implementation reads.
const headerLimit = 100_000_000

// readHeader gives the tensors of one safetensors file in the order in which
// they lie. path is for messages, file for Tensor.File. It allocates in
// proportion to the header, which is no larger than the file.
func readHeader(r blob.Reader, path, file string) ([]Tensor, error) {
	size := r.Size()
	if size < 8 {
		return nil, fault.Dataf("weights: %s: got %d bytes, want at least the 8 of the header length",
			path, size)
	}
	var n8 [8]byte
	if _, err := io.ReadFull(io.NewSectionReader(r, 0, 8), n8[:]); err != nil {
		return nil, fmt.Errorf("weights: %s: reading the header length: %w", path, err)
	}
	n := binary.LittleEndian.Uint64(n8[:])
	if n > headerLimit {
		return nil, fault.Dataf("weights: %s: header length: got %d bytes, want at most %d",
			path, n, headerLimit)
	}
	if int64(n) > size-8 {
		return nil, fault.Dataf("weights: %s: header: want %d bytes, but only %d follow: "+
			"the file is truncated", path, n, size-8)
	}
	b := make([]byte, n)
	if _, err := io.ReadFull(io.NewSectionReader(r, 8, int64(n)), b); err != nil {
		return nil, fmt.Errorf("weights: %s: reading the header: %w", path, err)
	}
	ts, err := parseHeader(b)
	if err != nil {
		var at *atOffset
		if errors.As(err, &at) { // where in the file, not in the header
			err = &atOffset{at.off + 8, at.err}
		}
		return nil, fault.Dataf("weights: %s: header: %w", path, err)
	}
	if err := layOut(ts, size-8-int64(n)); err != nil {
		return nil, fault.Dataf("weights: %s: %w", path, err)
	}
	for i := range ts {
		ts[i].Offset += 8 + int64(n)
		ts[i].File = file
	}
	return ts, nil
}

// parseHeader reads the JSON of a header; Offset counts from its end.
func parseHeader(b []byte) ([]Tensor, error) {
	if len(b) == 0 || b[0] != '{' {
		return nil, errors.New("want a JSON object that begins at once with {")
	}
	w, err := walk(b)
	if err != nil {
		return nil, err
	}
	var ts []Tensor
	err = w.object(func(name string) error {
		if name == "__metadata__" {
			return w.object(func(string) error {
				_, err := w.text()
				return err
			})
		}
		t, err := parseTensor(w, name)
		ts = append(ts, t)
		return err
	})
	return ts, err
}

// maxDims is far above any real tensor, and bounds what one entry can allocate.
const maxDims = 64

func parseTensor(w *walker, name string) (Tensor, error) {
	var dtype string
	var shape, offsets []int64
	err := w.object(func(key string) (err error) {
		switch key {
		case "dtype":
			dtype, err = w.text()
		case "shape":
			shape, err = w.integers(maxDims)
		case "data_offsets":
			offsets, err = w.integers(2)
		default:
			err = w.fail("unknown key %q", key)
		}
		return err
	})
	var at *atOffset
	switch {
	case errors.As(err, &at):
		return Tensor{}, &atOffset{at.off, fmt.Errorf("tensor %q: %w", name, at.err)}
	case err != nil:
		return Tensor{}, err
	}
	t, err := check(name, dtype, shape, offsets)
	if err != nil {
		return Tensor{}, w.fail("tensor %q: %w", name, err)
	}
	return t, nil
}

func check(name, dtype string, shape, offsets []int64) (Tensor, error) {
	switch {
	case dtype == "":
		return Tensor{}, errors.New(`key "dtype" is missing`)
	case shape == nil:
		return Tensor{}, errors.New(`key "shape" is missing`)
	case len(offsets) != 2:
		return Tensor{}, fmt.Errorf("data_offsets: got %d, want two", offsets)
	case offsets[0] < 0 || offsets[1] < offsets[0]:
		return Tensor{}, fmt.Errorf("data_offsets: got %d, want 0 ≤ begin ≤ end", offsets)
	}
	dt, ok := half.ParseSafetensors(dtype)
	if !ok {
		return Tensor{}, fmt.Errorf("dtype %q is unknown or not supported", dtype)
	}
	n, err := elements(shape, dt.Size())
	if err != nil {
		return Tensor{}, err
	}
	size := n * int64(dt.Size())
	if got := offsets[1] - offsets[0]; got != size {
		return Tensor{}, fmt.Errorf("data_offsets %d are %d bytes apart, but shape %d of %s takes %d",
			offsets, got, shape, dtype, size)
	}
	t := Tensor{Name: name, DType: dt, Offset: offsets[0], Size: size, Shape: make([]int, len(shape))}
	for i, d := range shape {
		t.Shape[i] = int(d)
	}
	return t, nil
}

// layOut sorts tensors by where they lie and checks that they fill size bytes.
func layOut(ts []Tensor, size int64) error {
	slices.SortFunc(ts, func(a, b Tensor) int {
		return cmp.Or(
			cmp.Compare(a.Offset, b.Offset), cmp.Compare(a.Size, b.Size), strings.Compare(a.Name, b.Name))
	})
	var end int64
	for i, t := range ts {
		switch {
		case t.Offset < end:
			return fmt.Errorf("tensor %q: begins at data offset %d, inside tensor %q, which ends at %d",
				t.Name, t.Offset, ts[i-1].Name, end)
		case t.Offset > end:
			return fmt.Errorf("tensor %q: begins at data offset %d, want %d: there is a hole before it",
				t.Name, t.Offset, end)
		case t.Size > size-t.Offset:
			return fmt.Errorf("tensor %q: ends at data offset %d, but there are only %d bytes: "+
				"the file is truncated", t.Name, t.Offset+t.Size, size)
		}
		end += t.Size
	}
	if end < size {
		return fmt.Errorf("%d bytes follow the last tensor, want none", size-end)
	}
	return nil
}
