// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package half

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestToI8(t *testing.T) {
	for _, c := range []struct {
		name  string
		src   []float32
		want  []int8
		scale float32
	}{
		{"nothing", nil, nil, 0},
		{"zeros", []float32{0, float32(math.Copysign(0, -1))}, []int8{0, 0}, 0},
		{"ends", []float32{-127, 127, 1, -1}, []int8{-127, 127, 1, -1}, 1},
		{"ties to even", []float32{254, 1, 3, 5, -1, -3}, []int8{127, 0, 2, 2, 0, -2}, 2},
		{"one", []float32{-0.25}, []int8{-127}, 0.25 / 127},
		{"too small for a scale", []float32{0x1p-149, -0x1p-149}, []int8{0, 0}, 0},
		{"a denormal scale", []float32{160 * 0x1p-149, -160 * 0x1p-149, 0x1p-149}, []int8{127, -127, 1}, 0x1p-149},
		{"large", []float32{math.MaxFloat32, -math.MaxFloat32 / 4}, []int8{127, -32}, math.MaxFloat32 / 127},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := make([]int8, len(c.src))
			if s := ToI8(got, c.src); s != c.scale || !slices.Equal(got, c.want) {
				t.Errorf("got %v, %v, want %v, %v", got, s, c.want, c.scale)
			}
		})
	}
}

// TestToI8Error: no number is off by more than half of what one is worth.
func TestToI8Error(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		src := rapid.SliceOf(rapid.Float32Range(-1e6, 1e6)).Draw(t, "row")
		q := make([]int8, len(src))
		s := ToI8(q, src)
		for i, f := range src {
			off := math.Abs(float64(q[i])*float64(s) - float64(f))
			if off > float64(s)/2*(1+1e-4) && s > 0x1p-120 {
				t.Errorf("%v with a scale of %v became %d", f, s, q[i])
			}
		}
	})
}

func BenchmarkToI8(b *testing.B) {
	x, q := make([]float32, 4096), make([]int8, 4096)
	for i := range x {
		x[i] = float32(i%97) * 1.25e-3
	}
	b.SetBytes(4096)
	for b.Loop() {
		ToI8(q, x)
	}
}
