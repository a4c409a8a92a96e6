// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package weights

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"path"
	"slices"
	"unicode/utf8"

	"pleach/half"
	"pleach/internal/fault"
)

// Source is a tensor to be written. Exactly one of Read and Raw is called, for
// ranges in ascending order that cover it once; Raw is preferred when both are
// there. dst is reused by the caller afterwards. A plan whose Write is not called
// needs neither.
type Source struct {
	Name  string
	DType half.DType // in the file
	Shape []int

	// Read gives elements lo to hi, which are rounded to DType as half.FromF32
	// does. A finite element that would become infinite is an error.
	Read func(lo, hi int, dst []float32) error

	// Raw gives elements lo to hi as they will lie in the file.
	Raw func(lo, hi int, dst []byte) error
}

// A Plan says which files a model will be written to and how large they are,
// before anything is written. Nothing in the files depends on time or place.
type Plan struct {
	Files []PlannedFile
	Bytes int64 // of all files and the index
	index []byte
	stem  string
}

// PlannedFile is one safetensors file of a plan.
type PlannedFile struct {
	Name    string
	Bytes   int64
	header  []byte
	tensors []Source
}

// NewPlan distributes tensors, in their order, to files of at most limit bytes
// of tensors; a larger tensor gets a file of its own; limit 0 is one file. The
// files are called stem.safetensors, or stem-00001-of-0000n.safetensors with
// stem.safetensors.index.json, as Hugging Face tools call and cut them.
func NewPlan(stem string, limit int64, ts []Source) (*Plan, error) {
	seen := map[string]bool{}
	for _, t := range ts {
		if seen[t.Name] {
			return nil, fmt.Errorf("weights: writing %s: tensor %q is given twice", stem, t.Name)
		}
		seen[t.Name] = true
		if err := t.check(); err != nil {
			return nil, fmt.Errorf("weights: writing %s: tensor %q: %w", stem, t.Name, err)
		}
	}
	p := &Plan{stem: stem}
	for _, part := range cut(ts, limit) {
		h := header(part)
		p.Files = append(p.Files, PlannedFile{header: h, tensors: part, Bytes: int64(len(h)) + total(part)})
	}
	for i := range p.Files {
		f := &p.Files[i]
		f.Name = stem + ".safetensors"
		if len(p.Files) > 1 {
			f.Name = fmt.Sprintf("%s-%05d-of-%05d.safetensors", stem, i+1, len(p.Files))
		}
		p.Bytes += f.Bytes
	}
	if len(p.Files) > 1 {
		p.index = p.indexJSON()
		p.Bytes += int64(len(p.index))
	}
	return p, nil
}

func (t Source) check() error {
	switch {
	case t.Name == "" || t.Name == "__metadata__" || !utf8.ValidString(t.Name):
		return errors.New("not a name for a tensor")
	case t.Raw == nil && t.Read != nil && !t.DType.IsFloat():
		return fmt.Errorf("type %v is no float: want Raw", t.DType)
	}
	shape := make([]int64, len(t.Shape))
	for i, d := range t.Shape {
		shape[i] = int64(d)
	}
	_, err := elements(shape, t.DType.Size())
	return err
}

func (t Source) len() int {
	n := 1
	for _, d := range t.Shape {
		n *= d
	}
	return n
}

func (t Source) bytes() int64 { return int64(t.len()) * int64(t.DType.Size()) }

func total(ts []Source) (n int64) {
	for _, t := range ts {
		n += t.bytes()
	}
	return n
}

// cut splits tensors into files. There is always at least one file.
func cut(ts []Source, limit int64) [][]Source {
	if limit <= 0 {
		return [][]Source{ts}
	}
	var parts [][]Source
	begin, size := 0, int64(0)
	for i, t := range ts {
		if i > begin && size+t.bytes() > limit {
			parts = append(parts, ts[begin:i])
			begin, size = i, 0
		}
		size += t.bytes()
	}
	return append(parts, ts[begin:])
}

// header is the length and the JSON of a file.
func header(ts []Source) []byte {
	b := make([]byte, 8, 8+64+128*len(ts))
	b = append(b, `{"__metadata__":{"format":"pt"}`...)
	var at int64
	for _, t := range ts {
		b = append(b, ',')
		b = quote(b, t.Name)
		b = fmt.Appendf(b, `:{"dtype":"%s","shape":[`, t.DType.Safetensors())
		for i, d := range t.Shape {
			if i > 0 {
				b = append(b, ',')
			}
			b = fmt.Append(b, d)
		}
		b = fmt.Appendf(b, `],"data_offsets":[%d,%d]}`, at, at+t.bytes())
		at += t.bytes()
	}
	b = append(b, '}')
	for len(b)%8 != 0 {
		b = append(b, ' ')
	}
	binary.LittleEndian.PutUint64(b, uint64(len(b)-8))
	return b
}

