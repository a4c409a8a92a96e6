// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package kernel

import "math"

// SumSquares is sum + Σ_i weight·g[i]² in float64, a left fold in index order.
// In assembly, it is one of weight·Σ g² over pieces of 32768 elements of g, of
// which each is summed in 16 lanes: how g is cut into calls is then part of the
// result. weight is one over the number of ranks that hold the elements, so that a sum
// over ranks counts each once.
func (l Level) SumSquares(sum float64, g []float32, weight float64) float64 {
	if l != Portable {
		return foldSquares(l, sum, g, weight)
	}
	for _, v := range g {
		sum += float64(weight * float64(float64(v)*float64(v)))
	}
	return sum
}

// AdamWStep is what all elements of one update share. [NewAdamWStep] makes it.
type AdamWStep struct {
	beta1, beta2 float32
	new1, new2   float32 // 1−β1, 1−β2
	bias1, bias2 float32 // 1/(1−β1ᵗ), 1/(1−β2ᵗ)
	eps          float32
	lr, decay    float32
}

// NewAdamWStep is the update number t ≥ 1 with the learning rate lr. The
// constants are computed in float64 and rounded to float32 once.
func NewAdamWStep(beta1, beta2, eps, decay, lr float64, t int64) AdamWStep {
	return AdamWStep{
		beta1: float32(beta1), beta2: float32(beta2),
		new1: float32(1 - beta1), new2: float32(1 - beta2),
		bias1: float32(1 / (1 - math.Pow(beta1, float64(t)))),
		bias2: float32(1 / (1 - math.Pow(beta2, float64(t)))),
		eps:   float32(eps), lr: float32(lr), decay: float32(decay),
	}
}

// AdamW updates the weights p and the moments m and v by the gradients g.
//
//	ĝ = scale·g;  m = β1·m + (1−β1)·ĝ;  v = β2·v + (1−β2)·ĝ²
//	p = p − lr·( m/(1−β1ᵗ) / (√(v/(1−β2ᵗ)) + eps) + decay·p )
//
// All have the length of p and are float32; no two overlap. An element needs
// only itself. In assembly the sums are fused: m, v, decay·p and lr·(…) are each
// rounded once with what they are added to.
//
// Loshchilov & Hutter, "Decoupled Weight Decay Regularization", 2017,
// arXiv:1711.05101, algorithm 2.
//
// Differs: the paper's schedule multiplier scales decay without lr; as in
// PyTorch, decay is multiplied by lr. PyTorch groups the operations otherwise:
// the weights agree within a few units in the last place of the update.
func (l Level) AdamW(p, m, v, g []float32, scale float32, a AdamWStep) {
	if l != Portable {
		eachAdamw(l, p, m, v, g, scale, &a)
		return
	}
	m, v, g = m[:len(p)], v[:len(p)], g[:len(p)]
	for i, x := range p {
		h := scale * g[i]
		mi := float32(a.beta1*m[i]) + float32(a.new1*h)
		vi := float32(a.beta2*v[i]) + float32(a.new2*float32(h*h))
		m[i], v[i] = mi, vi
		u := float32(mi*a.bias1) / (float32(math.Sqrt(float64(vi*a.bias2))) + a.eps)
		p[i] = x - float32(a.lr*(u+float32(a.decay*x)))
	}
}
