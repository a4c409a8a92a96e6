// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package main

// A bf16 number is the upper half of a float32. Rounding is arithmetic on bits, so
// results are the same on every level, the plain one included.

const (
	quiet   = 0x00400000 // the bit of a quiet NaN
	largest = 0x7f7f0000 // finite bf16 number
)

var bf16Kernels = []each{
	{
		name: "widen", doc: "y = x.", out: []string{"y"}, in: []string{"x"}, words: []string{"x"},
		compute: func(k *kern) { k.store("y", k.load("x")) },
	},
	{
		name: "narrow", doc: "y = x, rounded to nearest even.",
		out: []string{"y"}, in: []string{"x"}, words: []string{"y"},
		compute: func(k *kern) { k.halves("y", nearest(k, k.load("x"))) },
	},
	{
		name: "round", doc: "y = x, rounded to nearest even.", out: []string{"y"}, in: []string{"x"},
		compute: func(k *kern) { k.store("y", asWide(k, nearest(k, k.load("x")))) },
	},
	{
		name: "narrowRandom", doc: "y = x, rounded up if the bits that are lost and r exceed 2^16.",
		out: []string{"y"}, in: []string{"x", "r"}, words: []string{"y", "r"},
		compute: func(k *kern) { k.halves("y", random(k, k.load("x"), k.extend("r"))) },
	},
	{
		name: "expNarrow", doc: "y = e^(x−c), rounded to nearest even, as exp has it.",
		out: []string{"y"}, in: []string{"x"}, words: []string{"y"}, rest: float("c"),
		compute: func(k *kern) {
			x := k.min(k.number(88), k.sub(k.load("x"), k.arg("c")))
			k.halves("y", nearest(k, exp(k, x)))
		},
	},
	{
		name: "addNarrow", doc: "y = z + x; z and the sum are rounded to nearest even.",
		out: []string{"y"}, in: []string{"z", "x"}, words: []string{"y", "x"},
		compute: func(k *kern) {
			z := asWide(k, nearest(k, k.load("z")))
			k.halves("y", nearest(k, k.add(z, k.load("x"))))
		},
	},
	{
		name: "swigluNarrow", doc: "y = a/(1+e^−a)·u; a, u and y are rounded to nearest even.",
		out: []string{"y"}, in: []string{"a", "u"}, words: []string{"y"},
		compute: func(k *kern) {
			a, u := nearest(k, k.load("a")), nearest(k, k.load("u"))
			k.halves("y", nearest(k, gated(k, asWide(k, a), asWide(k, u))))
		},
	},
	{
		name: "swigluKeep", doc: "p, q, y = a, u, a/(1+e^−a)·u; all are rounded to nearest even.",
		out: []string{"p", "q", "y"}, in: []string{"a", "u"}, words: []string{"p", "q", "y"},
		compute: func(k *kern) {
			a, u := nearest(k, k.load("a")), nearest(k, k.load("u"))
			k.halves("p", a)
			k.halves("q", u)
			k.halves("y", nearest(k, gated(k, asWide(k, a), asWide(k, u))))
		},
	},
	{
		name: "swigluGradNarrow", doc: "d, e as swigluGrad; dy, d and e are rounded to nearest even.",
		out: []string{"d", "e"}, in: []string{"dy", "a", "u"}, words: []string{"d", "e", "a", "u"},
		compute: func(k *kern) {
			dy := asWide(k, nearest(k, k.load("dy")))
			d, e := gatedGrad(k, dy, k.load("a"), k.load("u"))
			k.halves("d", nearest(k, d))
			k.halves("e", nearest(k, e))
		},
	},
	{
		name: "addWide", doc: "y += x.", both: []string{"y"}, in: []string{"x"}, words: []string{"x"},
		compute: func(k *kern) { k.store("y", k.add(k.load("y"), k.load("x"))) },
	},
	{
		name: "normGradWWide", doc: "d += dy·(x·r).",
		both: []string{"d"}, in: []string{"dy", "x"}, words: []string{"dy", "x"}, rest: float("r"),
		compute: normGradW,
	},
}

// asWide is the bf16 number in the upper half of x.
func asWide(k *kern, x *val) *val { return k.and(x, k.bits(0xffff0000)) }

// nearest is x rounded in the upper half of its bits: half of the last place is
// added, less the smallest bit if the last place is even. The carry goes where it
// should, up to Inf. A NaN would lose its kind: it becomes quiet instead.
func nearest(k *kern, x *val) *val {
	odd := k.and(k.high(x), k.bits(1))
	r := k.plus(k.plus(x, odd), k.bits(0x7fff))
	return k.ifNaN(k.or(x, k.bits(quiet)), r, x)
}

// random is x with r added to its bits, and so to its magnitude: nothing beyond the
// largest finite bf16 number, which would grow to Inf, nor to Inf and NaN. Adding −0
// makes a NaN quiet, and changes no other number.
func random(k *kern, x, r *val) *val {
	x = k.add(x, k.bits(1<<31))
	a := k.and(x, k.bits(1<<31-1))
	return k.plus(x, k.within(r, a, k.bits(largest)))
}
