// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package data

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pleach/internal/fault"
)

// TestSurvey: what a survey of a source says is what a plain count says.
func TestSurvey(t *testing.T) {
	docs := lettered(1, 300, 90)
	docs = append(docs, docs[7], docs[7], docs[8], " ", "é")
	dir := write(t, map[string]string{
		"mix/a.jsonl": jsonl(docs[:200]) + "{\"text\": \"half\n", "mix/b.jsonl": jsonl(docs[200:]), "mix/c.pdf": "%PDF-1",
	})
	p := SurveySpec{Spec: specOf([]Source{{Paths: []string{dir}, ID: "id", Format: "jsonl"}})}
	p.Class = func(id int32) Class {
		switch id {
		case 'a':
			return Unknown
		case 0xc3, 0xa9:
			return Fallback
		}
		return Usual
	}
	want := SourceSurvey{}
	for _, d := range docs {
		if d == " " {
			continue
		}
		want.Documents++
		want.TextBytes += int64(len(d))
		want.Tokens += int64(len(d)) + 1
		want.Unknown += int64(strings.Count(d, "a"))
		want.Lengths.Add(int64(len(d)) + 1)
		if len(d)+1 > p.Sequence {
			want.Overlong++
		}
	}
	want.TextIDs, want.Fallback = want.TextBytes, 2
	done, total := int64(0), int64(0)
	p.Progress = func(d, all int64) { done, total = d, all }
	all, err := Survey(t.Context(), p, byteEncoder{})
	if err != nil {
		t.Fatal(err)
	}
	got := all[0]
	if got.Looked != got.Bytes || got.Scale() != 1 || done != total || total != got.Bytes || got.Files != 2 || got.Field != "text" || !got.InTokens {
		t.Errorf("looked at %d of %d bytes, told of %d of %d: %+v", got.Looked, got.Bytes, done, total, got)
	}
	if d := cmp.Diff(Duplicates{Documents: 304, Copies: 3, Part: 1}, got.Duplicates); d != "" {
		t.Errorf("duplicates (-want +got):\n%s", d)
	}
	skipped := map[string]int64{"PDF": 1, "empty": 1, "damaged": 1}
	if d := cmp.Diff(skipped, got.Skipped); d != "" {
		t.Errorf("skipped (-want +got):\n%s", d)
	}
	if got.Examples["empty"] != "d103" || !strings.Contains(got.Examples["damaged"], "a.jsonl:201") {
		t.Errorf("examples: got %v", got.Examples)
	}
	want.Name, want.Files, want.Field, want.Bytes, want.Looked = got.Name, 2, "text", got.Bytes, got.Looked
	want.Skipped, want.Examples, want.Duplicates, want.InTokens = got.Skipped, got.Examples, got.Duplicates, true
	if d := cmp.Diff(want, got, cmp.AllowUnexported(Lengths{})); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	// Without a tokenizer lengths are in bytes.
	all, err = Survey(t.Context(), p, nil)
	if err != nil || all[0].Tokens != 0 || all[0].InTokens || all[0].Lengths.Sum != want.TextBytes || all[0].Documents != 304 {
		t.Errorf("without a tokenizer: %v, %+v", err, all)
	}
}

// TestSurveyIDs: documents of ids have a length in tokens without a tokenizer.
func TestSurveyIDs(t *testing.T) {
	row := lines(fields{"t": []int{1, 2, 3}})
	p := SurveySpec{Spec: specOf([]Source{{
		Paths: []string{write(t, map[string]string{"a.jsonl": row + row + lines(fields{"t": []int{4, eos}})})}, Field: "t",
	}})}
	all, err := Survey(t.Context(), p, nil)
	if err != nil || !all[0].InTokens || all[0].Tokens != 4+4+2 || all[0].TextBytes != 0 || all[0].Duplicates.Copies != 1 {
		t.Errorf("got %+v, %v", all, err)
	}
}

// TestSurveySample: some blocks of a source say about what all of them do.
func TestSurveySample(t *testing.T) {
	dir := write(t, map[string]string{"a.jsonl": jsonl(lettered(1, 20_000, 200))})
	p := SurveySpec{Spec: specOf([]Source{{Paths: []string{dir}}}), Sample: 500_000}
	part, err := Survey(t.Context(), p, byteEncoder{})
	p.Sample = 0
	all, also := Survey(t.Context(), p, byteEncoder{})
	if err != nil || also != nil {
		t.Fatal(err, also)
	}
	a, b := part[0], all[0]
	if a.Looked > 600_000 || a.Looked < 400_000 || b.Documents != 20_000 {
		t.Errorf("looked at %d bytes of %d, %d documents in all", a.Looked, a.Bytes, b.Documents)
	}
	if off := float64(a.Tokens)*a.Scale()/float64(b.Tokens) - 1; math.Abs(off) > 0.02 {
		t.Errorf("estimated %.0f tokens of %d", float64(a.Tokens)*a.Scale(), b.Tokens)
	}
}

