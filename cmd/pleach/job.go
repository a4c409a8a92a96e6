// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"

	"pleach/blob"
	"pleach/ckpt"
	"pleach/config"
	"pleach/data"
	"pleach/engine"
	"pleach/engine/cpu"
	"pleach/half"
	"pleach/internal/fault"
	"pleach/internal/unit"
	"pleach/kernel"
	"pleach/model"
	"pleach/optim"
	"pleach/plan"
	"pleach/program"
	"pleach/token"
	"pleach/train"
)

// prepared is a recipe made concrete: everything that can be known, and refused,
// before the first large allocation.
type prepared struct {
	recipe    *config.Recipe
	from      *source          // the model directory to start from, nil from scratch
	kept      *ckpt.Checkpoint // the optimizer to go on with, nil for a fresh one
	state     train.State      // of kept
	model     *model.Config
	tokenizer *token.Tokenizer // nil where all documents are ids
	reach     *reach
	loader    *data.Loader
	texts     []heldOut // to evaluate
	first     int32     // the id that stands before each of their documents
	precision optim.Precision
	adamw     optim.AdamW
	warnings  []string
	schedule  optim.Schedule
	sources   []data.Repetition
	ends      int64 // row after which the sources end
	plan      plan.Plan
	rows      int // of a step
	steps     int64
	options   cpu.Options
}

// prepare reads what a recipe names. The recipe learns what it left open:
// sequence, lanes, micro-batch, recomputation, length. The end of ctx ends it,
// even while the tokens of an epoch are counted.
func prepare(ctx context.Context, r *config.Recipe) (*prepared, error) {
	return prepareSteps(ctx, r, func(p *prepared) []func() error {
		return []func() error{
			p.setOptions, p.openModel, p.openState, p.setSequence, p.setOptimizer, p.openData,
			func() error { return p.openTexts(ctx) }, func() error { return p.setLength(ctx) },
			func() error { return p.countSources(ctx) }, p.choosePlan,
		}
	})
}

// prepareData reads of a recipe what its rows depend on.
func prepareData(ctx context.Context, r *config.Recipe) (*prepared, error) {
	return prepareSteps(ctx, r, func(p *prepared) []func() error {
		return []func() error{p.openModel, p.setSequence, p.openData}
	})
}

// prepareSteps does some of the steps of prepare.
func prepareSteps(
	ctx context.Context, r *config.Recipe, steps func(p *prepared) []func() error,
) (_ *prepared, err error) {
	p := &prepared{recipe: r}
	if p.reach, err = newReach(ctx, os.Stderr); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			p.close()
		}
	}()
	for _, step := range steps(p) {
		err := step()
		if stopped := interrupted(ctx); stopped != nil {
			err = stopped
		}
		if err != nil {
			return nil, err
		}
	}
	return p, nil
}

// withRecipe prepares the recipe of a command line, a file and its overrides, for
// what use does with it.
func withRecipe(ctx context.Context, args []string, use func(p *prepared) error) error {
	r, err := config.Load(args[0], args[1:])
	if err != nil {
		return err
	}
	p, err := prepare(ctx, r)
	if err != nil {
		return err
	}
	defer p.close()
	return use(p)
}

func (p *prepared) close() {
	if p.from != nil {
		p.from.close()
	}
	if p.kept != nil {
		_ = p.kept.Close()
	}
	if p.loader != nil {
		p.loader.Close()
	}
	p.reach.close()
}

// openModel finds the architecture and the tokenizer.
func (p *prepared) openModel() error {
	m := p.recipe.Model
	if m.Path != "" {
		var err error
		if p.from, err = openModel(m.Path); err != nil {
			return err
		}
		p.model, p.tokenizer = p.from.config, p.from.tokenizer
		return nil
	}
	var err error
	if p.tokenizer, err = token.Open(m.Vocabulary); err != nil {
		return p.recipe.Errorf("model.vocabulary", "%v", err)
	}
	if m.Config != "" {
		text, err := os.ReadFile(m.Config)
		if err != nil {
			return p.recipe.Errorf("model.config", "%v", err)
		}
		if p.model, err = model.ParseConfig(text); err != nil {
			return p.recipe.Errorf("model.config", "%v", err)
		}
		return fits(p.tokenizer, p.model.V, m.Config)
	}
	spec, err := model.Preset(m.Preset, p.tokenizer.Size())
	if err != nil {
		return p.recipe.Errorf("model.preset", "%v", err)
	}
	spec = override(spec, m)
	if spec.H > 0 && spec.D%spec.H != 0 && m.HeadDim == 0 {
		key := "model.width"
		if m.Width == 0 {
			key = "model.heads"
		}
		return p.recipe.Errorf(key, "%d heads do not divide the width of %d: want head_dim, or another of the two",
			spec.H, spec.D)
	}
	p.model = &model.Config{Spec: spec, DType: half.F32}
	if bos, ok := p.tokenizer.BOS(); ok {
		p.model.BOS = []int32{bos}
	}
	if eos, ok := p.tokenizer.EOS(); ok {
		p.model.EOS = []int32{eos}
	}
	if err := p.model.Check(); err != nil {
		return p.recipe.Errorf("model", "%v", err)
	}
	return fits(p.tokenizer, p.model.V, m.Vocabulary)
}

