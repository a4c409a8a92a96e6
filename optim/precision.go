// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package optim

import (
	"fmt"
	"strings"

	"pleach/half"
	"pleach/program"
)

// Precision is in which types a run holds weights and computes. Its String is
// the word of a recipe.
type Precision uint8

// The precisions. Gradient sums, statistics, losses and the arithmetic of an
// update are in float32 or wider in all of them.
const (
	F32      Precision = iota // weights, moments and activations in float32
	Mixed                     // a master copy and moments in float32, updated, and rounded to the bf16 weights
	BF16SR                    // bf16 weights, rounded stochastically when they are updated; moments as is said
	BF16                      // bf16 weights, rounded to nearest: small updates are lost; for comparison
	numModes = int(iota)
)

func (p Precision) String() string { return [...]string{"f32", "mixed", "bf16-sr", "bf16"}[p] }

// Precisions are the words that [ParsePrecision] knows.
func Precisions() []string {
	var words []string
	for p := range numModes {
		words = append(words, Precision(p).String())
	}
	return words
}

// ParsePrecision is the inverse of String.
func ParsePrecision(s string) (Precision, error) {
	for p := range numModes {
		if Precision(p).String() == s {
			return Precision(p), nil
		}
	}
	return 0, fmt.Errorf("optim: precision %q: want one of %s", s, strings.Join(Precisions(), ", "))
}

// Weights is the type of weights and activations.
func (p Precision) Weights() half.DType {
	if p == F32 {
		return half.F32
	}
	return half.BF16
}

// Layout is that of one rank.
func (p Precision) Layout() program.Layout {
	return program.Layout{Compute: p.Weights(), Sum: half.F32}
}

// Apply makes a the optimizer of a run in this precision. Moments in bf16 are
// for those that round stochastically: to nearest, v would not move at all once
// it is large beside (1−β₂)ĝ².
func (p Precision) Apply(a AdamW) AdamW {
	a.Master, a.Stochastic = p == Mixed, p == BF16SR
	return a
}

// PrecisionOf is the precision of a run that is laid out and updated like this:
// the inverse of Layout and Apply.
func PrecisionOf(l program.Layout, a AdamW) Precision {
	switch {
	case l.Compute != half.BF16:
		return F32
	case a.Master:
		return Mixed
	case a.Stochastic:
		return BF16SR
	}
	return BF16
}
