// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package eval

import (
	"iter"
	"math"

	"pleach/infer"
	"pleach/internal/fault"
)

// Document is held-out ids, without special ones, and the number of UTF-8 bytes
// of their text.
type Document struct {
	IDs   []int32
	Bytes int
}

// Result is what a text got, summed over its documents.
type Result struct {
	NLL       float64 // nats
	Tokens    int64   // ids scored: all of them
	Bytes     int64
	Documents int64
}

// Perplexity is e^(NLL/Tokens).
func (r Result) Perplexity() float64 { return math.Exp(r.NLL / float64(r.Tokens)) }

// BitsPerByte is NLL/(ln 2 · Bytes), which compares models of different
// tokenizers; 0 where the text is not known.
func (r Result) BitsPerByte() float64 {
	if r.Bytes == 0 {
		return 0
	}
	return r.NLL / math.Ln2 / float64(r.Bytes)
}

// Scorer gives segments their losses, in their order: an [infer.Scorer].
type Scorer interface {
	Score(segments iter.Seq[infer.Segment], yield func(i int, r infer.Scored) error) error
	// Vocabulary is one more than the largest id.
	Vocabulary() int
}

// Perplexity scores every id of every document once, in rolling windows of T
// ids; the first id is conditioned on first, the begin-of-sequence. Documents
// without ids are left out; a text without any is an error.
//
// Sums run in float64 in the order of ids, so a result does not depend on how
// the scorer packs.
func Perplexity(s Scorer, T int, first int32, docs iter.Seq2[Document, error]) (Result, error) {
	var r Result
	if T < 1 {
		return r, fault.Configf("eval: perplexity: windows of %d ids, want at least 1", T)
	}
	if v := s.Vocabulary(); first < 0 || int(first) >= v {
		return r, fault.Dataf("eval: perplexity: documents begin after id %d: the vocabulary has %d", first, v)
	}
	var broken error
	err := s.Score(r.segments(s.Vocabulary(), T, first, docs, &broken), func(_ int, got infer.Scored) error {
		for _, x := range got.Loss {
			r.NLL += float64(x)
		}
		return nil
	})
	switch {
	case broken != nil:
		return r, broken
	case err != nil:
		return r, err
	case r.Tokens == 0:
		return r, fault.Dataf("eval: perplexity: the text has no tokens")
	}
	return r, nil
}

// segments are the windows of all documents, which it counts. It ends at the
// first error.
func (r *Result) segments(
	V, T int, first int32, docs iter.Seq2[Document, error], broken *error,
) iter.Seq[infer.Segment] {
	return func(yield func(infer.Segment) bool) {
		at := -1
		for d, err := range docs {
			if at++; err == nil {
				err = check(d.IDs, at, V)
			}
			if *broken = err; err != nil {
				return
			}
			if len(d.IDs) == 0 {
				continue
			}
			r.Documents++
			r.Bytes += int64(d.Bytes)
			r.Tokens += int64(len(d.IDs))
			for w := range Windows(d.IDs, T, first) {
				if !yield(w) {
					return
				}
			}
		}
	}
}

func check(ids []int32, document, V int) error {
	for i, id := range ids {
		if id < 0 || int(id) >= V {
			return fault.Dataf("eval: perplexity: document %d: id %d at %d: the vocabulary has %d", document, id, i, V)
		}
	}
	return nil
}

// Windows cuts a document of at least one id into segments of at most T ids such that each id is a
// label once: the first window begins with first, in place of an id before the
// document; each further one begins with the id before those it scores. The last
// is moved back to be of T ids too, and scores only what is new.
//
// The windows are those of lm-evaluation-harness, get_rolling_token_windows with
// a context of one.
func Windows(ids []int32, T int, first int32) iter.Seq[infer.Segment] {
	return func(yield func(infer.Segment) bool) {
		n := min(T, len(ids))
		head := append([]int32{first}, ids[:n-1]...)
		if !yield(infer.Segment{IDs: head, Labels: ids[:n]}) {
			return
		}
		for done := n; done < len(ids); {
			end := min(done+T, len(ids))
			labels := make([]int32, T)
			for i := range labels {
				labels[i] = -1
			}
			copy(labels[T-(end-done):], ids[done:end])
			if !yield(infer.Segment{IDs: ids[end-T-1 : end-1], Labels: labels}) {
				return
			}
			done = end
		}
	}
}
