// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"pleach/data"
	"pleach/internal/fault"
	"pleach/internal/unit"
	"pleach/token"
)

// vocabulary is what tokenizer train is told.
type vocabulary struct {
	compute
	size, min int
	out       string
	field     string
	kind      string
	split     string
	specials  []string
	memory    string
	pieces    token.PieceOptions
	prefix    bool

	options token.TrainOptions
}

// Kinds of tokenizers.
const (
	kindBytes  = "byte-level"
	kindPieces = "sentencepiece"
)

func kinds() []string { return []string{kindBytes, kindPieces} }

func newTokenizerTrain() *cobra.Command {
	var o vocabulary
	c := &cobra.Command{
		Use:   "train FILES… --size N --out DIR",
		Short: "Learn a BPE tokenizer from texts",
		Long: `Train learns N tokens from text files, JSONL files and folders of them, and writes
them into DIR. The special tokens come first.

  byte-level     BPE over bytes, as GPT-2, Llama 3 and Qwen 2 have it: tokenizer.json, the
                 same that the BpeTrainer of Hugging Face tokenizers makes
  sentencepiece  BPE over characters with bytes for the rare ones, as Llama 2 has it:
                 tokenizer.model, the pieces that SentencePiece makes of the same lines

Hugging Face tokenizers and transformers load DIR, SentencePiece the model. Memory
depends on the number of different words, not on the size of the texts; beyond
--max-memory the rarest words are left out, and it says how many.`,
		Example: `  pleach tokenizer train corpus/ more.jsonl --size 8192 --out tokenizer
  pleach tokenizer train corpus/ --size 32000 --split llama3 --special "<|begin_of_text|>" \
    --special "<|end_of_text|>" --out tokenizer
  pleach tokenizer train corpus/ --size 32000 --kind sentencepiece --split-digits --out tokenizer`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error { return o.run(c, args) },
	}
	o.flags(c)
	c.Flags().IntVar(&o.size, "size", 0, "tokens to learn, with 256 bytes and the special ones")
	c.Flags().StringVar(&o.out, "out", "", "folder to write to, empty or new")
	c.Flags().StringVar(&o.field, "field", "text", "of a JSONL line, the text")
	c.Flags().StringVar(&o.kind, "kind", kindBytes, "what to make: "+strings.Join(kinds(), ", "))
	c.Flags().StringVar(&o.split, "split", token.Splits()[0],
		"of byte-level, the pattern that parts words: "+strings.Join(token.Splits(), ", "))
	c.Flags().IntVar(&o.min, "min-frequency", 2, "how often a pair must occur to become a token")
	c.Flags().StringArrayVar(&o.specials, "special", nil,
		`a special token; may be repeated (default of byte-level "<|endoftext|>"; sentencepiece has <unk>, <s> and </s> besides)`)
	c.Flags().StringVar(&o.memory, "max-memory", "1 GiB", "what words and pairs may take, about")
	c.Flags().Float64Var(&o.pieces.Coverage, "coverage", 0.9995,
		"of sentencepiece, the part of the text whose characters become tokens, 0.98 to 1")
	c.Flags().BoolVar(&o.pieces.SplitDigits, "split-digits", false, "of sentencepiece, each digit is a token of its own")
	c.Flags().BoolVar(&o.prefix, "dummy-prefix", true, "of sentencepiece, a space goes in front of each text")
	return c
}

func (o *vocabulary) run(c *cobra.Command, files []string) error {
	if err := o.parse(c); err != nil {
		return err
	}
	if err := emptyFolder(o.out); err != nil {
		return err
	}
	t, err := o.train(c, files)
	if err == nil {
		err = interrupted(c.Context())
	}
	if err != nil {
		return err
	}
	if err := t.Save(o.out); err != nil {
		return fault.As(fault.Machine, err)
	}
	if t.Size() < o.size {
		fmt.Fprintf(c.ErrOrStderr(), "got %d tokens: the texts have no more pairs that occur %d times\n",
			t.Size(), o.min)
	}
	fmt.Fprintf(c.ErrOrStderr(), "%s: %d tokens\n", o.out, t.Size())
	return nil
}

// emptyFolder refuses a folder that holds something.
func emptyFolder(dir string) error {
	entries, err := os.ReadDir(dir)
	if err == nil && len(entries) > 0 {
		return fault.Statef("%s: it holds files, want an empty or a new folder", dir)
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fault.Machinef("%w", err)
	}
	return nil
}

