// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"iter"
	"time"

	"pleach/data"
	"pleach/engine"
	"pleach/eval"
	"pleach/infer"
	"pleach/internal/fault"
	"pleach/model"
	"pleach/plan"
	"pleach/track"
	"pleach/train"
)

// scoredRows is the number of rows of T ids that are scored at a time.
func scoredRows(T int) int { return max(1, plan.Enough/T) }

// scoredRows is the number of rows that evaluation scores at a time: no more than
// the largest text has windows.
func (p *prepared) scoredRows() int {
	T, most := p.recipe.Data.Sequence, 0
	for _, t := range p.texts {
		windows := 0
		for _, d := range t.docs {
			windows += (len(d.IDs) + T - 1) / T
		}
		most = max(most, windows)
	}
	return max(1, min(most, scoredRows(T)))
}

// heldOut is a held-out text, tokenized once.
type heldOut struct {
	name  string
	alarm float64
	docs  []eval.Document
}

// openTexts reads what the recipe wants measured during training.
func (p *prepared) openTexts(ctx context.Context) error {
	r := p.recipe.Evaluate
	if len(r.Perplexity) == 0 {
		return nil
	}
	m := &source{dir: p.recipe.Model.Path, config: p.model, tokenizer: p.tokenizer}
	for _, h := range r.Perplexity {
		text := heldOut{name: h.Name, alarm: float64(h.Alarm) / 100}
		for d, err := range heldOutOf(ctx, data.Source{Paths: []string{h.Path}, Access: p.reach.Access, Name: h.Name}, m, func(int) {}) {
			if err != nil {
				return err
			}
			text.docs = append(text.docs, d)
		}
		p.texts = append(p.texts, text)
	}
	var err error
	p.first, err = firstOf(specialsOf(p.model, p.tokenizer))
	return err
}

// evaluation compiles what scores the texts.
func (p *prepared) evaluation(e engine.Engine) (train.Evaluate, error) {
	if len(p.texts) == 0 {
		return train.Evaluate{}, nil
	}
	r, T := p.recipe.Evaluate, p.recipe.Data.Sequence
	scorer, err := infer.NewScorer(e, p.model.Spec, p.plan.Layout, model.Batch{B: p.scoredRows(), T: T}, 0)
	if err != nil {
		return train.Evaluate{}, err
	}
	score := func() ([]train.Score, error) { return scoreTexts(scorer, T, p.first, p.texts) }
	return train.Evaluate{Every: r.Every, AtStart: r.AtStart, Run: score}, nil
}

// firstOf is the id that stands before a document: begin-of-sequence, else
// end-of-sequence.
func firstOf(bos, eos int32) (int32, error) {
	switch {
	case bos >= 0:
		return bos, nil
	case eos >= 0:
		return eos, nil
	}
	return 0, fault.Dataf("perplexity: neither begin- nor end-of-sequence is known to condition the first id on")
}

func scoreTexts(s *infer.Scorer, T int, first int32, texts []heldOut) ([]train.Score, error) {
	var scores []train.Score
	for _, t := range texts {
		began := time.Now()
		got, err := eval.Perplexity(s, T, first, sequence(t.docs))
		if err != nil {
			return nil, err
		}
		scores = append(scores, train.Score{Alarm: t.alarm, Eval: track.Eval{
			Name: t.name, NLLNats: got.NLL / float64(got.Tokens), Perplexity: got.Perplexity(),
			BitsPerByte: got.BitsPerByte(), Tokens: got.Tokens, Bytes: got.Bytes, Seconds: time.Since(began).Seconds(),
		}})
	}
	return scores, nil
}

// sequence hands out documents that are in memory.
func sequence(docs []eval.Document) iter.Seq2[eval.Document, error] {
	return func(yield func(eval.Document, error) bool) {
		for _, d := range docs {
			if !yield(d, nil) {
				return
			}
		}
	}
}
