// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package main

import "slices"

// Kernels that combine the weights of models. None fuses a product into a sum: plain
// Go has the same bits.

const magnitude = 1<<31 - 1 // the bits of a float32 but its sign

var mergeKernels = []each{
	{
		name: "sub", doc: "y = a − b.", out: []string{"y"}, in: []string{"a", "b"},
		compute: func(k *kern) { k.store("y", k.sub(k.load("a"), k.load("b"))) },
	},
	{
		name: "addScaled", doc: "y += c·x, the product rounded.",
		both: []string{"y"}, in: []string{"x"}, rest: float("c"),
		compute: func(k *kern) { k.store("y", k.add(k.load("y"), k.mul(k.load("x"), k.arg("c")))) },
	},
	{
		name: "divide", doc: "y = x/c.", out: []string{"y"}, in: []string{"x"}, rest: float("c"),
		compute: func(k *kern) { k.store("y", k.div(k.load("x"), k.arg("c"))) },
	},
	{
		name: "keepKeys", doc: "y = x where the bits of |x| are more than c, −1 or more, and less than d, else 0.",
		out: []string{"y"}, in: []string{"x"}, rest: params("uint32", "c", "d"),
		compute: func(k *kern) {
			x := k.load("x")
			b := k.and(x, k.bits(magnitude))
			inside := k.and(k.minus(k.arg("c"), b), k.minus(b, k.arg("d")))
			k.store("y", k.and(x, k.do(opSigns, inside)))
		},
	},
	{
		name: "vote", doc: "v = c·x: sum += v; plus += v and wplus += c where v > 0; minus, wminus where v < 0.",
		both: []string{"sum", "plus", "minus", "wplus", "wminus"}, in: []string{"x"}, rest: float("c"),
		compute: vote,
	},
	{
		name: "elect", doc: "y = plus where sum ≥ 0, else minus; sum where it is NaN.",
		out: []string{"y"}, in: []string{"sum", "plus", "minus"},
		compute: func(k *kern) {
			sum := k.load("sum")
			y := elected(k, k.atLeast(sum, k.number(0)), "plus", "minus")
			k.store("y", k.ifNaN(sum, y, sum))
		},
	},
	{
		name: "electMean",
		doc:  "y = plus/wplus where sum ≥ 0, else minus/wminus, not divided by 0; sum where it is NaN.",
		out:  []string{"y"}, in: []string{"sum", "plus", "minus", "wplus", "wminus"},
		compute: func(k *kern) {
			sum := k.load("sum")
			positive := k.atLeast(sum, k.number(0))
			x, w := elected(k, positive, "plus", "minus"), elected(k, positive, "wplus", "wminus")
			y := k.div(x, k.pick(k.number(1), w, k.equal(w, k.number(0))))
			k.store("y", k.ifNaN(sum, y, sum))
		},
	},
	{
		name: "bucket", doc: "The lowest byte of w becomes the bits of |x| less c, at least 0, moved down by 18, at most 255.",
		both: []string{"w"}, in: []string{"x"}, rest: params("uint32", "c"),
		compute: bucket,
	},
	{
		name: "widenF16", doc: "y = x.", out: []string{"y"}, in: []string{"x"}, words: []string{"x"},
		compute: func(k *kern) { k.store("y", k.fromF16("x")) },
	},
	{
		name: "narrowF16", doc: "y = x, rounded to nearest even.",
		out: []string{"y"}, in: []string{"x"}, words: []string{"y"},
		compute: func(k *kern) { k.toF16("y", k.load("x")) },
	},
}

// bucket has 32 buckets in every power of two, 256 in all.
func bucket(k *kern) {
	c := k.arg("c")
	b := k.minus(k.larger(k.and(k.load("x"), k.bits(magnitude)), c), c)
	b = k.do(opBucket, k.smaller(b, k.bits(1<<26-1)))
	k.store("w", k.or(k.and(k.load("w"), k.bits(1<<32-1<<8)), b))
}

func vote(k *kern) {
	c := k.do(opCopy, k.arg("c"))
	v := k.mul(k.load("x"), c)
	k.store("sum", k.add(k.load("sum"), v))
	zero := k.number(0)
	for _, s := range []struct {
		sign, part, weight string
	}{{"+", "plus", "wplus"}, {"−", "minus", "wminus"}} {
		mask := k.above(v, zero)
		if s.sign == "−" {
			mask = k.above(zero, v)
		}
		k.store(s.part, k.add(k.load(s.part), k.and(v, mask)))
		k.store(s.weight, k.add(k.load(s.weight), k.and(c, mask)))
	}
}

// elected is what lies at a where mask is set, else at b.
func elected(k *kern, mask *val, a, b string) *val { return k.pick(k.load(a), k.load(b), mask) }

