// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package data

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"pleach/internal/fault"
)

// TestOpenErrors: what cannot be a run is refused with its reason, before any
// row.
func TestOpenErrors(t *testing.T) {
	dir := write(t, map[string]string{
		"a.txt": "some text", "b.jsonl": `{"text":"some text"}`, "none/x.png": "\x89PNG\r\n\x1a\n",
		"none/y.png": "\x89PNG\r\n\x1a\n", "none/bad.txt": "caf\xe9", "blank/l.jsonl": "{\"text\":\" \"}\n",
		"c.jsonl.gz": "\x1f\x8b\x08\x00garbage", "latin/a.txt": strings.Repeat("a", 9000) + "\xe9",
	})
	if err := os.Mkdir(filepath.Join(dir, "void"), 0o777); err != nil {
		t.Fatal(err)
	}
	at := func(name string) []Source { return []Source{{Paths: []string{filepath.Join(dir, name)}}} }
	for _, tt := range []struct {
		name string
		spec func(*Spec)
		kind error
		want string
	}{
		{"no sources", func(p *Spec) { p.Sources = nil }, fault.Config, "data: no sources"},
		{"no path", func(p *Spec) { p.Sources = []Source{{}} }, fault.Config, "a source has no path"},
		{"sequence", func(p *Spec) { p.Sequence = 0 }, fault.Config, "sequence: got 0"},
		{"lanes", func(p *Spec) { p.Lanes = 0 }, fault.Config, "lanes: got 0"},
		{"ranks", func(p *Spec) { p.Ranks = 3 }, fault.Config, "3 data ranks for 4 lanes: want a divisor"},
		{"rank", func(p *Spec) { p.Rank = 1 }, fault.Config, "rank: got 1, want 0 … 0"},
		{"shuffle", func(p *Spec) { p.Shuffle = "all" }, fault.Config, `shuffle: got "all", want window or none`},
		{"eos", func(p *Spec) { p.EOS = 258 }, fault.Config, "end-of-sequence: got id 258, want 0 … 257"},
		{"format", func(p *Spec) { p.Sources[0].Format = "csv" }, fault.Config, `format: got "csv"`},
		{"weight", func(p *Spec) { p.Sources[0].Weight = math.NaN() }, fault.Config, "weight: got NaN"},
		{"epochs", func(p *Spec) { p.Sources[0].Epochs = -1 }, fault.Config, "epochs: got -1"},
		{"missing", func(p *Spec) { p.Sources = at("nothing.txt") }, fault.Config, "nothing.txt: no such file"},
		{"pattern", func(p *Spec) { p.Sources = at("*.md") }, fault.Config, "*.md: matches no file"},
		{"damaged", func(p *Spec) { p.Sources = at("c*") }, fault.Data, "c.jsonl.gz"},
		{
			"remote", func(p *Spec) { p.Sources[0].Paths = []string{"s3://bucket/x"} }, fault.Config,
			"data: s3://bucket/x: only files of this machine are read here",
		},
		{
			"names", func(p *Spec) {
				p.Sources = append(at("a.txt"), at("b.jsonl")...)
				p.Sources[0].Name, p.Sources[1].Name = "x", "x"
			}, fault.Config, `two sources have the name "x"`,
		},
		{
			"rows beside others", func(p *Spec) {
				p.Sources = append(at("a.txt"), at("b.jsonl")...)
				p.Sources[1].Rows = true
			}, fault.Config, "source b has ready rows (rows: true): want it to be the only source",
		},
		{"void", func(p *Spec) { p.Sources = at("void") }, fault.Data, "no documents: the folder has no files"},
		{
			"nothing is text", func(p *Spec) { p.Sources = at("none") }, fault.Data,
			"no documents: skipped 2 image (" + filepath.Join(dir, "none", "x.png") + "), 1 not UTF-8 (" +
				filepath.Join(dir, "none", "bad.txt") + ")",
		},
		{
			"bad bytes far in", func(p *Spec) { p.Sources = at("latin") }, fault.Data,
			"no documents: skipped 1 not UTF-8 (",
		},
		{"blank", func(p *Spec) { p.Sources = at("blank") }, fault.Data, "no documents: skipped 1 empty ("},
		{"too small", func(p *Spec) { p.Lanes = 64 }, fault.Data, "9 bytes make 9 blocks, want one for each of 64"},
	} {
		p := specOf(at("a.txt"))
		tt.spec(&p)
		l, err := Open(p, byteEncoder{})
		if err == nil {
			l.Close()
		}
		if !errors.Is(err, tt.kind) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s:\ngot  %v\nwant %s", tt.name, err, tt.want)
		}
	}
	if _, err := Open(specOf(at("a.txt")), nil); !errors.Is(err, fault.Config) {
		t.Errorf("text without an encoder: got %v", err)
	}
}

