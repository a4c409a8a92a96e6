// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package token

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"slices"
	"testing"

	"pleach/internal/fault"
)

var update = flag.Bool("update", false, "write testdata/ours anew; run testdata/golden.py afterwards")

func trainOurs(t testing.TB, threads int) *Tokenizer {
	t.Helper()
	text, err := os.ReadFile("testdata/corpus.txt")
	if err != nil {
		t.Fatal(err)
	}
	tok, err := Train(slices.Values([][]byte{text}), TrainOptions{Size: 500, Threads: threads})
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

// TestTrainGolden retrains the committed tokenizer, byte for byte: its golden
// file, made with Hugging Face tokenizers, is then about what Train writes.
func TestTrainGolden(t *testing.T) {
	if *update {
		if err := trainOurs(t, 1).Save("testdata/ours"); err != nil {
			t.Fatal(err)
		}
	}
	for _, threads := range []int{1, 2, 5} {
		dir := t.TempDir()
		if err := trainOurs(t, threads).Save(dir); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{nameJSON, nameConfig} {
			got, err1 := os.ReadFile(dir + "/" + name)
			want, err2 := os.ReadFile("testdata/ours/" + name)
			if err1 != nil || err2 != nil || !bytes.Equal(got, want) {
				t.Errorf("%d threads: %s differs from testdata/ours (%v, %v)", threads, name, err1, err2)
			}
		}
		if left, _ := os.ReadDir(dir); len(left) != 2 {
			t.Errorf("Save left %v, want two files", left)
		}
	}
}

func TestTrainErrors(t *testing.T) {
	doc := slices.Values([][]byte{[]byte("text")})
	for _, tt := range []struct {
		opt  TrainOptions
		kind error
		want string
	}{
		{
			TrainOptions{Size: 256},
			fault.Config,
			"token: training: size: got 256 tokens, want 257 (the bytes and the special tokens) to 4194303",
		},
		{
			TrainOptions{Size: 300, Specials: []string{"a", "a"}},
			fault.Config,
			`token: training: special token "a": want UTF-8 text, not empty, each once`,
		},
		{
			TrainOptions{Size: 300, Specials: []string{"\xff"}},
			fault.Config,
			`token: training: special token "\xff": want UTF-8 text, not empty, each once`,
		},
		{
			TrainOptions{Size: 300, Split: "gpt4"},
			fault.Config,
			`token: training: split: got "gpt4", want one of gpt2, llama3, qwen2, o200k`,
		},
		{
			TrainOptions{Size: 300, MaxMemory: 1000},
			fault.Config,
			"token: training: memory: got 1000 bytes, want 16777216 or more",
		},
		{
			TrainOptions{Size: 300, Pieces: &PieceOptions{Coverage: 0.9}},
			fault.Config,
			"token: training: coverage: got 0.9, want 0.98 to 1",
		},
		{
			TrainOptions{Size: 300, Pieces: &PieceOptions{}, Specials: []string{"a▁b"}},
			fault.Config,
			`token: training: special token "a▁b": it has a meaning in a SentencePiece model or is too long`,
		},
		{
			TrainOptions{Size: 262, Pieces: &PieceOptions{Coverage: 1}},
			fault.Config,
			"token: training: size: got 262 tokens, want 263 or more: 4 characters make up 100 % of the text",
		},
	} {
		_, err := Train(doc, tt.opt)
		if err == nil || err.Error() != tt.want || !errors.Is(err, tt.kind) {
			t.Errorf("got %v, want %s", err, tt.want)
		}
	}
	_, err := Train(slices.Values([][]byte{nil}), TrainOptions{Size: 300})
	if !errors.Is(err, fault.Data) {
		t.Errorf("no text: got %v", err)
	}
}

// TestSaveFails: an error of the machine, and what was there stays.
func TestSaveFails(t *testing.T) {
	tok := trainOurs(t, 1)
	dir := t.TempDir()
	file := dir + "/file"
	if err := os.WriteFile(file, []byte("good"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := tok.Save(file); !errors.Is(err, fault.Machine) {
		t.Errorf("a file in the place of the directory: %v", err)
	}
	if err := os.Mkdir(dir+"/"+nameJSON, 0o700); err != nil { // cannot be replaced by a file
		t.Fatal(err)
	}
	if err := tok.Save(dir); !errors.Is(err, fault.Machine) {
		t.Errorf("a directory in the place of the file: %v", err)
	}
	left, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range left {
		if e.Name()[0] == '.' {
			t.Errorf("Save left %s behind", e.Name())
		}
	}
}

// TestTrainProgress: the last call says that all is done.
func TestTrainProgress(t *testing.T) {
	var done, total int
	doc := slices.Values([][]byte{bytes.Repeat([]byte("the hedge and the ditch "), 3)})
	tok, err := Train(doc, TrainOptions{Size: 300, Progress: func(d, t int) { done, total = d, t }})
	if err != nil {
		t.Fatal(err)
	}
	if done != tok.Size() || total != 300 {
		t.Errorf("got %d of %d, want %d of 300", done, total, tok.Size())
	}
	if tok, err = Train(doc, TrainOptions{Size: 300, MinFrequency: 1000}); err != nil || tok.Size() != 257 {
		t.Errorf("with a minimum that no pair reaches: %d tokens, want 257 (%v)", tok.Size(), err)
	}
}

// TestTrainStop: an error of Stop ends the training and is what comes back.
func TestTrainStop(t *testing.T) {
	doc := slices.Values([][]byte{goText(t, 1<<20)})
	for _, pieces := range []*PieceOptions{nil, {}} {
		stop, asked := errors.New("stop"), 0
		_, err := Train(doc, TrainOptions{Size: 3000, Pieces: pieces, Stop: func() error {
			if asked++; asked == 5 {
				return stop
			}
			return nil
		}})
		if err != stop || asked != 5 {
			t.Errorf("got %v after %d questions, want the error of the fifth", err, asked)
		}
	}
}
