// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package main

import "math"

// keyTile is the width of rows of scores.
const keyTile = 64

// blocks are kernels of several rows; distances of rows are in bytes.
var blocks = []definition{
	{
		name: "turn", doc: "y, z = u·cos − v·sign·sin, v·cos + u·sign·sin for heads of halves of n numbers; skip\nis from the end of a half to the next head's.",
		params: join(ptrs("y", "z", "u", "v", "cos", "sin"), params("int", "n", "heads", "skip"), float("sign")),
		body: func(k *kern) {
			c, s, i := k.local("c"), k.local("s"), k.local("i")
			k.repeat("heads", func() {
				k.same(c, "cos")
				k.same(s, "sin")
				k.same(i, "n")
				k.loop(i, func() {
					cos, sin := k.load(c), k.mul(k.load(s), k.arg("sign"))
					u, v := k.load("u"), k.load("v")
					y := k.fnma(v, sin, k.mul(u, cos))
					z := k.fma(u, sin, k.mul(v, cos))
					k.store("y", y)
					k.store("z", z)
				})
				for _, p := range []string{"y", "z", "u", "v"} {
					k.step(p, "skip")
				}
			})
		},
	},
	{
		name: "scaleRow", doc: "x *= f[i] for rows of n numbers; skip is from the end of a row to the next.",
		params: join(ptrs("x", "f"), params("int", "n", "rows", "skip")),
		body: func(k *kern) {
			i := k.local("i")
			k.repeat("rows", func() {
				k.same(i, "n")
				f := k.hold(k.spread("f"))
				k.loop(i, func() { k.store("x", k.mul(k.load("x"), f)) })
				k.release(f)
				k.step("x", "skip")
				k.step("f", 4)
			})
		},
	},
	normGradRows("normGradRows", "*float32"),
	normGradRows("normGradRowsWide", "*uint16"),
	addRows("addRows", "*float32"),
	addRows("addRowsWide", "*uint16"),
	softmaxOf("softmax", "s", "s"),
	softmaxOf("softmaxHalf", "s", "e"),
	softmaxGradOf("softmaxGrad", "p", "d"),
	softmaxGradOf("softmaxGradHalf", "e", "f"),
}

// softmaxGradOf is a kernel that puts its results in rows of their own if they are
// rounded.
func softmaxGradOf(name, toP, toD string) definition {
	var own []param
	only := ""
	if toP != "p" {
		own, only = params("*uint16", toP, toD), "AVX512"
	}
	return definition{
		name: name, only: only, doc: toP + " = e^(p·scale−lse), " + toD + " = " + toP + "·((d−delta)·scale) for rows of 64 scores" + rounded(own),
		params: join(ptrs("p", "d"), own, params("int", "ld", "rows"), float("scale"), ptrs("lse", "delta")),
		body: func(k *kern) {
			k.repeat("rows", func() {
				lse, delta := k.spread("lse"), k.spread("delta")
				for i := range keyTile / 16 {
					z := k.mul(k.nth("p", i), k.arg("scale"))
					e := exp(k, k.min(k.number(88), k.sub(z, lse)))
					ds := k.mul(k.sub(k.nth("d", i), delta), k.arg("scale"))
					k.putNth(toP, i, e)
					k.putNth(toD, i, k.mul(e, ds))
				}
				k.step("p", "ld")
				k.step("d", "ld")
				for _, p := range own {
					k.step(p.name, 2*keyTile)
				}
				k.step("lse", 4)
				k.step("delta", 4)
			})
		},
	}
}

// rounded ends the description of a kernel.
func rounded(own []param) string {
	if len(own) > 0 {
		return ", rounded,\nin rows without gaps."
	}
	return "."
}

func normGradRows(name, kind string) definition {
	return definition{
		name: name, doc: "d += dy·(x·r[i]) for rows of 64 columns, row by row.",
		params: join(ptrs("d"), params(kind, "dy", "x"), ptrs("r"), params("int", "rows", "ld")),
		body: func(k *kern) {
			d := k.columns("d")
			k.repeat("rows", func() {
				r := k.spread("r")
				for i := range d {
					k.to(d[i], opFMA, k.mul(k.nth("x", i), r), k.nth("dy", i), d[i])
				}
				k.step("dy", "ld")
				k.step("x", "ld")
				k.step("r", 4)
			})
			k.put("d", d)
		},
	}
}

func addRows(name, kind string) definition {
	return definition{
		name: name, doc: "d += x for rows of 64 columns, row by row.",
		params: join(ptrs("d"), params(kind, "x"), params("int", "rows", "ld")),
		body: func(k *kern) {
			d := k.columns("d")
			k.repeat("rows", func() {
				for i := range d {
					k.to(d[i], opAdd, d[i], k.nth("x", i))
				}
				k.step("x", "ld")
			})
			k.put("d", d)
		},
	}
}

// columns holds 64 columns of a row that sums go to, and put writes them back.
func (k *kern) columns(p string) (d []*val) {
	for i := range 4 {
		d = append(d, k.hold(k.nth(p, i)))
	}
	return d
}

func (k *kern) put(p string, d []*val) {
	for i := range d {
		k.putNth(p, i, d[i])
	}
}

// softmaxOf is a kernel that puts exponentials in rows of their own if they are
// rounded. It finds the maxima of all rows, then the exponentials of all: processors
// overlap rows then. The maximum of s·scale is that of s, times scale, as scale ≥
// 0. The products are rounded before base is subtracted, as base is: were they
// not, large scores would lie above it.
func softmaxOf(name, from, to string) definition {
	var own []param
	only := ""
	if to != from {
		own, only = params("*uint16", to), "AVX512"
	}
	return definition{
		name: name, only: only, doc: to + " = e^(s·scale−top) for rows of 64 scores" + rounded(own) +
			"\ntop are their maxima and those before; corr becomes the old top less the new one, part the sums.",
		params: join(ptrs("s"), own, params("int", "lds", "rows"), float("scale"), ptrs("top", "part", "corr")),
		body: func(k *kern) {
			softmaxTops(k)
			k.repeat("rows", func() {
				base := base(k, k.spread("top"))
				var sum *val
				for i := range keyTile / 16 {
					e := exp(k, k.sub(k.mul(k.nth("s", i), k.arg("scale")), base))
					k.putNth(to, i, e)
					if sum == nil {
						sum = e
					} else {
						sum = k.add(sum, e)
					}
				}
				k.storeOne("part", k.sum(sum))
				k.step("s", "lds")
				for _, p := range own {
					k.step(p.name, 2*keyTile)
				}
				k.step("top", 4)
				k.step("part", 4)
			})
		},
	}
}

// softmaxTops moves the maxima of all rows.
func softmaxTops(k *kern) {
	s, top, rows := k.local("s2"), k.local("top2"), k.local("rows2")
	k.same(s, "s")
	k.same(top, "top")
	k.same(rows, "rows")
	k.repeat(rows, func() {
		m := k.bits(math.Float32bits(float32(math.Inf(-1))))
		for at := 0; at < 4*keyTile; at += 64 {
			m = k.max(k.loadAt(s, at), m)
		}
		old := k.spread(top)
		m = k.max(k.mul(k.highest(m), k.arg("scale")), old)
		k.storeOne(top, m)
		k.storeOne("corr", k.sub(old, base(k, m)))
		k.step(s, "lds")
		k.step(top, 4)
		k.step("corr", 4)
	})
}

// base is what to subtract from scores: their maximum, or if all are −Inf, any
// number that is larger.
func base(k *kern, m *val) *val { return k.max(m, k.number(-math.MaxFloat32)) }
