// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"pleach/engine/cpu"
	"pleach/infer"
	"pleach/internal/fault"
	"pleach/token"
)

// generation is what generate is told.
type generation struct {
	compute
	ids    string
	tokens int
	how    infer.Sampling
	json   bool
	file   string // of prompts
	batch  int    // of them at a time
}

func newGenerate() *cobra.Command {
	var o generation
	c := &cobra.Command{
		Use:   "generate MODEL [PROMPT | --ids 1,2,3 | --prompts FILE.jsonl]",
		Short: "More text, or ids, after a prompt",
		Long: `Generate extends a prompt. PROMPT is encoded as the tokenizer's own call would do
it, with begin-of-sequence where the tokenizer adds one; to --ids nothing is
added; without either it starts from begin-of-sequence, or end-of-sequence where
there is none. It ends after --tokens ids, at end-of-sequence, when the model's
positions are full, or with Ctrl-C.

The new text appears on stdout as it comes. With --json it is one line at the end:
{"ids":[new ids],"text":…}. A model without a tokenizer gives ids alone, separated
by commas.

A line of --prompts ("-": stdin) is {"text": "Once upon a time"} or {"tokens": [1, 2]},
and a line of the result, in the same order, {"row":0,"ids":[new ids],"text":…}: what
the prompt gets alone. --batch of them are extended at a time, which costs little more
than one: the weights are read once for all.`,
		Example: `  pleach generate runs/mine "Once upon a time" --tokens 200 --temperature 0.8 --top-p 0.95 --seed 7
  pleach generate llama-2-7b --ids 1,9038,2501 --json
  pleach generate llama-2-7b --prompts questions.jsonl --precision int8 --batch 16`,
		Args: cobra.RangeArgs(1, 2),
		RunE: func(c *cobra.Command, args []string) error {
			if err := o.check(c, args); err != nil {
				return err
			}
			if o.file != "" {
				return o.runAll(c, args[0])
			}
			return o.run(c, args[0], args[1:])
		},
	}
	o.flags(c)
	o.precisionFlag(c, asStored)
	c.Flags().StringVar(&o.ids, "ids", "", "the prompt as ids")
	c.Flags().StringVar(&o.file, "prompts", "", "a file of prompts, one a line")
	c.Flags().IntVar(&o.batch, "batch", 8, "most prompts of --prompts to extend at a time")
	c.Flags().IntVar(&o.tokens, "tokens", 128, "most ids to add")
	c.Flags().Float64Var(&o.how.Temperature, "temperature", 0,
		"0: always the most probable id; 1: as the model has learned; more: wilder")
	c.Flags().Float64Var(&o.how.TopP, "top-p", 1, "draw from the most probable ids that add up to this")
	c.Flags().Uint64Var(&o.how.Seed, "seed", 0, "the same seed draws the same ids")
	c.Flags().BoolVar(&o.json, "json", false, "print one line of JSON")
	return c
}

func (o *generation) check(c *cobra.Command, args []string) error {
	switch {
	case len(args) == 2 && c.Flags().Changed("ids"):
		return errUsage(c, "got a prompt and --ids, want one of them")
	case o.file != "" && (len(args) == 2 || c.Flags().Changed("ids")):
		return errUsage(c, "got a prompt and --prompts, want one of them")
	case o.file == "" && c.Flags().Changed("batch"):
		return errUsage(c, "got --batch without --prompts")
	case o.batch < 1 || o.batch > 1024:
		return errUsage(c, "--batch: got %d, want 1 to 1024", o.batch)
	case o.tokens < 0:
		return errUsage(c, "--tokens: got %d, want 0 or more", o.tokens)
	case c.Flags().Changed("top-p") && o.how.TopP == 0:
		return errUsage(c, "--top-p: got 0, want more than 0 and at most 1")
	}
	if err := o.how.Check(); err != nil {
		return errUsage(c, "%s", strings.TrimPrefix(err.Error(), "infer: "))
	}
	return o.compute.check(c)
}

func (o *generation) run(c *cobra.Command, path string, text []string) error {
	m, err := openModel(path)
	if err != nil {
		return err
	}
	defer m.close()
	prompt, err := o.prompt(c, m, text)
	if err != nil {
		return err
	}
	e, g, err := o.start(m, len(prompt), 1)
	if err != nil {
		return err
	}
	defer e.Close()
	defer restrain(e)()
	show := &writer{w: c.OutOrStdout(), silent: o.json}
	if m.tokenizer != nil {
		show.text = m.tokenizer.Stream()
	}
	ids, err := g.Generate(c.Context(), prompt, o.tokens, o.how, stops(m), show.id)
	if show.err != nil {
		return printed(show.err)
	}
	if err != nil {
		return err
	}
	if !o.json {
		return show.end()
	}
	return o.result(c.OutOrStdout(), m, ids)
}

