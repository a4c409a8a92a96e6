// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package token

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// goText is Go code from the tree of the compiler that runs the test, which is
// always there: about n bytes, whole files.
func goText(t testing.TB, n int) []byte {
	t.Helper()
	var b []byte
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		t.Skipf("no go command: %v", err)
	}
	files, _ := filepath.Glob(filepath.Join(strings.TrimSpace(string(root)), "src/*/*.go"))
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		if b = append(b, text...); len(b) >= n {
			return b
		}
	}
	if len(b) < n/2 {
		t.Skipf("no Go source under %s", root)
	}
	return b
}

// english is text of the shared data, or Go code where that is absent.
func english(t testing.TB) []byte {
	if b, err := os.ReadFile(filepath.Join(os.Getenv("PLEACH_TESTDATA"), "wikitext2/valid.txt")); err == nil {
		return b
	}
	return goText(t, 1<<20)
}

func benchEncode(b *testing.B, tok *Tokenizer, text []byte) {
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	var ids []int32
	for b.Loop() {
		ids = tok.Encode(ids[:0], text)
	}
	b.ReportMetric(float64(len(text))/float64(len(ids)), "bytes/token")
}

func BenchmarkEncode(b *testing.B) {
	en := english(b)
	trained, err := Train(slices.Values([][]byte{en}), TrainOptions{Size: 16384})
	if err != nil {
		b.Fatal(err)
	}
	b.Run("bytelevel16k/english", func(b *testing.B) { benchEncode(b, trained, en) })
	b.Run("bytelevel16k/code", func(b *testing.B) { benchEncode(b, trained, goText(b, 1<<20)) })
	for _, name := range []string{"llama3.json", "qwen2.json", "other.json", "llama2.json", "piece.model"} {
		b.Run(name+"/english", func(b *testing.B) { benchEncode(b, mustOpen(b, "testdata/"+name), en) })
	}
	long := []byte(strings.ReplaceAll(strings.Repeat("thehedgewaslaid", 70000), " ", ""))
	b.Run("llama2.json/nospace", func(b *testing.B) { benchEncode(b, mustOpen(b, "testdata/llama2.json"), long) })
	b.Run("gpt2.json/nospace", func(b *testing.B) { benchEncode(b, mustOpen(b, "testdata/gpt2.json"), long) })
	if data := os.Getenv("PLEACH_TESTDATA"); data != "" {
		tok := mustOpen(b, filepath.Join(data, "tokenizers/llama2.model"))
		b.Run("llama2.model/english", func(b *testing.B) { benchEncode(b, tok, en) })
		b.Run("llama2.model/nospace", func(b *testing.B) { benchEncode(b, tok, long) })
		lines := bytes.SplitAfter(en, []byte("\n"))
		b.Run("llama2.model/lines", func(b *testing.B) {
			b.SetBytes(int64(len(en)))
			b.ReportAllocs()
			var ids []int32
			for b.Loop() {
				for _, l := range lines {
					ids = tok.Encode(ids[:0], l)
				}
			}
		})
	}
}

func BenchmarkDecode(b *testing.B) {
	en := english(b)
	tok := mustOpen(b, "testdata/llama3.json")
	ids := tok.Encode(nil, en)
	b.SetBytes(int64(len(en)))
	for b.Loop() {
		tok.Decode(ids)
	}
}

func BenchmarkScan(b *testing.B) {
	en := english(b)
	t := classes()
	for name, scan := range map[string]scanner{"gpt2": scanGPT2, "llama3": scanLlama3} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(en)))
			for b.Loop() {
				for i := 0; i < len(en); {
					i = scan(t, en, i)
				}
			}
		})
	}
}

func BenchmarkTrain(b *testing.B) {
	text := goText(b, 5<<20)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		if _, err := Train(slices.Values([][]byte{text}), TrainOptions{Size: 4096}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkOpen(b *testing.B) {
	dir := b.TempDir()
	tok, err := Train(slices.Values([][]byte{english(b)}), TrainOptions{Size: 16384})
	if err != nil {
		b.Fatal(err)
	}
	if err := tok.Save(dir); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		mustOpen(b, dir)
	}
}

// BenchmarkUnigram is the small unigram model of SentencePiece's own tests.
func BenchmarkUnigram(b *testing.B) {
	data := os.Getenv("PLEACH_TESTDATA")
	if data == "" {
		b.Skip("PLEACH_TESTDATA is not set: no unigram model")
	}
	tok := mustOpen(b, filepath.Join(data, "tokenizers/sentencepiece_en_unigram_1000.model"))
	for _, name := range []string{"wikitext2/valid.txt", "tokenizers/botchan.txt"} {
		text, err := os.ReadFile(filepath.Join(data, name))
		if err != nil {
			b.Fatal(err)
		}
		b.Run(name, func(b *testing.B) { benchEncode(b, tok, text) })
		lines := bytes.Split(text, []byte("\n"))
		b.Run(name+"/lines", func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			var ids []int32
			for b.Loop() {
				for _, l := range lines {
					ids = tok.Encode(ids[:0], l)
				}
			}
		})
	}
}