// TestOtherData: a state is refused by a loader of other data, which says what
// differs and goes on as if it had not been asked.
func TestOtherData(t *testing.T) {
	p := specOf(corpus(t))
	l := open(t, p)
	next(t, l, 9)
	state := l.State()
	for _, tt := range []struct {
		change func(*Spec)
		want   string
	}{
		{func(p *Spec) { p.Seed = 8 }, "seed was 7, is 8"},
		{func(p *Spec) { p.Lanes = 8 }, "lanes was 4, is 8"},
		{func(p *Spec) { p.Sequence = 32 }, "sequence was 16, is 32"},
		{func(p *Spec) { p.Joined = true }, "documents was masked, is joined"},
		{func(p *Spec) { p.Shuffle = "none" }, "shuffle was window, is none"},
		{func(p *Spec) { p.AddBOS = true }, "special ids was end 257, is begin 256, end 257"},
		{func(p *Spec) { p.Tokenizer = "other" }, "tokenizer was bytes, is other"},
		{func(p *Spec) { p.Sources[0].Weight = 1 }, "source lines: weight was 0.75, is 0.5"},
		{func(p *Spec) { p.Sources[1].Epochs = 2 }, "source tree: epochs was 0, is 2"},
		{func(p *Spec) { p.Sources = p.Sources[:1] }, "number of sources was 2, is 1"},
		{func(p *Spec) {
			b, _ := os.ReadFile(p.Sources[0].Paths[0])
			b[100] ^= 1
			os.WriteFile(p.Sources[0].Paths[0], b, 0o666)
		}, "source lines: names or content of files"},
		{func(p *Spec) {
			os.Remove(filepath.Join(p.Sources[1].Paths[0], "1", "1.txt"))
		}, "source tree: number of files was 40, is 39"},
	} {
		q := specOf(corpus(t))
		tt.change(&q)
		o := open(t, q)
		want := next(t, open(t, q), 20)
		same(t, "before", next(t, o, 10), want[:10])
		if err := o.Restore(state); !errors.Is(err, fault.State) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("got  %v\nwant %s", err, tt.want)
		}
		same(t, "after a refused state", next(t, o, 10), want[10:])
	}
	// The same corpus in another place is the same.
	if err := open(t, specOf(corpus(t))).Restore(state); err != nil {
		t.Errorf("a corpus that moved: %v", err)
	}
}

// TestDamagedState: numbers that no loader writes are refused or, where that
// cannot be seen, end in an error, never in a panic.
func TestDamagedState(t *testing.T) {
	p := specOf(corpus(t))
	l := open(t, p)
	next(t, l, 9)
	for _, tt := range []struct {
		change func(*State)
		want   string
	}{
		{func(s *State) { s.Rows = -4 }, "after row -4"},
		{func(s *State) { s.Rows = 10 }, "lane 1: the state has 2 rows, want 3 of 10"},
		{func(s *State) { s.Lanes = s.Lanes[1:] }, "lacks lane 0"},
		{func(s *State) { s.Lanes[1] = s.Lanes[0] }, "has lane 0 twice"},
		{func(s *State) { s.Lanes[2].Sources = nil }, "has 0 sources, want 2"},
		{func(s *State) { s.Lanes[2].Offset = -1 }, "a cursor at -1"},
		{func(s *State) { s.Lanes[2].Sources[1].Block = -1 }, "a cursor at -1"},
		{func(s *State) { s.Lanes[2].Offset = 1 << 40 }, "ids, want more than 1099511627776"},
	} {
		s := throughJSON(t, l.State())
		tt.change(&s)
		o := open(t, p)
		err := o.Restore(s)
		if err == nil {
			_, err = o.Next(8)
		}
		if !errors.Is(err, fault.State) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("got %v, want %s", err, tt.want)
		}
	}
}

