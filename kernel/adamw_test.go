// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"encoding/json"
	"math"
	"os"
	"testing"
)

// TestAdamWGolden: ten steps of PyTorch's AdamW in float32. Weights agree within
// two units in the last place of the larger of weight and step, moments within
// the rounding of their terms. testdata/adamw.py wrote the file.
func TestAdamWGolden(t *testing.T) { each(t, testAdamWGolden) }

func testAdamWGolden(t *testing.T, l Level) {
	var file struct {
		Start []float32
		Scale float32
		Steps []struct {
			LR                 float64
			Grad, Weight, M, V []float32
		}
	}
	data, err := os.ReadFile("testdata/adamw.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &file); err != nil {
		t.Fatal(err)
	}
	p := file.Start
	n := len(p)
	m, v, mSize := make([]float32, n), make([]float32, n), make([]float64, n)
	for i, s := range file.Steps {
		l.AdamW(p, m, v, s.Grad, file.Scale, NewAdamWStep(0.9, 0.95, 1e-8, 0.1, s.LR, int64(i+1)))
		for j, g := range s.Grad {
			mSize[j] = 0.9*mSize[j] + 0.1*math.Abs(float64(file.Scale*g))
		}
		near(t, "m", m, wide(s.M), mSize, 8*eps)
		near(t, "v", v, wide(s.V), nil, 8*eps)
		near(t, "weight", p, wide(s.Weight), nil, float64(i+1)*4*eps)
	}
}
