// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package golden

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// config is what the consistency tests need of a config.json.
type config struct {
	Vocab  int32 `json:"vocab_size"`
	Layers int   `json:"num_hidden_layers"`
	Tied   bool  `json:"tie_word_embeddings"`
}

func finite(t *testing.T, what string, xs ...float64) {
	t.Helper()
	for i, x := range xs {
		if math.IsNaN(x) || math.IsInf(x, 0) {
			t.Errorf("%s: value %d: got %v, want a finite number", what, i, x)
		}
	}
}

func idsIn(t *testing.T, what string, ids []int32, vocab int32) {
	t.Helper()
	if len(ids) == 0 {
		t.Errorf("%s: got no id", what)
	}
	for i, id := range ids {
		if id < 0 || id >= vocab {
			t.Errorf("%s: id %d: got %d, want 0 ≤ id < %d", what, i, id, vocab)
		}
	}
}

// tensors are the names in a safetensors file, whose offsets must add up to its
// size.
func tensors(t *testing.T, path string) []string {
	t.Helper()
	raw := read(t, path)
	if len(raw) < 8 || len(raw) > 150<<10 {
		t.Fatalf("%s: got %d bytes, want 8 to 150 KiB", path, len(raw))
	}
	n := binary.LittleEndian.Uint64(raw)
	if n > uint64(len(raw)-8) {
		t.Fatalf("%s: header of %d bytes in a file of %d", path, n, len(raw))
	}
	var header map[string]struct {
		Offsets [2]int `json:"data_offsets"`
	}
	if err := json.Unmarshal(raw[8:8+n], &header); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	var names []string
	end := 0
	for name, v := range header {
		if name != "__metadata__" {
			names = append(names, name)
			end = max(end, v.Offsets[1])
		}
	}
	if got, want := len(raw)-8-int(n), end; got != want {
		t.Errorf("%s: got %d bytes of data, want %d", path, got, want)
	}
	return names
}

