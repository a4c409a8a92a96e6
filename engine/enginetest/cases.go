// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package enginetest

import (
	"math"

	"pleach/half"
	"pleach/program"
)

// opCase is a rule about one or two ops.
type opCase struct {
	name        string
	explanation string
	build       func(d *draw)
	columns     int     // outputs have so many columns of different meaning; 0 is 1
	slack       float64 // the tolerance is so many times as large, where the sizes of intermediate numbers ask for it
	floor       float64 // arrays count as this large at least: what cancels has the error of its terms
	inner       float64 // in bf16: all results have an error of so many places, as the op may round what it multiplies
	only        bool    // in bf16 alone
}

// split is want and got, apart for columns of different meaning.
func (c opCase) split(want, got result) (pairs [][2][]float64) {
	n := max(c.columns, 1)
	pairs = make([][2][]float64, n)
	for side, x := range [][]float64{wide(want.Array), wide(got.Array)} {
		for i, v := range x {
			pairs[i%n][side] = append(pairs[i%n][side], v)
		}
	}
	return pairs
}

var opCases = []opCase{
	{name: "embed", build: embed, explanation: "row n of the output is row ids[n] of the table; the gradient adds dy[n] " +
		"to row ids[n] of its sum, once for every time that an id stands there"},
	{name: "embed/rows", build: embedRows, explanation: "a temporary may be the table: rows of it in any order"},
	{name: "linear", build: linear, explanation: "y = x·wᵀ, dx = dy·w; dw adds dyᵀ·x to what is there; logits are of the type of sums"},
	{name: "bias", build: bias, explanation: "c is added to every row; dc adds the rows of dy to what is there"},
	{name: "rmsnorm", build: rmsNorm, floor: 1, explanation: "rows are divided by the root of their mean square plus eps, " +
		"dw adds to what is there"},
	{name: "rmsnorm/one", build: rmsNormOne, explanation: "a row of one element becomes almost one or minus one"},
	{name: "rmsnorm/zeros", build: rmsNormZeros, floor: 1, explanation: "a row of zeros stays zero: eps stands in the root"},
	{name: "rope", build: rope, explanation: "query and key heads turn by their position, value heads do not; " +
		"all scalings; the gradient turns back"},
	{name: "attention", build: attention, inner: 2, explanation: "a token sees the tokens of its document up to itself; " +
		"query heads share key heads in groups, whose gradients add up"},
	{name: "attention.cached", build: cachedAttention, inner: 2, explanation: "all tokens are appended first, then each sees " +
		"its sequence up to its position; other places of the cache stay"},
	{name: "swiglu", build: swiGLU, explanation: "gate before up; far from zero neither overflows"},
	{name: "add", build: add, explanation: "y = x + z, and both get the gradient; x + x counts twice"},
	{name: "add/into", build: addInto, explanation: "states of any type are added to in place"},
	{name: "scale", build: scale, explanation: "y = c·x, dx = c·dy"},
	{name: "cast", build: cast, explanation: "values are rounded to the other type, or copied"},
	{name: "head.loss", build: headLoss, floor: 1, inner: 3, explanation: "loss = lse − z[label], zero where masked; the tally and dw " +
		"are added to; masked tokens have no gradient"},
	{name: "head.loss/far", build: headFar, slack: 20, floor: 1, inner: 3, explanation: "logits of hundreds neither overflow nor vanish"},
	{name: "head.top", build: headTop, columns: 2, explanation: "the k largest logits, larger first, the lowest word " +
		"among equals"},
	{name: "linear/int8", build: linear8, only: true, explanation: "weights of int8: the sum of products is scaled by the " +
		"row's scale, and rounded then"},
	{name: "head.loss/int8", build: headLoss8, only: true, floor: 1, inner: 1, explanation: "logits of a head of int8 are scaled, " +
		"with every word's own scale"},
	{name: "head.top/int8", build: headTop8, only: true, columns: 2, explanation: "the k largest of scaled logits"},
	{name: "zero", build: zero, explanation: "a cleared value is zero whatever it held"},
	{name: "shard", build: shard, explanation: "the only rank's shard is all of x, padded with zeros"},
	{name: "reduce.scatter", build: shardSum, explanation: "the sum over one rank is x, padded with zeros"},
	{name: "all.gather", build: publish, explanation: "the padding of a shard is dropped"},
	{name: "all.reduce", build: sumCopies, explanation: "a sum over one rank changes nothing"},
	{name: "sum.squares", build: sumSquares, explanation: "weight·x² goes to the slot of its leaf, beside what is there"},
	{name: "clip", build: clip, columns: program.ReportLen, explanation: "the report: no NaN, no count of zero and no " +
		"apply of zero is applied; no limit never clips"},
	{name: "adamw", build: adamW, explanation: "decoupled decay, bias correction by t; nothing where the report says so"},
	{name: "adamw/master", build: adamWMaster, explanation: "a master copy is updated, and rounded into the weights"},
	{name: "adamw/stochastic", build: adamWStochastic, only: true, explanation: "weights, and moments that are bf16, are " +
		"one of the two neighbours of the exact number"},
}

