// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package data

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestWhole: every document that fits into a row lies in one, uncut; every id but
// the first of a document is a target once; padding is no target and counted.
func TestWhole(t *testing.T) {
	const T = 64
	want := lettered(1, 300, 150) // some are longer than two rows
	for _, joined := range []bool{false, true} {
		p := specOf([]Source{{Paths: []string{write(t, map[string]string{"a.jsonl": jsonl(want)})}, ID: "id", Epochs: 1}})
		p.Sequence, p.Lanes, p.Whole, p.Joined = T, 1, true, joined
		l := open(t, p)
		rows := drain(t, l)
		parts := map[string]map[int][]int32{} // by document and offset
		targets, ids, padded := 0, 0, 0
		for _, r := range rows {
			at := 0
			for _, s := range r.Docs {
				if s.From != at || s.Offset == 0 && s.To-s.From < min(T+1, lengthOf(t, want, s.ID)) {
					t.Fatalf("row %d cuts %+v", r.Index, s)
				}
				at = s.To
				ids += s.To - s.From
				if parts[s.ID] == nil {
					parts[s.ID] = map[int][]int32{}
				}
				parts[s.ID][s.Offset] = r.IDs[s.From:s.To]
				for i := s.From; i < min(s.To, T); i++ {
					if at := r.Positions[i]; !joined && int(at) != i-s.From || joined && int(at) != i {
						t.Fatalf("row %d: position %d of %+v is %d", r.Index, i, s, at)
					}
				}
			}
			padded += T + 1 - at
			for i, label := range r.Labels {
				if label >= 0 {
					targets++
				}
				if i+1 >= at && (label >= 0 || r.IDs[i+1] != eos) {
					t.Fatalf("row %d: padding at %d is %d and counts as %d", r.Index, i+1, r.IDs[i+1], label)
				}
			}
		}
		if len(parts) != len(want) {
			t.Errorf("got %d documents, want %d", len(parts), len(want))
		}
		first := 0 // ids that nothing comes before
		for _, d := range want {
			first += 1 - len(d) - 1
		}
		for id, pieces := range parts {
			var got []int32
			for _, offset := range slices.Sorted(maps.Keys(pieces)) {
				got = append(got[:min(len(got), offset)], pieces[offset]...) // they overlap by one id
			}
			var i int
			fmt.Sscanf(id, "d%d", &i)
			if docs, rest := unpack(got); len(docs) != 1 || docs[0] != want[i] || rest != "" {
				t.Fatalf("%s: got %q %q, want %q", id, docs, rest, want[i])
			}
		}
		if !joined && targets != -first {
			t.Errorf("got %d targets, want %d", targets, -first)
		}
		if got := l.Padded(); got != int64(padded) || padded > len(rows)*(T+1)/20 {
			t.Errorf("got %d padded ids of %d, counted %d: want less than a twentieth", got, len(rows)*(T+1), padded)
		}
	}
}

func lengthOf(t *testing.T, docs []string, id string) int {
	t.Helper()
	var i int
	if _, err := fmt.Sscanf(id, "d%d", &i); err != nil {
		t.Fatal(err)
	}
	return len(docs[i]) + 1
}

// TestWholeResume: a run of whole documents goes on from any row, to its end.
func TestWholeResume(t *testing.T) {
	p := specOf(corpus(t))
	p.Whole = true
	p.Sources[0].Epochs, p.Sources[1].Epochs = 3, 2
	want := drain(t, open(t, p))
	if len(want) < 500 {
		t.Fatalf("got %d rows", len(want))
	}
	l, again := open(t, p), open(t, p)
	for k := range len(want) {
		if err := again.Restore(throughJSON(t, l.State())); err != nil {
			t.Fatal(err)
		}
		if k%29 == 0 || k > len(want)-20 {
			same(t, fmt.Sprint("resumed after row ", k), drain(t, again), want[k:])
		} else {
			same(t, fmt.Sprint("resumed after row ", k), next(t, again, 1), want[k:k+1])
		}
		if again.Padded() < l.Padded() {
			t.Fatalf("after row %d: padded %d, resumed with %d", k, l.Padded(), again.Padded())
		}
		next(t, l, 1)
	}
}

// TestFit: the row with the least space that is enough is found, as by looking at
// all of them.
func TestFit(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 0))
	for range 200 {
		size := 1 + r.IntN(300)
		f := newFit(size, 500)
		var free []int
		for range 500 {
			n := 1 + r.IntN(size)
			want := size + 1
			for _, v := range free {
				if v >= n {
					want = min(want, v)
				}
			}
			i := f.least(n)
			if i < 0 {
				if want <= size {
					t.Fatalf("no row for %d, one has %d free", n, want)
				}
				i = len(free)
				free = append(free, size)
			} else if free[i] != want {
				t.Fatalf("row with %d free for %d, want %d", free[i], n, want)
			}
			free[i] -= n
			f.set(i, free[i])
		}
	}
}

func BenchmarkPack(b *testing.B) {
	const T = 4096
	r := rand.New(rand.NewPCG(5, 0))
	var docs []whole
	for total := 0; total < packWindow*(T+1); {
		n := 1 + int(r.ExpFloat64()*600)
		docs = append(docs, whole{ids: make([]int32, n)})
		total += n
	}
	used := 0
	for b.Loop() {
		rows := pack(slices.Clone(docs), T)
		used = len(rows)
	}
	ids := 0
	for _, d := range docs {
		ids += len(d.ids)
	}
	b.ReportMetric(100-100*float64(ids)/float64(used*(T+1)), "%padded")
}
