// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package method

import (
	"fmt"
	"math"
	"sync"
)

// stockMethod goes from a base towards the mean of N ≥ 2 models, the farther the more
// their differences from the base agree.
//
//	d_i = x_i − base;  c = mean over pairs of clamp(d_i·d_j / max(‖d_i‖·‖d_j‖, 1e-6), −1, 1)
//	τ = N·c/(1 + (N−1)·c), 0 if |1 + (N−1)·c| < 1e-6;  y = base + τ · Σ d_i/N
//
// Vectors are whole tensors, or with filter_wise along the last dimension. τ is not
// clamped: models that point away from each other make it negative, or above 1, which
// is worth a warning. A tensor that only the base has is that of the base.
//
// Jang, Yun & Han, "Model Stock", 2024, arXiv:2403.19522, eq. 5.
func stockMethod() *Method {
	return &Method{
		Name:      "model_stock",
		Reference: "arXiv:2403.19522",
		Global:    []Parameter{{Name: "filter_wise", Default: 0}},
		Base:      BaseRequired,
		Crops:     CropCommon,
		New:       newStock,
	}
}

func newStock(p Problem) (Job, error) {
	others := p.Others()
	switch {
	case p.Base >= 0 && len(others) == 0:
		return copyOf(p, p.Base), nil
	case p.Base >= 0 && len(others) >= 2:
	case p.Optional:
		return nil, Dropped
	default:
		return nil, p.complain("model_stock", "inputs: got %s, want the base and at least two other models",
			p.inventory())
	}
	ratios := &ratios{name: p.Name}
	stock := combination{p: p, inputs: others, base: p.Base, warn: ratios.warnings}
	stock.solve = func(coef []float64, g gram) error {
		ratio := stockRatio(g, len(coef))
		ratios.add(ratio)
		for i := range coef {
			coef[i] = ratio / float64(len(coef))
		}
		return nil
	}
	if p.Global.orElse("filter_wise", 0) != 0 {
		return stock.overRows(), nil
	}
	return stock.overTensor(), nil
}

// stockRatio is τ of [stockMethod] for n differences.
func stockRatio(g gram, n int) float64 {
	const least, singular = 1e-6, 1e-6
	var sum float64
	for i := range n {
		for j := range i {
			size := max(math.Sqrt(float64(g.at(i, i)*g.at(j, j))), least)
			sum += min(max(g.at(i, j)/size, -1), 1)
		}
	}
	c := sum / float64(n*(n-1)/2)
	below := 1 + float64(float64(n-1)*c)
	if math.Abs(below) < singular {
		return 0
	}
	return float64(n) * c / below
}

// ratios are the τ of a tensor's vectors, of which some may lie outside [0, 1].
type ratios struct {
	name string

	mutex             sync.Mutex
	count, outside    int
	smallest, largest float64 // of those outside
}

func (r *ratios) add(x float64) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.count++
	if x >= 0 && x <= 1 || x != x {
		return
	}
	if r.outside == 0 {
		r.smallest, r.largest = x, x
	}
	r.outside++
	r.smallest, r.largest = min(r.smallest, x), max(r.largest, x)
}

func (r *ratios) warnings() []string {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	const advice = "the models point away from each other, and the output lies outside of what they and " +
		"the base span"
	switch {
	case r.outside == 0:
		return nil
	case r.count == 1:
		return []string{fmt.Sprintf("merge: model_stock of %q: ratio of interpolation: got %.4g, want 0 to 1: %s",
			r.name, r.smallest, advice)}
	}
	return []string{fmt.Sprintf("merge: model_stock of %q: ratio of interpolation: got %.4g to %.4g in %d of %d "+
		"rows, want 0 to 1: %s", r.name, r.smallest, r.largest, r.outside, r.count, advice)}
}
