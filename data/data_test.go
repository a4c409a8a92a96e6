// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package data

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// byteEncoder is the simplest encoder: ids are bytes. bos and eos follow.
type byteEncoder struct{}

const bos, eos = 256, 257

func (byteEncoder) Encode(dst []int32, text []byte) []int32 {
	for _, c := range text {
		dst = append(dst, int32(c))
	}
	return dst
}

// write makes files below a new folder, by name, and returns it.
func write(t testing.TB, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if err := writeFile(filepath.Join(dir, name), text); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func writeFile(path, text string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return err
	}
	return os.WriteFile(path, []byte(text), 0o666)
}

// lettered is n documents of 1 to longest bytes, in which no byte repeats the
// name of another.
func lettered(seed uint64, n, longest int) []string {
	r := rand.New(rand.NewPCG(seed, 0))
	docs := make([]string, n)
	for i := range docs {
		b := fmt.Appendf(nil, "<%d>", i)
		for range r.IntN(longest) {
			b = append(b, byte('a'+r.IntN(26)))
		}
		docs[i] = string(b)
	}
	return docs
}

func jsonl(docs []string) string {
	var b strings.Builder
	for i, d := range docs {
		line, _ := json.Marshal(map[string]any{"id": fmt.Sprint("d", i), "text": d})
		b.Write(line)
		b.WriteByte('\n')
	}
	return b.String()
}

// corpus is two sources: 120 documents in JSONL, and a tree of 40 text files.
func corpus(t testing.TB) []Source {
	files := map[string]string{"a.jsonl": jsonl(lettered(1, 120, 60))}
	for i, d := range lettered(2, 40, 90) {
		files[fmt.Sprintf("tree/%d/%d.txt", i%3, i)] = "T" + d
	}
	dir := write(t, files)
	return []Source{
		{Paths: []string{filepath.Join(dir, "a.jsonl")}, Name: "lines", Weight: 3, ID: "id"},
		{Paths: []string{filepath.Join(dir, "tree")}, Weight: 1},
	}
}

func specOf(sources []Source) Spec {
	return Spec{
		Sequence: 16, Lanes: 4, Seed: 7, Sources: sources, BOS: bos, EOS: eos, Vocabulary: 258,
		Tokenizer: "bytes",
	}
}

