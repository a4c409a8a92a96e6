// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pleach/blob"
	"pleach/ckpt"
	"pleach/half"
	"pleach/internal/golden"
	"pleach/model"
	"pleach/weights"
)

// TestConfigRefused gives every absurd or foreign config.json of the goldens to
// the command: it ends with the code for data and names file and key.
func TestConfigRefused(t *testing.T) {
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(golden.Dir("score/mha"))); err != nil {
		t.Fatal(err)
	}
	keys := golden.ReadJSON[map[string]string](t, filepath.Join(golden.Dir("refuse"), "want.json"))
	for _, name := range slices.Sorted(maps.Keys(keys)) {
		text, err := os.ReadFile(filepath.Join(golden.Dir("refuse"), name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "config.json"), text, 0o666); err != nil {
			t.Fatal(err)
		}
		var out, errs bytes.Buffer
		code := run([]string{"score", dir, filepath.Join(dir, "rows.jsonl")}, &out, &errs)
		got := errs.String()
		if code != 3 || out.Len() > 0 || !strings.HasPrefix(got, "pleach: opening model "+dir+": ") ||
			!strings.Contains(got, keys[name]) {
			t.Errorf("%s: code %d, %q, want code 3 and the key %s", name, code, got, keys[name])
		}
	}
}

// TestNewestCheckpoint opens a run directory as its newest good checkpoint.
func TestNewestCheckpoint(t *testing.T) {
	run := t.TempDir()
	config, err := os.ReadFile(filepath.Join(golden.Dir("score/mha"), "config.json"))
	if err != nil {
		t.Fatal(err)
	}
	c, err := model.ParseConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	m := ckpt.Model{Config: config}
	for _, w := range c.Tensors() {
		m.Tensors = append(m.Tensors, weights.Source{
			Name: w.Name, DType: half.F32, Shape: w.Shape, Read: func(int, int, []float32) error { return nil },
		})
	}
	for _, step := range []int64{2, 10} {
		if _, err := ckpt.Save(blob.Local(run), step, m, ckpt.Training{Ranks: [][]ckpt.Box{{}}}); err != nil {
			t.Fatal(err)
		}
	}
	opens := func(step int64) {
		t.Helper()
		m, err := openModel(run)
		if err != nil {
			t.Fatal(err)
		}
		defer m.close()
		if want := filepath.Join(run, ckpt.Name(step)); m.dir != want {
			t.Errorf("got %s, want %s", m.dir, want)
		}
	}
	opens(10)
	if err := os.WriteFile(filepath.Join(run, ckpt.Name(10), "manifest.json"), nil, 0o666); err != nil {
		t.Fatal(err)
	}
	opens(2)
}