// TestChangedFile: a file that changes while a run reads it is noticed.
func TestChangedFile(t *testing.T) {
	docs := lettered(1, 3000, 60)
	dir := write(t, map[string]string{"a.jsonl": jsonl(docs), "b.txt": "text"})
	p := specOf([]Source{{Paths: []string{dir}}})
	l := open(t, p)
	next(t, l, 1)
	path := filepath.Join(dir, "b.txt")
	if err := os.WriteFile(path, []byte("longer text"), 0o666); err != nil {
		t.Fatal(err)
	}
	for range 100_000 {
		if _, err := l.Next(8); err != nil {
			if !errors.Is(err, fault.Data) || !strings.Contains(err.Error(),
				path+" has changed since the start: got 11 bytes, want 4") {
				t.Errorf("got %v", err)
			}
			return
		}
	}
	t.Error("nobody noticed")
}

// slowEncoder takes its time, so that Close comes while it is at work.
type slowEncoder struct{ byteEncoder }

func (e slowEncoder) Encode(dst []int32, text []byte) []int32 {
	time.Sleep(time.Millisecond)
	return e.byteEncoder.Encode(dst, text)
}

// TestClose: nobody is left at work after Close, nor any file open; Next says so.
func TestClose(t *testing.T) {
	before := runtime.NumGoroutine()
	p := specOf(corpus(t))
	for _, served := range []int{0, 1, 30} {
		l, err := Open(p, slowEncoder{})
		if err != nil {
			t.Fatal(err)
		}
		next(t, l, served)
		if err := l.Restore(l.State()); err != nil {
			t.Fatal(err)
		}
		blocked := make(chan error)
		go func() {
			for {
				if _, err := l.Next(40); err != nil {
					blocked <- err
					return
				}
			}
		}()
		time.Sleep(5 * time.Millisecond)
		l.Close()
		l.Close()
		if err := <-blocked; err == nil || !strings.Contains(err.Error(), "closed") {
			t.Errorf("Next during Close: got %v", err)
		}
		if _, err := l.Next(1); err == nil {
			t.Error("Next after Close: no error")
		}
		l.State()
	}
	for i := 0; runtime.NumGoroutine() > before; i++ {
		if i == 100 {
			t.Fatalf("got %d goroutines, want %d", runtime.NumGoroutine(), before)
		}
		time.Sleep(time.Millisecond)
	}
}

// TestThreads: the number of processors does not change the rows.
func TestThreads(t *testing.T) {
	p := specOf(corpus(t))
	want := next(t, open(t, p), 200)
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	same(t, "one processor", next(t, open(t, p), 200), want)
	runtime.GOMAXPROCS(8)
	same(t, "eight processors", next(t, open(t, p), 200), want)
}

// TestTooLong: documents too long to hold are skipped without being read.
func TestTooLong(t *testing.T) {
	dir := write(t, map[string]string{
		"a.jsonl": `{"text":"fine"}` + "\n" + `{"text":"` +
			strings.Repeat("x", 9000), "b.txt": strings.Repeat("text ", 2000), "c.txt": "good",
	})
	for _, name := range []string{"a.jsonl", "b.txt"} {
		if err := os.Truncate(filepath.Join(dir, name), longest+100); err != nil {
			t.Fatal(err)
		}
	}
	var ids []string
	for d, err := range Documents(Source{Paths: []string{dir}}) {
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, filepath.Base(d.ID))
	}
	if got := strings.Join(ids, " "); got != "a.jsonl@0 c.txt" {
		t.Errorf("documents: got %s", got)
	}
	p := specOf([]Source{{Paths: []string{dir}, Epochs: 1}})
	p.Lanes, p.Sequence = 1, 4
	l := open(t, p)
	if st := l.Stats()[0]; st.Skipped["longer than 256 MiB"] != 1 {
		t.Errorf("files: got %v", st.Skipped)
	}
	if rows := drain(t, l); len(rows) != 2 {
		t.Errorf("got %d rows of the two documents, want 2", len(rows))
	}
}

