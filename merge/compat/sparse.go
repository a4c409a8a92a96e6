// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package compat

import (
	"cmp"
	"slices"

	"pleach/half"
)

// magnitude keeps the ⌊density·n⌋ largest elements, at least one.
func (j *job) magnitude(delta []float32, input int) ([]float32, error) {
	density, n := j.param(input, "density"), len(delta)
	if density >= 1 {
		return delta, nil
	}
	mask := make([]float32, n)
	if density <= 0 {
		return mask, nil
	}
	for _, e := range descending(delta)[:min(n, max(1, int(density*float64(n))))] {
		mask[e] = 1
	}
	return j.masked(delta, mask, j.t), nil
}

// outliers keeps ⌊density·n⌋ elements below the ⌊gamma·n⌋ largest ones, or as many of
// the smallest.
func (j *job) outliers(delta []float32, input int) ([]float32, error) {
	density, gamma, n := j.param(input, "density"), j.param(input, "gamma"), len(delta)
	if density >= 1 {
		return delta, nil
	}
	if density < 0 {
		return nil, j.errorf("got density %v of %s, want 0 or more", density, j.Inputs[input].Model)
	}
	keep := int(density * float64(n))
	low := clampInt(n-keep-int(gamma*float64(n)), 0, n)
	mask := make([]float32, n)
	for _, e := range ascending(delta)[low:min(n, low+keep)] {
		mask[e] = 1
	}
	return j.masked(delta, mask, j.t), nil
}

// clampInt is x in [lo, hi].
func clampInt(x, lo, hi int) int { return min(max(x, lo), hi) }

// random keeps each element with probability density.
func (j *job) random(delta []float32, input int) ([]float32, error) {
	density := j.param(input, "density")
	if density >= 1 {
		return delta, nil
	}
	if density < 0 {
		return nil, j.errorf("got density %v of %s, want 0 or more", density, j.Inputs[input].Model)
	}
	if j.gen == nil {
		return nil, j.errorf("got no generator of random numbers, want one")
	}
	t := maskType(j.t)
	p := round(float32(density), t)
	mask := make([]float32, len(delta))
	for e := range mask {
		mask[e] = p
	}
	j.draw(mask)
	return j.rounded(j.masked(delta, mask, t)), nil
}

// maskType is the type in which random masks are made and applied.
func maskType(t half.DType) half.DType {
	if t == half.F16 {
		return half.F32
	}
	return t
}

// draw makes a mask of probabilities, in place.
func (j *job) draw(p []float32) {
	for e, x := range p {
		p[e] = 0
		if j.gen.Float32() < x {
			p[e] = 1
		}
	}
}

// della keeps elements with probabilities that grow with their ranks along the second
// dimension, from density−epsilon to density+epsilon.
func (j *job) della(delta []float32, input int) ([]float32, error) {
	density, epsilon := j.param(input, "density"), j.param(input, "epsilon")
	if density >= 1 {
		return delta, nil
	}
	if density <= 0 {
		return make([]float32, len(delta)), nil
	}
	if density+epsilon >= 1 || density-epsilon <= 0 {
		return nil, j.errorf("got density %v and epsilon %v of %s, want density−epsilon above 0 "+
			"and density+epsilon below 1", density, epsilon, j.Inputs[input].Model)
	}
	if j.gen == nil {
		return nil, j.errorf("got no generator of random numbers, want one")
	}
	t := maskType(j.t)
	mask := make([]float32, len(delta))
	v := secondDimension(j.Shape, len(delta))
	p := ranked(v.n, density, epsilon, t)
	row := make([]float32, v.n)
	for block := 0; block < len(delta); block += v.n * v.stride {
		for k := range v.stride {
			for i := range row {
				row[i] = delta[block+k+i*v.stride]
			}
			for rank, i := range ascending(row) {
				mask[block+k+i*v.stride] = p[rank]
			}
		}
	}
	j.draw(mask)
	return j.rounded(j.masked(delta, mask, t)), nil
}

// secondDimension are the vectors along it; a tensor of one dimension is one.
func secondDimension(shape []int, size int) vectors {
	if len(shape) < 2 {
		return vectors{n: size, stride: 1}
	}
	stride := 1
	for _, d := range shape[2:] {
		stride *= d
	}
	return vectors{n: shape[1], stride: stride}
}

// ranked are the probabilities of ranks 1 to m, computed in type t. That of a single
// element, which has none in mergekit, is density.
func ranked(m int, density, epsilon float64, t half.DType) []float32 {
	r := func(x float32) float32 { return round(x, t) }
	rank := func(i int) float32 { return r(r(float32(i)) + 1) }
	p := make([]float32, m)
	low, span := rank(0), r(rank(m-1)-rank(0))
	for i := range p {
		if span == 0 {
			p[i] = r(float32(density))
			continue
		}
		part := clamp(r(r(rank(i)-low)/span), 0, 1)
		part = r(r(part*2) * float32(epsilon))
		p[i] = r(part + r(float32(density-epsilon)))
	}
	return p
}

// masked is delta times the mask, and with rescale times what makes its sum of
// magnitudes that of delta, in type t. It overwrites the mask.
func (j *job) masked(delta, mask []float32, t half.DType) []float32 {
	sizes := make([]float32, len(delta))
	for e, x := range delta {
		sizes[e] = abs(x)
		mask[e] *= x
	}
	if !j.on("rescale") {
		return mask
	}
	before := round(sum(sizes, t, j.buffer()), t)
	for e, x := range mask {
		sizes[e] = abs(x)
	}
	after, least := round(sum(sizes, t, j.buffer()), t), round(1e-7, t)
	if before < least || after < least {
		return mask
	}
	scale := round(before/after, t)
	for e, x := range mask {
		mask[e] = round(x*scale, t)
	}
	return mask
}

// ascending are the indices of x by magnitude, the smallest first; of equal ones by
// index.
func ascending(x []float32) []int {
	list := indices(len(x))
	slices.SortStableFunc(list, func(a, b int) int { return cmp.Compare(abs(x[a]), abs(x[b])) })
	return list
}

// descending are the indices of x by magnitude, the largest first; of equal ones by
// index.
func descending(x []float32) []int {
	list := indices(len(x))
	slices.SortStableFunc(list, func(a, b int) int { return cmp.Compare(abs(x[b]), abs(x[a])) })
	return list
}

// indices are 0 to n−1.
func indices(n int) []int {
	list := make([]int, n)
	for i := range list {
		list[i] = i
	}
	return list
}
