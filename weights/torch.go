// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package weights

import (
	"archive/zip"
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"pleach/blob"
	"pleach/half"
	"pleach/internal/fault"
)

// torchTypes is the types of the storages of PyTorch that are ours.
var torchTypes = map[pickleName]half.DType{
	"torch.DoubleStorage": half.F64, "torch.FloatStorage": half.F32,
	"torch.BFloat16Storage": half.BF16, "torch.HalfStorage": half.F16,
	"torch.LongStorage": half.I64, "torch.IntStorage": half.I32, "torch.ShortStorage": half.I16,
	"torch.CharStorage": half.I8, "torch.ByteStorage": half.U8, "torch.BoolStorage": half.Bool,
}

// The functions that a file of tensors calls.
const (
	orderedDict      = pickleName("collections.OrderedDict")
	rebuildTensor    = pickleName("torch._utils._rebuild_tensor_v2")
	rebuildParameter = pickleName("torch._utils._rebuild_parameter")
)

// torchStorage is an array in a file, which tensors are parts of.
type torchStorage struct {
	dtype half.DType
	at    int64 // byte in the file
	n     int64 // elements
}

// torchTensor is a part of a storage.
type torchTensor struct {
	torchStorage
	shape, stride []int64
}

// torchFile is a zip archive that torch.save wrote.
type torchFile struct {
	size    int64 // bytes of the file
	folder  string
	entries map[string]*zip.File
}

// readTorch gives the tensors of a file that torch.save wrote, in the order in
// which they lie, and the strides of those that are not row-major. path is for
// messages, file for Tensor.File. The pickle of the file may name what tensors are
// made of and nothing else, and nothing that it names is run.
func readTorch(r blob.Reader, path, file string) ([]Tensor, map[string][]int, error) {
	ts, strides, err := torchTensors(r)
	if err != nil {
		err = fmt.Errorf("weights: %s: %w", path, err)
		if errors.Is(err, fault.Machine) {
			return nil, nil, err
		}
		return nil, nil, fault.As(fault.Data, err)
	}
	for i := range ts {
		ts[i].File = file
	}
	return ts, strides, nil
}

func torchTensors(r blob.Reader) ([]Tensor, map[string][]int, error) {
	if err := oldTorch(r); err != nil {
		return nil, nil, err
	}
	f, err := openTorch(r)
	if err != nil {
		return nil, nil, err
	}
	text, err := f.read(r, "data.pkl", pickleLimit)
	if err != nil {
		return nil, nil, err
	}
	p := &pickle{src: text, known: knownTorch, call: callTorch, stored: f.storage}
	root, err := p.load()
	if err != nil {
		return nil, nil, err
	}
	return stateDict(root)
}

// oldTorch refuses the format of torch.save before version 1.6: it begins with a
// pickle of the number 0x1950a86a20f9469cfc6c.
func oldTorch(r blob.Reader) error {
	const magic = "\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19"
	var b [len(magic)]byte
	if r.Size() < int64(len(b)) {
		return fmt.Errorf("got %d bytes, want a zip archive that torch.save wrote", r.Size())
	}
	if _, err := io.ReadFull(io.NewSectionReader(r, 0, int64(len(b))), b[:]); err != nil {
		return fmt.Errorf("reading its beginning: %w", err)
	}
	if string(b[:]) == magic {
		return errors.New("got the format of torch.save before PyTorch 1.6, want the zip archive of later ones: " +
			"load and save it again with a newer PyTorch")
	}
	return nil
}

// openTorch reads the directory of the archive. All entries are in one folder,
// whose name is that of the file or "archive".
func openTorch(r blob.Reader) (*torchFile, error) {
	// A directory may say that an entry begins anywhere, also before the file: the
	// section answers that with the end of the file.
	z, err := zip.NewReader(io.NewSectionReader(r, 0, r.Size()), r.Size())
	if err != nil {
		return nil, fmt.Errorf("want a zip archive that torch.save wrote: %w", err)
	}
	f := &torchFile{size: r.Size(), entries: make(map[string]*zip.File, len(z.File))}
	for _, e := range z.File {
		if f.entries[e.Name] != nil {
			return nil, fmt.Errorf("entry %q of the zip archive: is there twice", e.Name)
		}
		f.entries[e.Name] = e
		folder, name, _ := strings.Cut(e.Name, "/")
		if name != "data.pkl" {
			continue
		}
		if f.folder != "" {
			return nil, fmt.Errorf("the zip archive has both %s/data.pkl and %s: which is the model?",
				f.folder, e.Name)
		}
		f.folder = folder
	}
	if f.folder == "" {
		return nil, errors.New("the zip archive has no data.pkl: torch.save did not write it")
	}
	if f.entries[f.folder+"/byteorder"] == nil { // before PyTorch 2.1, always little-endian
		return f, nil
	}
	order, err := f.read(r, "byteorder", 16)
	if err == nil && order != "little" {
		err = fmt.Errorf("byteorder: got %q, want little", order)
	}
	return f, err
}

