// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"pleach/engine"
	"pleach/engine/cpu"
	"pleach/half"
	"pleach/infer"
	"pleach/model"
	"pleach/optim"
	"pleach/program"
)

// generateReport is how fast a model generates: TokensPerSecond is of decoding.
type generateReport struct {
	common
	Tokens  int     `json:"tokens"`                              // of a row, that decoding is measured on
	Step    float64 `json:"step_seconds"`                        // of a token for each row: the median
	Prefill float64 `json:"prefill_tokens_per_second,omitempty"` // of a prompt of Seq ids, with one row
	Weights int     `json:"weight_bytes"`                        // that a step reads
	Read    float64 `json:"weight_bytes_per_second"`
	Share   float64 `json:"share_of_bandwidth"`
}

// generatePrecisions are the words of --precision that generate knows.
func generatePrecisions() []string { return []string{optim.F32.String(), optim.BF16.String(), inInt8} }

// How decoding is measured: rounds of so many tokens, as many as steps. Before
// each of them the memory is read, which makes its first token slow.
const (
	perRound = 8
	prompts  = 3 // that prefill is the median of
)

// decoder is a model that generates for every row of a bench.
type decoder struct {
	e        *cpu.Engine
	computes half.DType
	weights  int // bytes that a step reads
	// prefill reads a prompt; nil with more than one row.
	prefill func(ctx context.Context, prompt []int32) error
	// decode makes n ids after one id in each row and calls each after every step.
	decode func(ctx context.Context, n int, each func()) error
}

// generate measures decoding and, alternately, the read bandwidth.
func (b *bench) generate(ctx context.Context) (*generateReport, error) {
	d, err := b.decoder()
	if err != nil {
		return nil, err
	}
	defer d.e.Close()
	defer restrain(d.e)()
	r := &generateReport{
		common: b.common("generate", d.computes), Tokens: b.steps * (perRound - 1), Weights: d.weights,
	}
	if err := d.decode(ctx, 2, func() {}); err != nil { // the first step touches the memory
		return nil, err
	}
	seen := beginWatch()
	if r.Prefill, err = d.prompted(ctx, randomIDs(b.seq, b.spec.V)); err != nil {
		return nil, err
	}
	r.PeakRSS = peakRSS() // before there is memory to read beside the model
	memory := newReader(b.threads)
	defer memory.free()
	var peak, reads, steps samples
	n, began := 0, time.Time{}
	err = d.decode(ctx, b.steps*perRound, func() {
		if n%perRound > 0 {
			steps.add(time.Since(began).Seconds())
		} else {
			reads.add(memory.best(3))
			peak.add(d.e.Peak(r.computes))
		}
		n++
		began = time.Now()
	})
	if err != nil {
		return nil, err
	}
	r.Noise = noise{
		Peak: peak.spread(), Steps: steps.spread(), Others: seen.others(b.threads), Bandwidth: reads.spread(), mine: b.threads,
	}
	r.settle(steps, peak, reads)
	return r, interrupted(ctx)
}

// settle turns samples into figures.
func (r *generateReport) settle(steps, peak, reads samples) {
	r.Step = steps.median()
	r.PeakGFLOPS, r.Bandwidth = peak.median()/1e9, reads.median()
	r.TokensPerSecond = float64(r.Rows) / r.Step
	r.Read = float64(r.Weights) / r.Step
	r.Share = r.Read / r.Bandwidth
}

// prompted is the ids per second at which a prompt is read, 0 if that is not
// measured.
func (d *decoder) prompted(ctx context.Context, prompt []int32) (float64, error) {
	if d.prefill == nil {
		return 0, nil
	}
	var took samples
	for run := range 1 + prompts {
		if err := interrupted(ctx); err != nil {
			return 0, err
		}
		began := time.Now()
		if err := d.prefill(ctx, prompt); err != nil {
			return 0, err
		}
		if run > 0 {
			took.add(time.Since(began).Seconds())
		}
	}
	return float64(len(prompt)) / took.median(), nil
}

