// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"pleach/blob"
	"pleach/half"
	"pleach/merge"
	"pleach/weights"
)

// writeRandom writes a model of an architecture that nobody knows, of 48 tensors of
// 64 Ki elements.
func writeRandom(t testing.TB, dir string, seed uint64) {
	t.Helper()
	var list []weights.Source
	for i := range 48 {
		r := rand.New(rand.NewPCG(seed, uint64(i)))
		list = append(list, weights.Source{
			Name: fmt.Sprintf("layers.%d.w", i), DType: half.BF16, Shape: []int{256, 256},
			Read: func(_, _ int, dst []float32) error {
				for k := range dst {
					dst[k] = float32(r.NormFloat64())
				}
				return nil
			},
		})
	}
	p, err := weights.NewPlan("model", 1<<20, list)
	if err != nil {
		t.Fatal(err)
	}
	s := blob.Local(dir)
	if err := p.Write(".", s.Write); err != nil {
		t.Fatal(err)
	}
	err = s.Write("config.json", func(w io.Writer) error {
		_, err := io.WriteString(w, "{\"architectures\": [\"Some\"]}\n")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// folder is all files of a folder.
func folder(t testing.TB, dir string) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	err := fs.WalkDir(os.DirFS(dir), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		files[path], err = os.ReadFile(filepath.Join(dir, path))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// TestKillMerge kills a merge at random moments, a hundred times: there is no output,
// or a complete one, and going on ends with the same bytes as a merge in one piece.
func TestKillMerge(t *testing.T) {
	const kills = 100
	seed := uint64(time.Now().UnixNano())
	t.Log("seed", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	dir := t.TempDir()
	text := "merge_method: dare_ties\nbase_model: " + filepath.Join(dir, "m0") + "\nmodels:\n"
	for i := range 3 {
		at := filepath.Join(dir, fmt.Sprint("m", i))
		writeRandom(t, at, uint64(i))
		if i > 0 {
			text += fmt.Sprintf("  - model: %s\n    parameters: {weight: 0.5, density: 0.5}\n", at)
		}
	}
	config := filepath.Join(dir, "merge.yml")
	if err := os.WriteFile(config, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	args := func(out string) []string {
		return []string{"merge", config, out, "--resume", "--out-shard-size", "1m", "--threads", "1"}
	}
	one := filepath.Join(dir, "one", "out")
	if err := os.Mkdir(filepath.Dir(one), 0o777); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	if c := launch(t, args(one)...); c.end() != 0 {
		t.Fatal(c.said.String())
	}
	took := time.Since(began)
	want := folder(t, one)

	out := filepath.Join(dir, "two", "out")
	if err := os.Mkdir(filepath.Dir(out), 0o777); err != nil {
		t.Fatal(err)
	}
	ended, resumed := 0, 0
	for i := 0; i < kills; i++ {
		if journaled(out) {
			resumed++
		}
		c := launch(t, args(out)...)
		if i%2 == 0 {
			time.Sleep(time.Duration(r.Float64() * 1.1 * float64(took)))
		} else { // while tensors are written, however long it takes to start
			for end := time.Now().Add(2 * took); !journaled(out) && time.Now().Before(end); {
				time.Sleep(200 * time.Microsecond)
			}
			time.Sleep(time.Duration(r.Float64() * 0.3 * float64(took)))
		}
		_ = c.Process.Kill()
		if code := c.end(); code > 0 {
			t.Fatalf("kill %d: exit %d: %s", i, code, c.said.String())
		}
		if _, err := os.Stat(out); err != nil {
			continue
		}
		ended++
		sameFiles(t, folder(t, out), want)
		if err := os.RemoveAll(out); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%d kills of a merge of %v: %d began with a journal, %d had ended", kills, took, resumed, ended)
	if resumed < kills/10 {
		t.Errorf("only %d of %d attempts went on", resumed, kills)
	}
	if c := launch(t, args(out)...); c.end() != 0 {
		t.Fatal(c.said.String())
	}
	sameFiles(t, folder(t, out), want)
}

// journaled says that an unfinished merge has tensors on the disk.
func journaled(out string) bool {
	info, err := os.Stat(filepath.Join(merge.Part(out), "merge.journal"))
	return err == nil && info.Size() > 0
}

func sameFiles(t testing.TB, got, want map[string][]byte) {
	t.Helper()
	for name, b := range want {
		g, ok := got[name]
		if !ok || !bytes.Equal(g, b) {
			t.Errorf("%s: got %d bytes, want the %d of a merge in one piece", name, len(g), len(b))
		}
	}
	for name := range got {
		if _, ok := want[name]; !ok {
			t.Errorf("%s: is too many", name)
		}
	}
}

// TestMergeNegated: what mergekit calls --no-copy-tokenizer is --copy-tokenizer=false.
func TestMergeNegated(t *testing.T) {
	for _, tt := range []struct {
		args              []string
		tokenizer, crimes bool
	}{
		{nil, true, false},
		{[]string{"--copy-tokenizer", "--allow-crimes"}, true, true},
		{[]string{"--no-copy-tokenizer", "--allow-crimes", "--no-lazy-unpickle"}, false, true},
		{[]string{"--copy-tokenizer=false", "--allow-crimes", "--no-allow-crimes"}, false, false},
	} {
		var o merging
		c := &cobra.Command{}
		o.flags(c)
		if err := c.ParseFlags(tt.args); err != nil {
			t.Fatal(err)
		}
		if err := o.check(c); err != nil {
			t.Fatal(err)
		}
		if o.tokenizer != tt.tokenizer || o.options.Crimes != tt.crimes || !o.card {
			t.Errorf("%q: got %t, %t, card %t", tt.args, o.tokenizer, o.options.Crimes, o.card)
		}
	}
}
