// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package token

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// slow is a tokenizer that merges as the definition says: over a list of
// strings, no tables, no cache, no cuts.
type slow struct {
	ids   map[string]int32
	ranks map[[2]string]int // of merges; or
	score func(joined string) (rank int, ok bool)
	bytes [256]int32 // fallback
	known map[string][]int32
}

// merge joins the pair of the lowest rank, the leftmost of equals, until none is
// left.
func (r *slow) merge(parts []string) []string {
	for {
		best, at := -1, -1
		for i := range len(parts) - 1 {
			rank, ok := r.rank(parts[i], parts[i+1])
			if ok && (at < 0 || rank < best) {
				best, at = rank, i
			}
		}
		if at < 0 {
			return parts
		}
		parts[at] += parts[at+1]
		parts = slices.Delete(parts, at+1, at+2)
	}
}

func (r *slow) rank(a, b string) (int, bool) {
	if r.score != nil {
		return r.score(a + b)
	}
	rank, ok := r.ranks[[2]string{a, b}]
	return rank, ok
}

// word is the ids of a text that nothing splits.
func (r *slow) word(s string) []int32 {
	if ids, ok := r.known[s]; ok {
		return ids
	}
	var ids []int32
	for _, p := range r.merge(strings.Split(s, "")) {
		if id, ok := r.ids[p]; ok {
			ids = append(ids, id)
			continue
		}
		for _, b := range []byte(p) {
			ids = append(ids, r.bytes[b])
		}
	}
	r.known[s] = ids
	return ids
}

// slowJSON reads vocabulary and merges of a tokenizer.json.
func slowJSON(t testing.TB, file string) *slow {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var f struct {
		Model struct {
			Vocab  map[string]int32
			Merges []json.RawMessage
		}
	}
	if err := json.Unmarshal(text, &f); err != nil {
		t.Fatal(err)
	}
	r := &slow{ids: f.Model.Vocab, ranks: map[[2]string]int{}, known: map[string][]int32{}}
	for rank, raw := range f.Model.Merges {
		var pair [2]string
		var joined string
		if json.Unmarshal(raw, &joined) == nil {
			pair[0], pair[1], _ = strings.Cut(joined, " ")
		} else if err := json.Unmarshal(raw, &pair); err != nil {
			t.Fatal(err)
		}
		r.ranks[pair] = rank
	}
	for b := range 256 {
		r.bytes[b] = r.ids[fmt.Sprintf("<0x%02X>", b)]
	}
	return r
}

// sameIDs compares a tokenizer with what the slow one says, a text at a time.
func sameIDs(t *testing.T, tok *Tokenizer, texts [][]byte, want func(s []byte) []int32) {
	t.Helper()
	n := 0
	for _, s := range texts {
		got, want := tok.Encode(nil, s), want(s)
		n += len(got)
		if !slices.Equal(got, want) {
			k := 0
			for k < min(len(got), len(want)) && got[k] == want[k] {
				k++
			}
			t.Fatalf("a text of %d bytes, %.60q…: from id %d on got %v, want %v", len(s), s, k,
				got[k:min(k+8, len(got))], want[k:min(k+8, len(want))])
		}
	}
	t.Logf("%d texts, %d ids", len(texts), n)
}

// realTexts are whole texts of the shared data, and n bytes of Go code.
func realTexts(t testing.TB, n int) [][]byte {
	texts := [][]byte{goText(t, n)}
	data := os.Getenv("PLEACH_TESTDATA")
	if data == "" {
		return texts
	}
	for _, pattern := range []string{"*/*.txt", "*/*.jsonl"} {
		files, _ := filepath.Glob(filepath.Join(data, pattern))
		for _, f := range files {
			text, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			texts = append(texts, text)
		}
	}
	return texts
}

