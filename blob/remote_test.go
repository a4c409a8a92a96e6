// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package blob_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	cloud "gocloud.dev/blob"
	"gocloud.dev/blob/memblob"

	"pleach/blob"
	"pleach/blob/blobtest"
	"pleach/internal/fault"
)

// quick are retries that do not let a test wait.
var quick = blob.Retry{First: time.Millisecond, Most: 4 * time.Millisecond, Stall: 5 * time.Second}

func random(seed byte, n int) []byte {
	b := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{seed}).Read(b)
	return b
}

// newRemote reads from a hub with small chunks.
func newRemote(t *testing.T, h *blobtest.Hub, o blob.Options) *blob.Remote {
	t.Helper()
	if h != nil {
		o.Hub = blob.Hub{Endpoint: h.URL, Token: "secret-token"}
	}
	if o.Retry == (blob.Retry{}) {
		o.Retry = quick
	}
	if o.ChunkSize == 0 {
		o.ChunkSize = 1000
	}
	r := blob.NewRemote(o)
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

func list(t *testing.T, r *blob.Remote, url string) []blob.Object {
	t.Helper()
	objs, err := r.List(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	return objs
}

func readAll(t *testing.T, r *blob.Remote, o blob.Object) []byte {
	t.Helper()
	f, err := r.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	b, err := io.ReadAll(io.NewSectionReader(f, 0, f.Size()))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// readErr is why an object cannot be read.
func readErr(t *testing.T, r *blob.Remote, o blob.Object) error {
	t.Helper()
	f, err := r.Open(t.Context(), o)
	if err != nil {
		return err
	}
	_, err = f.ReadAt(make([]byte, 1), 0)
	return err
}

var corpus = map[string][]byte{
	"README.md":             []byte("# Corpus\n"),
	"data/train-0.txt":      random(0, 5500),
	"data/train-1.txt":      random(1, 1000),
	"data/test 0.txt":       random(2, 10),
	"data/more/train-2.txt": random(3, 2000),
	"data/empty.txt":        {},
}

func TestHubList(t *testing.T) {
	h := blobtest.NewHub(t, "datasets/org/name", corpus, nil)
	h.Page, h.Token = 2, "secret-token"
	r := newRemote(t, h, blob.Options{})
	for url, want := range map[string][]string{
		"":                   {"README.md", "data/empty.txt", "data/more/train-2.txt", "data/test 0.txt", "data/train-0.txt", "data/train-1.txt"},
		"/data":              {"empty.txt", "more/train-2.txt", "test 0.txt", "train-0.txt", "train-1.txt"},
		"/data/train-*":      {"train-0.txt", "train-1.txt"},
		"/**/train-*.txt":    {"data/more/train-2.txt", "data/train-0.txt", "data/train-1.txt"},
		"/data/test 0.txt":   {"test 0.txt"},
		"@main/README.md":    {"README.md"},
		"@refs/pr/1/data/m*": nil,
	} {
		objs, err := r.List(t.Context(), "hf://datasets/org/name"+url)
		var got []string
		for _, o := range objs {
			got = append(got, o.Rel)
			key := strings.TrimPrefix(o.URL, "hf://datasets/org/name@"+h.Commit+"/")
			if b := readAll(t, r, o); !bytes.Equal(b, corpus[key]) || o.Size != int64(len(b)) {
				t.Errorf("%s: got %d other bytes, size %d", o.URL, len(b), o.Size)
			}
		}
		if !slices.Equal(got, want) || (err != nil) != (want == nil) {
			t.Errorf("%q: got %q, %v, want %q", url, got, err, want)
		}
	}
	if h.Leaked() {
		t.Error("the token was sent to another host")
	}
}

func TestReadAt(t *testing.T) {
	h := blobtest.NewHub(t, "org/name", corpus, nil)
	for _, cache := range []string{"", t.TempDir()} {
		r := newRemote(t, h, blob.Options{Cache: cache})
		want := corpus["data/train-0.txt"]
		f, err := r.Open(t.Context(), list(t, r, "hf://org/name/data/train-0.txt")[0])
		if err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		for g := range 8 {
			wg.Go(func() {
				rnd := rand.New(rand.NewPCG(uint64(g), 0))
				for range 100 {
					off, n := rnd.IntN(len(want)+500), rnd.IntN(2500)
					b := make([]byte, n)
					k, err := f.ReadAt(b, int64(off))
					end := min(off+n, len(want))
					if off > end {
						end = off
					}
					if k != end-off || k > 0 && !bytes.Equal(b[:k], want[off:end]) || (err == io.EOF) != (k < n) || k == n && err != nil {
						t.Errorf("%d bytes at %d: got %d, %v, want %d", n, off, k, err, end-off)
					}
				}
			})
		}
		wg.Wait()
		if _, err := f.ReadAt(make([]byte, 1), -1); err == nil {
			t.Error("a negative offset was read")
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
		if _, err := f.ReadAt(make([]byte, 1), 0); err == nil {
			t.Error("a closed object was read")
		}
	}
}

// TestFlaky: whatever passes is tried again, counted by its reason, and the bytes
// are the same.
func TestFlaky(t *testing.T) {
	files := map[string][]byte{}
	for i := range 20 {
		files[fmt.Sprintf("f%02d", i)] = random(byte(i), 9000+i)
	}
	var bad []*blobtest.Flaky
	h := blobtest.NewHub(t, "org/name", files, func(next http.Handler) http.Handler {
		f := &blobtest.Flaky{
			Handler: next, Seed: 7, Fail: 0.1, Busy: 0.1, Reset: 0.05, Truncate: 0.1, Slow: 0.01, Delay: time.Second,
		}
		bad = append(bad, f)
		return f
	})
	h.Page = 3
	retry := quick
	retry.Stall = 300 * time.Millisecond
	r := newRemote(t, h, blob.Options{Retry: retry})
	objs := list(t, r, "hf://org/name")
	if len(objs) != len(files) {
		t.Errorf("got %d objects, want %d", len(objs), len(files))
	}
	for _, o := range objs {
		if got := readAll(t, r, o); !bytes.Equal(got, files[o.Rel]) {
			t.Errorf("%s: got %d other bytes", o.Rel, len(got))
		}
		var w bytes.Buffer
		if err := r.Copy(t.Context(), o, 100, &w); err != nil || !bytes.Equal(w.Bytes(), files[o.Rel][100:]) {
			t.Errorf("copying %s from 100: got %d other bytes, %v", o.Rel, w.Len(), err)
		}
	}
	sum := map[string]int64{}
	for _, f := range bad {
		for k, n := range f.Counts() {
			sum[k] += int64(n)
		}
	}
	s := r.Stats()
	for reason, want := range map[string]int64{
		blob.Failing: sum["fail"], blob.Busy: sum["busy"], blob.Connection: sum["reset"],
		blob.Truncated: sum["truncate"], blob.Timeout: sum["slow"],
	} {
		// Half of a listing or of an answer without a body may be all of it, and
		// net/http repeats most requests whose connection was reset by itself. On a
		// machine that is busy a good answer, or a bad one, may be late too.
		least, most := want-3, want
		switch reason {
		case blob.Truncated, blob.Connection:
			least = 1
		case blob.Timeout:
			most = want + 10
		}
		if got := s.Retries[reason]; got < max(1, least) || got > most {
			t.Errorf("%s: got %d retries, the server did it %d times", reason, got, want)
		}
	}
	t.Logf("server %v, client %v", sum, s)
}

// only counts requests and answers them all alike.
type only struct {
	mu     sync.Mutex
	n      int
	status int
	header http.Header
}

func (o *only) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.n++
	for k, v := range o.header {
		w.Header()[k] = v
	}
	w.WriteHeader(o.status)
}

// TestRefused: what does not pass is said at once, of the right kind, without
// the token.
func TestRefused(t *testing.T) {
	h := blobtest.NewHub(t, "datasets/org/name", corpus, nil)
	r := newRemote(t, h, blob.Options{})
	for url, want := range map[string]string{
		"hf://datasets/org/other":        "blob: asking hf://datasets/org/other: no such repository, or it is private and HF_TOKEN may not read it: status 401: Repository not found",
		"hf://datasets/org/name@v2":      "blob: asking hf://datasets/org/name@v2: the repository has no such revision: it does not exist: status 404: Invalid rev id: v2",
		"hf://datasets/org/name/nothing": "blob: hf://datasets/org/name/nothing: no such object, and none below it",
		"hf://datasets/org/name/x/y":     "blob: hf://datasets/org/name/x/y: no such object, and none below it",
		"hf://datasets/org/name/*.bin":   "blob: hf://datasets/org/name/*.bin: no object matches",
		"s3://b/x?endpoint=http://k:1":   "blob: opening s3://b/x: this program has no driver for s3://",
	} {
		_, err := r.List(t.Context(), url)
		if err == nil || err.Error() != want || !errors.Is(err, fault.Config) {
			t.Errorf("got  %v\nwant %s, of kind config", err, want)
		}
	}
	if n := r.Stats().Retries; len(n) > 0 {
		t.Errorf("got retries %v, want none", n)
	}
	h.Gated = true
	err := readErr(t, r, list(t, r, "hf://datasets/org/name/README.md")[0])
	if err == nil || !strings.Contains(err.Error(), "gated") || !errors.Is(err, fault.Config) || strings.Contains(err.Error(), "secret-token") {
		t.Errorf("gated: got %v", err)
	}
}

// TestGivenUp: what may pass but does not ends with an error of the machine.
func TestGivenUp(t *testing.T) {
	for _, c := range []struct {
		status int
		want   string
	}{{503, "given up, 4 tries in a row failed: status 503"}, {429, "given up, 4 tries in a row failed: status 429"}} {
		o := &only{status: c.status}
		h := blobtest.NewHub(t, "org/name", corpus, func(http.Handler) http.Handler { return o })
		retry := quick
		retry.Attempts = 4
		r := newRemote(t, h, blob.Options{Retry: retry})
		_, err := r.List(t.Context(), "hf://org/name")
		if err == nil || !strings.Contains(err.Error(), c.want) || !errors.Is(err, fault.Machine) || o.n != 4 {
			t.Errorf("got %v after %d requests, want %s", err, o.n, c.want)
		}
	}
	// Nothing listens there.
	r := newRemote(t, nil, blob.Options{Hub: blob.Hub{Endpoint: "http://127.0.0.1:1"}, Retry: quick})
	if _, err := r.List(t.Context(), "hf://org/name"); !errors.Is(err, fault.Machine) || r.Stats().Retries[blob.Connection] != 7 {
		t.Errorf("got %v, %v", err, r.Stats())
	}
}

// TestPatience: the pause that the store asks for is kept, and cancelling ends it.
func TestPatience(t *testing.T) {
	o := &only{status: 429, header: http.Header{"Retry-After": {"3600"}}}
	h := blobtest.NewHub(t, "org/name", corpus, func(http.Handler) http.Handler { return o })
	retry := quick
	retry.Total = 2 * time.Hour
	r := newRemote(t, h, blob.Options{Retry: retry})
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if _, err := r.List(ctx, "hf://org/name"); !errors.Is(err, context.DeadlineExceeded) || o.n != 1 {
		t.Errorf("got %v after %d requests, want the end of the context after 1", err, o.n)
	}
}

// TestChanged: another version than was listed is not read, wherever that shows.
func TestChanged(t *testing.T) {
	h := blobtest.NewHub(t, "org/name", map[string][]byte{"f": random(1, 3000), "g": random(2, 100)}, nil)
	r := newRemote(t, h, blob.Options{})
	objs := list(t, r, "hf://org/name")
	h.Files = map[string][]byte{"f": random(3, 3000), "g": random(4, 100)}
	for _, o := range objs {
		err := readErr(t, r, o)
		if err == nil || !strings.Contains(err.Error(), "it changed since it was listed") || !errors.Is(err, fault.Data) {
			t.Errorf("%s: got %v", o.URL, err)
		}
	}
	delete(h.Files, "f")
	if err := readErr(t, r, objs[0]); !errors.Is(err, fault.Data) {
		t.Errorf("an object that went away: got %v, want kind data", err)
	}
}

func TestExpired(t *testing.T) {
	want := random(1, 5000)
	h := blobtest.NewHub(t, "org/name", map[string][]byte{"f": want}, nil)
	r := newRemote(t, h, blob.Options{})
	f, err := r.Open(t.Context(), list(t, r, "hf://org/name")[0])
	if err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 100)
	for _, off := range []int64{0, 4000, 2000} {
		if _, err := f.ReadAt(b, off); err != nil || !bytes.Equal(b, want[off:off+100]) {
			t.Errorf("at %d: %v", off, err)
		}
		h.Expire() // the redirect that is remembered
	}
}

// TestBucket: a store behind gocloud that has no tags of its own.
func TestBucket(t *testing.T) {
	b := memblob.OpenBucket(nil)
	ctx := t.Context()
	for k, v := range corpus {
		if err := b.WriteAll(ctx, k, v, nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.WriteAll(ctx, "data/", nil, nil); err != nil {
		t.Fatal(err)
	}
	r := newRemote(t, nil, blob.Options{Drivers: []blob.Driver{{
		Scheme: "mem", Open: func(context.Context, string) (*cloud.Bucket, error) { return b, nil },
	}}})
	objs := list(t, r, "mem://b/data/")
	if len(objs) != 5 {
		t.Errorf("got %v", objs)
	}
	for _, o := range objs {
		if got := readAll(t, r, o); !bytes.Equal(got, corpus["data/"+o.Rel]) {
			t.Errorf("%s: got %d other bytes", o.URL, len(got))
		}
	}
	one := list(t, r, "mem://b/data/train-1.txt")
	if err := b.WriteAll(ctx, "data/train-1.txt", random(9, 1000), nil); err != nil {
		t.Fatal(err)
	}
	if err := r.Copy(ctx, one[0], 0, io.Discard); !errors.Is(err, fault.Data) || !strings.Contains(err.Error(), "changed") {
		t.Errorf("got %v", err)
	}
	if err := b.Delete(ctx, "data/train-1.txt"); err != nil {
		t.Fatal(err)
	}
	if err := r.Copy(ctx, one[0], 0, io.Discard); !errors.Is(err, fault.Data) || !strings.Contains(err.Error(), "does not exist") {
		t.Errorf("got %v", err)
	}
	if _, err := r.List(ctx, "mem://b/x*"); !errors.Is(err, fault.Config) {
		t.Errorf("got %v", err)
	}
}

// TestOnce: many who want the same bytes at the same time cost one request, and
// whoever reads on finds the next chunk on its way.
func TestOnce(t *testing.T) {
	h := blobtest.NewHub(t, "org/name", map[string][]byte{"f": random(1, 10000)}, func(next http.Handler) http.Handler {
		return &blobtest.Flaky{Handler: next, Slow: 1, Delay: 20 * time.Millisecond}
	})
	r := newRemote(t, h, blob.Options{})
	f, err := r.Open(t.Context(), list(t, r, "hf://org/name")[0])
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() {
			if _, err := f.ReadAt(make([]byte, 10), 5500); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if n := h.Served(); n != 1000 {
		t.Errorf("%d bytes were fetched, want one chunk of 1000", n)
	}
	if _, err := f.ReadAt(make([]byte, 10), 6500); err != nil { // on from there
		t.Error(err)
	}
	for end := time.Now().Add(10 * time.Second); h.Served() < 3000; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d bytes were fetched, want 3000: the next chunk too", h.Served())
		}
	}
}

// TestCancel: a reader whose context ends does not wait for the store, and takes
// nothing from the others.
func TestCancel(t *testing.T) {
	h := blobtest.NewHub(t, "org/name", map[string][]byte{"f": random(1, 500)}, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
			if strings.Contains(q.URL.Path, "resolve") {
				time.Sleep(300 * time.Millisecond)
			}
			next.ServeHTTP(w, q)
		})
	})
	r := newRemote(t, h, blob.Options{})
	o := list(t, r, "hf://org/name")[0]
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
	defer cancel()
	hasty, err := r.Open(ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		if _, err := hasty.ReadAt(make([]byte, 10), 0); !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, fault.Machine) {
			t.Errorf("got %v, want the end of the context", err)
		}
	})
	if got := readAll(t, r, o); len(got) != 500 {
		t.Errorf("got %d bytes", len(got))
	}
	wg.Wait()
	if n := h.Served(); n != 500 {
		t.Errorf("%d bytes were fetched, want 500 once", n)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
}

