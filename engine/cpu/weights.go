// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package cpu

import (
	"pleach/half"
	"pleach/kernel"
	"pleach/program"
)

// weights is the right operand of a product x·wᵀ: numbers of the type of x, or of int8
// with a scale for each row, which a product is multiplied by while it is in a cache.
type weights struct {
	num   kernel.Numbers
	int8  kernel.Int8
	scale []float32 // nil if there is none
	k     int
}

// weights is operand 1 of the op.
func (l *lowering) weights() weights {
	v := l.op.In[1]
	if v.Type != half.I8 {
		return weights{num: l.numbers(v), k: v.Dim(1)}
	}
	q := kernel.Int8{Q: view[int8](l.x.bytes(v, l.slot)), O: v.Dim(0), I: v.Dim(1)}
	return weights{int8: q, scale: l.in(len(l.op.In) - 1), k: v.Dim(1)}
}

// packNT packs rows j … j+n−1.
func (w weights) packNT(l kernel.Level, panels []float32, j, n int) {
	if w.scale != nil {
		l.PackNT8(panels, w.int8, j, n)
	} else {
		w.num.From(j*w.k).PackNT(l, panels, n, w.k, w.k)
	}
}

// finish is what follows a product of m rows with packed rows j … j+n−1.
func (w weights) finish(l kernel.Level, z []float32, m, j, n, ld int) {
	if w.scale != nil {
		l.ScaleColumns(z, w.scale[j:], m, n, ld)
	}
}

// gemmNT is the product of m rows of x with rows j … j+n−1; those from next on will
// likely be the worker's next ones.
func (w weights) gemmNT(l kernel.Level, z []float32, x kernel.Numbers, m, j, n, next, ld int, scratch []float32) {
	if w.scale == nil {
		x.GemmNT(l, z, w.num.From(j*w.k), m, n, w.k, ld, w.k, w.k, false, scratch)
		return
	}
	l.GemmNT8(z, x.BF16, w.int8, m, j, n, next, ld, w.k, scratch)
	w.finish(l, z, m, j, n, ld)
}

// int8Of is a buffer as weights of int8, which do not lie row by row.
func (b *buffer) int8Of() (q kernel.Int8, ok bool) {
	if b.kind != half.I8 || len(b.shape) != 2 {
		return q, false
	}
	return kernel.Int8{Q: view[int8](b.data), O: b.shape[0], I: b.shape[1]}, true
}

// copyInt8 reads or writes weights of int8 from element lo on, and reports whether that
// is what the buffer of a name has.
func (e *Engine) copyInt8(name string, lo int, a program.Array, write bool) bool {
	q, ok := e.states[name].int8Of()
	if ok && write {
		q.Set(lo, program.View[int8](a))
	} else if ok {
		q.Get(program.View[int8](a), lo)
	}
	return ok
}
