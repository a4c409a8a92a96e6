// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

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

// writeTree writes files into a new folder.
func writeTree(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestUserCorpus(t *testing.T) {
	prose := strings.Repeat("Some words of general interest, and none of them about anything.\n", 1000)
	lines := strings.Repeat(`{"text": "`+strings.Repeat("the domain of a line of JSON ", 10)+`"}`+"\n", 400)
	dir := writeTree(t, map[string]string{
		"a/one.txt": prose, "b/two.jsonl": lines, "b/picture.png": "\x89PNG\r\n\x1a\n\x00\x00", ".hidden/x": "x",
	})
	for name, texts := range map[string][]string{
		"two paths":  {filepath.Join(dir, "a"), filepath.Join(dir, "b", "two.jsonl")},
		"one folder": {dir},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := userCorpus(texts)
			if err != nil {
				t.Fatal(err)
			}
			out := filepath.Join(t.TempDir(), "text")
			if _, err := c.Write(t.Context(), out, Quota{50_000, 2000}); err != nil {
				t.Fatal(err)
			}
			all := writtenTexts(t, out)
			for side, word := range []string{"general interest", "a line of JSON"} {
				for _, l := range append(all[side][0], all[side][1]...) {
					if !strings.Contains(l.Text, word) || len(l.Text) > pieceSize || !utf8.ValidString(l.Text) {
						t.Fatalf("%s: %s: %d bytes: %.40q, want %q in it", Sides()[side], l.ID, len(l.Text), l.Text, word)
					}
				}
			}
			again := filepath.Join(t.TempDir(), "text")
			if _, err := c.Write(t.Context(), again, Quota{50_000, 2000}); err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(all, writtenTexts(t, again)); d != "" {
				t.Errorf("the second time it is another text (-first +second):\n%s", d)
			}
			seen := map[string]bool{}
			for _, l := range append(all[General][0], all[General][1]...) {
				if seen[l.ID] {
					t.Errorf("piece %s stands twice", l.ID)
				}
				seen[l.ID] = true
			}
		})
	}
}

func TestSidesOf(t *testing.T) {
	dir := writeTree(t, map[string]string{"abc/x": "", "general.txt": "", "zzz/x": ""})
	both := writeTree(t, map[string]string{"a": "", "domain/x": "", "z": ""})
	first := writeTree(t, map[string]string{"a": "", "b": "", "c": ""})
	one := writeTree(t, map[string]string{"a": ""})
	for _, tt := range []struct {
		name  string
		texts []string
		want  [2][]string
		err   string
	}{
		{"two", []string{"x", "y"}, [2][]string{{"x"}, {"y"}}, ""},
		{"general by name", []string{dir}, [2][]string{{dir + "/general.txt"}, {dir + "/abc", dir + "/zzz"}}, ""},
		{"domain by name", []string{both}, [2][]string{{both + "/a", both + "/z"}, {both + "/domain"}}, ""},
		{"the first", []string{first}, [2][]string{{first + "/a"}, {first + "/b", first + "/c"}}, ""},
		{"three", []string{"x", "y", "z"}, [2][]string{}, "got 3, want two"},
		{"one entry", []string{one}, [2][]string{}, "has 1 entries, want two"},
		{"a file", []string{one + "/a"}, [2][]string{}, "is no folder of two texts"},
		{"nothing", []string{one + "/none"}, [2][]string{}, "no such file"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := sidesOf(tt.texts)
			if tt.err != "" {
				if fault.Exit(err) != 2 || !strings.Contains(err.Error(), tt.err) {
					t.Fatalf("got %v, want exit code 2 and %q", err, tt.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			for side := range got {
				if strings.Join(got[side], " ") != strings.Join(tt.want[side], " ") {
					t.Errorf("%s: got %v, want %v", Sides()[side], got[side], tt.want[side])
				}
			}
		})
	}
}

func TestDocumentation(t *testing.T) {
	files := map[string]string{}
	guide := strings.Repeat("A guide to what one would rather not know.\n", 400)
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	if _, err := z.Write([]byte(strings.Repeat(".SH NAME\nthing \\- does things of all kinds\n", 500))); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	for i := range 120 {
		name := "p" + strings.Repeat("x", i)
		files["doc/"+name+"/README"] = guide
		files["man/man1/"+name+".1"] = strings.Repeat(".SH NAME\nthing \\- does things\n", 400)
	}
	files["man/man1/packed.1.gz"] = packed.String()
	files["doc/p/broken.1.gz"] = "no gzip"
	dir := writeTree(t, files)
	c := documentation([]string{dir, "/does/not/exist"})
	if c == nil || c.Names != [2]string{"guides", "manual pages"} {
		t.Fatalf("got %+v, want guides and manual pages", c)
	}
	out := filepath.Join(t.TempDir(), "text")
	got, err := c.Write(t.Context(), out, Quota{1 << 30, 1 << 30})
	if err != nil {
		t.Fatal(err)
	}
	for side, n := range got {
		if n[1] == 0 || n[1] > n[0]/4 {
			t.Errorf("%s: %v bytes: want about a twentieth held out", Sides()[side], n)
		}
	}
	if documentation([]string{t.TempDir()}) != nil {
		t.Error("an empty folder is documentation")
	}
}
