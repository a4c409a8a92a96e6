// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"

	"pleach/internal/unit"
)

// Train is how the weights move.
type Train struct {
	Until     unit.Until
	Batch     unit.Batch
	Micro     unit.Sequences // 0: chosen by the plan
	Precision string         // "f32", "mixed", "bf16-sr", "bf16"
	Recompute string         // "none", "selective", "full"; "": chosen by the plan
	Optimizer Optimizer
	Schedule  Schedule
	Clip      Clip
	Spikes    Spikes
}

// Optimizer names the rule; there is one so far.
type Optimizer struct{ AdamW AdamW }

// AdamW holds the constants of the update; the room optim has its formula.
type AdamW struct {
	LR     float64
	Betas  [2]float64
	Eps    float64
	Decay  float64
	Except []string // groups without decay, of "norms", "biases", "embeddings"
	State  string   // "f32", "bf16"
}

// Schedule is the learning rate over the steps, as a part of AdamW.LR. Fields
// that the kind does not have are zero.
type Schedule struct {
	Kind   string // "cosine", "linear", "constant", "wsd"
	Warmup unit.Share
	Decay  unit.Share // wsd: the part at the end in which the rate falls
	Floor  unit.Level // what it falls to
	Cut    unit.Level // cosine: it aims at zero and is cut off here; zero: Floor holds
	Length unit.Until // zero: train.until
}

// Clip is the gradient norm above which gradients are scaled down; 0 is never,
// written "none".
type Clip float64

// Spikes is what happens when the gradient norm jumps: it exceeds the mean of
// the last Window steps by Above, Length times in a row.
type Spikes struct {
	Policy string // "log"
	Window int
	Above  float64
	Length int
}

func (t *Train) fields() []field {
	return []field{
		{key: "until", to: &t.Until, need: true, doc: "Steps, tokens or epochs after which " +
			"the run is done. An epoch is over when the first source has been seen once at " +
			"its share."},
		{key: "batch", to: &t.Batch, need: true, doc: "Sequences or tokens per step, over all " +
			"ranks."},
		{key: "micro", auto: "chosen by the plan", to: &t.Micro, check: func() string {
			return atLeast(int(t.Micro), 1)
		}, doc: "Sequences that go through the model at once on a data rank. It changes " +
			"memory and speed, not the result; in bf16 that holds where a sequence is a multiple of 32 ids."},
		{
			key: "precision", auto: "`mixed` where the processor multiplies bf16 faster, else `f32`",
			words: []string{"f32", "mixed", "bf16-sr", "bf16"}, to: &t.Precision,
			doc: "In which types weights are held and computed with; sums are f32 in all. `mixed` computes " +
				"in bf16 and updates an f32 copy of the weights. `bf16-sr` has bf16 weights alone, rounded " +
				"stochastically when they are updated (HLAT's recipe). `bf16` rounds them to nearest, which " +
				"loses small updates: for comparison.",
		},
		{
			key: "recompute", auto: "chosen by the plan",
			words: []string{"none", "selective", "full"}, to: &t.Recompute,
			doc: "What the backward pass computes again instead of keeping it. It changes " +
				"memory and speed, not the result.",
		},
		{key: "optimizer", to: &t.Optimizer, doc: "The update rule."},
		{key: "schedule", def: "cosine", to: &t.Schedule, doc: "The learning rate over the " +
			"steps s = 1, 2, …: it climbs as lr·s/W during a warm-up of W steps, and the floor " +
			"is reached at the last step."},
		{key: "clip", def: "1.0", to: &t.Clip, doc: "Gradients are multiplied with min(1, " +
			"clip/(norm + 1e-6)); `none` leaves them alone."},
		{key: "spikes", to: &t.Spikes, doc: "What happens when the gradient norm jumps."},
	}
}

func (o *Optimizer) fields() []field {
	return []field{{key: "adamw", to: &o.AdamW, doc: "Adam with decoupled weight decay."}}
}

