// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"pleach/blob"
	"pleach/ckpt"
	"pleach/engine"
	"pleach/half"
	"pleach/internal/fault"
	"pleach/model"
	"pleach/program"
	"pleach/token"
	"pleach/weights"
)

// source is a model directory: Hugging Face's or a checkpoint.
type source struct {
	dir       string
	config    *model.Config
	tensors   tensorSource
	tokenizer *token.Tokenizer // nil if the directory has none
}

// tensorSource is the weights of a model: a weights.Set, or a merge that is not written.
type tensorSource interface {
	Tensors() []weights.Tensor
	ReadFinite(name string, lo, hi int, dst []float32) error
	Close() error
}

// openModel opens a model directory, or the newest checkpoint of a run
// directory, and checks that its weights fit its configuration and its tokenizer
// its vocabulary. Nothing large is read yet.
func openModel(path string) (*source, error) {
	dir, err := modelDir(path)
	if err != nil {
		return nil, err
	}
	text, err := os.ReadFile(filepath.Join(dir, "config.json"))
	if err != nil {
		return nil, fault.Dataf("opening model %s: %w", path, err)
	}
	tensors, err := weights.OpenDir(dir)
	if err != nil {
		return nil, fault.As(fault.Data, fmt.Errorf("opening model %s: %w", path, err))
	}
	s, err := newSource(path, dir, text, tensors)
	if err == nil {
		err = s.openTokenizer()
	}
	if err != nil {
		_ = tensors.Close()
		return nil, err
	}
	return s, nil
}

// newSource is a model with these weights and the text of its config.json. Its
// tokenizer is in dir.
func newSource(path, dir string, text []byte, tensors tensorSource) (*source, error) {
	s := &source{dir: dir, tensors: tensors}
	var err error
	if s.config, err = model.ParseConfig(text); err != nil {
		return nil, fmt.Errorf("opening model %s: %w", path, err)
	}
	have := map[string][]int{}
	for _, t := range tensors.Tensors() {
		have[t.Name] = t.Shape
	}
	if err := s.config.Match(have); err != nil {
		return nil, fmt.Errorf("opening model %s: %w", path, err)
	}
	return s, nil
}

// modelDir is path itself, or its newest good checkpoint if it is a run
// directory.
func modelDir(path string) (string, error) {
	if hasFile(path, "config.json") {
		return path, nil
	}
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return "", fault.Dataf("opening model %s: %w", path, err)
	case !info.IsDir():
		return "", fault.Dataf("opening model %s: it is a file, want a model or run directory", path)
	}
	name, _, _, err := ckpt.Newest(blob.Local(path))
	switch {
	case err != nil:
		return "", fmt.Errorf("opening model %s: %w", path, err)
	case name != "":
		return filepath.Join(path, name), nil
	}
	return "", fault.Dataf("opening model %s: it has neither config.json nor checkpoints", path)
}

func (s *source) openTokenizer() error {
	if !hasFile(s.dir, "tokenizer.json") && !hasFile(s.dir, "tokenizer.model") {
		return nil
	}
	t, err := token.Open(s.dir)
	if err != nil {
		return fault.As(fault.Data, err)
	}
	s.tokenizer = t
	return fits(t, s.config.V, s.dir)
}

func hasFile(dir, name string) bool {
	_, err := os.Stat(filepath.Join(dir, name))
	return err == nil
}

// fits refuses a tokenizer that makes ids which the model has no rows for.
func fits(t *token.Tokenizer, vocabulary int, where string) error {
	if t.Size() > vocabulary {
		return fault.Configf("the tokenizer and the model do not fit: %s: the tokenizer has %d ids, the model's vocabulary %d",
			where, t.Size(), vocabulary)
	}
	return nil
}

// needTokenizer is for verbs that cannot do without.
func (s *source) needTokenizer() (*token.Tokenizer, error) {
	if s.tokenizer == nil {
		return nil, fault.Dataf("model %s has no tokenizer.json or tokenizer.model: text needs one", s.dir)
	}
	return s.tokenizer, nil
}

func (s *source) close() { _ = s.tensors.Close() }

// halved reports whether all weights are bf16.
func (s *source) halved() bool {
	for _, t := range s.tensors.Tensors() {
		if t.DType != half.BF16 && !s.config.Ignored(t.Name) {
			return false
		}
	}
	return true
}

// load writes the weights into an engine that has compiled a program of this
// model in a layout, rounded to its types. Weights that are not finite are refused
// by name, and those that are too large for bf16 by number.
func (s *source) load(e engine.Engine, l program.Layout) error {
	f := engine.NewFloats(e)
	for _, p := range s.config.Held(l) {
		if f.Declare(p.Name, l.Compute); l.Quantized(p.Class) {
			f.DeclareInt8(p.Name, p.Row())
		}
	}
	if err := errors.Join(s.config.TransferTo(l, s.read, f.Write), f.Lost()); err != nil {
		return fmt.Errorf("loading model %s: %w", s.dir, err)
	}
	return nil
}

func (s *source) read(t model.Tensor, lo int, dst []float32) error {
	return s.tensors.ReadFinite(t.Name, lo, lo+len(dst), dst)
}

// specials are the ids that begin and end a text: the tokenizer's, else the
// configuration's; -1 where there is none.
func (s *source) specials() (bos, eos int32) { return specialsOf(s.config, s.tokenizer) }

func specialsOf(c *model.Config, t *token.Tokenizer) (bos, eos int32) {
	bos, eos = -1, -1
	if len(c.BOS) > 0 && int(c.BOS[0]) < c.V {
		bos = c.BOS[0]
	}
	if len(c.EOS) > 0 && int(c.EOS[0]) < c.V {
		eos = c.EOS[0]
	}
	if t == nil {
		return bos, eos
	}
	if id, ok := t.BOS(); ok {
		bos = id
	}
	if id, ok := t.EOS(); ok {
		eos = id
	}
	return bos, eos
}

// plain is the layout of one rank in float32.
func plain() program.Layout { return program.Layout{Compute: half.F32, Sum: half.F32} }
