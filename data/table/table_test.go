// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package table

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pleach/internal/fault"
)

// fixture is what make.py says of a file.
type fixture struct {
	Format string
	Groups []int64
	Rows   int64
	Fields []struct {
		Path, Form string
		Column     int
	}
}

var forms = map[string]Form{"text": Text, "ids": IDs, "label": Label}

// fixtures reads testdata/want.json: the files and the columns they share.
func fixtures(t testing.TB) (map[string]fixture, [][][]any) {
	t.Helper()
	b, err := os.ReadFile("testdata/want.json")
	if err != nil {
		t.Fatal(err)
	}
	var want struct {
		Files   map[string]fixture
		Columns [][][]any
	}
	if err := json.Unmarshal(b, &want); err != nil {
		t.Fatal(err)
	}
	if len(want.Files) < 25 {
		t.Fatalf("got %d fixtures", len(want.Files))
	}
	return want.Files, want.Columns
}

func open(t testing.TB, name string) *Table {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	f, err := Open(bytes.NewReader(b), int64(len(b)), name)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func (f fixture) fields() []Field {
	var fs []Field
	for _, x := range f.Fields {
		fs = append(fs, Field{x.Path, forms[x.Form]})
	}
	return fs
}

// cells is column k of a batch as want.json writes it.
func cells(b *Batch, k int, form Form) [][]any {
	c := &b.Columns[k]
	out := [][]any{}
	for r := range b.Rows {
		row := []any{}
		lo, hi := c.Row(r)
		for i := lo; i < hi; i++ {
			switch {
			case c.Nulls[i] == Missing:
				row = append(row, nil)
			case c.Nulls[i] == Absent:
				row = append(row, false)
			case form == IDs:
				row = append(row, float64(c.IDs[i]))
			default:
				row = append(row, string(c.Text(i)))
			}
		}
		out = append(out, row)
	}
	return out
}

// TestFixtures: every file of every writer gives what was put into it, read at
// once, row by row, and in random ranges with one batch.
func TestFixtures(t *testing.T) {
	files, columns := fixtures(t)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		t.Run(name, func(t *testing.T) {
			f := files[name]
			tab := open(t, name)
			if tab.Rows() != f.Rows || tab.Format().String() != f.Format || !slices.Equal(tab.Groups(), f.Groups) {
				t.Fatalf("got %v with %d rows in groups %v, want %s with %d in %v",
					tab.Format(), tab.Rows(), tab.Groups(), f.Format, f.Rows, f.Groups)
			}
			fields := f.fields()
			var b Batch
			check := func(lo, hi int64) {
				t.Helper()
				if err := tab.Read(lo, hi, fields, &b); err != nil {
					t.Fatalf("rows %d to %d: %v", lo, hi, err)
				}
				for k, x := range f.Fields {
					want := columns[x.Column][lo:hi]
					if d := cmp.Diff(want, cells(&b, k, fields[k].Form)); d != "" {
						t.Fatalf("%s, rows %d to %d (-want +got):\n%s", x.Path, lo, hi, d)
					}
				}
			}
			check(0, f.Rows)
			for r := range f.Rows {
				check(r, r+1)
			}
			rnd := rand.New(rand.NewPCG(1, 2))
			for range 50 {
				lo := rnd.Int64N(f.Rows + 1)
				check(lo, lo+rnd.Int64N(f.Rows-lo+1))
			}
			// A batch that begins anywhere knows nothing of the pages in front.
			for range 20 {
				if f.Rows == 0 {
					break
				}
				b = Batch{}
				tab = open(t, name)
				lo := rnd.Int64N(f.Rows)
				check(lo, min(f.Rows, lo+2))
			}
		})
	}
}

