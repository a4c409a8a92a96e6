// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package frame

import (
	"flag"
	"io"
	"math/rand/v2"
	"os"
	"testing"
)

// The file of the benchmarks, which is better large:
//
//	go test ./data/frame -run xxx -bench . -file c4.json.gz
var benchFile = flag.String("file", "testdata/plain.gz", "the file of the benchmarks")

func benchOpen(b *testing.B, dir string) *File {
	b.Helper()
	r, err := os.Open(*benchFile)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { r.Close() })
	st, err := r.Stat()
	if err != nil {
		b.Fatal(err)
	}
	f, err := Open(r, st.Size(), *benchFile, Options{Cache: dir, Key: *benchFile})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { f.Close() })
	return f
}

// BenchmarkMake opens the file with an empty cache.
func BenchmarkMake(b *testing.B) {
	n := int64(0)
	for b.Loop() {
		n += benchOpen(b, b.TempDir()).Size()
	}
	b.ReportMetric(float64(n)/1e6/b.Elapsed().Seconds(), "MB/s")
}

// BenchmarkOpen opens the file when its copy is there, and reads its last bytes.
func BenchmarkOpen(b *testing.B) {
	dir := b.TempDir()
	benchOpen(b, dir)
	var p [100]byte
	for b.Loop() {
		f := benchOpen(b, dir)
		if _, err := f.ReadAt(p[:min(100, f.Size())], max(0, f.Size()-100)); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkRead reads the copy from start to end.
func BenchmarkRead(b *testing.B) {
	f := benchOpen(b, b.TempDir())
	p := make([]byte, 64<<10)
	n := int64(0)
	for b.Loop() {
		k, err := io.CopyBuffer(struct{ io.Writer }{io.Discard}, struct{ io.Reader }{io.NewSectionReader(f, 0, f.Size())}, p)
		if err != nil {
			b.Fatal(err)
		}
		n += k
	}
	b.ReportMetric(float64(n)/1e6/b.Elapsed().Seconds(), "MB/s")
}

// BenchmarkRandom reads 4 KiB anywhere in the copy.
func BenchmarkRandom(b *testing.B) {
	f := benchOpen(b, b.TempDir())
	p := make([]byte, min(4096, f.Size()))
	rnd := rand.New(rand.NewPCG(1, 1))
	for b.Loop() {
		if _, err := f.ReadAt(p, rnd.Int64N(f.Size()-int64(len(p))+1)); err != nil {
			b.Fatal(err)
		}
	}
}
