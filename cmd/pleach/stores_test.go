// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"pleach/blob"
	"pleach/blob/blobtest"
	"pleach/internal/fault"
)

// stores opens the stores of this program with little patience.
func stores(t *testing.T, o blob.Options) *blob.Remote {
	t.Helper()
	o.Drivers = drivers()
	o.Retry = blob.Retry{First: time.Millisecond, Most: 50 * time.Millisecond, Stall: 2 * time.Second}
	r := blob.NewRemote(o)
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

// TestS3: the product's driver lists, reads, and notices another version.
func TestS3(t *testing.T) {
	s := blobtest.NewS3(t, nil)
	files := map[string]string{"a/1.txt": "one", "a/2.txt": "", "a/b/3 +%.txt": "three", "a1": "x"}
	for k, v := range files {
		s.Put(k, []byte(v))
	}
	for i := range 2100 { // more than two pages
		s.Put(fmt.Sprintf("many/%04d", i), nil)
	}
	r := stores(t, blob.Options{})
	read := func(o blob.Object) (string, error) {
		var w strings.Builder
		err := r.Copy(t.Context(), o, 0, &w)
		return w.String(), err
	}
	for key, want := range map[string]string{
		"a": "1.txt 2.txt b/3 +%.txt", "a/": "1.txt 2.txt b/3 +%.txt", "a/*.txt": "1.txt 2.txt", "a/1.txt": "1.txt",
		"a1": "a1", "**/*.txt": "a/1.txt a/2.txt a/b/3 +%.txt",
	} {
		objs, err := r.List(t.Context(), s.URL(key))
		var names []string
		for _, o := range objs {
			names = append(names, o.Rel)
			text, err := read(o)
			if want := files[strings.TrimPrefix(o.URL, "s3://bucket/")]; text != want || err != nil || !strings.HasPrefix(o.Tag, `"`) {
				t.Errorf("%s: got %q, %v, tag %s", o.URL, text, err, o.Tag)
			}
		}
		if got := strings.Join(names, " "); got != want || err != nil {
			t.Errorf("%s: got %q, %v, want %q", key, got, err, want)
		}
	}
	if objs, err := r.List(t.Context(), s.URL("many")); len(objs) != 2100 || err != nil {
		t.Errorf("got %d objects, %v", len(objs), err)
	}

	objs, err := r.List(t.Context(), s.URL("a/1.txt"))
	if err != nil {
		t.Fatal(err)
	}
	s.Put("a/1.txt", []byte("two"))
	if _, err := read(objs[0]); err == nil || !strings.Contains(err.Error(), "s3://bucket/a/1.txt: it changed since it was listed") || !errors.Is(err, fault.Data) {
		t.Errorf("another version: got %v", err)
	}
	if n := r.Stats().Retries; len(n) > 0 {
		t.Errorf("got retries %v", n)
	}
}

// TestS3Refused: what does not pass is said after one request.
func TestS3Refused(t *testing.T) {
	answer, n := "", 0
	s := blobtest.NewS3(t, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
			n++
			if answer == "" {
				next.ServeHTTP(w, q)
				return
			}
			status, _ := strconv.Atoi(answer[:3])
			w.WriteHeader(status)
			fmt.Fprintf(w, "<Error><Code>%s</Code><Message>told so</Message></Error>", answer[4:])
		})
	})
	for _, c := range []struct {
		url, answer string
		want        string
		most        int // requests
	}{
		{s.In("nowhere", "x*"), "", "listing s3://nowhere/x*: it does not exist", 1},
		{s.URL("x*"), "", "s3://bucket/x*: no object matches", 1},
		{s.URL("x*"), "403 AccessDenied", "listing s3://bucket/x*: no permission", 1},
		{s.URL("x"), "403 AccessDenied", "looking for s3://bucket/x: no permission", 2},
		{s.URL("x*"), "301 PermanentRedirect", "PermanentRedirect", 1},
		{s.URL("x*"), "400 AuthorizationHeaderMalformed", "AuthorizationHeaderMalformed", 1},
		{s.URL("x*") + "&nonsense=1", "", `unknown query parameter "nonsense"`, 0},
	} {
		answer, n = c.answer, 0
		r := stores(t, blob.Options{})
		_, err := r.List(t.Context(), c.url)
		if err == nil || !strings.Contains(err.Error(), c.want) || !errors.Is(err, fault.Config) || n > c.most {
			t.Errorf("%s: got %v after %d requests\nwant %s, of kind config, after at most %d", c.answer, err, n, c.want, c.most)
		}
	}

	// Nobody to ask for.
	for _, v := range []string{"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"} {
		t.Setenv(v, "")
	}
	answer, n = "", 0
	r := stores(t, blob.Options{})
	if _, err := r.List(t.Context(), s.URL("x*")); !errors.Is(err, fault.Config) || !strings.Contains(err.Error(), "credentials") || n > 0 {
		t.Errorf("no credentials: got %v after %d requests", err, n)
	}
}