// TestSameAsSlow: on real text and on code the ids are those of a tokenizer
// that splits by the regular expression engine and merges strings.
func TestSameAsSlow(t *testing.T) {
	for _, tt := range []struct{ name, expr string }{
		{"ours/tokenizer.json", patternGPT2},
		{"llama3.json", patternLlama3},
		{"o200k.json", patternO200k},
	} {
		t.Run(tt.name, func(t *testing.T) {
			file := "testdata/" + tt.name
			tok, ref := mustOpen(t, file), slowJSON(t, file)
			re, err := compile(tt.expr)
			if err != nil {
				t.Fatal(err)
			}
			tok.pipe.model.whole = nil // ignore_merges: what the slow one does not know
			var l level
			sameIDs(t, tok, realTexts(t, 5<<20), func(s []byte) (ids []int32) {
				l.spans = l.spans[:0]
				if err := re.split(&l, s); err != nil {
					t.Fatal(err)
				}
				for _, sp := range l.spans {
					ids = append(ids, ref.word(letters256(s[sp.start:sp.end]))...)
				}
				return ids
			})
		})
	}
}

// letters256 writes bytes as byte-level vocabularies do.
func letters256(s []byte) string {
	var b strings.Builder
	for _, c := range s {
		b.WriteRune(runeOf(c))
	}
	return b.String()
}

// TestSameAsSlowLines is that for tokenizers that do not split: on short texts,
// since strings are slow to merge.
func TestSameAsSlowLines(t *testing.T) {
	var lines [][]byte
	for _, text := range realTexts(t, 5<<20) {
		for line := range bytes.Lines(text[:min(len(text), 1<<19)]) {
			lines = append(lines, line[:min(len(line), 80)])
		}
	}
	lines = slices.DeleteFunc(lines, func(l []byte) bool { return !utf8.Valid(l) || bytes.ContainsAny(l, "<") })
	for _, name := range []string{"llama2.json", "metaspace.json"} {
		t.Run(name, func(t *testing.T) {
			file := "testdata/" + name
			ref := slowJSON(t, file)
			ours := slices.DeleteFunc(slices.Clone(lines), func(l []byte) bool { return bytes.Contains(l, []byte("whole")) })
			sameIDs(t, mustOpen(t, file), ours, func(s []byte) []int32 {
				text := strings.ReplaceAll(string(s), " ", meta)
				if name == "llama2.json" || !strings.HasPrefix(text, meta) {
					text = meta + text
				}
				return ref.word(text)
			})
		})
	}
	data := os.Getenv("PLEACH_TESTDATA")
	if data == "" {
		return
	}
	t.Run("llama2.model", func(t *testing.T) {
		tok := mustOpen(t, filepath.Join(data, "tokenizers/llama2.model"))
		ref := &slow{ids: tok.lookup, known: map[string][]int32{}, bytes: *tok.sp.model.fallback}
		// Llama 2's pieces come in the order of their scores, but those of spaces
		// alone and those of one character all have the same, lowest one.
		ref.score = func(s string) (int, bool) {
			id, ok := ref.ids[s]
			if ok && strings.Trim(s, meta) == "" {
				return tok.Size(), true
			}
			return int(id), ok && tok.sp.kinds[id] == spNormal
		}
		sameIDs(t, tok, lines, func(s []byte) []int32 {
			return ref.word(meta + strings.ReplaceAll(string(s), " ", meta))
		})
	})
}

// plainly is a tokenizer that keeps ▁, does not cut, and has no window.
func plainly(t testing.TB, path string) *Tokenizer {
	tok := mustOpen(t, path)
	tok.Encode(nil, []byte("x"))
	if tok.pipe != nil {
		tok.pipe.spaced = nil
	} else {
		tok.sp.model.spaced = false
	}
	m := tok.theModel()
	m.split, m.window, m.pairs = onePiece, 1<<40, nil
	return tok
}

func (t *Tokenizer) theModel() *model {
	if t.sp != nil {
		return &t.sp.model
	}
	return t.pipe.model
}