func embed(d *draw) {
	V := d.words()
	ids := d.ints("ids", d.size(), 0, V)
	d.backward(d.b.Embed(d.weight("table", V, d.size()), ids))
}

func embedRows(d *draw) {
	N := d.size()
	d.out(d.b.Embed(d.temp("x", N, d.size()), d.ints("pick", d.size(), 0, N)))
}

func linear(d *draw) {
	I, O := d.size(), d.words()
	if d.n%2 == 1 {
		I, O = O, I
	}
	x, w := d.temp("x", d.size(), I), d.weight("w", O, I)
	d.backward(d.b.Linear(x, w), x)
	d.out(d.b.Logits(x, w))
}

func bias(d *draw) {
	O := d.size()
	x := d.temp("x", d.size(), O)
	d.backward(d.b.Bias(x, d.weight("c", O)), x)
}

// rmsNorm has rows of two at least: with one, the terms of its gradient cancel.
func rmsNorm(d *draw) {
	D := max(d.size(), 2)
	x := d.temp("x", d.size(), D)
	d.backward(d.b.RMSNorm(x, d.weight("w", D), []float64{1e-6, 1e-5, 0.5}[d.IntN(3)]), x)
}

func rmsNormOne(d *draw) { d.out(d.b.RMSNorm(d.temp("x", d.size(), 1), d.weight("w", 1), 1e-5)) }

func rmsNormZeros(d *draw) {
	D := d.size()
	x := d.temp("x", d.size(), D)
	z := d.b.Scale(x, 0)
	d.backward(d.b.RMSNorm(z, d.weight("w", D), 1e-5), x)
}

func rope(d *draw) {
	T := d.words()
	h := d.heads(T)
	r := program.Rope{Theta: 10_000, Scaling: program.Scaling(d.n % 3), Factor: 4, LowFreq: 1, HighFreq: 4, Original: 64}
	x := d.temp("x", d.size(), h.Width())
	d.backward(d.b.RoPE(x, d.ints("positions", x.Shape[0], 0, T), h, r), x)
}

func attention(d *draw) {
	B, T := 1+d.IntN(3), d.size()
	h := d.heads(T)
	x := d.temp("qkv", B*T, h.Width())
	d.backward(d.b.Attention(x, d.documents(B, T), h), x)
}

// cachedAttention appends a few tokens to each of some sequences.
func cachedAttention(d *draw) {
	S, T, N := 1+d.IntN(4), d.size(), 0
	h := d.heads(T)
	var slots, positions []int
	for s := range S {
		n := 1 + d.IntN(min(T, 5))
		first := d.IntN(T - n + 1)
		for i := range n {
			slots, positions = append(slots, s), append(positions, first+i)
		}
		N += n
	}
	d.Shuffle(N, func(i, j int) {
		slots[i], slots[j] = slots[j], slots[i]
		positions[i], positions[j] = positions[j], positions[i]
	})
	at := d.values(d.b.Input("slots", half.I32, N), func(i int) float64 { return float64(slots[i]) })
	p := d.values(d.b.Input("positions", half.I32, N), func(i int) float64 { return float64(positions[i]) })
	cache := d.b.State("cache", d.kind, program.Same, S, T, 2*h.G*h.K)
	d.out(d.b.CachedAttention(d.temp("qkv", N, h.Width()), cache, at, p, h))
}

func swiGLU(d *draw) {
	x := d.b.Scale(d.temp("x", d.size(), 2*d.size()), []float64{1, 1, 30}[d.IntN(3)])
	d.backward(d.b.SwiGLU(x), x)
}

