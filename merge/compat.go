// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"context"

	"pleach/half"
	"pleach/internal/fault"
	"pleach/internal/unit"
	"pleach/kernel"
	"pleach/merge/compat"
)

// runCompat makes the tensors in mergekit's order, one after the other and whole: its
// random numbers are one stream for the whole merge.
func (p *Plan) runCompat(ctx context.Context, sink Sink, lim Limits, progress Progress) error {
	if err := p.compatFits(lim); err != nil {
		return err
	}
	gen := compat.NewTwister(uint32(p.Options.Seed))
	var done int64
	for i := range p.Tensors {
		if err := ctx.Err(); err != nil {
			return err
		}
		t := &p.Tensors[i]
		b, err := p.compatTensor(t, gen, lim.Level)
		if err != nil {
			return t.fail(err)
		}
		if sink.Has(i) {
			continue // it was computed for the numbers that it draws
		}
		if err := sink.WriteAt(i, b, 0); err != nil {
			return err
		}
		if err := sink.Done(i); err != nil {
			return err
		}
		if done += int64(len(b)); progress != nil {
			progress(done)
		}
	}
	return nil
}

// compatFits refuses tensors that are too large to be merged whole.
func (p *Plan) compatFits(lim Limits) error {
	for i := range p.Tensors {
		t := &p.Tensors[i]
		need := Base + p.reading(1) + compat.Bytes(p.Method, t.Len(), len(t.Inputs)) + int64(t.Len()*(4*len(t.Inputs)+4+t.DType.Size()))
		if !t.Copy && need > lim.Memory {
			return fault.Configf("merge: memory: tensor %s: rounding as mergekit does needs the tensor whole: got %v, want %v",
				t.Name, unit.Bytes(lim.Memory).Rounded(), unit.Bytes(need).Rounded())
		}
	}
	return nil
}

// compatTensor is the bytes of a tensor of the output.
func (p *Plan) compatTensor(t *Tensor, gen *compat.Twister, l kernel.Level) ([]byte, error) {
	views, err := p.views(t)
	if err != nil {
		return nil, err
	}
	n := t.Len()
	if t.Copy {
		b := make([]byte, n*t.DType.Size())
		return b, views[0].raw(0, n, b)
	}
	q := p.problem(t, l)
	in := make([][]float32, len(views))
	types := make([]half.DType, len(views))
	for i, v := range views {
		in[i] = make([]float32, n)
		types[i] = t.Inputs[i].DType
		if v.raw == nil {
			err = v.read(0, n, in[i])
		} else {
			err = p.Models[t.Inputs[i].Model].Read(t.Inputs[i].Name, 0, n, in[i])
		}
		if err != nil {
			return nil, err
		}
		if t.HasCast {
			types[i] = t.Cast
		}
		round(l, in[i], types[i], make([]uint16, n))
	}
	out, _, err := compat.Merge(p.Method, q, types, in, gen)
	if err != nil {
		return nil, err
	}
	b := make([]byte, n*t.DType.Size())
	return b, narrow(l, b, t.DType, out)
}
