// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"math"

	"pleach/internal/fault"
	"pleach/model"
	"pleach/optim"
	"pleach/plan"
	"pleach/program"
	"pleach/train"
)

// sizing is what the quickstart trains: everything that its results depend on,
// beside the texts. It is kept in plan.json, and a second call with the same
// folder goes by it whatever the machine does then.
type sizing struct {
	Preset     string  `json:"preset"` // the nearest; the sizes below stand above it
	Layers     int     `json:"layers"`
	Width      int     `json:"width"`
	Heads      int     `json:"heads"`
	FFN        int     `json:"ffn"`
	Vocabulary int     `json:"vocabulary"`
	Sequence   int     `json:"sequence"`
	Batch      int     `json:"batch"`    // sequences of a step
	Base       int     `json:"base"`     // steps on general
	Continue   int     `json:"continue"` // steps on domain
	Replay     int     `json:"replay"`   // steps on domain with a tenth of general
	BaseLR     float64 `json:"base_lr"`
	ContinueLR float64 `json:"continue_lr"`
	HeldOut    int     `json:"heldout_bytes"` // of each text
	Text       int     `json:"text_bytes"`    // of each text
	Learn      int     `json:"tokenizer_bytes"`

	Precision string  `json:"precision"`        // "" is f32
	Speed     float64 `json:"flops_per_second"` // as measured
	Seconds   float64 `json:"predicted_seconds"`
}

// candidate is a model that the quickstart may choose. Least is the number of
// tokens that its base model is trained on at least; a machine that cannot do
// them in time gets a smaller model.
type candidate struct {
	sizing
	Least int
}

// candidates are the models from the smallest to the largest, each roughly twice
// the work of the one before. The last ones are for machines that are not built
// yet; more time than the last one wants is spent on more tokens.
func candidates() []candidate {
	at := func(preset string, L, D, H, F, V, T, B int, lr float64, least int) candidate {
		return candidate{sizing{
			Preset: preset, Layers: L, Width: D, Heads: H, FFN: F, Vocabulary: V, Sequence: T, Batch: B,
			BaseLR: lr, ContinueLR: lr / 3,
		}, least}
	}
	return []candidate{
		at("tiny", 2, 48, 3, 128, 1024, 64, 8, 6e-3, 20_000),
		at("tiny", 2, 64, 4, 176, 1024, 128, 4, 6e-3, 60_000),
		at("tiny", 2, 96, 4, 256, 1024, 128, 8, 6e-3, 120_000),
		at("tiny", 3, 96, 4, 256, 2048, 128, 8, 5e-3, 200_000),
		at("mini", 4, 128, 4, 352, 2048, 128, 8, 4e-3, 250_000),
		at("small", 4, 192, 6, 512, 4096, 256, 8, 3e-3, 300_000),
		at("quick", 4, 256, 4, 688, 4096, 256, 8, 3e-3, 400_000),
		at("quick", 6, 384, 6, 1024, 4096, 256, 16, 2e-3, 1_200_000),
		at("d512", 8, 512, 8, 1376, 4096, 256, 16, 1.5e-3, 2_500_000),
	}
}

// spec is the architecture.
func (s sizing) spec() (model.Spec, error) {
	spec, err := model.Preset(s.Preset, s.Vocabulary)
	if err != nil {
		return spec, err
	}
	spec.L, spec.D, spec.H, spec.G, spec.K, spec.F = s.Layers, s.Width, s.Heads, s.Heads, s.Width/s.Heads, s.FFN
	return spec, spec.Check()
}

// programs are those of a training step in micro-batches about as large as the plan of a run
// would choose.
func (s sizing) programs() (acc, upd *program.Program, batch model.Batch, err error) {
	spec, err := s.spec()
	if err != nil {
		return nil, nil, batch, err
	}
	batch = model.Batch{B: min(s.Batch, max(1, plan.Enough/s.Sequence)), T: s.Sequence}
	a := optim.AdamW{Beta1: 0.9, Beta2: 0.95, Eps: 1e-8, Decay: 0.1, Clip: 1}
	acc, upd, err = train.Programs(spec, plain(), batch, a)
	return acc, upd, batch, err
}

// perToken is the FLOPs of training on one token.
func (s sizing) perToken() (float64, error) {
	acc, _, batch, err := s.programs()
	if err != nil {
		return 0, err
	}
	return float64(acc.Cost().FLOPs) / float64(batch.N()), nil
}

