// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"pleach/corpus"
	"pleach/internal/fault"
	"pleach/kernel"
	"pleach/merge"
)

const (
	mergeFile   = "merge.yaml"
	mergeScores = "merged.json"
)

// mergeModels merges the base and the continued model half and half.
func (q *quickstart) mergeModels(ctx context.Context) error {
	out := filepath.Join(q.out, "merged")
	if exists(out) {
		return nil
	}
	base, continued := q.checkpoint(q.stages()[0]), q.checkpoint(q.stages()[1])
	text := fmt.Sprintf(`# The base model and what the domain made of it, half and half: pleach merge %s OUT
merge_method: slerp
base_model: %q
models:
  - model: %q
  - model: %q
parameters:
  t: 0.5
`, filepath.Join(q.out, mergeFile), base, base, continued)
	file := filepath.Join(q.out, mergeFile)
	if err := os.WriteFile(file, []byte(text), 0o666); err != nil {
		return fault.Machinef("quickstart: %w", err)
	}
	o := &merging{config: file, out: out, tokenizer: true, card: true}
	o.limits = merge.Limits{Memory: 1 << 30, Threads: threadsOf(q.threads), Level: kernel.Best()}
	o.options.Find = o.find
	p, err := o.plan(q.stderr)
	if err != nil {
		return err
	}
	defer p.Close()
	if err := o.write(ctx, q.stderr, p); err != nil {
		if ctx.Err() != nil {
			return errInterrupted()
		}
		return err
	}
	return nil
}

// mergedScores measures the merged model once, as the others were.
func (q *quickstart) mergedScores(ctx context.Context) (row tableRow, err error) {
	row.Label = "base + continued merged"
	file := filepath.Join(q.out, mergeScores)
	if b, err := os.ReadFile(file); err == nil && json.Unmarshal(b, &row.Score) == nil {
		return row, nil
	}
	o := measuring{sequence: q.plan.Sizes.Sequence, field: "text"}
	o.threads = q.threads
	for side, name := range corpus.Sides() {
		o.texts = append(o.texts, name+"="+filepath.Join(q.out, "text", corpus.FileName(side, true)))
	}
	run, err := options(q.threads)
	if err != nil {
		return row, err
	}
	o.threads, o.level = run.Threads, run.Level
	m, err := openModel(filepath.Join(q.out, "merged"))
	if err != nil {
		return row, err
	}
	defer m.close()
	all, err := o.measureAll(ctx, q.stderr, m, nil)
	if ctx.Err() != nil {
		return row, errInterrupted()
	}
	if err != nil {
		return row, err
	}
	for side := range row.Score {
		row.Score[side] = score{all[side].Perplexity, all[side].BitsPerByte}
	}
	b, err := json.Marshal(row.Score)
	part := file + ".part"
	if err := errors.Join(err, os.WriteFile(part, b, 0o666), os.Rename(part, file)); err != nil {
		return row, fault.Machinef("quickstart: %w", err)
	}
	return row, nil
}
