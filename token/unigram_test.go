// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package token

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestDoubleArray: it knows the keys it was made of, and no other text.
func TestDoubleArray(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		keys := rapid.SliceOfDistinct(rapid.StringOfN(rapid.RuneFrom([]rune("abcdé▁\x00語")), 1, 6, -1), rapid.ID[string]).Draw(r, "keys")
		slices.Sort(keys)
		want := map[string]int32{}
		values := make([]int32, len(keys))
		for i, k := range keys {
			values[i] = int32(7 * i)
			want[k] = values[i]
		}
		d := newDoubleArray(keys, values)
		others := rapid.SliceOf(rapid.StringOfN(rapid.RuneFrom([]rune("abcdé▁\x00語x")), 0, 6, -1)).Draw(r, "others")
		for _, s := range append(others, keys...) {
			value, ok := want[s]
			if !ok {
				value = -1
			}
			if got := d.exact([]byte(s)); got != value {
				r.Fatalf("%q: got %d, want %d", s, got, value)
			}
		}
	})
}

// plainUnigram is the search as the formula says it: every start, every token.
func plainUnigram(scores map[string]float64, unkScore float64, narrow bool, s string) []string {
	add := func(a, b float64) float64 {
		if narrow {
			return float64(float32(a) + float32(b))
		}
		return a + b
	}
	best := make([]float64, len(s)+1)
	from := make([]int, len(s)+1)
	for i := range from {
		from[i] = -1
	}
	for i, c := range s {
		for j := i + 1; j <= len(s); j++ {
			score, ok := scores[s[i:j]]
			if !ok && j == i+len(string(c)) {
				score, ok = unkScore, true
			}
			if sum := add(best[i], score); ok && (from[j] < 0 || sum > best[j]) {
				best[j], from[j] = sum, i
			}
		}
	}
	var out []string
	for j := len(s); j > 0; j = from[j] {
		out = append(out, s[from[j]:j])
	}
	slices.Reverse(out)
	return out
}

// TestUnigramTwin: the search and its cache against the formula, with scores
// that make ties and near ties.
func TestUnigramTwin(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		text := rapid.StringOfN(rapid.RuneFrom([]rune("aab▁é")), 1, 5, -1)
		tokens := rapid.SliceOfNDistinct(text, 1, 40, rapid.ID[string]).Draw(r, "tokens")
		narrow := rapid.Bool().Draw(r, "narrow")
		scores := map[string]float64{}
		list, ids := make([]float64, len(tokens)), make([]int32, len(tokens))
		for i, tok := range tokens {
			score := float64(float32(-0.1 * float64(rapid.IntRange(1, 8).Draw(r, "score")*len(tok))))
			scores[tok], list[i], ids[i] = score, score, int32(i)
		}
		const unkScore = -20
		m := newUnigram(tokens, ids, list, unkScore)
		m.narrow = narrow
		var l lattice
		for range 3 {
			s := rapid.StringOfN(rapid.RuneFrom([]rune("aab▁éx")), 0, 90, -1).Draw(r, "text")
			var want []int32
			for _, tok := range plainUnigram(scores, unkScore, narrow, s) {
				id := int32(slices.Index(tokens, tok))
				if id >= 0 || len(want) == 0 || want[len(want)-1] >= 0 { // a run of unknown characters is one
					want = append(want, id)
				}
			}
			got := m.encode(&l, nil, []byte(s))
			if !slices.Equal(got, want) {
				r.Fatalf("%q: got %v, want %v", s, got, want)
			}
		}
	})
}
