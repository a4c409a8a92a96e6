// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package token

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// TestWordTable compares the table with a map of strings, on words of all
// lengths around those that are their own keys.
func TestWordTable(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	want := map[string]int64{}
	a, b := newWordTable(0), newWordTable(1)
	size := 0
	for range 20000 {
		w := make([]byte, 1+r.IntN(20))
		if r.IntN(50) == 0 {
			w = make([]byte, 1+r.IntN(2*wordBlock))
		}
		for i := range w[:min(len(w), 4)] {
			w[i] = byte(r.IntN(4)) // zeros too
		}
		n := int64(1 + r.IntN(3))
		if _, ok := want[string(w)]; !ok {
			size += len(w)
		}
		want[string(w)] += n
		if r.IntN(2) == 0 {
			a.add(w, n)
		} else {
			b.add(w, n)
		}
	}
	a.addAll(b)
	compareWords(t, a, want)
	if a.words != len(want) || a.size != int64(size) {
		t.Errorf("got %d words of %d bytes, want %d of %d", a.words, a.size, len(want), size)
	}
	for w, n := range want {
		if n <= 3 {
			delete(want, w)
		}
	}
	compareWords(t, a.above(3), want)
}

func compareWords(t *testing.T, got *wordTable, want map[string]int64) {
	t.Helper()
	seen := map[string]bool{}
	got.each(func(w []byte, n int64) {
		if want[string(w)] != n || seen[string(w)] {
			t.Fatalf("%.40q: got %d, want %d, each word once", w, n, want[string(w)])
		}
		seen[string(w)] = true
	})
	if len(seen) != len(want) {
		t.Fatalf("got %d words, want %d", len(seen), len(want))
	}
}

// TestCountWords: the words of documents are the same whole and in parts, with
// one thread and with several.
func TestCountWords(t *testing.T) {
	text := bytes.Repeat(goText(t, 3<<20), 2)
	long := append(bytes.Repeat([]byte("x"), 3<<20), " a b\nc  d"...) // no place to cut for long
	docs := slices.Values([][]byte{text, nil, []byte("a"), long})
	for _, o := range []TrainOptions{{}, {Split: "llama3"}, {Split: "qwen2"}, {Pieces: &PieceOptions{}}} {
		whole := newWordTable(0)
		for doc := range docs {
			o.splitter()().count(whole, doc)
		}
		want := map[string]int64{}
		whole.each(func(w []byte, n int64) { want[string(w)] = n })
		for _, threads := range []int{1, 3} {
			got, pruned := countWords(docs, threads, 1<<30, o.splitter())
			compareWords(t, got, want)
			if pruned != (Pruning{}) {
				t.Errorf("left out %+v, want none", pruned)
			}
		}
	}
}

// TestMaxMemory: beyond the memory the rarest words go; the others keep their
// counts but for what Pruning says, and the frequent ones are all there.
func TestMaxMemory(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	want := map[string]int64{}
	var docs [][]byte
	for range 60 {
		var doc strings.Builder
		for range 8000 {
			w := fmt.Sprintf(" w%x", r.Uint32()>>r.UintN(24))
			doc.WriteString(w)
			want[w]++
		}
		docs = append(docs, []byte(doc.String()))
	}
	for _, threads := range []int{1, 3} {
		const memory = 24 << 20
		got, pruned := countWords(slices.Values(docs), threads, memory, func() wordSplitter { return spaceSplitter{} })
		if pruned.Low == 0 || cost(got) > memory {
			t.Fatalf("%d threads: cost %d, %+v left out; want at most %d, and some", threads, cost(got), pruned, memory)
		}
		kept := map[string]int64{}
		got.each(func(w []byte, n int64) { kept[string(w)] = n })
		sum := pruned.Occurrences
		for w, n := range want {
			sum += kept[w]
			if kept[w] > n || kept[w] < n-pruned.Low {
				t.Fatalf("%q: got %d, want %d, too low by %d at most", w, kept[w], n, pruned.Low)
			}
		}
		if sum != 60*8000 {
			t.Errorf("%d occurrences were counted or left out, want %d", sum, 60*8000)
		}
	}
}

// spaceSplitter splits in front of spaces.
type spaceSplitter struct{}

func (spaceSplitter) count(t *wordTable, text []byte) {
	for len(text) > 0 {
		n := 1 + bytes.IndexByte(text[1:], ' ')
		if n == 0 {
			n = len(text)
		}
		t.add(text[:n], 1)
		text = text[n:]
	}
}

func (spaceSplitter) cut(text []byte) int { return bytes.LastIndexByte(text, ' ') }

// TestCutsBetweenWords: a document can be counted in two parts wherever a
// splitter cuts it, for every pattern of [Splits].
func TestCutsBetweenWords(t *testing.T) {
	docs := hardStrings(t)
	for _, alphabet := range []string{"aB 's 'LL1.\n", "aÉ\u0301 日ǅʰ/  ", "z Z\t\u3000-ſ"} {
		for i := range 60 {
			s := longText(alphabet, 400)
			docs = append(docs, []byte(s[strings.IndexAny(s[i:], " ")+i:]))
		}
	}
	for _, split := range Splits() {
		o := TrainOptions{Split: split}
		s := o.splitter()().(patternSplitter)
		words := func(text []byte) (out []string) {
			for i := 0; i < len(text); {
				end := s.scan(s.classes, text, i)
				out = append(out, string(text[i:end]))
				i = end
			}
			return out
		}
		cuts := 0
		for _, doc := range docs {
			whole := words(doc)
			for end := len(doc); end > 0; {
				k := s.cut(doc[:end])
				if k == 0 {
					break
				}
				cuts++
				if got := append(words(doc[:k]), words(doc[k:])...); !slices.Equal(got, whole) {
					t.Fatalf("%s: %q cut at %d: got %q, want %q", split, doc, k, got, whole)
				}
				end = k
			}
		}
		if cuts < 2000 {
			t.Errorf("%s: %d cuts, want 2000 or more", split, cuts)
		}
	}
}
