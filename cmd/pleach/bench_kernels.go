// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"pleach/engine"
	"pleach/engine/cpu"
	"pleach/half"
	"pleach/internal/rng"
	"pleach/program"
)

// kernelsReport is how fast kernels are, each alone.
type kernelsReport struct {
	common
	Kernels []kernelLine `json:"kernels"`
}

// kernelLine is a step of a program that was run again and again.
type kernelLine struct {
	Name       string  `json:"name"`
	Shape      string  `json:"shape"`
	Seconds    float64 `json:"seconds"` // the median
	Nanosecond float64 `json:"ns_per_element"`
	GFLOPS     float64 `json:"gflops"`
	Bytes      float64 `json:"bytes_per_second"`
	Share      float64 `json:"share_of_floor"` // of the least time that peak and bandwidth allow
	spread     float64
	costs      costs
}

// kernelCase is a program to measure. build writes it and says how many elements
// it makes.
type kernelCase struct {
	name  string
	build func(b *program.Builder) (elements int)
}

// kernels measures programs one after another.
func (b *bench) kernels(ctx context.Context, what string, cases []kernelCase) (*kernelsReport, error) {
	r := &kernelsReport{common: b.common(what, b.in.Weights())}
	var peak, spreads samples
	seen := beginWatch()
	for _, c := range cases {
		if err := interrupted(ctx); err != nil {
			return nil, err
		}
		e := cpu.New(b.options())
		lines, err := b.kernel(e, c)
		peak.add(e.Peak(r.computes))
		e.Close()
		if err != nil {
			return nil, fmt.Errorf("bench: %s: %w", c.name, err)
		}
		r.Kernels = append(r.Kernels, lines...)
	}
	others := seen.others(b.threads)
	r.PeakRSS, r.Bandwidth, r.PeakGFLOPS = peakRSS(), readBandwidth(b.threads), peak.median()/1e9
	for i := range r.Kernels {
		k := &r.Kernels[i]
		k.Share = limits{peak.median(), r.Bandwidth}.floor(k.costs) / max(k.Seconds, 1e-12)
		spreads.add(k.spread)
	}
	r.Noise = noise{Peak: peak.spread(), Steps: spreads.median(), Others: others, mine: b.threads}
	return r, nil
}

// How long a kernel is measured: at least as many runs as a step is measured in,
// and for each of them so long.
const (
	mostRuns = 200
	perRun   = 12 * time.Millisecond
	mostTime = 2 * time.Second // unless one run takes longer
)

// kernel measures a program on an engine of its own. The first run is not counted.
func (b *bench) kernel(e *cpu.Engine, c kernelCase) ([]kernelLine, error) {
	pb := program.New(c.name, b.in.Layout())
	elements := c.build(pb)
	p, err := pb.Build()
	if err != nil {
		return nil, err
	}
	x, err := e.Compile(p, 1)
	if err != nil {
		return nil, err
	}
	call, err := b.fill(e, p)
	if err != nil {
		return nil, err
	}
	steps := cpu.Steps(x)
	times := make([]samples, len(steps))
	began := time.Now()
	for run := 0; ; run++ {
		if err := countOne(e, p); err != nil {
			return nil, err
		}
		took, err := cpu.Profiled(x, call)
		if err != nil {
			return nil, err
		}
		for i, t := range took {
			if run > 0 {
				times[i].add(t.Duration.Seconds())
			}
		}
		spent := time.Since(began)
		if run > 0 && (run >= mostRuns || spent > mostTime || run >= b.steps && spent > time.Duration(b.steps)*perRun) {
			break
		}
	}
	return kernelLines(c.name, elements, steps, times), nil
}

