// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"pleach/internal/fault"
)

// writeTree writes files into a new folder.
func writeTree(t *testing.T, files map[string]string) string {
	t.Helper()
	dir, tree := t.TempDir(), fstest.MapFS{}
	for name, text := range files {
		tree[name] = &fstest.MapFile{Data: []byte(text), Mode: 0o666}
	}
	if err := os.CopyFS(dir, tree); err != nil {
		t.Fatal(err)
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
