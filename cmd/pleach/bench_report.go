// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"
	"strings"

	"pleach/engine/cpu"
	"pleach/half"
)

// report is what a bench has measured.
type report interface {
	print(w io.Writer) error
	spread() noise
	compare(w io.Writer, old *oldReport) error
}

// common is what all reports have. The keys up to the memory are those that other
// programs' benches print too.
type common struct {
	Config          string  `json:"config"`
	Precision       string  `json:"precision"`
	Threads         int     `json:"threads"`
	TokensPerSecond float64 `json:"tokens_per_second,omitempty"` // of the median step
	GFLOPS          float64 `json:"gflops,omitempty"`
	PeakGFLOPS      float64 `json:"peak_gflops"`
	PeakRSS         int64   `json:"peak_rss_bytes"`

	Bench      string  `json:"bench"`
	Version    string  `json:"version"`
	Level      string  `json:"level"`
	CPU        string  `json:"cpu"`
	Moments    string  `json:"moments,omitempty"` // where they are not f32
	Parameters int     `json:"parameters"`
	Rows       int     `json:"rows"`
	Seq        int     `json:"seq"`
	Bandwidth  float64 `json:"read_bytes_per_second"`
	Noise      noise   `json:"noise"`

	computes half.DType // what peaks are measured in
}

// common is what is known of a bench before it begins.
func (b *bench) common(what string, computes half.DType) common {
	moments := b.moments
	if moments == half.F32.String() {
		moments = ""
	}
	return common{
		Moments: moments,
		Config:  b.config, Precision: b.precision, Threads: b.threads, Bench: what, Version: version, Level: b.level.String(),
		CPU: cpu.Processor(), Parameters: b.spec.Count(), Rows: b.rows, Seq: b.seq, computes: computes,
	}
}

func (r *common) spread() noise { return r.Noise }

// head prints what was measured, and on what; more is what else is to be said of
// the rows.
func (r *common) head(t table, more string) {
	t.row("processor", "%s, %d threads, %s kernels", r.CPU, r.Threads, r.Level)
	t.row("peak", "%.1f GFLOP/s in %v, read bandwidth %.1f GB/s", r.PeakGFLOPS, r.computes, r.Bandwidth/1e9)
	moments := ""
	if r.Moments != "" {
		moments = ", moments in " + r.Moments
	}
	t.row("model", "%s: %s parameters, %d rows of %d ids%s, %s%s", r.Config, amount(float64(r.Parameters)), r.Rows, r.Seq,
		more, r.Precision, moments)
}

// foot prints what it took, and how far to trust it.
func (r *common) foot(t table, what string) {
	if r.PeakRSS > 0 {
		t.row("memory", "%s at most", rounded(r.PeakRSS))
	}
	of := []string{inPercent(r.Noise.Steps) + " between the quartiles of " + what, inPercent(r.Noise.Peak) + " of the peak"}
	if r.Noise.Bandwidth > 0 {
		of = append(of, inPercent(r.Noise.Bandwidth)+" of the bandwidth")
	}
	t.row("noise", "%s", strings.Join(of, ", "))
}