// TestS3Busy: what passes is tried again, by us and not by the vendor's client,
// so it is counted.
func TestS3Busy(t *testing.T) {
	n := 0
	s := blobtest.NewS3(t, func(http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
			n++
			w.WriteHeader(http.StatusServiceUnavailable)
			fmt.Fprint(w, "<Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message></Error>")
		})
	})
	r := stores(t, blob.Options{})
	_, err := r.List(t.Context(), s.URL("x*"))
	if !errors.Is(err, fault.Machine) || !strings.Contains(err.Error(), "given up, 8 tries in a row failed") || n != 8 || r.Stats().Retries[blob.Failing] != 7 {
		t.Errorf("got %v after %d requests, %v", err, n, r.Stats())
	}
}

// corpusMiB is the size of the corpus of TestS3Corpus, in MiB:
// PLEACH_TEST_CORPUS=1024 go test ./cmd/pleach -run S3Corpus -v
func corpusMiB() int64 {
	if n, err := strconv.ParseInt(os.Getenv("PLEACH_TEST_CORPUS"), 10, 64); err == nil {
		return n
	}
	return 48
}

// TestS3Corpus reads a corpus over a bad line, by a process of its own whose
// memory is measured: 5 % of the answers fail, are cut short or come late. The
// bytes are the same, every retry is counted, and a second process reads them
// from the cache.
func TestS3Corpus(t *testing.T) {
	if url := os.Getenv("PLEACH_TEST_READ"); url != "" {
		readCorpus(t, url)
		return
	}
	var bad *blobtest.Flaky
	s := blobtest.NewS3(t, func(next http.Handler) http.Handler {
		bad = &blobtest.Flaky{
			Handler: next, Seed: 3, Fail: 0.015, Reset: 0.005, Truncate: 0.02, Slow: 0.01, Delay: 3 * time.Second,
		}
		return bad
	})
	sum := sha256.New()
	const files = 6
	size := corpusMiB() << 20 / files
	for i := range files {
		g := rand.NewChaCha8([32]byte{byte(i)})
		s.PutFrom(fmt.Sprintf("corpus/%d.bin", i), io.TeeReader(io.LimitReader(g, size), sum), size)
	}
	cache := t.TempDir()
	read := func() string {
		c := exec.Command(os.Args[0], "-test.run=^TestS3Corpus$", "-test.v")
		c.Env = append(os.Environ(), "PLEACH_TEST_READ="+s.URL("corpus/*.bin"), "PLEACH_CACHE="+cache, "GOMEMLIMIT=off")
		out, err := c.CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		if !bytes.Contains(out, fmt.Appendf(nil, "sum %x", sum.Sum(nil))) {
			t.Errorf("other bytes:\n%s", out)
		}
		return string(out)
	}
	began := time.Now()
	first := read()
	t.Logf("server %v, %v\n%s", bad.Counts(), time.Since(began).Round(time.Millisecond), first)
	done := bad.Counts()
	var failing, truncated, timeout int
	_, told, _ := strings.Cut(first, "from the cache, ")
	if _, err := fmt.Sscanf(told, "failing %d, truncated %d, timeout %d", &failing, &truncated, &timeout); err != nil {
		t.Fatal(err)
	}
	// On a busy machine other answers may come late too. A reset is repeated by
	// net/http itself.
	worst := done["fail"] + done["truncate"] + done["slow"]
	if done["fail"] == 0 || done["truncate"] == 0 || done["slow"] == 0 || failing > done["fail"] ||
		truncated > done["truncate"] || failing+truncated+timeout < worst {
		t.Errorf("want retries of %v", done)
	}
	again := read()
	after := bad.Counts()["all"] - done["all"]
	t.Logf("again:\n%s", again)
	if after > 3 { // a listing, and its retries
		t.Errorf("the second process made %d requests", after)
	}
	if strings.Contains(first, "WARN") {
		t.Error("the vendor's client talks")
	}
	if m := toldPeak(t, first); m > 256<<20 {
		t.Errorf("it took %d MiB of memory, want at most 256", m>>20)
	}
}

