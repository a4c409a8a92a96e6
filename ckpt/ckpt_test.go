// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package ckpt_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"runtime"
	"slices"
	"strings"
	"testing"

	"pleach/blob"
	"pleach/blob/blobtest"
	"pleach/ckpt"
	"pleach/half"
	"pleach/internal/fault"
	"pleach/weights"
)

// value is element i of a tensor at a step; it is exact in bf16.
func value(name string, step int64, i int) float32 {
	return float32((int(step)*31+len(name)*7+i*3)%255) - 127
}

func source(name string, step int64, t half.DType, shape ...int) weights.Source {
	return weights.Source{Name: name, DType: t, Shape: shape, Read: func(lo, hi int, dst []float32) error {
		for i := lo; i < hi; i++ {
			dst[i-lo] = value(name, step, i)
		}
		return nil
	}}
}

// part is rows lo to hi of a whole tensor.
func part(name string, step int64, lo, hi int, whole ...int) ckpt.Box {
	shape, offset := slices.Clone(whole), make([]int, len(whole))
	shape[0], offset[0] = hi-lo, lo
	row := 1
	for _, d := range whole[1:] {
		row *= d
	}
	s := source(name, step, half.F32, shape...)
	s.Read = func(from, to int, dst []float32) error {
		for i := from; i < to; i++ {
			dst[i-from] = value(name, step, lo*row+i)
		}
		return nil
	}
	return ckpt.Box{Source: s, Offset: offset, Whole: whole}
}

func state(step int64) (ckpt.Model, ckpt.Training) {
	m := ckpt.Model{
		Config: []byte(`{"model_type": "llama"}`),
		Files:  map[string][]byte{"tokenizer.json": []byte(fmt.Sprint("tokens of step ", step))},
		Tensors: []weights.Source{
			source("model.embed_tokens.weight", step, half.BF16, 6, 5),
			source("model.norm.weight", step, half.BF16, 5),
		},
		Shard: 64,
	}
	t := ckpt.Training{
		State: map[string]any{"step": step, "cursor": []int{1, 2, 3}},
		Ranks: [][]ckpt.Box{
			{part("m.w", step, 0, 2, 4, 3), {Source: source("v.w", step, half.F32, 7)}},
			{part("m.w", step, 2, 4, 4, 3), {Source: source("t", step, half.F32)}},
		},
	}
	return m, t
}

