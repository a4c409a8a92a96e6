// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"pleach/corpus"
	"pleach/internal/fault"
)

// quickPlan is plan.json: what a folder of the quickstart was made for.
type quickPlan struct {
	Minutes float64  `json:"minutes"`
	Text    []string `json:"text"` // absolute; empty: found on this machine
	About   string   `json:"about"`
	Names   []string `json:"names"` // what general and domain are
	Prompt  string   `json:"prompt"`
	Sizes   sizing   `json:"sizes"`
}

const planFile = "plan.json"

// prepare goes by the plan of the folder, or makes one.
func (q *quickstart) prepare(ctx context.Context) error {
	var texts []string
	for _, t := range q.texts {
		abs, err := filepath.Abs(t)
		if err != nil {
			return fault.Configf("quickstart: --text: %w", err)
		}
		texts = append(texts, abs)
	}
	found, err := q.openPlan()
	if err != nil {
		return err
	}
	if found {
		if err := q.plan.same(q.minutes, texts, q.out); err != nil {
			return err
		}
		q.say("%s: goes on with its plan: %s", q.out, q.plan.Sizes.describe())
		return nil
	}
	c, err := q.findTexts(ctx, texts)
	if err != nil {
		return err
	}
	q.say("texts: %s: general is %s, domain is %s", c.About, c.Names[corpus.General], c.Names[corpus.Domain])
	s, err := q.size()
	if err != nil {
		return err
	}
	q.plan = quickPlan{q.minutes, texts, c.About, c.Names[:], c.Prompt, s}
	q.say("plan: %s", s.describe())
	return q.savePlan()
}

func (q *quickstart) savePlan() error {
	text, err := json.MarshalIndent(q.plan, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(q.out, 0o777); err != nil {
		return fault.Machinef("quickstart: %w", err)
	}
	return writeFile(q.out, planFile, append(text, '\n'))
}

// size measures this machine and sizes what is trained.
func (q *quickstart) size() (sizing, error) {
	if q.sizes != nil {
		return *q.sizes, nil
	}
	run, err := options(q.threads)
	if err != nil {
		return sizing{}, err
	}
	m := machineSpeed{options: run, seconds: 60 * q.minutes}
	s, err := size(m.seconds, m.of)
	s.Precision = usualPrecision(run.Level).String()
	if err == nil {
		q.say("%s", machineLine(run, granted(system())))
		q.say("speed: %.3g GFLOP/s in training steps, precision %s", s.Speed/1e9, s.Precision)
	}
	return s, err
}

// openPlan reads the plan of the folder, if it has one. A folder with anything
// else in it is refused.
func (q *quickstart) openPlan() (bool, error) {
	file := filepath.Join(q.out, planFile)
	text, err := os.ReadFile(file)
	if err == nil {
		if err := json.Unmarshal(text, &q.plan); err != nil {
			return false, fault.Statef("quickstart: %s: %w", file, err)
		}
		if _, err := q.plan.Sizes.spec(); err != nil || len(q.plan.Names) != 2 {
			return false, fault.Statef("quickstart: %s is no plan of this version: choose another --out", file)
		}
		return true, nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return false, fault.Statef("quickstart: %w", err)
	}
	entries, err := os.ReadDir(q.out)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, fault.Statef("quickstart: --out: %w", err)
	}
	if len(entries) > 0 {
		return false, fault.Statef("quickstart: %s holds files but no %s: choose another --out", q.out, planFile)
	}
	return false, nil
}

// same refuses to go on with a plan for something else.
func (p quickPlan) same(minutes float64, texts []string, out string) error {
	var differ []string
	if p.Minutes != minutes {
		differ = append(differ, fmt.Sprintf("--minutes: got %v, it was made with %v", minutes, p.Minutes))
	}
	if !slices.Equal(p.Text, texts) {
		differ = append(differ, fmt.Sprintf("--text: got %s, it was made with %s", listed(texts), listed(p.Text)))
	}
	if len(differ) == 0 {
		return nil
	}
	return fault.Statef("quickstart: %s is of another plan: %s; choose another --out or remove it",
		out, strings.Join(differ, "; "))
}

func listed(texts []string) string {
	if len(texts) == 0 {
		return "none"
	}
	return strings.Join(texts, " ")
}

// makeRecipe writes the recipe of a stage. One that is there already stays: it
// may have been edited, and then its run says whether it still fits.
func (q *quickstart) makeRecipe(i int) error {
	file := q.stages()[i].file
	if exists(filepath.Join(q.out, file)) {
		return nil
	}
	return writeFile(q.out, file, []byte(q.recipe(i)))
}

// recipe is the text of a stage's recipe.
func (q *quickstart) recipe(i int) string {
	p, s := q.plan, q.plan.Sizes
	stages := q.stages()
	baseDir := filepath.ToSlash(filepath.Join("base", "checkpoints", filepath.Base(q.checkpoint(stages[0]))))
	heads := []string{
		fmt.Sprintf("# A small base model on general text: %s.", p.Names[corpus.General]),
		fmt.Sprintf("# The base model goes on with the domain, %s, and nothing else.", p.Names[corpus.Domain]),
		fmt.Sprintf("# The base model goes on with the domain, %s, and a tenth of general text.", p.Names[corpus.Domain]),
	}
	models := fmt.Sprintf(`model:
  preset: %s
  layers: %d
  width: %d
  heads: %d
  ffn: %d
  vocabulary: tokenizer
`, s.Preset, s.Layers, s.Width, s.Heads, s.FFN)
	lr, start, alarm := s.BaseLR, "false", ""
	if i > 0 {
		models = fmt.Sprintf("model: %s\n", baseDir)
		lr, start, alarm = s.ContinueLR, "true", ", alarm: 5 %"
	}
	sources := [][]string{
		{"{path: text/general.jsonl, id: id}"},
		{"{path: text/domain.jsonl, id: id}"},
		{"{path: text/domain.jsonl, id: id, weight: 0.9}", "{path: text/general.jsonl, id: id, weight: 0.1}"},
	}[i]
	return fmt.Sprintf(`%s
%sseed: 0
data:
  sequence: %d
  sources:
    - %s
train:
  until: %d steps
  batch: %d sequences
  precision: %s
  optimizer: {adamw: {lr: %.3g, betas: [0.9, 0.95], decay: 0.1}}
  schedule: {cosine: {warmup: 5 %%, floor: 10 %%}}
  clip: 1.0
checkpoint: {every: 2min, keep: 2}
evaluate:
  at_start: %s
  perplexity:
    general: {path: text/general-heldout.jsonl%s}
    domain: {path: text/domain-heldout.jsonl}
out: %s
`, heads[i], models, s.Sequence, strings.Join(sources, "\n    - "), stages[i].steps, s.Batch, cmp.Or(s.Precision, "f32"), lr, start, alarm,
		stages[i].name)
}
