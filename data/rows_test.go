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

	"pleach/internal/fault"
)

// lines is values, one JSON a line.
func lines(values ...any) string {
	var b strings.Builder
	for _, v := range values {
		line, _ := json.Marshal(v)
		b.Write(append(line, '\n'))
	}
	return b.String()
}

type fields = map[string]any

// TestReadyRows: row g is line g modulo the number of lines, whatever shuffle
// says; the first id is no target, others are as their mask says.
func TestReadyRows(t *testing.T) {
	var rows []any
	for i := range 7 {
		ids := []int{eos, i, i, i, eos}
		if i == 3 {
			rows = append(rows, fields{"tokens": ids, "mask": []int{1, 0, 1, 0, 1}})
			continue
		}
		rows = append(rows, fields{"tokens": ids})
	}
	dir := write(t, map[string]string{
		"a.jsonl": lines(rows[:4]...) + "\n", "b.jsonl": lines(rows[4:]...),
	})
	p := specOf([]Source{{Paths: []string{dir}, Field: "tokens", Mask: "mask", Rows: true, Epochs: 3}})
	p.Sequence = 4
	l := open(t, p)
	e, err := l.Epoch()
	if err != nil || e.Tokens != 28 || e.Documents != 7 || !e.Exact {
		t.Errorf("epoch: got %+v, %v, want 28 tokens in 7 rows", e, err)
	}
	for g := range 21 {
		if g == 10 {
			s := throughJSON(t, l.State())
			next(t, l, 3)
			if err := l.Restore(s); err != nil {
				t.Fatal(err)
			}
		}
		r := next(t, l, 1)[0]
		i := int32(g % 7)
		want := []int32{i, i, i, eos}
		if i == 3 {
			want = []int32{-1, 3, -1, eos}
		}
		if r.Index != int64(g) || !slices.Equal(r.IDs, []int32{eos, i, i, i, eos}) ||
			!slices.Equal(r.Labels, want) || !slices.Equal(r.Positions, []int32{0, 1, 2, 3}) {
			t.Fatalf("row %d: got %+v", g, r)
		}
		file, line := "a.jsonl", i+1
		if i >= 4 {
			file, line = "b.jsonl", i-3
		}
		if got := r.Docs[0].ID; got != fmt.Sprintf("%s:%d", filepath.Join(dir, file), line) {
			t.Fatalf("row %d is of %s", g, got)
		}
	}
	if rows, err := l.Next(1); len(rows) != 0 || !errors.Is(err, io.EOF) {
		t.Errorf("after three epochs: got %d rows, %v", len(rows), err)
	}
}

