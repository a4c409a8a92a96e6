// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package token

import (
	"bytes"
	"fmt"
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
	code := goText(b, 1<<20)
	b.Run("bytelevel16k/code", func(b *testing.B) { benchEncode(b, trained, code) })
	for _, name := range []string{"llama3.json", "qwen2.json", "other.json", "llama2.json", "piece.model"} {
		b.Run(name+"/english", func(b *testing.B) { benchEncode(b, mustOpen(b, "testdata/"+name), en) })
	}
	long := []byte(strings.ReplaceAll(strings.Repeat("thehedgewaslaid", 70000), " ", ""))
	b.Run("llama2.json/nospace", func(b *testing.B) { benchEncode(b, mustOpen(b, "testdata/llama2.json"), long) })
	b.Run("gpt2.json/nospace", func(b *testing.B) { benchEncode(b, mustOpen(b, "testdata/gpt2.json"), long) })
	if data := os.Getenv("PLEACH_TESTDATA"); data != "" {
		tok := mustOpen(b, filepath.Join(data, "tokenizers/llama2.model"))
		b.Run("llama2.model/english", func(b *testing.B) { benchEncode(b, tok, en) })
		b.Run("llama2.model/code", func(b *testing.B) { benchEncode(b, tok, code) })
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

// BenchmarkScan is the splitting alone: encoding takes at least that.
func BenchmarkScan(b *testing.B) {
	t := classes()
	piece := mustOpen(b, "testdata/piece.model")
	piece.Encode(nil, []byte("x"))
	for name, text := range map[string][]byte{"english": english(b), "code": goText(b, 1<<20)} {
		for kind, scan := range map[string]scanner{
			"gpt2": scanGPT2, "llama3": scanLlama3, "o200k": scanO200k, "piece": piece.sp.model.split,
		} {
			b.Run(kind+"/"+name, func(b *testing.B) {
				b.SetBytes(int64(len(text)))
				words := 0
				for b.Loop() {
					words = 0
					for i := 0; i < len(text); words++ {
						i = scan(t, text, i)
					}
				}
				b.ReportMetric(float64(len(text))/float64(words), "bytes/word")
			})
		}
	}
}

func BenchmarkTrain(b *testing.B) {
	code := goText(b, 5<<20)
	for name, o := range map[string]TrainOptions{
		"bytelevel":     {Size: 16384},
		"sentencepiece": {Size: 16384, Pieces: &PieceOptions{}},
	} {
		for _, threads := range []int{1, 2} {
			o.Threads = threads
			b.Run(fmt.Sprintf("%s/threads%d", name, threads), func(b *testing.B) {
				b.SetBytes(int64(len(code)))
				b.ReportAllocs()
				for b.Loop() {
					if _, err := Train(slices.Values([][]byte{code}), o); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

// BenchmarkCount is the part of training that depends on the size of the corpus.
func BenchmarkCount(b *testing.B) {
	code := goText(b, 5<<20)
	for name, o := range map[string]TrainOptions{"gpt2": {}, "llama3": {Split: "llama3"}, "lines": {Pieces: &PieceOptions{}}} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(code)))
			for b.Loop() {
				countWords(slices.Values([][]byte{code}), 1, defaultMemory, o.splitter())
			}
		})
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
