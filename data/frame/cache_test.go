// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package frame

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"pleach/blob/blobtest"
	"pleach/internal/fault"
)

// zeros compresses n zeros.
func zeros(t testing.TB, format Format, n int) []byte {
	t.Helper()
	var out bytes.Buffer
	var w io.WriteCloser
	if format == Gzip {
		w = gzip.NewWriter(&out)
	} else {
		z, err := zstd.NewWriter(&out, zstd.WithEncoderConcurrency(1))
		if err != nil {
			t.Fatal(err)
		}
		w = z
	}
	b := make([]byte, 1<<20)
	for ; n > 0; n -= len(b) {
		if _, err := w.Write(b); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// memDisk is a disk in memory that breaks by a rule, with a clock that ticks.
type memDisk struct {
	*blobtest.Faulty
	mu   sync.Mutex
	used map[string]time.Time
	now  time.Time
}

func newMemDisk(m *blobtest.Mem, r blobtest.Rule) *memDisk {
	return &memDisk{Faulty: &blobtest.Faulty{Files: m, Rule: r}, used: map[string]time.Time{}, now: time.Now()}
}

func (d *memDisk) Touch(path string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.now = d.now.Add(time.Second)
	d.used[path] = d.now
	return nil
}

func (d *memDisk) Used(path string) (time.Time, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.used[path], nil
}

// TestCrash: whatever operation of making an entry is the last one, and whatever a
// crash takes with it, the file reads right afterwards.
func TestCrash(t *testing.T) {
	text, b := read(t, "text.txt"), read(t, "plain.gz")
	count := 0
	for n := 1; ; n++ {
		m := blobtest.NewMem()
		d := newMemDisk(m, blobtest.Rule{Nth: n, Crash: true})
		o := options("cache")
		o.disk = d
		f, err := openBytes(b, o)
		if err == nil {
			f.Close()
			count = n - 1
			break
		}
		if !errors.Is(err, fault.Machine) {
			t.Fatalf("operation %d: got %v, want kind machine", n, err)
		}
		for _, loss := range []blobtest.Loss{blobtest.Kill, blobtest.PowerCut, blobtest.Torn} {
			for seed := range uint64(4) {
				o.disk = newMemDisk(m.After(loss, seed), blobtest.Rule{})
				f, err := openBytes(b, o)
				if err != nil {
					t.Fatalf("operation %d, loss %d: %v", n, loss, err)
				}
				same(t, f, text)
				f.Close()
			}
		}
	}
	if count < 15 { // 12 frames, the others, create, sync, rename
		t.Errorf("got only %d operations", count)
	}
}

// TestFull: a full disk is an error of the machine and leaves nothing behind.
func TestFull(t *testing.T) {
	for _, op := range []blobtest.Op{blobtest.Create, blobtest.Write, blobtest.Sync, blobtest.Rename, blobtest.SyncDir, blobtest.Mkdir} {
		m := blobtest.NewMem()
		o := options("cache")
		o.disk = newMemDisk(m, blobtest.Rule{Ops: op, Nth: 1, Err: syscall.ENOSPC})
		_, err := openBytes(read(t, "plain.gz"), o)
		if !errors.Is(err, fault.Machine) || !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), "a copy of f") {
			t.Errorf("%v: got %v, want the disk to be full", op, err)
		}
		es, _ := m.ReadDir("cache")
		for _, e := range es {
			if strings.HasPrefix(e.Name, unfinished) {
				t.Errorf("%v: %s is left", op, e.Name)
			}
		}
	}
}

// TestRemade: an entry that is damaged, before it is opened or while it is open, is
// made again.
func TestRemade(t *testing.T) {
	text, b := read(t, "text.txt"), read(t, "plain.gz")
	dir := t.TempDir()
	f, err := openBytes(b, options(dir))
	if err != nil {
		t.Fatal(err)
	}
	path := f.path()
	f.Close()
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	damage := func(at int, cut bool) []byte {
		c := bytes.Clone(good)
		if cut {
			return c[:at]
		}
		c[at] ^= 16
		return c
	}
	for at := 0; at < len(good); at += 1 + len(good)/40 {
		for _, cut := range []bool{false, true} {
			if err := os.WriteFile(path, damage(at, cut), 0o666); err != nil {
				t.Fatal(err)
			}
			f, err := openBytes(b, options(dir))
			if err != nil {
				t.Fatalf("byte %d, cut %v: %v", at, cut, err)
			}
			same(t, f, text)
			f.Close()
			if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, good) {
				t.Fatalf("byte %d, cut %v: the entry was not made again: %v", at, cut, err)
			}
		}
	}
	f, err = openBytes(b, options(dir))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := os.WriteFile(path, damage(len(good)/2, false), 0o666); err != nil {
		t.Fatal(err)
	}
	same(t, f, text)
}

