// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"pleach/corpus"
	"pleach/engine/cpu"
	"pleach/infer"
	"pleach/internal/fault"
	"pleach/internal/unit"
)

// score is what a model got on a held-out text.
type score struct{ Perplexity, BitsPerByte float64 }

// tableRow is a model and its scores on general and domain.
type tableRow struct {
	Label string
	Score [2]score
}

// workDone is what the steps of a run took.
type workDone struct {
	Tokens  int64
	Seconds float64
}

// report prints the end of the story to stdout.
func (q *quickstart) report(ctx context.Context) error {
	var rows []tableRow
	var all workDone
	for _, s := range q.stages() {
		row, work, err := q.scores(s)
		if err != nil {
			return err
		}
		rows = append(rows, row)
		all.Tokens += work.Tokens
		all.Seconds += work.Seconds
	}
	merged, err := q.mergedScores(ctx)
	if err != nil {
		return err
	}
	rows = append(rows, merged)
	w := q.stdout
	printTable(w, rows, q.plan.Names)
	printMeaning(w, rows)
	prompt, err := q.prompt()
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "\nEach goes on from: %s\n", prompt)
	for _, s := range q.stages() {
		text, err := q.sample(ctx, q.checkpoint(s), prompt)
		if err != nil {
			return err
		}
		fmt.Fprintf(w, "\n%s:\n%s\n", s.label, indented(text))
	}
	work, err := q.plan.Sizes.perToken()
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "\nTrained on %s tokens at %s tokens/s (%.3g GFLOP/s).", amount(float64(all.Tokens)),
		amount(float64(all.Tokens)/all.Seconds), work*float64(all.Tokens)/all.Seconds/1e9)
	if peak := peakMemory(); peak > 0 {
		fmt.Fprintf(w, " Peak memory: %v.", unit.Bytes(peak).Rounded())
	}
	fmt.Fprintln(w)
	q.printPlaces(w, prompt)
	return nil
}

// printTable prints perplexity and bits per byte on both texts.
func printTable(w io.Writer, rows []tableRow, names []string) {
	fmt.Fprintf(w, "\n%-24s  %25s  %25s\n", "Held-out text",
		"general: "+brief(names[corpus.General]), "domain: "+brief(names[corpus.Domain]))
	fmt.Fprintf(w, "%-24s  %10s %14s  %10s %14s\n", "", "perplexity", "bits per byte", "perplexity", "bits per byte")
	for _, r := range rows {
		g, d := r.Score[corpus.General], r.Score[corpus.Domain]
		fmt.Fprintf(w, "%-24s  %10s %14.3f  %10s %14.3f\n", r.Label, figure(g.Perplexity), g.BitsPerByte,
			figure(d.Perplexity), d.BitsPerByte)
	}
}

// brief is a name that fits into the head of a column.
func brief(name string) string {
	if r := []rune(name); len(r) > 16 {
		return string(r[:15]) + "…"
	}
	return name
}

// figure prints a perplexity with four digits or a whole number.
func figure(x float64) string {
	switch {
	case x >= 1000:
		return fmt.Sprintf("%.0f", x)
	case x >= 100:
		return fmt.Sprintf("%.1f", x)
	}
	return fmt.Sprintf("%.2f", x)
}

// printMeaning says what the table shows, whatever that is.
func printMeaning(w io.Writer, rows []tableRow) {
	change := func(row, side int) float64 {
		return percent(rows[0].Score[side].Perplexity, rows[row].Score[side].Perplexity)
	}
	says := func(x float64) string {
		switch {
		case x > 0:
			return fmt.Sprintf("rises by %.0f %%", x)
		case x < 0:
			return fmt.Sprintf("falls by %.0f %%", -x)
		}
		return "stays"
	}
	fmt.Fprintf(w, "\nGain: continued on the domain, its perplexity there %s.\n", says(change(1, corpus.Domain)))
	fmt.Fprintf(w, "Forgetting: the perplexity on general text %s.\n", says(change(1, corpus.General)))
	fmt.Fprintf(w, "With 10 %% replay it %s there, and %s on the domain.\n",
		says(change(2, corpus.General)), says(change(2, corpus.Domain)))
	fmt.Fprintf(w, "With base and continued merged, which needs no training, it %s there, and %s on the domain.\n",
		says(change(3, corpus.General)), says(change(3, corpus.Domain)))
}

