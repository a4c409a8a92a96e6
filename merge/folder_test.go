// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"pleach/internal/fault"
	"pleach/merge/vocab"
)

// TestFolderOfSomebody: a folder in the place of the unfinished one that no merge
// began, and what a link leads to, stay as they are.
func TestFolderOfSomebody(t *testing.T) {
	p := testPlan(t)
	layout, err := p.Layout()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	mine := filepath.Join(dir, "x.part")
	if err := os.Mkdir(mine, 0o777); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(mine, "model.safetensors")
	if err := os.WriteFile(file, []byte("dear"), 0o666); err != nil {
		t.Fatal(err)
	}
	done := filepath.Join(dir, "done.part") // the complete output of another merge
	for _, name := range []string{"config.json", ManifestName} {
		if err := errors.Join(os.MkdirAll(done, 0o777), os.WriteFile(filepath.Join(done, name), []byte("dear"), 0o666)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(mine, filepath.Join(dir, "y.part")); err != nil {
		t.Skip(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "z.part"), []byte("dear"), 0o666); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"x", "y", "z", "done"} {
		for _, resume := range []bool{false, true} {
			if _, err := NewFolder(filepath.Join(dir, name), layout, p.Tensors, nil, resume); !errors.Is(err, fault.State) {
				t.Errorf("%s: got %v, want an error of kind state", name, err)
			}
		}
	}
	for _, name := range []string{file, filepath.Join(dir, "z.part"), filepath.Join(done, "config.json")} {
		if b, err := os.ReadFile(name); err != nil || string(b) != "dear" {
			t.Errorf("%s: got %q, %v", name, b, err)
		}
	}
}

// TestFolderEmptied: a merge killed while it makes its folder, or while it gives the
// folder its name, begins again.
func TestFolderEmptied(t *testing.T) {
	p := testPlan(t)
	layout, err := p.Layout()
	if err != nil {
		t.Fatal(err)
	}
	for _, left := range [][]string{{}, {lockName}, {lockName, journalName, "model.safetensors"}, {lockName, ManifestName, "config.json"}} {
		out := filepath.Join(t.TempDir(), "out")
		if err := os.Mkdir(Part(out), 0o777); err != nil {
			t.Fatal(err)
		}
		for _, name := range left {
			if err := os.WriteFile(filepath.Join(Part(out), name), []byte("0 12345678\n"), 0o666); err != nil {
				t.Fatal(err)
			}
		}
		f, err := NewFolder(out, layout, p.Tensors, nil, true)
		if err != nil {
			t.Fatalf("%q: %v", left, err)
		}
		if f.Has(0) {
			t.Errorf("%q: a tensor is said to be there", left)
		}
		f.Close()
	}
}

// TestFolderRefused: an attempt that cannot begin leaves nothing.
func TestFolderRefused(t *testing.T) {
	p := testPlan(t)
	layout, err := p.Layout()
	if err != nil {
		t.Fatal(err)
	}
	large := *layout
	large.Bytes = 1 << 62
	out := filepath.Join(t.TempDir(), "out")
	if _, err := NewFolder(out, &large, p.Tensors, nil, false); !errors.Is(err, fault.Machine) {
		t.Errorf("got %v, want too little room on the disk", err)
	}
	if _, err := os.Lstat(Part(out)); err == nil {
		t.Error("a folder is left")
	}
}

// TestIdentity: whatever changes the output changes the identity.
func TestIdentity(t *testing.T) {
	p := testPlan(t)
	identity := func() string {
		t.Helper()
		b, err := p.Identity("1")
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	was := identity()
	if again := identity(); again != was {
		t.Fatalf("got %s and %s", was, again)
	}
	for what, change := range map[string]func(){
		"seed":       func() { p.Options.Seed++ },
		"compat":     func() { p.Options.Compat = true },
		"skips":      func() { p.Options.Skips = true },
		"non-finite": func() { p.Options.NonFinite = true },
		"shards":     func() { p.Options.ShardBytes = 5 },
		"parameter":  func() { p.Tensors[0].Global = map[string]float64{"t": 0.5} },
		"cast":       func() { p.Tensors[0].HasCast = true },
		"input":      func() { p.Tensors[0].Inputs[0].Name = "another" },
		"file": func() {
			if err := os.Chtimes(filepath.Join(p.Models[0].Dir, "model.safetensors"), time.Time{}, time.Unix(1, 0)); err != nil {
				t.Fatal(err)
			}
		},
		"vocabulary": func() { p.Vocabulary = &vocab.Vocabulary{Rows: 3} },
	} {
		change()
		now := identity()
		if now == was {
			t.Errorf("%s: got the same identity", what)
		}
		was = now
	}
	other, err := p.Identity("2")
	if err != nil || string(other) == was {
		t.Errorf("another version: got the same identity, %v", err)
	}
}
