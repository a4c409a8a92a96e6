// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package method

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// plainSCE is sce on whole tensors in float64, but for the variances it compares.
func plainSCE(d [][]float32, base []float32, topk float64) []float64 {
	n, count := len(base), float64(len(d))
	v := make([]float32, n)
	order := make([]int, n)
	z := 0
	for i := range v {
		order[i] = i
		var mean, sum float64
		for _, x := range d {
			mean += float64(x[i]) / count
		}
		for _, x := range d {
			sum += (float64(x[i]) - mean) * (float64(x[i]) - mean)
		}
		if v[i] = float32(sum / count); v[i] != 0 {
			z++
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(v[b], v[a]) })
	selected := make([]bool, n)
	for rank, i := range order {
		selected[i] = topk >= 1 || rank < int(float64(z)*topk)
	}
	q := make([]float64, len(d))
	total := 0.0
	for m, x := range d {
		for i, y := range x {
			if selected[i] {
				q[m] += float64(y) * float64(y) / float64(n)
			}
		}
		total += q[m]
	}
	for m := range q {
		q[m] /= total
		if total < 1e-6 {
			q[m] = 1 / count
		}
	}
	out := make([]float64, n)
	for i := range out {
		out[i] = float64(base[i])
		if !selected[i] {
			continue
		}
		var sign, sum, weight float64
		for _, x := range d {
			sign += float64(x[i])
		}
		for m, x := range d {
			if x[i] != 0 && x[i] > 0 == (sign >= 0) {
				sum += q[m] * float64(x[i])
				weight += q[m]
			}
		}
		out[i] += sum / max(weight, 1e-6)
	}
	return out
}

// TestSCE: the result is what the definition says.
func TestSCE(t *testing.T) {
	r := rand.New(rand.NewPCG(19, 20))
	for _, shape := range append(shapesOfTests, []int{150_000}) {
		for _, topk := range []float64{1, 0.9, 0.5, 0.1} {
			models := make([]Values, 1+r.IntN(4))
			p := changed(shape, Values{"select_topk": topk}, models...)
			n := p.Len()
			scale := []float32{1, 1e-5}[r.IntN(2)]
			d := make([][]float32, len(models))
			in := make([][]float32, len(models)+1)
			in[len(models)] = make([]float32, n) // so that the differences are exact
			for k := range d {
				d[k] = fill(n, func(i int) float32 { return scale * float32(r.IntN(4)/2) * float32(r.NormFloat64()) })
				in[k] = d[k]
			}
			got := solved(t, jobOf(t, "sce", p), n, 1, in...)
			if err := nearPlain(got, plainSCE(d, in[len(models)], topk)); err != nil {
				t.Errorf("%v, %d models, select_topk %v: %v", shape, len(models), topk, err)
			}
			if again := solved(t, jobOf(t, "sce", p), n, 8, in...); !slices.Equal(got, again) {
				t.Errorf("%v: 8 workers got other bits than 1", shape)
			}
		}
	}
}

// TestFusion: the result is what the definition says, but where a score is within
// rounding of the threshold.
func TestFusion(t *testing.T) {
	r := rand.New(rand.NewPCG(21, 22))
	for _, shape := range append(shapesOfTests, []int{1500, 100}) {
		p := changed(shape, nil, Values{})
		n := p.Len()
		in := tensorsOf(r, 1, n)
		row := 1
		if len(shape) > 0 {
			row = shape[len(shape)-1]
		}
		scores := plainScores(in[0], in[1], row)
		sorted := slices.Sorted(slices.Values(scores))
		at := func(a float64) float64 { return sorted[int(a*float64(n-1))] }
		least := at(.5) + 1.5*(at(.75)-at(.25))
		got := solved(t, jobOf(t, "arcee_fusion", p), n, 1, in...)
		fused := 0
		for i, x := range got {
			b := in[1][i]
			want := b
			if scores[i] >= least || row == 1 {
				want = b + (in[0][i] - b)
			}
			if x != b {
				fused++
			}
			if x != want && math.Abs(scores[i]-least) > 1e-6*least {
				t.Errorf("%v: element %d: got %v, want %v", shape, i, x, want)
			}
		}
		if n > 1000 && row > 1 && (fused == 0 || fused > n/2) {
			t.Errorf("%v: %d of %d elements are fused", shape, fused, n)
		}
		if again := solved(t, jobOf(t, "arcee_fusion", p), n, 8, in...); !slices.Equal(got, again) {
			t.Errorf("%v: 8 workers got other bits than 1", shape)
		}
	}
}

func plainScores(x, b []float32, row int) []float64 {
	scores := make([]float64, len(x))
	for lo := 0; lo < len(x); lo += row {
		var p, q, apart float64
		for i := lo; i < lo+row; i++ {
			p += math.Exp(float64(x[i]))
			q += math.Exp(float64(b[i]))
		}
		for i := lo; i < lo+row; i++ {
			u, v := math.Exp(float64(x[i]))/p+1e-8, math.Exp(float64(b[i]))/q+1e-8
			apart += u * math.Log(u/v)
		}
		for i := lo; i < lo+row; i++ {
			scores[i] = math.Abs(float64(x[i])-float64(b[i])) * apart
		}
	}
	return scores
}
