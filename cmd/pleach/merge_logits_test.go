// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pleach/internal/golden"
)

// mergedIn runs pleach merge on a configuration, whose models are relative to dir, and
// gives the folder of the output.
func mergedIn(t *testing.T, dir, config string, flags ...string) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), "out")
	t.Chdir(dir)
	var stdout, stderr bytes.Buffer
	args := append([]string{"merge", config, out, "--quiet"}, flags...)
	if code := run(args, &stdout, &stderr); code != 0 {
		t.Fatalf("pleach %s: exit code %d: %s", strings.Join(args, " "), code, &stderr)
	}
	return out
}

// scored is what pleach score prints for the rows of a file, given as text or as ids.
func scored(t *testing.T, model, rows string) []printedRow {
	t.Helper()
	var stdout, stderr bytes.Buffer
	if code := run([]string{"score", model, rows}, &stdout, &stderr); code != 0 {
		t.Fatalf("pleach score: exit code %d: %s", code, &stderr)
	}
	file := filepath.Join(t.TempDir(), "got.jsonl")
	if err := os.WriteFile(file, stdout.Bytes(), 0o666); err != nil {
		t.Fatal(err)
	}
	return golden.ReadLines[printedRow](t, file)
}

// textOnly copies rows without their ids, so that the tokenizer of the model has to
// find these.
func textOnly(t *testing.T, rows string) string {
	t.Helper()
	b, err := os.ReadFile(rows)
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	for line := range strings.Lines(string(b)) {
		head, _, ok := strings.Cut(line, `, "tokens":`)
		if !ok {
			t.Fatalf("%s: got line %q, want a text and its ids", rows, line)
		}
		text.WriteString(head + "}\n")
	}
	file := filepath.Join(t.TempDir(), "text.jsonl")
	if err := os.WriteFile(file, []byte(text.String()), 0o666); err != nil {
		t.Fatal(err)
	}
	return file
}

// TestMergedLogits scores merges with the tokenizer that they got, and compares with
// transformers, which had the same merges made in PyTorch.
func TestMergedLogits(t *testing.T) {
	dir := filepath.Join(mergeTestdata(), "logits")
	cases, err := os.ReadDir(filepath.Join(dir, "cases"))
	if err != nil || len(cases) < 8 {
		t.Fatalf("got %d cases and error %v, want 8 or more", len(cases), err)
	}
	for _, c := range cases {
		t.Run(c.Name(), func(t *testing.T) {
			in := filepath.Join(dir, "cases", c.Name())
			want := golden.ReadLines[golden.Score](t, filepath.Join(in, "want.jsonl"))
			rows := filepath.Join(in, "rows.jsonl")
			for _, flags := range [][]string{nil, {"--out-shard-size", "20k", "--threads", "1"}} {
				out := mergedIn(t, dir, filepath.Join(in, "config.yml"), flags...)
				got := scored(t, out, textOnly(t, rows))
				if len(got) != len(want) {
					t.Fatalf("got %d rows, want %d", len(got), len(want))
				}
				for i, w := range want {
					if err := golden.NearAll(got[i].LogProbs, w.LogProbs, golden.Tol{Abs: 1e-4}); err != nil {
						t.Errorf("%v: row %d: %v", flags, i, err)
					}
				}
			}
		})
	}
}

// TestMergedFiles checks that a merge keeps what a model needs besides its weights.
func TestMergedFiles(t *testing.T) {
	dir := filepath.Join(mergeTestdata(), "logits")
	for name, donor := range map[string]string{"slerp-bf16": "a-bf16", "ties-f32": "base-f32", "stack-f32": "a-f32"} {
		out := mergedIn(t, dir, filepath.Join(dir, "cases", name, "config.yml"))
		for _, file := range []string{
			"tokenizer.json", "tokenizer_config.json", "chat_template.jinja", "generation_config.json",
		} {
			got, err := os.ReadFile(filepath.Join(out, file))
			if err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			want, err := os.ReadFile(filepath.Join(dir, "models", donor, file))
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got, want) {
				t.Errorf("%s: %s is another one than that of %s", name, file, donor)
			}
		}
	}
}