// prompt is what the samples go on from: one line.
func (q *quickstart) prompt() (string, error) {
	if q.plan.Prompt != "" {
		return q.plan.Prompt, nil
	}
	for text, err := range corpus.Read(filepath.Join(q.out, "text", corpus.FileName(corpus.Domain, true)), 1) {
		if err != nil {
			return "", err
		}
		words := strings.Fields(string(text))
		// A dash at its begin would be a flag of the command that is printed.
		return strings.TrimLeft(strings.Join(words[:min(len(words), 8)], " "), "-"), nil
	}
	return "", fault.Statef("quickstart: the held-out text is empty")
}

// Samples are of so many tokens, drawn in this way.
const (
	sampleTokens      = 60
	sampleTemperature = 0.7
	sampleSeed        = 1
)

// sample is what a model makes of the prompt.
func (q *quickstart) sample(ctx context.Context, dir, prompt string) (string, error) {
	m, err := openModel(dir)
	if err != nil {
		return "", err
	}
	defer m.close()
	t, err := m.needTokenizer()
	if err != nil {
		return "", err
	}
	ids := t.EncodeSpecial(nil, []byte(prompt)) // as generate does
	run, err := options(q.threads)
	if err != nil {
		return "", err
	}
	e := cpu.New(run)
	defer e.Close()
	g, err := infer.NewGenerator(e, m.config.Spec, plain(), min(len(ids)+sampleTokens, m.config.MaxT), 1)
	if err != nil {
		return "", err
	}
	if err := m.load(e, plain()); err != nil {
		return "", err
	}
	how := infer.Sampling{Temperature: sampleTemperature, Seed: sampleSeed}
	more, err := g.Generate(ctx, ids, sampleTokens, how, stops(m), nil)
	return t.DecodeText(more), err
}

// indented sets a text off, without control characters but newlines.
func indented(s string) string {
	s = strings.Map(func(r rune) rune {
		if r == '\t' {
			return ' '
		}
		if r < ' ' && r != '\n' || r == 0x7f {
			return -1
		}
		return r
	}, s)
	return "    " + strings.ReplaceAll(strings.Trim(s, "\n"), "\n", "\n    ")
}

// printPlaces says where everything is and what to try next.
func (q *quickstart) printPlaces(w io.Writer, prompt string) {
	me := command(os.Args[0])
	stages := q.stages()
	replay := shell(q.checkpoint(stages[2]))
	fmt.Fprintf(w, "\nEverything is in %s:\n", q.out)
	for _, p := range [][2]string{
		{"text/", "the texts, and what is held out of them"},
		{"tokenizer/", "the tokenizer, for Hugging Face tools too"},
		{"*.yaml", "the recipes, as train runs them"},
		{"base/ continued/ replay/", "the runs; their checkpoints are Hugging Face model directories"},
		{"merged/", "base and continued as one model, by merge.yaml"},
	} {
		fmt.Fprintf(w, "  %-26s %s\n", p[0], p[1])
	}
	fmt.Fprintf(w, "\nNext:\n")
	fmt.Fprintf(w, "  %s generate %s %s --tokens %d --temperature %g --seed %d\n", me, replay, shell(prompt), sampleTokens,
		sampleTemperature, sampleSeed)
	fmt.Fprintf(w, "  %s eval %s --perplexity %s --sequence %d\n", me, replay,
		shell("domain="+filepath.Join(q.out, "text", corpus.FileName(corpus.Domain, true))), q.plan.Sizes.Sequence)
	// Paths on the command line start at the recipe's folder.
	fmt.Fprintf(w, "  %s train %s data.sources.1.weight=0.3 out=more-replay\n", me,
		shell(filepath.Join(q.out, stages[2].file)))
	fmt.Fprintf(w, "  %s merge %s curve --sweep t=0:1:0.25 --evaluate %s\n", me, shell(filepath.Join(q.out, mergeFile)),
		shell("domain="+filepath.Join(q.out, "text", corpus.FileName(corpus.Domain, true))))
	fmt.Fprintf(w, "  %s init --help      # a recipe for your own text\n", me)
}

// command is how this program was called: a path that go run made is gone soon.
func command(name string) string {
	if strings.Contains(name, "go-build") {
		return "go run ./cmd/pleach"
	}
	return shell(name)
}

// shell quotes a word for a POSIX shell if it needs that.
func shell(s string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' ||
			strings.ContainsRune("_-./=:+,@%", r)
	}
	if s != "" && strings.IndexFunc(s, func(r rune) bool { return !plain(r) }) < 0 {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// peakMemory is the largest resident size of this process in bytes, 0 where the
// system does not say.
func peakMemory() int {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			n, _ := strconv.Atoi(strings.TrimSuffix(strings.TrimSpace(rest), " kB"))
			return n << 10
		}
	}
	return 0
}
