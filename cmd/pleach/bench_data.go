// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"pleach/data"
)

// benchData is what bench data is told.
type benchData struct {
	documentArgs
	threads, lanes int
	seconds        float64
	asJSON         bool
}

func newBenchData() *cobra.Command {
	var o benchData
	c := &cobra.Command{
		Use:   "data RECIPE [key=value …] | PATH…",
		Short: "How fast documents become rows",
		Long: `Data makes the rows of a recipe, or of files, folders and URLs, as fast as it can,
and prints tokens and bytes of text per second, which share of the threads' time
goes to reading and decompressing, parsing, tokenizing and packing, and the memory.

A row of T+1 ids counts as T tokens. Rows are counted from when each lane has made
its first one. Shares are of the time in which lanes worked, measured by clocks
around the parts; a lane that waits for a processor does not work. Memory is the
most that the process had up to a time: were it to grow with what is read, it
would be more at the end than after a quarter of the time.`,
		Example: `  pleach bench data recipe.yaml
  pleach bench data corpus/*.jsonl.zst --tokenizer llama-2-7b --threads 1
  pleach bench data s3://bucket/corpus/*.parquet --tokenizer llama-2-7b --seconds 30 --json`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error { return o.run(c, args) },
	}
	o.flags(c)
	c.Flags().IntVar(&o.threads, "threads", 0, "threads that make rows; 0: as many as the process may use")
	c.Flags().IntVar(&o.lanes, "lanes", 16, "of files: streams of documents, as many as a step has sequences")
	c.Flags().Float64Var(&o.seconds, "seconds", 5, "how long to measure; less if the sources end")
	c.Flags().BoolVar(&o.asJSON, "json", false, "print a JSON object instead of a table")
	return c
}

func (o *benchData) run(c *cobra.Command, args []string) error {
	if o.threads < 0 || o.lanes < 1 || !(o.seconds > 0 && o.seconds < 1e6) {
		return errUsage(c, "--threads %d --lanes %d --seconds %v: want 0 or more, 1 or more, and more than 0",
			o.threads, o.lanes, o.seconds)
	}
	if o.threads == 0 {
		o.threads = defaultThreads()
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(o.threads))
	d, err := o.open(c, args)
	if err != nil {
		return err
	}
	defer d.close()
	if !isRecipe(args[0]) {
		d.spec.Lanes = o.lanes
	}
	r, err := d.measure(c.Context(), time.Duration(o.seconds*float64(time.Second)))
	if err != nil {
		return stoppable(c.Context(), err)
	}
	r.Threads = o.threads
	r.Noise.mine = o.threads
	if why := r.Noise.tooNoisy(); why != "" {
		fmt.Fprintf(c.ErrOrStderr(), "bench: this machine is too noisy to decide: %s\n", why)
	}
	if o.asJSON {
		return printJSON(c.OutOrStdout(), r)
	}
	return r.print(c.OutOrStdout())
}

// dataReport is what bench data has measured.
type dataReport struct {
	Bench           string             `json:"bench"`
	Version         string             `json:"version"`
	Threads         int                `json:"threads"`
	Sources         int                `json:"sources"`
	Files           int                `json:"files"`
	Bytes           int64              `json:"bytes"` // of all files, as they are stored
	Lanes           int                `json:"lanes"`
	Sequence        int                `json:"sequence"`
	OpenSeconds     float64            `json:"open_seconds"` // to find the files and the first documents
	Seconds         float64            `json:"seconds"`
	Tokens          int64              `json:"tokens"`
	TokensPerSecond float64            `json:"tokens_per_second"`
	TextPerSecond   float64            `json:"text_bytes_per_second,omitempty"`
	Busy            float64            `json:"busy"`   // part of the threads' time in which lanes worked
	Shares          map[string]float64 `json:"shares"` // of the lanes' time, by what they did
	QuarterRSS      int64              `json:"quarter_rss_bytes"`
	PeakRSS         int64              `json:"peak_rss_bytes"`
	Noise           noise              `json:"noise"`

	ended bool
}

// encodes counts the texts that are encoded.
type encodes struct {
	data.Encoder
	bytes atomic.Int64
}

func (e *encodes) Encode(dst []int32, text []byte) []int32 {
	e.bytes.Add(int64(len(text)))
	return e.Encoder.Encode(dst, text)
}

