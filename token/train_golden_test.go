// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package token

import (
	"bytes"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// trainGolden is a case of testdata/train.golden.jsonl.
type trainGolden struct {
	Split            string
	Size, Min        int
	AAA              bool
	Specials, Tokens []string
	Merges           [][2]int32

	Coverage       float64
	Digits, Prefix bool
	Scores         []float32
}

func (g *trainGolden) options(threads int) TrainOptions {
	o := TrainOptions{Size: g.Size, Split: g.Split, MinFrequency: g.Min, Specials: g.Specials, Threads: threads}
	if g.Scores != nil {
		o.Pieces = &PieceOptions{Coverage: g.Coverage, SplitDigits: g.Digits, NoPrefix: !g.Prefix}
	}
	return o
}

// docs is what the script trains on.
func (g *trainGolden) docs(t *testing.T) [][]byte {
	if g.AAA {
		return repeats(59)
	}
	var docs [][]byte
	for _, s := range hardStrings(t) {
		if utf8.Valid(s) {
			docs = append(docs, s)
		}
	}
	text, err := os.ReadFile("testdata/corpus.txt")
	if err != nil {
		t.Fatal(err)
	}
	return append(docs, slices.Repeat([][]byte{text}, 30)...)
}

// repeats is text of few letters, in which many tokens come about in two ways,
// so that pairs come up again.
func repeats(most int) [][]byte {
	var docs [][]byte
	for n := 1; n <= most; n++ {
		var parts []string
		for _, s := range []string{"a", "ab", "aab", "abaab"} {
			parts = append(parts, strings.Repeat(s, n))
		}
		docs = append(docs, []byte(strings.Join(parts, " ")))
	}
	return docs
}

// TestTrainReference compares with what Hugging Face tokenizers and SentencePiece
// learn from the same documents: tokens, ids, merges and scores.
func TestTrainReference(t *testing.T) {
	for i, line := range readLines(t, "testdata/train.golden.jsonl") {
		var g trainGolden
		if err := json.Unmarshal(line, &g); err != nil {
			t.Fatal(err)
		}
		for _, threads := range []int{1, 3} {
			tok, err := Train(slices.Values(g.docs(t)), g.options(threads))
			if err != nil {
				t.Fatalf("case %d: %v", i, err)
			}
			for id, want := range g.Tokens {
				if got, _ := tok.Token(int32(id)); got != want {
					t.Fatalf("case %d, %d threads: token %d: got %q, want %q", i, threads, id, got, want)
				}
			}
			if tok.Size() != len(g.Tokens) {
				t.Errorf("case %d: got %d tokens, want %d", i, tok.Size(), len(g.Tokens))
			}
			if g.Scores != nil {
				compareScores(t, tok, &g)
			} else {
				compareMerges(t, tok, &g)
			}
		}
	}
}

func compareScores(t *testing.T, tok *Tokenizer, g *trainGolden) {
	t.Helper()
	f, err := parseSentencePiece(tok.files[namePiece])
	if err != nil {
		t.Fatal(err)
	}
	for i, p := range f.pieces {
		if p.score != g.Scores[i] {
			t.Fatalf("piece %q: score %v, want %v", p.text, p.score, g.Scores[i])
		}
	}
}

func compareMerges(t *testing.T, tok *Tokenizer, g *trainGolden) {
	t.Helper()
	var file struct{ Model struct{ Merges [][2]string } }
	if err := json.Unmarshal(tok.files[nameJSON], &file); err != nil {
		t.Fatal(err)
	}
	// The reference keeps the last of equal merges when it writes the file.
	if len(file.Model.Merges) != len(g.Merges) {
		t.Fatalf("got %d merges, want %d", len(file.Model.Merges), len(g.Merges))
	}
	for i, m := range file.Model.Merges {
		left, _ := tok.ID(m[0])
		right, _ := tok.ID(m[1])
		if got := [2]int32{left, right}; got != g.Merges[i] {
			t.Fatalf("merge %d: got %v, want %v", i, got, g.Merges[i])
		}
	}
}

// TestTrainThreads: the same files with any number of threads, of one document or
// of many, where words are left out.
func TestTrainThreads(t *testing.T) {
	text := goText(t, 4<<20)
	for _, o := range []TrainOptions{
		{Size: 3000, MaxMemory: LeastMemory},
		{Size: 3000, MaxMemory: LeastMemory, Pieces: &PieceOptions{}},
	} {
		for _, docs := range [][][]byte{{text}, bytes.SplitAfter(text, []byte("\n}\n"))} {
			var want []byte
			var left Pruning
			for _, threads := range []int{1, 4} {
				var now Pruning
				o.Threads, o.Pruned = threads, func(p Pruning) { now = p }
				tok, err := Train(slices.Values(docs), o)
				if err != nil {
					t.Fatal(err)
				}
				got := tok.files[nameJSON]
				if o.Pieces != nil {
					got = tok.files[namePiece]
				}
				if want == nil {
					want, left = got, now
				}
				if now.Words == 0 || now != left || !bytes.Equal(got, want) {
					t.Errorf("%d threads, %d documents: another tokenizer, or %+v left out, want %+v", threads, len(docs), now, left)
				}
			}
		}
	}
}