// decoder makes the model of the configuration with random weights.
func (b *bench) decoder() (*decoder, error) {
	T, layout := max(b.seq, b.steps*perRound+1), b.layout(nil)
	programs, err := infer.Programs(b.spec, layout, T, 1)
	if b.rows > 1 && err == nil {
		programs = make([]*program.Program, 1)
		programs[0], err = model.Extend("decode", b.spec, layout, 0, model.Window{N: b.rows, M: b.rows, Slots: b.rows, T: T})
	}
	if err != nil {
		return nil, err
	}
	what := fmt.Sprintf("generating %d rows of %d ids with %s", b.rows, T, b.config)
	if err := fitsMemory(what, b.options(), programs...); err != nil {
		return nil, err
	}
	d := &decoder{e: cpu.New(b.options()), computes: layout.Compute, weights: weightBytes(programs[len(programs)-1])}
	if b.rows > 1 {
		err = d.batch(programs[0], b.spec.V)
	} else {
		err = d.single(b.spec, layout, T)
	}
	if err == nil {
		err = randomWeights(engine.NewFloats(d.e, programs...).Write, b.spec.Held(layout))
	}
	if err != nil {
		d.e.Close()
		return nil, err
	}
	return d, nil
}

// single is the path of the verb generate.
func (d *decoder) single(s model.Spec, l program.Layout, T int) error {
	g, err := infer.NewGenerator(d.e, s, l, T, 1)
	if err != nil {
		return err
	}
	d.prefill = func(ctx context.Context, prompt []int32) error {
		_, err := g.Generate(ctx, prompt, 1, infer.Sampling{}, nil, nil)
		return err
	}
	d.decode = func(ctx context.Context, n int, each func()) error {
		_, err := g.Generate(ctx, []int32{1}, n, infer.Sampling{}, nil, func(int32) bool { each(); return true })
		return err
	}
	return nil
}

// batch decodes a token of each row at a time, with ids that were drawn before:
// choosing them from logits is the host's work.
func (d *decoder) batch(p *program.Program, V int) error {
	x, err := d.e.Compile(p, 1)
	if err != nil {
		return err
	}
	c := engine.NewCall(p)
	input := func(name string) []int32 { return program.View[int32](c.Input(p, name)) }
	tokens, positions, pick := input("tokens"), input("positions"), input("pick")
	for i := range pick {
		pick[i], input("slots")[i] = int32(i), int32(i)
	}
	d.decode = func(ctx context.Context, n int, each func()) error {
		ids := randomIDs(n+len(tokens), V)
		for t := range n {
			for i := range tokens {
				tokens[i], positions[i] = ids[t+i], int32(t)
			}
			if err := interrupted(ctx); err != nil {
				return err
			}
			if err := x.Run(c).Wait(); err != nil {
				return err
			}
			each()
		}
		return nil
	}
	return nil
}

// weightBytes is what a run of p reads of weights: all of those in products and
// norms, and of a table that ids are looked up in as many rows as there are ids.
func weightBytes(p *program.Program) int {
	read := map[*program.Value]int{}
	for _, op := range p.Ops {
		for _, v := range op.In {
			if v.Role != program.Weight {
				continue
			}
			n := v.Bytes()
			if op.Kind == program.OpEmbed {
				n = op.Out[0].Bytes()
			}
			read[v] = max(read[v], n)
		}
	}
	sum := 0
	for _, n := range read {
		sum += n
	}
	return sum
}

// randomIDs are n ids below V.
func randomIDs(n, V int) []int32 { return randomRows(1, n, V)[0].IDs[:n] }

func (r *generateReport) print(w io.Writer) error {
	t := newTable(w)
	r.head(t, "")
	t.row("speed", "%.1f tokens/s, a step %.4f s, the median of %d", r.TokensPerSecond, r.Step, r.Tokens)
	t.row("weights", "%s for a step, %.1f GB/s, %s of the bandwidth", rounded(int64(r.Weights)), r.Read/1e9, inPercent(r.Share))
	if r.Prefill > 0 {
		t.row("prefill", "%.1f tokens/s", r.Prefill)
	}
	r.foot(t, "the steps")
	return printed(t.w.Flush())
}

func (r *generateReport) compare(w io.Writer, old *oldReport) error {
	rows := []ratio{
		{"speed", old.TokensPerSecond, r.TokensPerSecond, "tokens/s", false},
		{"prefill", old.Prefill, r.Prefill, "tokens/s", false},
		{"weights", old.Read / 1e9, r.Read / 1e9, "GB/s", false},
		{"bandwidth", old.Bandwidth / 1e9, r.Bandwidth / 1e9, "GB/s", false},
		{"share of bandwidth", 100 * old.Share, 100 * r.Share, "%", false},
		{"memory", float64(old.PeakRSS) / (1 << 20), float64(r.PeakRSS) / (1 << 20), "MiB", true},
	}
	if err := printRatios(w, rows); err != nil {
		return err
	}
	return verdict(w, rows[0].times(), max(old.Noise.Steps, r.Noise.Steps))
}