func add(d *draw) {
	shape := []int{d.words(), d.size()}
	x, z := d.temp("x", shape...), d.temp("z", shape...)
	y := d.b.Add(d.b.Add(x, z), x)
	d.backward(y, x, z)
}

func addInto(d *draw) {
	d.b.UpdatePhase()
	n := d.words() * d.size()
	d.b.AddInto(d.sum("older", n), d.sum("newer", n))
	wide := func(name string) *program.Value { return d.b.State(name, half.F64, program.Same, 2) }
	d.b.AddInto(wide("older.tally"), wide("tally"))
}

func scale(d *draw) {
	x := d.temp("x", d.words(), d.size())
	d.backward(d.b.Scale(x, -0.37), x)
}

func cast(d *draw) {
	x := d.temp("x", d.words(), d.size())
	wider := half.F64
	if d.kind == half.BF16 {
		wider = half.F32
	}
	d.out(d.b.Cast(x, wider), d.b.Cast(d.b.Cast(x, wider), d.kind))
	d.b.UpdatePhase()
	d.b.CastInto(d.weight("w", x.Len()), d.sum("master", x.Len()))
}

func headLoss(d *draw) {
	N, V, D := d.size(), d.words(), d.width()
	if d.n == 0 {
		N = 300
	}
	x, w := d.temp("x", N, D), d.weight("head", V, D)
	d.head(x, w, 1)
}

func headFar(d *draw) {
	D := d.width()
	x, w := d.temp("x", d.size(), D), d.weight("head", d.words(), D)
	d.head(x, w, 20)
}

// head appends the loss of c·x, and its gradients.
func (d *draw) head(x, w *program.Value, c float64) {
	tally := d.b.Tally()
	d.values(tally, func(i int) float64 { return float64(10 * (i + 1)) })
	loss, lse := d.b.HeadLoss(d.b.Scale(x, c), w, d.labels(x.Shape[0], w.Shape[0]), tally)
	d.b.Backward()
	d.out(loss, lse, d.b.Grad(x))
}

// headTop has small integers for operands: products are exact, and many equal.
func headTop(d *draw) {
	N, V, D := d.size(), d.words(), d.width()
	x, w := d.b.Input("x", d.kind, N, D), d.weight("head", V, D)
	for _, v := range []*program.Value{x, w} {
		d.values(v, func(int) float64 { return float64(d.IntN(5) - 2) })
	}
	lse := d.b.Input("lse", half.F32, N)
	d.noise(lse)
	d.out(d.b.HeadTop(x, w, lse, min(V, []int{1, 2, 5, 20}[d.IntN(4)])))
}

// linear8 has many rows of x or few, with what may follow a product.
func linear8(d *draw) {
	I, O := d.size(), d.words()
	if d.n%2 == 1 {
		I, O = O, I
	}
	if d.n > 2 && d.n%2 == 0 {
		I = (I + 3) &^ 3
	}
	y := d.b.Linear(d.temp("x", d.size(), I), d.weight8("w", O, I))
	if d.n%3 == 1 {
		y = d.b.Bias(y, d.weight("c", O))
	}
	switch {
	case d.n%4 == 0 && O%2 == 0:
		y = d.b.SwiGLU(y)
	case d.n%4 == 3:
		y = d.b.Add(y, d.temp("z", y.Shape...))
	}
	d.out(y)
}

func headLoss8(d *draw) {
	N, V, D := d.size(), d.words(), d.width()
	if d.n == 0 {
		N, D = 300, 64
	}
	loss, lse := d.b.HeadLoss(d.temp("x", N, D), d.weight8("head", V, D), d.labels(N, V), nil)
	d.out(loss, lse)
}

// headTop8 has scales that are powers of two: products are exact, and many equal.
func headTop8(d *draw) {
	N, V, D := d.size(), d.words(), d.width()
	x, w := d.b.Input("x", d.kind, N, D), d.weight8("head", V, D)
	d.values(x, func(int) float64 { return float64(d.IntN(5) - 2) })
	s := program.View[float32](d.data["head"+program.Scale])
	for i := range s {
		s[i] = []float32{0.25, 0.5, 1, 2}[d.IntN(4)]
	}
	lse := d.b.Input("lse", half.F32, N)
	d.noise(lse)
	d.out(d.b.HeadTop(x, w, lse, min(V, []int{1, 2, 5, 20}[d.IntN(4)])))
}