// TestKey: the entry of another key is not taken, even under the name of this one.
func TestKey(t *testing.T) {
	dir := t.TempDir()
	o := options(dir)
	f, err := openBytes(read(t, "plain.gz"), o)
	if err != nil {
		t.Fatal(err)
	}
	one := f.path()
	f.Close()
	o.Key = "other"
	f, err = openBytes(read(t, "empty.gz"), o)
	if err != nil {
		t.Fatal(err)
	}
	two := f.path()
	f.Close()
	if one == two {
		t.Fatal("two keys share an entry")
	}
	if err := os.Rename(one, two); err != nil {
		t.Fatal(err)
	}
	if f, err = openBytes(read(t, "empty.gz"), o); err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	same(t, f, nil)
}

// TestEvict: entries go in the order of their last use, but not while they are open.
func TestEvict(t *testing.T) {
	text, b := read(t, "text.txt"), read(t, "plain.gz")
	d := newMemDisk(blobtest.NewMem(), blobtest.Rule{})
	o := options("cache")
	o.disk = d
	open := func(key string) *File {
		t.Helper()
		o.Key = key
		f, err := openBytes(b, o)
		if err != nil {
			t.Fatal(err)
		}
		_ = d.Touch(f.path())
		return f
	}
	there := func(f *File) bool {
		_, err := d.Stat(f.path())
		return err == nil
	}
	first := open("a")
	st, err := d.Stat(first.path())
	if err != nil {
		t.Fatal(err)
	}
	o.Limit = 3*st.Size + 10
	second := open("b")
	second.Close()
	third := open("c")
	third.Close()
	open("b").Close() // used after c
	fourth := open("d")
	fourth.Close()
	if !there(first) || !there(second) || there(third) || !there(fourth) {
		t.Errorf("got a %v, b %v, c %v, d %v, want all but c, which was used longest ago and is not open",
			there(first), there(second), there(third), there(fourth))
	}
	same(t, first, text)
	e, f := open("e"), open("f")
	if !there(first) || !there(e) || !there(f) || there(second) || there(fourth) {
		t.Error("want only what is open")
	}
	o.Key = "g"
	if _, err := openBytes(b, o); !errors.Is(err, fault.Config) || !strings.Contains(err.Error(), "want a larger limit") {
		t.Errorf("got %v, want a cache that is too small", err)
	}
	for _, f := range []*File{first, e, f} {
		f.Close()
	}
	open("g").Close()
}

// TestDead: what a killed process left is removed after a while, what another one
// is writing is not.
func TestDead(t *testing.T) {
	dir := t.TempDir()
	for name, age := range map[string]time.Duration{"old": 2 * dead, "new": 0} {
		path := filepath.Join(dir, unfinished+name)
		if err := os.WriteFile(path, []byte("x"), 0o666); err != nil {
			t.Fatal(err)
		}
		at := time.Now().Add(-age)
		if err := os.Chtimes(path, at, at); err != nil {
			t.Fatal(err)
		}
	}
	f, err := openBytes(read(t, "plain.gz"), options(dir))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	left, err := filepath.Glob(filepath.Join(dir, unfinished+"*"))
	if err != nil || fmt.Sprint(left) != fmt.Sprint([]string{filepath.Join(dir, unfinished+"new")}) {
		t.Errorf("got %v, %v", left, err)
	}
}

// TestProgress: it ends where the file ends.
func TestProgress(t *testing.T) {
	b := read(t, "plain.gz")
	o := options(t.TempDir())
	var done, total int64
	o.Progress = func(d, t int64) { done, total = d, t }
	f, err := openBytes(b, o)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if done != int64(len(b)) || total != done {
		t.Errorf("got %d of %d, want %d", done, total, len(b))
	}
}