// TestMasks: golden targets of documents of ids. Masks go by place, also where
// the ids are those of end-of-sequence, and survive packing.
func TestMasks(t *testing.T) {
	for _, tt := range []struct {
		name   string
		line   fields
		joined bool
		bos    bool
		ids    []int32
		labels []int32
	}{
		{
			"the answer and the end of its turn are targets, the prompt is not",
			fields{"ids": []int{1, 2, 3, 4}, "mask": []int{0, 0, 1, 1}},
			false, false,
			[]int32{1, 2, 3, 4, eos},
			[]int32{-1, 3, 4, eos},
		},
		{
			"end-of-sequence in the text is a target like any id, and ends it once",
			fields{"ids": []int{1, eos, 3, eos}, "mask": []int{1, 1, 0, 1}},
			false, false,
			[]int32{1, eos, 3, eos},
			[]int32{eos, -1, eos},
		},
		{
			"a last id that does not count, nor does the end",
			fields{"ids": []int{1, 2, 3}, "mask": []int{1, 1, 0}},
			false, false,
			[]int32{1, 2, 3, eos},
			[]int32{2, -1, -1},
		},
		{
			"without a mask all count",
			fields{"ids": []int{1, 2}},
			false, true,
			[]int32{bos, 1, 2, eos},
			[]int32{1, 2, eos},
		},
		{
			"one begin-of-sequence, not two; joined: it counts unless masked",
			fields{"ids": []int{bos, 2}, "mask": nil},
			true, true,
			[]int32{bos, 2, eos},
			[]int32{2, eos},
		},
		{
			"a document without any target",
			fields{"ids": []int{1, 2}, "mask": []int{0, 0}},
			true, true,
			[]int32{bos, 1, 2, eos},
			[]int32{-1, -1, -1},
		},
	} {
		dir := write(t, map[string]string{"a.jsonl": lines(tt.line)})
		p := specOf([]Source{{Paths: []string{dir}, Field: "ids", Mask: "mask"}})
		p.Lanes, p.Joined, p.AddBOS = 1, tt.joined, tt.bos
		// A row of two documents and the first id of a third.
		n := len(tt.ids)
		p.Sequence = 2 * n
		l, err := Open(p, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		r := next(t, l, 1)[0]
		first := int32(-1)
		if m, _ := tt.line["mask"].([]int); tt.joined && m == nil {
			first = tt.ids[0]
		}
		want := append(slices.Concat(tt.labels, []int32{first}, tt.labels), first)
		ids := append(slices.Concat(tt.ids, tt.ids), tt.ids[0])
		if !slices.Equal(r.IDs, ids) || !slices.Equal(r.Labels, want) {
			t.Errorf("%s:\nids    %v\nwant   %v\nlabels %v\nwant   %v", tt.name, r.IDs, ids, r.Labels, want)
		}
	}
}

// TestPackedTargets: packed in rows of any length, documents have the targets
// that they have alone.
func TestPackedTargets(t *testing.T) {
	var docs []any
	want := map[int32]int{}
	for i := range 30 {
		var ids, mask []int
		for j := range 1 + i*7%40 {
			ids = append(ids, i)
			mask = append(mask, (i+j*j)%3%2)
			if j > 0 {
				want[int32(i)] += mask[j]
			}
		}
		docs = append(docs, fields{"ids": ids, "mask": mask})
	}
	dir := write(t, map[string]string{"a.jsonl": lines(docs...)})
	for _, T := range []int{1, 2, 7, 64} {
		p := specOf([]Source{{Paths: []string{dir}, Field: "ids", Mask: "mask", Epochs: 1}})
		p.Lanes, p.Sequence = 1, T
		got := map[int32]int{}
		left := map[int32]int{}
		for _, r := range drain(t, open(t, p)) {
			for i, id := range r.Labels {
				if id >= 0 && id != r.IDs[i+1] {
					t.Fatalf("T %d: label %d is no id of the row", T, id)
				}
				if id >= 0 && id != eos {
					got[id]++
				}
			}
			left = map[int32]int{r.IDs[T]: 1} // the run may end within this document
		}
		short := 0
		for i, n := range want {
			if got[i] != n {
				short++
			}
		}
		if short > 1+T/8 || len(left) == 0 {
			t.Errorf("T %d: %d documents have other targets than alone", T, short)
		}
	}
}

// TestBadDocuments: what is wrong with a line is told with file, line, byte, and
// index, and ends the run; rows before it are not lost to a smaller batch.
func TestBadDocuments(t *testing.T) {
	good := `{"text":"fine","mask":null}` + "\n"
	for _, tt := range []struct{ line, want string }{
		{`{"text":"a"`, `a.jsonl:3 (byte 67): not JSON: got the end of the line, want a comma or }`},
		{`{"text":'a'}`, `a.jsonl:3 (byte 64): not JSON: got '\'', want a value`},
		{`{"text":"a"} x`, `a.jsonl:3 (byte 69): not JSON: got 'x', want the end of the line`},
		{`"text"`, `a.jsonl:3 (byte 56): not JSON: got '"', want an object`},
		{"{\"text\":\"a\tb\"}", `a.jsonl:3 (byte 66): not JSON: got '\t', want more of a string`},
		{`{"body":"a","n":1}`, `no field "text": the line has body, n`},
		{`{"text":7}`, `field "text": got 7, want a text or a list of ids`},
		{`{"text":"a","text":"b"}`, `field "text" twice`},
		{`{"text":[1,2,258]}`, `field "text": id 2 is 258, want a whole number from 0 to 257`},
		{`{"text":[1,-2]}`, `field "text": id 1 is -2, want a whole number from 0 to 257`},
		{`{"text":[1.0]}`, `field "text": id 0 is 1.0, want a whole number`},
		{`{"text":[99999999999999999999999]}`, `field "text": id 0 is 99999999999999999999999, want`},
		{`{"text":[1,"a"]}`, `field "text": id 1 is "a", want`},
		{`{"text":[1,2],"mask":[1]}`, `field "mask" has 1 entries, field "text" 2: want as many`},
		{`{"text":[1],"mask":[2]}`, `field "mask": entry 0 is 2, want 0 or 1`},
		{`{"text":[1],"mask":"1"}`, `field "mask": got "1", want a list of 0 and 1`},
		{`{"text":"a","mask":[1]}`, `field "mask" masks field "text", which is text: want a list of ids`},
	} {
		// Two lines before the bad one, so that it is in line 3 at byte 56.
		dir := write(t, map[string]string{"a.jsonl": good + good + tt.line + "\n"})
		p := specOf([]Source{{Paths: []string{dir}, Mask: "mask"}})
		p.Lanes, p.Shuffle = 1, "none"
		l := open(t, p)
		_, err := l.Next(30)
		if !errors.Is(err, fault.Data) || !strings.Contains(err.Error(), "a.jsonl:3 (byte ") ||
			!strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s:\ngot  %v\nwant %s", tt.line, err, tt.want)
		}
		if s := l.State(); s.Rows != 0 {
			t.Errorf("%s: the failed batch counts: %d rows", tt.line, s.Rows)
		}
	}
}

// TestBadRows: a ready row has exactly T+1 ids.
func TestBadRows(t *testing.T) {
	for _, tt := range []struct{ line, want string }{
		{`{"text":[1,2]}`, `a row has 2 ids, want the sequence and one: 3`},
		{`{"text":[1,2,3,4]}`, `a row has 4 ids, want the sequence and one: 3`},
		{`[]`, `a row has 0 ids, want the sequence and one: 3`},
		{`{"text":"abc"}`, `got a text, want a row of 3 ids`},
	} {
		p := specOf([]Source{{
			Paths: []string{write(t, map[string]string{"a.jsonl": "[1,2,3]\n" + tt.line})}, Rows: true,
		}})
		p.Sequence = 2
		l := open(t, p)
		if r := next(t, l, 1); r[0].IDs[2] != 3 {
			t.Fatalf("the first row is %v", r[0].IDs)
		}
		_, err := l.Next(1)
		if !errors.Is(err, fault.Data) || !strings.Contains(err.Error(), tt.want) ||
			!strings.Contains(err.Error(), "a.jsonl:2 (byte 8)") {
			t.Errorf("%s:\ngot  %v\nwant %s", tt.line, err, tt.want)
		}
	}
}