// TestShortcuts: cutting pieces, spaces for ▁ and windows change no ids, of
// texts with everything that could tell.
func TestShortcuts(t *testing.T) {
	atoms := []string{
		"the", "hedge", "a", "e", " ", "  ", "      ", "▁", "▁▁", "\n", "\t", "\r\n", "1", "23", ".", "...", "!", "<unk>", "</s>", " <s>",
		"<extra>", "whole", "<mask>", "[R]", "é", "ſ", "½", "日", "本", "\U0001f600", "\ufffd", "\xff", "\xe2\x96", "\xe2", "\x81", "\x96", "-", "—",
	}
	for _, name := range []string{
		"llama2.json", "metaspace.json", "metasplit.json", "piece.model", "trim.model", "words.json", "fused.json", "gpt2.json", "llama3.json",
	} {
		t.Run(name, func(t *testing.T) {
			plain, tok := plainly(t, "testdata/"+name), mustOpen(t, "testdata/"+name)
			tok.Encode(nil, []byte("x"))
			tok.theModel().window = 32
			rng := rand.New(rand.NewPCG(5, 6))
			for k := range 20000 {
				var s []byte
				for range rng.IntN(12) {
					s = append(s, atoms[rng.IntN(len(atoms))]...)
				}
				if k%500 == 0 { // a run of few things, which windows cut
					s = bytes.Repeat(s[:min(len(s), 1+rng.IntN(9))], 100)
				}
				if got, want := tok.Encode(nil, s), plain.Encode(nil, s); !slices.Equal(got, want) {
					t.Fatalf("%q: got %v, want %v", s, got, want)
				}
			}
		})
	}
}

// TestWindows: a long word in windows is the word merged whole, also where the
// borders of tokens depend on what is far away.
func TestWindows(t *testing.T) {
	for _, name := range []string{"gpt2.json", "llama2.json", "piece.model", "ours/tokenizer.json"} {
		t.Run(name, func(t *testing.T) {
			tok := mustOpen(t, "testdata/"+name)
			tok.Encode(nil, []byte("x"))
			m := tok.theModel()
			whole := *m
			whole.window = 1 << 40
			var w work
			rng := rand.New(rand.NewPCG(7, 8))
			for k := range 400 {
				s := bytes.Repeat([]byte("ehtdgaw.-_1"[:2+rng.IntN(9)]), 300)
				if k%2 == 0 {
					rng.Shuffle(len(s), func(i, j int) { s[i], s[j] = s[j], s[i] })
				}
				m.window = 24 << rng.IntN(4)
				got, want := m.word(&w, nil, s), whole.word(&w, nil, s)
				if !slices.Equal(got, want) {
					t.Fatalf("%q in windows of %d: got %v, want %v", s, m.window, got, want)
				}
			}
		})
	}
}

// TestWindowGrows: where merging two neighbours alone would join them, a cut is
// not taken. Here tokens are 1, 2, 4 … 128 letters, more than a window holds.
func TestWindowGrows(t *testing.T) {
	vocab, merges := `"a":0`, ""
	for k := range 7 {
		half := strings.Repeat("a", 1<<k)
		vocab += fmt.Sprintf(`,"%s%s":%d`, half, half, k+1)
		merges += fmt.Sprintf(`,"%s %s"`, half, half)
	}
	tok, err := parse([]byte(`{"version":"1.0","truncation":null,"padding":null,"added_tokens":[],"normalizer":null,` +
		`"pre_tokenizer":null,"post_processor":null,"decoder":null,"model":{"type":"BPE","vocab":{` + vocab + `},"merges":[` + merges[1:] + `]}}`))
	if err != nil {
		t.Fatal(err)
	}
	tok.Encode(nil, []byte("a"))
	tok.pipe.model.window = 24
	for _, n := range []int{25, 63, 128, 200, 383, 500, 1000} {
		var want []int32
		for k, rest := 7, n; rest > 0; k-- {
			for ; rest >= 1<<k; rest -= 1 << k {
				want = append(want, int32(k))
			}
		}
		if got := tok.Encode(nil, bytes.Repeat([]byte("a"), n)); !slices.Equal(got, want) {
			t.Errorf("%d letters: got %v, want %v", n, got, want)
		}
	}
}

// TestHuge: a document without borders takes the memory of its ids and of a
// window.
func TestHuge(t *testing.T) {
	const n = 8 << 20
	for _, name := range []string{"gpt2.json", "piece.model"} {
		tok := mustOpen(t, "testdata/"+name)
		text := bytes.Repeat([]byte("thehedgewaslaid"), n/15)
		tok.Encode(nil, []byte("x"))
		var w work
		ids := tok.theModel().word(&w, make([]int32, 0, n), text)
		held := 4*(cap(w.sym)+cap(w.at)+cap(w.prev)+cap(w.next)) + 8*(cap(w.rank)+cap(w.heap))
		if limit := 64 * window; len(ids) == 0 || held > limit {
			t.Errorf("%s: %d ids, %d bytes held, want at most %d", name, len(ids), held, limit)
		}
	}
}
