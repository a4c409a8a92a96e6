// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package token

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// hardStrings are the strings of testdata/strings.jsonl; see golden.py there.
func hardStrings(t testing.TB) [][]byte {
	t.Helper()
	return readStrings(t, "testdata/strings.jsonl")
}

func readStrings(t testing.TB, file string) [][]byte {
	t.Helper()
	return stringLines(t, readLines(t, file))
}

func stringLines(t testing.TB, lines [][]byte) [][]byte {
	t.Helper()
	var out [][]byte
	for _, line := range lines {
		var bad struct{ B []byte }
		var s string
		if err := json.Unmarshal(line, &s); err == nil {
			out = append(out, []byte(s))
		} else if err := json.Unmarshal(line, &bad); err == nil {
			out = append(out, bad.B)
		} else {
			t.Fatal(err)
		}
	}
	return out
}

func readLines(t testing.TB, file string) [][]byte {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var out [][]byte
	sc := bufio.NewScanner(f)
	sc.Buffer(nil, 1<<20)
	for sc.Scan() {
		out = append(out, slices.Clone(sc.Bytes()))
	}
	if sc.Err() != nil {
		t.Fatal(sc.Err())
	}
	return out
}

// golden is what the reference makes of one string.
type golden struct {
	I []int32
	S []int32
	D *string
}

func mustOpen(t testing.TB, path string) *Tokenizer {
	t.Helper()
	tok, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

// TestGolden compares ids, ids with special tokens and decoded text with those
// of Hugging Face tokenizers and SentencePiece on every hard string.
func TestGolden(t *testing.T) {
	for _, name := range []string{
		"gpt2.json", "prefix.json", "llama3.json", "qwen2.json", "other.json", "o200k.json", "cl100k.json", "words.json", "fused.json",
		"llama2.json", "metaspace.json", "metasplit.json", "piece.model", "trim.model", "ours/tokenizer.json",
	} {
		t.Run(name, func(t *testing.T) {
			base := strings.TrimSuffix(strings.TrimSuffix(name, filepath.Ext(name)), "/tokenizer")
			compareGolden(t, mustOpen(t, "testdata/"+name), "testdata/"+base+".golden.jsonl")
		})
	}
}

func compareGolden(t *testing.T, tok *Tokenizer, file string) {
	t.Helper()
	compareRows(t, tok, hardStrings(t), readLines(t, file))
}

func compareRows(t *testing.T, tok *Tokenizer, texts, rows [][]byte) {
	t.Helper()
	if len(texts) != len(rows) || len(texts) < 500 {
		t.Fatalf("%d strings, %d rows, want the same number, over 500", len(texts), len(rows))
	}
	bad := 0
	for k, text := range texts {
		var want golden
		if err := json.Unmarshal(rows[k], &want); err != nil {
			t.Fatal(err)
		}
		if want.I == nil {
			continue // the reference takes no such string
		}
		ids := tok.Encode(nil, text)
		special := tok.EncodeSpecial(nil, text)
		if want.S == nil { // the same, or not asked
			want.S = special
			if tok.parts == nil {
				want.S = want.I
			}
		}
		decoded, wantText := tok.Decode(want.I), string(text)
		if want.D != nil {
			wantText = *want.D
		}
		if tok.pipe != nil && tok.pipe.model.byteLevel { // see the Differs of Decode
			decoded = string(appendValid(nil, []byte(decoded)))
		}
		if !slices.Equal(ids, want.I) || !slices.Equal(special, want.S) || decoded != wantText {
			t.Errorf("line %d %q:\n got ids %v\nwant ids %v\n got special %v\nwant special %v\n got %q\nwant %q",
				k+1, text, ids, want.I, special, want.S, decoded, wantText)
			if bad++; bad > 8 {
				t.FailNow()
			}
		}
		if !utf8.Valid(text) && tok.pipe != nil {
			t.Fatal("a golden for a string that the reference cannot take")
		}
	}
}

// TestReal compares the tokenizer of Llama 2 with SentencePiece: on the hard
// strings, and by a hash of ids and decoded text on whole files.
func TestReal(t *testing.T) {
	data := os.Getenv("PLEACH_TESTDATA")
	if data == "" {
		t.Skip("PLEACH_TESTDATA is not set: no Llama 2 tokenizer")
	}
	tok := mustOpen(t, filepath.Join(data, "tokenizers/llama2.model"))
	compareGolden(t, tok, "testdata/real.golden.jsonl")
	for _, line := range readLines(t, "testdata/real.json") {
		var want struct {
			File, How, SHA256 string
			IDs               int
		}
		if err := json.Unmarshal(line, &want); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(filepath.Join(data, want.File))
		if err != nil {
			t.Fatal(err)
		}
		parts := [][]byte{text}
		if want.How == "lines" {
			parts = bytes.Split(text, []byte("\n"))
		}
		h, n := sha256.New(), 0
		for _, part := range parts {
			ids := tok.Encode(nil, part)
			n += len(ids)
			if err := binary.Write(h, binary.LittleEndian, ids); err != nil {
				t.Fatal(err)
			}
			h.Write([]byte(tok.Decode(ids)))
		}
		if got := hex.EncodeToString(h.Sum(nil)); n != want.IDs || got != want.SHA256 {
			t.Errorf("%s by %s: got %d ids, hash %s; want %d, %s", want.File, want.How, n, got, want.IDs, want.SHA256)
		}
	}
}
