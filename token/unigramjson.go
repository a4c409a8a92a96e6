// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package token

import (
	"maps"
	"strconv"
	"strings"

	"pleach/internal/strictjson"
)

// unigram reads the Unigram model: tokens with their scores, in order of id.
// Of tokens that stand twice, the second id counts.
func (l *loader) unigram(c *object) {
	if l.p.model.byteLevel {
		c.fail("Unigram behind ByteLevel: not supported")
	}
	fallback := c.optBool("byte_fallback", false)
	list := c.list("vocab")
	unk := c.int("unk_id")
	c.done()
	if l.err == nil && int(unk) >= len(list) {
		c.fail("unk_id: got %d, want less than the %d tokens", unk, len(list))
	}
	tokens, ids, scores := l.scoredTokens(c, list)
	if l.err != nil {
		return
	}
	lowest := scores[0]
	for _, s := range scores {
		lowest = min(lowest, s)
	}
	m := newUnigram(tokens, ids, scores, lowest-unkPenalty)
	m.unk, m.fused = unk, true
	l.p.model.unigram = m
	l.t.family = "unigram"
	if fallback {
		l.t.family = "unigram with byte fallback"
		m.fallback = new([256]int32)
		for b := range m.fallback {
			m.fallback[b] = byteID(l.t.lookup, byte(b))
		}
	}
}

func (l *loader) scoredTokens(c *object, list []strictjson.Value) (tokens []string, ids []int32, scores []float64) {
	byToken := make(map[string]int32, len(list))
	for i, v := range list {
		if l.err == nil && i >= maxID {
			c.fail("vocab: got %d tokens, want at most %d", len(list), maxID)
		}
		if v.Kind != strictjson.Array || len(v.Kids) != 2 || v.Kids[0].Kind != strictjson.String || v.Kids[1].Kind != strictjson.Number {
			c.fail("vocab[%d]: got %s, want a token and its score", i, v)
		}
		if l.err != nil {
			return nil, nil, nil
		}
		tok := v.Kids[0].Text
		if len(tok) >= maxPiece {
			c.fail("vocab[%d]: a token of %d bytes, want less than %d", i, len(tok), maxPiece)
		}
		score, ok := scoreOf(v.Kids[1].Text)
		if !ok {
			c.fail("vocab[%d]: score of %q: got %s, want a number of at most %g", i, tok, v.Kids[1].Text, maxScore)
		}
		l.t.words.set(int32(i), tok)
		byToken[tok] = int32(i)
		tokens, ids, scores = append(tokens, tok), append(ids, int32(i)), append(scores, score)
	}
	l.t.lookup = maps.Clone(byToken)
	l.vocab = int32(len(list))
	return tokens, ids, scores
}

// maxScore bounds the size of a score, so that no sum becomes infinite.
const maxScore = 1e30

// scoreOf reads a number as the JSON reader of Hugging Face tokenizers does,
// which is not the nearest float64 but the digits as a whole number, as many as
// fit into 64 bits, times or over a power of ten. Where two ways of cutting a
// text are worth the same, the last bit decides.
func scoreOf(s string) (f float64, ok bool) {
	digits, neg := strings.CutPrefix(s, "-")
	digits, tail, _ := strings.Cut(strings.ToLower(digits), "e")
	whole, fraction, _ := strings.Cut(digits, ".")
	exp, ok := exponentOf(tail)
	if !ok {
		return 0, false
	}
	n, used := uint64(0), 0
	for ; used < len(whole); used++ {
		if n, ok = appendDigit(n, whole[used]); !ok {
			exp += len(whole) - used
			break
		}
	}
	for i := 0; ok && i < len(fraction); i++ {
		if n, ok = appendDigit(n, fraction[i]); ok {
			exp--
		}
	}
	if f, ok = scale(float64(n), exp); neg {
		f = -f
	}
	return f, ok && f <= maxScore && f >= -maxScore
}

// appendDigit is 10·n + d if that fits; else n, and not ok.
func appendDigit(n uint64, d byte) (uint64, bool) {
	const most = 1<<64 - 1
	v := uint64(d - '0')
	if n > (most-v)/10 {
		return n, false
	}
	return 10*n + v, true
}

// exponentOf reads a whole number of a size that can matter.
func exponentOf(s string) (n int, ok bool) {
	digits := strings.TrimLeft(s, "+-")
	for _, d := range []byte(digits) {
		if n = 10*n + int(d-'0'); n > 1<<20 {
			return 0, false
		}
	}
	if strings.HasPrefix(s, "-") {
		n = -n
	}
	return n, true
}

// scale is f · 10^exp; powers of ten up to 308 are exact or nearest.
func scale(f float64, exp int) (float64, bool) {
	for f != 0 && exp < -308 {
		f /= 1e308
		exp += 308
	}
	switch {
	case f == 0 || exp < -308:
		return f, true
	case exp < 0:
		return f / powerOfTen(-exp), true
	case exp <= 308:
		return f * powerOfTen(exp), true
	}
	return 0, false
}

// powerOfTen is 10^n for n from 0 to 308, rounded to the nearest.
func powerOfTen(n int) float64 {
	f, _ := strconv.ParseFloat("1e"+strconv.Itoa(n), 64)
	return f
}