// readCorpus reads all objects, several at a time, and prints what happened.
func readCorpus(t *testing.T, url string) {
	chunk := 4 << 20
	if corpusMiB() < 500 {
		chunk = 1 << 20 // so that there are enough of them for 5 %
	}
	r := blob.NewRemote(blob.Options{
		Drivers: drivers(), Cache: os.Getenv("PLEACH_CACHE"), ChunkSize: chunk,
		Retry: blob.Retry{First: 5 * time.Millisecond, Most: 100 * time.Millisecond, Stall: time.Second},
	})
	defer r.Close()
	objs, err := r.List(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.New()
	for _, o := range objs {
		f, err := r.Open(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.CopyBuffer(sum, io.NewSectionReader(f, 0, f.Size()), make([]byte, 100_000)); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
	s := r.Stats()
	fmt.Printf("sum %x\n%d bytes, %d requests, %d chunks from the cache, failing %d, truncated %d, timeout %d, connection %d\n",
		sum.Sum(nil), s.Bytes, s.Requests, s.FromCache, s.Retries[blob.Failing], s.Retries[blob.Truncated],
		s.Retries[blob.Timeout], s.Retries[blob.Connection])
	if b, err := os.ReadFile("/proc/self/status"); err == nil {
		for line := range strings.Lines(string(b)) {
			if strings.HasPrefix(line, "VmHWM:") {
				fmt.Print(line)
			}
		}
	}
}

// toldPeak is the memory that a process said it took; 0 where none is told.
func toldPeak(t *testing.T, out string) int64 {
	_, rest, ok := strings.Cut(out, "VmHWM:")
	if !ok {
		return 0
	}
	n, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
	if err != nil {
		t.Error(err)
	}
	return n << 10
}

// TestGetS3: get takes any URL that the drivers know.
func TestGetS3(t *testing.T) {
	s := blobtest.NewS3(t, nil)
	s.Put("x/a.txt", []byte("one"))
	s.Put("x/b/c.txt", []byte("two"))
	t.Setenv("PLEACH_CACHE", t.TempDir())
	dir := filepath.Join(t.TempDir(), "x")
	var out, errs bytes.Buffer
	if code := run([]string{"get", s.URL("x"), dir}, &out, &errs); code != 0 {
		t.Fatalf("exit code %d: %s", code, errs.String())
	}
	for name, want := range map[string]string{"a.txt": "one", "b/c.txt": "two"} {
		if b, err := os.ReadFile(filepath.Join(dir, name)); string(b) != want || err != nil {
			t.Errorf("%s: got %q, %v", name, b, err)
		}
	}
}