// model checks a model directory and returns its config and the tensors of all
// shards, sorted.
func model(t *testing.T, dir string) (config, []string) {
	t.Helper()
	c := ReadJSON[config](t, filepath.Join(dir, "config.json"))
	files, err := filepath.Glob(filepath.Join(dir, "model*.safetensors"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%s: got no model*.safetensors (%v)", dir, err)
	}
	var names []string
	where := map[string]string{}
	for _, f := range files {
		for _, name := range tensors(t, f) {
			names = append(names, name)
			where[name] = filepath.Base(f)
		}
	}
	if len(files) > 1 {
		index := ReadJSON[struct {
			Map map[string]string `json:"weight_map"`
		}](t, filepath.Join(dir, "model.safetensors.index.json"))
		if got, want := fmt.Sprint(index.Map), fmt.Sprint(where); got != want {
			t.Errorf("%s: weight_map: got %s, want %s", dir, got, want)
		}
	}
	slices.Sort(names)
	if got := slices.Contains(names, "lm_head.weight"); got == c.Tied {
		t.Errorf("%s: lm_head.weight: got %v, want %v", dir, got, !c.Tied)
	}
	last := fmt.Sprintf("model.layers.%d.mlp.down_proj.weight", c.Layers-1)
	if !slices.Contains(names, last) {
		t.Errorf("%s: got no %s", dir, last)
	}
	return c, names
}

func TestScore(t *testing.T) {
	for _, dir := range Cases(t, "score") {
		t.Run(filepath.Base(dir), func(t *testing.T) {
			c, _ := model(t, dir)
			if old := ReadJSON[config](t, filepath.Join(dir, "config4.json")); old != c {
				t.Errorf("config4.json: got %+v, want %+v", old, c)
			}
			rows := ReadLines[Row](t, filepath.Join(dir, "rows.jsonl"))
			want := ReadLines[Score](t, filepath.Join(dir, "want.jsonl"))
			if len(rows) != len(want) {
				t.Fatalf("got %d rows, %d lines in want.jsonl", len(rows), len(want))
			}
			var lengths []int
			for i, row := range rows {
				lengths = append(lengths, len(row.Tokens))
				checkScore(t, fmt.Sprint("row ", i), c, row, want[i])
			}
			if !slices.Contains(lengths, 1) || !slices.Contains(lengths, 2) {
				t.Errorf("lengths: got %v, want 1 and 2 among them", lengths)
			}
		})
	}
}

func checkScore(t *testing.T, what string, c config, row Row, w Score) {
	t.Helper()
	idsIn(t, what, row.Tokens, c.Vocab)
	n := len(row.Tokens)
	if len(w.LogProbs) != n-1 || len(w.Exact) != n-1 || len(w.Top) != n {
		t.Fatalf("%s of %d ids: got %d and %d log-probabilities and %d tops, want %d, %d, %d",
			what, n, len(w.LogProbs), len(w.Exact), len(w.Top), n-1, n-1, n)
	}
	var nll float64
	for i, lp := range w.LogProbs {
		nll -= lp
		// An id among the five best has the same number in both places, the
		// others have less than the fifth.
		top := w.Top[i]
		at := slices.IndexFunc(top, func(x Choice) bool { return x.ID == row.Tokens[i+1] })
		if at >= 0 && top[at].LogProb != lp || at < 0 && lp > top[4].LogProb {
			t.Errorf("%s, position %d: log-probability %v does not fit top %v", what, i, lp, top)
		}
	}
	if err := Near(w.NLL, nll, Tol{Rel: 1e-12}); err != nil {
		t.Errorf("%s: nll: %v", what, err)
	}
	if err := NearAll(w.LogProbs, w.Exact, Tol{Abs: 2e-5}); err != nil {
		t.Errorf("%s: with and without float32 parts: %v", what, err)
	}
	finite(t, what, append(w.LogProbs, w.Exact...)...)
	for i, top := range w.Top {
		if len(top) != 5 || !slices.IsSortedFunc(top, func(a, b Choice) int {
			return int(math.Copysign(1, b.LogProb-a.LogProb))
		}) {
			t.Errorf("%s, position %d: got %v, want five, best first", what, i, top)
		}
		for _, x := range top {
			idsIn(t, what, []int32{x.ID}, c.Vocab)
			finite(t, what, x.LogProb)
		}
	}
}

func TestTrain(t *testing.T) {
	const steps, batch, sequence = 20, 4, 48
	for _, dir := range Cases(t, "train") {
		t.Run(filepath.Base(dir), func(t *testing.T) {
			c, names := model(t, filepath.Join(dir, "base"))
			rows := ReadLines[Row](t, filepath.Join(dir, "rows.jsonl"))
			for i, r := range rows {
				idsIn(t, fmt.Sprint("row ", i), r.Tokens, c.Vocab)
				if len(r.Tokens) != sequence+1 || r.Mask != nil && len(r.Mask) != sequence+1 {
					t.Errorf("row %d: got %d ids, mask of %d", i, len(r.Tokens), len(r.Mask))
				}
			}
			want := ReadLines[Step](t, filepath.Join(dir, "want.jsonl"))
			if len(want) != steps {
				t.Fatalf("got %d steps, want %d", len(want), steps)
			}
			for i, w := range want {
				what := fmt.Sprint("step ", i+1)
				n := 0
				for g := i * batch; g < (i+1)*batch; g++ {
					n += targets(rows[g%len(rows)])
				}
				if w.Step != i+1 || w.Targets != n {
					t.Errorf("%s: got step %d, %d targets, want %d", what, w.Step, w.Targets, n)
				}
				finite(t, what, w.Loss, w.GradNorm, w.LR, w.Loss64, w.GradNorm64)
				if err := Near(w.Loss, w.Loss64, Tol{Rel: 1e-6}); err != nil {
					t.Errorf("%s: loss: %v", what, err)
				}
				if err := Near(w.GradNorm, w.GradNorm64, Tol{Rel: 1e-5}); err != nil {
					t.Errorf("%s: norm: %v", what, err)
				}
			}
			checkFinal(t, names, ReadJSON[map[string]Sum](t, filepath.Join(dir, "final.json")))
		})
	}
}

// targets counts the labels of a row: the first id is none.
func targets(r Row) int {
	if r.Mask == nil {
		return len(r.Tokens) - 1
	}
	n := 0
	for _, m := range r.Mask[1:] {
		n += int(m)
	}
	return n
}

func checkFinal(t *testing.T, names []string, final map[string]Sum) {
	t.Helper()
	var got []string
	for name, s := range final {
		got = append(got, name)
		finite(t, name, s.Sum, s.SumSq, s.Sum64, s.SumSq64)
		if err := Near(s.SumSq, s.SumSq64, Tol{Rel: 1e-4}); err != nil {
			t.Errorf("%s: sum of squares: %v", name, err)
		}
	}
	slices.Sort(got)
	if !slices.Equal(got, names) {
		t.Errorf("final.json: got %v, want %v", got, names)
	}
}

func TestGenerate(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(Dir("generate"), "*.json"))
	if err != nil || len(files) != 2 {
		t.Fatalf("generate: got %v, %v, want two files", files, err)
	}
	for _, f := range files {
		g := ReadJSON[Generation](t, f)
		c := ReadJSON[config](t, filepath.Join(Dir(g.Model), "config.json"))
		if len(g.Prompts) != 3 {
			t.Errorf("%s: got %d prompts, want 3", f, len(g.Prompts))
		}
		for i, p := range g.Prompts {
			what := fmt.Sprintf("%s: prompt %d", f, i)
			idsIn(t, what, p.IDs, c.Vocab)
			idsIn(t, what, p.Want, c.Vocab)
			if len(p.Want) != 16 || p.Margin < 0.01 {
				t.Errorf("%s: got %d ids, margin %v", what, len(p.Want), p.Margin)
			}
		}
	}
}