// step is the number of tokens of a step.
func (s sizing) step() int { return s.Sequence * s.Batch }

// tokens is the number of tokens of all three trainings.
func (s sizing) tokens() int { return (s.Base + s.Continue + s.Replay) * s.step() }

// Shares of the time that was asked for. What is not training and scales with
// it, such as checkpoints and waiting, is in the reserve.
const (
	reserve     = 0.15
	fixed       = 3.0  // seconds: measuring, reading, samples
	learnRate   = 2e6  // bytes a second from which a tokenizer is learned, least
	scoredShare = 0.34 // of the work of training on a token: scoring has no backward pass
	bytesToken  = 3.0  // of text, about
	evaluations = 6    // base at its end, the others at start and end, and the merged model
)

// fit sets the numbers of steps of a candidate to what fits into so many seconds
// at so many FLOP/s, and predicts the seconds: base and continuation are two to
// one, and replay is a tenth on top of the second continuation. A machine or a
// time too small for even Least tokens gets a sizing with less.
func (c candidate) fit(seconds, speed float64) (sizing, error) {
	s := c.sizing
	work, err := s.perToken()
	if err != nil {
		return s, err
	}
	rate := speed / work // tokens per second
	s.Speed = speed
	held := min(max(c.Least/12, 4000), 40_000) // tokens of each text to measure on
	s.HeldOut = int(float64(held) * bytesToken)
	s.Learn = min(max(s.Vocabulary*400, 400_000), 2_000_000)
	other := fixed + 2*float64(s.Learn)/learnRate + evaluations*s.evaluation()/rate
	left := seconds*(1-reserve) - other
	base := left * rate / (1 + 0.5 + 0.5/0.9)
	s.Base = max(int(base)/s.step(), 0)
	s.continued(s.Base / 2)
	s.Text = int(4 * bytesToken * float64(s.Base*s.step()))
	s.Seconds = other + float64(s.tokens())/rate
	return s, nil
}

// evaluation is the work of scoring both held-out texts, in tokens of training.
func (s sizing) evaluation() float64 { return 2 * float64(s.HeldOut) / bytesToken * scoredShare }

// continued sets the steps of both continuations.
func (s *sizing) continued(steps int) {
	s.Continue, s.Replay = steps, int(float64(steps)/0.9)
}

// within is s with continuations that end in so many seconds at so many tokens
// per second: no longer than planned, and no shorter than a quarter of that.
func (s sizing) within(seconds, rate float64) sizing {
	tokens := (seconds-fixed)*rate - (evaluations-1)*s.evaluation()
	if steps := int(tokens/(1+1/0.9)) / s.step(); steps < s.Continue {
		s.continued(max(steps, s.Continue/4, 1))
	}
	return s
}

// fewest is the number of steps below which a training shows nothing.
const fewest = 12

// size chooses the largest candidate that is trained on enough tokens within so
// many seconds, where speed says how many FLOP/s a candidate runs at. Where no
// candidate is, it takes the smallest, and refuses if that one hardly moves.
func size(seconds float64, speed func(candidate) (float64, error)) (sizing, error) {
	all := candidates()
	for i := len(all) - 1; i >= 0; i-- {
		c := all[i]
		flops, err := speed(c)
		if err != nil {
			return sizing{}, err
		}
		s, err := c.fit(seconds, flops)
		if err != nil {
			return s, err
		}
		if s.Base*s.step() >= c.Least {
			return s, nil
		}
		if i == 0 && s.Base >= fewest {
			return s, nil
		}
	}
	return sizing{}, fault.Configf("quickstart: --minutes %.3g is too short for this machine: give it more", seconds/60)
}

// describe says what will be trained.
func (s sizing) describe() string {
	spec, err := s.spec()
	if err != nil {
		return err.Error()
	}
	tokens := func(steps int) string { return amount(float64(steps * s.step())) }
	return fmt.Sprintf("model %s parameters (%d layers, width %d, %d heads), vocabulary %d; rows of %d, %d a step; "+
		"base %s tokens, continuation %s, with replay %s; about %s min",
		amount(float64(spec.Count())), s.Layers, s.Width, s.Heads, s.Vocabulary, s.Sequence, s.Batch,
		tokens(s.Base), tokens(s.Continue), tokens(s.Replay), clock(s.Seconds))
}

// clock prints seconds as minutes and seconds, 1:05.
func clock(seconds float64) string {
	n := int(math.Round(max(seconds, 0)))
	return fmt.Sprintf("%d:%02d", n/60, n%60)
}
