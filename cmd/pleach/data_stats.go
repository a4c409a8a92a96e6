// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"pleach/data"
	"pleach/internal/unit"
	"pleach/token"
)

// stats is what data stats is told.
type stats struct {
	documentArgs
	sample string
	html   string
	asJSON bool
}

func newDataStats() *cobra.Command {
	var o stats
	c := &cobra.Command{
		Use:   "stats RECIPE [key=value …] | PATH…",
		Short: "Documents, tokens, lengths and copies of a corpus",
		Long: `Stats looks at the documents of a recipe's sources, or of files, folders and URLs,
and prints for each source how many there are, their lengths in tokens, how many
bytes a token has, which part of the tokens stands for what the vocabulary lacks,
how many documents are copies, and what was skipped.

Of a large source a sample is looked at: whole blocks, evenly spaced. Numbers of
documents and tokens of all of it are then estimates, and copies are those within
the sample. Copies are texts that are equal byte for byte, found by 64 bits of
their SHA-256; of more than a million different texts in a source those with the
smallest hashes are compared, which is a fair sample.

A length counts the special tokens that a document gets; a token's bytes do not.
Quantiles are good to 2 %. Without a tokenizer lengths are in bytes.`,
		Example: `  pleach data stats recipe.yaml
  pleach data stats recipe.yaml --sample all --html stats.html
  pleach data stats corpus/ more.jsonl.zst --tokenizer llama-2-7b --sequence 2048
  pleach data stats s3://bucket/corpus/*.parquet --sample "64 MiB" --json`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error { return o.run(c, args) },
	}
	o.flags(c)
	c.Flags().StringVar(&o.sample, "sample", "256 MiB", "how much of each source to look at, as it is stored: bytes, or all")
	c.Flags().StringVar(&o.html, "html", "", "also write a page into this `file`")
	c.Flags().BoolVar(&o.asJSON, "json", false, "print a JSON object for each source instead of tables")
	return c
}

// parseSample reads bytes, or all.
func parseSample(s string) (int64, error) {
	if s == "all" {
		return 0, nil
	}
	n, err := unit.Parse[unit.Bytes](s)
	if err != nil || n == 0 {
		return 0, fmt.Errorf("got %q, want a size such as 64 MiB, or all", s)
	}
	return int64(n), nil
}

func (o *stats) run(c *cobra.Command, args []string) error {
	sample, err := parseSample(o.sample)
	if err != nil {
		return errUsage(c, "--sample: %v", err)
	}
	d, err := o.open(c, args)
	if err != nil {
		return err
	}
	defer d.close()
	show := newETA(c.ErrOrStderr())
	p := data.SurveySpec{Spec: d.spec, Sample: sample, Class: classes(d.tokenizer)}
	p.Progress = func(done, total int64) { show.see("looking at documents", done, total) }
	all, err := data.Survey(c.Context(), p, d.enc)
	show.erase()
	if err != nil {
		return stoppable(c.Context(), err)
	}
	if o.html != "" {
		fill := func(w io.Writer) error { return surveyPage(w, all, p.Sequence, strings.Join(args, " ")) }
		if err := writePage(c.ErrOrStderr(), o.html, fill); err != nil {
			return err
		}
	}
	return o.print(c.OutOrStdout(), all, p.Sequence)
}

func (o *stats) print(w io.Writer, all []data.SourceSurvey, sequence int) error {
	for i := range all {
		if o.asJSON {
			if err := printInert(w, &all[i]); err != nil {
				return err
			}
			continue
		}
		if i > 0 {
			fmt.Fprintln(w)
		}
		if err := printSurvey(w, &all[i], sequence); err != nil {
			return printed(err)
		}
	}
	return nil
}

// classes tells ids that stand for what the vocabulary of a tokenizer lacks.
//
// A character for private use that no vocabulary has shows how it is encoded: by
// tokens like <0xE2> that are a byte each, or by the unknown token, which does not
// decode to it.
func classes(t *token.Tokenizer) func(id int32) data.Class {
	if t == nil {
		return nil
	}
	is := make([]data.Class, t.Size())
	for id := range is {
		if s, ok := t.Token(int32(id)); ok && len(s) == 6 && strings.HasPrefix(s, "<0x") && s[5] == '>' {
			is[id] = data.Fallback
		}
	}
	const stranger = "\U0010fffd"
	ids := t.Encode(nil, []byte(stranger))
	if n := len(ids); n > 0 && !strings.Contains(t.Decode(ids), stranger) && is[ids[n-1]] == data.Usual {
		is[ids[n-1]] = data.Unknown
	}
	return func(id int32) data.Class {
		if id < 0 || int(id) >= len(is) { // of documents that came as ids
			return data.Usual
		}
		return is[id]
	}
}

