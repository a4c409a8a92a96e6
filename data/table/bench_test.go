// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package table

import (
	"flag"
	"math/rand/v2"
	"os"
	"testing"
)

// The file of the benchmarks, which is better large:
//
//	go test ./data/table -run xxx -bench . -file train.parquet -field text
var (
	benchFile  = flag.String("file", "testdata/pyarrow-v1.parquet", "the file of the benchmarks")
	benchField = flag.String("field", "text", "the field of the benchmarks")
	benchForm  = flag.String("form", "text", "the form of the field: text, ids or label")
)

func benchTable(b *testing.B) (*Table, []Field) {
	b.Helper()
	f, err := os.Open(*benchFile)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { f.Close() })
	st, err := f.Stat()
	if err != nil {
		b.Fatal(err)
	}
	t, err := Open(f, st.Size(), *benchFile)
	if err != nil {
		b.Fatal(err)
	}
	return t, []Field{{*benchField, forms[*benchForm]}}
}

// forget drops the pages of a table, so that they are decoded again.
func forget(t *Table) {
	if f, ok := t.file.(*parquetFile); ok {
		decoded.drop(f)
	}
}

// BenchmarkRead reads the whole file, 64 rows at a time, no page being in memory.
func BenchmarkRead(b *testing.B) {
	t, fields := benchTable(b)
	var batch Batch
	bytes, rows := 0, int64(0)
	for b.Loop() {
		forget(t)
		for lo := int64(0); lo < t.Rows(); lo += 64 {
			if err := t.Read(lo, min(lo+64, t.Rows()), fields, &batch); err != nil {
				b.Fatal(err)
			}
			bytes += len(batch.Columns[0].Bytes) + 4*len(batch.Columns[0].IDs)
		}
		rows += t.Rows()
	}
	b.ReportMetric(float64(bytes)/1e6/b.Elapsed().Seconds(), "MB/s")
	b.ReportMetric(float64(rows)/b.Elapsed().Seconds(), "rows/s")
}

// BenchmarkOpen opens the file and reads its last row.
func BenchmarkOpen(b *testing.B) {
	for b.Loop() {
		t, fields := benchTable(b)
		if err := t.Read(t.Rows()-1, t.Rows(), fields, new(Batch)); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkRandom reads rows anywhere in the file, one by one, no page being in memory.
func BenchmarkRandom(b *testing.B) { benchRandom(b, true) }

// BenchmarkRandomKept reads such rows from pages that are, if there is room for them.
func BenchmarkRandomKept(b *testing.B) { benchRandom(b, false) }

func benchRandom(b *testing.B, fresh bool) {
	t, fields := benchTable(b)
	var batch Batch
	rnd := rand.New(rand.NewPCG(1, 1))
	for b.Loop() {
		if fresh {
			forget(t)
		}
		r := rnd.Int64N(t.Rows())
		if err := t.Read(r, r+1, fields, &batch); err != nil {
			b.Fatal(err)
		}
	}
}
