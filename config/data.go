// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package config

import "pleach/internal/unit"

// Data is what is read and how it becomes rows.
type Data struct {
	Sequence  int // T; 0: the model's maximum, at most 4096
	Sources   []Source
	Lanes     int    // 0: the number of sequences per batch
	Shuffle   string // "window" or "none"
	Documents string // "masked" or "joined"
	BOS       bool
	Pack      string // "split" or "whole"
	Stages    []Stage
}

// Stage is a mixture from some point of the run on.
type Stage struct {
	From    unit.Until    // steps or tokens
	Weights []StageWeight // of the sources that get another one
}

// StageWeight is a source's weight in a stage.
type StageWeight struct {
	Name   string // of the source
	Weight float64
}

// Source is one kind of documents.
type Source struct {
	Paths  []string // files, folders and globs, absolute, and URLs; globs are not expanded
	Name   string   // unique in the recipe
	Weight float64  // share of tokens against the other sources
	Field  string   // JSON field of the text or the ids
	ID     string   // JSON field that names the document, or ""
	Mask   string   // JSON field of the mask, or ""
	Rows   bool
	Format string // "text", "lines", "jsonl", "parquet", "arrow", or "" to go by the file
	Epochs int    // 0: no limit
	// Damaged is how many damaged documents may be left out; 0: the first is an error.
	Damaged int
}

func (d *Data) fields() []field {
	return []field{
		{
			key: "sequence", auto: "the model's maximum, at most 4096", to: &d.Sequence,
			check: func() string { return atLeast(d.Sequence, 1) },
			doc:   "T: how many targets a row has. A row is T+1 ids.",
		},
		{key: "sources", to: sources{&d.Sources}, need: true, doc: "A list of them."},
		{key: "stages", to: stages{&d.Stages}, doc: "Mixtures that change during a run: a list of `{from: " +
			"80B tokens, weights: {NAME: 0.2}}`. Sources that a stage does not name keep their weights."},
		{key: "lanes", auto: "the sequences per batch", to: &d.Lanes, check: func() string {
			return atLeast(d.Lanes, 1)
		}, doc: "Independent streams of documents, dealt out to the rows in turn. Fixed for " +
			"the life of a run."},
		{
			key: "shuffle", def: "window", words: []string{"window", "none"}, to: &d.Shuffle,
			doc: "`window` shuffles within a block of a source and permutes the blocks, " +
				"`none` keeps the order of the files.",
		},
		{
			key: "documents", def: "masked", words: []string{"masked", "joined"},
			to: &d.Documents, doc: "`masked`: attention stays within a document, positions " +
				"restart with it, and its first id is no target. `joined`: a row is one text, " +
				"as HLAT trained.",
		},
		{key: "bos", def: "false", to: &d.BOS, doc: "Documents start with the " +
			"begin-of-sequence token."},
		{
			key: "pack", def: "split", words: []string{"split", "whole"},
			to: &d.Pack, doc: "`split` joins documents and cuts them into rows, nothing is " +
				"lost; `whole` never cuts a document that fits into a row, and pads what stays " +
				"free (best fit, usually 1 or 2 %).",
		},
	}
}

func (s *Source) fields() []field {
	return []field{
		{key: "path", to: pathsTo{&s.Paths}, need: true, doc: "A file, folder or glob, of this machine or " +
			"`s3://`, `gs://`, `azblob://`, `hf://datasets/ORG/NAME[@REVISION]/…`, or a list of them. " +
			"Files may be compressed with gzip or zstd."},
		{
			key: "name", auto: "the name of the first file or folder in `path`", to: &s.Name,
			doc: "What events call it.",
		},
		{key: "weight", def: "1", to: &s.Weight, check: func() string {
			return notNegative(s.Weight)
		}, doc: "Share of the tokens, against the weights of the other sources. 0: only a stage gives it one."},
		{key: "field", def: "text", to: &s.Field, omit: s.Format == "text", doc: "With JSONL and tables: where the text is, " +
			"or the list of ids; names with dots, such as `messages.content`, of which each is a line."},
		{key: "id", auto: "file and line", to: &s.ID, doc: "With JSONL and tables: the field that names " +
			"a document."},
		{key: "mask", auto: "every id counts", to: &s.Mask, doc: "With JSONL and tables, and ids: the " +
			"field with a list of 0 and 1; an id with 1 counts as a target."},
		{key: "rows", def: "false", to: &s.Rows, doc: "Each line is a ready row of T+1 ids, " +
			"taken in the order of the file."},
		{
			key: "format", auto: "by name and head of the file", words: []string{"text", "lines", "jsonl", "parquet", "arrow"},
			to: &s.Format,
			doc: "`text`: a file is a document. `lines`: a line of text is one. `jsonl`: a line " +
				"of JSON is one. `parquet`, `arrow`: a row is one.",
		},
		{key: "epochs", auto: "no limit", to: &s.Epochs, check: func() string {
			return atLeast(s.Epochs, 1)
		}, doc: "How often the documents of this source are seen at most."},
		{key: "damaged", def: "0", to: &s.Damaged, check: func() string {
			return atLeast(s.Damaged, 0)
		}, doc: "How many damaged documents may be left out, counted in the first epoch. 0: the first one ends the run."},
	}
}