// override changes a preset as a recipe says. A new width or number of heads
// changes the width of a head, unless that is given too.
func override(s model.Spec, m config.Model) model.Spec {
	set := func(to *int, v int) {
		if v > 0 {
			*to = v
		}
	}
	set(&s.L, m.Layers)
	set(&s.D, m.Width)
	set(&s.F, m.FFN)
	set(&s.MaxT, m.MaxPositions)
	if m.Heads > 0 {
		s.H, s.G = m.Heads, m.Heads
	}
	set(&s.G, m.KVHeads)
	if (m.Width > 0 || m.Heads > 0) && s.H > 0 {
		s.K = s.D / s.H
	}
	set(&s.K, m.HeadDim)
	if m.RopeTheta > 0 {
		s.Rope.Theta = m.RopeTheta
	}
	if m.Tied != nil {
		s.Tied = *m.Tied
	}
	return s
}

// setSequence settles T and the rows of a step.
func (p *prepared) setSequence() error {
	r := p.recipe
	if r.Data.Sequence == 0 {
		t := min(p.model.MaxT, 4096)
		if err := r.Set("data.sequence", fmt.Sprint(t), "the model's positions"); err != nil {
			return err
		}
	}
	if r.Data.Sequence > p.model.MaxT {
		return r.Errorf("data.sequence", "got %d, the model has %d positions", r.Data.Sequence, p.model.MaxT)
	}
	var err error
	if p.rows, err = r.Train.Batch.Rows(r.Data.Sequence); err != nil {
		return r.Errorf("train.batch", "%v", err)
	}
	if m := int(r.Train.Micro); m > 0 && p.rows%m != 0 {
		return r.Errorf("train.micro", "got %d sequences, want a divisor of the %d of a step", m, p.rows)
	}
	if r.Data.Lanes == 0 {
		return r.Set("data.lanes", fmt.Sprint(p.rows), "the sequences per batch")
	}
	return nil
}

func (p *prepared) setOptimizer() error {
	a := p.recipe.Train.Optimizer.AdamW
	except, err := optim.ClassesOf(a.Except)
	if err != nil {
		return p.recipe.Errorf("train.optimizer.adamw.except", "%v", err)
	}
	if p.precision, err = optim.ParsePrecision(p.recipe.Train.Precision); err != nil {
		return p.recipe.Errorf("train.precision", "%v", err)
	}
	p.adamw = p.precision.Apply(optim.AdamW{
		Beta1: a.Betas[0], Beta2: a.Betas[1], Eps: a.Eps, Decay: a.Decay, Except: except,
		Clip: float64(p.recipe.Train.Clip), Seed: p.recipe.Seed, HalfMoments: a.State == half.BF16.String(),
	})
	p.warnings = p.recipe.Warnings()
	if why := kernel.Denied(); why != "" {
		p.warnings = append(p.warnings, why)
	}
	if from, to := p.state.Types, train.TypesOf(p.precision.Layout(), p.adamw); p.kept != nil && from != to {
		p.warnings = append(p.warnings, fmt.Sprintf("model.state: kept: the checkpoint is of a run in %v: its weights and "+
			"moments are converted to %v", from, to))
	}
	return nil
}

func (p *prepared) openData() error {
	spec, enc, err := p.dataSpec()
	if err != nil {
		return err
	}
	p.loader, err = data.Open(spec, enc)
	return err
}

