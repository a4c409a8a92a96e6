// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package blob_test

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"pleach/blob"
	"pleach/blob/blobtest"
	"pleach/internal/fault"
)

// model is a repository of 3 MB.
func modelFiles() map[string][]byte {
	return map[string][]byte{
		"config.json":                []byte("{}"),
		"tokenizer/tokenizer.json":   random(1, 900),
		"model-1-of-2.safetensors":   random(2, 1<<20),
		"model-2-of-2.safetensors":   random(3, 2<<20),
		"original/consolidated.pth":  random(4, 1000),
		"original/tokenizer/x/empty": {},
	}
}

func wantFiles(t *testing.T, dir string, files map[string][]byte) {
	t.Helper()
	n := 0
	err := filepath.WalkDir(dir, func(p string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		n++
		rel, _ := filepath.Rel(dir, p)
		b, err := os.ReadFile(p)
		if want, ok := files[filepath.ToSlash(rel)]; !ok || !bytes.Equal(b, want) {
			t.Errorf("%s: got %d other bytes", rel, len(b))
		}
		return err
	})
	if err != nil || n != len(files) {
		t.Errorf("%s: got %d files, %v, want %d", dir, n, err, len(files))
	}
}

func TestFetch(t *testing.T) {
	files := modelFiles()
	h := blobtest.NewHub(t, "org/name", files, func(next http.Handler) http.Handler {
		return &blobtest.Flaky{Handler: next, Fail: 0.1, Truncate: 0.2}
	})
	r := newRemote(t, h, blob.Options{})
	dir := filepath.Join(t.TempDir(), "new", "model")
	var total int64
	f := &blob.Fetch{Remote: r, Objects: list(t, r, "hf://org/name"), Dir: dir, Jobs: 1, Progress: func(n int64) { total += n }}
	if done, err := f.Run(t.Context()); !done || err != nil {
		t.Fatal(done, err)
	}
	wantFiles(t, dir, files)
	if total != 3<<20+1902 {
		t.Errorf("progress of %d bytes, want %d", total, 3<<20+1902)
	}
	if h.Leaked() {
		t.Error("the token was sent to another host")
	}
	before := h.Served()
	if done, err := f.Run(t.Context()); done || err != nil || h.Served() != before {
		t.Errorf("again: %v, %v, %d bytes", done, err, h.Served()-before)
	}
}

// TestFetchResumes: a fetch that is stopped goes on with what is missing, and
// not with what is of another version or damaged.
func TestFetchResumes(t *testing.T) {
	files := map[string][]byte{"model.safetensors": random(2, 1<<20)}
	h := blobtest.NewHub(t, "org/name", files, func(next http.Handler) http.Handler { return throttled{next} })
	for _, c := range []struct {
		name      string
		meanwhile func(part string)
		atMost    int64 // bytes fetched afterwards
	}{
		{"at once", func(string) {}, 700 << 10},
		{"damaged", func(part string) {
			p := filepath.Join(part, "model.safetensors.part")
			b, _ := os.ReadFile(p)
			b[1000]++
			if err := os.WriteFile(p, b, 0o666); err != nil {
				t.Error(err)
			}
		}, 1800 << 10},
		{"another version", func(string) {
			files["model.safetensors"] = random(5, 1<<20)
		}, 1100 << 10},
	} {
		dir := filepath.Join(t.TempDir(), "model")
		r := newRemote(t, h, blob.Options{})
		ctx, cancel := context.WithCancel(t.Context())
		got := int64(0)
		f := &blob.Fetch{Remote: r, Objects: list(t, r, "hf://org/name"), Dir: dir, Progress: func(n int64) {
			if got += n; got >= 400<<10 {
				cancel()
			}
		}}
		if _, err := f.Run(ctx); !errors.Is(err, context.Canceled) {
			t.Fatalf("got %v", err)
		}
		if _, err := os.Stat(dir); err == nil {
			t.Errorf("%s: the folder is there before it is complete", c.name)
		}
		c.meanwhile(dir + ".part")
		r = newRemote(t, h, blob.Options{})
		f = &blob.Fetch{Remote: r, Objects: list(t, r, "hf://org/name"), Dir: dir}
		if done, err := f.Run(t.Context()); !done || err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		wantFiles(t, dir, files)
		if n := r.Stats().Bytes; n > c.atMost {
			t.Errorf("%s: %d bytes were fetched, want at most %d", c.name, n, c.atMost)
		}
	}
}