func zero(d *draw) {
	d.b.UpdatePhase()
	d.b.Clear(d.sum("a", d.words()*1000))
	d.b.Clear(d.b.Tally())
	d.out(d.b.Zeros(d.size(), 3))
}

func shard(d *draw) {
	x := d.temp("x", d.size(), d.size())
	d.out(d.b.Shard(x, x.Len()+d.IntN(9)))
}

func shardSum(d *draw) {
	x := d.sum("x", d.size(), d.size())
	d.out(d.b.ShardSum(x, x.Len()+d.IntN(9)))
}

func publish(d *draw) {
	d.b.UpdatePhase()
	w := d.weight("w", d.size(), d.size())
	d.b.Publish(w, d.temp("x", w.Len()+d.IntN(9)))
}

func sumCopies(d *draw) {
	x := d.sum("x", d.size())
	d.b.SumCopies(x, 0, x.Len(), 1, false)
}

func sumSquares(d *draw) {
	x := d.sum("x", d.words(), d.size())
	n, rows, leaves := x.Len(), 1+d.IntN(3), 1+d.IntN(4)
	cut := d.IntN(n + 1)
	runs := []program.Run{{Lo: 0, Hi: cut, Copies: 1, Weight: 1}, {Lo: cut, Hi: n, Copies: 2, Weight: 0.5}}
	slots := d.b.Zeros(rows, leaves)
	for range 2 {
		d.b.SumSquares(slots, x, d.IntN(rows), (n+leaves-1)/leaves, false, runs)
	}
	w := d.weight("w", d.size())
	d.b.SumSquares(slots, w, 0, w.Len(), false, []program.Run{{Lo: 0, Hi: w.Len(), Copies: 1, Weight: 1}})
	d.out(slots)
}

func clip(d *draw) {
	limit := []float64{1e-3, 1e9, 0}[d.n%3]
	x := d.sum("x", d.size())
	tally := d.b.Tally()
	count := []float64{17, 0, 5}[d.IntN(3)]
	d.values(tally, func(i int) float64 { return []float64{33.3, count}[i] })
	if bad := []float64{0, math.NaN(), math.Inf(1)}[d.IntN(3)]; bad != 0 {
		d.values(x, func(int) float64 { return bad })
	}
	slots, weights := d.b.Zeros(1, 1), d.b.Zeros(1, 1)
	runs := []program.Run{{Lo: 0, Hi: x.Len(), Copies: 1, Weight: 1}}
	d.b.SumSquares(slots, x, 0, x.Len(), false, runs)
	d.b.SumSquares(weights, d.sum("w", 40), 0, 40, false, []program.Run{{Lo: 0, Hi: 40, Copies: 1, Weight: 1}})
	d.out(d.b.Clip(slots, weights, tally, d.scalar("apply", float64(d.IntN(2))), limit))
}

func adamW(d *draw) {
	n := d.words() * d.size()
	d.adam(d.weight("w", n), half.F32, program.Rounding{})
}

func adamWMaster(d *draw) {
	n := d.words() * d.size()
	master := d.sum("master.w", n)
	d.adam(master, half.F32, program.Rounding{})
	d.b.CastInto(d.weight("w", n), master)
}

func adamWStochastic(d *draw) {
	n := d.words() * d.upTo(11)
	moments := []half.DType{half.F32, half.BF16}[d.n%2]
	d.adam(d.weight("w", n), moments, program.Rounding{Stochastic: true, Seed: d.Uint64()})
}

// adam appends an update of w, with moments of a type.
func (d *draw) adam(w *program.Value, moments half.DType, r program.Rounding) {
	d.b.UpdatePhase()
	n := w.Len()
	m, v := d.b.State("m", moments, program.Same, n), d.b.State("v", moments, program.Same, n)
	d.values(v, func(int) float64 { return max(0, d.NormFloat64()*d.NormFloat64()*0.1) })
	apply := 1.0
	if d.n == 3 {
		apply = 0
	}
	report := d.values(d.b.Input("report", half.F64, program.ReportLen), func(i int) float64 {
		return []float64{0.03, 2, 3, 40, apply, 7}[i]
	})
	t := []float64{1, 2, 100, 1e6}[d.IntN(4)]
	d.b.AdamW(w, m, v, d.sum("g", n), report, d.scalar("lr", 0.01), d.scalar("t", t), program.Adam{
		Beta1: 0.9, Beta2: 0.95, Eps: 1e-8, Decay: 0.1 * float64(d.IntN(2)),
	}, r, false)
}