// TestConcurrent: goroutines with batches of their own share a table.
func TestConcurrent(t *testing.T) {
	files, columns := fixtures(t)
	for _, name := range []string{"pyarrow-v1.parquet", "pyarrow-stream.arrow"} {
		f, tab := files[name], open(t, name)
		fields := f.fields()
		var wg sync.WaitGroup
		for seed := range 4 {
			wg.Go(func() {
				rnd := rand.New(rand.NewPCG(uint64(seed), 1))
				var b Batch
				for range 40 {
					lo := rnd.Int64N(f.Rows)
					hi := min(f.Rows, lo+rnd.Int64N(9))
					if err := tab.Read(lo, hi, fields, &b); err != nil {
						t.Error(err)
						return
					}
					for k, x := range f.Fields {
						if d := cmp.Diff(columns[x.Column][lo:hi], cells(&b, k, fields[k].Form)); d != "" {
							t.Errorf("%s, rows %d to %d (-want +got):\n%s", x.Path, lo, hi, d)
							return
						}
					}
				}
			})
		}
		wg.Wait()
	}
}

// TestRefused: what is not read is named, with what could be read instead.
func TestRefused(t *testing.T) {
	for _, tt := range []struct {
		file string
		f    Field
		want string
	}{
		{"pyarrow-v1.parquet", Field{"txet", Text}, "field txet: not there (did you mean text?); the file has text, must, n, small"},
		{"pyarrow-v1.parquet", Field{"messages", Text}, "got a struct, want one of its fields: messages.role, messages.content"},
		{"pyarrow-v1.parquet", Field{"ids", Text}, "got integer, want text"},
		{"pyarrow-v1.parquet", Field{"text", IDs}, "got string, want integers"},
		{"pyarrow-v1.parquet", Field{"score", IDs}, "got double, want integers"},
		{"pyarrow-stream.arrow", Field{"meta", Text}, "got a struct, want one of its fields: meta.id, meta.n"},
		{"pyarrow-stream.arrow", Field{"flag", Text}, "got boolean, want text"},
		{"pyarrow-no-columns.parquet", Field{"text", Text}, "not there; the file has none"},
		{"odd.parquet", Field{"when", Label}, "got timestamp, which is not read"},
		{"odd.parquet", Field{"day", Label}, "got date, which is not read"},
		{"odd.parquet", Field{"money", Label}, "got decimal, which is not read"},
		{"odd.parquet", Field{"half", Label}, "got float16, which is not read"},
		{"odd.parquet", Field{"map.key", Text}, "got part of a map, which is not read"},
		{"odd.arrow", Field{"when", Label}, "got timestamp, which is not read"},
		{"odd.arrow", Field{"money", Label}, "got decimal, which is not read"},
		{"odd.arrow", Field{"half", Label}, "got half-precision float, which is not read"},
		{"odd.arrow", Field{"map.key", Text}, "got part of a map, which is not read"},
		{"union.arrow", Field{"ree.values", Text}, "got part of a run-end encoded, which is not read"},
	} {
		err := open(t, tt.file).Check(tt.f)
		if err == nil || !strings.Contains(err.Error(), tt.want) || !errors.Is(err, fault.Config) {
			t.Errorf("%s: %v: got %v, want %q of kind configuration", tt.file, tt.f, err, tt.want)
		}
	}
}

// TestFind: a path leads to one column; what is above columns, and a path that two
// columns have, are refused.
func TestFind(t *testing.T) {
	tab := &Table{name: "x", fields: []string{"a", "b.c", "d", "b.c", "e.f"}}
	for path, want := range map[string]string{
		"a": "", "d": "", "b.c": "got two columns", "e": "want one of its fields: e.f", "g": "not there",
	} {
		i, err := tab.find(path)
		switch {
		case want == "":
			if err != nil || tab.fields[i] != path {
				t.Errorf("%s: got column %d, %v", path, i, err)
			}
		case err == nil || !strings.Contains(err.Error(), want) || !errors.Is(err, fault.Config):
			t.Errorf("%s: got %v, want %q", path, err, want)
		}
	}
}

