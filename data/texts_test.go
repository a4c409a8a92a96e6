// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package data

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// texts is the folder of real texts, or the test is skipped.
func texts(t testing.TB) string {
	dir := os.Getenv("PLEACH_TESTDATA")
	if dir == "" {
		t.Skip("PLEACH_TESTDATA is not set: no real texts")
	}
	return dir
}

// TestTexts mixes PubMed abstracts with ten per cent of WikiText and reads an
// epoch: every abstract comes out intact and once, the share holds, and a resumed
// run is the same.
func TestTexts(t *testing.T) {
	dir := texts(t)
	pubmed := Source{Paths: []string{filepath.Join(dir, "pubmed", "train.jsonl")}, ID: "id", Weight: 0.9}
	p := specOf([]Source{
		pubmed, {Paths: []string{filepath.Join(dir, "wikitext2", "*.txt")}, Weight: 0.1, Format: "lines"},
	})
	p.Sequence, p.Lanes = 512, 8
	want := map[string]int{}
	tokens := int64(0)
	for d, err := range Documents(pubmed) {
		if err != nil {
			t.Fatal(err)
		}
		want[string(d.Text)]++
		tokens += int64(len(d.Text)) + 1
	}
	l := open(t, p)
	e, err := l.Epoch()
	if err != nil || e.SourceTokens != tokens || e.Documents != 900 || len(want) != 900 {
		t.Errorf("epoch: got %+v, %v, want %d tokens in 900 documents", e, err, tokens)
	}
	n := int(e.Tokens/512) / 8 * 8
	rows := next(t, l, n/2)
	state := throughJSON(t, l.State())
	rows = append(rows, next(t, l, n-n/2)...)
	again := open(t, p)
	if err := again.Restore(state); err != nil {
		t.Fatal(err)
	}
	same(t, "resumed", next(t, again, 50), rows[n/2:n/2+50])
	seen := 0
	for _, ids := range stream(t, rows) {
		docs, _ := unpack(ids)
		for _, d := range docs {
			if want[d] > 0 {
				want[d]--
				seen++
			}
		}
	}
	// Lanes roll their own epochs: at the end of one some are ahead, others behind.
	if seen < 700 {
		t.Errorf("one epoch: got %d of 900 abstracts", seen)
	}
	st := l.Stats()
	share := float64(st[0].Tokens) / float64(st[0].Tokens+st[1].Tokens)
	if share < 0.89 || share > 0.91 {
		t.Errorf("share of abstracts: got %.3f, want 0.9", share)
	}
	t.Logf("%d of 900 abstracts; %+v", seen, st)
}

// TestTextsTree reads documents of the kind of the Go tree: another room.
func TestTextsTree(t *testing.T) {
	var names []string
	for d, err := range Documents(Source{Paths: []string{"../config"}}) {
		if err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(d.ID)
		if err != nil || string(b) != string(d.Text) {
			t.Fatalf("%s: %v", d.ID, err)
		}
		names = append(names, d.ID)
	}
	if !slices.Contains(names, "../config/doc.go") || !slices.IsSorted(names) {
		t.Errorf("got %v", names)
	}
}

// BenchmarkNext is rows of real documents with the simplest encoder: what the
// loader itself costs.
func BenchmarkNext(b *testing.B) {
	docs := lettered(1, 4000, 4000) // 8 MB
	dir := write(b, map[string]string{"a.jsonl": jsonl(docs)})
	for _, T := range []int{128, 2048} {
		for _, lanes := range []int{8, 64} {
			b.Run(fmt.Sprintf("T=%d/L=%d", T, lanes), func(b *testing.B) {
				p := specOf([]Source{{Paths: []string{dir}}})
				p.Sequence, p.Lanes = T, lanes
				l := open(b, p)
				b.SetBytes(int64(T))
				b.ReportAllocs()
				for b.Loop() {
					if _, err := l.Next(1); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "rows/s")
			})
		}
	}
}

// BenchmarkTree is rows of a tree of small files.
func BenchmarkTree(b *testing.B) {
	files := map[string]string{}
	for i, d := range lettered(1, 2000, 4000) {
		files[fmt.Sprintf("%d/%d.txt", i%10, i)] = d
	}
	p := specOf([]Source{{Paths: []string{write(b, files)}}})
	p.Sequence, p.Lanes = 1024, 8
	l := open(b, p)
	b.SetBytes(1024)
	for b.Loop() {
		if _, err := l.Next(1); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "rows/s")
}
