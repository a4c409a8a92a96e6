// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package cpu

import (
	"fmt"
	"runtime"
	"slices"
	"unsafe"

	"pleach/engine"
	"pleach/half"
	"pleach/kernel"
	"pleach/program"
)

// Options choose how an engine runs.
type Options struct {
	Level   kernel.Level // the set of kernels; 0 is the best of this processor
	Threads int          // 0 is the number of processors this process may use
}

// chosen has no zeros.
func (o Options) chosen() Options {
	if o.Threads <= 0 {
		o.Threads = runtime.GOMAXPROCS(0)
	}
	if o.Level == 0 {
		o.Level = kernel.Best()
	}
	return o
}

// Engine is the CPU engine: one rank, float32.
type Engine struct {
	pool    *pool
	threads int
	level   kernel.Level
	states  map[string]*buffer
	memory  engine.Memory
	scratch [][]float32 // one for each worker, as large as the neediest op wants
	tables  map[rotation]*[2][]float32
	pages   []pages // what buffers lie in
	rooms   []pages // what each worker's scratch lies in
	touch   toucher
	limits  limits
	plain   bool // no step is fused
	closed  bool
}

// buffer is a weight or a state.
type buffer struct {
	kind  half.DType
	shape []int
	data  []byte
}

var _ engine.Engine = (*Engine)(nil)

// New starts an engine and its workers.
func New(o Options) *Engine {
	o = o.chosen()
	return &Engine{
		pool: newPool(o.Threads), threads: o.Threads, level: o.Level, states: map[string]*buffer{},
		scratch: make([][]float32, o.Threads), rooms: make([]pages, o.Threads), tables: map[rotation]*[2][]float32{},
		limits: usual,
	}
}

// Info says what the engine is.
func (e *Engine) Info() engine.Info {
	return engine.Info{Engine: "cpu", Level: e.level.String(), Threads: e.threads, Device: Processor()}
}

// Memory is what the engine has allocated.
func (e *Engine) Memory() engine.Memory { return e.memory }

// Close stops the workers and lets go of all buffers.
func (e *Engine) Close() error {
	e.closed = true
	e.pool.close()
	e.release()
	e.states, e.scratch, e.tables, e.memory = nil, nil, nil, engine.Memory{}
	return nil
}

// declare makes the weights and states of p that are new, if all of them fit
// those that are there.
func (e *Engine) declare(p *program.Program) error {
	vs := append(p.Held(program.Weight), p.Held(program.State)...)
	for _, v := range vs {
		if b := e.states[v.Name]; b != nil && (b.kind != v.Type || !slices.Equal(b.shape, v.Shape)) {
			return fmt.Errorf("cpu: program %s: %v: another program has it as %v%v", p.Name, v, b.kind, b.shape)
		}
	}
	vs = slices.DeleteFunc(vs, func(v *program.Value) bool { return e.states[v.Name] != nil })
	sizes := make([]int, len(vs))
	for i, v := range vs {
		sizes[i] = v.Bytes()
		e.memory.State += v.Bytes()
	}
	for i, b := range e.allocateAll(sizes) {
		e.states[vs[i].Name] = &buffer{vs[i].Type, slices.Clone(vs[i].Shape), b}
	}
	return nil
}

// Read copies a range of a weight or state.
func (e *Engine) Read(at program.Place, name string, lo int, dst program.Array) error {
	b, err := e.span("reading", at, name, lo, dst)
	if err != nil {
		return err
	}
	if !e.copyInt8(name, lo, dst, false) {
		copy(dst.Bytes, b)
	}
	return nil
}

// Write sets a range of a weight or state.
func (e *Engine) Write(at program.Place, name string, lo int, src program.Array) error {
	b, err := e.span("writing", at, name, lo, src)
	if err != nil {
		return err
	}
	if !e.copyInt8(name, lo, src, true) {
		copy(b, src.Bytes)
	}
	return nil
}

// span is the bytes of a named buffer from element lo on that a has.
func (e *Engine) span(what string, at program.Place, name string, lo int, a program.Array) ([]byte, error) {
	b := e.states[name]
	switch {
	case at != program.Place{}:
		return nil, fmt.Errorf("cpu: %s %s: rank %+v: there is one rank", what, name, at)
	case b == nil:
		return nil, fmt.Errorf("cpu: %s %s: no program has it", what, name)
	case a.Type != b.kind:
		return nil, fmt.Errorf("cpu: %s %s: got %v, want %v", what, name, a.Type, b.kind)
	}
	size := b.kind.Size()
	n, all := len(a.Bytes)/size, len(b.data)/size
	if lo < 0 || n > all || lo > all-n {
		return nil, fmt.Errorf("cpu: %s %s: %d elements from %d on of %d", what, name, n, lo, all)
	}
	return b.data[lo*size : (lo+n)*size], nil
}

// reserve makes every worker's scratch at least n elements long.
func (e *Engine) reserve(n int) {
	for i, s := range e.scratch {
		if len(s) < n {
			e.rooms[i].release()
			e.rooms[i] = newPages(4 * n)
			e.scratch[i] = view[float32](e.rooms[i].data)
			e.memory.Scratch += 4 * (n - len(s))
		}
	}
}

// view is the elements of b.
func view[E program.Number](b []byte) []E {
	if len(b) == 0 {
		return nil
	}
	var e E
	return unsafe.Slice((*E)(unsafe.Pointer(&b[0])), len(b)/int(unsafe.Sizeof(e)))
}

// halves is the memory of x as numbers of bf16, or of as many bits.
func halves(x []float32) []uint16 {
	if len(x) == 0 {
		return nil
	}
	return unsafe.Slice((*uint16)(unsafe.Pointer(&x[0])), 2*len(x))
}

// asInts is the memory of x as integers.
func asInts(x []float32) []int32 {
	if len(x) == 0 {
		return nil
	}
	return unsafe.Slice((*int32)(unsafe.Pointer(&x[0])), len(x))
}
