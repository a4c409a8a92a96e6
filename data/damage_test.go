// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package data

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"pleach/internal/fault"
)

// harmed is a source of 60 documents, of which every tenth line is damaged.
func harmed(t *testing.T) Source {
	lines := strings.Split(jsonl(lettered(4, 60, 30)), "\n")
	for i := 9; i < 60; i += 10 {
		lines[i] = lines[i][:len(lines[i])/2]
	}
	return Source{Paths: []string{write(t, map[string]string{"a.jsonl": strings.Join(lines, "\n")})}, Epochs: 2}
}

// TestDamagedIsAnError: unless the recipe says otherwise, naming file, line and byte.
func TestDamagedIsAnError(t *testing.T) {
	src := harmed(t)
	var err error
	for _, err = range Documents(src) {
		if err != nil {
			break
		}
	}
	if want := "a.jsonl:10 (byte "; !errors.Is(err, fault.Data) || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %q", err, want)
	}
	p := specOf([]Source{src})
	p.Sources[0].ID = "id"
	l := open(t, p)
	_, err = l.Next(400)
	if want := "a.jsonl:"; !errors.Is(err, fault.Data) || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %q", err, want)
	}
}

// TestDamagedLeftOut: as many as the recipe says are left out and counted, once,
// however often the run is resumed; one more ends it.
func TestDamagedLeftOut(t *testing.T) {
	p := specOf([]Source{harmed(t)})
	p.Sources[0].Damaged = 6
	l := open(t, p)
	want := drain(t, l)
	st := l.Stats()[0]
	if n := st.Skipped["damaged"]; n == 0 || n > 6 || !strings.Contains(st.Examples["damaged"], "a.jsonl:") {
		t.Errorf("got %d damaged, such as %s", n, st.Examples["damaged"])
	}
	l, again := open(t, p), open(t, p)
	for k := 0; k+4 < len(want); k++ {
		if err := again.Restore(throughJSON(t, l.State())); err != nil {
			t.Fatal(err)
		}
		same(t, fmt.Sprint("resumed after row ", k), next(t, again, 4), want[k:k+4])
		next(t, l, 1)
	}
	n := 0
	for _, err := range Documents(p.Sources[0]) {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	if n != 54 {
		t.Errorf("got %d documents, want 54", n)
	}
	p.Sources[0].Damaged = 2
	_, err := open(t, p).Next(len(want))
	if msg := "documents are damaged, want at most 2; the first: data: "; err == nil || !strings.Contains(err.Error(), msg) {
		t.Errorf("got %v, want %q", err, msg)
	}
	for _, err = range Documents(p.Sources[0]) {
		if err != nil {
			break
		}
	}
	if msg := "3 documents are damaged, want at most 2"; err == nil || !strings.Contains(err.Error(), msg) {
		t.Errorf("got %v, want %q", err, msg)
	}
}

// TestNamedByByte: where lines are too many to count, a document is named by where
// it starts, and an error by its line too.
func TestNamedByByte(t *testing.T) {
	defer func(n int64) { countedSize = n }(countedSize)
	countedSize = 100
	file := filepath.Join(write(t, map[string]string{
		"a.jsonl": jsonl([]string{"one", "two", "three"}) + `{"text": 1}` + strings.Repeat("\n", 60),
	}), "a.jsonl")
	var names []string
	var err error
	for d, e := range Documents(Source{Paths: []string{file}}) {
		if err = e; err == nil {
			names = append(names, strings.TrimPrefix(d.ID, file))
		}
	}
	if got := strings.Join(names, " "); got != "@0 @25 @50" {
		t.Errorf("got the names %s", got)
	}
	if err == nil || !strings.Contains(err.Error(), file+":4 (byte 77)") {
		t.Errorf("got %v, want line 4", err)
	}
}

// TestDamagedTable: of a table with a damaged batch the rows of that batch are
// damaged, and no others; the error names the row.
func TestDamagedTable(t *testing.T) {
	docs := lettered(5, 100, 400)
	file := []byte(arrowFile(t, docs, 10))
	for i := range 12 {
		file[len(file)/2+i] ^= 0x55 // in the buffers of a batch
	}
	dir := write(t, map[string]string{"a.arrow": string(file)})
	src := Source{Paths: []string{dir}, ID: "id", Epochs: 2}
	p := specOf([]Source{src})
	_, err := Open(p, byteEncoder{})
	if err == nil {
		_, err = open(t, p).Next(4000)
	}
	if !errors.Is(err, fault.Data) || !strings.Contains(err.Error(), "a.arrow") {
		t.Errorf("got %v, want an error about a.arrow", err)
	}
	src.Damaged = 10
	got := map[string]bool{}
	for d, err := range Documents(src) {
		if err != nil {
			t.Fatal(err)
		}
		got[string(d.Text)] = true
	}
	missing := 0
	for i, d := range docs {
		if !got[d] {
			if missing++; i < 10 || i >= 90 {
				t.Errorf("document %d is missing, far from the damage", i)
			}
		}
	}
	if missing == 0 || missing > 10 || len(got) != 100-missing {
		t.Errorf("got %d documents, %d are missing: want those of a batch", len(got), missing)
	}
	p.Sources[0].Damaged = 10
	l, again := open(t, p), open(t, p)
	want := drain(t, open(t, p))
	for k := 0; k+9 < len(want); k += 9 {
		if err := again.Restore(throughJSON(t, l.State())); err != nil {
			t.Fatal(err)
		}
		same(t, fmt.Sprint("resumed after row ", k), next(t, again, 9), want[k:k+9])
		next(t, l, 9)
	}
}

// TestDamagedFrame: a compressed file that is cut off is one damaged document, and an
// error that names it unless some may be left out. Neither what it is counted as nor
// the order of the rest depends on how the source is read.
func TestDamagedFrame(t *testing.T) {
	docs := lettered(6, 50, 40)
	gz := gzipped(t, jsonl(lettered(7, 3000, 300)))
	dir := write(t, map[string]string{"a.jsonl": jsonl(docs), "b.jsonl.gz": gz[:len(gz)*2/3]})
	src := Source{Paths: []string{dir}, Access: Access{Cache: t.TempDir()}}
	var err error
	for _, err = range Documents(src) {
	}
	if !errors.Is(err, fault.Data) || !strings.Contains(err.Error(), "b.jsonl.gz") {
		t.Errorf("got %v, want an error about b.jsonl.gz", err)
	}
	src.Damaged = 100
	n := 0
	for _, err := range Documents(src) {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	if n < len(docs) {
		t.Errorf("got %d documents, want the %d of the other file", n, len(docs))
	}
	defer func(was int64) { indexed = was }(indexed)
	for name, text := range map[string]string{"c.jsonl": jsonl(lettered(8, 90, 40)), "0.jsonl": jsonl(lettered(9, 90, 40))} {
		if err := writeFile(filepath.Join(dir, name), text); err != nil {
			t.Fatal(err)
		}
	}
	src.Name, src.Damaged = "x", 1
	p := specOf([]Source{src})
	want := next(t, open(t, p), 600)
	out := t.TempDir()
	for _, size := range []int64{0, 1 << 30} {
		indexed = size
		if err := Tokenize(t.Context(), p, byteEncoder{}, filepath.Join(out, itoa(size)), nil); err != nil {
			t.Fatal(err)
		}
		for what, source := range map[string]Source{"texts": src, "tokens": {Paths: []string{filepath.Join(out, itoa(size), "x")}}} {
			q := p
			q.Sources = []Source{source}
			l := open(t, q)
			same(t, fmt.Sprint(what, " indexed to ", size), next(t, l, 600), want)
			if n := l.Stats()[0].Skipped[damaged.String()]; n != 1 {
				t.Errorf("%s indexed to %d: got %d damaged, want 1", what, size, n)
			}
		}
	}
}