// find gives the bytes of an entry, which must be stored as they are.
func (f *torchFile) find(name string) (at, size int64, err error) {
	e := f.entries[f.folder+"/"+name]
	if e == nil {
		return 0, 0, fmt.Errorf("the zip archive has no entry %q", f.folder+"/"+name)
	}
	if e.Method != zip.Store || e.Flags&1 != 0 || e.CompressedSize64 != e.UncompressedSize64 {
		return 0, 0, fmt.Errorf("entry %q of the zip archive: is compressed or encrypted (method %d), "+
			"want it stored, as torch.save does", e.Name, e.Method)
	}
	if at, err = e.DataOffset(); err != nil {
		return 0, 0, fmt.Errorf("entry %q of the zip archive: %w", e.Name, err)
	}
	if n := e.UncompressedSize64; at < 0 || at > f.size || n > uint64(f.size-at) {
		return 0, 0, fmt.Errorf("entry %q of the zip archive: has %d bytes at %d, "+
			"but the file has %d: it is truncated", e.Name, n, at, f.size)
	}
	return at, int64(e.UncompressedSize64), nil
}

// read reads a small entry. Its checksum is not looked at, since PyTorch can be
// told to write none.
func (f *torchFile) read(r blob.Reader, name string, limit int64) (string, error) {
	at, n, err := f.find(name)
	if err != nil {
		return "", err
	}
	if n > limit {
		return "", fmt.Errorf("entry %q of the zip archive: got %d bytes, want at most %d", name, n, limit)
	}
	b := make([]byte, n)
	if _, err := io.ReadFull(io.NewSectionReader(r, at, n), b); err != nil {
		return "", fmt.Errorf("reading entry %q of the zip archive: %w", name, err)
	}
	return string(b), nil
}

// storage is what a persistent id stands for:
// ("storage", type, key, device, number of elements).
func (f *torchFile) storage(id any) (any, error) {
	t, ok := id.(pickleTuple)
	if !ok || len(t) != 5 || t[0] != "storage" {
		return nil, fmt.Errorf("got %s, want the five words of a storage", pickleKind(id))
	}
	name, _ := t[1].(pickleName)
	dt, isType := torchTypes[name]
	key, isKey := t[2].(string)
	n, isNumber := t[4].(int64)
	if !isType || !isKey || !isNumber || n < 0 {
		return nil, fmt.Errorf("storage: got %s, %s with %s elements, want a type, a key and a number",
			pickleKind(t[1]), pickleKind(t[2]), pickleKind(t[4]))
	}
	at, size, err := f.find("data/" + key)
	if err != nil {
		return nil, err
	}
	if size%int64(dt.Size()) != 0 || size/int64(dt.Size()) != n {
		return nil, fmt.Errorf("storage %q: got %d bytes, want %d elements of %v", key, size, n, dt)
	}
	return &torchStorage{dtype: dt, at: at, n: n}, nil
}

func knownTorch(n pickleName) bool {
	_, isType := torchTypes[n]
	return isType || n == orderedDict || n == rebuildTensor || n == rebuildParameter
}

// callTorch gives what a call gives in PyTorch.
func callTorch(f pickleName, args pickleTuple) (any, error) {
	switch {
	case f == orderedDict && len(args) == 0:
		return &pickleDict{}, nil
	case f == rebuildTensor && (len(args) == 6 || len(args) == 7):
		return newTorchTensor(args)
	case f == rebuildParameter && len(args) == 3:
		if t, ok := args[0].(*torchTensor); ok {
			return t, nil
		}
	}
	return nil, fmt.Errorf("got other arguments than torch.save writes: %d of them", len(args))
}

