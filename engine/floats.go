// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"fmt"
	"math"

	"pleach/half"
	"pleach/internal/fault"
	"pleach/program"
)

// Floats moves float32 numbers into and out of weights and states of an engine,
// each of which may be f32 or bf16, and into weights of int8: who loads a model or saves one need not know
// in which types it is computed with. One rank; one goroutine at a time.
type Floats struct {
	e      Engine
	types  map[string]half.DType
	rows   map[string]int // elements of a row of weights of int8
	beyond int            // finite numbers that have become infinite
	first  string         // where the first of them was
}

// NewFloats knows the weights and states of programs that e has compiled.
func NewFloats(e Engine, programs ...*program.Program) *Floats {
	f := &Floats{e: e, types: map[string]half.DType{}, rows: map[string]int{}}
	for _, p := range programs {
		for _, v := range append(p.Held(program.Weight), p.Held(program.State)...) {
			if f.Declare(v.Name, v.Type); v.Type == half.I8 {
				f.DeclareInt8(v.Name, v.Dim(1))
			}
		}
	}
	return f
}

// Declare makes a weight or state known by its type.
func (f *Floats) Declare(name string, t half.DType) { f.types[name] = t }

// DeclareInt8 makes weights of int8 with rows of n elements known, and their scales.
func (f *Floats) DeclareInt8(name string, n int) {
	f.Declare(name, half.I8)
	f.rows[name] = n
}

// Type is the type of a weight or state; ok is false if nobody has said it.
func (f *Floats) Type(name string) (t half.DType, ok bool) {
	t, ok = f.types[name]
	return t, ok
}

// converted is the number of elements that are converted at a time.
const converted = 1 << 16

// Read copies elements [lo, lo+len(dst)) of a weight or state, which float32
// holds exactly.
func (f *Floats) Read(name string, lo int, dst []float32) error {
	if f.types[name] != half.BF16 {
		return f.e.Read(program.Place{}, name, lo, program.ArrayOf(dst))
	}
	buf := make([]uint16, min(len(dst), converted))
	for len(dst) > 0 {
		part := buf[:min(len(dst), converted)]
		if err := f.e.Read(program.Place{}, name, lo, program.ArrayOf(part)); err != nil {
			return err
		}
		half.BF16ToF32(dst, part)
		dst, lo = dst[len(part):], lo+len(part)
	}
	return nil
}

// Write is the inverse of Read. Where the type is bf16, numbers are rounded to
// nearest even; see [Floats.Lost] for those that it has no room for. What goes into
// weights of int8 are whole rows, from which half.ToI8 makes numbers and a scale.
func (f *Floats) Write(name string, lo int, src []float32) error {
	if n := f.rows[name]; n > 0 {
		return f.writeInt8(name, lo, n, src)
	}
	if f.types[name] != half.BF16 {
		return f.e.Write(program.Place{}, name, lo, program.ArrayOf(src))
	}
	buf := make([]uint16, min(len(src), converted))
	for len(src) > 0 {
		part := buf[:min(len(src), converted)]
		half.F32ToBF16(part, src[:len(part)])
		f.count(name, lo, part, src)
		if err := f.e.Write(program.Place{}, name, lo, program.ArrayOf(part)); err != nil {
			return err
		}
		src, lo = src[len(part):], lo+len(part)
	}
	return nil
}

// writeInt8 writes rows of n elements.
func (f *Floats) writeInt8(name string, lo, n int, src []float32) error {
	if lo%n != 0 || len(src)%n != 0 {
		return fmt.Errorf("engine: writing %s: got elements %d to %d, want whole rows of %d", name, lo, lo+len(src), n)
	}
	q, scales := make([]int8, len(src)), make([]float32, len(src)/n)
	for i := range scales {
		scales[i] = half.ToI8(q[i*n:], src[i*n:][:n])
	}
	if err := f.e.Write(program.Place{}, name, lo, program.ArrayOf(q)); err != nil {
		return err
	}
	return f.e.Write(program.Place{}, name+program.Scale, lo/n, program.ArrayOf(scales))
}

// count looks for infinities that were none before.
func (f *Floats) count(name string, lo int, part []uint16, src []float32) {
	for i, b := range part {
		if b&0x7fff != 0x7f80 || math.IsInf(float64(src[i]), 0) {
			continue
		}
		if f.beyond == 0 {
			f.first = fmt.Sprintf("%v at %d of %s", src[i], lo+i, name)
		}
		f.beyond++
	}
}

// Lost is an error if any number that was written is too large for bf16.
func (f *Floats) Lost() error {
	if f.beyond == 0 {
		return nil
	}
	return fault.Dataf("engine: %d numbers are beyond the range of bf16, the first is %s: want a precision of f32",
		f.beyond, f.first)
}
