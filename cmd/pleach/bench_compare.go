// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"strings"
	"text/tabwriter"

	"pleach/half"
	"pleach/internal/fault"
)

// oldReport is a report of any kind that was printed as JSON, by pleach or by
// a program that prints the same keys.
type oldReport struct {
	common
	First   float64      `json:"first_step_seconds"`
	Prefill float64      `json:"prefill_tokens_per_second"`
	Read    float64      `json:"weight_bytes_per_second"`
	Share   float64      `json:"share_of_bandwidth"`
	Kernels []kernelLine `json:"kernels"`
}

// readReport reads the file of --compare.
func readReport(path string) (*oldReport, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fault.Configf("bench: --compare: %w", err)
	}
	var r oldReport
	if err := json.Unmarshal(text, &r); err != nil {
		return nil, fault.Configf("bench: --compare: %s: not what --json prints: %w", path, err)
	}
	if r.Bench == "" && r.TokensPerSecond > 0 {
		r.Bench = "step"
	}
	return &r, nil
}

// fits says why an old report cannot be compared with a bench.
func (old *oldReport) fits(b *bench, what string) error {
	for _, f := range []struct{ name, got, want string }{
		{"bench", old.Bench, what},
		{"config", old.Config, b.config},
		{"precision", old.Precision, b.precision},
		{"moments", cmp.Or(old.Moments, half.F32.String()), b.moments},
		{"threads", fmt.Sprint(old.Threads), fmt.Sprint(b.threads)},
		{"rows", number0(old.Rows), number0(b.rows)},
		{"seq", number0(old.Seq), number0(b.seq)},
	} {
		if f.got != f.want && !(f.got == "" && (f.name == "rows" || f.name == "seq")) {
			return fmt.Errorf("its %s is %q, that of this bench %q", f.name, f.got, f.want)
		}
	}
	return nil
}

// number0 is a number, or nothing if it is 0: a key that is not there.
func number0(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprint(n)
}

// ratio compares a figure: larger is better, unless less is true.
type ratio struct {
	name     string
	old, now float64
	unit     string
	less     bool
}

func (r ratio) times() float64 { return r.now / r.old }

// compare prints how a report relates to an old one.
func (r *stepReport) compare(w io.Writer, old *oldReport) error {
	rows := []ratio{
		{"speed", old.TokensPerSecond, r.TokensPerSecond, "tokens/s", false},
		{"computed", old.GFLOPS, r.GFLOPS, "GFLOP/s", false},
		{"peak", old.PeakGFLOPS, r.PeakGFLOPS, "GFLOP/s", false},
		{"share of peak", 100 * old.GFLOPS / old.PeakGFLOPS, 100 * r.Share, "%", false},
		{"memory", float64(old.PeakRSS) / (1 << 20), float64(r.PeakRSS) / (1 << 20), "MiB", true},
		{"first step", old.First, r.First, "s", true},
	}
	if err := printRatios(w, rows); err != nil {
		return err
	}
	return verdict(w, rows[0].times(), max(old.Noise.Steps, r.Noise.Steps))
}

func (r *kernelsReport) compare(w io.Writer, old *oldReport) error {
	before := map[string]kernelLine{}
	for _, k := range old.Kernels {
		before[k.Name+k.Shape] = k
	}
	rows := []ratio{{"peak", old.PeakGFLOPS, r.PeakGFLOPS, "GFLOP/s", false}}
	var product float64
	n := 0
	for _, k := range r.Kernels {
		o, ok := before[k.Name+k.Shape]
		if !ok {
			continue
		}
		n++
		product += math.Log(o.Seconds / k.Seconds)
		rows = append(rows, ratio{strings.TrimSpace(k.Name + " " + k.Shape), 1e3 * o.Seconds, 1e3 * k.Seconds, "ms", true})
	}
	if err := printRatios(w, rows); err != nil || n == 0 {
		return err
	}
	return verdict(w, math.Exp(product/float64(n)), max(old.Noise.Steps, r.Noise.Steps))
}

// printRatios prints what both reports know.
func printRatios(w io.Writer, rows []ratio) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "\nbefore\tnow\tratio\t  ")
	for _, r := range rows {
		if !(r.old > 0) || !(r.now > 0) || math.IsInf(r.old, 0) {
			continue
		}
		better := "better"
		if r.times() > 1 == r.less {
			better = "worse"
		}
		if r.times() == 1 {
			better = "equal"
		}
		fmt.Fprintf(t, "%.4g\t%.4g %s\t%.3f ×\t  %s: %s\n", r.old, r.now, r.unit, r.times(), r.name, better)
	}
	return printed(t.Flush())
}

// verdict says whether the mean ratio of speeds means anything.
func verdict(w io.Writer, times, noise float64) error {
	change := times - 1
	var err error
	if math.Abs(change) <= noise {
		_, err = fmt.Fprintf(w, "the difference of %+.1f %% is below the noise of %.1f %%\n", 100*change, 100*noise)
	} else {
		_, err = fmt.Fprintf(w, "%+.1f %%, with a noise of %.1f %%\n", 100*change, 100*noise)
	}
	return printed(err)
}