func mustSave(t testing.TB, s blob.Store, step int64) int64 {
	t.Helper()
	m, tr := state(step)
	n, err := ckpt.Save(s, step, m, tr)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// check reads a checkpoint whole and compares it with what state says.
func check(s blob.Store, name string, step int64) error {
	c, err := ckpt.Open(s, name)
	if err != nil {
		return err
	}
	defer c.Close()
	var st struct{ Step int64 }
	if err := json.Unmarshal(c.State, &st); err != nil || st.Step != step || c.Step != step {
		return fmt.Errorf("state is of step %d and %d, want %d: %v", st.Step, c.Step, step, err)
	}
	m, _ := state(step)
	for _, x := range m.Tensors {
		got := make([]float32, len(x.Name)) // enough
		t, _ := c.Weights.Lookup(x.Name)
		got = got[:min(t.Len(), len(got))]
		if err := c.Weights.ReadFinite(x.Name, 0, len(got), got); err != nil {
			return err
		}
		if err := compare(x.Name, step, 0, got); err != nil {
			return err
		}
	}
	if got := c.Names(); !slices.Equal(got, []string{"m.w", "v.w", "t"}) {
		return fmt.Errorf("state has tensors %q", got)
	}
	for _, name := range c.Names() {
		_, shape, _ := c.Lookup(name)
		n := 1
		for _, d := range shape {
			n *= d
		}
		got := make([]float32, n)
		if err := c.Box(name, make([]int, len(shape)), shape, got); err != nil {
			return err
		}
		if err := compare(name, step, 0, got); err != nil {
			return err
		}
	}
	return nil
}

func compare(name string, step int64, from int, got []float32) error {
	for i, x := range got {
		if want := value(name, step, from+i); x != want {
			return fmt.Errorf("tensor %q at step %d: element %d: got %v, want %v", name, step, from+i, x, want)
		}
	}
	return nil
}

func store(f blob.Files) *blob.Dir { return &blob.Dir{Files: f, Root: "/run"} }

// files is every file of a store by its name.
func files(t testing.TB, s blob.Store, dir string) map[string][]byte {
	t.Helper()
	all := map[string][]byte{}
	es, err := s.List(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range es {
		name := path.Join(dir, e.Name)
		if e.Dir {
			maps.Copy(all, files(t, s, name))
			continue
		}
		if all[name], err = blob.ReadFile(s, name, 1<<20); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

func TestSaveAndOpen(t *testing.T) {
	s, s2 := store(blobtest.NewMem()), store(blobtest.NewMem())
	n := mustSave(t, s, 10)
	if err := check(s, ckpt.Name(10), 10); err != nil {
		t.Error(err)
	}
	all := files(t, s, ".")
	total := int64(0)
	for _, b := range all {
		total += int64(len(b))
	}
	if n != total {
		t.Errorf("Save says %d bytes, there are %d", n, total)
	}
	const dir = "checkpoints/step-00000010/"
	want := []string{
		"config.json", "manifest.json", "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors",
		"model.safetensors.index.json", "tokenizer.json", "training/rank-00000.json",
		"training/rank-00000.safetensors", "training/rank-00001.json", "training/rank-00001.safetensors",
		"training/state.json",
	}
	for i := range want {
		want[i] = dir + want[i]
	}
	if got := slices.Sorted(maps.Keys(all)); !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	mustSave(t, s2, 10)
	if !maps.EqualFunc(all, files(t, s2, "."), bytes.Equal) {
		t.Error("saving twice gives different bytes")
	}
	if err := check(&blob.Dir{Files: s.Files, Root: "/run/" + dir}, ".", 10); err != nil {
		t.Error("opened by its own folder:", err)
	}
}

func TestBoxesAcrossRanks(t *testing.T) {
	s := store(blobtest.NewMem())
	mustSave(t, s, 10)
	c, err := ckpt.Open(s, ckpt.Name(10))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	got := make([]float32, 4)
	if err := c.Box("m.w", []int{1, 1}, []int{2, 2}, got); err != nil {
		t.Fatal(err)
	}
	var want []float32
	for _, i := range []int{4, 5, 7, 8} {
		want = append(want, value("m.w", 10, i))
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	for _, c2 := range []struct {
		name     string
		at, size []int
	}{{"x", []int{0}, []int{4}}, {"m.w", []int{3, 1}, []int{2, 2}}, {"m.w", []int{0}, []int{4}}, {"m.w", []int{0, 0}, []int{1, 3}}} {
		if err := c.Box(c2.name, c2.at, c2.size, got); err == nil {
			t.Errorf("a box of %s at %d of shape %d was read", c2.name, c2.at, c2.size)
		}
	}
}

func TestSaveRefuses(t *testing.T) {
	hole := func(m *ckpt.Model, tr *ckpt.Training) { tr.Ranks = tr.Ranks[:1] }
	for _, c := range []struct {
		change func(*ckpt.Model, *ckpt.Training)
		want   string
	}{
		{hole, `tensor "m.w": its boxes have 6 elements, want 12`},
		{func(_ *ckpt.Model, tr *ckpt.Training) { tr.Ranks[1][0].Offset = []int{1, 0} }, `tensor "m.w": the boxes of shape [2 3] at [0 0] and of shape [2 3] at [1 0] overlap`},
		{func(_ *ckpt.Model, tr *ckpt.Training) { tr.Ranks[1][0].Offset = []int{3, 0} }, `tensor "m.w" of shape [4 3]: the box of shape [2 3] at [3 0] is not in it`},
		{func(_ *ckpt.Model, tr *ckpt.Training) { tr.Ranks[1][0].Whole = []int{5, 3} }, `tensor "m.w": one box says f32 [4 3], another f32 [5 3]`},
		{func(_ *ckpt.Model, tr *ckpt.Training) { tr.Ranks[0][1].DType = half.F64 }, `tensor "v.w": type: got f64, want f32, bf16 or f16`},
		{func(_ *ckpt.Model, tr *ckpt.Training) { tr.State = func() {} }, "training/state.json: json: unsupported type: func()"},
		{func(m *ckpt.Model, _ *ckpt.Training) { m.Files["manifest.json"] = nil }, `file "manifest.json": want a plain name that is not one of the checkpoint's own`},
		{func(m *ckpt.Model, _ *ckpt.Training) { m.Files["../x"] = nil }, `file "../x": want a plain name that is not one of the checkpoint's own`},
	} {
		s := store(blobtest.NewMem())
		m, tr := state(10)
		c.change(&m, &tr)
		_, err := ckpt.Save(s, 10, m, tr)
		if got := fmt.Sprint(err); got != "ckpt: saving step 10: "+c.want {
			t.Errorf("got  %s\nwant ckpt: saving step 10: %s", got, c.want)
		}
		if name, _, _, err := ckpt.Newest(s); name != "" || err != nil {
			t.Errorf("%s was left, %v", name, err)
		}
	}
}

// TestDiskTooSmall: with too little space nothing is written, and the message
// has both figures.
func TestDiskTooSmall(t *testing.T) {
	m := blobtest.NewMem()
	m.SetFree(50 << 10)
	f := &blobtest.Faulty{Files: m}
	model, tr := state(10)
	_, err := ckpt.Save(store(f), 10, model, tr)
	want := "ckpt: saving step 10: /run/checkpoints/step-00000010: needs 0.1 MiB, but only 0.0 MiB are free"
	if err == nil || slashes(err.Error()) != want || !errors.Is(err, fault.Machine) || f.Count() != 0 {
		t.Errorf("got  %v after %d operations\nwant %s", err, f.Count(), want)
	}
	m.SetFree(500 << 10)
	mustSave(t, store(m), 10)
}

func slashes(s string) string { return strings.ReplaceAll(s, `\`, "/") }

func TestNeverOverwritesAGoodOne(t *testing.T) {
	s := store(blobtest.NewMem())
	n := mustSave(t, s, 10)
	before := files(t, s, ".")
	if again := mustSave(t, s, 10); again != n {
		t.Errorf("saving again: got %d bytes, want %d", again, n)
	}
	m, tr := state(11)
	_, err := ckpt.Save(s, 10, m, tr)
	want := "ckpt: saving step 10: /run/checkpoints/step-00000010: a good checkpoint of this step with other content is there: file already exists"
	if err == nil || slashes(err.Error()) != want || fault.Exit(err) != 4 {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	if !maps.EqualFunc(before, files(t, s, "."), bytes.Equal) {
		t.Error("the good checkpoint was changed")
	}
	damage(t, s, ckpt.Name(10)+"/config.json", func(b []byte) []byte { return b[1:] })
	mustSave(t, s, 10)
	if !maps.EqualFunc(before, files(t, s, "."), bytes.Equal) {
		t.Error("a bad checkpoint was not replaced by a good one")
	}
}

func damage(t testing.TB, s blob.Store, name string, change func([]byte) []byte) {
	t.Helper()
	b, err := blob.ReadFile(s, name, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	err = s.Write(name, func(w io.Writer) error {
		_, err := w.Write(change(bytes.Clone(b)))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestDamage flips every bit of the manifest and some of every other file, cuts
// files and removes them. Verify names the file, and Newest falls back.
func TestDamage(t *testing.T) {
	s := store(blobtest.NewMem())
	mustSave(t, s, 10)
	mustSave(t, s, 20)
	all := files(t, s, ckpt.Name(20))
	for name, good := range all {
		stride := len(good)/8 + 1
		if path.Base(name) == "manifest.json" {
			stride = 1
		}
		bad := [][]byte{{}, good[:len(good)/2], good[:len(good)-1], append(bytes.Clone(good), '\n')}
		for i := 0; i < len(good); i += stride {
			for bit := range 8 {
				b := bytes.Clone(good)
				b[i] ^= 1 << bit
				bad = append(bad, b)
			}
		}
		for _, b := range bad {
			damage(t, s, name, func([]byte) []byte { return b })
			err := ckpt.Verify(s, ckpt.Name(20))
			inManifest := path.Base(name) == "manifest.json"
			if err == nil || fault.Exit(err) != 4 || !inManifest && !strings.Contains(slashes(err.Error()), name) {
				t.Fatalf("%s: Verify says %v", name, err)
			}
		}
		got, step, problems, err := ckpt.Newest(s)
		if got != ckpt.Name(10) || step != 10 || len(problems) != 1 || err != nil {
			t.Errorf("%s: Newest says %s %d %v %v", name, got, step, problems, err)
		}
		if err := s.Remove(name); err != nil {
			t.Fatal(err)
		}
		if err := ckpt.Verify(s, ckpt.Name(20)); err == nil {
			t.Errorf("%s: its absence is not noticed", name)
		}
		replace(t, s, name, good)
	}
	if err := ckpt.Verify(s, ckpt.Name(20)); err != nil {
		t.Error(err)
	}
}

func replace(t testing.TB, s blob.Store, name string, b []byte) {
	t.Helper()
	err := s.Write(name, func(w io.Writer) error { _, err := w.Write(b); return err })
	if err != nil {
		t.Fatal(err)
	}
}

func TestVerifyNamesEveryBadFile(t *testing.T) {
	s := store(blobtest.NewMem())
	mustSave(t, s, 10)
	damage(t, s, ckpt.Name(10)+"/config.json", func(b []byte) []byte { return b[1:] })
	damage(t, s, ckpt.Name(10)+"/training/rank-00001.safetensors", func(b []byte) []byte { b[len(b)-1]++; return b })
	if err := s.Remove(ckpt.Name(10) + "/tokenizer.json"); err != nil {
		t.Fatal(err)
	}
	got := slashes(fmt.Sprint(ckpt.Verify(s, ckpt.Name(10))))
	for _, want := range []string{
		"ckpt: /run/checkpoints/step-00000010/config.json: got 22 bytes, want 23\n",
		"ckpt: blob: opening /run/checkpoints/step-00000010/tokenizer.json: file does not exist\n",
		"ckpt: /run/checkpoints/step-00000010/training/rank-00001.safetensors: SHA-256: got ",
		": the file was changed or damaged",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("got %s\nwant %s", got, want)
		}
	}
	_, _, problems, err := ckpt.Newest(s)
	if fault.Exit(err) != 4 || len(problems) != 1 || !strings.Contains(err.Error(), "all 1 checkpoints are bad") {
		t.Errorf("Newest: got %v, %v", problems, err)
	}
}

func TestNewestOfNothing(t *testing.T) {
	s := store(blobtest.NewMem())
	if name, _, problems, err := ckpt.Newest(s); name != "" || problems != nil || err != nil {
		t.Errorf("got %q, %v, %v", name, problems, err)
	}
	if _, err := ckpt.Open(s, ckpt.Name(1)); fault.Exit(err) != 4 {
		t.Errorf("opening what is not there: %v", err)
	}
}

func TestPrune(t *testing.T) {
	steps := func(s blob.Store) (got []string) {
		es, err := s.List("checkpoints")
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range es {
			got = append(got, strings.TrimLeft(strings.TrimPrefix(e.Name, "step-"), "0"))
		}
		return got
	}
	s := store(blobtest.NewMem())
	for _, n := range []int64{10, 20, 30, 40, 50} {
		mustSave(t, s, n)
	}
	if err := s.Remove(ckpt.Name(40) + "/config.json"); err != nil {
		t.Fatal(err)
	}
	// 40 is bad and does not count; 10 is permanent.
	if err := ckpt.Prune(s, 2, func(n int64) bool { return n == 10 }); err != nil {
		t.Fatal(err)
	}
	if got := steps(s); !slices.Equal(got, []string{"10", "30", "40", "50"}) {
		t.Errorf("got %s", got)
	}
	if err := ckpt.Prune(s, 1, nil); err != nil {
		t.Fatal(err)
	}
	if got := steps(s); !slices.Equal(got, []string{"50"}) {
		t.Errorf("got %s", got)
	}
	if err := ckpt.Prune(s, 0, nil); fault.Exit(err) != 2 {
		t.Errorf("keep 0: %v", err)
	}
}

// seal writes the manifest that belongs to the files of a folder, whatever they
// hold.
func seal(t testing.TB, s blob.Store, dir string, step int64) {
	type entry struct {
		Name   string `json:"name"`
		Bytes  int    `json:"bytes"`
		SHA256 string `json:"sha256"`
	}
	m := struct {
		Format int     `json:"format"`
		Step   int64   `json:"step"`
		Files  []entry `json:"files"`
	}{Format: 1, Step: step}
	all := files(t, s, dir)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if b := all[name]; path.Base(name) != "manifest.json" {
			e := entry{strings.TrimPrefix(name, dir+"/"), len(b), fmt.Sprintf("%x", sha256.Sum256(b))}
			m.Files = append(m.Files, e)
		}
	}
	b, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	replace(t, s, dir+"/manifest.json", append(b, '\n'))
}

func TestBadBoxes(t *testing.T) {
	const two = `{"key":"t","name":"t","offset":[],"whole":[]}`
	s := store(blobtest.NewMem())
	mustSave(t, s, 10)
	for text, want := range map[string]string{
		`[]`:                                  "training/rank-00001.safetensors: not a list of boxes: json: cannot unmarshal array",
		`{}`:                                  "training: got places for 2 boxes, want 4",
		`{"boxes":[` + two + `]}`:             "training: got places for 3 boxes, want 4",
		`{"boxes":[` + two + `,` + two + `]}`: `training: tensor "t": the boxes of shape [] at [] and of shape [] at [] overlap`,
		`{"boxes":[` + two + `,{"key":"x","name":"m.w"}]}`:                                                           `training: tensor "m.w": its box "x" is missing`,
		`{"boxes":[` + two + `,{"key":"m.w[2:4,0:3]","name":"m.w","offset":[2,0],"whole":[9223372036854775807,9]}]}`: `training: tensor "m.w": shape [9223372036854775807 9]: too large`,
		`{"boxes":[` + two + `,{"key":"m.w[2:4,0:3]","name":"m.w","offset":[2],"whole":[4,3]}]}`:                     `training: tensor "m.w" of shape [4 3]: the box of shape [2 3] at [2] is not in it`,
		`{"boxes":[` + two + `,{"key":"m.w[2:4,0:3]","name":"m.w","offset":[1,0],"whole":[4,3]}]}`:                   `training: tensor "m.w": key: got "m.w[2:4,0:3]", want "m.w[1:3,0:3]"`,
	} {
		replace(t, s, ckpt.Name(10)+"/training/rank-00001.json", []byte(text))
		seal(t, s, ckpt.Name(10), 10)
		if err := ckpt.Verify(s, ckpt.Name(10)); err != nil {
			t.Fatal(err)
		}
		c, err := ckpt.Open(s, ckpt.Name(10))
		if err == nil {
			_ = c.Close()
		}
		if fault.Exit(err) != 4 || !strings.Contains(slashes(fmt.Sprint(err)), "/run/checkpoints/step-00000010: "+want) {
			t.Errorf("got  %v\nwant %s", err, want)
		}
	}
}

// TestMemory saves tensors that are much larger than what Save may allocate.
func TestMemory(t *testing.T) {
	const n = 16 << 20
	zeros := func(_, _ int, _ []float32) error { return nil }
	m := ckpt.Model{Tensors: []weights.Source{{Name: "w", DType: half.BF16, Shape: []int{n}, Read: zeros}}}
	tr := ckpt.Training{Ranks: [][]ckpt.Box{{{Source: weights.Source{Name: "m", DType: half.F32, Shape: []int{n}, Read: zeros}}}}}
	s := blob.Local(t.TempDir())
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	bytes, err := ckpt.Save(s, 1, m, tr)
	runtime.ReadMemStats(&after)
	if err != nil || bytes < 6*n {
		t.Fatal(bytes, err)
	}
	if got := after.TotalAlloc - before.TotalAlloc; got > 6<<20 {
		t.Errorf("%d bytes were allocated for a checkpoint of %d, want at most 6 MiB", got, bytes)
	}
}

// FuzzOpen: whatever is in the files that a manifest vouches for, nothing panics.
func FuzzOpen(f *testing.F) {
	s := store(blobtest.NewMem())
	mustSave(f, s, 10)
	good := files(f, s, ckpt.Name(10))
	names := slices.Sorted(maps.Keys(good))
	for i, name := range names {
		f.Add(uint8(i), good[name])
	}
	f.Fuzz(func(t *testing.T, i uint8, b []byte) {
		s := store(blobtest.NewMem())
		for name, text := range good {
			replace(t, s, name, text)
		}
		name := names[int(i)%len(names)]
		replace(t, s, name, b)
		if path.Base(name) != "manifest.json" {
			seal(t, s, ckpt.Name(10), 10)
		}
		if err := ckpt.Verify(s, ckpt.Name(10)); err != nil && fault.Exit(err) != 4 {
			t.Errorf("not an error of kind state: %v", err)
		}
		c, err := ckpt.Open(s, ckpt.Name(10))
		if err != nil {
			if fault.Exit(err) != 4 {
				t.Errorf("not an error of kind state: %v", err)
			}
			return
		}
		defer c.Close()
		for _, name := range c.Names() {
			_, shape, _ := c.Lookup(name)
			n := 1
			for _, d := range shape {
				n *= d
			}
			if err := c.Box(name, make([]int, len(shape)), shape, make([]float32, n)); err != nil {
				t.Error(err)
			}
		}
	})
}

func ExampleSave() {
	s := store(blobtest.NewMem()) // blob.Local("runs/first")
	w := weights.Source{
		Name: "model.norm.weight", DType: half.BF16, Shape: []int{4},
		Read: func(lo, hi int, dst []float32) error { copy(dst, []float32{1, 2, 3, 4}[lo:hi]); return nil },
	}
	m := w
	m.Name, m.DType = "m.model.norm.weight", half.F32
	_, err := ckpt.Save(s, 1000,
		ckpt.Model{Config: []byte("{}"), Tensors: []weights.Source{w}},
		ckpt.Training{State: map[string]int{"step": 1000}, Ranks: [][]ckpt.Box{{{Source: m}}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	name, step, _, err := ckpt.Newest(s)
	fmt.Println(name, step, err)
	// Output: checkpoints/step-00001000 1000 <nil>
}