// quote appends a JSON string with as few escapes as JSON allows, as the
// reference implementation does; encoding/json escapes more. s is valid UTF-8.
func quote(b []byte, s string) []byte {
	short := map[byte]byte{'"': '"', '\\': '\\', '\b': 'b', '\f': 'f', '\n': 'n', '\r': 'r', '\t': 't'}
	b = append(b, '"')
	for i := range len(s) {
		c := s[i]
		switch e, ok := short[c]; {
		case ok:
			b = append(b, '\\', e)
		case c < 0x20:
			b = fmt.Appendf(b, `\u%04x`, c)
		default:
			b = append(b, c)
		}
	}
	return append(b, '"')
}

func (p *Plan) indexJSON() []byte {
	files := map[string]string{}
	var size int64
	for _, f := range p.Files {
		size += total(f.tensors)
		for _, t := range f.tensors {
			files[t.Name] = f.Name
		}
	}
	b := fmt.Appendf(nil, "{\n  \"metadata\": {\n    \"total_size\": %d\n  },\n  \"weight_map\": {", size)
	for i, name := range slices.Sorted(maps.Keys(files)) {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, "\n    "...)
		b = quote(b, name)
		b = append(b, ": "...)
		b = quote(b, files[name])
	}
	return append(b, "\n  }\n}\n"...)
}

// Places is where every tensor lies, for who writes elements in an order of its own.
// File is the name of a file of the plan.
func (p *Plan) Places() []Tensor {
	var list []Tensor
	for _, f := range p.Files {
		at := int64(len(f.header))
		for _, t := range f.tensors {
			list = append(list, Tensor{Name: t.Name, DType: t.DType, Shape: t.Shape, File: f.Name, Offset: at, Size: t.bytes()})
			at += t.bytes()
		}
	}
	return list
}

// Header is the bytes of a file before its tensors.
func (f PlannedFile) Header() []byte { return f.header }

// Index is the index of the shards and its name, or nil if there is one file.
func (p *Plan) Index() (name string, text []byte) {
	if p.index == nil {
		return "", nil
	}
	return p.stem + ".safetensors.index.json", p.index
}

// Write writes the files into dir through create, for which the Write methods
// of blob.Store and blob.Tree serve. It needs about 2 MiB, whatever the size.
func (p *Plan) Write(dir string, create func(name string, fill func(io.Writer) error) error) error {
	for _, f := range p.Files {
		for _, t := range f.tensors {
			if t.Raw == nil && t.Read == nil {
				return fmt.Errorf("weights: writing %s: tensor %q: it has no elements to write", p.stem, t.Name)
			}
		}
	}
	for _, f := range p.Files {
		if err := create(path.Join(dir, f.Name), f.write); err != nil {
			return err
		}
	}
	name, text := p.Index()
	if text == nil {
		return nil
	}
	return create(path.Join(dir, name), func(w io.Writer) error {
		_, err := w.Write(text)
		return err
	})
}

func (f PlannedFile) write(w io.Writer) error {
	bw := bufio.NewWriterSize(w, int(min(1<<20, f.Bytes)))
	if _, err := bw.Write(f.header); err != nil {
		return err
	}
	most := 0
	for _, t := range f.tensors {
		most = max(most, t.len())
	}
	src := make([]float32, min(chunk, most))
	p := chunks.Get().(*[]byte)
	defer chunks.Put(p)
	for _, t := range f.tensors {
		for lo, n := 0, t.len(); lo < n; lo += chunk {
			hi := min(lo+chunk, n)
			b := (*p)[:(hi-lo)*t.DType.Size()]
			if err := t.fill(lo, hi, b, src[:hi-lo]); err != nil {
				return fmt.Errorf("weights: writing %s: tensor %q: %w", f.Name, t.Name, err)
			}
			if _, err := bw.Write(b); err != nil {
				return err
			}
		}
	}
	return bw.Flush()
}

func (t Source) fill(lo, hi int, dst []byte, src []float32) error {
	if t.Raw != nil {
		return t.Raw(lo, hi, dst)
	}
	if err := t.Read(lo, hi, src); err != nil {
		return err
	}
	if i := overflow(t.DType, src); i >= 0 {
		return fault.Dataf("element %d is %v, too large for %v", lo+i, src[i], t.DType)
	}
	return half.FromF32(dst, t.DType, src)
}

// overflow is the index of the first finite element that is rounded to
// infinity, or -1.
func overflow(t half.DType, x []float32) int {
	limit := t.Overflow()
	for i, v := range x {
		if a := max(v, -v); a >= limit && a <= math.MaxFloat32 {
			return i
		}
	}
	return -1
}
