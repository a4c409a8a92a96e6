// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package blob

import (
	"os"
	"path/filepath"
	"testing"
)

func TestHubSnapshot(t *testing.T) {
	cache := t.TempDir()
	commit := filepath.Join(cache, "models--org--name", "snapshots", "abc123")
	for _, dir := range []string{commit, filepath.Join(cache, "models--org--name", "refs", "pr")} {
		if err := os.MkdirAll(dir, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range map[string]string{"main": "abc123\n", "pr/1": "def456", "out": "../../.."} {
		if err := os.WriteFile(filepath.Join(cache, "models--org--name", "refs", name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	for _, revision := range []string{"", "main", "abc123"} {
		if got, err := HubSnapshot(cache, "org/name", revision); err != nil || got != commit {
			t.Errorf("revision %q: got %q, %v, want %q", revision, got, err, commit)
		}
	}
	for _, bad := range [][2]string{
		{"org/other", ""}, {"org/name", "v2"}, {"org/name", "pr/1"}, {"org/name", "out"}, {"org/name", "../.."}, {"../org", ""}, {"/org/name", ""}, {"a/b/c", ""},
	} {
		if got, err := HubSnapshot(cache, bad[0], bad[1]); err == nil {
			t.Errorf("%v: got %q, want an error", bad, got)
		}
	}
}

func TestHubCache(t *testing.T) {
	t.Setenv("HF_HUB_CACHE", "")
	t.Setenv("HF_HOME", "/h")
	if got := HubCache(); got != filepath.Join("/h", "hub") {
		t.Errorf("got %q", got)
	}
	t.Setenv("HF_HUB_CACHE", "/c")
	if got := HubCache(); got != "/c" {
		t.Errorf("got %q", got)
	}
}
