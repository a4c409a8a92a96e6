// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package data

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"pleach/data/table"
	"pleach/internal/fault"
)

// gzipped and zstandard are text, compressed as one member and one frame.
func gzipped(t testing.TB, text string) string {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := io.WriteString(w, text); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func zstandard(t testing.TB, text string) string {
	t.Helper()
	w, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	return string(w.EncodeAll([]byte(text), nil))
}

// arrowFile is documents in an Arrow file, some in a batch.
func arrowFile(t testing.TB, docs []string, batch int) string {
	t.Helper()
	var b bytes.Buffer
	w, err := table.NewWriter(&b, nil, table.ColumnDef{Name: "id", Kind: table.String}, table.ColumnDef{Name: "text", Kind: table.String})
	if err != nil {
		t.Fatal(err)
	}
	for i, d := range docs {
		w.Text(0, fmt.Sprint("d", i))
		w.Text(1, d)
		if (i+1)%batch == 0 || i+1 == len(docs) {
			if err := w.EndBatch(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// everyFormat is sources of a few hundred documents each, in every form that
// documents lie in.
func everyFormat(t testing.TB) map[string]Source {
	docs := lettered(11, 300, 80)
	tree := map[string]string{}
	for i, d := range lettered(12, 60, 90) {
		tree[fmt.Sprintf("%d/%d.txt", i%3, i)] = d
	}
	lines := jsonl(docs)
	dir := func(files map[string]string) []string { return []string{write(t, files)} }
	all := map[string]Source{
		"text":         {Paths: dir(tree)},
		"lines":        {Paths: dir(map[string]string{"a.txt": strings.Join(docs, "\n")}), Format: formatLines},
		"jsonl":        {Paths: dir(map[string]string{"a.jsonl": lines}), ID: "id"},
		"jsonl gzip":   {Paths: dir(map[string]string{"a.jsonl.gz": gzipped(t, lines)})},
		"jsonl zstd":   {Paths: dir(map[string]string{"a.jsonl.zst": zstandard(t, lines), "b.jsonl": jsonl(docs[:20])})},
		"text gzip":    {Paths: dir(map[string]string{"a.txt.gz": gzipped(t, docs[0]), "b.gz": gzipped(t, docs[1]), "c.txt": docs[2]})},
		"arrow":        {Paths: dir(map[string]string{"a.arrow": arrowFile(t, docs, 7), "b.arrow": arrowFile(t, docs[:1], 1)}), ID: "id"},
		"arrow gzip":   {Paths: dir(map[string]string{"a.arrow.gz": gzipped(t, arrowFile(t, docs, 70))})},
		"datasets":     {Paths: []string{"table/testdata/datasets"}},
		"parquet":      {Paths: []string{"table/testdata/pyarrow-v1.parquet", "table/testdata/duckdb-zstd.parquet", "table/testdata/polars.parquet"}},
		"nested":       {Paths: []string{"table/testdata/pyarrow-v1.parquet"}, Field: "messages.content", ID: "meta.id"},
		"parquet ids":  {Paths: []string{"table/testdata/pyarrow-groups.parquet"}, Field: "ids"},
		"arrow stream": {Paths: []string{"table/testdata/pyarrow-stream.arrow"}},
	}
	cache := t.TempDir()
	for name, s := range all {
		s.Access.Cache = cache
		s.Name = name
		all[name] = s
	}
	return all
}

// TestResumeEveryFormat: 100 kills at random, one after the other, across epochs and
// stages, each time going on with another number of ranks, of workers, and of rows
// made ahead: the rows are those of the run that was not stopped.
func TestResumeEveryFormat(t *testing.T) {
	second := Source{Paths: []string{write(t, map[string]string{"z.jsonl": jsonl(lettered(13, 200, 50))})}, Name: "second"}
	for name, src := range everyFormat(t) {
		for _, whole := range []bool{false, true} {
			t.Run(fmt.Sprint(name, " whole ", whole), func(t *testing.T) {
				src.Weight, second.Weight = 3, 1
				p := specOf([]Source{src, second})
				p.Lanes, p.Whole, p.Vocabulary = 8, whole, 1<<20
				p.Stages = []Stage{{400, []float64{1, 1}}, {1000, []float64{1, 0}}}
				const rows = 1600
				l := open(t, p)
				want := next(t, l, rows)
				if e := l.Stats()[0].Epoch; e < 0.7 { // of most, 1 to 6; whole documents take fewer in as many rows
					t.Fatalf("the run ends in epoch %.2f", e)
				}
				kills(t, p, want)
			})
		}
	}
}

// kills serves the rows of a run that is stopped a hundred times.
func kills(t *testing.T, p Spec, want []Row) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	r := rand.New(rand.NewPCG(3, uint64(len(p.Sources[0].Name))))
	var state *State
	for at, kill := 0, 0; at < len(want); kill++ {
		p.Ranks, p.Ahead = []int{1, 2, 8, 4}[r.IntN(4)], 1+r.IntN(5)
		runtime.GOMAXPROCS(1 + r.IntN(4))
		n := min(1+r.IntN(4), (len(want)-at)/p.Ranks) // rows of each rank
		if kill >= 100 || n == 0 {
			p.Ranks = 1
			n = len(want) - at
		}
		if at%p.Ranks != 0 { // a state is of whole steps
			p.Ranks = 1
		}
		var states []State
		for d := range p.Ranks {
			p.Rank = d
			l, err := Open(p, byteEncoder{})
			if err != nil {
				t.Fatal(err)
			}
			if state != nil {
				if err := l.Restore(*state); err != nil {
					t.Fatal(err)
				}
			}
			for i, row := range next(t, l, n) {
				same(t, fmt.Sprintf("kill %d, rank %d of %d", kill, d, p.Ranks), []Row{row}, want[at+d+i*p.Ranks:][:1])
			}
			states = append(states, throughJSON(t, l.State()))
			l.Close()
		}
		all, err := Merge(states...)
		if err != nil {
			t.Fatal(err)
		}
		state = &all
		at += n * p.Ranks
	}
}

// TestFormatsAgree: the same documents come out of every form, in file order.
func TestFormatsAgree(t *testing.T) {
	all := everyFormat(t)
	texts := func(src Source) (texts, names []string) {
		for d, err := range Documents(src) {
			if err != nil {
				t.Fatalf("%s: %v", src.Name, err)
			}
			texts, names = append(texts, string(d.Text)), append(names, d.ID)
		}
		return texts, names
	}
	want, names := texts(all["jsonl"])
	for _, name := range []string{"lines", "jsonl gzip", "jsonl zstd", "arrow", "arrow gzip"} {
		got, ids := texts(all[name])
		if !slices.Equal(got[:len(want)], want) {
			t.Errorf("%s: got %d other documents", name, len(got))
		}
		if all[name].ID != "" && !slices.Equal(ids[:len(want)], names) {
			t.Errorf("%s: got the names %s", name, ids[:5])
		}
	}
	if _, ids := texts(all["arrow gzip"]); !strings.HasSuffix(ids[299], "a.arrow.gz:300") {
		t.Errorf("got the name %s", ids[299])
	}
	if _, ids := texts(all["jsonl gzip"]); !strings.HasSuffix(ids[299], "a.jsonl.gz:300") {
		t.Errorf("got the name %s", ids[299])
	}
	if got, _ := texts(all["text gzip"]); !slices.Equal(got, lettered(11, 300, 80)[:3]) {
		t.Errorf("text gzip: got %q", got)
	}
}

// TestNestedFields: a field by its path in JSONL is what it is in a table.
func TestNestedFields(t *testing.T) {
	dir := write(t, map[string]string{"a.jsonl": lines(
		fields{"messages": []fields{{"role": "user", "content": "one"}, {"role": "x", "content": "two\né"}}, "meta": fields{"id": 7}},
		fields{"messages": []fields{{"role": "user"}, {"content": nil}, {"content": "three"}}, "meta": fields{"id": "b"}},
		fields{"messages": []fields{}, "meta": fields{}},
		fields{"messages.content": "flat"},
		fields{"messages": fields{"content": "alone"}},
		fields{"messages": fields{"contents": "not it"}},
	)})
	var got []string
	var last error
	for d, err := range Documents(Source{Paths: []string{filepath.Join(dir, "a.jsonl")}, Field: "messages.content", ID: "meta.id"}) {
		if last = err; err == nil {
			got = append(got, filepath.Base(d.ID)+" "+string(d.Text))
		}
	}
	want := []string{"7 one\ntwo\né", "b three", "a.jsonl:4 flat", "a.jsonl:5 alone"} // the third is empty
	if !slices.Equal(got, want) || last == nil || !strings.Contains(last.Error(), `a.jsonl:6 (byte `) {
		t.Errorf("got %q and %v, want %q and an error about line 6", got, last, want)
	}
}

// TestSplits: a folder with several splits of a data set is not read as one.
func TestSplits(t *testing.T) {
	file := arrowFile(t, []string{"text"}, 1)
	for _, names := range [][]string{
		{"data/train-00000-of-00001.arrow", "data/test-00000-of-00001.arrow"},
		{"train/data-00000-of-00001.arrow", "validation/data-00000-of-00001.arrow"},
	} {
		dir := write(t, map[string]string{names[0]: file, names[1]: file, "dataset_dict.json": "{}"})
		for _, err := range Documents(Source{Paths: []string{dir}}) {
			if !errors.Is(err, fault.Config) || !strings.Contains(err.Error(), "has the splits ") {
				t.Errorf("%s: got %v", names, err)
			}
		}
		one := filepath.Join(dir, filepath.Dir(names[0]))
		if strings.HasPrefix(names[0], "data/") {
			one = filepath.Join(dir, "data", "train-*")
		}
		n := 0
		for _, err := range Documents(Source{Paths: []string{one}}) {
			if err != nil {
				t.Fatal(err)
			}
			n++
		}
		if n != 1 {
			t.Errorf("%s: got %d documents", one, n)
		}
	}
}

// TestBesideTables: what lies beside tables in a folder describes them.
func TestBesideTables(t *testing.T) {
	dir := write(t, map[string]string{
		"a.arrow": arrowFile(t, []string{"one", "two"}, 1), "state.json": `{"x": 1}`, "README.md": "about",
	})
	l := open(t, Spec{Sequence: 4, Lanes: 1, EOS: eos, Sources: []Source{{Paths: []string{dir}}}})
	if st := l.Stats()[0]; st.Files != 1 || !maps.Equal(st.Skipped, map[string]int64{"beside tables": 2}) {
		t.Errorf("got %d files, skipped %v", st.Files, st.Skipped)
	}
}

// TestTokens: a run that reads tokens has the rows of one that reads the texts, and
// may go on from its state.
func TestTokens(t *testing.T) {
	all := everyFormat(t)
	all["harmed"] = harmed(t)
	for name, src := range all {
		src.Name, src.Epochs = "x", 0
		if name == "harmed" {
			src.Damaged = 6
		}
		p := specOf([]Source{src})
		p.Vocabulary = 1 << 20
		out := filepath.Join(t.TempDir(), "tokens")
		if err := Tokenize(t.Context(), p, byteEncoder{}, out, nil); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for _, lanes := range []int{1, 4} {
			p.Lanes = lanes
			q := p
			q.Sources = []Source{{Paths: []string{filepath.Join(out, "x")}, Name: "x"}}
			raw, tokens := open(t, p), open(t, q)
			want := next(t, raw, 150)
			same(t, name, next(t, tokens, 150), want)
			if err := tokens.Restore(throughJSON(t, raw.State())); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			same(t, name+", resumed from the state of the texts", next(t, tokens, 50), next(t, raw, 50))
			a, err := raw.Epoch()
			b, err2 := tokens.Epoch()
			if a != b || err != nil || err2 != nil {
				t.Errorf("%s: an epoch is %+v of the texts, %+v of the tokens: %v %v", name, a, b, err, err2)
			}
		}
		kills(t, func() Spec {
			q := p
			q.Lanes, q.Sources = 8, []Source{{Paths: []string{filepath.Join(out, "x")}, Name: "x"}}
			return q
		}(), func() []Row {
			q := p
			q.Lanes = 8
			return next(t, open(t, q), 400)
		}())
	}
}

// TestTwoTables: sources of tables, and of tokens, do not take each other's rows.
func TestTwoTables(t *testing.T) {
	one, two := lettered(21, 90, 40), lettered(22, 90, 40)
	var sources []Source
	for i, docs := range [][]string{one, two} {
		for j := range docs {
			docs[j] = fmt.Sprint("source ", i, docs[j])
		}
		sources = append(sources, Source{
			Paths: []string{write(t, map[string]string{"a.arrow": arrowFile(t, docs, 9)})}, Name: fmt.Sprint(i),
		})
	}
	p := specOf(sources)
	out := t.TempDir()
	if err := Tokenize(t.Context(), p, byteEncoder{}, out, nil); err != nil {
		t.Fatal(err)
	}
	q := p
	q.Sources = []Source{{Paths: []string{filepath.Join(out, "0")}}, {Paths: []string{filepath.Join(out, "1")}}}
	for _, p := range []Spec{p, q} {
		p.Lanes = 1
		docs, _ := unpack(stream(t, next(t, open(t, p), 300))[0])
		for _, d := range docs {
			if !slices.Contains(one, d) && !slices.Contains(two, d) {
				t.Fatalf("got %q, which is no document", d)
			}
		}
		for _, r := range next(t, open(t, p), 50) {
			for _, s := range r.Docs {
				if s.Offset == 0 && s.To-s.From > 8 && string(rune(r.IDs[s.From+7])) != fmt.Sprint(s.Source) {
					t.Fatalf("row %d: a document of source %d begins with %v", r.Index, s.Source, r.IDs[s.From:s.To])
				}
			}
		}
	}
}

// TestTokensRefused: tokens of another tokenizer, unfinished ones, folders of others.
func TestTokensRefused(t *testing.T) {
	src := everyFormat(t)["jsonl"]
	src.Name = "x"
	p := specOf([]Source{src})
	out := t.TempDir()
	if err := Tokenize(t.Context(), p, byteEncoder{}, out, nil); err != nil {
		t.Fatal(err)
	}
	if err := Tokenize(t.Context(), p, byteEncoder{}, out, nil); err != nil {
		t.Errorf("again: %v", err)
	}
	q := p
	q.Tokenizer = "other"
	if err := Tokenize(t.Context(), q, byteEncoder{}, out, nil); err == nil || !strings.Contains(err.Error(), "another tokenizer") {
		t.Errorf("got %v", err)
	}
	q.Sources = []Source{{Paths: []string{filepath.Join(out, "x")}}}
	if _, err := Open(q, byteEncoder{}); !errors.Is(err, fault.Config) || !strings.Contains(err.Error(), "another tokenizer") {
		t.Errorf("got %v", err)
	}
	q.Tokenizer = p.Tokenizer
	name := filepath.Join(out, "x", tokensName)
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	for from, want := range map[string]string{
		`"complete": true`: "are not complete", `"form": 1`: "another version", `"rows"`: "got 300 rows, want 0",
	} {
		to := map[string]string{`"complete": true`: `"complete": false`, `"form": 1`: `"form": 9`, `"rows"`: `"rowz"`}[from]
		if err := os.WriteFile(name, bytes.Replace(b, []byte(from), []byte(to), 1), 0o666); err != nil {
			t.Fatal(err)
		}
		l, err := Open(q, byteEncoder{})
		if err == nil {
			_, err = l.Next(1)
			l.Close()
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", from, err, want)
		}
	}
	full := t.TempDir()
	if err := writeFile(filepath.Join(full, "x", "mine.txt"), "text"); err != nil {
		t.Fatal(err)
	}
	if err := Tokenize(t.Context(), p, byteEncoder{}, full, nil); !errors.Is(err, fault.State) {
		t.Errorf("a folder with files: got %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := Tokenize(ctx, p, byteEncoder{}, t.TempDir(), nil); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: got %v", err)
	}
}

// TestPackedRows: rows that were written are trained on as they were made: ids,
// targets, positions and documents, epoch after epoch, and writing goes on after a
// stop.
func TestPackedRows(t *testing.T) {
	for _, set := range []func(p *Spec){
		func(*Spec) {}, func(p *Spec) { p.Joined = true }, func(p *Spec) { p.Whole = true }, func(p *Spec) { p.Whole, p.Joined = true, true },
	} {
		p := specOf(corpus(t))
		set(&p)
		const n = rowsInPart + 300
		want := next(t, open(t, p), n)
		dir := filepath.Join(t.TempDir(), "rows")
		if err := WriteRows(t.Context(), open(t, p), rowsInPart, dir, nil); err != nil {
			t.Fatal(err)
		}
		for _, more := range []int64{rowsInPart + 40, n, n - 7} { // goes on, and is not cut
			if err := WriteRows(t.Context(), open(t, p), more, dir, nil); err != nil {
				t.Fatal(err)
			}
		}
		q := p
		q.Whole = false
		q.Sources = []Source{{Paths: []string{dir}, Rows: true}}
		l := open(t, q)
		got := next(t, l, n+20)
		for i := range got {
			got[i].Lane = want[i%n].Lane
			for d := range got[i].Docs { // there is one source now
				got[i].Docs[d].Source = want[i%n].Docs[d].Source
			}
		}
		same(t, "written and read", got[:n], want)
		for i := range 20 {
			got[n+i].Index = int64(i)
		}
		same(t, "the second epoch", got[n:], want[:20])
		if e, err := l.Epoch(); err != nil || e.Tokens != n*16 {
			t.Errorf("got an epoch of %+v, %v", e, err)
		}
		q.Sequence = 15
		if _, err := Open(q, nil); err == nil || !strings.Contains(err.Error(), "its rows are of sequence 16") {
			t.Errorf("got %v", err)
		}
		p.Seed++
		if err := WriteRows(t.Context(), open(t, p), n, dir, nil); !errors.Is(err, fault.State) || !strings.Contains(err.Error(), "seed was 7") {
			t.Errorf("got %v", err)
		}
	}
}

// TestScanTables: what tables and compressed files hold is found out, and the
// source that reads them.
func TestScanTables(t *testing.T) {
	dir := write(t, map[string]string{"a.jsonl.gz": gzipped(t, jsonl(lettered(1, 300, 80)))})
	for path, want := range map[string]Found{
		"table/testdata/datasets":              {Format: formatArrow, Files: 3, Documents: 120, Exact: true, Source: Source{Field: "text"}},
		"table/testdata/pyarrow-v1.parquet":    {Format: formatParquet, Files: 1, Documents: 200, Exact: true, Source: Source{Field: "text"}},
		filepath.Join(dir, "a.jsonl.gz"):       {Format: formatJSONL, Files: 1, Documents: 300, Exact: true, Source: Source{Field: "text", ID: "id"}},
		"table/testdata/duckdb-zstd.parquet":   {Format: formatParquet, Files: 1, Documents: 120, Exact: true, Source: Source{Field: "text"}},
		"table/testdata/parquet-go-v2.parquet": {Format: formatParquet, Files: 1, Documents: 120, Exact: true, Source: Source{Field: "text"}},
	} {
		r, err := Scan([]string{path}, Access{Cache: t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		got := r.Found[0]
		if len(r.Found) != 1 || got.Format != want.Format || got.Files != want.Files || got.Documents != want.Documents ||
			got.Exact != want.Exact || got.Source.Field != want.Source.Field || got.Source.ID != want.Source.ID || got.Text < got.Bytes {
			t.Errorf("%s: got %+v, want %+v", path, got, want)
		}
		n := int64(0)
		for _, err := range Documents(got.Source) {
			if err != nil {
				t.Fatal(err)
			}
			n++
		}
		if n > got.Documents || n < got.Documents/2 { // some are null or empty
			t.Errorf("%s: got %d documents, want about %d", path, n, got.Documents)
		}
	}
}

// TestBlocksInHand: what a lane has in hand of one source stays there while it takes
// documents from others, so that no block is read again for each of its documents.
func TestBlocksInHand(t *testing.T) {
	all := everyFormat(t)
	var c scratch
	defer c.close()
	var sources []*source
	for _, name := range []string{"parquet", "nested", "arrow"} {
		s, err := newSource(all[name], 1, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer s.close()
		s.block = s.size
		sources = append(sources, s)
	}
	var batches []*table.Column
	for i, s := range sources {
		if _, _, err := s.read(ref{}, &c); err != nil {
			t.Fatalf("source %d: %v", i, err)
		}
		batches = append(batches, &c.rowsOf(s).batch.Columns[0])
	}
	for i, s := range sources {
		w := c.rowsOf(s)
		if rows := int64(w.batch.Rows); rows < 100 || !w.has(0, 0) || !w.has(0, rows-1) || w.has(0, rows) || w.has(1, 0) {
			t.Errorf("source %d: got rows %d to %d of file %d in hand, want a block", i, w.lo, w.hi, w.table.file)
		}
		if &w.batch.Columns[0] != batches[i] {
			t.Errorf("source %d: its rows were read again", i)
		}
	}
}

// TestFilesOpen: a reader keeps few files open, those it used last, and closes the
// others and all of them in the end.
func TestFilesOpen(t *testing.T) {
	names := map[string]string{}
	for i := range 6 {
		names[fmt.Sprint(i, ".txt")] = fmt.Sprint("text ", i)
	}
	s, err := newSource(Source{Paths: []string{write(t, names)}}, 1, 0)
	if err != nil {
		t.Fatal(err)
	}
	var c scratch
	for step, i := range []int{0, 1, 0, 2, 0, 3, 4, 4, 0, 5, 1} {
		d, why, err := s.read(ref{file: int32(i), n: 6}, &c)
		if want := fmt.Sprint("text ", i); err != nil || why != none || string(d.Text) != want {
			t.Fatalf("step %d: got %q, %v, %v, want %q", step, d.Text, why, err, want)
		}
		if len(c.open) > filesOpen || c.open[0].file != &s.files[i] {
			t.Fatalf("step %d: got %d files open, want the one used last in front", step, len(c.open))
		}
	}
	open := slices.Clone(c.open)
	c.close()
	for _, o := range open {
		if _, err := o.ReadAt(make([]byte, 1), 0); !errors.Is(err, os.ErrClosed) {
			t.Errorf("%s is still open: %v", o.file.name, err)
		}
	}
}