// Err is that of the encoder, which a loader asks for.
func (e *encodes) Err() error {
	if f, ok := e.Encoder.(interface{ Err() error }); ok {
		return f.Err()
	}
	return nil
}

// measure makes rows for so long.
func (d *documents) measure(ctx context.Context, long time.Duration) (*dataReport, error) {
	texts := &encodes{Encoder: d.enc}
	var enc data.Encoder
	if d.enc != nil {
		enc = texts
	}
	var times data.Times
	d.spec.Times = &times
	began := time.Now()
	l, err := data.Open(d.spec, enc)
	if err != nil {
		return nil, err
	}
	defer l.Close()
	stop := context.AfterFunc(ctx, l.Close)
	defer stop()
	r := &dataReport{
		Bench: "data", Version: version, Lanes: d.spec.Lanes, Sequence: d.spec.Sequence,
		OpenSeconds: time.Since(began).Seconds(),
	}
	for _, s := range l.Stats() {
		r.Sources++
		r.Files += s.Files
		r.Bytes += s.Bytes
	}
	if _, err := l.Next(r.Lanes); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	before := workOf(&times)
	text, others := texts.bytes.Load(), beginWatch()
	if err := r.serve(l, long); err != nil {
		return nil, err
	}
	r.settle(before, workOf(&times), texts.bytes.Load()-text)
	r.Noise.Others = others.others(runtime.GOMAXPROCS(0))
	return r, nil
}

// serve takes rows for so long, or until the sources end.
func (r *dataReport) serve(l *data.Loader, long time.Duration) error {
	began := time.Now()
	for {
		rows, err := l.Next(r.Lanes)
		r.Tokens += int64(len(rows) * r.Sequence)
		took := time.Since(began)
		if r.Seconds = took.Seconds(); r.QuarterRSS == 0 && took >= long/4 {
			r.QuarterRSS = peakRSS()
		}
		if r.ended = errors.Is(err, io.EOF); r.ended || took >= long {
			r.PeakRSS = peakRSS()
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// kindsOfWork are in the order in which a document meets them.
func kindsOfWork() []data.Work {
	return []data.Work{data.Reading, data.Parsing, data.Encoding, data.Packing}
}

// workOf is the seconds spent on each kind of work up to now.
func workOf(t *data.Times) map[data.Work]float64 {
	all := map[data.Work]float64{}
	for _, w := range kindsOfWork() {
		all[w] = t.Spent(w).Seconds()
	}
	return all
}

// settle computes rates and shares.
func (r *dataReport) settle(before, after map[data.Work]float64, text int64) {
	sum := 0.0
	r.Shares = map[string]float64{}
	for w := range after {
		sum += after[w] - before[w]
	}
	for w := range after {
		r.Shares[w.String()] = (after[w] - before[w]) / max(sum, 1e-9)
	}
	seconds := max(r.Seconds, 1e-9)
	r.TokensPerSecond, r.TextPerSecond = float64(r.Tokens)/seconds, float64(text)/seconds
	r.Busy = sum / seconds / float64(runtime.GOMAXPROCS(0))
}

func (r *dataReport) print(w io.Writer) error {
	t := newTable(w)
	t.row("corpus", "%d sources, %d files, %s, opened in %.2f s", r.Sources, r.Files, rounded(r.Bytes), r.OpenSeconds)
	t.row("rows", "of %d ids, from %d lanes, with %d threads", r.Sequence+1, r.Lanes, r.Threads)
	end := ""
	if r.ended {
		end = ", until the sources ended"
	}
	t.row("speed", "%s tokens/s, %.2f MB/s of text: %s tokens in %.1f s%s", amount(r.TokensPerSecond), r.TextPerSecond/1e6,
		amount(float64(r.Tokens)), r.Seconds, end)
	t.row("busy", "%s of the threads' time, of which", inPercent(r.Busy))
	for _, w := range kindsOfWork() {
		t.row("  "+inPercent(r.Shares[w.String()]), "%v", w)
	}
	if r.PeakRSS > 0 {
		memory := rounded(r.PeakRSS) + " at most"
		if r.QuarterRSS > 0 {
			memory += ", " + rounded(r.QuarterRSS) + " in the first quarter"
		}
		t.row("memory", "%s", memory)
	}
	return printed(t.w.Flush())
}