func TestUnlisted(t *testing.T) {
	r := newRemote(t, nil, blob.Options{})
	if _, err := r.Open(t.Context(), blob.Object{URL: "hf://o/n/f"}); !errors.Is(err, fault.Data) || errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}

// TestCache: what was read is on disk for the next process, a damaged part of it
// is fetched again, and without a disk everything is read all the same.
func TestCache(t *testing.T) {
	want := random(1, 10500)
	h := blobtest.NewHub(t, "org/name", map[string][]byte{"f": want}, nil)
	dir := t.TempDir()
	read := func(o blob.Options) (served int64, s blob.Stats) {
		before := h.Served()
		r := newRemote(t, h, o)
		if got := readAll(t, r, list(t, r, "hf://org/name")[0]); !bytes.Equal(got, want) {
			t.Errorf("%v: got other bytes", o)
		}
		return h.Served() - before, r.Stats()
	}
	if n, s := read(blob.Options{Cache: dir}); n != 10500 || s.FromCache != 0 || s.Bytes != 10500 {
		t.Errorf("first: %d bytes, %v", n, s)
	}
	if n, s := read(blob.Options{Cache: dir}); n != 0 || s.FromCache != 11 {
		t.Errorf("again: %d bytes, %v, want none", n, s)
	}
	chunks, err := filepath.Glob(filepath.Join(dir, "*-3.chunk"))
	if err != nil || len(chunks) != 1 {
		t.Fatal(chunks, err)
	}
	if err := os.WriteFile(chunks[0], make([]byte, 1020), 0o600); err != nil {
		t.Fatal(err)
	}
	if n, s := read(blob.Options{Cache: dir}); n != 1000 || s.FromCache != 10 {
		t.Errorf("damaged: %d bytes, %v, want one chunk", n, s)
	}
	if n, s := read(blob.Options{Cache: dir, CacheLimit: 3100}); n != 0 || s.FromCache != 11 {
		t.Errorf("a small limit: %d bytes, %v", n, s)
	}
	var told atomic.Int32
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if n, _ := read(blob.Options{Cache: file, Warn: func(string) { told.Add(1) }}); n != 10500 || told.Load() != 1 {
		t.Errorf("no disk: %d bytes, %d warnings", n, told.Load())
	}
}

// TestCacheSeeks: small reads all over an object that is on disk do not bring
// whole chunks into memory again and again.
func TestCacheSeeks(t *testing.T) {
	want := random(1, 40000)
	h := blobtest.NewHub(t, "org/name", map[string][]byte{"f": want}, nil)
	r := newRemote(t, h, blob.Options{Cache: t.TempDir()})
	f, err := r.Open(t.Context(), list(t, r, "hf://org/name")[0])
	if err != nil {
		t.Fatal(err)
	}
	rnd := rand.New(rand.NewPCG(1, 2))
	b := make([]byte, 30)
	for range 2000 {
		off := rnd.Int64N(40000 - 30)
		if _, err := f.ReadAt(b, off); err != nil || !bytes.Equal(b, want[off:off+30]) {
			t.Fatalf("at %d: %v", off, err)
		}
	}
	if s := r.Stats(); s.Bytes != 40000 || s.FromCache != 0 {
		t.Errorf("got %v, want each chunk fetched once and none loaded whole", s)
	}
}
