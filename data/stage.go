// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package data

import (
	"math"
	"slices"

	"pleach/internal/fault"
)

// A Stage is a mixture from some row of the run on. Its proportions hold for the
// tokens taken since then.
type Stage struct {
	Row     int64     `json:"row"`     // g, the first of the stage; more than that of the stage before
	Weights []float64 `json:"weights"` // of each source, in the order of the spec
}

// stage is a Stage with the weights as parts of 1.
type stage struct {
	row    int64
	shares []float64
}

// stages are the mixtures of a run: that of the sources' weights, from row 0 on,
// and those that follow.
func stages(sources []*source, later []Stage) ([]stage, error) {
	first := make([]float64, len(sources))
	for i, s := range sources {
		first[i] = s.Weight
	}
	if !slices.ContainsFunc(first, func(w float64) bool { return w != 0 }) {
		for i := range first {
			first[i] = 1
		}
	}
	all := []stage{}
	for i, st := range append([]Stage{{0, first}}, later...) {
		if i > 0 && st.Row <= all[i-1].row {
			return nil, fault.Configf("data: stage %d begins with row %d: want more than the %d of the stage before",
				i, st.Row, all[i-1].row)
		}
		parts, err := shares(st.Weights, len(sources))
		if err != nil {
			return nil, fault.Configf("data: the weights from row %d on: %w", st.Row, err)
		}
		all = append(all, stage{st.Row, parts})
	}
	return all, nil
}

// shares are weights as parts of 1.
func shares(weights []float64, n int) ([]float64, error) {
	if len(weights) != n {
		return nil, fault.Configf("got %d, want one for each of %d sources", len(weights), n)
	}
	sum := 0.0
	for _, w := range weights {
		if !(w >= 0) || math.IsInf(w, 0) {
			return nil, fault.Configf("got %v, want numbers ≥ 0", w)
		}
		sum += w
	}
	if sum == 0 || math.IsInf(sum, 0) {
		return nil, fault.Configf("got a sum of %v, want one above 0", sum)
	}
	parts := make([]float64, n)
	for i, w := range weights {
		parts[i] = w / sum
	}
	return parts, nil
}

// stageOf is the stage that row g is in.
func stageOf(all []stage, g int64) int {
	i := len(all) - 1
	for all[i].row > g {
		i--
	}
	return i
}
