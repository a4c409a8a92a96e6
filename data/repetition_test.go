// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package data

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func repetitions(t *testing.T, p Spec, rows int64) ([]Repetition, int64) {
	t.Helper()
	each, ends, err := open(t, p).Repetitions(rows)
	if err != nil {
		t.Fatal(err)
	}
	return each, ends
}

// TestRepetitions: what a run takes of each source is what the loader serves, over
// stages and past the end of a source.
func TestRepetitions(t *testing.T) {
	const rows = 3000
	cases := map[string]func(p *Spec){
		"one mixture": func(*Spec) {},
		"stages": func(p *Spec) {
			p.Stages = []Stage{{1000, []float64{1, 3}}, {2000, []float64{0, 1}}, {9000, []float64{1, 1}}}
		},
		"one source ends": func(p *Spec) { p.Sources[0].Epochs = 4 },
	}
	for name, change := range cases {
		p := specOf(corpus(t))
		change(&p)
		each, ends := repetitions(t, p, rows)
		if ends != rows {
			t.Errorf("%s: ends after %d rows, want %d", name, ends, rows)
		}
		got := tokensOf(next(t, open(t, p), rows), 2)
		for i, r := range each {
			if !r.Exact || math.Abs(float64(r.Taken)/float64(got[i])-1) > 0.08 { // rows overlap by one id
				t.Errorf("%s: %+v, the loader took %d", name, r, got[i])
			}
		}
	}
}

// TestRepetitionsEnd: the end of a run in which every source has been read as often
// as it may is foreseen, short of what lanes have left.
func TestRepetitionsEnd(t *testing.T) {
	p := specOf(corpus(t))
	p.Sources[0].Epochs, p.Sources[1].Epochs = 6, 3
	each, ends := repetitions(t, p, 1<<20)
	if got := int64(len(drain(t, open(t, p)))); got > ends || float64(got) < 0.7*float64(ends) {
		t.Errorf("got %d rows, foreseen %d", got, ends)
	}
	if a, b := each[0].Times(), each[1].Times(); math.Abs(a-6) > 1e-3 || math.Abs(b-3) > 1e-3 {
		t.Errorf("seen %v and %v times, want 6 and 3", a, b)
	}
	if (Repetition{}).Times() != 0 {
		t.Error("a source without tokens: want 0 times")
	}
}

// TestRepetitionsReady: of ready rows a row counts as the ids that it adds.
func TestRepetitionsReady(t *testing.T) {
	p := specOf([]Source{{
		Paths: []string{write(t, map[string]string{"a.jsonl": strings.Repeat(lines(fields{"t": make([]int, 17)}), 10)})},
		Field: "t", Rows: true, Epochs: 2,
	}})
	each, ends := repetitions(t, p, 100)
	if each[0].Tokens != 160 || ends != 20 || each[0].Times() != 2 || !each[0].Exact {
		t.Errorf("got %+v, ends after %d", each, ends)
	}
}

// TestMeasure: the size of a source is estimated within a few per cent from a sample
// of documents short and long, counted where it is small, and kept.
func TestMeasure(t *testing.T) {
	words := strings.Repeat("some words é ", 80<<10/14)
	var short strings.Builder
	for i := 0; short.Len() < 12<<20; i++ {
		short.WriteString(lines(fields{"text": words[:100+i%7*400]}))
	}
	files := map[string]string{"short/a.jsonl": short.String()}
	for _, name := range []string{"a", "b", "c"} {
		files["long/"+name+".txt"] = strings.Repeat(words, 20)
	}
	dir := write(t, files)
	for _, name := range []string{"short", "long"} {
		p := specOf([]Source{{Paths: []string{filepath.Join(dir, name)}}})
		p.Cache = filepath.Join(dir, "cache "+name)
		l := open(t, p)
		got, err := l.measured(0)
		if err != nil || got.Exact {
			t.Fatal(got, err)
		}
		want, err := l.count(math.MaxInt64, samplePart)
		if off := float64(got.Tokens)/float64(want.SourceTokens) - 1; err != nil || math.Abs(off) > 0.03 {
			t.Errorf("%s: got %d tokens, want %d: off by %.1f %%, %v", name, got.Tokens, want.SourceTokens, 100*off, err)
		}
		kept, _ := filepath.Glob(filepath.Join(p.Cache, "size-*.json"))
		if len(kept) != 1 {
			t.Fatalf("%s: kept %v", name, kept)
		}
		if err := os.WriteFile(kept[0], []byte(`{"tokens":42}`), 0o666); err != nil {
			t.Fatal(err)
		}
		if again, err := open(t, p).measured(0); err != nil || again.Tokens != 42 {
			t.Errorf("%s: what was kept is not used: %+v, %v", name, again, err)
		}
		if _, err := l.Epoch(); err != nil { // counts, which is worth more
			t.Fatal(err)
		}
		if after, err := l.measured(0); err != nil || after != (measure{want.SourceTokens, true}) {
			t.Errorf("%s: after counting: got %+v, %v, want %d", name, after, err, want.SourceTokens)
		}
	}
}