func TestPerplexity(t *testing.T) {
	p := ReadJSON[Perplexity](t, Dir("perplexity.json"))
	c := ReadJSON[config](t, filepath.Join(Dir(p.Model), "config.json"))
	if len(p.NLL) != len(p.Documents) || len(p.NLL64) != len(p.NLL) ||
		len(p.Windows) != len(p.NLL) {
		t.Fatalf("got %d documents, %d and %d sums, windows of %d",
			len(p.Documents), len(p.NLL), len(p.NLL64), len(p.Windows))
	}
	var nll float64
	tokens := 0
	for i, d := range p.Documents {
		idsIn(t, fmt.Sprint("document ", i), d, c.Vocab)
		tokens += len(d)
		nll += p.NLL[i]
		scored := 0
		for _, w := range p.Windows[i] {
			scored += w[1]
			if w[0] != min(p.Sequence, len(d)) || w[1] > w[0] {
				t.Errorf("document %d: window %v of %d", i, w, p.Sequence)
			}
		}
		if scored != len(d) {
			t.Errorf("document %d: got %d ids scored, want %d", i, scored, len(d))
		}
	}
	if tokens != p.Tokens {
		t.Errorf("got %d tokens, want %d", p.Tokens, tokens)
	}
	if err := Near(p.Perplexity, math.Exp(nll/float64(tokens)), Tol{Rel: 1e-12}); err != nil {
		t.Errorf("perplexity: %v", err)
	}
	if err := NearAll(p.NLL, p.NLL64, Tol{Rel: 1e-6}); err != nil {
		t.Errorf("with and without float32 parts: %v", err)
	}
}

// TestConfigs checks that refuse and accept hold the files of their want.json
// and no other, and that each but the one with a duplicate key is sound JSON.
func TestConfigs(t *testing.T) {
	keys := ReadJSON[map[string]string](t, filepath.Join(Dir("refuse"), "want.json"))
	for name, key := range keys {
		text := string(read(t, filepath.Join(Dir("refuse"), name)))
		missing := strings.HasSuffix(name, "-missing.json") || strings.Contains(name, "-no-")
		if key == "" || strings.Contains(text, `"`+key) == missing {
			t.Errorf("refuse/%s: key %q: got it in the file %v", name, key, missing)
		}
	}
	means := ReadJSON[map[string]Meaning](t, filepath.Join(Dir("accept"), "want.json"))
	for name, m := range means {
		if m.V <= 0 || m.D <= 0 || m.H%m.G != 0 || m.K%2 != 0 || len(m.EOS) == 0 {
			t.Errorf("accept/%s: got %+v", name, m)
		}
	}
	for folder, n := range map[string]int{"refuse": len(keys), "accept": len(means)} {
		files, err := filepath.Glob(filepath.Join(Dir(folder), "*.json"))
		if err != nil || len(files) != n+1 {
			t.Errorf("%s: got %d files, %v, want %d and want.json", folder, len(files), err, n)
		}
		for _, f := range files {
			ReadJSON[map[string]any](t, f)
		}
	}
}

func TestDir(t *testing.T) {
	if d := Dir("score/mha"); !filepath.IsAbs(d) || filepath.Base(d) != "mha" {
		t.Errorf("got %q, want an absolute path that ends in mha", d)
	}
	if _, err := os.Stat(Dir("README.md")); err != nil {
		t.Error(err)
	}
}

// failing is a test that notes why it failed.
type failing struct {
	testing.TB
	why string
}

func (f *failing) Helper() {}

func (f *failing) Fatalf(format string, args ...any) {
	f.why = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

func TestReadLinesFails(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"", "got no line"},
		{"{\"tokens\":[1]}\n\n", ":2: unexpected end"},
		{"{\"tokens\":[1]}\n{\"tokens\":[1.5]}\n", ":2: json: cannot unmarshal"},
	} {
		path := filepath.Join(t.TempDir(), "rows.jsonl")
		if err := os.WriteFile(path, []byte(c.text), 0o644); err != nil {
			t.Fatal(err)
		}
		f := &failing{TB: t}
		done := make(chan struct{})
		go func() {
			defer close(done)
			ReadLines[Row](f, path)
		}()
		<-done
		if !strings.Contains(f.why, c.want) {
			t.Errorf("%q: got %q, want %q in it", c.text, f.why, c.want)
		}
	}
}
