// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"

	"pleach/blob"
	"pleach/internal/fault"
	"pleach/kernel"
	"pleach/weights"
)

// Adapter is a LoRA adapter in the format of PEFT, applied to a model when its
// tensors are read. All methods but Close may be called from several goroutines.
//
// For a tensor W of the model that is [I,J] and factors of rank R, with
// s = lora_alpha/R, or lora_alpha/√R with use_rslora:
//
//	W'[i,j] = W[i,j] + s·Σ_r U[i,r]·V[r,j]
//
//	linear layer         U = lora_B                V = lora_A
//	… as [in,out]        U = lora_Aᵀ               V = lora_Bᵀ   (fan_in_fan_out)
//	embedding            U = lora_embedding_Aᵀ     V = lora_embedding_Bᵀ
//
// Products and sums are float32, each rounded on its own, r ascending, so elements
// have the same bits however ranges are cut. W' is rounded once, to the type of W as
// stored. Tensors that the adapter stores whole (modules_to_save, biases, resized or
// trained embeddings) stand in the place of those of the model, rounded likewise.
//
// Hu et al., "LoRA: Low-Rank Adaptation of Large Language Models", 2021,
// arXiv:2106.09685, section 4.1; Kalajdzievski, "A Rank Stabilization Scaling Factor
// for Fine-Tuning with LoRA", 2023, arXiv:2312.03732; the checkpoint format of PEFT.
//
// Differs: for an embedding PEFT rounds the product to the type of W before it adds
// it. Where a model has no lm_head.weight of its own because it is the embedding,
// PEFT adds what belongs to lm_head to the embedding too; here lm_head becomes a
// tensor of its own, as it was in training.
type Adapter struct {
	dir       string
	base, own *weights.Set
	targets   map[string]*loraTarget // by the name of the tensor of the model
	files     []string
	level     kernel.Level // of no consequence for the bits

	mu     sync.Mutex
	recent []*loraTarget // those whose factors are held, the latest last
}

// loraTarget is a tensor of a model that an adapter changes.
type loraTarget struct {
	name    string
	model   weights.Tensor // W: of this name, or the embedding that stands for it
	instead string         // tensor of the adapter in the place of W; empty for none
	a, b    string         // factors in the adapter; empty for none
	layout  loraLayout
	rank    int
	scale   float32
	load    func() (*loraFactors, error) // nil while the factors are not held
}

// loraLayout is how the factors make the product.
type loraLayout byte

const (
	loraLinear    loraLayout = iota // B·A
	loraFlipped                     // (B·A)ᵀ: a linear layer whose weight is [in,out]
	loraEmbedding                   // (B·A)ᵀ of lora_embedding_A and B
)

// heldFactors is how many tensors' factors stay in memory: workers read few tensors
// at a time, one after the other.
const heldFactors = 4

// OpenAdapter opens the folder of an adapter for a model with these weights. All of
// its tensors must have a place in the model, with fitting shapes; what the
// configuration asks for must be plain LoRA. The errors are of kind fault.Data.
func OpenAdapter(dir string, base *weights.Set) (*Adapter, error) {
	c, err := readAdapterConfig(dir)
	if err != nil {
		return nil, fault.As(fault.Data, fmt.Errorf("merge: adapter %s: %w", dir, err))
	}
	own, file, err := openFactors(dir)
	if err != nil {
		return nil, fault.As(fault.Data, fmt.Errorf("merge: adapter %s: %w", dir, err))
	}
	a := &Adapter{
		dir: dir, base: base, own: own, level: kernel.Best(),
		files: []string{filepath.Join(dir, adapterFile), filepath.Join(dir, file)},
	}
	if a.targets, err = findTargets(c, own, base); err != nil {
		a.Close()
		return nil, fault.As(fault.Data, fmt.Errorf("merge: adapter %s: %w", dir, err))
	}
	return a, nil
}

// openFactors opens the tensors of an adapter, safetensors where there are both.
func openFactors(dir string) (set *weights.Set, file string, err error) {
	es, err := blob.Local(dir).List(".")
	if err != nil {
		return nil, "", err
	}
	for _, file := range []string{"adapter_model.safetensors", "adapter_model.bin"} {
		if slices.ContainsFunc(es, func(e blob.Entry) bool { return e.Name == file }) {
			set, err := weights.OpenFiles(blob.Local(dir), file)
			return set, file, err
		}
	}
	return nil, "", errors.New("want adapter_model.safetensors or adapter_model.bin, got none of them")
}

// Close closes the files.
func (a *Adapter) Close() { _ = a.own.Close() }

// Files are the paths of the adapter's files.
func (a *Adapter) Files() []string { return a.files }

// Touches says whether a tensor is another one with the adapter.
func (a *Adapter) Touches(name string) bool { return a.targets[name] != nil }

// Replaced is the tensor that stands in the place of one of the model: one that the
// adapter stores whole, or an lm_head.weight that the model does not store. It has
// the shape and type of the model's tensor, and is read by Read.
func (a *Adapter) Replaced(name string) (weights.Tensor, bool) {
	t := a.targets[name]
	if t == nil || t.instead == "" && t.model.Name == name {
		return weights.Tensor{}, false
	}
	w := t.model
	if t.instead != "" {
		w, _ = a.own.Lookup(t.instead)
	}
	w.Name, w.Shape, w.DType = name, t.model.Shape, t.model.DType
	return w, true
}

