// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"fmt"
	"math"
	"strings"

	"pleach/internal/rng"
	"pleach/program"
)

// Residual says how the matrices that write to the residual stream start.
type Residual string

// The two ways.
const (
	DepthScaled Residual = "depth" // std / √(2L)
	Unscaled    Residual = "none"
)

// Init is how a model from scratch starts: matrices and embeddings normal with
// standard deviation Std, o_proj and down_proj divided by √(2L) if depth-scaled,
// norms one, biases zero.
//
// Fan et al., "HLAT: High-quality Large Language Model Pre-trained on AWS
// Trainium", 2024, arXiv:2404.10630, §4.
//
// Differs: the paper's text scales by the layer's index; its code, and this, by
// the number of layers.
type Init struct {
	Std      float64
	Residual Residual
}

// Fill writes elements [lo,lo+len(dst)) of a tensor. A value is a function of
// the seed, the tensor's name and the index alone, so every rank makes its own
// shard.
func (in Init) Fill(dst []float32, s Spec, t Tensor, seed uint64, lo int) {
	switch t.Class {
	case program.Norm:
		for i := range dst {
			dst[i] = 1
		}
		return
	case program.Bias:
		clear(dst)
		return
	}
	std, stream := in.std(s, t.Name), rng.New(seed, "init "+t.Name)
	stream.Normals(dst, uint64(lo), float32(std))
}

func (in Init) std(s Spec, tensor string) float64 {
	residual := strings.HasSuffix(tensor, ".o_proj.weight") || strings.HasSuffix(tensor, ".down_proj.weight")
	if residual && in.Residual == DepthScaled {
		return in.Std / math.Sqrt(float64(2*s.L))
	}
	return in.Std
}

// Check refuses what would not train.
func (in Init) Check() error {
	if !(in.Std > 0 && in.Std < 10) {
		return fmt.Errorf("model: initial standard deviation: got %g, want between 0 and 10", in.Std)
	}
	if in.Residual != DepthScaled && in.Residual != Unscaled {
		return fmt.Errorf("model: initial residual scaling: got %q, want depth or none", in.Residual)
	}
	return nil
}
