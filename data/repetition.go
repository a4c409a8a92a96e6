// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package data

import (
	"cmp"
	"math"
	"slices"
	"sync"
	"unicode/utf8"
)

// A Repetition is how often a run sees the documents of a source.
type Repetition struct {
	Source string
	Tokens int64 // of the source, with special ids
	Exact  bool  // false: Tokens is estimated from a sample
	Taken  int64 // tokens that the run takes from it
}

// Times is how often the source is seen; 0 for one of no token.
func (r Repetition) Times() float64 {
	if r.Tokens == 0 {
		return 0
	}
	return float64(r.Taken) / float64(r.Tokens)
}

// Of a source so many parts are looked at, evenly spaced, of so many stored bytes
// each; of the documents that start in a part so many bytes of text are tokenized.
// Where files are compressed or tables, a part costs a block or a file.
const (
	measureParts  = 64
	measurePacked = 8
	measurePart   = 16 << 10
	measureText   = 64 << 10
)

// Repetitions is how often a run of so many rows would see each source, in the
// order of the spec, and how many rows it has: fewer than asked for if the sources
// have then been read as often as their Epochs say.
//
//	times[s] = Σ over stages, share[s]·T·rows of the stage / tokens[s]
//
// where the shares of sources that have ended fall to the others. The tokens of a
// source are those that [Loader.Epoch] has counted, else estimated from at most 4
// MiB of its text, and kept as Epoch keeps its count. What a lane has left when
// its sources end, and padding, are left out of account.
func (l *Loader) Repetitions(rows int64) (each []Repetition, ends int64, err error) {
	for i, s := range l.sources {
		m, err := l.measured(i)
		if err != nil {
			return nil, 0, err
		}
		each = append(each, Repetition{Source: s.Name, Tokens: m.Tokens, Exact: m.Exact})
	}
	taken, end := l.takes(float64(rows), each)
	for i := range each {
		each[i].Taken = int64(math.Round(taken[i]))
	}
	return each, int64(math.Floor(end + 1e-6)), nil
}

// takes is the tokens that a run of so many rows takes from each source, and the
// rows after which it ends.
func (l *Loader) takes(rows float64, sources []Repetition) (taken []float64, ends float64) {
	T := float64(l.spec.Sequence)
	taken = make([]float64, len(sources))
	left := make([]float64, len(sources)) // until the source ends
	for i, s := range l.sources {
		if left[i] = math.Inf(1); s.Epochs > 0 {
			left[i] = s.Epochs * float64(sources[i].Tokens)
		}
	}
	at := 0.0
	for i, st := range l.stages {
		end := rows * T
		if i+1 < len(l.stages) {
			end = min(end, float64(l.stages[i+1].row)*T)
		}
		for at < end {
			sum := 0.0
			for s, share := range st.shares {
				if left[s] > 0 {
					sum += share
				}
			}
			if sum == 0 {
				return taken, at / T
			}
			step, last := end-at, -1 // up to where the next source ends
			for s, share := range st.shares {
				if n := left[s] / share * sum; share > 0 && left[s] > 0 && n <= step {
					step, last = n, s
				}
			}
			for s, share := range st.shares {
				if left[s] > 0 {
					taken[s] += step * share / sum
					left[s] -= step * share / sum
				}
			}
			if last >= 0 {
				left[last] = 0
			}
			at += step
		}
	}
	return taken, rows
}

// measure is how many tokens a source has.
type measure struct {
	Tokens int64 `json:"tokens"`
	Exact  bool  `json:"exact"`
}

// measured is the tokens of a source: counted, kept from before, or estimated now.
func (l *Loader) measured(i int) (measure, error) {
	l.mu.Lock()
	e := l.counted
	l.mu.Unlock()
	if i == 0 && e.SourceTokens > 0 {
		return measure{e.SourceTokens, e.Exact}, nil
	}
	s := l.sources[i]
	if s.Rows {
		refs, err := s.all()
		return measure{int64(len(refs)) * int64(l.spec.Sequence), true}, err
	}
	var m measure
	name := l.cacheFile("size", i)
	if recall(name, &m) && m.Tokens > 0 {
		return m, nil
	}
	m, err := l.estimate(s)
	if err == nil {
		keep(name, m)
	}
	return m, err
}

// estimate tokenizes a small fixed sample of a source, or all of a small one.
func (l *Loader) estimate(s *source) (measure, error) {
	s = s.bare()
	defer s.close()
	n := int64(measureParts)
	if slices.ContainsFunc(s.files, func(f file) bool { return !f.plain() }) {
		n = measurePacked
	}
	var starts []int64
	all := s.size <= n*measurePart
	for i := range n {
		at := i * measurePart
		if !all {
			at = int64(float64(i) * float64(s.size-measurePart) / float64(n-1))
		}
		if at < s.size {
			starts = append(starts, at)
		}
	}
	var mu sync.Mutex
	var sum sampled
	err := spread(l.closing, len(starts), func() *lane { return &lane{spec: &l.spec, enc: l.enc} },
		func(w *lane, i int) error {
			part, err := w.sample(s, starts[i], min(starts[i]+measurePart, s.size))
			mu.Lock()
			defer mu.Unlock()
			sum.tokens += part.tokens
			sum.bytes += part.bytes
			sum.cut = sum.cut || part.cut
			return err
		})
	if closed := l.closed(); closed != nil {
		err = closed
	}
	if err != nil || sum.bytes == 0 {
		return measure{}, err
	}
	if all && !sum.cut {
		return measure{int64(math.Round(sum.tokens)), true}, nil
	}
	return measure{int64(math.Round(sum.tokens * float64(s.size) / float64(sum.bytes))), false}, nil
}

// sampled is what a sample holds: tokens, and the stored bytes of its documents.
type sampled struct {
	tokens float64
	bytes  int64
	cut    bool // not all of it was tokenized
}

// sample tokenizes documents that start in [lo,hi), up to measureText bytes of
// text. A longer one is taken to go on as it begins.
func (n *lane) sample(s *source, lo, hi int64) (sampled, error) {
	var sum sampled
	refs, err := s.starting(lo, hi)
	if err != nil {
		return sum, err
	}
	left := measureText
	for i, r := range refs {
		d, why, err := s.read(r, &n.c)
		if err != nil {
			return sum, err
		}
		sum.bytes += s.takes(r)
		if why != none {
			continue
		}
		n.doc = d
		scale := 1.0
		if whole := len(d.Text); whole > left {
			d.Text = head(d.Text, left)
			scale, sum.cut = float64(whole)/float64(cmp.Or(len(d.Text), whole)), true
		}
		if err := n.encode(d); err != nil {
			return sum, err
		}
		sum.tokens += scale * float64(len(n.ids))
		if left -= len(d.Text); left < measureText/64 {
			sum.cut = sum.cut || i < len(refs)-1
			break
		}
	}
	return sum, nil
}

// head is about the first n bytes of a text, whole characters.
func head(text []byte, n int) []byte {
	for n > 0 && n < len(text) && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:min(n, len(text))]
}
