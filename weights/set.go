// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package weights

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"path"
	"sync"
	"unsafe"

	"pleach/blob"
	"pleach/half"
	"pleach/internal/fault"
)

// Set is the tensors of one or several files. Its files stay open until Close. All
// methods but Close may be called from several goroutines.
type Set struct {
	tensors []Tensor
	byName  map[string]int
	files   map[string]*shard
	strides map[string][]int // of tensors that do not lie row-major, see Set.gather
}

type shard struct {
	blob.Reader
	path string
}

// OpenFiles opens files of a store: what torch.save wrote if the name ends in .bin,
// .pt or .pth, else safetensors. No tensor may be in two of them. Errors of the
// files' content are of kind fault.Data.
func OpenFiles(s blob.Store, names ...string) (_ *Set, err error) {
	set := &Set{byName: map[string]int{}, files: map[string]*shard{}, strides: map[string][]int{}}
	defer func() {
		if err != nil {
			_ = set.Close()
		}
	}()
	for _, name := range names {
		if err := set.add(s, name); err != nil {
			return nil, err
		}
	}
	return set, nil
}

func (s *Set) add(st blob.Store, name string) error {
	r, err := st.Open(name)
	if err != nil {
		return fmt.Errorf("weights: %w", err)
	}
	file := st.Path(name)
	s.files[name] = &shard{r, file}
	ts, strides, err := readTensors(r, file, name)
	if err != nil {
		return err
	}
	maps.Copy(s.strides, strides)
	for _, t := range ts {
		if i, ok := s.byName[t.Name]; ok {
			return fault.Dataf("weights: %s: tensor %q: is also in %s", file, t.Name, s.tensors[i].File)
		}
		s.byName[t.Name] = len(s.tensors)
		s.tensors = append(s.tensors, t)
	}
	return nil
}

// readTensors reads what a file says about its tensors, and the strides of those
// that do not lie row-major.
func readTensors(r blob.Reader, file, name string) ([]Tensor, map[string][]int, error) {
	switch path.Ext(name) {
	case ".bin", ".pt", ".pth":
		return readTorch(r, file, name)
	}
	ts, err := readHeader(r, file, name)
	return ts, nil, err
}

// Close closes the files.
func (s *Set) Close() error {
	var errs []error
	for _, f := range s.files {
		errs = append(errs, f.Close())
	}
	return errors.Join(errs...)
}

// Tensors is all tensors: files in the order of their names, tensors in the
// order in which they lie. The slice belongs to the set.
func (s *Set) Tensors() []Tensor { return s.tensors }

// Lookup finds a tensor by its name.
func (s *Set) Lookup(name string) (Tensor, bool) {
	i, ok := s.byName[name]
	if !ok {
		return Tensor{}, false
	}
	return s.tensors[i], true
}

// Raw sets dst to the bytes of elements lo to hi of a tensor, as the file has
// them (little-endian, row-major). len(dst) is (hi-lo) times the element size.
func (s *Set) Raw(name string, lo, hi int, dst []byte) error {
	t, err := s.part(name, lo, hi)
	if err != nil {
		return err
	}
	if n := (hi - lo) * t.DType.Size(); len(dst) != n {
		return fmt.Errorf("weights: tensor %q: reading [%d:%d]: got room for %d bytes, want %d",
			name, lo, hi, len(dst), n)
	}
	return s.raw(t, lo, dst)
}

func (s *Set) part(name string, lo, hi int) (Tensor, error) {
	t, ok := s.Lookup(name)
	if !ok {
		return t, fault.Dataf("weights: tensor %q: there is none of this name", name)
	}
	if lo < 0 || hi < lo || hi > t.Len() {
		return t, fmt.Errorf("weights: tensor %q: reading [%d:%d], but it has %d elements",
			name, lo, hi, t.Len())
	}
	return t, nil
}

func (s *Set) raw(t Tensor, lo int, dst []byte) error {
	if stride, ok := s.strides[t.Name]; ok {
		return s.gather(t, stride, lo, dst)
	}
	return s.bytes(t, t.Offset+int64(lo)*int64(t.DType.Size()), dst)
}

// bytes sets dst to what is at a byte of the file of a tensor.
func (s *Set) bytes(t Tensor, at int64, dst []byte) error {
	f := s.files[t.File]
	n, err := f.ReadAt(dst, at)
	if n == len(dst) {
		return nil
	}
	if errors.Is(err, io.EOF) { // it was longer when its header was read
		return fault.Dataf("weights: %s: tensor %q: the file became shorter while it was read",
			f.path, t.Name)
	}
	return fmt.Errorf("weights: %s: tensor %q: %w", f.path, t.Name, err)
}

// Read sets dst to elements lo to hi of a tensor of floats, converted to
// float32 as half.ToF32 does. len(dst) is hi-lo; indices are row-major.
func (s *Set) Read(name string, lo, hi int, dst []float32) error {
	return s.read(name, lo, hi, dst, false)
}

// ReadFinite is Read that refuses NaN and infinities, with an error of kind
// fault.Data that names the tensor and the index of the first one. A float64
// too large for float32 counts as infinite.
func (s *Set) ReadFinite(name string, lo, hi int, dst []float32) error {
	return s.read(name, lo, hi, dst, true)
}

// chunk is how many elements are converted at a time: a few hundred KiB.
const chunk = 1 << 16

// chunks holds *[]byte of 8·chunk bytes, enough for every type.
var chunks = sync.Pool{New: func() any { b := make([]byte, 8*chunk); return &b }}

// Memory is an upper bound of the bytes that a goroutine takes beside dst while it
// reads: by Raw, and by Read or ReadFinite if floats is set.
func (s *Set) Memory(floats bool) int64 {
	n := int64(0)
	if floats {
		n += 8 * chunk
	}
	if len(s.strides) > 0 {
		n += int64(unsafe.Sizeof(gathering{})) + chunk*int64(unsafe.Sizeof(spot{}))
	}
	return n
}

func (s *Set) read(name string, lo, hi int, dst []float32, finite bool) error {
	t, err := s.part(name, lo, hi)
	if err != nil {
		return err
	}
	switch {
	case len(dst) != hi-lo:
		return fmt.Errorf("weights: tensor %q: reading [%d:%d]: got room for %d elements",
			name, lo, hi, len(dst))
	case !t.DType.IsFloat():
		return fault.Dataf("weights: %s: tensor %q: got type %v, want floats",
			s.files[t.File].path, name, t.DType)
	}
	p := chunks.Get().(*[]byte)
	defer chunks.Put(p)
	for at := lo; at < hi; at += chunk {
		n := min(chunk, hi-at)
		b, part := (*p)[:n*t.DType.Size()], dst[at-lo:][:n]
		if err := s.raw(t, at, b); err != nil {
			return err
		}
		if err := half.ToF32(part, t.DType, b); err != nil {
			return err
		}
		if !finite {
			continue
		}
		if i := NonFinite(part); i >= 0 {
			return fault.Dataf("weights: %s: tensor %q: element %d of shape %d is %v",
				s.files[t.File].path, name, at+i, t.Shape, part[i])
		}
	}
	return nil
}

// NonFinite is the index of the first NaN or infinity in x, or -1.
func NonFinite(x []float32) int {
	for i, v := range x {
		if math.Float32bits(v)&0x7f800000 == 0x7f800000 {
			return i
		}
	}
	return -1
}
