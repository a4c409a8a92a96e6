// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"pleach/internal/fault"
)

type textLine struct{ ID, Text string }

// writtenTexts are the lines of the four files.
func writtenTexts(t *testing.T, dir string) (all [2][2][]textLine) {
	t.Helper()
	for side := range all {
		for held := range all[side] {
			text, err := os.ReadFile(filepath.Join(dir, FileName(side, held == 1)))
			if err != nil {
				t.Fatal(err)
			}
			for line := range bytes.Lines(text) {
				var l textLine
				if err := json.Unmarshal(line, &l); err != nil {
					t.Fatal(err)
				}
				all[side][held] = append(all[side][held], l)
			}
		}
	}
	return all
}

func TestGoCorpus(t *testing.T) {
	c, err := goCorpus(goTree(120), "tree")
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "text")
	got, err := c.Write(t.Context(), dir, Quota{Train: 40_000, HeldOut: 3000})
	if err != nil {
		t.Fatal(err)
	}
	all := writtenTexts(t, dir)
	heldOut := map[string]bool{}
	for side := range all {
		for held := range all[side] {
			size := 0
			for _, l := range all[side][held] {
				size += len(l.Text)
				folder := path.Dir(l.ID)
				if was, ok := heldOut[folder]; ok && was != (held == 1) {
					t.Errorf("package %s is both trained on and held out", folder)
				}
				heldOut[folder] = held == 1
				if folder == "x" || strings.Contains(l.ID, "vendor") || strings.Contains(l.ID, "testdata") {
					t.Errorf("%s: want it left out", l.ID)
				}
				if strings.Contains(l.Text, "//") {
					t.Errorf("%s: comment markers in %q", l.ID, l.Text)
				}
			}
			if size != got[side][held] {
				t.Errorf("%s: %d bytes, reported %d", FileName(side, held == 1), size, got[side][held])
			}
		}
	}
	if all[General][0][0].ID != all[Domain][0][0].ID {
		t.Errorf("the texts begin with %s and %s, want the same file", all[General][0][0].ID, all[Domain][0][0].ID)
	}
	again := filepath.Join(t.TempDir(), "text")
	if _, err := c.Write(t.Context(), again, Quota{Train: 40_000, HeldOut: 3000}); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"general.jsonl", "domain.jsonl", "general-heldout.jsonl", "domain-heldout.jsonl"} {
		a, _ := os.ReadFile(filepath.Join(dir, name))
		b, _ := os.ReadFile(filepath.Join(again, name))
		if len(a) == 0 || !bytes.Equal(a, b) {
			t.Errorf("%s is different the second time", name)
		}
	}
}

func TestQuota(t *testing.T) {
	c, err := goCorpus(goTree(120), "tree")
	if err != nil {
		t.Fatal(err)
	}
	got, err := c.Write(t.Context(), filepath.Join(t.TempDir(), "text"), Quota{Train: 20_000, HeldOut: 1000})
	if err != nil {
		t.Fatal(err)
	}
	for side, n := range got {
		if n[0] < 20_000 || n[0] > 20_000+longestDocument || n[1] < 1000 || n[1] > 1000+longestDocument {
			t.Errorf("%s: %v bytes, want little more than 20000 and 1000", Sides()[side], n)
		}
	}
	small, _ := goCorpus(goTree(3), "tree")
	dir := filepath.Join(t.TempDir(), "text")
	if _, err := small.Write(t.Context(), dir, Quota{1 << 20, 1 << 20}); !errors.Is(err, fault.Data) {
		t.Errorf("a tree of three files: %v, want an error of kind data", err)
	}
	if _, err := os.Stat(dir); err == nil {
		t.Error("a folder of texts is there although there were too few")
	}
}

func TestCut(t *testing.T) {
	for _, tt := range []struct {
		s    string
		n    int
		want string
	}{
		{"ab\ncd\n", 6, "ab\ncd\n"},
		{"ab\ncd\n", 5, "ab\n"},
		{"abcdef", 3, "abc"},
		{"äöü", 3, "ä"},
		{"", 3, ""},
	} {
		if got := cut(tt.s, tt.n); got != tt.want {
			t.Errorf("cut(%q, %d) = %q, want %q", tt.s, tt.n, got, tt.want)
		}
	}
}
