// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package data

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pleach/data/table"
	"pleach/internal/fault"
)

// tokenFolder writes the tokens of a source of lines and gives the spec that reads the
// texts and that which reads the tokens.
func tokenFolder(t *testing.T) (texts, tokens Spec, dir string) {
	t.Helper()
	src := everyFormat(t)["jsonl"]
	src.Name, src.Epochs = "x", 0
	texts = specOf([]Source{src})
	texts.Vocabulary = 1 << 20
	out := t.TempDir()
	if err := Tokenize(t.Context(), texts, byteEncoder{}, out, nil); err != nil {
		t.Fatal(err)
	}
	dir = filepath.Join(out, "x")
	tokens = texts
	tokens.Sources = []Source{{Paths: []string{dir}}}
	return texts, tokens, dir
}

// refused opens a source and reads from it; both may fail, with the kind and words.
func refused(t *testing.T, p Spec, kind error, want string) {
	t.Helper()
	l, err := Open(p, byteEncoder{})
	if err == nil {
		_, err = l.Next(p.Lanes)
		l.Close()
	}
	if !errors.Is(err, kind) || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want an error of kind %v with %q", err, kind, want)
	}
}

// TestTokensAgree: what a source of tokens says must be what they were made with.
func TestTokensAgree(t *testing.T) {
	texts, p, dir := tokenFolder(t)
	say := func(set func(*Source)) Spec {
		q := p
		q.Sources = slices.Clone(p.Sources)
		set(&q.Sources[0])
		return q
	}
	refused(t, say(func(s *Source) { s.Field = "other" }), fault.Config, `made with field "text": got "other"`)
	refused(t, say(func(s *Source) { s.ID = "other" }), fault.Config, `made with id "id": got "other"`)
	refused(t, say(func(s *Source) { s.Mask = "other" }), fault.Config, `made with mask "": got "other"`)
	refused(t, say(func(s *Source) { s.Format = "lines" }), fault.Config, `: got "lines"`)
	refused(t, say(func(s *Source) { s.Damaged = 3 }), fault.Config, "made with 0 damaged documents allowed: got 3")
	refused(t, say(func(s *Source) { s.Rows = true }), fault.Config, "want no rows: true")
	refused(t, say(func(s *Source) { s.Paths = []string{filepath.Dir(dir)} }), fault.Config, dir+" holds tokens: want it as the path")
	refused(t, say(func(s *Source) { s.Paths = []string{dir, texts.Sources[0].Paths[0]} }), fault.Config, "only path of a source")
	same := say(func(s *Source) { s.Field, s.ID = "text", "id" })
	next(t, open(t, same), 3)
	for _, err := range Documents(Source{Paths: []string{dir}}) {
		if !errors.Is(err, fault.Config) || !strings.Contains(err.Error(), "want the documents") {
			t.Errorf("documents of tokens: got %v", err)
		}
	}
	for _, name := range []string{"../x", "a/b", "..", "."} {
		q := texts
		q.Sources = slices.Clone(q.Sources)
		q.Sources[0].Name = name
		if err := Tokenize(t.Context(), q, byteEncoder{}, t.TempDir(), nil); !errors.Is(err, fault.Config) {
			t.Errorf("tokens of a source %q: got %v", name, err)
		}
	}
}

