// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package frame

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"pleach/blob/blobtest"
	"pleach/internal/fault"
)

func read(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// options is a cache whose frames are small and that small files use as well.
func options(dir string) Options {
	return Options{Cache: dir, Key: "k", disk: osDisk{}, piece: 3000}
}

func openBytes(b []byte, o Options) (*File, error) {
	return Open(bytes.NewReader(b), int64(len(b)), "f", o)
}

// fixtures: cached says whether a file has to be written again.
var fixtures = []struct {
	name   string
	cached bool
	pieces int // at pieces of 3000 bytes
}{
	{"plain.gz", true, 12},
	{"members.gz", true, 12},
	{"bgzf.gz", false, 8},
	{"plain.zst", false, 1},
	{"frames.zst", false, 4},
	{"unsized.zst", true, 12},
	{"long.zst", true, 12},
	{"seekable.zst", false, 9},
	{"empty.gz", true, 0},
	{"empty.zst", false, 0},
}

func TestFixtures(t *testing.T) {
	text := read(t, "text.txt")
	for _, tt := range fixtures {
		t.Run(tt.name, func(t *testing.T) {
			want := text
			if strings.HasPrefix(tt.name, "empty") {
				want = nil
			}
			b := read(t, tt.name)
			head, err := Head(bytes.NewReader(b), int64(len(b)), 100)
			if err != nil || !bytes.Equal(head, want[:min(100, len(want))]) {
				t.Errorf("got the head %q, %v", head, err)
			}
			dir := filepath.Join(t.TempDir(), "a/b")
			f, err := openBytes(b, options(dir))
			if err != nil {
				t.Fatal(err)
			}
			if f.src.entry != nil != tt.cached || (tt.pieces > 1) != (len(f.src.pieces) > 1) {
				t.Errorf("got %d pieces, in the cache: %v", len(f.src.pieces), f.src.entry != nil)
			}
			same(t, f, want)
			if err := f.Close(); err != nil {
				t.Error(err)
			}
			if es, _ := os.ReadDir(dir); len(es) > 0 != tt.cached {
				t.Errorf("got %d files in the cache", len(es))
			}
			// As it comes, a small file is one piece in memory.
			f, err = Open(bytes.NewReader(b), int64(len(b)), "f", Options{})
			if err != nil {
				t.Fatal(err)
			}
			same(t, f, want)
		})
	}
}

// same reads a file at once and in random ranges.
func same(t testing.TB, f *File, want []byte) {
	t.Helper()
	if f.Size() != int64(len(want)) {
		t.Fatalf("got size %d, want %d", f.Size(), len(want))
	}
	if got, err := io.ReadAll(io.NewSectionReader(f, 0, f.Size())); err != nil || !bytes.Equal(got, want) {
		t.Fatalf("got %d bytes that differ, %v", len(got), err)
	}
	if n, err := f.ReadAt(make([]byte, 1), f.Size()); n != 0 || err != io.EOF {
		t.Errorf("got %d bytes at the end, %v", n, err)
	}
	if len(want) == 0 {
		return
	}
	rnd := rand.New(rand.NewPCG(1, 1))
	for range 200 {
		off := rnd.IntN(len(want))
		b := make([]byte, rnd.IntN(9000))
		n, err := f.ReadAt(b, int64(off))
		if end := min(len(want), off+len(b)); !bytes.Equal(b[:n], want[off:end]) || (err == io.EOF) != (n < len(b)) {
			t.Fatalf("%d bytes at %d: got %d that differ, %v", len(b), off, n, err)
		}
	}
}

func TestConcurrent(t *testing.T) {
	text := read(t, "text.txt")
	dir := t.TempDir()
	var wg sync.WaitGroup
	b := read(t, "members.gz")
	for range 4 {
		wg.Go(func() {
			f, err := openBytes(b, options(dir))
			if err != nil {
				t.Error(err)
				return
			}
			var inner sync.WaitGroup
			for range 3 {
				inner.Go(func() { same(t, f, text) })
			}
			inner.Wait()
			f.Close()
		})
	}
	wg.Wait()
}

// TestDamage: a file that ends early or has something behind it is refused, and one
// with a flipped bit gives an error or the right bytes.
func TestDamage(t *testing.T) {
	text := read(t, "text.txt")
	for _, tt := range fixtures {
		if strings.HasPrefix(tt.name, "empty") {
			continue
		}
		b := read(t, tt.name)
		checked := tt.name != "seekable.zst" && tt.name != "unsized.zst" // without checksums
		try := func(what string, b []byte, intact bool) {
			t.Helper()
			o := options("cache")
			o.disk = newMemDisk(blobtest.NewMem(), blobtest.Rule{})
			f, err := openBytes(b, o)
			var got []byte
			if err == nil {
				got, err = io.ReadAll(io.NewSectionReader(f, 0, f.Size()))
				f.Close()
			}
			if err != nil && !errors.Is(err, fault.Data) {
				t.Errorf("%s: %s: got %v, want kind data", tt.name, what, err)
			}
			if err == nil && (!intact || checked && !bytes.Equal(got, text)) {
				t.Errorf("%s: %s: got no error", tt.name, what)
			}
		}
		for n := 4; n < len(b); n += 1 + len(b)/40 {
			// A seek table is at the end; without it the frames are found by their
			// headers, and a file that ends between two of them looks whole.
			whole := (tt.name == "seekable.zst" || tt.name == "frames.zst") && ends(b, n)
			if !whole {
				try(fmt.Sprintf("first %d bytes", n), b[:n], false)
			}
		}
		try("garbage", append(bytes.Clone(b), "garbage"...), false)
		rnd := rand.New(rand.NewPCG(4, 4))
		for range 60 {
			c := bytes.Clone(b)
			at := rnd.IntN(len(c))
			c[at] ^= 1 << rnd.IntN(8)
			try(fmt.Sprintf("byte %d", at), c, true)
		}
	}
}

// ends says whether the first n bytes are whole frames.
func ends(b []byte, n int) bool {
	s := &source{r: bytes.NewReader(b[:n]), format: Zstd}
	ok, err := s.frames(int64(n))
	return ok && err == nil
}

// TestBomb: what decompresses without bound is refused in bounded memory.
func TestBomb(t *testing.T) {
	if testing.Short() {
		t.Skip("decompresses 256 MiB")
	}
	for _, format := range []Format{Gzip, Zstd} {
		b := zeros(t, format, 1<<30)
		_, err := openBytes(b, options(t.TempDir()))
		if err == nil || !errors.Is(err, fault.Data) || !strings.Contains(err.Error(), "more than a factor of 400") {
			t.Errorf("%v: got %v from %d bytes", format, err, len(b))
		}
	}
}

func TestRefused(t *testing.T) {
	for _, tt := range []struct {
		name string
		b    []byte
		o    Options
		want string
		kind error
	}{
		{"nothing", nil, Options{}, "want gzip or zstd", fault.Data},
		{"text", []byte("hello, world"), Options{}, "want gzip or zstd", fault.Data},
		{"no cache", read(t, "plain.gz"), Options{disk: osDisk{}, piece: 3000}, "want a cache folder and a key", fault.Config},
		{"dictionary", []byte{0x28, 0xb5, 0x2f, 0xfd, 0x21, 7, 4, 0x21, 0, 0, 'a', 'b', 'c', 'd'}, Options{}, "dictionary", fault.Data},
	} {
		_, err := openBytes(tt.b, tt.o)
		if err == nil || !errors.Is(err, tt.kind) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v, want %q", tt.name, err, tt.want)
		}
	}
}