// mergeFolds are kernels that carry 16 lanes on: they are read first and written last.
var mergeFolds = []definition{
	lanes64("dot64", "Adds x·y to 16 lanes in float64.", []string{"x", "y"},
		func(k *kern, x []*val, lo, hi *val) { k.products(x[0], x[1], lo, hi) }),
	lanes64("sumAbs64", "Adds |x| to 16 lanes in float64.", []string{"x"},
		func(k *kern, x []*val, lo, hi *val) { k.add64(k.and(x[0], k.bits(magnitude)), lo, hi) }),
	{
		name: "sumAbs64Bits", doc: "Adds |x| to 16 lanes in float64, and to the next 16 where the bits in order are set.",
		params: join(params("*float64", "lanes"), ptrs("x"), params("int", "n"), params("*uint64", "bits")),
		body: func(k *kern) {
			var sums []*val
			for i := range 4 {
				sums = append(sums, k.hold(k.loadAt("lanes", 64*i)))
			}
			k.loop("n", func() {
				x := k.and(k.load("x"), k.bits(magnitude))
				k.add64(x, sums[0], sums[1])
				k.add64(k.and(x, k.mask("bits")), sums[2], sums[3])
			})
			for i, s := range sums {
				k.storeAt("lanes", 64*i, s)
			}
		},
	},
	{
		name: "largest", doc: "The largest bits of |x| in 16 lanes, those that lanes has included.",
		params: join(params("*uint32", "lanes"), ptrs("x"), params("int", "n")),
		body: func(k *kern) {
			most := k.hold(k.loadAt("lanes", 0))
			k.loop("n", func() { k.to(most, opLarger, k.and(k.load("x"), k.bits(magnitude)), most) })
			k.storeAt("lanes", 0, most)
		},
	},
	{
		name: "keepBits", doc: "y = x where the bits in order are set, else 0.",
		params: join(ptrs("y", "x"), params("int", "n"), params("*uint64", "bits")),
		body: func(k *kern) {
			k.loop("n", func() { k.store("y", k.and(k.load("x"), k.mask("bits"))) })
		},
	},
	{
		name: "below", doc: "A bit for each of n words: whether its upper 24 bits are less than c ≤ 2^24.",
		params: join(params("*uint64", "bits"), params("*uint32", "w"), params("int", "n"), params("uint32", "c")),
		body: func(k *kern) {
			k.loop("n", func() { k.negative("bits", k.minus(k.down8(k.load("w")), k.arg("c"))) })
		},
	},
	{
		name: "countBelow", doc: "Adds to 16 lanes how many of the bits of |x| are less than c ≤ 2^31.",
		params: join(params("*uint32", "lanes"), ptrs("x"), params("int", "n"), params("uint32", "c")),
		body: func(k *kern) {
			count := k.hold(k.loadAt("lanes", 0))
			k.loop("n", func() {
				d := k.minus(k.and(k.load("x"), k.bits(magnitude)), k.arg("c"))
				k.to(count, opPlus, count, k.do(opSign, d))
			})
			k.storeAt("lanes", 0, count)
		},
	},
	{
		name: "sieve", only: "AVX512",
		doc: "Bits of n words, n a multiple of 32: kept, whether the highest byte is less than the lower byte of\n" +
			"bound[b], where b is the lowest byte; open, whether it is not, nor more than the upper byte.",
		params: join(params("*uint64", "kept", "open"), params("*uint32", "w"), params("int", "n"),
			params("*uint16", "bound")),
		body: sieve,
	},
	{
		name: "collect",
		doc: "dst = the bits of |x| that are above lo and below hi; up to n numbers are written.\n" +
			"counts has, in 16 lanes each, how many are above hi, equal to hi and equal to lo,\n" +
			"and then the length of dst.",
		params: join(params("*uint32", "dst"), ptrs("x"), params("int", "n"),
			params("*uint32", "counts"), params("uint32", "lo", "hi")),
		body: func(k *kern) { k.collect(k) },
	},
}

// lanes64 is a fold into lanes of float64.
func lanes64(name, doc string, in []string, f func(k *kern, x []*val, lo, hi *val)) definition {
	return definition{
		name: name, doc: doc,
		params: join(params("*float64", "lanes"), ptrs(in...), params("int", "n")),
		body: func(k *kern) {
			lo, hi := k.hold(k.loadAt("lanes", 0)), k.hold(k.loadAt("lanes", 64))
			k.loop("n", func() {
				var x []*val
				for _, p := range in {
					x = append(x, k.load(p))
				}
				f(k, x, lo, hi)
			})
			k.storeAt("lanes", 0, lo)
			k.storeAt("lanes", 64, hi)
		},
	}
}

// eachBit is n numbers in memory of one bit each, from bit first on.
func (k *kern) eachBit(first, n int) string {
	for at := range len(*k.table) - n + 1 {
		if slices.Equal((*k.table)[at:][:n], oneBits(first, n)) {
			return where(at)
		}
	}
	return k.vector(oneBits(first, n)...)
}

func oneBits(first, n int) (list []uint32) {
	for i := range n {
		list = append(list, 1<<(first+i))
	}
	return list
}
