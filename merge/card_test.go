// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"archive/zip"
	"crypto/sha256"
	"encoding/hex"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the golden files of this package")

func TestCard(t *testing.T) {
	i := CardInfo{
		Title: "out", Method: "ties", Reference: "arXiv:2306.01708", Base: 2,
		Models: []CardModel{
			{Model: CardInput{Path: "org/one", Revision: "main", Sum: "00ff", Of: "model.safetensors.index.json"}},
			{
				Model:   CardInput{Path: "/a|b/`two`", Sum: "01", Of: "the header of model.safetensors"},
				Adapter: CardInput{Path: "org/lora", Sum: "02", Of: "the header of adapter_model.safetensors"},
			},
			{Model: CardInput{Path: "org/base"}},
			{Model: CardInput{Path: "123"}},
		},
		Config:  []byte("merge_method: ties\nnote: \"```\"\n# ````"),
		Version: "v1.2.3", Mode: "exact", Seed: 42,
	}
	got := Card(i)
	const file = "testdata/card.md"
	if *update {
		if err := os.WriteFile(file, got, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != string(want) {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestCardWithout(t *testing.T) {
	i := CardInfo{Title: "a\nb", Method: "slerp", Reference: "Shoemake 1985", Base: -1, Models: []CardModel{{Model: CardInput{Path: "/x"}}}}
	got := string(Card(i))
	for _, want := range []string{
		"base_model: []\nlibrary_name: transformers\n", "\n# a b\n", "The merge method is `slerp` (Shoemake 1985).\n", "\n- `/x`\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("got\n%s\nwant %q in it", got, want)
		}
	}
	if strings.Contains(got, "SHA-256") {
		t.Errorf("got\n%s\nwant no sums", got)
	}
}

func TestHubName(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.Mkdir("here", 0o700); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]bool{
		"": false, "org/model": true, "gpt2": true, "/org": false, "~/x": false, "a/b/c": false, "here": false, "here/x": true,
	} {
		if got := isHubName(path); got != want {
			t.Errorf("%q: got %v, want %v", path, got, want)
		}
	}
}

func TestReferenceLink(t *testing.T) {
	for ref, want := range map[string]string{
		"arXiv:2306.01708": "https://arxiv.org/abs/2306.01708", "https://huggingface.co/a/b": "https://huggingface.co/a/b",
		"Shoemake 1985": "", "https://x)": "", "arXiv:x": "", "": "",
	} {
		got, ok := referenceLink(ref)
		if ok != (want != "") || ok && got != want {
			t.Errorf("%q: got %q, %v; want %q", ref, got, ok, want)
		}
	}
}

func TestFingerprint(t *testing.T) {
	sum := func(s string) string { h := sha256.Sum256([]byte(s)); return hex.EncodeToString(h[:]) }
	header := "\x03\x00\x00\x00\x00\x00\x00\x00{ }"
	for _, c := range []struct {
		name   string
		files  map[string]string
		of     string
		hashed string
	}{
		{"shards", map[string]string{"model.safetensors.index.json": "{}", "model.safetensors": "x"}, "model.safetensors.index.json", "{}"},
		{"one file", map[string]string{"model.safetensors": header + "data"}, "the header of model.safetensors", header},
		{"an adapter", map[string]string{"adapter_model.safetensors": header}, "the header of adapter_model.safetensors", header},
	} {
		got, of, err := Fingerprint(folder(t, c.files))
		if err != nil || of != c.of || got != sum(c.hashed) {
			t.Errorf("%s: got %q of %q, %v; want %q of %q", c.name, got, of, err, sum(c.hashed), c.of)
		}
	}
	dir := t.TempDir()
	f, err := os.Create(filepath.Join(dir, "pytorch_model.bin"))
	if err != nil {
		t.Fatal(err)
	}
	z := zip.NewWriter(f)
	w, _ := z.Create("a/data.pkl")
	if _, err := w.Write([]byte("123456789")); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	f.Close()
	got, of, err := Fingerprint(dir)
	if err != nil || of != "the parts of pytorch_model.bin" || got != sum("\"a/data.pkl\" 9 cbf43926\n") {
		t.Errorf("an archive: got %q of %q, %v", got, of, err)
	}
	for _, c := range []map[string]string{
		{},
		{"model.safetensors": "123"},
		{"model.safetensors": header[:9]},
		{"model.safetensors": "\xff\xff\xff\xff\xff\xff\xff\xff"},
		{"pytorch_model.bin": "no zip"},
	} {
		if got, _, err := Fingerprint(folder(t, c)); err == nil {
			t.Errorf("%v: got %q, want an error", c, got)
		}
	}
}
