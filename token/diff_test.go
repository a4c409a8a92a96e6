// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package token

import (
	"bytes"
	"slices"
	"strings"
	"testing"
)

// TestDiffers holds every "Differs:" of the room: what the reference does, what
// we do, and why.
func TestDiffers(t *testing.T) {
	// Encode. Theirs: Hugging Face tokenizers takes no bytes that are not UTF-8;
	// Python turns them into U+FFFD before. Ours: a byte-level tokenizer encodes
	// the bytes. Why: decoding then gives back any document.
	gpt2 := mustOpen(t, "testdata/gpt2.json")
	ids := gpt2.Encode(nil, []byte("a\xffb"))
	ff, _ := gpt2.ID("ÿ")
	if !slices.Contains(ids, ff) {
		t.Errorf("byte 0xff: got %v, want %d among them", ids, ff)
	}

	// Decode. Theirs: U+FFFD for what is not UTF-8. Ours: the bytes, and U+FFFD
	// only in DecodeText. Why: the same.
	if got := gpt2.Decode(ids); got != "a\xffb" {
		t.Errorf("Decode: got %q", got)
	}
	if got := gpt2.DecodeText(ids); got != "a\ufffdb" {
		t.Errorf("DecodeText: got %q", got)
	}

	// addedTokens. Theirs: an id in the file that a reader would not give is
	// passed over with a warning. Ours: an error. Why: two readers of one file
	// would train on different ids.
	_, err := parse([]byte(smallJSON("added", addedJSON("9", "x"))))
	if err == nil || !strings.Contains(err.Error(), "got id 9, want 3") {
		t.Errorf("id 9: got %v", err)
	}

	// strictjson.Parse. Theirs: of a key that stands twice the last one counts, fields
	// that are not known are passed over. Ours: errors. Why: as before.
	_, err = parse([]byte(smallJSON("top", `,"version":"1.0"`)))
	if err == nil || !strings.Contains(err.Error(), `key "version" stands twice`) {
		t.Errorf("a key twice: got %v", err)
	}

	// cook. Theirs: prepend_scheme "first" goes by the place in the original
	// text, so where the first character became several (½ → 1⁄2) and an added
	// token took the first of them, the rest counts as first too. Ours: it does
	// not. Why: it would take offsets through all normalizers for a case that
	// no known tokenizer has.
	tok, err := parse([]byte(smallJSON(
		"norm", `{"type":"Replace","pattern":{"String":"b"},"content":"aba"}`,
		"pre", `{"type":"Metaspace","replacement":"b","prepend_scheme":"first","split":false}`,
		"added", strings.Replace(addedJSON("0", "a"), `"normalized":false`, `"normalized":true`, 1),
		"merges", "")))
	if err != nil {
		t.Fatal(err)
	}
	if got := tok.Encode(nil, []byte("b")); !slices.Equal(got, []int32{0, 1, 0}) {
		t.Errorf("first: got %v", got)
	}

	// PieceOptions. Theirs: a line of more than 4192 bytes is left out; if there
	// are too few pieces, some are made that no longer occur. Ours: neither. Why:
	// a document without line ends would count for nothing, and such pieces would
	// never be used.
	long := bytes.Repeat([]byte("abc abd "), 1000)
	pieces, err := Train(slices.Values([][]byte{long}), TrainOptions{Size: 400, Pieces: &PieceOptions{}})
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := pieces.ID("▁abd"); !ok || pieces.Size() >= 275 {
		t.Errorf("of a long line: ▁abd %v, %d pieces, want fewer than 275", ok, pieces.Size())
	}
}