// TestSurveyStops: at the end of its context, and at what nobody can read.
func TestSurveyStops(t *testing.T) {
	dir := write(t, map[string]string{"a.jsonl": jsonl(lettered(1, 500, 90)), "rows/a.jsonl": "{\"text\": [1\n"})
	p := SurveySpec{Spec: specOf([]Source{{Paths: []string{filepath.Join(dir, "a.jsonl")}}})}
	ctx, cancel := context.WithCancel(t.Context())
	p.Progress = func(_, _ int64) { cancel() }
	if _, err := Survey(ctx, p, byteEncoder{}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: got %v", err)
	}
	p.Progress = nil
	p.Sources = []Source{{Paths: []string{filepath.Join(dir, "rows", "a.jsonl")}, Rows: true}}
	if _, err := Survey(t.Context(), p, byteEncoder{}); !errors.Is(err, fault.Data) {
		t.Errorf("a damaged row: got %v, want an error of kind data", err)
	}
	p.Sequence = 0
	if _, err := Survey(t.Context(), p, byteEncoder{}); !errors.Is(err, fault.Config) {
		t.Errorf("no sequence: got %v", err)
	}
}

// TestHashes: copies are counted exactly up to the limit, and about from there on,
// whatever their order.
func TestHashes(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var all []uint64
	for range 20_000 {
		x := r.Uint64()
		all = append(all, x)
		if r.IntN(4) == 0 {
			all = append(all, x, x)
		}
	}
	var first Duplicates
	for _, limit := range []int{len(all), 4000, 4000} {
		r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		h := newHashes(limit)
		for _, x := range all {
			h.add(x)
		}
		d := h.duplicates()
		if len(h.times) > limit || math.Abs(d.Share()-1./3) > 0.03 {
			t.Errorf("limit %d: %d kept, %+v, a share of %.3f, want 0.333", limit, len(h.times), d, d.Share())
		}
		if limit == len(all) {
			if int(d.Documents) != len(all) || d.Part != 1 {
				t.Errorf("got %+v of %d", d, len(all))
			}
		} else if first == (Duplicates{}) {
			first = d
		} else if d != first || d.Part > 0.25 {
			t.Errorf("in another order: got %+v, want %+v", d, first)
		}
	}
}

// TestLengths: bins cover all lengths without gaps, and quantiles are close.
func TestLengths(t *testing.T) {
	for i := range fineBins - 1 {
		lo, hi := binFrom(i), binFrom(i+1)
		if hi <= lo || binOf(lo) != i || binOf(hi-1) != i {
			t.Fatalf("bin %d: from %d to %d", i, lo, hi)
		}
	}
	if binOf(math.MaxInt64) != fineBins-1 {
		t.Error("the longest length has no bin")
	}
	var h Lengths
	if h.Mean() != 0 || h.Quantile(0.5) != 0 || h.Bars() != nil {
		t.Error("of nothing: want zeros")
	}
	var all []int64
	r := rand.New(rand.NewPCG(3, 4))
	for range 5001 {
		n := int64(math.Exp(r.Float64() * 12))
		all = append(all, n)
		h.Add(n)
	}
	slices.Sort(all)
	for _, q := range []float64{0.1, 0.5, 0.9, 1} {
		want := all[int(math.Ceil(q*float64(len(all))))-1]
		if got := h.Quantile(q); math.Abs(float64(got)/float64(want)-1) > 1./64 {
			t.Errorf("quantile %v: got %d, want %d", q, got, want)
		}
	}
	sum := int64(0)
	for i, b := range h.Bars() {
		if b.From != 1<<i || b.To != 2<<i-1 {
			t.Errorf("bar %d: %+v", i, b)
		}
		sum += b.Count
	}
	if sum != 5001 {
		t.Errorf("bars have %d lengths", sum)
	}
	var gap Lengths
	gap.Add(0)
	gap.Add(5)
	if d := cmp.Diff([]Bar{{0, 0, 1}, {1, 1, 0}, {2, 3, 0}, {4, 7, 1}}, gap.Bars()); d != "" {
		t.Errorf("a gap (-want +got):\n%s", d)
	}
}

// TestBare: looking at some documents of a file takes no reading of all in front.
func TestBare(t *testing.T) {
	dir := write(t, map[string]string{"a.jsonl": jsonl(lettered(1, 200_000, 200))}) // more than has an index
	p := specOf([]Source{{Paths: []string{dir}}})
	l := open(t, p)
	lines := l.sources[0].files[0].lines
	if _, err := l.measured(0); err != nil {
		t.Fatal(err)
	}
	if len(lines.before) > 1 {
		t.Errorf("to estimate a source, %d KiB of lines were counted", len(lines.before)*lineChunk>>10)
	}
	s := l.sources[0].bare()
	defer s.close()
	refs, err := s.starting(s.size-1000, s.size)
	if err != nil || len(refs) == 0 {
		t.Fatal(refs, err)
	}
	for _, from := range []*source{s, l.sources[0]} {
		d, _, err := from.read(refs[0], &scratch{})
		if want := map[bool]string{true: "a.jsonl@", false: "a.jsonl:"}[from == s]; err != nil || !strings.Contains(d.ID, want) {
			t.Errorf("got %s, %v, want %s…", d.ID, err, want)
		}
	}
}
