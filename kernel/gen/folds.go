// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package main

import "math"

// fold is a kernel with one number as its result. Element i goes to lane i mod
// 16, in order, and then the lanes are folded. The last elements, fewer than 16,
// come in tail, filled up with what changes nothing, unless it is nil; tail
// has 16 of the first operand, then 16 of the second, and so on.
func fold(name, doc string, in []string, rest []param, start float64, end code, f func(k *kern, acc *val, x []*val)) definition {
	return definition{
		name: name, doc: doc, result: true,
		params: join(ptrs(in...), params("int", "n"), ptrs("tail"), rest),
		body: func(k *kern) {
			acc := k.hold(k.number(start))
			k.loop("n", func() {
				var x []*val
				for _, p := range in {
					x = append(x, k.load(p))
				}
				f(k, acc, x)
			})
			k.when("tail", func() {
				var x []*val
				for i := range in {
					x = append(x, k.loadAt("tail", 64*i))
				}
				f(k, acc, x)
			})
			k.ret(k.do(end, acc))
		},
	}
}

var folds = []definition{
	fold("dot", "Σ x·y.", []string{"x", "y"}, nil, 0, opSum, func(k *kern, acc *val, x []*val) {
		k.to(acc, opFMA, x[0], x[1], acc)
	}),
	fold("dot3", "Σ x·y·z.", []string{"x", "y", "z"}, nil, 0, opSum, func(k *kern, acc *val, x []*val) {
		k.to(acc, opFMA, k.mul(x[0], x[1]), x[2], acc)
	}),
	fold("highest", "The maximum of x, NaN left out.", []string{"x"}, nil, math.Inf(-1), opHighest, func(k *kern, acc *val, x []*val) {
		k.to(acc, opMax, x[0], acc)
	}),
	fold("expSum", "Σ e^(x−c), terms below 2^−126 left out; c is at least x or little less.", []string{"x"}, float("c"), 0, opSum,
		func(k *kern, acc *val, x []*val) {
			k.to(acc, opAdd, acc, exp(k, k.min(k.number(88), k.sub(x[0], k.arg("c")))))
		}),
	{
		name: "squares", doc: "The squares of x, in float64, added up in 16 lanes.",
		params: join(params("*float64", "lanes"), ptrs("x"), params("int", "n"), ptrs("tail")),
		body: func(k *kern) {
			lo, hi := k.hold(k.number(0)), k.hold(k.number(0))
			k.loop("n", func() { k.squares(k.load("x"), lo, hi) })
			k.when("tail", func() { k.squares(k.loadAt("tail", 0), lo, hi) })
			k.storeAt("lanes", 0, lo)
			k.storeAt("lanes", 64, hi)
		},
	},
}