func open(t testing.TB, p Spec) *Loader {
	t.Helper()
	l, err := Open(p, byteEncoder{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	return l
}

func next(t testing.TB, l *Loader, n int) []Row {
	t.Helper()
	rows, err := l.Next(n)
	if err != nil {
		t.Fatal(err)
	}
	if len(rows) != n {
		t.Fatalf("Next(%d): got %d rows and no error", n, len(rows))
	}
	return rows
}

// drain reads rows to the end of a run with epochs.
func drain(t testing.TB, l *Loader) []Row {
	t.Helper()
	var all []Row
	for {
		rows, err := l.Next(5)
		all = append(all, rows...)
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func same(t testing.TB, what string, got, want []Row) {
	t.Helper()
	if d := cmp.Diff(want, got); d != "" {
		t.Fatalf("%s (-want +got):\n%s", what, d)
	}
}

// stream glues the rows of each lane together again: rows overlap by one id.
func stream(t testing.TB, rows []Row) map[int][]int32 {
	t.Helper()
	lanes := map[int][]int32{}
	for _, r := range rows {
		s := lanes[r.Lane]
		if len(s) > 0 {
			if s[len(s)-1] != r.IDs[0] {
				t.Fatalf("row %d of lane %d starts with %d, the one before ends with %d",
					r.Index, r.Lane, r.IDs[0], s[len(s)-1])
			}
			s = s[:len(s)-1]
		}
		lanes[r.Lane] = append(s, r.IDs...)
	}
	return lanes
}

// unpack cuts a stream into the documents that end in it, and what is left.
func unpack(ids []int32) (docs []string, rest string) {
	var b []byte
	for _, id := range ids {
		if id == eos {
			docs = append(docs, string(b))
			b = b[:0]
		} else if id != bos {
			b = append(b, byte(id))
		}
	}
	return docs, string(b)
}

// TestOrderIsPure: the rows depend on seed, sources and lanes only: not on how
// far ahead they are made, the size of batches, or states taken between.
func TestOrderIsPure(t *testing.T) {
	p := specOf(corpus(t))
	want := next(t, open(t, p), 600)
	for _, ahead := range []int{1, 2, 9} {
		p.Ahead = ahead
		l := open(t, p)
		var got []Row
		for n := 1; len(got) < 600; n = n%7 + 1 {
			got = append(got, next(t, l, min(n, 600-len(got)))...)
			l.State()
		}
		same(t, fmt.Sprint("rows made ahead: ", ahead), got, want)
	}
	for _, other := range []func(*Spec){
		func(p *Spec) { p.Seed++ },
		func(p *Spec) { p.Lanes = 2 },
	} {
		q := p
		other(&q)
		if cmp.Equal(next(t, open(t, q), 40), want[:40]) {
			t.Errorf("seed or lanes do not change the order: %+v", q)
		}
	}
}

// TestOrderGolden pins the order: a change breaks runs that were begun before,
// so it comes with a new orderVersion.
func TestOrderGolden(t *testing.T) {
	h := fnv.New64a()
	for _, r := range next(t, open(t, specOf(corpus(t))), 400) {
		binary.Write(h, binary.LittleEndian, r.IDs)
	}
	if got := fmt.Sprintf("%d %x", orderVersion, h.Sum64()); got != "1 d162eef0813d027c" {
		t.Errorf("version and hash of 400 rows: got %s", got)
	}
}

// TestRanks: ranks 1, 2 and 4 serve the same rows in the same global order, and
// as many each.
func TestRanks(t *testing.T) {
	p := specOf(corpus(t))
	want := next(t, open(t, p), 240)
	for _, R := range []int{2, 4} {
		got := make([]Row, 240)
		for d := range R {
			p.Rank, p.Ranks = d, R
			for i, r := range next(t, open(t, p), 240/R) {
				if r.Index != int64(d+i*R) || r.Index%4 != int64(r.Lane) {
					t.Fatalf("rank %d of %d, row %d: got row %d of lane %d", d, R, i, r.Index, r.Lane)
				}
				got[r.Index] = r
			}
		}
		same(t, fmt.Sprint("ranks: ", R), got, want)
	}
}

// throughJSON is a state as a checkpoint gives it back.
func throughJSON(t testing.TB, s State) State {
	t.Helper()
	b, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	var back State
	if err := json.Unmarshal(b, &back); err != nil {
		t.Fatal(err)
	}
	return back
}

// TestResumeAtEveryRow: wherever a run is stopped, over several epochs, what
// follows is what would have followed; and once more, from the resumed one.
func TestResumeAtEveryRow(t *testing.T) {
	p := specOf(corpus(t))
	const n = 1100 // lanes are in epoch 3 or later of the JSONL source
	want := next(t, open(t, p), n+20)
	l := open(t, p)
	if st := l.Stats(); st[0].Epoch != 0 {
		t.Fatalf("epoch at the start: got %v", st[0].Epoch)
	}
	again := open(t, p)
	for k := range n {
		s := throughJSON(t, l.State())
		if err := again.Restore(s); err != nil {
			t.Fatal(err)
		}
		same(t, fmt.Sprint("resumed after row ", k), next(t, again, 2), want[k:k+2])
		if err := again.Restore(throughJSON(t, again.State())); err != nil {
			t.Fatal(err)
		}
		same(t, fmt.Sprint("resumed twice after row ", k), next(t, again, 3), want[k+2:k+5])
		same(t, "uninterrupted", next(t, l, 1), want[k:k+1])
	}
	if b, _ := json.Marshal(l.State()); len(b) > 1200+4*2*150 {
		t.Errorf("the state of 4 lanes and 2 sources has %d bytes", len(b))
	}
	if st := l.Stats(); st[0].Epoch < 3 || st[1].Epoch < 1 {
		t.Errorf("epochs at the end: got %.1f and %.1f, want more than 3 and 1",
			st[0].Epoch, st[1].Epoch)
	}
}

// TestShuffle: the documents of a block are in file order with none, and in
// another one with window.
func TestShuffle(t *testing.T) {
	docs := lettered(9, 20000, 6)
	p := specOf([]Source{{Paths: []string{write(t, map[string]string{"a.jsonl": jsonl(docs)})}}})
	p.Lanes, p.Shuffle = 1, "none"
	after := map[string]string{}
	for i := range docs[1:] {
		after[docs[i]] = docs[i+1]
	}
	for _, tt := range []struct {
		shuffle string
		lo, hi  float64
	}{{"none", 0.95, 1}, {"window", 0, 0.05}, {"", 0, 0.05}} {
		p.Shuffle = tt.shuffle
		got, _ := unpack(stream(t, next(t, open(t, p), 3000))[0])
		n := 0
		for i := range got[1:] {
			if after[got[i]] == got[i+1] {
				n++
			}
		}
		if part := float64(n) / float64(len(got)); part < tt.lo || part > tt.hi {
			t.Errorf("shuffle %q: %.2f of the documents follow their neighbour, want %v to %v",
				tt.shuffle, part, tt.lo, tt.hi)
		}
	}
}

// TestEpochsDiffer: a kill in epoch 3 finishes the order of epoch 3, and epoch 4
// differs from it.
func TestEpochsDiffer(t *testing.T) {
	p := specOf(corpus(t)[:1])
	p.Lanes = 1
	docs, _ := unpack(stream(t, next(t, open(t, p), 1500))[0])
	docs = docs[:120*5]
	for e := 1; e < 5; e++ {
		one, two := docs[(e-1)*120:e*120], docs[e*120:(e+1)*120]
		if slices.Equal(one, two) {
			t.Errorf("epochs %d and %d have the same order", e-1, e)
		}
		if !slices.Equal(slices.Sorted(slices.Values(one)), slices.Sorted(slices.Values(two))) {
			t.Errorf("epochs %d and %d differ in their documents", e-1, e)
		}
	}
}

// TestStateOfRanks: a state saved by four ranks goes on with two, one and four,
// and that of one rank alone is refused by another.
func TestStateOfRanks(t *testing.T) {
	p := specOf(corpus(t))
	want := next(t, open(t, p), 200)
	var states []State
	for d := range 4 {
		p.Rank, p.Ranks = d, 4
		l := open(t, p)
		next(t, l, 25)
		states = append(states, throughJSON(t, l.State()))
	}
	slices.Reverse(states)
	all, err := Merge(states...)
	if err != nil {
		t.Fatal(err)
	}
	for _, R := range []int{1, 2, 4} {
		got := make([]Row, 100)
		for d := range R {
			p.Rank, p.Ranks = d, R
			l := open(t, p)
			if err := l.Restore(all); err != nil {
				t.Fatal(err)
			}
			for _, r := range next(t, l, 100/R) {
				got[r.Index-100] = r
			}
		}
		same(t, fmt.Sprint("four ranks, then ", R), got, want[100:])
	}
	p.Rank, p.Ranks = 0, 1
	if err := open(t, p).Restore(states[0]); err == nil {
		t.Error("one rank of one took the state of one rank of four")
	}
	if _, err := Merge(states[:3]...); err == nil {
		t.Error("states of three ranks of four were merged")
	}
}

// TestUnpack: over one epoch every document comes out intact, once, with one end
// of sequence, whatever the lanes; spans name it and say where it lies.
func TestUnpack(t *testing.T) {
	want := lettered(1, 120, 60)
	for _, lanes := range []int{1, 2, 3, 8} {
		p := specOf(corpus(t)[:1])
		p.Lanes = lanes
		p.Sources[0].Epochs = 1
		rows := drain(t, open(t, p))
		var got []string
		cut := 0
		for lane, ids := range stream(t, rows) {
			docs, rest := unpack(ids)
			got = append(got, docs...)
			if rest != "" {
				cut++
			}
			_ = lane
		}
		seen := map[string]bool{}
		for _, d := range got {
			if seen[d] || !slices.Contains(want, d) {
				t.Fatalf("%d lanes: document %q came twice or is none", lanes, d)
			}
			seen[d] = true
		}
		// The run ends with the first lane that does; others may have rows left.
		if lanes == 1 && (len(got) < 119 || cut > 1) {
			t.Errorf("one lane: got %d documents of 120", len(got))
		}
		for _, r := range rows {
			checkSpans(t, r, want)
			for i, s := range r.Docs[1:] {
				if s.ID == r.Docs[i].ID {
					t.Fatalf("row %d holds %s twice in one epoch", r.Index, s.ID)
				}
			}
		}
	}
}

// checkSpans checks that spans tile the row and hold what they say.
func checkSpans(t *testing.T, r Row, docs []string) {
	t.Helper()
	at := 0
	for _, s := range r.Docs {
		var i int
		if _, err := fmt.Sscanf(s.ID, "d%d", &i); err != nil || s.From != at || s.To <= s.From {
			t.Fatalf("row %d: span %+v after id %d", r.Index, s, at)
		}
		whole := append(byteEncoder{}.Encode(nil, []byte(docs[i])), eos)
		if !slices.Equal(r.IDs[s.From:s.To], whole[s.Offset:s.Offset+s.To-s.From]) {
			t.Fatalf("row %d: span %+v does not hold that part of %q", r.Index, s, docs[i])
		}
		at = s.To
	}
	if at != len(r.IDs) {
		t.Fatalf("row %d: spans end at %d of %d", r.Index, at, len(r.IDs))
	}
}

// TestTargets: labels and positions follow from places, not from the values of
// ids: every id of the stream is a target once, but the first of a document where
// documents are masked.
func TestTargets(t *testing.T) {
	for _, joined := range []bool{false, true} {
		for _, begin := range []bool{false, true} {
			p := specOf(corpus(t))
			p.Joined, p.AddBOS = joined, begin
			for _, r := range next(t, open(t, p), 300) {
				checkTargets(t, r, joined)
				for _, s := range r.Docs {
					if begin && s.Offset == 0 && r.IDs[s.From] != bos {
						t.Fatalf("row %d: document %s starts with %d", r.Index, s.ID, r.IDs[s.From])
					}
				}
			}
		}
	}
}

func checkTargets(t *testing.T, r Row, joined bool) {
	t.Helper()
	for _, s := range r.Docs {
		for i := s.From; i < s.To; i++ {
			if i < len(r.Positions) {
				want := i - s.From
				if joined {
					want = i
				}
				if int(r.Positions[i]) != want {
					t.Fatalf("row %d: position %d is %d, want %d", r.Index, i, r.Positions[i], want)
				}
			}
			if i == 0 {
				continue
			}
			want := r.IDs[i]
			if i == s.From && !joined { // not the first span, so the document starts here
				want = -1
			}
			if r.Labels[i-1] != want {
				t.Fatalf("row %d: label %d is %d, want %d", r.Index, i-1, r.Labels[i-1], want)
			}
		}
	}
}

// TestMix: after every document the tokens of each source are within one
// document of its share, per lane.
func TestMix(t *testing.T) {
	p := specOf(corpus(t))
	l := open(t, p)
	const longest = 97 // ids of the longest document
	for range 800 {
		next(t, l, 1)
		for _, at := range l.State().Lanes {
			a, b := float64(at.Sources[0].Tokens), float64(at.Sources[1].Tokens)
			if off := a - 0.75*(a+b); off > longest || off < -longest {
				t.Fatalf("lane %d has %v and %v tokens of sources of weights 3 and 1", at.Lane, a, b)
			}
		}
	}
	st := l.Stats()
	share := float64(st[0].Tokens) / float64(st[0].Tokens+st[1].Tokens)
	if share < 0.73 || share > 0.77 {
		t.Errorf("share of the first source: got %.3f, want 0.75", share)
	}
}

// TestLongDocuments: documents of many rows are carried on.
func TestLongDocuments(t *testing.T) {
	docs := lettered(3, 6, 2000)
	dir := write(t, map[string]string{"a.jsonl": jsonl(docs)})
	p := specOf([]Source{{Paths: []string{dir}, ID: "id"}})
	p.Lanes = 2
	rows := next(t, open(t, p), 1500)
	for _, r := range rows {
		checkSpans(t, r, docs)
		checkTargets(t, r, false)
	}
	for lane, ids := range stream(t, rows) {
		got, _ := unpack(ids)
		if len(got) < 6 {
			t.Errorf("lane %d: got %d documents", lane, len(got))
		}
		for _, d := range got {
			if !slices.Contains(docs, d) {
				t.Errorf("lane %d: %.20q… is no document", lane, d)
			}
		}
	}
}

// TestOneDocument: a corpus of one document feeds every lane.
func TestOneDocument(t *testing.T) {
	for _, text := range []string{"sixteen bytes ok", "one document, a little longer than those"} {
		p := specOf([]Source{{Paths: []string{write(t, map[string]string{"a.txt": text})}}})
		for _, p.Lanes = range []int{1, 3, 16} {
			for lane, ids := range stream(t, next(t, open(t, p), 200)) {
				docs, rest := unpack(ids)
				for _, d := range docs {
					if d != text {
						t.Fatalf("lane %d: got %q, want %q", lane, d, text)
					}
				}
				if !strings.HasPrefix(text, rest) {
					t.Fatalf("lane %d: got a rest of %q", lane, rest)
				}
			}
		}
	}
}

// TestSkipped: what is no text is skipped and counted by reason, with a name.
func TestSkipped(t *testing.T) {
	dir := write(t, map[string]string{
		"a.txt": "text", "b.txt": "bad \xff text", "c.png": "\x89PNG\r\n\x1a\n", "d.pdf": "%PDF-1.4",
		"e.bin": "a\x00b", "f.txt": "", "g.txt": " \n", ".git/config": "x", "h.gz": gzipped(t, gzipped(t, "text")),
		"late.txt": strings.Repeat("good ", 4000) + "\xff",
		"l.jsonl": `{"text":"line"}` + "\n\n" + `{"text":""}` + "\n" +
			`{"text":null}` + "\n" + `{"text":"\ud800"}`,
	})
	p := specOf([]Source{{Paths: []string{dir}}})
	p.Lanes = 1
	l := open(t, p)
	next(t, l, 20)
	want := map[string]int64{
		"not UTF-8": 3, "image": 1, "PDF": 1, "binary": 1, "empty": 4, "hidden": 1, "gzip in gzip": 1,
	}
	st := l.Stats()[0]
	if d := cmp.Diff(want, st.Skipped); d != "" {
		t.Errorf("skipped (-want +got):\n%s", d)
	}
	for _, r := range slices.Collect(maps.Keys(want)) {
		if !strings.HasPrefix(st.Examples[r], dir) {
			t.Errorf("no example of %s: got %q", r, st.Examples[r])
		}
	}
	var ids []string
	for d, err := range Documents(Source{Paths: []string{dir}}) {
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, d.ID[len(dir)+1:]+"="+string(bytes.TrimSpace(d.Text)))
	}
	if got := strings.Join(ids, " "); got != "a.txt=text l.jsonl:1=line" {
		t.Errorf("Documents: got %s", got)
	}
}
