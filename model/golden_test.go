// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package model_test

import (
	"encoding/json"
	"os"
	"testing"

	"pleach/model"
	"pleach/program"
)

// golden is one case of testdata/golden.py.
type golden struct {
	Config struct {
		L, D, H, G, K, F, V int
		Eps, Theta          float64
		Tied                bool
		AttentionBias       bool `json:"attention_bias"`
		MLPBias             bool `json:"mlp_bias"`
		Spare               bool // norms and biases do not decay
		Rope                struct {
			Type                        string
			Factor, Low, High, Original float64
		}
	}
	Loss, Norm []float64
	Grads      map[string][]float64 // sums of the first step
	Weights    map[string][]float64 // after the last
}

func (g golden) spec() model.Spec {
	c := g.Config
	s := model.Spec{
		L: c.L, D: c.D, H: c.H, G: c.G, K: c.K, F: c.F, V: c.V, MaxT: 6, Eps: c.Eps,
		Tied: c.Tied, AttnBias: c.AttentionBias, MLPBias: c.MLPBias,
		Rope: program.Rope{
			Theta: c.Theta, Factor: c.Rope.Factor, LowFreq: c.Rope.Low, HighFreq: c.Rope.High, Original: c.Rope.Original,
		},
	}
	for _, r := range []program.Scaling{program.NoScaling, program.LinearScaling, program.Llama3Scaling} {
		if r.String() == c.Rope.Type {
			s.Rope.Scaling = r
		}
	}
	return s
}

// TestPyTorch compares loss, gradient norm, every gradient and the weights after
// three AdamW steps with PyTorch in float64: plain; tied with biases and llama3
// scaling; multi-head with a head width that is not D/H, linear scaling and
// decay on everything. Each under every recomputation policy, with four rows in
// one micro-batch and in four. Every step sees the same rows.
func TestPyTorch(t *testing.T) {
	var cases []golden
	text, err := os.ReadFile("testdata/golden.json")
	must(t, err)
	must(t, json.Unmarshal(text, &cases))
	for _, g := range cases {
		for _, policy := range []program.Policy{program.KeepAll, program.Selective, program.Full} {
			for _, B := range []int{1, 4} {
				j := job{
					spec: g.spec(), layout: program.Layout{Recompute: policy}, T: 6, B: B, rows: 4, steps: 3,
					repeat: true, adam: testAdam, source: goldenRow,
				}
				if !g.Config.Spare {
					j.adam.Except = nil
				}
				g.check(t, run(t, j))
			}
		}
	}
}

func (g golden) check(t *testing.T, got record) {
	t.Helper()
	near(t, "loss", got.loss, g.Loss, 1e-11)
	near(t, "norm", got.norm, g.Norm, 1e-11)
	tensors := g.spec().Tensors()
	if len(tensors) != len(g.Grads) {
		t.Fatalf("%d tensors, want %d", len(tensors), len(g.Grads))
	}
	for _, q := range tensors {
		near(t, "gradient of "+q.Name, got.grads[q.Param][q.Lo:][:q.Len()], g.Grads[q.Name], 1e-11)
		near(t, q.Name, got.weights[q.Param][q.Lo:][:q.Len()], g.Weights[q.Name], 1e-10)
	}
}

// goldenRow is row r of testdata/golden.py.
func goldenRow(s model.Spec, T, r int) (x sample) {
	position := 0
	for i := range T {
		if i == 0 || i == r+2 || i == 5-r {
			position = 0
		}
		label := (3*r + i*i*i + 2) % s.V
		if (2*r+i)%7 == 0 {
			label = -1
		}
		x.tokens = append(x.tokens, float64((5*r+2*i+i*i+3)%s.V))
		x.labels = append(x.labels, float64(label))
		x.positions = append(x.positions, float64(position))
		position++
	}
	return x
}
