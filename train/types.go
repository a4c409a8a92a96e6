// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package train

import (
	"pleach/half"
	"pleach/optim"
	"pleach/program"
)

// Types are in which types a run is, as its state has them.
type Types struct {
	Precision string `json:"precision"` // one of [optim.Precisions]
	Moments   string `json:"moments"`   // f32 or bf16
}

// TypesOf are the types of a run that is laid out and updated like this.
func TypesOf(l program.Layout, a optim.AdamW) Types {
	t := Types{optim.PrecisionOf(l, a).String(), half.F32.String()}
	if a.HalfMoments {
		t.Moments = half.BF16.String()
	}
	return t
}

// types are those of the job.
func (j *Job) types() Types { return TypesOf(j.Layout, j.AdamW) }

// orF32 is t, or float32 where a state is older than the other types.
func (t Types) orF32() Types {
	if t == (Types{}) {
		return Types{optim.F32.String(), half.F32.String()}
	}
	return t
}

func (t Types) String() string {
	if t.Moments != half.F32.String() {
		return t.Precision + " with moments in " + t.Moments
	}
	return t.Precision
}