// prompt is the ids that generation starts from.
func (o *generation) prompt(c *cobra.Command, m *source, text []string) ([]int32, error) {
	var ids []int32
	switch {
	case c.Flags().Changed("ids"):
		var err error
		if ids, err = parseIDs(o.ids); err != nil {
			return nil, errUsage(c, "--ids: %v", err)
		}
		if len(ids) == 0 {
			return nil, errUsage(c, "--ids: got none, want at least one")
		}
	case len(text) > 0:
		t, err := m.needTokenizer()
		if err != nil {
			return nil, err
		}
		ids = t.EncodeSpecial(nil, []byte(text[0]))
		if err := t.Err(); err != nil {
			return nil, err
		}
	}
	if len(ids) > 0 {
		return ids, m.inVocabulary(ids)
	}
	bos, eos := m.specials()
	if bos < 0 && eos < 0 {
		return nil, fault.Dataf("model %s knows neither begin- nor end-of-sequence to start from: give a prompt",
			m.dir)
	}
	if bos < 0 {
		bos = eos
	}
	return []int32{bos}, nil
}

func (s *source) inVocabulary(ids []int32) error {
	for i, id := range ids {
		if id < 0 || int(id) >= s.config.V {
			return fault.Dataf("the prompt: id %d at %d: the vocabulary has %d", id, i, s.config.V)
		}
	}
	return nil
}

// start makes an engine with the model for sequences, so many at a time, of a prompt and
// what is to be added.
func (o *generation) start(m *source, prompt, slots int) (*cpu.Engine, *infer.Generator, error) {
	c := m.config
	if prompt > c.MaxT {
		return nil, nil, fault.Dataf("a prompt of %d ids, the model has %d positions", prompt, c.MaxT)
	}
	T := prompt + min(o.tokens, c.MaxT-prompt)
	layout := o.layout(m)
	programs, err := infer.Programs(c.Spec, layout, T, slots)
	if err != nil {
		return nil, nil, err
	}
	what := fmt.Sprintf("model %s with %d positions", m.dir, T)
	if slots > 1 {
		what += fmt.Sprintf(" of %d sequences", slots)
	}
	if err := fitsMemory(what, o.options(), programs...); err != nil {
		return nil, nil, err
	}
	e := cpu.New(o.options())
	g, err := infer.NewGenerator(e, c.Spec, layout, T, slots)
	if err == nil {
		err = m.load(e, layout)
	}
	if err != nil {
		e.Close()
		return nil, nil, err
	}
	return e, g, nil
}

// stops are the ids that end a text.
func stops(m *source) []int32 {
	ids := slices.Clone(m.config.EOS)
	if _, eos := m.specials(); eos >= 0 {
		ids = append(ids, eos)
	}
	return ids
}

// result prints what was generated as JSON. The text of a model without
// tokenizer is null.
func (o *generation) result(w io.Writer, m *source, ids []int32) error {
	return printJSON(w, newGenerated(m, ids))
}

// generated is what a line of JSON says.
type generated struct {
	IDs  []int32 `json:"ids"`
	Text *string `json:"text"`
}

func newGenerated(m *source, ids []int32) generated {
	g := generated{IDs: ids}
	if m.tokenizer != nil {
		s := m.tokenizer.DecodeText(ids)
		g.Text = &s
	}
	if ids == nil {
		g.IDs = []int32{}
	}
	return g
}

// writer shows ids as they come: as text, or where there is no tokenizer as
// numbers.
type writer struct {
	w      io.Writer
	silent bool
	text   *token.Decoder
	some   bool
	err    error
}

func (w *writer) id(id int32) bool {
	switch {
	case w.silent:
	case w.text != nil:
		w.print(w.text.Next(id))
	case w.some:
		w.print(fmt.Sprintf(",%d", id))
	default:
		w.print(fmt.Sprint(id))
	}
	w.some = true
	return w.err == nil
}

func (w *writer) print(s string) {
	if s != "" && w.err == nil {
		_, w.err = io.WriteString(w.w, s)
	}
}

// end prints what is left, and a newline.
func (w *writer) end() error {
	if w.text != nil {
		w.print(w.text.Flush())
	}
	w.print("\n")
	return printed(w.err)
}
