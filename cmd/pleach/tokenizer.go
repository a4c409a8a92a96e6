// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"pleach/internal/fault"
	"pleach/token"
)

func newTokenizer() *cobra.Command {
	c := &cobra.Command{
		Use:   "tokenizer",
		Short: "Train, try and look at tokenizers",
		Long: `A TOKENIZER is a directory, in which tokenizer.json wins over tokenizer.model, or a
file of any name that is one of the two.`,
		Example: `  pleach tokenizer train corpus/ --size 8192 --out tokenizer
  pleach tokenizer encode tokenizer "Once upon a time"`,
	}
	c.AddCommand(newTokenizerTrain(), newTokenizerEncode(), newTokenizerDecode(), newTokenizerInspect())
	return c
}

func newTokenizerEncode() *cobra.Command {
	var file string
	var special bool
	c := &cobra.Command{
		Use:   "encode TOKENIZER [TEXT | --jsonl FILE]",
		Short: "Text to ids, one JSON list a line",
		Long: `Encode prints the ids of TEXT, or of each line of a file that holds a JSON string a
line ("-": stdin), or else of all of stdin as one text.`,
		Example: `  pleach tokenizer encode llama-2-7b "Once upon a time" --special
  pleach tokenizer encode tokenizer < chapter.txt
  pleach tokenizer encode tokenizer --jsonl texts.jsonl`,
		Args: cobra.RangeArgs(1, 2),
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) == 2 && file != "" {
				return errUsage(c, "got a text and --jsonl, want one of them")
			}
			t, err := openTokenizer(args[0])
			if err != nil {
				return err
			}
			encode := t.Encode
			if special {
				encode = t.EncodeSpecial
			}
			if err := encodeTexts(c, encode, args[1:], file); err != nil {
				return err
			}
			return t.Err()
		},
	}
	c.Flags().StringVar(&file, "jsonl", "", "a file with a JSON string a line")
	c.Flags().BoolVar(&special, "special", false, "with the tokens that the tokenizer puts around a text")
	return c
}

// openTokenizer takes what [token.Open] takes.
func openTokenizer(path string) (*token.Tokenizer, error) {
	t, err := token.Open(path)
	return t, fault.As(fault.Data, err)
}

func encodeTexts(c *cobra.Command, encode func([]int32, []byte) []int32, args []string, file string) error {
	out := bufio.NewWriter(c.OutOrStdout())
	print := func(text []byte) error { return printJSON(out, encode([]int32{}, text)) }
	if file == "" {
		text, err := argOrStdin(c, args)
		if err == nil {
			err = print(text)
		}
		return errors.Join(err, printed(out.Flush()))
	}
	err := eachLine(c, file, func(l line) error {
		var s string
		if err := l.parse(&s); err != nil {
			return err
		}
		return print([]byte(s))
	})
	return errors.Join(err, printed(out.Flush()))
}

func argOrStdin(c *cobra.Command, args []string) ([]byte, error) {
	if len(args) > 0 {
		return []byte(args[0]), nil
	}
	text, err := io.ReadAll(c.InOrStdin())
	if err != nil {
		return nil, fault.Dataf("stdin: %w", err)
	}
	return text, nil
}

// eachLine calls f with the lines of a file, up to the first error.
func eachLine(c *cobra.Command, file string, f func(line) error) error {
	for l, err := range lines(file, c.InOrStdin()) {
		if err == nil {
			err = interrupted(c.Context())
		}
		if err == nil {
			err = f(l)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func newTokenizerDecode() *cobra.Command {
	var file string
	c := &cobra.Command{
		Use:   "decode TOKENIZER [ID… | --jsonl FILE]",
		Short: "Ids to text",
		Long: `Decode prints the text of ids, special tokens included. Ids on the command line give
the text as it is; a file with a JSON list of ids a line, or else stdin, gives a
JSON string a line.`,
		Example: `  pleach tokenizer decode llama-2-7b 9038 2501 263 931
  pleach tokenizer encode tokenizer --jsonl texts.jsonl | pleach tokenizer decode tokenizer`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) > 1 && file != "" {
				return errUsage(c, "got ids and --jsonl, want one of them")
			}
			t, err := openTokenizer(args[0])
			if err != nil {
				return err
			}
			if len(args) > 1 {
				return decodeArgs(c, t, strings.Join(args[1:], " "))
			}
			if file == "" {
				file = "-"
			}
			return decodeLines(c, t, file)
		},
	}
	c.Flags().StringVar(&file, "jsonl", "", "a file with a JSON list of ids a line")
	return c
}

func decodeArgs(c *cobra.Command, t *token.Tokenizer, text string) error {
	ids, err := parseIDs(text)
	if err != nil {
		return errUsage(c, "%v", err)
	}
	if err := known(t, ids); err != nil {
		return fault.As(fault.Data, err)
	}
	_, err = fmt.Fprintln(c.OutOrStdout(), t.Decode(ids))
	return printed(err)
}

func decodeLines(c *cobra.Command, t *token.Tokenizer, file string) error {
	out := bufio.NewWriter(c.OutOrStdout())
	err := eachLine(c, file, func(l line) error {
		var ids []int32
		if err := l.parse(&ids); err != nil {
			return err
		}
		if err := known(t, ids); err != nil {
			return l.errorf("%w", err)
		}
		return printJSON(out, t.Decode(ids))
	})
	return errors.Join(err, printed(out.Flush()))
}

// known refuses ids that no token has.
func known(t *token.Tokenizer, ids []int32) error {
	for i, id := range ids {
		if _, ok := t.Token(id); !ok {
			return fmt.Errorf("id %d at %d: no token of the tokenizer has it", id, i)
		}
	}
	return nil
}

func newTokenizerInspect() *cobra.Command {
	return &cobra.Command{
		Use:     "inspect TOKENIZER",
		Short:   "What a tokenizer is made of",
		Example: `  pleach tokenizer inspect llama-2-7b`,
		Args:    cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			t, err := openTokenizer(args[0])
			if err != nil {
				return err
			}
			_, err = io.WriteString(c.OutOrStdout(), t.Describe())
			return printed(err)
		},
	}
}