// TestXXH64: against the figures of the specification's sanity checks.
func TestXXH64(t *testing.T) {
	for s, want := range map[string]uint64{
		"":    0xef46db3751d8e999,
		"a":   0xd24ec4f1a98c6e5b,
		"abc": 0x44bc2cf5ad770999,
		"The quick brown fox jumps over the lazy dog": 0x0b242d361fda71bc,
	} {
		if got := xxh64([]byte(s)); got != want {
			t.Errorf("%q: got %x, want %x", s, got, want)
		}
	}
}

func FuzzOpen(f *testing.F) {
	for _, tt := range fixtures {
		f.Add(read(f, tt.name))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		o := options("cache")
		o.disk = newMemDisk(blobtest.NewMem(), blobtest.Rule{})
		o.Limit = 1 << 20
		_, _ = Head(bytes.NewReader(b), int64(len(b)), 1000)
		x, err := openBytes(b, o)
		if err != nil {
			return
		}
		defer x.Close()
		p := make([]byte, 1000)
		for _, off := range []int64{0, x.Size() / 2, x.Size() - 10} {
			if _, err := x.ReadAt(p, max(0, off)); err != nil && err != io.EOF && !errors.Is(err, fault.Data) {
				t.Fatal(err)
			}
		}
	})
}

type broken struct{ r io.ReaderAt }

var errBroken = errors.New("the network is gone")

func (b broken) ReadAt(p []byte, off int64) (int, error) {
	if off+int64(len(p)) > 2000 {
		return 0, errBroken
	}
	return b.r.ReadAt(p, off)
}

// TestBroken: bytes that cannot be read are no damage of the file.
func TestBroken(t *testing.T) {
	for _, tt := range fixtures {
		b := read(t, tt.name)
		if len(b) < 2000 {
			continue
		}
		f, err := Open(broken{bytes.NewReader(b)}, int64(len(b)), "f", options(t.TempDir()))
		if err == nil {
			_, err = f.ReadAt(make([]byte, f.Size()), 0)
			f.Close()
		}
		if !errors.Is(err, errBroken) || fault.Exit(err) != fault.Exit(fault.Machinef("x")) {
			t.Errorf("%s: got %v with exit code %d", tt.name, err, fault.Exit(err))
		}
	}
}
