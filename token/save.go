// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package token

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"unicode/utf8"

	"pleach/internal/fault"
)

// Save writes the files of the tokenizer into a directory, which it makes if
// need be: those of [Tokenizer.Files]. Each is written under another name,
// brought to the disk and renamed, so a file is never there in part. Hugging
// Face tokenizers and transformers load the directory.
func (t *Tokenizer) Save(dir string) error {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return fault.Machinef("token: saving: %w", err)
	}
	var names []string
	for name := range t.files {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		if err := writeFile(dir, name, t.files[name]); err != nil {
			return fault.Machinef("token: saving %s: %w", filepath.Join(dir, name), err)
		}
	}
	return syncDir(dir)
}

func writeFile(dir, name string, b []byte) (err error) {
	f, err := os.CreateTemp(dir, "."+name+"-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			f.Close()
			os.Remove(f.Name())
		}
	}()
	if _, err = f.Write(b); err != nil {
		return err
	}
	if err = f.Chmod(0o644); err != nil {
		return err
	}
	if err = f.Sync(); err != nil {
		return err
	}
	if err = f.Close(); err != nil {
		return err
	}
	return os.Rename(f.Name(), filepath.Join(dir, name))
}

// syncDir brings the new names to the disk. Some systems cannot sync a
// directory; there the names are as safe as the system makes them.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return fault.Machinef("token: saving: %w", err)
	}
	_ = d.Sync()
	return d.Close()
}

// json is the tokenizer.json of what was learned, in the order of fields that
// Hugging Face tokenizers writes, with one token or merge a line.
func (tr *byteLevelTraining) json() []byte {
	var b bytes.Buffer
	b.WriteString("{\n  \"version\": \"1.0\",\n  \"truncation\": null,\n  \"padding\": null,\n  \"added_tokens\": [")
	for i, s := range tr.specials {
		fmt.Fprintf(&b, "%s\n    {\"id\": %d, \"content\": %s, \"single_word\": false, \"lstrip\": false, "+
			"\"rstrip\": false, \"normalized\": false, \"special\": true}", comma(i), i, quote(s))
	}
	b.WriteString("\n  ],\n  \"normalizer\": null,\n  \"pre_tokenizer\": " + splitJSON(tr.pattern) +
		",\n  \"post_processor\": null,\n  \"decoder\": " + byteLevelJSON(true) +
		",\n  \"model\": {\n    \"type\": \"BPE\",\n    \"dropout\": null,\n    \"unk_token\": null,\n" +
		"    \"continuing_subword_prefix\": null,\n    \"end_of_word_suffix\": null,\n    \"fuse_unk\": false,\n" +
		"    \"byte_fallback\": false,\n    \"ignore_merges\": false,\n    \"vocab\": {")
	for id, tok := range tr.tokens {
		fmt.Fprintf(&b, "%s\n      %s: %d", comma(id), quote(tok), id)
	}
	b.WriteString("\n    },\n    \"merges\": [")
	for i, m := range tr.lastMerges() {
		fmt.Fprintf(&b, "%s\n      [%s, %s]", comma(i), quote(tr.tokens[m[0]]), quote(tr.tokens[m[1]]))
	}
	b.WriteString("\n    ]\n  }\n}\n")
	return b.Bytes()
}

// splitJSON is the pre-tokenizer that splits by a pattern. ByteLevel has that of
// GPT-2 built in.
func splitJSON(pattern string) string {
	if pattern == patternGPT2 {
		return byteLevelJSON(true)
	}
	return `{"type": "Sequence", "pretokenizers": [{"type": "Split", "pattern": {"Regex": ` + quote(pattern) +
		`}, "behavior": "Isolated", "invert": false}, ` + byteLevelJSON(false) + "]}"
}

func byteLevelJSON(regex bool) string {
	return fmt.Sprintf(`{"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": %t}`, regex)
}

// lastMerges is the merges with only the last one of those that stand twice,
// which is the one that counts when the file is read.
func (tr *byteLevelTraining) lastMerges() [][2]int32 {
	seen := map[[2]int32]bool{}
	var out [][2]int32
	for _, m := range slices.Backward(tr.merges) {
		if !seen[m] {
			seen[m] = true
			out = append(out, m)
		}
	}
	slices.Reverse(out)
	return out
}

func comma(i int) string {
	if i == 0 {
		return ""
	}
	return ","
}

// sequenceNames picks the tokens that begin and end a sequence: by their usual
// names, else the first special token for both.
func sequenceNames(specials []string) (bos, eos string) {
	pick := func(names ...string) string {
		for _, n := range names {
			if slices.Contains(specials, n) {
				return n
			}
		}
		return specials[0]
	}
	return pick(bosNames()...), pick(eosNames()...)
}

// configJSON is the tokenizer_config.json beside it.
func configJSON(bos, eos string) []byte {
	return fmt.Appendf(nil, "{\n  \"tokenizer_class\": \"PreTrainedTokenizerFast\",\n  \"bos_token\": %s,\n"+
		"  \"eos_token\": %s,\n  \"clean_up_tokenization_spaces\": false,\n  \"add_bos_token\": false,\n"+
		"  \"add_eos_token\": false\n}\n", quote(bos), quote(eos))
}

// quote writes a JSON string; all that is not a control character stays as it is.
func quote(s string) string {
	b := []byte{'"'}
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b = append(b, '\\', byte(r))
		case r < ' ':
			b = fmt.Appendf(b, "\\u%04x", r)
		default:
			b = utf8.AppendRune(b, r)
		}
	}
	return string(append(b, '"'))
}
