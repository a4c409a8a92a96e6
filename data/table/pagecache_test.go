// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package table

import (
	"bytes"
	"errors"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// sized is a page that counts as so many bytes.
func sized(bytes int64) func() (*page, error) {
	p := &page{}
	p.def = make([]uint8, 0, bytes-p.bytes())
	return func() (*page, error) { return p, nil }
}

// TestPagesKept: pages stay up to the limit, those used last; a larger one stays
// alone until the next one.
func TestPagesKept(t *testing.T) {
	c := newPageCache(10_000)
	key := func(i int) pageKey { return pageKey{page: i} }
	has := func(want ...int) {
		t.Helper()
		for i := range 10 {
			if got := c.at[key(i)] != nil; got != (len(want) > 0 && want[0] == i) {
				t.Fatalf("page %d: got %v of being there, want pages %v", i, got, want)
			} else if got {
				want = want[1:]
			}
		}
	}
	for i := range 4 {
		c.get(key(i), sized(3000))
	}
	has(1, 2, 3)
	c.get(key(1), nil)
	c.get(key(4), sized(3000))
	has(1, 3, 4)
	c.touch(key(3))
	c.touch(key(9))
	c.get(key(5), sized(6000))
	has(3, 5)
	if c.size != 9000 {
		t.Errorf("got %d bytes, want 9000", c.size)
	}
	c.get(key(6), sized(50_000))
	has(6)
	c.get(key(7), sized(1000))
	has(7)
	if c.size != 1000 || c.order.Len() != 1 {
		t.Errorf("got %d bytes in %d pages, want 1000 in 1", c.size, c.order.Len())
	}
}

// TestPagesFailed: neither an error nor a panic is kept, and what is asked for again
// is decoded again.
func TestPagesFailed(t *testing.T) {
	c := newPageCache(10_000)
	bad := errors.New("damaged")
	if _, err := c.get(pageKey{}, func() (*page, error) { return nil, bad }); err != bad {
		t.Errorf("got %v, want %v", err, bad)
	}
	func() {
		defer func() { recover() }()
		c.get(pageKey{}, func() (*page, error) { panic("a bug") })
	}()
	if len(c.at) != 0 || c.order.Len() != 0 || c.size != 0 {
		t.Errorf("got %d pages of %d bytes, want none", len(c.at), c.size)
	}
	if p, err := c.get(pageKey{}, sized(1000)); p == nil || err != nil {
		t.Errorf("got %v, %v, want a page", p, err)
	}
}

// TestPagesShared: of readers that want one page at once, one decodes it. If its
// decoder panics the others have an error.
func TestPagesShared(t *testing.T) {
	for _, panics := range []bool{false, true} {
		c := newPageCache(10_000)
		var times, failed atomic.Int64
		var wg sync.WaitGroup
		asked := make(chan bool, 4)
		for range 4 {
			wg.Go(func() {
				defer func() { recover() }()
				asked <- true
				p, err := c.get(pageKey{}, func() (*page, error) {
					for range 4 {
						<-asked
					}
					time.Sleep(10 * time.Millisecond) // the others have asked, and wait
					if times.Add(1); panics {
						panic("a bug")
					}
					return &page{}, nil
				})
				if err == errUndecoded && p == nil {
					failed.Add(1)
				} else if p == nil {
					t.Errorf("got %v, want a page", err)
				}
			})
		}
		wg.Wait()
		if times.Load() != 1 || panics != (failed.Load() == 3) {
			t.Errorf("panics %v: got %d decodings and %d errors", panics, times.Load(), failed.Load())
		}
	}
}

// TestTurns: a batch that takes turns with two files reads and decodes each page once.
func TestTurns(t *testing.T) {
	var tabs []*Table
	var from []*counted
	for _, name := range []string{"pyarrow-v1.parquet", "polars.parquet", "duckdb-snappy.parquet"} {
		b, err := os.ReadFile("testdata/" + name)
		if err != nil {
			t.Fatal(err)
		}
		r := &counted{Reader: bytes.NewReader(b)}
		tab, err := Open(r, int64(len(b)), name)
		if err != nil {
			t.Fatal(err)
		}
		tabs, from = append(tabs, tab), append(from, r)
	}
	fields := []Field{{"text", Text}, {"ids", IDs}}
	var b Batch
	pass := func() {
		for row := range int64(100) {
			for i, tab := range tabs {
				if err := tab.Read(row, row+1, fields, &b); err != nil {
					t.Fatalf("file %d, row %d: %v", i, row, err)
				}
			}
		}
	}
	pass()
	for i, r := range from {
		if most := int(r.Size()) * 3 / 2; r.n > most {
			t.Errorf("file %d of %d bytes: got %d bytes read, want each page once", i, r.Size(), r.n)
		}
		r.n = 0
	}
	pass()
	for i, r := range from {
		if r.n != 0 {
			t.Errorf("file %d: got %d bytes read of pages that are in memory", i, r.n)
		}
		file := tabs[i].file.(*parquetFile)
		if err := tabs[i].Close(); err != nil {
			t.Fatal(err)
		}
		for key := range decoded.at {
			if key.file == file {
				t.Errorf("file %d is closed: got page %d of column %d in memory", i, key.page, key.leaf)
			}
		}
	}
}

// TestPagesGone: pages that had to make room are decoded again, and give the same.
func TestPagesGone(t *testing.T) {
	old := decoded
	defer func() { decoded = old }()
	decoded = newPageCache(1)
	for name, f := range map[string][]Field{
		"pyarrow-v1.parquet":    {{"text", Text}, {"ids", IDs}, {"cat", Text}},
		"duckdb-snappy.parquet": {{"text", Text}, {"ids", IDs}},
	} {
		tab := open(t, name)
		var whole, b Batch
		if err := tab.Read(0, tab.Rows(), f, &whole); err != nil {
			t.Fatal(err)
		}
		for row := range tab.Rows() {
			if err := tab.Read(row, row+1, f, &b); err != nil {
				t.Fatal(err)
			}
			lo, _ := whole.Columns[0].Row(int(row))
			if got, want := string(b.Columns[0].Text(0)), string(whole.Columns[0].Text(lo)); got != want {
				t.Fatalf("%s, row %d: got %q, want %q", name, row, got, want)
			}
		}
		if decoded.order.Len() != 1 {
			t.Errorf("%s: got %d pages in memory, want the last one", name, decoded.order.Len())
		}
	}
}