// dataSpec is the rows of a recipe, and what turns texts into ids.
func (p *prepared) dataSpec() (data.Spec, data.Encoder, error) {
	d := p.recipe.Data
	bos, eos := specialsOf(p.model, p.tokenizer)
	spec := data.Spec{
		Sequence: d.Sequence, Lanes: d.Lanes, Seed: p.recipe.Seed, Shuffle: d.Shuffle, Joined: d.Documents == "joined",
		Whole: d.Pack == "whole",
		BOS:   bos, EOS: eos, AddBOS: d.BOS, Vocabulary: p.model.V,
	}
	if hasFile(p.recipe.Out, "run.yaml") { // nothing is written before the run begins
		spec.Cache = p.recipe.Out
	}
	for _, s := range d.Sources {
		spec.Sources = append(spec.Sources, data.Source{
			Paths: s.Paths, Access: p.reach.Access, Name: s.Name, Weight: s.Weight, Field: s.Field, ID: s.ID, Mask: s.Mask,
			Rows: s.Rows, Format: s.Format, Epochs: float64(s.Epochs), Damaged: int64(s.Damaged),
		})
	}
	spec.Stages = p.stages()
	if ready(d.Sources) {
		spec.EOS = max(eos, 0) // not used: a row is whole
	} else if eos < 0 {
		return spec, nil, p.recipe.Errorf("model", "neither tokenizer nor config.json names an end-of-sequence id: documents need one")
	}
	if d.BOS && bos < 0 {
		return spec, nil, p.recipe.Errorf("data.bos", "the tokenizer has no begin-of-sequence")
	}
	var enc data.Encoder
	if p.tokenizer != nil {
		enc, spec.Tokenizer = p.tokenizer, fingerprint(p.tokenizer)
	}
	return spec, enc, nil
}

// stages are the mixtures that follow the first one, by row.
func (p *prepared) stages() []data.Stage {
	d := p.recipe.Data
	weights := make([]float64, len(d.Sources))
	at := map[string]int{}
	for i, s := range d.Sources {
		weights[i], at[s.Name] = s.Weight, i
	}
	var all []data.Stage
	for _, st := range d.Stages {
		weights = slices.Clone(weights)
		for _, w := range st.Weights {
			weights[at[w.Name]] = w.Weight
		}
		steps := st.From.In(unit.Tokens(p.rows * d.Sequence))
		all = append(all, data.Stage{Row: int64(steps) * int64(p.rows), Weights: weights})
	}
	return all
}

func ready(sources []config.Source) bool {
	return !slices.ContainsFunc(sources, func(s config.Source) bool { return !s.Rows })
}

