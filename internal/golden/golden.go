// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package golden

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

// Dir is the absolute path of testdata/name of this package; name is separated
// by slashes. It does not look whether anything is there.
//
// The path comes from where this file was compiled. A build with -trimpath does
// not know that; then the working directory and its parents are searched for
// go.mod, which finds the tree from the folder of any package under test.
func Dir(name string) string {
	return filepath.Join(root(), filepath.FromSlash(name))
}

func root() string {
	if _, file, _, ok := runtime.Caller(0); ok && filepath.IsAbs(file) {
		return filepath.Join(filepath.Dir(file), "testdata")
	}
	wd, err := os.Getwd()
	if err != nil {
		return "testdata"
	}
	for d := wd; ; d = filepath.Dir(d) {
		if _, err := os.Stat(filepath.Join(d, "go.mod")); err == nil {
			return filepath.Join(d, "internal", "golden", "testdata")
		}
		if d == filepath.Dir(d) {
			return filepath.Join(wd, "testdata")
		}
	}
}

// Cases are the absolute paths of the folders in testdata/name, sorted. There
// is at least one, or the test fails.
func Cases(t testing.TB, name string) []string {
	t.Helper()
	entries, err := os.ReadDir(Dir(name))
	if err != nil {
		t.Fatalf("golden: %v", err)
	}
	var dirs []string
	for _, e := range entries {
		if e.IsDir() {
			dirs = append(dirs, filepath.Join(Dir(name), e.Name()))
		}
	}
	if len(dirs) == 0 {
		t.Fatalf("golden: %s: got no case, want some", Dir(name))
	}
	return dirs
}

// ReadLines reads a file of one JSON value a line. Keys that T does not have
// are skipped. It fails the test with file and line if a line does not parse,
// and if there is none.
func ReadLines[T any](t testing.TB, path string) []T {
	t.Helper()
	text := read(t, path)
	var out []T
	n := 0
	for line := range bytes.Lines(text) {
		n++
		var v T
		if err := json.Unmarshal(line, &v); err != nil {
			t.Fatalf("golden: %s:%d: %v", path, n, err)
		}
		out = append(out, v)
	}
	if n == 0 {
		t.Fatalf("golden: %s: got no line, want some", path)
	}
	return out
}

// ReadJSON reads a file that is one JSON value, as [ReadLines] does a line.
func ReadJSON[T any](t testing.TB, path string) T {
	t.Helper()
	var v T
	if err := json.Unmarshal(read(t, path), &v); err != nil {
		t.Fatalf("golden: %s: %v", path, err)
	}
	return v
}

func read(t testing.TB, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("golden: %v", err)
	}
	return text
}
