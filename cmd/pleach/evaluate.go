// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"iter"
	"time"

	"pleach/data"
	"pleach/engine"
	"pleach/eval"
	"pleach/infer"
	"pleach/internal/fault"
	"pleach/model"
	"pleach/track"
	"pleach/train"
)

// scoredRows is the number of rows of T ids that are scored at a time.
func scoredRows(T int) int { return max(1, 2048/T) }

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
func (p *prepared) openTexts() error {
	r := p.recipe.Evaluate
	if len(r.Perplexity) == 0 {
		return nil
	}
	for _, h := range r.Perplexity {
		docs, err := readHeldOut(data.Source{Paths: []string{h.Path}, Name: h.Name}, p.encoder())
		if err != nil {
			return err
		}
		p.texts = append(p.texts, heldOut{h.Name, float64(h.Alarm) / 100, docs})
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
	scorer, err := infer.NewScorer(e, p.model.Spec, plain(), model.Batch{B: p.scoredRows(), T: T}, 0)
	if err != nil {
		return train.Evaluate{}, err
	}
	score := func() ([]train.Score, error) { return scoreTexts(scorer, T, p.first, p.texts) }
	return train.Evaluate{Every: r.Every, AtStart: r.AtStart, Run: score}, nil
}

func (p *prepared) encoder() data.Encoder {
	if p.tokenizer == nil {
		return nil
	}
	return p.tokenizer
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

// readHeldOut reads all documents of a text into memory as ids.
func readHeldOut(src data.Source, enc data.Encoder) ([]eval.Document, error) {
	var docs []eval.Document
	for d, err := range data.Documents(src) {
		if err != nil {
			return nil, err
		}
		switch {
		case d.IDs != nil:
			docs = append(docs, eval.Document{IDs: d.IDs})
		case enc == nil:
			return nil, fault.Dataf("held-out text %s: document %s is text, and the model has no tokenizer", src.Name, d.ID)
		default:
			docs = append(docs, eval.Document{IDs: enc.Encode(nil, d.Text), Bytes: len(d.Text)})
		}
	}
	return docs, nil
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
