// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package table

import (
	"bytes"
	"errors"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"pleach/internal/fault"
)

// damage flips bits, overwrites a run of bytes, or cuts a piece out.
func damage(b []byte, rnd *rand.Rand) []byte {
	b = bytes.Clone(b)
	at := rnd.IntN(len(b))
	switch rnd.IntN(4) {
	case 0:
		for i := range b[at:min(len(b), at+1+rnd.IntN(16))] {
			b[at+i] = byte(rnd.Uint32())
		}
	case 1:
		b = slices.Delete(b, at, min(len(b), at+1+rnd.IntN(64)))
	default:
		b[at] ^= 1 << rnd.IntN(8)
	}
	return b
}

// readAll reads what can be read of the fields of a damaged file.
func readAll(b []byte, fields []Field) (got [][][]any, err error) {
	tab, err := Open(bytes.NewReader(b), int64(len(b)), "damaged")
	if err != nil {
		return nil, err
	}
	var batch Batch
	for k := range fields {
		// The number of rows is what the file claims; no more are asked for than
		// would be there.
		if err := tab.Read(0, min(tab.Rows(), 1000), fields[k:k+1], &batch); err != nil {
			return nil, err
		}
		got = append(got, cells(&batch, 0, fields[k].Form))
	}
	return got, nil
}

// withSums are the fixtures whose pages have checksums.
var withSums = []string{
	"pyarrow-v1.parquet", "pyarrow-v2.parquet", "pyarrow-brotli.parquet", "parquet-go-v1.parquet", "parquet-go-v2.parquet",
}

// TestDamage: 200 damaged copies of each file give an error of kind data or
// configuration (the name of a field was damaged) or rows, without a panic, in
// bounded memory and time. Where pages have checksums the rows are the right ones.
func TestDamage(t *testing.T) {
	files, _ := fixtures(t)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		f := files[name]
		b, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			t.Fatal(err)
		}
		sums := slices.Contains(withSums, name)
		want, err := readAll(b, f.fields())
		if err != nil {
			t.Fatal(err)
		}
		rnd := rand.New(rand.NewPCG(5, uint64(len(b))))
		bad, same := 0, 0
		for i := range 200 {
			c := damage(b, rnd)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			start := time.Now()
			got, err := readAll(c, f.fields())
			took := time.Since(start)
			runtime.ReadMemStats(&after)
			switch {
			case err == nil && reflect.DeepEqual(got, want):
				same++
			case err == nil && sums:
				t.Errorf("%s, copy %d: got other rows and no error", name, i)
			case err != nil:
				bad++
				if !errors.Is(err, fault.Data) && !errors.Is(err, fault.Config) || strings.Contains(err.Error(), "the decoder failed") {
					t.Errorf("%s, copy %d: %v", name, i, err)
				}
			}
			if n := after.TotalAlloc - before.TotalAlloc; n > 256<<20 || took > 10*time.Second {
				t.Errorf("%s, copy %d: took %d bytes of memory and %v: %v", name, i, n, took, err)
			}
		}
		t.Logf("%s: of 200 damaged copies %d gave an error, %d the same rows, %d others", name, bad, same, 200-bad-same)
	}
}

func FuzzOpen(f *testing.F) {
	files, _ := fixtures(f)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		b, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			f.Fatal(err)
		}
		if len(b) < 10_000 {
			f.Add(b)
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		tab, err := Open(bytes.NewReader(b), int64(len(b)), "fuzz")
		if err != nil {
			if !errors.Is(err, fault.Data) || strings.Contains(err.Error(), "the decoder failed") {
				t.Fatal(err)
			}
			return
		}
		var batch Batch
		for _, path := range tab.Fields() {
			for _, form := range []Form{Text, IDs, Label} {
				err := tab.Read(max(0, tab.Rows()-20), tab.Rows(), []Field{{path, form}}, &batch)
				if err != nil && strings.Contains(err.Error(), "the decoder failed") {
					t.Fatal(err)
				}
			}
		}
	})
}

// TestIndex: an offset index has no checksum, but what it says is compared with the
// pages, so that one that is damaged gives an error or the right rows.
func TestIndex(t *testing.T) {
	files, _ := fixtures(t)
	for _, name := range []string{"pyarrow-index.parquet", "polars.parquet", "parquet-go-v1.parquet"} {
		b, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			t.Fatal(err)
		}
		fields := files[name].fields()
		want, err := readAll(b, fields)
		if err != nil {
			t.Fatal(err)
		}
		foot, err := readFooter(bytes.NewReader(b), int64(len(b)), name)
		if err != nil {
			t.Fatal(err)
		}
		bad, tried := 0, 0
		for _, g := range foot.groups {
			for _, c := range g.chunks {
				for at := c.indexOffset; at < c.indexOffset+c.indexLength; at += 3 {
					if tried == 150 {
						break
					}
					d := bytes.Clone(b)
					d[at] ^= 1 << (at % 8)
					got, err := readAll(d, fields)
					if tried++; err != nil {
						bad++
					} else if !reflect.DeepEqual(got, want) {
						t.Errorf("%s: byte %d: got other rows and no error", name, at)
					}
				}
			}
		}
		if t.Logf("%s: of %d damaged indexes %d gave an error", name, tried, bad); bad == 0 {
			t.Errorf("%s: its index is not read", name)
		}
	}
}