// TestTokensDamaged: damage in a folder of tokens is an error, and no more.
func TestTokensDamaged(t *testing.T) {
	_, p, dir := tokenFolder(t)
	name := filepath.Join(dir, tokensName)
	was, err := readTokens(dir)
	if err != nil {
		t.Fatal(err)
	}
	write := func(m tokenManifest) {
		t.Helper()
		b, err := json.Marshal(m)
		if err == nil {
			err = os.WriteFile(name, b, 0o666)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct {
		why  string
		ids  []int32
		mask []uint8
		want string
	}{
		{asIDs, nil, nil, ":1: got 0 ids"},
		{asText, []int32{1, 2, 3}, []uint8{1}, ":1: got 3 ids with a mask of 1 entries"},
		{"no reason", nil, nil, `:1: got "no reason"`},
		{empty.String(), nil, nil, "no documents: skipped 1 empty"},
	} {
		f, err := os.Create(filepath.Join(dir, partName(0)))
		if err != nil {
			t.Fatal(err)
		}
		w, err := table.NewWriter(f, nil, tokenColumns()...)
		if err != nil {
			t.Fatal(err)
		}
		w.Int(colAt, 0)
		w.Int(colBytes, 9)
		w.Text(colName, "a")
		w.Text(colWhy, tt.why)
		w.Numbers(colIDs, tt.ids)
		if tt.mask == nil {
			w.Null(colMask)
		} else {
			w.Bits(colMask, tt.mask)
		}
		if err := errors.Join(w.EndBatch(), w.Close(), f.Close()); err != nil {
			t.Fatal(err)
		}
		m := *was
		m.Parts = []tokenPart{{Rows: 1, Documents: 1}}
		m.Skipped, m.Examples = nil, nil
		write(m)
		refused(t, p, fault.Data, tt.want)
	}
}

// TestTokenizeMadeAgain: parts that are lost or cut are made again.
func TestTokenizeMadeAgain(t *testing.T) {
	texts, _, dir := tokenFolder(t)
	part := filepath.Join(dir, partName(0))
	want, err := os.ReadFile(part)
	if err != nil {
		t.Fatal(err)
	}
	for name, harm := range map[string]func() error{
		"lost": func() error { return os.Remove(part) },
		"cut":  func() error { return os.Truncate(part, int64(len(want)/2)) },
		"none": func() error { return nil },
	} {
		if err := harm(); err != nil {
			t.Fatal(err)
		}
		var last Tokenized
		err := Tokenize(t.Context(), texts, byteEncoder{}, filepath.Dir(dir), func(d Tokenized) { last = d })
		got, err2 := os.ReadFile(part)
		if err != nil || err2 != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %v %v: got %d bytes, want the %d from before", name, err, err2, len(got), len(want))
		}
		if last.Done != last.Total || last.Documents == 0 {
			t.Errorf("%s: progress ends with %+v", name, last)
		}
	}
}

// TestSurveyOfIDs: tokens and packed rows can be looked at, with the tokenizer they
// are of or with none.
func TestSurveyOfIDs(t *testing.T) {
	texts, tokens, dir := tokenFolder(t)
	rows := filepath.Join(t.TempDir(), "rows")
	const n = 70
	if err := WriteRows(t.Context(), open(t, texts), n, rows, nil); err != nil {
		t.Fatal(err)
	}
	survey := func(p Spec, enc Encoder) (SourceSurvey, error) {
		all, err := Survey(t.Context(), SurveySpec{Spec: p}, enc)
		if err != nil {
			return SourceSurvey{}, err
		}
		return all[0], nil
	}
	want, err := survey(texts, byteEncoder{})
	if err != nil {
		t.Fatal(err)
	}
	for _, enc := range []Encoder{byteEncoder{}, nil} {
		if got, err := survey(tokens, enc); err != nil || got.Documents != want.Documents || got.Tokens != want.Tokens {
			t.Errorf("tokens: got %+v, %v, want %+v", got, err, want)
		}
	}
	found, err := Scan([]string{dir}, Access{})
	if err != nil {
		t.Fatal(err)
	}
	p := texts
	p.Sources = []Source{found.Found[0].Source}
	if got, err := survey(p, byteEncoder{}); err != nil || got.Documents != want.Documents || got.Tokens != want.Tokens {
		t.Errorf("tokens that were found: got %+v, %v, want %+v", got, err, want)
	}
	tokens.Tokenizer = "other"
	if _, err := survey(tokens, byteEncoder{}); !errors.Is(err, fault.Config) || !strings.Contains(err.Error(), "another tokenizer") {
		t.Errorf("got %v", err)
	}
	p.Sources = []Source{{Paths: []string{rows}, Rows: true}}
	if got, err := survey(p, byteEncoder{}); err != nil || got.Documents != n {
		t.Errorf("rows: got %+v, %v, want %d documents", got, err, n)
	}
}

// TestPackedRowsRefused: rows of another tokenizer, ids beyond the vocabulary, lost
// parts, and a folder that is not said to be one of rows.
func TestPackedRowsRefused(t *testing.T) {
	p := specOf(corpus(t))
	p.Tokenizer = "ours"
	dir := filepath.Join(t.TempDir(), "rows")
	if err := WriteRows(t.Context(), open(t, p), rowsInPart+2, dir, nil); err != nil {
		t.Fatal(err)
	}
	q := p
	q.Sources = []Source{{Paths: []string{dir}, Rows: true}}
	next(t, open(t, q), 4)
	other := q
	other.Tokenizer = "other"
	refused(t, other, fault.Config, "of another tokenizer than the model's: got ours, want other")
	small := q
	small.Vocabulary, small.EOS, small.BOS = 60, 0, 1
	refused(t, small, fault.Data, "want a whole number from 0 to 59")
	unsaid := q
	unsaid.Sources = []Source{{Paths: []string{dir}}}
	refused(t, unsaid, fault.Config, "holds rows: want it to be the only path, with rows: true")
	told := [2]int64{}
	tell := func(done, total int64) { told = [2]int64{done, total} }
	if err := WriteRows(t.Context(), open(t, p), 100, dir, tell); err != nil || told[0] != rowsInPart+2 {
		t.Errorf("fewer rows than are there: told %v, %v", told, err)
	}
	if err := os.Remove(filepath.Join(dir, partName(0))); err != nil {
		t.Fatal(err)
	}
	err := WriteRows(t.Context(), open(t, p), rowsInPart+9, dir, nil)
	if !errors.Is(err, fault.State) || !strings.Contains(err.Error(), "want another folder: data: open") {
		t.Errorf("a part is lost: got %v", err)
	}
}

// TestPackedRowsDamaged: documents of a row that overlap or reach beyond it.
func TestPackedRowsDamaged(t *testing.T) {
	for _, tt := range []struct{ from, to, offset []int32 }{
		{[]int32{0, 2}, []int32{3, 5}, []int32{0, 0}},
		{[]int32{0}, []int32{6}, []int32{0}},
		{[]int32{-1}, []int32{3}, []int32{0}},
		{[]int32{3}, []int32{3}, []int32{0}},
		{[]int32{0}, []int32{3}, []int32{-4}},
	} {
		dir := t.TempDir()
		f, err := os.Create(filepath.Join(dir, partName(0)))
		if err != nil {
			t.Fatal(err)
		}
		w, err := table.NewWriter(f, nil, rowColumns()...)
		if err != nil {
			t.Fatal(err)
		}
		w.Numbers(rowIDs, []int32{1, 2, 3, 4, 5})
		w.Bits(rowTargets, []uint8{1, 1, 1, 1})
		w.Numbers(rowFrom, tt.from)
		w.Numbers(rowTo, tt.to)
		w.Numbers(rowOffset, tt.offset)
		w.Numbers(rowSource, make([]int32, len(tt.from)))
		w.Strings(rowNames, make([]string, len(tt.from)))
		if err := errors.Join(w.EndBatch(), w.Close(), f.Close()); err != nil {
			t.Fatal(err)
		}
		b, err := json.Marshal(rowsManifest{Form: rowsForm, Sequence: 4, Rows: 1})
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, rowsName), b, 0o666)
		}
		if err != nil {
			t.Fatal(err)
		}
		refused(t, Spec{Sequence: 4, Lanes: 1, Sources: []Source{{Paths: []string{dir}, Rows: true}}}, fault.Data, "want one after the other")
	}
}

// TestReadyRowsOfTables: ready rows may lie in tables, whose format need not be said.
func TestReadyRowsOfTables(t *testing.T) {
	dir := t.TempDir()
	f, err := os.Create(filepath.Join(dir, "rows.bin"))
	if err != nil {
		t.Fatal(err)
	}
	w, err := table.NewWriter(f, nil, table.ColumnDef{Name: "ids", Kind: table.Numbers})
	if err != nil {
		t.Fatal(err)
	}
	var want [][]int32
	for i := range int32(7) {
		want = append(want, []int32{i, i + 1, i + 2, i + 3})
		w.Numbers(0, want[i])
	}
	if err := errors.Join(w.EndBatch(), w.Close(), f.Close()); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{dir, filepath.Join(dir, "rows.bin")} {
		p := Spec{Sequence: 3, Lanes: 2, Sources: []Source{{Paths: []string{path}, Rows: true, Field: "ids"}}}
		for i, r := range next(t, open(t, p), 10) {
			if !slices.Equal(r.IDs, want[i%7]) {
				t.Errorf("row %d: got %v, want %v", i, r.IDs, want[i%7])
			}
		}
	}
}
