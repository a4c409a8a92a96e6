// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"pleach/data"
	"pleach/engine/cpu"
	"pleach/internal/fault"
	"pleach/token"
)

// benchTokenizer measures how fast texts become ids.
type benchTokenizer struct {
	compute
	field  string
	passes int
	asJSON bool
}

// tokenizerReport is how fast a tokenizer encodes documents. MB are 10⁶ bytes of
// UTF-8. The first keys are those of bench/tokenizer_encoding.py.
type tokenizerReport struct {
	Threads         int     `json:"threads"`
	MBPerSecond     float64 `json:"mb_per_second"`      // of the median pass
	Best            float64 `json:"best_mb_per_second"` // of the fastest
	TokensPerSecond float64 `json:"tokens_per_second"`  // of the median pass
	PerCPU          float64 `json:"mb_per_cpu_second"`  // of all passes: MB over the time of processors that they took
	PeakRSS         int64   `json:"peak_rss_bytes"`
	Documents       int     `json:"documents"`
	Bytes           int64   `json:"bytes"`
	Tokens          int64   `json:"tokens"`
	SHA256          string  `json:"ids_sha256"` // of each document's number of ids and its ids, int32, little-endian

	Version string  `json:"version"`
	CPU     string  `json:"cpu"`
	Passes  int     `json:"passes"`
	Spread  float64 `json:"spread"` // distance of the quartiles of the passes over their median
	Others  float64 `json:"others_cpus"`
}

func newBenchTokenizer() *cobra.Command {
	var b benchTokenizer
	c := &cobra.Command{
		Use:   "tokenizer TOKENIZER FILES…",
		Short: "How fast a tokenizer turns documents into ids",
		Long: `Tokenizer reads the documents of FILES as train does (a line of JSONL is one, and a
file of plain text is one), keeps them in memory, and encodes all of them several
times on --threads threads, each document as a whole and without special tokens.

The first pass fills the caches and does not count. Every pass must give the same
ids: their SHA-256 is that of bench/tokenizer_encoding.py for the tokenizers of others. MB
are 10⁶ bytes of UTF-8.`,
		Example: `  pleach bench tokenizer llama-2-7b corpus.jsonl
  pleach bench tokenizer tokenizer.model corpus.jsonl --threads 1 --json`,
		Args: cobra.MinimumNArgs(2),
		RunE: func(c *cobra.Command, args []string) error { return b.run(c, args[0], args[1:]) },
	}
	b.flags(c)
	c.Flags().StringVar(&b.field, "field", "text", "of a JSONL line, the text")
	c.Flags().IntVar(&b.passes, "passes", 5, "passes to take the median of, after one that is not counted")
	c.Flags().BoolVar(&b.asJSON, "json", false, "print a JSON object instead of a table")
	return c
}

func (b *benchTokenizer) run(c *cobra.Command, tokenizer string, files []string) error {
	if b.passes < 1 {
		return errUsage(c, "--passes: got %d, want 1 or more", b.passes)
	}
	if err := b.check(c); err != nil {
		return err
	}
	t, err := openTokenizer(tokenizer)
	if err != nil {
		return err
	}
	docs, err := b.documents(c.Context(), files)
	if err != nil {
		return err
	}
	r, err := b.measure(c.Context(), t, docs)
	if err != nil {
		return err
	}
	if why := (noise{Steps: r.Spread, Others: r.Others, mine: r.Threads}).tooNoisy(); why != "" {
		fmt.Fprintf(c.ErrOrStderr(), "bench: this machine is too noisy to decide: %s\n", why)
	}
	if b.asJSON {
		return printJSON(c.OutOrStdout(), r)
	}
	return r.print(c.OutOrStdout())
}

func (b *benchTokenizer) documents(ctx context.Context, files []string) ([][]byte, error) {
	var docs [][]byte
	for d, err := range data.Documents(data.Source{Paths: files, Field: b.field}) {
		if err == nil && d.IDs != nil {
			err = fault.Dataf("%s: a list of ids, want text", d.ID)
		}
		if err == nil {
			err = interrupted(ctx)
		}
		if err != nil {
			return nil, err
		}
		docs = append(docs, d.Text)
	}
	return docs, nil
}

