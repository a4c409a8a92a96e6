// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"math"
	"strings"
)

// Parameters are what a configuration sets at one place, in its order.
type Parameters []Parameter

// Parameter is a parameter of the method with its setting.
type Parameter struct {
	Name  string
	Line  int
	Cases []Case // the first that applies to a tensor decides; none: not set
}

// Case is a value for some tensors.
type Case struct {
	Filter string // part of the names of these tensors; empty or * is all
	Line   int
	Values []float64 // one, or a gradient over the layers
}

// Applies says whether a case is for a tensor.
func (c *Case) Applies(tensor string) bool {
	return c.Filter == "*" || strings.Contains(tensor, c.Filter)
}

// At is the value at position t of a gradient, from 0 to 1.
//
//	s = t·(m−1), i = ⌊s⌋, j = min(m−1, i+1), f = s−i: (1−f)·g[i] + f·g[j]
func (c *Case) At(t float64) float64 {
	m := len(c.Values)
	if m == 1 {
		return c.Values[0]
	}
	s := t * float64(m-1)
	i := int(math.Floor(s))
	f := s - float64(i)
	return float64((1-f)*c.Values[i]) + float64(f*c.Values[min(m-1, i+1)])
}

// Find is the parameter of a name, nil for none.
func (ps Parameters) Find(name string) *Parameter {
	for i := range ps {
		if ps[i].Name == name {
			return &ps[i]
		}
	}
	return nil
}

// Value is what a parameter is for a tensor at position t. ok is false where no
// case applies, and for nil.
func (p *Parameter) Value(tensor string, t float64) (x float64, ok bool) {
	if p == nil {
		return 0, false
	}
	for i := range p.Cases {
		if c := &p.Cases[i]; c.Applies(tensor) {
			return c.At(t), true
		}
	}
	return 0, false
}