func (s *Stage) fields() []field {
	return []field{
		{key: "from", to: &s.From, need: true, check: func() string {
			if s.From.Epochs != 0 {
				return "got epochs, want steps or tokens"
			}
			return ""
		}, doc: "Steps or tokens of the run after which the stage begins."},
		{key: "weights", to: stageWeights{&s.Weights}, need: true, doc: "`{NAME: WEIGHT}` by name of the source."},
	}
}

func (w *StageWeight) short() string { return "weight" }

func (w *StageWeight) fields() []field {
	return []field{{
		key: "weight", to: &w.Weight, need: true, check: func() string { return notNegative(w.Weight) },
		doc: "As in `data.sources`.",
	}}
}

type stages struct{ s *[]Stage }

func (l stages) size() int      { return len(*l.s) }
func (l stages) resize(n int)   { *l.s = make([]Stage, n) }
func (l stages) at(i int) group { return &(*l.s)[i] }

type stageWeights struct{ s *[]StageWeight }

func (l stageWeights) size() int          { return len(*l.s) }
func (l stageWeights) resize(n int)       { *l.s = make([]StageWeight, n) }
func (l stageWeights) at(i int) group     { return &(*l.s)[i] }
func (l stageWeights) name(i int) *string { return &(*l.s)[i].Name }

type sources struct{ s *[]Source }

func (l sources) size() int      { return len(*l.s) }
func (l sources) resize(n int)   { *l.s = make([]Source, n) }
func (l sources) at(i int) group { return &(*l.s)[i] }

// Evaluate is what is measured while training. Without Perplexity nothing is.
type Evaluate struct {
	Every      unit.Every // zero: only at the start and at the end
	AtStart    bool
	Perplexity []HeldOut // in the order of the recipe

	tasks struct{}
}

// HeldOut is a text whose perplexity is followed.
type HeldOut struct {
	Name  string
	Path  string       // absolute, or a URL; may be a folder or a glob
	Alarm unit.Percent // warn when perplexity rises by so much over the start; 0: never
}

func (e *Evaluate) fields() []field {
	return []field{
		{
			key: "every", auto: "only at the start and at the end", to: &e.Every,
			omit: len(e.Perplexity) == 0, doc: "Steps, tokens or time between evaluations.",
		},
		{
			key: "at_start", def: "true", to: &e.AtStart, omit: len(e.Perplexity) == 0,
			doc: "Measure before the first step too: what an alarm compares with.",
		},
		{key: "perplexity", to: heldOuts{&e.Perplexity}, doc: "`{NAME: PATH}` or `{NAME: " +
			"{path, alarm}}`: held-out texts."},
		{
			key: "tasks", to: &e.tasks, plan: "evaluation tasks during training",
			doc: "A list of task names.",
		},
	}
}

func (h *HeldOut) short() string { return "path" }

func (h *HeldOut) fields() []field {
	return []field{
		{key: "path", to: textTo{&h.Path}, need: true, doc: "The text: places and formats as in `data.sources`."},
		{key: "alarm", auto: "–", to: &h.Alarm, doc: "Warn when the perplexity is higher by " +
			"so much than at the start: the model forgets."},
	}
}

type heldOuts struct{ s *[]HeldOut }

func (l heldOuts) size() int          { return len(*l.s) }
func (l heldOuts) resize(n int)       { *l.s = make([]HeldOut, n) }
func (l heldOuts) at(i int) group     { return &(*l.s)[i] }
func (l heldOuts) name(i int) *string { return &(*l.s)[i].Name }