// TestFormats: a stated format decides for a file that is named, and selects
// among those of a folder; the lines of a text file may be documents.
func TestFormats(t *testing.T) {
	dir := write(t, map[string]string{
		"a.txt": "\ufeffone\r\n\n \ntwo", "b.jsonl": `{"text":"three"}`, "c.json": "{\n}",
	})
	for _, tt := range []struct{ path, format, want string }{
		{"", "", "a.txt=\"one\\r\\n\\n \\ntwo\" b.jsonl:1=\"three\" c.json=\"{\\n}\""},
		{"", "text", "a.txt=\"one\\r\\n\\n \\ntwo\" c.json=\"{\\n}\""},
		{"", "lines", "a.txt:1=\"one\" a.txt:4=\"two\" c.json:1=\"{\" c.json:2=\"}\""},
		{"", "jsonl", "b.jsonl:1=\"three\""},
		{"b.jsonl", "text", "b.jsonl=\"{\\\"text\\\":\\\"three\\\"}\""},
		{"a*", "lines", "a.txt:1=\"one\" a.txt:4=\"two\""},
	} {
		var got []string
		src := Source{Paths: []string{filepath.Join(dir, tt.path)}, Format: tt.format}
		for d, err := range Documents(src) {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, fmt.Sprintf("%s=%q", filepath.Base(d.ID), d.Text))
		}
		if got := strings.Join(got, " "); got != tt.want {
			t.Errorf("%s as %q:\ngot  %s\nwant %s", tt.path, tt.format, got, tt.want)
		}
	}
}

// TestOtherLines: lines of JSON in a folder that hold something else are left
// out with their reason; a file that is named must have the field.
func TestOtherLines(t *testing.T) {
	other := strings.Repeat(`{"level":"info"}`+"\n", 2)
	dir := write(t, map[string]string{
		"a.jsonl": `{"text":"one"}` + "\n", "log.jsonl": other, "log.json": other, "b.json": "{}\n{",
	})
	l := open(t, specOf([]Source{{Paths: []string{dir}}}))
	var got []string
	for d, err := range Documents(Source{Paths: []string{dir}}) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, filepath.Base(d.ID))
	}
	if got := strings.Join(got, " "); got != "a.jsonl:1 b.json log.json" {
		t.Errorf("documents: got %s", got)
	}
	if st := l.Stats()[0]; st.Skipped[`lines without "text"`] != 1 {
		t.Errorf("skipped: got %v", st.Skipped)
	}
	_, err := Open(specOf([]Source{{Paths: []string{filepath.Join(dir, "log.jsonl")}}}), byteEncoder{})
	if !errors.Is(err, fault.Data) || !strings.Contains(err.Error(), `no field "text": the line has level`) {
		t.Errorf("got %v", err)
	}
}

// TestNoRow: documents that may be read once and fill no row are an error, not
// an empty run.
func TestNoRow(t *testing.T) {
	p := specOf([]Source{{Paths: []string{write(t, map[string]string{"a.txt": "short"})}, Epochs: 1}})
	p.Lanes = 1
	_, err := open(t, p).Next(1)
	if !errors.Is(err, fault.Data) || !strings.Contains(err.Error(), "lane 0 gets no row of 17 ids") {
		t.Errorf("got %v", err)
	}
}

// TestLinks: linked files are read, linked folders are not: they may be loops.
func TestLinks(t *testing.T) {
	dir := write(t, map[string]string{"a/a.txt": "text", "real.txt": "linked"})
	for link, to := range map[string]string{"a/b.txt": "../real.txt", "a/loop": ".", "a/gone.txt": "nowhere"} {
		if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
			t.Skip("no links here: ", err)
		}
	}
	s, err := newSource(Source{Paths: []string{filepath.Join(dir, "a")}}, 1, 0)
	if err != nil {
		t.Fatal(err)
	}
	if len(s.files) != 2 || s.skipped["link to a folder"] != 1 || s.skipped["broken link"] != 1 {
		t.Errorf("got %d files, skipped %v", len(s.files), s.skipped)
	}
}
