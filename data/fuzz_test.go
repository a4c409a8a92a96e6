// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package data

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"pleach/internal/fault"
)

// TestAnyCorpus: whatever the lengths and number of documents, the cut into
// files, lanes and rows: one shape of row, every document intact in the order of
// its lane, and a run resumed at any row equals one that is not.
func TestAnyCorpus(t *testing.T) {
	dir := t.TempDir()
	n := 0
	rapid.Check(t, func(rt *rapid.T) {
		n++
		docs := rapid.SliceOfN(rapid.IntRange(1, 90), 1, 30).Draw(rt, "lengths")
		files := map[string]string{}
		want := map[string]bool{}
		cut := rapid.IntRange(1, 30).Draw(rt, "documents in a file")
		for i, k := range docs {
			text := fmt.Sprintf("<%d>", i) + strings.Repeat("x", k)
			want[text] = true
			if rapid.Bool().Draw(rt, "text") {
				files[fmt.Sprintf("%d/%d/t%03d.md", n, i%2, i)] = text
			} else {
				files[fmt.Sprintf("%d/%03d.jsonl", n, i/cut)] += lines(fields{"text": text})
			}
		}
		writeIn(rt, dir, files)
		p := Spec{
			Sequence: rapid.IntRange(1, 70).Draw(rt, "T"), Lanes: rapid.IntRange(1, 4).Draw(rt, "L"),
			Seed: rapid.Uint64().Draw(rt, "seed"), EOS: eos, Joined: rapid.Bool().Draw(rt, "joined"),
			Sources: []Source{{Paths: []string{filepath.Join(dir, fmt.Sprint(n))}}},
		}
		l, err := Open(p, byteEncoder{})
		if err != nil {
			rt.Fatal(err)
		}
		defer l.Close()
		stop := rapid.IntRange(0, 40).Draw(rt, "stop")
		head, err := l.Next(stop)
		state := l.State()
		tail, err2 := l.Next(20)
		if err := errors.Join(err, err2); err != nil {
			rt.Fatal(err)
		}
		if err := l.Restore(state); err != nil {
			rt.Fatal(err)
		}
		if again, err := l.Next(20); err != nil || fmt.Sprint(again) != fmt.Sprint(tail) {
			rt.Fatalf("resumed after row %d: %v", stop, err)
		}
		for _, ids := range streamOf(rt, append(head, tail...), p.Sequence) {
			whole, _ := unpack(ids)
			for _, d := range whole {
				if !want[d] {
					rt.Fatalf("%q is no document", d)
				}
			}
		}
	})
}

func writeIn(t *rapid.T, dir string, files map[string]string) {
	for name, text := range files {
		if err := writeFile(filepath.Join(dir, name), text); err != nil {
			t.Fatal(err)
		}
	}
}

// streamOf is stream, and checks the shape of rows.
func streamOf(t *rapid.T, rows []Row, T int) map[int][]int32 {
	lanes := map[int][]int32{}
	for g, r := range rows {
		if len(r.IDs) != T+1 || len(r.Labels) != T || len(r.Positions) != T || r.Index != int64(g) {
			t.Fatalf("row %d has %d ids, %d labels, %d positions and index %d",
				g, len(r.IDs), len(r.Labels), len(r.Positions), r.Index)
		}
		ids := r.IDs
		if s := lanes[r.Lane]; len(s) > 0 {
			if s[len(s)-1] != ids[0] {
				t.Fatalf("row %d does not start where its lane stopped", g)
			}
			ids = ids[1:]
		}
		lanes[r.Lane] = append(lanes[r.Lane], ids...)
	}
	return lanes
}

// FuzzCorpus: any bytes as a JSONL file give rows of the right shape or an error
// that names the file, and never a panic.
func FuzzCorpus(f *testing.F) {
	f.Add([]byte(`{"text":"abc","id":"x"}`+"\n"+`{"text":[1,2,3],"mask":[0,1,1]}`), uint8(4))
	f.Add([]byte("\ufeff"+`{"text":"abc"}`+"\r\n\r\n"), uint8(1))
	f.Add([]byte(`[1,2,3]`), uint8(9))
	f.Add([]byte(`{"text":"\ud800"}`+"\n"+`{"text":null}`), uint8(2))
	f.Fuzz(func(t *testing.T, text []byte, T uint8) {
		dir := write(t, map[string]string{"a.jsonl": string(text)})
		p := specOf([]Source{{Paths: []string{filepath.Join(dir, "a.jsonl")}, ID: "id", Mask: "mask", Epochs: 2}})
		p.Sequence, p.Lanes = int(T)+1, 2
		l, err := Open(p, byteEncoder{})
		var rows []Row
		if err == nil {
			defer l.Close()
			rows, err = l.Next(10)
		}
		if err != nil && err != io.EOF && (!errors.Is(err, fault.Data) || !strings.Contains(err.Error(), "a.jsonl")) {
			// The source or the lane is named where there is no file to name.
			if !strings.Contains(err.Error(), "source a") && !strings.Contains(err.Error(), " gets no row ") {
				t.Fatalf("%q: got %v, want a data error that names the file", text, err)
			}
		}
		for _, r := range rows {
			if len(r.IDs) != p.Sequence+1 || len(r.Docs) == 0 || slices.Max(r.IDs) >= 258 || slices.Min(r.IDs) < 0 {
				t.Fatalf("%q: got row %+v", text, r)
			}
		}
	})
}

// FuzzState: any JSON as a state is refused or gives rows or an error, and never
// a panic or an endless search.
func FuzzState(f *testing.F) {
	p := specOf([]Source{{Paths: []string{write(f, map[string]string{"a.txt": "document"})}}})
	p.Lanes = 1
	l := open(f, p)
	next(f, l, 3)
	good, _ := json.Marshal(l.State())
	f.Add(good)
	for _, s := range []string{`"block":9`, `"document":99`, `"epoch":9223372036854775807`, `"tokens":9e18`} {
		key, _, _ := strings.Cut(s, ":")
		at := strings.Index(string(good), key)
		end := at + strings.IndexAny(string(good[at:]), ",}")
		f.Add([]byte(string(good[:at]) + s + string(good[end:])))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var s State
		if json.Unmarshal(b, &s) != nil {
			return
		}
		s.Fingerprint = l.Fingerprint()
		l := open(t, p)
		defer l.Close()
		if err := l.Restore(s); err != nil {
			if !errors.Is(err, fault.State) {
				t.Fatalf("%s: got %v, want fault.State", b, err)
			}
			return
		}
		l.Next(3)
	})
}
