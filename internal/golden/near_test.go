// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package golden_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"pleach/internal/golden"
)

func ExampleNearAll() {
	losses := []float64{4.90215, 4.7213}
	want := []float64{4.9021492, 4.72085}
	fmt.Println(golden.NearAll(losses, want, golden.Tol{Rel: 1e-5}))
	// Output:
	// 1 of 2 values, worst at index 1: got 4.7213, want 4.72085: off by 0.00045 (relative 9.53e-05), allowed 4.72e-05
}

func TestNear(t *testing.T) {
	inf, nan := math.Inf(1), math.NaN()
	for _, c := range []struct {
		got, want float64
		tol       golden.Tol
		near      bool
	}{
		{1, 1, golden.Tol{}, true},
		{1, 1 + 1e-15, golden.Tol{}, false},
		{1, 1.5, golden.Tol{Abs: 0.5}, true},
		{2, 4, golden.Tol{Rel: 0.5}, true},
		{4, 2, golden.Tol{Rel: 0.5}, false}, // relative to want
		{-3, 3, golden.Tol{Abs: 3, Rel: 1}, true},
		{0, 0, golden.Tol{}, true},
		{1e-9, 0, golden.Tol{Rel: 1}, false},
		{nan, 1, golden.Tol{Abs: inf}, false},
		{1, nan, golden.Tol{Abs: 1, Rel: 1}, false},
		{nan, nan, golden.Tol{}, false},
		{inf, inf, golden.Tol{}, true},
		{1, inf, golden.Tol{Rel: 1}, false},
		{inf, 1, golden.Tol{Rel: 1}, false},
		{-inf, inf, golden.Tol{Rel: 1}, false},
	} {
		if err := golden.Near(c.got, c.want, c.tol); (err == nil) != c.near {
			t.Errorf("Near(%v, %v, %+v): got %v, want near %v", c.got, c.want, c.tol, err, c.near)
		}
	}
}

func TestNearAll(t *testing.T) {
	tol := golden.Tol{Abs: 1}
	for _, c := range []struct {
		got, want []float64
		err       string
	}{
		{nil, nil, ""},
		{[]float64{1, 2}, []float64{2, 1}, ""},
		{[]float64{1}, nil, "got 1 values, want 0"},
		{[]float64{0, 9, 5}, []float64{0, 0, 0}, "2 of 3 values, worst at index 1"},
		{[]float64{9, math.NaN()}, []float64{0, 0}, "2 of 2 values, worst at index 1"},
	} {
		err := golden.NearAll(c.got, c.want, tol)
		if (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("NearAll(%v, %v): got %v, want %q", c.got, c.want, err, c.err)
		}
	}
}
