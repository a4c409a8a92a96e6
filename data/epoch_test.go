// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package data

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestEpoch: an epoch is the tokens of the first source over its share, counted
// to the id, and the same from the cache.
func TestEpoch(t *testing.T) {
	p := specOf(corpus(t))
	want := int64(0)
	for _, d := range lettered(1, 120, 60) {
		want += int64(len(d)) + 1
	}
	p.Cache = filepath.Join(t.TempDir(), "cache")
	for _, run := range []string{"counted", "from the cache"} {
		e, err := open(t, p).Epoch()
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(Epoch{
			Tokens: int64(math.Round(float64(want) / 0.75)), Source: "lines", SourceTokens: want,
			Documents: 120, Exact: true,
		}, e); d != "" {
			t.Errorf("%s (-want +got):\n%s", run, d)
		}
	}
	// With another tokenizer or BOS the count is another.
	p.AddBOS = true
	if e, err := open(t, p).Epoch(); err != nil || e.SourceTokens != want+120 {
		t.Errorf("with begin-of-sequence: got %+v, %v, want %d", e, err, want+120)
	}
	if names, _ := os.ReadDir(p.Cache); len(names) != 2 {
		t.Errorf("the cache has %d files, want 2", len(names))
	}
}

// TestEpochEstimate: the estimate from a sample is within a per cent of the count.
func TestEpochEstimate(t *testing.T) {
	dir := t.TempDir()
	block := strings.Repeat("some text of documents that are alike\n", 20)
	var b strings.Builder
	for i := 0; b.Len() < 8<<20; i++ {
		b.WriteString(lines(fields{"text": block[:len(block)/(1+i%4)]}))
	}
	if err := writeFile(filepath.Join(dir, "a.jsonl"), b.String()); err != nil {
		t.Fatal(err)
	}
	l := open(t, specOf([]Source{{Paths: []string{dir}}}))
	exact, err := l.count(exactBelow, samplePart)
	if err != nil || !exact.Exact {
		t.Fatal(exact, err)
	}
	e, err := l.count(1, 16<<10)
	if err != nil || e.Exact {
		t.Fatal(e, err)
	}
	if off := float64(e.SourceTokens)/float64(exact.SourceTokens) - 1; math.Abs(off) > 0.01 {
		t.Errorf("estimated %d tokens of %d: off by %.2f %%", e.SourceTokens, exact.SourceTokens, 100*off)
	}
	if off := float64(e.Documents)/float64(exact.Documents) - 1; math.Abs(off) > 0.01 {
		t.Errorf("estimated %d documents of %d", e.Documents, exact.Documents)
	}
}

// TestScan: what init is told about folders.
func TestScan(t *testing.T) {
	dir := write(t, map[string]string{
		"mix/a.txt": "text", "mix/b.py": "print()", "mix/c.jsonl": jsonl(lettered(1, 30, 20)),
		"mix/d.png": "\x89PNG\r\n\x1a\n", "papers.json": strings.Repeat(lines(fields{
			"pmid": 1, "title": "short", "abstract": "a longer text",
		}), 3),
		"ids.jsonl": lines(fields{"input_ids": []int{1, 2}, "loss_mask": []int{0, 1}}),
		"odd.jsonl": lines(fields{"a": "x", "b": "longer than x"}),
		"one.json":  "{\n\"a\": 1\n}\n",
	})
	at := func(name string) string { return filepath.Join(dir, name) }
	r, err := Scan([]string{at("mix"), at("papers.json"), at("ids.jsonl"), at("odd.jsonl"), at("one.json")}, Access{})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range r.Found {
		s := f.Source
		got = append(got, fmt.Sprintf("%s %q field=%s id=%s mask=%s ids=%v files=%d documents=%d exact=%v %v",
			filepath.Base(s.Paths[0]), s.Format, s.Field, s.ID, s.Mask, f.IDs, f.Files, f.Documents, f.Exact,
			f.Extensions))
	}
	want := []string{
		`mix "text" field= id= mask= ids=false files=2 documents=2 exact=true map[.py:1 .txt:1]`,
		`mix "jsonl" field=text id=id mask= ids=false files=1 documents=30 exact=true map[.jsonl:1]`,
		`papers.json "" field=abstract id= mask= ids=false files=1 documents=3 exact=true map[.json:1]`,
		`ids.jsonl "" field=input_ids id= mask=loss_mask ids=true files=1 documents=1 exact=true map[.jsonl:1]`,
		`odd.jsonl "" field=b id=a mask= ids=false files=1 documents=1 exact=true map[.jsonl:1]`,
		`one.json "" field= id= mask= ids=false files=1 documents=1 exact=true map[.json:1]`,
	}
	want[4] = strings.Replace(want[4], "id=a", "id=", 1)
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("found (-want +got):\n%s", d)
	}
	if r.Skipped["image"] != 1 || r.Examples["image"] != at("mix/d.png") {
		t.Errorf("skipped: got %v, %v", r.Skipped, r.Examples)
	}
	// What is found can be opened as it is told.
	for _, f := range r.Found {
		n := int64(0)
		for _, err := range Documents(f.Source) {
			if err != nil {
				t.Fatal(err)
			}
			n++
		}
		if n != f.Documents {
			t.Errorf("%v: Documents has %d, Scan %d", f.Source, n, f.Documents)
		}
	}
	if _, err := Scan([]string{at("mix/d.png")}, Access{}); err == nil || !strings.Contains(err.Error(), "skipped 1 image (") {
		t.Errorf("nothing but an image: got %v", err)
	}
}