// A fact is something that a survey says of a source.
type fact struct{ Name, Value string }

// facts are what a survey says, for people.
func facts(s *data.SourceSurvey, sequence int) []fact {
	about, scale := "", s.Scale()
	field := ""
	if s.Field != "" {
		field = fmt.Sprintf(", of each line or row the field %q", s.Field)
	}
	list := []fact{{"files", fmt.Sprintf("%d, %s%s", s.Files, rounded(s.Bytes), field)}}
	add := func(name, format string, args ...any) { list = append(list, fact{name, fmt.Sprintf(format, args...)}) }
	if scale > 1 {
		about = "about "
		add("looked at", "%s of it, %s: the counts of documents and tokens are estimates", rounded(s.Looked), inPercent(1/scale))
	}
	add("documents", "%s%s", about, grouped(float64(s.Documents)*scale))
	if s.Tokens > 0 {
		add("tokens", "%s%s", about, grouped(float64(s.Tokens)*scale))
	}
	if s.TextIDs > 0 {
		add("bytes per token", "%.3f, %.3f tokens per byte", float64(s.TextBytes)/float64(s.TextIDs),
			float64(s.TextIDs)/float64(s.TextBytes))
		add("unknown", "%s of the tokens, byte fallback %s", part(s.Unknown, s.Tokens), part(s.Fallback, s.Tokens))
	}
	add("length", "mean %s, median %s, 90 %% up to %s, longest %s %s", grouped(s.Lengths.Mean()), whole(s.Lengths.Quantile(0.5)),
		whole(s.Lengths.Quantile(0.9)), whole(s.Lengths.Longest), lengthUnit(s))
	if s.InTokens {
		add("overlong", "%s of the documents have more than %d tokens", part(s.Overlong, s.Documents), sequence)
	}
	add("copies", "%s of the documents%s", part(s.Duplicates.Copies, s.Duplicates.Documents), compared(s))
	for _, why := range slices.Sorted(maps.Keys(s.Skipped)) {
		example := ""
		if name := s.Examples[why]; name != "" {
			example = " (" + visible(name) + ")"
		}
		add("skipped", "%d %s%s", s.Skipped[why], why, example)
	}
	return list
}

// compared says among which documents copies were looked for, if not among all.
func compared(s *data.SourceSurvey) string {
	switch {
	case s.Duplicates.Part < 1:
		return fmt.Sprintf(", of the %s that were compared", grouped(float64(s.Duplicates.Documents)))
	case s.Scale() > 1:
		return " looked at"
	}
	return ""
}

func lengthUnit(s *data.SourceSurvey) string {
	if s.InTokens {
		return "tokens"
	}
	return "bytes"
}

// part is a share for people, and how many that are.
func part(n, of int64) string {
	if n == 0 || of == 0 {
		return "none"
	}
	share := 100 * float64(n) / float64(of)
	digits := "%.2g"
	if share >= 10 {
		digits = "%.1f"
	}
	return fmt.Sprintf(digits+" %% (%s)", share, grouped(float64(n)))
}

// grouped prints a whole number with its digits in threes.
func grouped(x float64) string {
	s := fmt.Sprintf("%.0f", x)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + " " + s[i:]
	}
	return s
}

// barWidth is the characters of the longest bar.
const barWidth = 50

func printSurvey(w io.Writer, s *data.SourceSurvey, sequence int) error {
	if _, err := fmt.Fprintf(w, "source %s\n", visible(s.Name)); err != nil {
		return err
	}
	t := newTable(w)
	for _, f := range facts(s, sequence) {
		t.row(f.Name, "%s", f.Value)
	}
	if err := t.w.Flush(); err != nil {
		return err
	}
	bars := s.Lengths.Bars()
	if len(bars) == 0 {
		return nil
	}
	most := int64(1)
	for _, b := range bars {
		most = max(most, b.Count)
	}
	_, err := fmt.Fprintf(w, "documents by length in %s\n", lengthUnit(s))
	for _, b := range bars {
		n := int((b.Count*barWidth + most - 1) / most) // one that is there is seen
		if err == nil {
			_, err = fmt.Fprintf(w, "%10d … %-10d %10d %s\n", b.From, b.To, b.Count, strings.Repeat("█", n))
		}
	}
	return err
}

func whole(n int64) string { return grouped(float64(n)) }
