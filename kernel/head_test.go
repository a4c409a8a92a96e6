// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"cmp"
	"math"
	"slices"
	"testing"
)

// TestHeadTwin: losses and gradients over random tiles of the vocabulary, cut
// into two ranks, against float64.
func TestHeadTwin(t *testing.T) { each(t, testHeadTwin) }

func testHeadTwin(t *testing.T, l Level) {
	b := newBench(t, l)
	for range 60 {
		N, V, pad := 1+b.size(16), 2+b.size(300), b.IntN(3)
		z := b.normal(N * (V + pad))
		l.Scale(z, z, 5)
		labels, ld := b.ids(N, 2, V-4), V+pad // 0 … V−1
		for n := range labels {
			if b.IntN(4) == 0 {
				labels[n] = -100
			}
		}
		stats, other := b.out(3*N), b.out(3*N)
		HeadStatsBegin(stats)
		HeadStatsBegin(other)
		at, ranks := b.cut(V), [][]float32{stats, other}
		for i := range len(at) - 1 {
			l.HeadStats(ranks[i%2], z[at[i]:], labels, at[i], at[i+1]-at[i], ld)
		}
		HeadCombine(stats, other)
		lse, loss, lp := b.out(N), b.out(N), b.out(N)
		HeadLoss(lse, loss, stats, labels)
		HeadLogProbs(lp, stats, labels)
		sum, count := Tally(1, 2, loss, labels)

		want, wsum, wcount := make([]float64, N), 1.0, 2.0
		wlse, grad, size := make([]float64, N), make([]float64, N*ld), make([]float64, N*ld)
		for n, l := range labels {
			s := 0.0
			for v := range V {
				s += math.Exp(float64(z[n*ld+v]))
			}
			wlse[n] = math.Log(s)
			for v := range V {
				if l >= 0 {
					grad[n*ld+v] = math.Exp(float64(z[n*ld+v]) - wlse[n])
				}
			}
			if l >= 0 {
				want[n] = wlse[n] - float64(z[n*ld+int(l)])
				grad[n*ld+int(l)]--
				wsum, wcount = wsum+want[n], wcount+1
			}
		}
		scale := make([]float64, N)
		for n := range scale {
			scale[n] = math.Abs(wlse[n]) + 20
		}
		near(t, "lse", lse, wlse, scale, 3*eps)
		near(t, "loss", loss, want, scale, 3*eps)
		for n := range lp {
			lp[n] = -lp[n]
		}
		near(t, "log-probability", lp, want, scale, 3*eps)
		if math.Abs(sum-wsum) > 8*eps*20*wcount || count != wcount {
			t.Fatalf("tally: got %v of %v, want %v of %v", sum, count, wsum, wcount)
		}
		gaps := slices.Clone(z)
		p := make([]uint16, N*V)
		for i := range len(at) - 1 {
			l.HeadGrad16(p[at[i]:], z[at[i]:], lse, labels, at[i], at[i+1]-at[i], V, ld)
		}
		for i := range len(at) - 1 {
			l.HeadGrad(z[at[i]:], lse, labels, at[i], at[i+1]-at[i], ld)
		}
		for n := range N {
			row := make([]uint16, V)
			Portable.Narrow(row, z[n*ld:][:V])
			sameWords(t, "gradient in bf16", p[n*V:][:V], row)
			same(t, "gap", z[n*ld+V:][:pad], gaps[n*ld+V:][:pad])
			copy(grad[n*ld+V:][:pad], wide(gaps[n*ld+V:][:pad]))
			for v := range ld {
				size[n*ld+v] = math.Abs(grad[n*ld+v])
			}
			if labels[n] >= 0 { // p − 1, rounded where 1 is
				size[n*ld+int(labels[n])] = 1
			}
		}
		// The error of z−lse, of which either may be 20, is a relative one of p.
		near(t, "gradient", z, grad, size, 128*eps)
	}
}

// TestHeadTokens: a token does not depend on the tile of tokens.
func TestHeadTokens(t *testing.T) { each(t, testHeadTokens) }

func testHeadTokens(t *testing.T, l Level) {
	b := newBench(t, l)
	const N, V = 13, 50
	z, labels := b.normal(N*V), b.ids(N, 2, V-4)
	whole, parts := make([]float32, 3*N), make([]float32, 3*N)
	HeadStatsBegin(whole)
	HeadStatsBegin(parts)
	l.HeadStats(whole, z, labels, 0, V, V)
	at := b.cut(N)
	for i := range len(at) - 1 {
		l.HeadStats(parts[3*at[i]:], z[at[i]*V:], labels[at[i]:at[i+1]], 0, V, V)
	}
	same(t, "stats", parts, whole)
}

func TestHeadSpecial(t *testing.T) { each(t, testHeadSpecial) }

func testHeadSpecial(t *testing.T, l Level) {
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	for _, c := range []struct {
		name      string
		z         []float32
		lse, loss float32
	}{
		{"one left", []float32{-inf, 3, -inf, -inf}, 3, 0},
		{"label impossible", []float32{0, -inf, -inf, -inf}, 0, inf},
		{"large", []float32{-3e38, 3e38, 0, 1}, 3e38, 0},
		{"NaN", []float32{1, 2, nan, 3}, nan, nan},
		{"Inf", []float32{1, 2, inf, 3}, nan, nan},
		{"nothing", []float32{-inf, -inf, -inf, -inf}, -inf, nan},
	} {
		for _, tile := range []int{1, 2, 4} {
			stats, lse, loss := make([]float32, 3), make([]float32, 1), make([]float32, 1)
			HeadStatsBegin(stats)
			for i := 0; i < 4; i += tile {
				l.HeadStats(stats, c.z[i:], []int32{1}, i, tile, 4)
			}
			HeadLoss(lse, loss, stats, []int32{1})
			same(t, c.name+": lse", lse, []float32{c.lse})
			same(t, c.name+": loss", loss, []float32{c.loss})
		}
	}
}

func TestTopK(t *testing.T) { each(t, testTopK) }

func testTopK(t *testing.T, l Level) {
	b := newBench(t, l)
	type pair struct {
		v  float32
		id int32
	}
	for range 100 {
		N, V, k := 1+b.size(5), b.size(129), 1+b.IntN(9)
		z := b.normal(N * V)
		for i := range z {
			switch b.IntN(12) {
			case 0:
				z[i] = float32(math.NaN())
			case 1:
				z[i] = negInf()
			case 2:
				z[i] = 0
			default:
				z[i] = float32(math.Round(float64(z[i])))
			}
		}
		value, id := b.out(N*k), make([]int32, N*k)
		TopKBegin(value, id)
		if V > 0 {
			at := b.cut(V)
			order := b.Perm(len(at) - 1)
			for _, i := range order {
				TopK(value, id, z[at[i]:], k, at[i], at[i+1]-at[i], V)
			}
		}
		for n := range N {
			var all []pair
			for i, v := range z[n*V:][:V] {
				if v == v {
					all = append(all, pair{v, int32(i)})
				}
			}
			slices.SortStableFunc(all, func(x, y pair) int { return cmp.Compare(y.v, x.v) })
			for i := range k {
				want := pair{negInf(), -1}
				if i < len(all) {
					want = all[i]
				}
				equal(t, "candidate", pair{value[n*k+i], id[n*k+i]}, want)
			}
		}
	}
}