func (a *AdamW) fields() []field {
	return []field{
		{
			key: "lr", def: "3e-4", to: &a.LR, check: func() string { return positive(a.LR) },
			doc: "The peak of the schedule.",
		},
		{key: "betas", def: "[0.9, 0.95]", to: pair{&a.Betas}, check: func() string {
			for _, b := range a.Betas {
				if b >= 1 {
					return fmt.Sprintf("got %v, want two numbers from 0 to below 1", a.Betas)
				}
			}
			return ""
		}, doc: "How slowly the means of gradients and of their squares move."},
		{
			key: "eps", def: "1e-8", to: &a.Eps, check: func() string { return positive(a.Eps) },
			doc: "Added to the root of the mean square.",
		},
		{key: "decay", def: "0.1", to: &a.Decay, doc: "Weights shrink by lr·decay per step."},
		{
			key: "except", def: "[norms, biases]", words: []string{"norms", "biases", "embeddings"},
			to: &a.Except, doc: "Groups that do not decay; `[]`: all do, as in HLAT.",
		},
		{
			key: "state", def: "f32", words: []string{"f32", "bf16"},
			to: &a.State, doc: "The type of the two means. `bf16` is rounded stochastically, and goes with " +
				"the precision `bf16-sr`.",
		},
	}
}

func (s *Schedule) chosen() *string { return &s.Kind }

func (s *Schedule) kinds() []kind {
	warmup := field{key: "warmup", def: "1 %", to: &s.Warmup, doc: "Steps, tokens or per cent " +
		"of the length in which the rate climbs from 0 to its peak."}
	none := warmup
	none.def = "0 steps"
	floor := field{
		key: "floor", def: "10 %", to: &s.Floor, omit: s.Cut != unit.Level{},
		doc: "The rate of the last step, absolute or per cent of the peak.",
	}
	length := field{key: "length", auto: "`train.until`", to: &s.Length, doc: "Where the " +
		"schedule ends. If it is given, a later change of `train.until` does not bend it."}
	cut := field{key: "cut", auto: "–", to: &s.Cut, doc: "Instead of `floor`: the cosine aims " +
		"at zero, and the rate stays at this level once it would fall below (HLAT's script)."}
	decay := field{key: "decay", def: "10 %", to: &s.Decay, doc: "Steps, tokens or per cent of " +
		"the length at its end in which the rate falls to the floor."}
	return []kind{
		{
			name: "cosine", doc: "Falls from the peak to the floor along half a cosine.",
			fields: []field{warmup, floor, cut, length},
		},
		{name: "linear", doc: "Falls along a line.", fields: []field{warmup, floor, length}},
		{name: "constant", doc: "Stays at the peak.", fields: []field{none}},
		{name: "wsd", doc: "Warm-up, stable, decay: stays at the peak, and falls along a line " +
			"at the end.", fields: []field{warmup, decay, floor, length}},
	}
}

func (s *Spikes) fields() []field {
	return []field{
		{
			key: "policy", def: "log", words: []string{"log"}, later: []string{"skip", "rollback"},
			to: &s.Policy, doc: "`log` records the spike and its documents.",
		},
		{key: "window", def: "20", to: &s.Window, check: func() string {
			return atLeast(s.Window, 1)
		}, doc: "How many steps the mean is taken over."},
		{key: "above", def: "0.1", to: &s.Above, doc: "How far above the mean a spike is."},
		{key: "length", def: "1", to: &s.Length, check: func() string {
			return atLeast(s.Length, 1)
		}, doc: "How many steps in a row it lasts before the policy acts."},
	}
}

func (c Clip) String() string {
	if c == 0 {
		return "none"
	}
	return number(float64(c))
}

// UnmarshalText reads "none" or a number above 0.
func (c *Clip) UnmarshalText(b []byte) error {
	if string(b) == "none" {
		*c = 0
		return nil
	}
	x, err := unit.Number(string(b))
	if err != nil || x == 0 {
		return fmt.Errorf("got %q, want a number above 0, or none", b)
	}
	*c = Clip(x)
	return nil
}