// fingerprint tells tokenizers apart: a hash of their files.
func fingerprint(t *token.Tokenizer) string {
	h := sha256.New()
	files := t.Files()
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if name == "tokenizer.json" || name == "tokenizer.model" {
			fmt.Fprintf(h, "%s %d\n", name, len(files[name]))
			h.Write(files[name])
		}
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// setLength turns epochs, tokens and per cent into steps.
func (p *prepared) setLength(ctx context.Context) error {
	r := p.recipe
	batch := unit.Tokens(p.rows * r.Data.Sequence)
	s := r.Train.Schedule
	if r.Train.Until.Epochs != 0 || s.Length.Epochs != 0 {
		stop := context.AfterFunc(ctx, p.loader.Close)
		e, err := p.loader.Epoch()
		stop()
		if err != nil {
			return err
		}
		for key, u := range map[string]*unit.Until{"train.until": &r.Train.Until, lengthKey(s): &s.Length} {
			if u.Epochs == 0 {
				continue
			}
			origin := fmt.Sprintf("%v of %s, %d tokens each", *u, e.Source, e.Tokens)
			*u = u.Settle(unit.Tokens(e.Tokens))
			if err := r.Set(key, u.String(), origin); err != nil {
				return err
			}
		}
	}
	p.steps = int64(r.Train.Until.In(batch))
	length := unit.Steps(p.steps)
	if !s.Length.IsZero() {
		length = s.Length.In(batch)
	}
	lr := r.Train.Optimizer.AdamW.LR
	p.schedule = optim.Schedule{
		Shape: optim.Shape(s.Kind), Peak: lr, Floor: s.Floor.Of(lr), Cut: s.Cut.Of(lr),
		Warmup: int64(s.Warmup.In(length, batch)), Decay: int64(s.Decay.In(length, batch)), Length: int64(length),
	}
	if err := p.schedule.Check(); err != nil {
		return r.Errorf("train.schedule", "%v", err)
	}
	return nil
}

func lengthKey(s config.Schedule) string { return "train.schedule." + s.Kind + ".length" }

// choosePlan sizes the micro-batch, or refuses what does not fit.
func (p *prepared) choosePlan() error {
	r := p.recipe
	policy := program.KeepAll
	if r.Train.Recompute != "" {
		var err error
		if policy, err = program.ParsePolicy(r.Train.Recompute); err != nil {
			return r.Errorf("train.recompute", "%v", err)
		}
	}
	layout := p.precision.Layout()
	layout.Recompute = policy
	req := plan.Request{
		Spec: p.model.Spec, Layout: layout, AdamW: p.adamw, Sequence: r.Data.Sequence, Rows: p.rows,
		Threads: p.options.Threads,
		Micro:   int(r.Train.Micro), Free: r.Train.Recompute == "", Memory: available(),
		Other: beside() + int(documentBytes*float64(p.loader.Held())),
	}
	if len(p.texts) > 0 {
		req.Scored = p.scoredRows()
	}
	var err error
	p.plan, err = plan.Choose(req, predictor(p.options))
	if err != nil {
		return err
	}
	err = errors.Join(
		p.settle("train.micro", unit.Sequences(p.plan.Batch.B).String()),
		p.settle("train.recompute", p.plan.Layout.Recompute.String()),
	)
	return err
}

// predictor is the memory of the CPU engine with these options.
func predictor(run cpu.Options) plan.Predictor {
	return func(programs ...*program.Program) (engine.Memory, error) {
		return cpu.Predict(run, 1, programs...)
	}
}

// settle records a choice of the plan, where the user has not made it.
func (p *prepared) settle(key, value string) error {
	if p.recipe.Given(key) {
		return nil
	}
	return p.recipe.Set(key, value, "the plan")
}

// job is the run itself on engine e.
func (p *prepared) job(e engine.Engine) train.Job {
	r := p.recipe
	j := train.Job{
		Engine: e, Config: p.model, Files: map[string][]byte{}, Layout: p.plan.Layout, Batch: p.plan.Batch, Rows: p.rows,
		AdamW: p.adamw, Schedule: p.schedule, Steps: p.steps, Data: p.loader, Store: blob.Local(r.Out), Seed: r.Seed,
		Version: version, Recipe: r.Hash(),
		Save: train.Save{
			Every: r.Checkpoint.Every, Keep: r.Checkpoint.Keep, Permanent: r.Checkpoint.Permanent, DType: half.F32,
		},
		Spikes: train.Spikes{Window: r.Train.Spikes.Window, Above: r.Train.Spikes.Above},
		Begin:  p.begin, Updates: p.state.Updates, Warnings: p.warnings,
	}
	if p.tokenizer != nil {
		j.Files = p.tokenizer.Files()
	}
	if r.Checkpoint.DType == "bf16" {
		j.Save.DType = half.BF16
	}
	p.model.DType = j.Save.DType
	return j
}

// begin writes the first weights: those of the model directory, with its moments
// where they are kept, or random ones.
func (p *prepared) begin(write func(name string, lo int, x []float32) error) error {
	if p.kept != nil {
		return train.Restore(p.kept, p.model.Spec, write)
	}
	if p.from != nil {
		return p.model.Transfer(p.from.read, write)
	}
	in := model.Init{Std: p.recipe.Model.Init.Std, Residual: model.Residual(p.recipe.Model.Init.Residual)}
	if err := in.Check(); err != nil {
		return p.recipe.Errorf("model.init", "%v", err)
	}
	return p.model.Transfer(func(t model.Tensor, lo int, dst []float32) error {
		// A value does not depend on the cut: threads share a piece.
		var filling sync.WaitGroup
		for n := len(dst)/p.options.Threads + 1; len(dst) > 0; {
			part, at := dst[:min(n, len(dst))], lo
			filling.Go(func() { in.Fill(part, p.model.Spec, t, p.recipe.Seed, at) })
			dst, lo = dst[len(part):], lo+len(part)
		}
		filling.Wait()
		return nil
	}, write)
}

// openState finds the optimizer that a recipe wants kept.
func (p *prepared) openState() error {
	if p.from == nil || p.recipe.Model.State != "kept" {
		return nil
	}
	var err error
	if p.kept, p.state, err = train.OpenState(p.from.dir); err != nil {
		return p.recipe.Errorf("model.state", "kept: %v", err)
	}
	return nil
}

// sameRun refuses a run directory that is not one, or of another recipe.
func (p *prepared) sameRun() (resumes bool, err error) {
	r := p.recipe
	entries, err := os.ReadDir(r.Out)
	// A run that was killed as it began has left no more than a lock.
	entries = slices.DeleteFunc(entries, func(e os.DirEntry) bool {
		return e.Name() == ".lock" || strings.HasPrefix(e.Name(), ".tmp-")
	})
	if errors.Is(err, os.ErrNotExist) || err == nil && len(entries) == 0 {
		return false, nil
	}
	if err != nil {
		return false, fault.Machinef("run directory: %w", err)
	}
	file := r.Out + "/run.yaml"
	text, err := os.ReadFile(file)
	if err != nil {
		return false, fault.Statef("run directory %s: it holds files but no run.yaml: want an empty or a new one", r.Out)
	}
	old, err := config.Parse(file, text, nil)
	if err != nil {
		return false, fault.As(fault.State, err)
	}
	differ := slices.DeleteFunc(config.Diff(old, r), config.MayChange)
	if len(differ) > 0 {
		hint := ""
		if slices.Contains(differ, "train.precision") {
			hint = "; to go on in another precision, begin a run with `model: {path: CHECKPOINT, state: kept}`"
		}
		return false, fault.Statef("run directory %s: it is another run's, made with other values of %v; choose another `out`%s",
			r.Out, differ, hint)
	}
	return true, nil
}