// parse checks the flags and makes options of them.
func (o *vocabulary) parse(c *cobra.Command) error {
	if o.size == 0 || o.out == "" {
		return errUsage(c, "want --size N and --out DIR")
	}
	if o.min < 1 {
		return errUsage(c, "--min-frequency: got %d, want 1 or more", o.min)
	}
	for _, f := range []struct {
		name, got string
		want      []string
	}{{"kind", o.kind, kinds()}, {"split", o.split, token.Splits()}} {
		if !slices.Contains(f.want, f.got) {
			return errUsage(c, "--%s: got %q, want one of %s", f.name, f.got, strings.Join(f.want, ", "))
		}
	}
	var memory unit.Bytes
	if err := memory.UnmarshalText([]byte(o.memory)); err != nil {
		return errUsage(c, "--max-memory: %v", err)
	}
	if least := unit.Bytes(token.LeastMemory); memory < least {
		return errUsage(c, "--max-memory: got %v, want %v or more", memory, least)
	}
	if err := o.check(c); err != nil {
		return err
	}
	o.options = token.TrainOptions{
		Size: o.size, Specials: o.specials, MinFrequency: o.min, Threads: o.threads, MaxMemory: int64(memory),
	}
	if o.kind == kindPieces {
		return o.parsePieces(c)
	}
	return o.parseBytes(c)
}

func (o *vocabulary) parseBytes(c *cobra.Command) error {
	for _, name := range []string{"coverage", "split-digits", "dummy-prefix"} {
		if c.Flags().Changed(name) {
			return errUsage(c, "--%s is of --kind %s", name, kindPieces)
		}
	}
	o.options.Split = o.split
	return o.checkSize(c, 256+max(1, len(o.specials)), "bytes and special tokens")
}

func (o *vocabulary) parsePieces(c *cobra.Command) error {
	if c.Flags().Changed("split") {
		return errUsage(c, "--split is of --kind %s", kindBytes)
	}
	if !(o.pieces.Coverage >= 0.98 && o.pieces.Coverage <= 1) {
		return errUsage(c, "--coverage: got %v, want 0.98 to 1", o.pieces.Coverage)
	}
	o.pieces.NoPrefix = !o.prefix
	o.options.Pieces = &o.pieces
	return o.checkSize(c, 259+len(o.specials), "bytes and special tokens, without characters")
}

func (o *vocabulary) checkSize(c *cobra.Command, least int, what string) error {
	if o.size < least || o.size > token.MaxSize {
		return errUsage(c, "--size: got %d, want %d (%s) to %d", o.size, least, what, token.MaxSize)
	}
	return nil
}

func (o *vocabulary) train(c *cobra.Command, files []string) (*token.Tokenizer, error) {
	show := newMeter(c.ErrOrStderr())
	defer show.erase()
	from, err := newReach(c.Context(), c.ErrOrStderr())
	if err != nil {
		return nil, err
	}
	defer from.close()
	var broken error
	total, read, count := sizeOf(files), int64(0), int64(0)
	docs := func(yield func([]byte) bool) {
		for d, err := range data.Documents(data.Source{Paths: files, Access: from.Access, Field: o.field}) {
			if err == nil && d.IDs != nil {
				err = fault.Dataf("%s: a list of ids, want text", d.ID)
			}
			if err == nil {
				err = interrupted(c.Context())
			}
			if broken = err; err != nil || !yield(d.Text) {
				return
			}
			read, count = read+int64(len(d.Text)), count+1
			show.say("reading: %s documents, %.0f MB%s", amount(float64(count)), float64(read)/1e6, show.left(read, total))
		}
	}
	var learning meter
	o.options.Progress = func(done, total int) {
		if learning.screen == nil {
			learning = meter{screen: show.screen, began: time.Now()}
		}
		show.say("learning: %d of %d tokens%s", done, total, learning.left(int64(done), int64(total)))
	}
	o.options.Stop = func() error {
		if broken != nil {
			return broken // the documents ended before their end
		}
		return interrupted(c.Context())
	}
	o.options.Pruned = func(p token.Pruning) {
		if broken != nil {
			return
		}
		show.screen.say("too many different words for --max-memory %s: left out %s of the rarest, which occurred %s times; "+
			"no count of the others is too low by more than %d", o.memory, amount(float64(p.Words)), amount(float64(p.Occurrences)), p.Low)
	}
	// Half the garbage that Go allows by itself: it takes no longer, since most of
	// what training holds has no pointers to follow.
	defer debug.SetGCPercent(debug.SetGCPercent(50))
	t, err := token.Train(docs, o.options)
	if broken != nil {
		return nil, broken
	}
	return t, err
}

// left says how long the rest of a whole will take, if the whole is known.
func (m *meter) left(done, whole int64) string {
	if done <= 0 || whole <= done {
		return ""
	}
	seconds := time.Since(m.began).Seconds() / float64(done) * float64(whole-done)
	return fmt.Sprintf(" (%.0f %%, %s left)", 100*float64(done)/float64(whole), clock(seconds))
}

// sizeOf is the bytes of files and of all in folders, 0 if not all are there.
func sizeOf(files []string) int64 {
	size := int64(0)
	for _, f := range files {
		err := filepath.WalkDir(f, func(_ string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			info, err := d.Info()
			if err == nil && info.Mode().IsRegular() {
				size += info.Size()
			}
			return err
		})
		if err != nil {
			return 0
		}
	}
	return size
}