func (b *benchTokenizer) measure(ctx context.Context, t *token.Tokenizer, docs [][]byte) (*tokenizerReport, error) {
	r := &tokenizerReport{
		Threads: b.threads, Documents: len(docs), Version: version, CPU: cpu.Processor(), Passes: b.passes,
	}
	for _, d := range docs {
		r.Bytes += int64(len(d))
	}
	p := newEncodePass(docs, b.threads)
	var seen watch
	var took samples
	var worked float64
	for pass := range 1 + b.passes {
		if err := interrupted(ctx); err != nil {
			return nil, err
		}
		if pass == 1 {
			seen = beginWatch()
		}
		began, cpuBegan := time.Now(), processSeconds()
		p.run(t)
		if pass > 0 {
			took.add(time.Since(began).Seconds())
			worked += processSeconds() - cpuBegan
		}
		sum, n := p.sum()
		if r.SHA256 != "" && sum != r.SHA256 {
			return nil, fault.Machinef("bench: pass %d gave other ids than the first: got SHA-256 %s, want %s", pass, sum, r.SHA256)
		}
		r.SHA256, r.Tokens = sum, n
	}
	if err := t.Err(); err != nil {
		return nil, err
	}
	r.Others, r.Spread, r.PeakRSS = seen.others(b.threads), took.spread(), peakRSS()
	r.MBPerSecond = float64(r.Bytes) / 1e6 / took.median()
	r.Best = float64(r.Bytes) / 1e6 / slices.Min(took.values)
	if worked > 0 { // else the system does not say, or they were too short
		r.PerCPU = float64(r.Bytes) / 1e6 * float64(b.passes) / worked
	}
	r.TokensPerSecond = float64(r.Tokens) / took.median()
	return r, nil
}

// encodePass encodes documents on several threads. Each thread takes the next
// documents that nobody has taken and appends to memory of its own.
type encodePass struct {
	docs  [][]byte
	next  atomic.Int64
	ids   [][]int32 // by thread
	spans []idSpan  // by document
}

// idSpan says where the ids of a document are: ids[thread][from:to].
type idSpan struct{ thread, from, to int }

func newEncodePass(docs [][]byte, threads int) *encodePass {
	return &encodePass{docs: docs, ids: make([][]int32, threads), spans: make([]idSpan, len(docs))}
}

func (p *encodePass) run(t *token.Tokenizer) {
	p.next.Store(0)
	var wg sync.WaitGroup
	for thread := range p.ids {
		wg.Go(func() { p.worker(t, thread) })
	}
	wg.Wait()
}

func (p *encodePass) worker(t *token.Tokenizer, thread int) {
	const some = 8 // documents at a time
	ids := p.ids[thread][:0]
	for {
		from := int(p.next.Add(some)) - some
		if from >= len(p.docs) {
			break
		}
		for k := from; k < min(from+some, len(p.docs)); k++ {
			at := len(ids)
			ids = t.Encode(ids, p.docs[k])
			p.spans[k] = idSpan{thread, at, len(ids)}
		}
	}
	p.ids[thread] = ids
}

// sum is the hash of all ids in the order of the documents, and their number.
func (p *encodePass) sum() (string, int64) {
	h := sha256.New()
	var buf []byte
	var n int64
	for _, at := range p.spans {
		ids := p.ids[at.thread][at.from:at.to]
		n += int64(len(ids))
		buf = binary.LittleEndian.AppendUint32(buf[:0], uint32(len(ids)))
		for _, id := range ids {
			buf = binary.LittleEndian.AppendUint32(buf, uint32(id))
		}
		h.Write(buf)
	}
	return hex.EncodeToString(h.Sum(nil)), n
}

func (r *tokenizerReport) print(w io.Writer) error {
	t := newTable(w)
	t.row("processor", "%s, %d threads", r.CPU, r.Threads)
	t.row("documents", "%d, %.1f MB, %d tokens, %.2f bytes a token", r.Documents, float64(r.Bytes)/1e6, r.Tokens,
		float64(r.Bytes)/float64(max(r.Tokens, 1)))
	t.row("speed", "%.1f MB/s, %s tokens/s, the median of %d; at best %.1f MB/s",
		r.MBPerSecond, amount(r.TokensPerSecond), r.Passes, r.Best)
	if r.PerCPU > 0 {
		t.row("", "%.1f MB for a second of processor time", r.PerCPU)
	}
	if r.PeakRSS > 0 {
		t.row("memory", "%s at most, texts and ids included", rounded(r.PeakRSS))
	}
	t.row("noise", "%s between the quartiles of the passes, other processes took %.1f processors", inPercent(r.Spread), r.Others)
	t.row("ids", "%s", r.SHA256)
	return printed(t.w.Flush())
}
