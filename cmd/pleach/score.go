// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"math"

	"github.com/spf13/cobra"

	"pleach/infer"
	"pleach/internal/fault"
	"pleach/optim"
)

// mostTop bounds the memory and the length of a line that --top takes.
const mostTop = 1000

func newScore() *cobra.Command {
	var o compute
	var top int
	c := &cobra.Command{
		Use:   "score MODEL ROWS.jsonl",
		Short: "Log-probabilities of given tokens or texts",
		Long: `Score prints what a model thinks of each row. A line of ROWS.jsonl ("-": stdin) is

  {"tokens": [1, 2, 3]}   or   {"text": "Once upon a time"}

and a line of the result, in the same order, is

  {"row":0,"tokens":3,"nll":5.1,"logprobs":[-2.3,-2.8],"top":[[[17,-0.9],[4,-1.2]],…]}

where logprobs are those of ids 2…N in nats, each given the ids before it, nll is
minus their sum, and top (with --top K) lists the K most probable ids after each
position with their log-probabilities. Nothing is added to a row: no
begin-of-sequence, nor to a text, whose special tokens count where the tokenizer
knows them.`,
		Example: `  pleach score llama-2-7b rows.jsonl > scores.jsonl
  echo '{"text":"The sky is blue."}' | pleach score runs/mine - --top 5`,
		Args: cobra.ExactArgs(2),
		RunE: func(c *cobra.Command, args []string) error {
			if err := o.check(c); err != nil {
				return err
			}
			return scoreRows(c, o, args[0], args[1], top)
		},
	}
	o.flags(c)
	o.precisionFlag(c, optim.F32.String())
	c.Flags().IntVar(&top, "top", 0, "list so many most probable ids after each position")
	return c
}

func scoreRows(c *cobra.Command, o compute, path, rows string, top int) error {
	m, err := openModel(path)
	if err != nil {
		return err
	}
	defer m.close()
	if most := min(m.config.V, mostTop); top < 0 || top > most {
		return errUsage(c, "--top: got %d, want 0 to %d", top, most)
	}
	r := &rowReader{source: m}
	s := &scorer{compute: o, source: m, top: top, where: r.where}
	defer s.close()
	out := bufio.NewWriter(c.OutOrStdout())
	err = s.Score(r.segments(c.Context(), lines(rows, c.InOrStdin())), func(i int, got infer.Scored) error {
		row, err := newScoredRow(i, got, top)
		if err != nil {
			return fault.Dataf("%s: %w", r.where(0), err)
		}
		r.held = r.held[1:]
		return printJSON(out, row)
	})
	if flushed := out.Flush(); err == nil {
		err = printed(flushed)
	}
	if err == nil {
		err = r.err
	}
	if err == nil && m.tokenizer != nil {
		err = m.tokenizer.Err()
	}
	return err
}

// rowReader turns lines into segments. Rows before a bad line are still scored.
type rowReader struct {
	source *source
	call   bool     // texts become ids as by the tokenizer's own call
	held   []string // where the rows that are not scored yet stand
	err    error    // of the line that ended it
}

// where is the place of the j-th row that is not scored yet.
func (r *rowReader) where(j int) string { return r.held[j] }

func (r *rowReader) segments(ctx context.Context, all iter.Seq2[line, error]) iter.Seq[infer.Segment] {
	return func(yield func(infer.Segment) bool) {
		for l, err := range all {
			var ids []int32
			if err == nil {
				ids, err = r.ids(l)
			}
			if err == nil {
				err = interrupted(ctx)
			}
			if r.err = err; err != nil {
				return
			}
			r.held = append(r.held, l.where)
			if !yield(infer.Whole(ids)) {
				return
			}
		}
	}
}

// ids are those of one line, within what the model can take.
func (r *rowReader) ids(l line) ([]int32, error) {
	var fields map[string]json.RawMessage
	if err := l.parse(&fields); err != nil {
		return nil, err
	}
	tokens, text := given(fields["tokens"]), given(fields["text"])
	if (tokens == nil) == (text == nil) {
		return nil, l.errorf("want exactly one of tokens and text")
	}
	ids, err := r.encode(l, tokens, text)
	if err != nil {
		return nil, err
	}
	c := r.source.config
	switch n := len(ids); {
	case n == 0:
		return nil, l.errorf("a row of no ids, want at least one")
	case n > c.MaxT:
		return nil, l.errorf("a row of %d ids, the model has %d positions", n, c.MaxT)
	}
	for i, id := range ids {
		if id < 0 || int(id) >= c.V {
			return nil, l.errorf("id %d at %d: the vocabulary has %d", id, i, c.V)
		}
	}
	return ids, nil
}

func (r *rowReader) encode(l line, tokens, text json.RawMessage) (ids []int32, err error) {
	if tokens != nil {
		return ids, line{tokens, l.where + ": tokens"}.parse(&ids)
	}
	t, err := r.source.needTokenizer()
	if err != nil {
		return nil, l.errorf("%w", err)
	}
	var s string
	if err := (line{text, l.where + ": text"}).parse(&s); err != nil {
		return nil, err
	}
	if r.call {
		return t.EncodeSpecial(nil, []byte(s)), nil
	}
	return t.Encode(nil, []byte(s)), nil
}

// given is nil for a field that is not there or null.
func given(raw json.RawMessage) json.RawMessage {
	if string(raw) == "null" {
		return nil
	}
	return raw
}

// scoredRow is a line of the result.
type scoredRow struct {
	Row      int        `json:"row"`
	Tokens   int        `json:"tokens"`
	NLL      float64    `json:"nll"`
	LogProbs []float32  `json:"logprobs"`
	Top      [][]choice `json:"top,omitempty"`
}

// choice is an id and its log-probability, in JSON a list of the two.
type choice struct {
	id      int32
	logprob float32
}

func (c choice) MarshalJSON() ([]byte, error) { return json.Marshal([]any{c.id, c.logprob}) }

func newScoredRow(i int, got infer.Scored, top int) (scoredRow, error) {
	n := len(got.Loss)
	r := scoredRow{Row: i, Tokens: n, LogProbs: make([]float32, n-1)}
	for j, loss := range got.Loss[:n-1] {
		if math.IsNaN(float64(loss)) || math.IsInf(float64(loss), 0) {
			return r, fmt.Errorf("the log-probability of the id at %d is %v: the model computes beyond float32",
				j+1, -loss)
		}
		r.NLL += float64(loss)
		r.LogProbs[j] = 0 - loss // no negative zero
	}
	for p := 0; p < len(got.Top); p += 2 * top {
		var best []choice
		for k := p; k < p+2*top; k += 2 {
			best = append(best, choice{int32(got.Top[k]), got.Top[k+1]})
		}
		r.Top = append(r.Top, best)
	}
	return r, nil
}