// Added are the tensors that the model has with the adapter alone: an lm_head.weight
// that it does not store.
func (a *Adapter) Added() (list []weights.Tensor) {
	for name := range a.targets {
		if t, ok := a.Replaced(name); ok {
			if _, there := a.base.Lookup(name); !there {
				list = append(list, t)
			}
		}
	}
	slices.SortFunc(list, func(x, y weights.Tensor) int { return cmp.Compare(x.Name, y.Name) })
	return list
}

// Memory is an upper bound of the bytes that the adapter holds on to while so many
// goroutines read.
func (a *Adapter) Memory(readers int) int64 {
	var most int64
	for _, t := range a.targets {
		if t.a == "" {
			continue
		}
		u, _ := a.own.Lookup(t.a)
		v, _ := a.own.Lookup(t.b)
		most = max(most, 4*int64(u.Len()+2*v.Len()), 4*int64(2*u.Len()+v.Len()))
	}
	return int64(heldFactors+readers)*most + int64(readers)*6*adapterChunk
}

// Read sets dst to elements lo to hi of a tensor of the model with the adapter
// applied. len(dst) is hi−lo; indices are row-major.
func (a *Adapter) Read(name string, lo, hi int, dst []float32) error {
	t := a.targets[name]
	if t == nil {
		return a.base.Read(name, lo, hi, dst)
	}
	if lo < 0 || hi < lo || hi > t.model.Len() || len(dst) != hi-lo {
		return fmt.Errorf("merge: adapter %s: tensor %q of %d elements: reading [%d:%d] into %d",
			a.dir, name, t.model.Len(), lo, hi, len(dst))
	}
	var f *loraFactors
	if t.a != "" {
		var err error
		if f, err = a.factors(t); err != nil {
			return fmt.Errorf("merge: adapter %s: %w", a.dir, err)
		}
	}
	w := adapterChunks.Get().(*adapterScratch)
	defer adapterChunks.Put(w)
	for at := lo; at < hi; at += adapterChunk {
		n := min(adapterChunk, hi-at)
		if err := a.readPart(t, f, at, dst[at-lo:][:n], w); err != nil {
			return fmt.Errorf("merge: adapter %s: %w", a.dir, err)
		}
	}
	return nil
}

// adapterChunk is how many elements are made at a time.
const adapterChunk = 1 << 14

// adapterScratch is what making a part takes.
type adapterScratch struct {
	w    [adapterChunk]float32
	half [adapterChunk]uint16
}

// adapterChunks holds *adapterScratch.
var adapterChunks = sync.Pool{New: func() any { return new(adapterScratch) }}

// readPart sets dst to the elements from lo on.
func (a *Adapter) readPart(t *loraTarget, f *loraFactors, lo int, dst []float32, tmp *adapterScratch) error {
	w := tmp.w[:len(dst)]
	set, name := a.base, t.model.Name
	if t.instead != "" {
		set, name = a.own, t.instead
	}
	if err := set.Read(name, lo, lo+len(w), w); err != nil {
		return err
	}
	if f == nil {
		copy(dst, w)
	} else {
		f.product(a.level, lo, dst)
		for i, v := range dst {
			dst[i] = w[i] + float32(t.scale*v)
		}
	}
	round(a.level, dst, t.model.DType, tmp.half[:len(dst)])
	return nil
}

// loraFactors are U and V of a target.
type loraFactors struct {
	u      []float32 // element (i,r) is at i·ui + r·ur
	ui, ur int
	v      []float32 // [R,J]
	R, J   int
}

// product sets dst to elements lo to lo+len(dst) of U·V.
func (f *loraFactors) product(l kernel.Level, lo int, dst []float32) {
	clear(dst)
	for len(dst) > 0 {
		i, j := lo/f.J, lo%f.J
		n := min(f.J-j, len(dst))
		for r := range f.R {
			l.AddScaled(dst[:n], f.v[r*f.J+j:][:n], f.u[i*f.ui+r*f.ur])
		}
		lo, dst = lo+n, dst[n:]
	}
}

// factors gives those of a target, which are read once while they are in use.
func (a *Adapter) factors(t *loraTarget) (*loraFactors, error) {
	a.mu.Lock()
	if i := slices.Index(a.recent, t); i >= 0 {
		a.recent = slices.Delete(a.recent, i, i+1)
	} else {
		t.load = sync.OnceValues(func() (*loraFactors, error) { return a.loadFactors(t) })
	}
	a.recent = append(a.recent, t)
	if len(a.recent) > heldFactors {
		a.recent[0].load = nil
		a.recent = slices.Delete(a.recent, 0, 1)
	}
	load := t.load
	a.mu.Unlock()
	return load()
}

func (a *Adapter) loadFactors(t *loraTarget) (*loraFactors, error) {
	A, err := readFinite(a.own, t.a)
	if err != nil {
		return nil, err
	}
	B, err := readFinite(a.own, t.b)
	if err != nil {
		return nil, err
	}
	f := &loraFactors{R: t.rank, J: t.model.Shape[1], u: B, ui: t.rank, ur: 1, v: A}
	if t.layout != loraLinear {
		f.u, f.ui, f.ur = A, 1, t.model.Shape[0]
		f.v = transposed(B, f.J, f.R)
	}
	return f, nil
}

func readFinite(s *weights.Set, name string) ([]float32, error) {
	t, _ := s.Lookup(name)
	x := make([]float32, t.Len())
	return x, s.ReadFinite(name, 0, len(x), x)
}

// transposed is the transpose of x, which is [rows,cols].
func transposed(x []float32, rows, cols int) []float32 {
	y := make([]float32, len(x))
	for i := range rows {
		for j := range cols {
			y[j*rows+i] = x[i*cols+j]
		}
	}
	return y
}