// TestFetchKilled: killed at any time, a fetch goes on, and the folder is there
// only when it is complete.
func TestFetchKilled(t *testing.T) {
	if dir := os.Getenv("BLOB_TEST_FETCH"); dir != "" {
		r := blob.NewRemote(blob.Options{Hub: blob.HubFromEnv()})
		objs, err := r.List(t.Context(), "hf://org/name")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := (&blob.Fetch{Remote: r, Objects: objs, Dir: dir}).Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		return
	}
	files := map[string][]byte{}
	for i, n := range []int{3 << 20, 2 << 20, 1 << 20, 900, 10} {
		files[strings.Repeat("x/", i)+"f"] = random(byte(i), n)
	}
	h := blobtest.NewHub(t, "org/name", files, func(next http.Handler) http.Handler { return throttled{next} })
	dir := filepath.Join(t.TempDir(), "model")
	kills := 0
	for ; ; kills++ {
		cmd := exec.Command(os.Args[0], "-test.run=^TestFetchKilled$")
		cmd.Env = append(os.Environ(), "BLOB_TEST_FETCH="+dir, "HF_ENDPOINT="+h.URL)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		timer := time.AfterFunc(time.Duration(50+kills*10)*time.Millisecond, func() { _ = cmd.Process.Kill() })
		err := cmd.Wait()
		timer.Stop()
		if err == nil {
			break
		}
		if cmd.ProcessState.ExitCode() == 1 {
			t.Fatal("the fetch failed by itself")
		}
		if _, err := os.Stat(dir); err == nil {
			break // killed after the rename
		}
		if kills > 200 {
			t.Fatal("it does not get on")
		}
	}
	t.Logf("complete after %d kills", kills)
	if kills < 2 {
		t.Errorf("complete after %d kills, want more: it is not tested", kills)
	}
	_ = os.Remove(filepath.Join(dir, ".pleach-get.json"))
	_ = os.Remove(filepath.Join(dir, ".lock"))
	wantFiles(t, dir, files)
}

// throttled answers slowly, so that a kill comes in between.
type throttled struct{ http.Handler }

func (h throttled) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	h.Handler.ServeHTTP(slowly{w}, q)
}

type slowly struct{ http.ResponseWriter }

func (w slowly) Write(b []byte) (int, error) {
	for p := range slices.Chunk(b, 32<<10) {
		time.Sleep(2 * time.Millisecond)
		if _, err := w.ResponseWriter.Write(p); err != nil {
			return 0, err
		}
	}
	return len(b), nil
}

func TestFetchRefused(t *testing.T) {
	h := blobtest.NewHub(t, "org/name", modelFiles(), nil)
	r := newRemote(t, h, blob.Options{})
	dir := filepath.Join(t.TempDir(), "model")
	objs := list(t, r, "hf://org/name")

	large := slices.Clone(objs)
	large[0].Size = 1 << 60
	_, err := (&blob.Fetch{Remote: r, Objects: large, Dir: dir}).Run(t.Context())
	if err == nil || !strings.Contains(err.Error(), "MiB more than that") || !errors.Is(err, fault.Machine) || h.Served() != 0 {
		t.Errorf("a disk too small: got %v, %d bytes", err, h.Served())
	}

	wrong := slices.Clone(objs)
	i := slices.IndexFunc(wrong, func(o blob.Object) bool { return o.Rel == "config.json" })
	wrong[i].Tag = "sha256:" + strings.Repeat("0", 64)
	_, err = (&blob.Fetch{Remote: r, Objects: wrong, Dir: dir}).Run(t.Context())
	if err == nil || !strings.Contains(err.Error(), "config.json: the hash is another: got 44136fa355b3678a") || !errors.Is(err, fault.Data) {
		t.Errorf("a wrong hash: got %v", err)
	}
	if _, err := os.Stat(dir); err == nil {
		t.Error("the folder is there though a hash is wrong")
	}

	for _, name := range []string{"../x", "/x", "a//b", `a\b`, "", "x.part"} {
		bad := slices.Clone(objs)
		bad[0].Rel = name
		if _, err := (&blob.Fetch{Remote: r, Objects: bad, Dir: dir}).Run(t.Context()); !errors.Is(err, fault.Data) {
			t.Errorf("a file named %q: got %v", name, err)
		}
	}
	bad := append(slices.Clone(objs), objs[0])
	if _, err := (&blob.Fetch{Remote: r, Objects: bad, Dir: dir}).Run(t.Context()); !errors.Is(err, fault.Data) {
		t.Errorf("a name twice: got %v", err)
	}
}