// TestEncrypted: an encrypted footer is refused at once, an encrypted column when
// it is read; the others are read.
func TestEncrypted(t *testing.T) {
	b, err := os.ReadFile("testdata/encrypted.parquet")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Open(bytes.NewReader(b), int64(len(b)), "x"); err == nil || !strings.Contains(err.Error(), "encrypted") {
		t.Errorf("got %v, want a refusal", err)
	}
	b, err = os.ReadFile("testdata/encrypted-column.parquet")
	if err != nil {
		t.Fatal(err)
	}
	tab, err := Open(bytes.NewReader(b), int64(len(b)), "x")
	if err == nil {
		err = tab.Read(0, 1, []Field{{"text", Text}}, &Batch{})
	}
	if err == nil || !strings.Contains(err.Error(), "encrypted") || !errors.Is(err, fault.Data) {
		t.Errorf("got %v, want a refusal", err)
	}
}

// TestRange: an integer that does not fit, and a UUID.
func TestRange(t *testing.T) {
	for _, name := range []string{"odd.parquet", "odd.arrow"} {
		tab := open(t, name)
		var b Batch
		for field, want := range map[string]string{
			"big": "got the integer 1099511627776", "u": "got the integer 4294967295", "s": "got the integer -2147483649",
		} {
			if err := tab.Read(0, 1, []Field{{field, IDs}}, &b); err != nil || b.Columns[0].IDs[0] != 1 {
				t.Errorf("%s: %s: got %v, %v", name, field, b.Columns, err)
			}
			err := tab.Read(0, 2, []Field{{field, IDs}}, &b)
			if err == nil || !strings.Contains(err.Error(), want) || !errors.Is(err, fault.Data) {
				t.Errorf("%s: %s: got %v, want %q", name, field, err, want)
			}
		}
	}
	var b Batch
	if err := open(t, "odd.parquet").Read(1, 2, []Field{{"key", Label}}, &b); err != nil {
		t.Fatal(err)
	}
	if got := string(b.Columns[0].Text(0)); got != "00000000-0000-0000-0000-000000000001" {
		t.Errorf("got the label %s of a UUID", got)
	}
}

// TestTruncated: a file that ends early is refused wherever it ends, except that an
// Arrow stream may end between batches.
func TestTruncated(t *testing.T) {
	for _, name := range []string{"pyarrow-v2.parquet", "pyarrow-file.arrow", "pyarrow-stream.arrow"} {
		b, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			t.Fatal(err)
		}
		for n := 0; n < len(b); n += 1 + len(b)/97 {
			tab, err := Open(bytes.NewReader(b[:n]), int64(n), name)
			if err == nil && !(tab.Format() == Stream && tab.Rows() < 200) {
				t.Errorf("%s: got no error from its first %d of %d bytes", name, n, len(b))
			}
			if err != nil && !errors.Is(err, fault.Data) {
				t.Errorf("%s: got %v, want an error of kind data", name, err)
			}
		}
	}
}

// TestReuse: reading with a batch that is used again takes no memory.
func TestReuse(t *testing.T) {
	for _, name := range []string{"pyarrow-v1.parquet", "pyarrow-file.arrow"} {
		tab := open(t, name)
		fields := []Field{{"text", Text}, {"ids", IDs}}
		var b Batch
		read := func() {
			for lo := int64(0); lo < tab.Rows(); lo += 10 {
				if err := tab.Read(lo, lo+10, fields, &b); err != nil {
					t.Fatal(err)
				}
			}
		}
		read()
		if n := testing.AllocsPerRun(5, read); n > 1500 {
			t.Errorf("%s: got %v allocations for %d rows", name, n, tab.Rows())
		} else {
			t.Logf("%s: %v allocations for %d rows", name, n, tab.Rows())
		}
	}
}

func TestSniff(t *testing.T) {
	for _, tt := range []struct {
		head string
		want Format
	}{
		{"PAR1....", Parquet},
		{"PARE", Parquet},
		{"ARROW1\x00\x00", Arrow},
		{"\xff\xff\xff\xff\x10\x02\x00\x00", Stream},
		{"\xff\xff\xff\xff", None},
		{"", None},
		{"{\"text\":", None},
	} {
		if got := Sniff([]byte(tt.head)); got != tt.want {
			t.Errorf("%q: got %v, want %v", tt.head, got, tt.want)
		}
	}
}

