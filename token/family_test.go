// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package token

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// unzip reads a file of testdata/family; see family.py there.
func unzip(t testing.TB, name string) []byte {
	t.Helper()
	f, err := os.Open("testdata/family/" + name + ".gz")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// families is the names of the tokenizers there.
func families(t testing.TB) []string {
	t.Helper()
	files, err := filepath.Glob("testdata/family/*.golden.jsonl.gz")
	if err != nil || len(files) < 20 {
		t.Fatalf("%d families, %v, want at least 20", len(files), err)
	}
	for i, f := range files {
		files[i] = strings.TrimSuffix(filepath.Base(f), ".golden.jsonl.gz")
	}
	return files
}

func family(t testing.TB, name string) *Tokenizer {
	t.Helper()
	file := name + ".json"
	if _, err := os.Stat("testdata/family/" + file + ".gz"); err != nil {
		file = name + ".model"
	}
	tok, err := parse(unzip(t, file))
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

// TestFamilies compares ids and decoded text with those of the references on
// some 2500 strings, for a small tokenizer in the pipeline of each family.
func TestFamilies(t *testing.T) {
	texts := stringLines(t, bytes.Split(bytes.TrimSpace(unzip(t, "strings.jsonl")), []byte("\n")))
	if len(texts) < 2500 {
		t.Fatalf("%d strings, want at least 2500", len(texts))
	}
	for _, name := range families(t) {
		t.Run(name, func(t *testing.T) {
			rows := bytes.Split(bytes.TrimSpace(unzip(t, name+".golden.jsonl")), []byte("\n"))
			tok, texts := family(t, name), texts
			if racing { // each call has new memory then
				texts, rows = everyFifth(texts), everyFifth(rows)
			}
			compareRows(t, tok, texts, rows)
			if !racing {
				compareRows(t, tok, texts, rows) // now from the cache
			}
		})
	}
}

func everyFifth(lines [][]byte) [][]byte {
	var out [][]byte
	for i := 0; i < len(lines); i += 5 {
		out = append(out, lines[i])
	}
	return out
}

// longText is text that family.py makes in the same way.
func longText(alphabet string, n int) string {
	runes := []rune(alphabet)
	var b strings.Builder
	x := uint32(1)
	for range n {
		x = (x*1103515245 + 12345) % (1 << 31)
		b.WriteRune(runes[int(x>>16)%len(runes)])
	}
	return b.String()
}

// TestWholeTexts compares hashes of the ids of long texts and of whole files.
func TestWholeTexts(t *testing.T) {
	data := os.Getenv("PLEACH_TESTDATA")
	open, tok, skipped := "", (*Tokenizer)(nil), 0
	for _, line := range readLines(t, "testdata/family/hashes.jsonl") {
		var want struct {
			Name, Text, SHA256 string
			IDs                int
		}
		if err := json.Unmarshal(line, &want); err != nil {
			t.Fatal(err)
		}
		made := strings.HasPrefix(want.Text, "long:") && !strings.HasPrefix(want.Name, "tokenizers/")
		if data == "" && !made {
			skipped++
			continue
		}
		if open != want.Name {
			open, tok = want.Name, namedTokenizer(t, want.Name, data)
		}
		ids := wholeText(t, tok, want.Text, data)
		h := sha256.New()
		if err := binary.Write(h, binary.LittleEndian, ids); err != nil {
			t.Fatal(err)
		}
		if got := hex.EncodeToString(h.Sum(nil)); len(ids) != want.IDs || got != want.SHA256 {
			t.Errorf("%s on %s: got %d ids, hash %s; want %d, %s", want.Name, want.Text, len(ids), got, want.IDs, want.SHA256)
		}
	}
	if skipped > 0 {
		t.Logf("PLEACH_TESTDATA is not set: %d whole files were not compared", skipped)
	}
}

// wholeText is the ids of a text that family.py names: one that it makes, all
// hard strings with -1 behind each, or a file.
func wholeText(t *testing.T, tok *Tokenizer, name, data string) []int32 {
	t.Helper()
	if alphabet, ok := strings.CutPrefix(name, "long:"); ok {
		n := 40000
		if alphabet == "xé日😀 " {
			n = 30000
		}
		return tok.Encode(nil, []byte(longText(alphabet, n)))
	}
	if name == "strings" {
		var ids []int32
		for _, s := range stringLines(t, bytes.Split(bytes.TrimSpace(unzip(t, "strings.jsonl")), []byte("\n"))) {
			ids = append(tok.Encode(ids, s), -1)
		}
		return ids
	}
	text, err := os.ReadFile(filepath.Join(data, name))
	if err != nil {
		t.Fatal(err)
	}
	return tok.Encode(nil, text)
}

// namedTokenizer is a family, or a file of the shared data.
func namedTokenizer(t *testing.T, name, data string) *Tokenizer {
	t.Helper()
	if strings.HasPrefix(name, "tokenizers/") {
		return mustOpen(t, filepath.Join(data, name))
	}
	return family(t, name)
}

// TestUnigramCache: words that are remembered are cut as words that are not,
// whatever stands in front of them.
func TestUnigramCache(t *testing.T) {
	for _, name := range []string{"t5", "tiedwords", "tiedwordshf", "suffix", "casefold", "xlmr"} {
		tok := family(t, name)
		m := modelOf(tok).unigram
		if m.border == noBorder {
			t.Fatalf("%s: no border", name)
		}
		plain := *m
		plain.border = noBorder // one search over the whole text
		var a, b lattice
		for _, alphabet := range []string{"aab▁", "aabc▁▁", "the hedg▁▁▁"} {
			for _, n := range []int{10, 300, 5000, 60000} {
				s := []byte(longText(alphabet, n))
				for range 2 {
					if got, want := m.encode(&a, nil, s), plain.encode(&b, nil, s); !slices.Equal(got, want) {
						t.Errorf("%s: %d characters of %q: got %d ids, want %d", name, n, alphabet, len(got), len(want))
					}
				}
			}
		}
	}
}

func modelOf(tok *Tokenizer) *model {
	if tok.sp != nil {
		return &tok.sp.model
	}
	return tok.pipe.model
}

// TestScores: numbers are read as Hugging Face tokenizers reads them.
func TestScores(t *testing.T) {
	odd := 0
	for _, line := range readLines(t, "testdata/family/scores.jsonl") {
		var text [2]string
		if err := json.Unmarshal(line, &text); err != nil {
			t.Fatal(err)
		}
		want, err := strconv.ParseFloat(text[1], 64)
		if err != nil {
			t.Fatal(err)
		}
		if got, ok := scoreOf(text[0]); !ok || got != want {
			t.Errorf("%s: got %v, %v, want %v", text[0], got, ok, want)
		}
		if nearest, _ := strconv.ParseFloat(text[0], 64); nearest != want {
			odd++
		}
	}
	if odd < 10 {
		t.Errorf("%d numbers that are not read to the nearest, want 10 or more", odd)
	}
	for _, text := range []string{"1e31", "-2e30", "1e999999999999", "1e400"} {
		if got, ok := scoreOf(text); ok {
			t.Errorf("%s: got %v, want none", text, got)
		}
	}
}