// kernelLines are the figures of the steps of a program, those that take time.
func kernelLines(name string, elements int, steps []cpu.StepInfo, times []samples) []kernelLine {
	var lines []kernelLine
	for i, s := range steps {
		t := max(times[i].median(), 1e-9)
		bytes := float64(moved(s))
		if s.Bytes < 1<<12 && s.FLOPs == 0 {
			continue // it moves a few numbers, such as the report of an update
		}
		k := kernelLine{
			Name: s.Name, Shape: shapes(s), Seconds: t, Nanosecond: 1e9 * t / float64(elements),
			GFLOPS: float64(s.FLOPs) / t / 1e9, Bytes: bytes / t, spread: times[i].spread(),
			costs: costs{FLOPs: float64(s.FLOPs), Bytes: bytes},
		}
		if !strings.HasPrefix(s.Name, name) {
			k.Name = name + ": " + s.Name
		}
		lines = append(lines, k)
	}
	return lines
}

// fill gives a program numbers to compute with: positions that count through
// each row, ids and labels at random, small floats.
func (b *bench) fill(e *cpu.Engine, p *program.Program) (*engine.Call, error) {
	draw := rng.New(0, "bench kernels")
	call := engine.NewCall(p)
	call.Out = nil // results are not wanted
	bound := map[*program.Value]int{}
	for _, w := range p.Bounds() {
		bound[w.Input] = w.Hi
	}
	for i, v := range p.Held(program.Input) {
		switch a := call.In[i]; {
		case v.Type == half.I32:
			ids := program.View[int32](a)
			for j := range ids {
				switch v.Name {
				case "positions":
					ids[j] = int32(j % b.seq)
				case "last":
					ids[j] = int32(b.seq - 1)
				case "slots":
					ids[j] = int32(j)
				default:
					ids[j] = int32(draw.Word(uint64(j)) % uint32(max(1, bound[v])))
				}
			}
		case v.Type == half.F64:
			for j := range program.View[float64](a) {
				program.View[float64](a)[j] = 1
			}
		case v.Type == half.BF16:
			x := make([]float32, v.Len())
			noiseInto(x, draw)
			half.F32ToBF16(program.View[uint16](a), x)
		default:
			noiseInto(program.View[float32](a), draw)
		}
	}
	into := engine.NewFloats(e, p)
	for _, v := range append(p.Held(program.Weight), p.Held(program.State)...) {
		if v.Type == program.TallyType {
			continue
		}
		x := make([]float32, v.Len())
		noiseInto(x, draw)
		if err := into.Write(v.Name, 0, x); err != nil {
			return nil, err
		}
	}
	return call, nil
}

// noiseInto writes small numbers above zero, the same thousand again and again:
// above zero, since some are squares.
func noiseInto(x []float32, draw rng.Stream) {
	n := min(len(x), 1021)
	for i := range n {
		x[i] = float32(0.01 + 0.02*draw.Float64(uint64(i)))
	}
	for i := n; i < len(x); i += n {
		copy(x[i:], x[:n])
	}
}

// countOne makes the tally of p, if it has one, that of a single target, since an
// update does nothing without one.
func countOne(e *cpu.Engine, p *program.Program) error {
	for _, v := range p.Held(program.State) {
		if v.Type == program.TallyType && v.Len() == 2 {
			return e.Write(program.Place{}, v.Name, 0, program.ArrayOf([]float64{1, 1}))
		}
	}
	return nil
}

func (r *kernelsReport) print(w io.Writer) error {
	t := newTable(w)
	r.head(t, "")
	r.foot(t, "a kernel")
	fmt.Fprintln(t.w)
	if err := printed(t.w.Flush()); err != nil {
		return err
	}
	rows := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(rows, "time\tns/element\tGFLOP/s\tof peak\tGB/s\tof floor\t  kernel\t")
	for _, k := range r.Kernels {
		flops, peak := "", ""
		if k.GFLOPS > 0 {
			flops, peak = fmt.Sprintf("%.1f", k.GFLOPS), inPercent(k.GFLOPS/r.PeakGFLOPS)
		}
		fmt.Fprintf(rows, "%s\t%.3f\t%s\t%s\t%.1f\t%s\t  %s  %s\n", milliseconds(k.Seconds), k.Nanosecond, flops, peak,
			k.Bytes/1e9, inPercent(k.Share), k.Name, k.Shape)
	}
	return printed(rows.Flush())
}