func ExampleTable_Read() {
	f, _ := os.ReadFile("testdata/duckdb-zstd.parquet")
	t, err := Open(bytes.NewReader(f), int64(len(f)), "duckdb-zstd.parquet")
	if err != nil {
		fmt.Println(err)
		return
	}
	var b Batch
	if err := t.Read(118, 120, []Field{{"n", Label}, {"ids", IDs}}, &b); err != nil {
		fmt.Println(err)
		return
	}
	for r := range b.Rows {
		lo, hi := b.Columns[1].Row(r)
		fmt.Printf("%s: %v\n", b.Columns[0].Text(r), b.Columns[1].IDs[lo:hi])
	}
	// Output:
	// 118: [118]
	// 119: [119 120]
}

// counted is a reader that counts what it gives and fails behind a number of bytes,
// if that is not 0.
type counted struct {
	*bytes.Reader
	n, most int
}

var errBroken = errors.New("the network is gone")

func (c *counted) ReadAt(b []byte, off int64) (int, error) {
	if c.n += len(b); c.most > 0 && c.n > c.most {
		return 0, errBroken
	}
	return c.Reader.ReadAt(b, off)
}

// TestFar: to read the last row takes the pages or buffers it is in, not those in
// front.
func TestFar(t *testing.T) {
	for name, most := range map[string]int{
		"pyarrow-index.parquet": 2000, // of 200 rows, in pages of 300 bytes
		"polars.parquet":        1500,
		"pyarrow-file.arrow":    8000, // of batches of some 13 kB
	} {
		b, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			t.Fatal(err)
		}
		r := &counted{Reader: bytes.NewReader(b)}
		tab, err := Open(r, int64(len(b)), name)
		if err != nil {
			t.Fatal(err)
		}
		r.n = 0
		if err := tab.Read(tab.Rows()-1, tab.Rows(), []Field{{"text", Text}}, new(Batch)); err != nil {
			t.Fatal(err)
		}
		if r.n > most {
			t.Errorf("%s: got %d bytes read of %d for the last row, want at most %d", name, r.n, len(b), most)
		}
	}
}

// TestBroken: bytes that cannot be read are no damage of the file.
func TestBroken(t *testing.T) {
	for _, name := range []string{"pyarrow-v1.parquet", "pyarrow-stream.arrow"} {
		b, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			t.Fatal(err)
		}
		for most := 1; most < len(b); most += len(b) / 20 {
			r := &counted{Reader: bytes.NewReader(b), most: most}
			tab, err := Open(r, int64(len(b)), name)
			if err == nil {
				err = tab.Read(0, tab.Rows(), []Field{{"text", Text}, {"ids", IDs}, {"cat", Text}, {"meta.id", Label}}, new(Batch))
			}
			if err != nil && (fault.Exit(err) != fault.Exit(fault.Machinef("x")) || !errors.Is(err, errBroken)) {
				t.Errorf("%s after %d bytes: got %v with exit code %d", name, most, err, fault.Exit(err))
			}
		}
	}
}

func TestXXH32(t *testing.T) {
	for s, want := range map[string]uint32{
		"": 0x02cc5d05, "a": 0x550d7456, "abc": 0x32d153ff,
		"Nobody inspects the spammish repetition": 0xe2293b2f,
	} {
		if got := xxh32([]byte(s)); got != want {
			t.Errorf("%q: got %x, want %x", s, got, want)
		}
	}
}

// TestBits: packed values against a reading bit by bit, for every width.
func TestBits(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 3))
	for width := 1; width <= 32; width++ {
		n := 1 + rnd.IntN(100)
		src := make([]byte, (n*width+7)/8)
		for i := range src {
			src[i] = byte(rnd.Uint32())
		}
		got := make([]uint32, n)
		unpack(got, src, width)
		for i := range got {
			var want uint32
			for k := range width {
				at := i*width + k
				want |= uint32(src[at/8]>>(at%8)&1) << k
			}
			if got[i] != want {
				t.Fatalf("width %d, value %d of %d: got %x, want %x", width, i, n, got[i], want)
			}
		}
	}
}
