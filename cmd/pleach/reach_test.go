// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"pleach/blob"
	"pleach/blob/blobtest"
	"pleach/data"
	"pleach/internal/fault"
)

// letters is the simplest encoder.
type letters struct{}

func (letters) Encode(dst []int32, text []byte) []int32 {
	for _, c := range text {
		dst = append(dst, int32(c))
	}
	return dst
}

// shards is a corpus of about size bytes in files of lines, some compressed.
func shards(t *testing.T, size int) map[string][]byte {
	t.Helper()
	r := rand.New(rand.NewPCG(1, 2))
	files := map[string][]byte{}
	const many = 16
	for i := range many {
		var b bytes.Buffer
		for b.Len() < size/many {
			doc := make([]byte, 100+r.IntN(4000))
			for j := range doc {
				doc[j] = "etaoin shrdlu"[r.IntN(13)]
			}
			line, _ := json.Marshal(map[string]string{"id": fmt.Sprintf("%d-%d", i, b.Len()), "text": string(doc)})
			b.Write(append(line, '\n'))
		}
		name := fmt.Sprintf("corpus/%02d.jsonl", i)
		if i%4 == 0 {
			var z bytes.Buffer
			w := gzip.NewWriter(&z)
			if _, err := w.Write(b.Bytes()); err != nil {
				t.Fatal(err)
			}
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			name, b = name+".gz", z
		}
		files[name] = b.Bytes()
	}
	return files
}

// TestTrainingDataFromS3: the rows of a corpus in S3, of whose answers one in twenty
// fails, is late or is cut, are those of its copy on this machine; memory is bounded
// and retries are counted. PLEACH_S3_BYTES makes the corpus larger.
func TestTrainingDataFromS3(t *testing.T) {
	size := 24 << 20
	if n, err := strconv.Atoi(os.Getenv("PLEACH_S3_BYTES")); err == nil {
		size = n
	}
	var flaky *blobtest.Flaky
	s := blobtest.NewS3(t, func(h http.Handler) http.Handler {
		flaky = &blobtest.Flaky{
			Handler: h, Seed: 5, Fail: 0.01, Busy: 0.01, Reset: 0.01, Truncate: 0.01, Slow: 0.01, Delay: 20 * time.Millisecond,
		}
		return flaky
	})
	dir := t.TempDir()
	for name, b := range shards(t, size) {
		s.Put(name, b)
		if err := os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	const T, lanes = 512, 8
	n := size / T * 3 / 4
	r := stores(t, blob.Options{Cache: t.TempDir(), ChunkSize: 128 << 10})
	serve := func(path string, a data.Access, each func(i int, r data.Row)) *data.Loader {
		l, err := data.Open(data.Spec{
			Sequence: T, Lanes: lanes, EOS: 0, Sources: []data.Source{{Paths: []string{path}, Access: a, ID: "id"}},
		}, letters{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(l.Close)
		for i := 0; i < n; i += lanes {
			rows, err := l.Next(lanes)
			if err != nil {
				t.Fatal(err)
			}
			for j, row := range rows {
				each(i+j, row)
			}
		}
		return l
	}
	var want [][]int32
	serve(filepath.Join(dir, "corpus"), data.Access{Cache: t.TempDir()}, func(_ int, r data.Row) {
		want = append(want, slices.Clone(r.IDs[:8]))
	})
	peak, began := uint64(0), time.Now()
	l := serve(s.URL("corpus/"), data.Access{Cache: t.TempDir(), Remote: r}, func(i int, r data.Row) {
		if !slices.Equal(r.IDs[:8], want[i]) {
			t.Fatalf("row %d: got %v, want %v", i, r.IDs[:8], want[i])
		}
		if i%1000 == 0 {
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			peak = max(peak, m.HeapInuse)
		}
	})
	stats := l.Stats()[0]
	retries := int64(0)
	for _, c := range stats.Retries {
		retries += c
	}
	bad := flaky.Counts()
	if want := int64(bad["fail"] + bad["busy"]); retries < want || want == 0 {
		t.Errorf("got retries %v, want those of %v", stats.Retries, bad)
	}
	t.Logf("%d rows of %d MB in %.1f s: retries %v of %v, heap at most %d MB with the store of the test",
		n, size>>20, time.Since(began).Seconds(), stats.Retries, bad, peak>>20)
}

// TestHubData: a data set of the hub is read with no option but its URL, and its
// revision is pinned: another one is another corpus.
func TestHubData(t *testing.T) {
	files := map[string][]byte{"README.md": []byte("about"), ".gitattributes": []byte("x")}
	for i := range 3 {
		name := fmt.Sprintf("data/train-%05d-of-00003.arrow", i)
		b, err := os.ReadFile("../../data/table/testdata/datasets/" + fmt.Sprintf("data-%05d-of-00003.arrow", i))
		if err != nil {
			t.Fatal(err)
		}
		files[name] = b
	}
	h := blobtest.NewHub(t, "datasets/org/name", files, nil)
	r := stores(t, blob.Options{Cache: t.TempDir(), Hub: blob.Hub{Endpoint: h.URL}})
	read := func(path string) (texts []string, err error) {
		for d, e := range data.Documents(data.Source{Paths: []string{path}, Access: data.Access{Cache: t.TempDir(), Remote: r}}) {
			if err = e; e == nil {
				texts = append(texts, string(d.Text))
			}
		}
		return texts, err
	}
	local, err := read("../../data/table/testdata/datasets")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"hf://datasets/org/name", "hf://datasets/org/name@main/data", "hf://datasets/org/name/data/train-*"} {
		if got, err := read(path); err != nil || !slices.Equal(got, local) {
			t.Errorf("%s: got %d documents, %v, want %d", path, len(got), err, len(local))
		}
	}
	h.Files["data/test-00000-of-00001.arrow"] = files["data/train-00000-of-00003.arrow"]
	r = stores(t, blob.Options{Hub: blob.Hub{Endpoint: h.URL}})
	if _, err := read("hf://datasets/org/name"); !errors.Is(err, fault.Config) || !strings.Contains(err.Error(), "has the splits test, train") {
		t.Errorf("two splits: got %v", err)
	}
	if _, err := read("hf://datasets/org/nothing"); err == nil || !strings.Contains(err.Error(), "org/nothing") {
		t.Errorf("no such data set: got %v", err)
	}
}
