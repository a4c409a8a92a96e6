// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"fmt"
	"slices"

	"pleach/half"
	"pleach/internal/fault"
	"pleach/merge/method"
	"pleach/merge/vocab"
)

// view is an input as its method sees it: of the shape of the output. It is held as
// it is stored, if its elements are a range of a file, and as float32 otherwise.
type view struct {
	model string // for messages
	input Input
	held  half.DType
	raw   func(lo, hi int, dst []byte) error    // one of the two
	read  func(lo, hi int, dst []float32) error // is there
}

// views opens the inputs of a tensor.
func (p *Plan) views(t *Tensor) ([]view, error) {
	list := make([]view, len(t.Inputs))
	for i, in := range t.Inputs {
		v, err := p.view(t, in)
		if err != nil {
			return nil, fmt.Errorf("merge: tensor %s: model %s: %w", t.Name, p.Models[in.Model].Name, err)
		}
		list[i] = v
	}
	return list, nil
}

func (p *Plan) view(t *Tensor, in Input) (view, error) {
	m := p.Models[in.Model]
	v := view{model: m.Name, input: in, held: in.DType}
	switch {
	case p.Vocabulary != nil && t.Embed:
		x, err := p.matrix(t, in)
		if err != nil {
			return v, err
		}
		v.held, v.read = half.F32, x.Read
	case p.lacksRows(t, in):
		base := t.Inputs[t.Base]
		v.held = half.F32
		v.read = extended(in.Shape[0]*t.Shape[1], cropped(m, in, t.Shape[1]),
			cropped(p.Models[base.Model], base, t.Shape[1]))
	case !slices.Equal(in.Shape, t.Shape) && !prefix(t.Shape, in.Shape):
		if len(in.Shape) != 2 || len(t.Shape) != 2 || in.Shape[0] < t.Shape[0] || in.Shape[1] < t.Shape[1] {
			return v, fault.Dataf("got shape %d, want %d", in.Shape, t.Shape)
		}
		v.held, v.read = half.F32, cropped(m, in, t.Shape[1])
	case m.Adapter != nil && m.Adapter.Touches(in.Name):
		v.held = half.F32
		v.read = func(lo, hi int, dst []float32) error { return m.Read(in.Name, lo, hi, dst) }
	default:
		v.raw = func(lo, hi int, dst []byte) error { return m.Weights.Raw(in.Name, lo, hi, dst) }
	}
	return v, nil
}

// prefix says whether a tensor is the first rows of one that is stored.
func prefix(shape, stored []int) bool {
	return len(shape) == 2 && len(stored) == 2 && shape[1] == stored[1] && shape[0] <= stored[0]
}

// lacksRows says that a model has fewer rows of an embedding than the base, whose
// shape the output has.
func (p *Plan) lacksRows(t *Tensor, in Input) bool {
	return t.Embed && t.Base >= 0 && p.Method.Crops == method.CropToBase && len(in.Shape) == 2 &&
		len(t.Shape) == 2 && slices.Equal(t.Shape, t.Inputs[t.Base].Shape) &&
		in.Shape[0] < t.Shape[0] && in.Shape[1] >= t.Shape[1]
}

// extended reads the first n elements from a model and those behind them from the
// base: a model does not differ from the base in rows that it lacks.
func extended(n int, own, base func(lo, hi int, dst []float32) error) func(lo, hi int, dst []float32) error {
	return func(lo, hi int, dst []float32) error {
		mid := min(max(n, lo), hi)
		if err := own(lo, mid, dst[:mid-lo]); err != nil {
			return err
		}
		return base(mid, hi, dst[mid-lo:])
	}
}

// cropped reads the first columns of rows.
func cropped(m *Model, in Input, width int) func(lo, hi int, dst []float32) error {
	return func(lo, hi int, dst []float32) error {
		for at := lo; at < hi; {
			row, col := at/width, at%width
			n := min(width-col, hi-at)
			from := row*in.Shape[1] + col
			if err := m.Read(in.Name, from, from+n, dst[at-lo:][:n]); err != nil {
				return err
			}
			at += n
		}
		return nil
	}
}

// matrix is an embedding over the output's vocabulary. Where a row comes from
// another model, that model's tensor of the same kind is read.
func (p *Plan) matrix(t *Tensor, in Input) (*vocab.Matrix, error) {
	of := make([]*Input, len(p.Models))
	rows := make([]int, len(p.Models))
	for i := range t.Inputs {
		of[t.Inputs[i].Model] = &t.Inputs[i]
		rows[t.Inputs[i].Model] = t.Inputs[i].Shape[0]
	}
	width := t.Shape[1]
	return p.Vocabulary.Matrix(in.Model, width, rows, func(model, lo, hi int, dst []float32) error {
		from := of[model]
		if from == nil {
			return fault.Dataf("model %s has no such tensor", p.Models[model].Name)
		}
		return p.Models[model].Read(from.Name, lo*width, hi*width, dst)
	})
}

// fetch sets dst to elements lo to hi as they are held. tmp holds hi−lo numbers.
func (v *view) fetch(lo, hi int, dst []byte, tmp []float32) error {
	if v.raw != nil {
		return v.raw(lo, hi, dst)
	}
	tmp = tmp[:hi-lo]
	if err := v.read(lo, hi, tmp); err != nil {
		return err
	}
	return half.FromF32(dst, half.F32, tmp)
}
