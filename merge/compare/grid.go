// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"cmp"
	"fmt"
	"slices"
)

// Grid is a result by layers and kinds of tensors.
type Grid struct {
	Kinds  []string // those that there are, in the order of Kinds
	Rows   []Row    // outside the layers first, if there is any; then the layers
	ByKind []*Sums  // of each of Kinds
	All    Sums
}

// Row is a layer.
type Row struct {
	Stack string
	Layer int // -1 outside the layers
	Label string
	Cells []*Sums // of each of Kinds, nil where there is none
	All   Sums
}

// Grid adds up the tensors of layers and kinds.
func (r *Result) Grid() *Grid {
	g := &Grid{}
	for _, k := range Kinds() {
		if slices.ContainsFunc(r.Tensors, func(t Tensor) bool { return t.Kind == k }) {
			g.Kinds, g.ByKind = append(g.Kinds, k), append(g.ByKind, &Sums{})
		}
	}
	at := map[string]int{}
	for i := range r.Tensors {
		t := &r.Tensors[i]
		key := fmt.Sprint(t.Stack, " ", t.Layer)
		if _, ok := at[key]; !ok {
			at[key] = len(g.Rows)
			g.Rows = append(g.Rows, Row{Stack: t.Stack, Layer: t.Layer, Cells: make([]*Sums, len(g.Kinds))})
		}
		row, k := &g.Rows[at[key]], slices.Index(g.Kinds, t.Kind)
		if row.Cells[k] == nil {
			row.Cells[k] = &Sums{}
		}
		for _, s := range []*Sums{row.Cells[k], &row.All, g.ByKind[k], &g.All} {
			s.Add(&t.Sums)
		}
	}
	slices.SortFunc(g.Rows, func(a, b Row) int {
		return cmp.Or(cmp.Compare(min(a.Layer, 0), min(b.Layer, 0)), cmp.Compare(a.Stack, b.Stack),
			cmp.Compare(a.Layer, b.Layer))
	})
	g.label()
	return g
}

// label names the rows: a layer by its number, and by its stack if there are several.
func (g *Grid) label() {
	stacks := map[string]bool{}
	for _, r := range g.Rows {
		if r.Layer >= 0 {
			stacks[r.Stack] = true
		}
	}
	for i := range g.Rows {
		r := &g.Rows[i]
		switch {
		case r.Layer < 0:
			r.Label = "outside"
		case len(stacks) > 1:
			r.Label = fmt.Sprintf("%s.%d", r.Stack, r.Layer)
		default:
			r.Label = fmt.Sprint(r.Layer)
		}
	}
}
