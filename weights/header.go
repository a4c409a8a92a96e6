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
	"pleach/internal/strictjson"
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
	ts, err := parseHeader(string(b))
	if err != nil {
		var at *strictjson.Error
		if errors.As(err, &at) { // where in the file, not in the header
			at.At += 8
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
func parseHeader(src string) ([]Tensor, error) {
	if !strings.HasPrefix(src, "{") {
		return nil, errors.New("want a JSON object that begins at once with {")
	}
	root, err := strictjson.Parse(src)
	if err != nil {
		return nil, err
	}
	var ts []Tensor
	for name, v := range root.Fields() {
		if name == "__metadata__" {
			err = checkMetadata(v)
		} else {
			var t Tensor
			t, err = parseTensor(name, v)
			ts = append(ts, t)
		}
		if err != nil {
			return nil, err
		}
	}
	return ts, nil
}

func checkMetadata(v strictjson.Value) error {
	if v.Kind != strictjson.Object {
		return v.Errorf("__metadata__: got %v, want an object", v)
	}
	for key, text := range v.Fields() {
		if text.Kind != strictjson.String {
			return text.Errorf("__metadata__: %q: got %v, want a string", key, text)
		}
	}
	return nil
}

// maxDims is far above any real tensor.
const maxDims = 64

func parseTensor(name string, v strictjson.Value) (Tensor, error) {
	if v.Kind != strictjson.Object {
		return Tensor{}, v.Errorf("tensor %q: got %v, want an object", name, v)
	}
	var dtype string
	var shape, offsets []int64
	for key, field := range v.Fields() {
		var err error
		switch key {
		case "dtype":
			if dtype = field.Text; field.Kind != strictjson.String {
				err = fmt.Errorf("got %v, want a string", field)
			}
		case "shape":
			shape, err = integers(field, maxDims)
		case "data_offsets":
			offsets, err = integers(field, 2)
		default:
			return Tensor{}, field.Errorf("tensor %q: unknown key %q", name, key)
		}
		if err != nil {
			return Tensor{}, field.Errorf("tensor %q: %s: %w", name, key, err)
		}
	}
	t, err := check(name, dtype, shape, offsets)
	if err != nil {
		return Tensor{}, v.Errorf("tensor %q: %w", name, err)
	}
	return t, nil
}

// integers reads a list of at most limit integers.
func integers(v strictjson.Value, limit int) ([]int64, error) {
	if v.Kind != strictjson.Array {
		return nil, fmt.Errorf("got %v, want a list of integers", v)
	}
	if len(v.Kids) > limit {
		return nil, fmt.Errorf("got %d integers, want at most %d", len(v.Kids), limit)
	}
	list := make([]int64, len(v.Kids))
	for i, k := range v.Kids {
		n, ok := k.Int64()
		if !ok {
			return nil, fmt.Errorf("got %v, want an integer below 2^63", k)
		}
		list[i] = n
	}
	return list, nil
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