// newTorchTensor makes a tensor of (storage, offset, shape, stride, whether it has
// a gradient, hooks) and, in later versions, a dictionary of properties, of which
// there are none for a plain tensor.
func newTorchTensor(args pickleTuple) (*torchTensor, error) {
	s, ok := args[0].(*torchStorage)
	if !ok {
		return nil, fmt.Errorf("got %s, want a storage", pickleKind(args[0]))
	}
	if len(args) == 7 {
		if d, ok := args[6].(*pickleDict); args[6] != nil && !(ok && len(d.items) == 0) {
			return nil, errors.New("got a tensor with properties (conjugate, negative), want a plain one")
		}
	}
	offset, ok1 := args[1].(int64)
	shape, ok2 := pickleInts(args[2])
	stride, ok3 := pickleInts(args[3])
	if !ok1 || !ok2 || !ok3 || offset < 0 || len(stride) != len(shape) {
		return nil, fmt.Errorf("got offset %s, shape %s, stride %s, want integers of at least 0, "+
			"two lists as long as each other, at most %d",
			pickleKind(args[1]), pickleKind(args[2]), pickleKind(args[3]), maxDims)
	}
	n, err := elements(shape, s.dtype.Size())
	if err != nil {
		return nil, err
	}
	if offset > s.n || n > 0 && !within(s.n, offset, shape, stride) {
		return nil, fmt.Errorf("shape %d with stride %d at %d: is not within its storage of %d elements",
			shape, stride, offset, s.n)
	}
	t := &torchTensor{torchStorage: *s, shape: shape, stride: stride}
	t.at += offset * int64(s.dtype.Size())
	return t, nil
}

// within says whether the last element of a tensor of at least one is among n.
func within(n, offset int64, shape, stride []int64) bool {
	left := n - 1 - offset // elements behind the one that is reached
	for i, d := range shape {
		if d == 1 {
			continue
		}
		if left < 0 || stride[i] > left/(d-1) {
			return false
		}
		left -= (d - 1) * stride[i]
	}
	return left >= 0
}

// pickleInts is a tuple of at most maxDims integers, none negative.
func pickleInts(v any) ([]int64, bool) {
	t, ok := v.(pickleTuple)
	if !ok || len(t) > maxDims {
		return nil, false
	}
	list := make([]int64, len(t))
	for i, x := range t {
		n, ok := x.(int64)
		if !ok || n < 0 {
			return nil, false
		}
		list[i] = n
	}
	return list, true
}

// stateDict gives the tensors of a dictionary from names to tensors, or of the one
// under the key state_dict of a dictionary, where trainers put it.
func stateDict(root any) ([]Tensor, map[string][]int, error) {
	d, ok := root.(*pickleDict)
	if !ok {
		return nil, nil, fmt.Errorf("got %s, want a dictionary of tensors", pickleKind(root))
	}
	for i := 0; i < len(d.items); i += 2 {
		if inner, ok := d.items[i+1].(*pickleDict); ok && d.items[i] == "state_dict" {
			d = inner
			break
		}
	}
	return namedTensors(d)
}

// namedTensors gives the tensors of a dictionary from names to tensors, sorted by
// where they lie. Several may share their elements.
func namedTensors(d *pickleDict) ([]Tensor, map[string][]int, error) {
	ts := make([]Tensor, 0, len(d.items)/2)
	strides := map[string][]int{}
	seen := make(map[string]bool, len(d.items)/2)
	for i := 0; i < len(d.items); i += 2 {
		name, ok := d.items[i].(string)
		if !ok {
			return nil, nil, fmt.Errorf("got %s as the name of a tensor, want a string", pickleKind(d.items[i]))
		}
		t, ok := d.items[i+1].(*torchTensor)
		if !ok {
			return nil, nil, fmt.Errorf("%q: got %s, want a tensor", name, pickleKind(d.items[i+1]))
		}
		if seen[name] {
			return nil, nil, fmt.Errorf("tensor %q: is there twice", name)
		}
		seen[name] = true
		u, stride := t.tensor(name)
		if stride != nil {
			strides[name] = stride
		}
		ts = append(ts, u)
	}
	slices.SortFunc(ts, func(a, b Tensor) int {
		return cmp.Or(
			cmp.Compare(a.Offset, b.Offset), cmp.Compare(a.Size, b.Size), strings.Compare(a.Name, b.Name))
	})
	return ts, strides, nil
}

// tensor is the description of a tensor, and its strides if its elements do not
// lie row-major one after the other.
func (t *torchTensor) tensor(name string) (Tensor, []int) {
	u := Tensor{Name: name, DType: t.dtype, Offset: t.at, Shape: make([]int, len(t.shape))}
	stride := make([]int, len(t.shape))
	n, plain := int64(1), true
	for i := len(t.shape) - 1; i >= 0; i-- {
		d := t.shape[i]
		plain = plain && (d <= 1 || t.stride[i] == n)
		n *= d // elements has checked the product
		u.Shape[i], stride[i] = int(d), int(min(t.stride[i], math.MaxInt))
	}
	u.Size = n * int64(t.dtype.Size())
	if plain || n == 0 {
		stride = nil
	}
	return u, stride
}
