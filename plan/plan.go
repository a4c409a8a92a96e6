// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"

	"pleach/engine"
	"pleach/internal/fault"
	"pleach/internal/unit"
	"pleach/model"
	"pleach/optim"
	"pleach/program"
)

// Predictor is what an engine would allocate for programs that share state.
type Predictor func(programs ...*program.Program) (engine.Memory, error)

// Request is a run that is wanted.
type Request struct {
	Spec     model.Spec
	Layout   program.Layout // its Recompute is chosen where Free is true
	AdamW    optim.AdamW
	Sequence int
	Rows     int  // of a step
	Threads  int  // that the engine computes with
	Micro    int  // sequences of a micro-batch; 0 is chosen
	Free     bool // recomputation may be chosen
	Scored   int  // rows of the score program that evaluation needs; 0 for none
	Memory   int  // bytes that may be used; 0 is unknown
	Other    int  // bytes that the rest of the process needs
}

// Plan is how a run would be run.
type Plan struct {
	Batch  model.Batch
	Layout program.Layout
	Memory engine.Memory
	Other  int // bytes beside the engine's
	FLOPs  int // of a step
}

// Total is the predicted peak of the process in bytes.
func (p Plan) Total() int { return p.Memory.Total() + p.Other }

// Enough is the number of tokens above which a forward pass is no faster.
const Enough = 2048

// Tokens is the number of tokens of a micro-batch above which training is no
// faster, for a model of a width: what threads wait for each other is little beside
// the products of so many, which grow with the square of the width. Measured with
// two threads: width 256 gains 3 % from 1024 to 2048 tokens, width 512 nothing. With one,
// width 512 loses 2 % at 512 tokens, as sums of gradients are read and written for
// each micro-batch.
func Tokens(width, threads int) int {
	return min(max(1<<18*threads/width, Enough/2), Enough*max(1, threads/2))
}

// Choose finds the largest micro-batch of at most [Tokens] that fits, with as
// little recomputation as possible; results do not depend on either. Where not
// even one row fits, the error says how much it would take.
func Choose(r Request, predict Predictor) (Plan, error) {
	policies := []program.Policy{r.Layout.Recompute}
	if r.Free {
		policies = []program.Policy{program.KeepAll, program.Selective, program.Full}
	}
	var least Plan
	for _, policy := range policies {
		for _, micro := range r.micros() {
			p, err := r.plan(policy, micro, predict)
			if err != nil {
				return Plan{}, err
			}
			if r.Memory == 0 || p.Total() <= r.Memory {
				return p, nil
			}
			if least.Batch.B == 0 || p.Total() < least.Total() {
				least = p
			}
		}
	}
	return Plan{}, least.refusal(r)
}

// refusal says that not even p fits.
func (p Plan) refusal(r Request) error {
	size := func(n int) string { return unit.Bytes(n).Rounded() }
	m := p.Memory
	return fault.Configf("plan: %s of parameters do not fit: micro-batches of %d × %d tokens with recomputation %q need "+
		"%v (state %v, activations %v, the rest %v), this machine has %v", count(r.Spec.Count()), p.Batch.B, p.Batch.T,
		p.Layout.Recompute, size(p.Total()), size(m.State), size(m.Arena), size(m.Input+m.Scratch+p.Other), size(r.Memory))
}

// micros lists the micro-batches to try, the preferred first: divisors of the
// rows of a step.
func (r Request) micros() []int {
	if r.Micro > 0 {
		return []int{r.Micro}
	}
	var ms []int
	for m := r.Rows; m > 0; m-- {
		if r.Rows%m == 0 && (m == 1 || m*r.Sequence <= Tokens(r.Spec.D, max(1, r.Threads))) {
			ms = append(ms, m)
		}
	}
	return ms
}

func (r Request) plan(policy program.Policy, micro int, predict Predictor) (Plan, error) {
	l := r.Layout
	l.Recompute = policy
	p := Plan{Batch: model.Batch{B: micro, T: r.Sequence}, Layout: l, Other: r.Other}
	acc, err := model.Accumulate(r.Spec, l, 0, p.Batch)
	if err != nil {
		return p, err
	}
	upd, err := optim.Update(r.AdamW, l, r.Spec.Whole(), r.Spec.Groups(), acc)
	if err != nil {
		return p, err
	}
	programs := []*program.Program{acc, upd}
	if r.Scored > 0 {
		score, err := model.Score(r.Spec, l, 0, model.Batch{B: r.Scored, T: r.Sequence}, 0)
		if err != nil {
			return p, err
		}
		programs = append(programs, score)
	}
	p.FLOPs = acc.Cost().FLOPs * (r.Rows / micro)
	p.Memory, err = predict(programs...)
	return p, err
}

// count is a number of parameters for people.
func count(n int) string {
	switch {
	case n >= 1e9:
		return fmt.Sprintf("%.1f B", float64(n)/1e9)
	case n >= 1e6:
		return fmt.Sprintf("%.1f M", float64(n)/1e6)
	}
	return fmt.Sprintf("%.0f k", float64(n)/1e3)
}
