// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package token

import (
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"pleach/internal/fault"
)

// small is a tokenizer.json to put faults into: @X@ marks a place.
const small = `{"version":"1.0","truncation":null,"padding":null,"added_tokens":[@added@],
"normalizer":@norm@,"pre_tokenizer":@pre@,"post_processor":@post@,"decoder":@dec@,
"model":{"type":"BPE",@opt@"vocab":{"a":0,"b":1,"ab":2@vocab@},"merges":[@merges@]}@top@}`

func smallJSON(places ...string) string {
	at := map[string]string{
		"norm": "null", "pre": "null", "post": "null", "dec": "null", "merges": `"a b"`,
		"added": "", "opt": "", "vocab": "", "top": "",
	}
	for i := 0; i < len(places); i += 2 {
		at[places[i]] = places[i+1]
	}
	s := small
	for k, v := range at {
		s = strings.ReplaceAll(s, "@"+k+"@", v)
	}
	return s
}

func addedJSON(id, content string) string {
	return `{"id":` + id + `,"content":"` + content + `","single_word":false,"lstrip":false,` +
		`"rstrip":false,"normalized":false,"special":true}`
}

// TestRefused: whatever could change an id is refused, with its place.
func TestRefused(t *testing.T) {
	template := func(single string) string {
		return `{"type":"TemplateProcessing","single":[` + single + `],"pair":[],` +
			`"special_tokens":{"a":{"id":"a","ids":[0],"tokens":["a"]}}}`
	}
	for _, tt := range []struct{ json, want string }{
		{smallJSON("pre", `{"type":"X"}`), `pre_tokenizer: unknown type "X"`},
		{smallJSON("norm", `{"type":"Nmt"}`), `normalizer: unknown type "Nmt"`},
		{
			smallJSON("norm", `{"type":"Sequence","normalizers":[{"type":"NFC"},{"type":"BertNormalizer"}]}`),
			`normalizer.normalizers[1]: unknown type "BertNormalizer"`,
		},
		{smallJSON("dec", `{"type":"WordPiece"}`), `decoder: unknown type "WordPiece"`},
		{smallJSON("post", `{"type":"BertProcessing"}`), `post_processor: unknown type "BertProcessing"`},
		{smallJSON("norm", `{"type":"Strip","strip_left":true}`), `normalizer: strip_right is missing`},
		{
			smallJSON("norm", `{"type":"Strip","strip_left":1,"strip_right":true}`),
			`normalizer: strip_left: got the number 1, want true or false`,
		},
		{smallJSON("norm", `{"type":"NFC","extra":1}`), `normalizer: unknown field "extra"`},
		{
			smallJSON("norm", `{"type":"Replace","pattern":{"String":""},"content":""}`),
			`normalizer.pattern: String: got nothing to look for`,
		},
		{
			smallJSON("norm", `{"type":"Replace","pattern":{"Regex":"("},"content":""}`),
			"normalizer.pattern: Regex: error parsing regexp: missing closing ) in `(`",
		},
		{
			smallJSON("pre", `{"type":"Split","pattern":{"String":"a"},"behavior":"Never","invert":false}`),
			`pre_tokenizer: behavior: got "Never", want one of ["Isolated" "Removed" "Contiguous" "MergedWithPrevious" "MergedWithNext"]`,
		},
		{
			smallJSON("pre", `{"type":"Metaspace","replacement":"__"}`),
			`pre_tokenizer: replacement: got "__", want one character`,
		},
		{
			smallJSON("pre", `{"type":"Metaspace","replacement":"_","add_prefix_space":false,"prepend_scheme":"first"}`),
			`pre_tokenizer: add_prefix_space is false, but prepend_scheme is "first"`,
		},
		{
			smallJSON("pre", `{"type":"Sequence","pretokenizers":[{"type":"ByteLevel","add_prefix_space":false,"trim_offsets":true},{"type":"Whitespace"}]}`),
			`pre_tokenizer: ByteLevel is not last: not supported`,
		},
		{
			smallJSON("post", template(`{"Sequence":{"id":"B","type_id":0}}`)),
			`post_processor.single[0]: Sequence: got "B", want "A"`,
		},
		{
			smallJSON("post", template(`{"SpecialToken":{"id":"c","type_id":0}}`)),
			`post_processor.single[0]: "c" is not among special_tokens`,
		},
		{
			smallJSON("post", strings.ReplaceAll(template(""), "[0]", "[9]")),
			`post_processor.special_tokens.a: ids: 9 is no token`,
		},
		{
			smallJSON("post", `{"type":"Sequence","processors":[`+template("")+","+template("")+`]}`),
			`post_processor.processors[1]: a second TemplateProcessing: not supported`,
		},
		{smallJSON("opt", `"dropout":0.1,`), `model: dropout: not supported, want null`},
		{
			smallJSON("opt", `"continuing_subword_prefix":"##",`),
			`model: continuing_subword_prefix: not supported, want null`,
		},
		{smallJSON("opt", `"unk_token":"u",`), `model: unk_token: "u" is not in the vocabulary`},
		{smallJSON("opt", `"scale":1,`), `model: unknown field "scale"`},
		{strings.Replace(smallJSON(), `"BPE"`, `"Unigram"`, 1), `model: vocab: got an object, want an array`},
		{strings.Replace(smallJSON(), `"BPE"`, `"WordPiece"`, 1), `model: unknown type "WordPiece"`},
		{unigramJSON("", `["a",-1],["b",-2]`, "2"), `model: unk_id: got 2, want less than the 2 tokens`},
		{unigramJSON("", `["a",-1],["b","c"]`, "0"), `model: vocab[1]: got an array, want a token and its score`},
		{unigramJSON("", `["a",-1],["b",1e31]`, "0"), `model: vocab[1]: score of "b": got 1e31, want a number of at most 1e+30`},
		{unigramJSON("", ``, "0"), `model: unk_id: got 0, want less than the 0 tokens`},
		{unigramJSON("", `["a",-1]`, "null"), `model: unk_id is missing`},
		{unigramJSON(`{"type":"Precompiled","precompiled_charsmap":"x"}`, `["a",-1]`, "0"), `normalizer: precompiled_charsmap: illegal base64 data at input byte 0`},
		{unigramJSON(`{"type":"Precompiled","precompiled_charsmap":""}`, `["a",-1]`, "0"), `normalizer: precompiled_charsmap: character map: got 0 bytes, want at least 4`},
		{smallJSON("vocab", `,"c":2`), `model: vocab: id 2 is given to "ab" and to "c"`},
		{
			smallJSON("vocab", `,"c":-1`),
			`model: vocab: id of "c": got -1, want a whole number from 0 to 4194303`,
		},
		{
			smallJSON("vocab", `,"c":3.0`),
			`model: vocab: id of "c": got 3.0, want a whole number from 0 to 4194303`,
		},
		{
			smallJSON("vocab", `,"c":4194304`),
			`model: vocab: id of "c": got 4194304, want a whole number from 0 to 4194303`,
		},
		{smallJSON("merges", `"a"`), `model: merges[0]: got the string "a", want two tokens`},
		{smallJSON("merges", `["a","b"],["a","b","c"]`), `model: merges[1]: got an array, want two tokens`},
		{smallJSON("merges", `"b a"`), `model: merges[0]: "b", "a" or the two joined is not in the vocabulary`},
		{smallJSON("added", addedJSON("3", "")), `added_tokens[0]: content: got nothing`},
		{smallJSON("added", addedJSON("2", "x")), `added_tokens[0]: id 2 is given to "ab" and to "x"`},
		{
			smallJSON("added", addedJSON("7", "x")),
			`added_tokens[0]: "x": got id 7, want 3, the one that a reader of this file gives it`,
		},
		{
			smallJSON("added", addedJSON("3", "x")+","+addedJSON("4", "x")),
			`added_tokens[1]: "x" stands twice among the added tokens`,
		},
		{smallJSON("top", `,"more":1`), `top level: unknown field "more"`},
		{
			strings.Replace(smallJSON(), `"truncation":null`, `"truncation":{}`, 1),
			`top level: truncation: not supported, want null`,
		},
		{strings.Replace(smallJSON(), `"1.0"`, `"2.0"`, 1), `top level: version: got "2.0", want "1.0"`},
		{smallJSON("vocab", `,"a":3`), `byte 196: key "a" stands twice in one object`},
		{`{"a":1} x`, `byte 8: text after the end of the document`},
		{`{}`, `top level: version is missing`},
	} {
		_, err := parse([]byte(tt.json))
		if err == nil || err.Error() != tt.want {
			t.Errorf("%s:\n got %v\nwant %s", tt.json, err, tt.want)
		}
	}
	if _, err := parse([]byte(smallJSON())); err != nil {
		t.Errorf("without a fault: %v", err)
	}
}

// unigramJSON is a tokenizer.json with a Unigram model.
func unigramJSON(normalizer, vocab, unk string) string {
	if normalizer == "" {
		normalizer = "null"
	}
	return `{"version":"1.0","truncation":null,"padding":null,"added_tokens":[],"normalizer":` + normalizer +
		`,"pre_tokenizer":null,"post_processor":null,"decoder":null,"model":{"type":"Unigram","unk_id":` + unk +
		`,"vocab":[` + vocab + `],"byte_fallback":true}}`
}

// spFileBytes writes a SentencePiece model of pieces "text:type".
func spFileBytes(kind uint64, charsmap string, pieces ...string) []byte {
	var out []byte
	message := func(dst []byte, num protowire.Number, b []byte) []byte {
		return protowire.AppendBytes(protowire.AppendTag(dst, num, protowire.BytesType), b)
	}
	varint := func(dst []byte, num protowire.Number, v uint64) []byte {
		return protowire.AppendVarint(protowire.AppendTag(dst, num, protowire.VarintType), v)
	}
	for _, p := range pieces {
		text, typ, _ := strings.Cut(p, ":")
		b := message(nil, 1, []byte(text))
		out = message(out, 1, varint(b, 3, uint64(typ[0]-'0')))
	}
	out = message(out, 2, varint(nil, 3, kind))
	if charsmap != "" {
		out = message(out, 3, message(message(nil, 1, []byte(charsmap)), 2, []byte("x")))
	}
	return out
}

func TestRefusedSentencePiece(t *testing.T) {
	for _, tt := range []struct {
		file []byte
		want string
	}{
		{spFileBytes(1, "", "<unk>:2"), "no piece is of the type normal"},
		{spFileBytes(4, "", "<unk>:2"), "model type 4: not supported, only unigram and BPE"},
		{
			spFileBytes(2, "nmt_nfkc", "<unk>:2"),
			`normalizer "nmt_nfkc": character map: got 1 bytes, want at least 4`,
		},
		{spFileBytes(2, "", "a:1"), "no piece is of the type unknown"},
		{spFileBytes(2, "", "<unk>:2", "a:1", "a:1"), `piece 2 "a": stands twice in the model`},
		{spFileBytes(2, "", "<unk>:2", "u:2"), `piece 1 "u": a second piece of the type unknown`},
		{spFileBytes(2, "", "<unk>:2", ":1"), `piece 1 "": want a text that is UTF-8, not empty and under 4096 bytes`},
		{spFileBytes(2, "", "<unk>:2", "x:5"), `piece 1 "x": type UNUSED in a BPE model: not supported`},
		{
			spFileBytes(2, "", "<unk>:2", "<0x41>:6"),
			`piece 1 "<0x41>": a byte piece is <0x00> to <0xFF>, with byte_fallback set`,
		},
		{nil, "not a SentencePiece model: no pieces"},
		{[]byte("hello"), "neither JSON nor a SentencePiece model: a field is cut off or malformed"},
	} {
		_, err := parse(tt.file)
		if err == nil || err.Error() != tt.want {
			t.Errorf("got %v\nwant %s", err, tt.want)
		}
	}
}

// TestOpen: a directory or a file of any name; tokenizer.json wins; the files
// beside it name the tokens; Files gives all of them back.
func TestOpen(t *testing.T) {
	copyTo := func(dir, name, from string) {
		b, err := os.ReadFile(from)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	dir := t.TempDir()
	if _, err := Open(dir); err == nil || !errors.Is(err, fault.Data) ||
		!strings.HasSuffix(err.Error(), "neither tokenizer.json nor tokenizer.model is there") {
		t.Errorf("empty directory: %v", err)
	}
	copyTo(dir, "any name", "testdata/piece.model")
	if tok := mustOpen(t, filepath.Join(dir, "any name")); tok.sp == nil {
		t.Error("a SentencePiece model was not recognised")
	}
	copyTo(dir, "tokenizer.model", "testdata/piece.model")
	if tok := mustOpen(t, dir); tok.sp == nil || len(tok.Files()["tokenizer.model"]) == 0 {
		t.Error("tokenizer.model was not read")
	}
	copyTo(dir, "tokenizer.json", "testdata/llama3.json")
	side := `{"eos_token": {"content": "<|eot_id|>", "x": 1}, "bos_token": null}`
	if err := os.WriteFile(filepath.Join(dir, nameConfig), []byte(side), 0o600); err != nil {
		t.Fatal(err)
	}
	other := `{"eos_token": "<|end_of_text|>", "bos_token": "<|end_header_id|>"}`
	if err := os.WriteFile(filepath.Join(dir, nameSpecial), []byte(other), 0o600); err != nil {
		t.Fatal(err)
	}
	tok := mustOpen(t, dir)
	eos, _ := tok.EOS()
	bos, _ := tok.BOS()
	if e, _ := tok.Token(eos); e != "<|eot_id|>" {
		t.Errorf("eos %q, want the one of tokenizer_config.json", e)
	}
	if b, _ := tok.Token(bos); b != "<|end_header_id|>" {
		t.Errorf("bos %q, want the one of special_tokens_map.json", b)
	}
	if n := len(tok.Files()); n != 3 {
		t.Errorf("%d files to copy, want 3", n)
	}
	if err := os.WriteFile(filepath.Join(dir, nameSpecial), []byte(`{"eos_token": "<nope>"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(dir); err != nil {
		t.Errorf("tokenizer_config.json names the token, but: %v", err)
	}
	if err := os.WriteFile(filepath.Join(dir, nameConfig), []byte(`{"eos_token": "<nope>"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(dir); err == nil || !strings.Contains(err.Error(), `eos_token: "<nope>" is no token`) {
		t.Errorf("unknown token in tokenizer_config.json: %v", err)
	}
	if tok := mustOpen(t, filepath.Join(dir, "any name")); strings.Contains(string(tok.Files()[nameConfig]), "nope") {
		t.Error("a file of another name was read with files that are not about it")
	}
}

// FuzzTokenizerJSON and FuzzTokenizerModel: no file makes Open panic, and what
// opens encodes and decodes.
func FuzzTokenizerJSON(f *testing.F) {
	f.Add(smallJSON())
	for _, name := range []string{"gpt2", "llama3", "other", "metasplit", "words"} {
		b, err := os.ReadFile("testdata/" + name + ".json")
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(b))
	}
	f.Add(unigramJSON("", `["<unk>",0],["a",-1.5],["▁the",-2],["<0x41>",-9]`, "0"))
	f.Add(unigramJSON(`{"type":"StripAccents"}`, `["é",-1],["é",-2]`, "1"))
	f.Add(string(unzip(f, "fallback.json")))
	f.Fuzz(func(t *testing.T, s string) { use(loadTokenizerJSON(s)) })
}

func FuzzTokenizerModel(f *testing.F) {
	f.Add(spFileBytes(2, "", "<unk>:2", "a:1", "b:1", "ab:1", "abc:4"))
	f.Add(spFileBytes(1, "", "<unk>:2", "a:1", "b:4", "ab:5", "abc:1"))
	f.Add(unzip(f, "identity.model"))
	for _, name := range []string{"piece", "trim"} {
		b, err := os.ReadFile("testdata/" + name + ".model")
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if p, err := parseSentencePiece(b); err == nil {
			use(newSentencePiece(p))
		}
	})
}

// FuzzCharsmap: no table makes a lookup leave it.
func FuzzCharsmap(f *testing.F) {
	f.Add(tinyCharsmap(), []byte("a\u0301 ﬁ\r\nx"))
	f.Fuzz(func(t *testing.T, table, text []byte) {
		m, err := parseCharsmap(table)
		if err != nil {
			return
		}
		p := newPrecompiled(m)
		out, _ := p.normalize(nil, text)
		if len(out) > len(text)*maxText {
			t.Fatalf("%d bytes of %d", len(out), len(text))
		}
		sp := spModel{spec: spSpec{prefix: true, trim: true, escape: true}, rules: m}
		sp.findPlain()
		sp.normalize(nil, text)
	})
}

// tinyCharsmap replaces a by X and é by e.
func tinyCharsmap() []byte {
	const leaf, value = 1 << 8, 1 << 31
	units := make([]uint32, 512)
	set := func(at, label, child uint32, flags uint32) { units[at] = label | flags | (at^child)<<10 }
	set(0, 0, 256, 0)
	set(256^'a', 'a', 1, leaf)
	units[1] = value
	set(256^0xc3, 0xc3, 2^0xa9, 0)
	set(2, 0xa9, 3, leaf)
	units[3] = value | 2
	b := binary.LittleEndian.AppendUint32(nil, uint32(4*len(units)))
	for _, u := range units {
		b = binary.LittleEndian.AppendUint32(b, u)
	}
	return append(b, "X\x00e\x00"...)
}

func TestCharsmap(t *testing.T) {
	m, err := parseCharsmap(tinyCharsmap())
	if err != nil {
		t.Fatal(err)
	}
	out, _ := newPrecompiled(m).normalize(nil, []byte("ab é\r\na\u0301e\u0301"))
	if got, want := string(out), "Xb e\r\nXe\u0301"; got != want {
		t.Errorf("by clusters: got %q, want %q", got, want)
	}
	sp := spModel{spec: spSpec{prefix: true, trim: true, escape: true}, rules: m}
	sp.findPlain()
	if got, want := string(sp.normalize(nil, []byte("  ab  é\xffa\u0301 "))), "▁Xb▁e\ufffdX\u0301"; got != want {
		t.Errorf("by longest starts: got %q, want %q", got, want)
	}
	for _, tt := range []struct {
		at   int
		b    byte
		want string
	}{
		{0, 1, "character map: a trie of 2049 bytes in 2052: want a multiple of 1024, and texts behind it"},
		{1, 255, "character map: a trie of 65280 bytes in 2052: want a multiple of 1024, and texts behind it"},
		{4 + 2048 + 3, 'x', "character map: the last text has no end"},
		{4 + 4*1, 9, "character map: the trie points outside itself, or at a text of 1024 bytes or more"},
		{4 + 4*2 + 3, 9, "character map: the trie points outside itself, or at a text of 1024 bytes or more"},
	} {
		b := tinyCharsmap()
		b[tt.at] = tt.b
		if _, err := parseCharsmap(b); err == nil || err.Error() != tt.want {
			t.Errorf("byte %d is %d: got %v, want %s", tt.at, tt.b, err, tt.want)
		}
	}
}

func use(tok *Tokenizer, err error) {
	if err != nil {
		return
	}
	ids := tok.EncodeSpecial(nil, []byte(" the hedge,  it's\n12 é\xff😀 <s>"))
	tok.Decode(ids)
	d := tok.Stream()
	for _, id := range ids {
		d.Next(id)
	}
	d.Flush()
	tok.Describe()
}

// TestPieceConfig: a SentencePiece model that stands alone is published with a
// configuration that says what it is; one that has a configuration keeps it.
func TestPieceConfig(t *testing.T) {
	model, err := os.ReadFile("testdata/piece.model")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "tokenizer.model"), model, 0o666); err != nil {
		t.Fatal(err)
	}
	got := string(mustOpen(t, dir).Files()["tokenizer_config.json"])
	want := "{\n  \"tokenizer_class\": \"LlamaTokenizer\",\n  \"bos_token\": \"<s>\",\n  \"eos_token\": \"</s>\"\n}\n"
	if got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if err := os.WriteFile(filepath.Join(dir, "tokenizer.model"), unzip(t, "t5.model"), 0o666); err != nil {
		t.Fatal(err)
	}
	got = string(mustOpen(t, dir).Files()["tokenizer_config.json"])
	if want := "{\n  \"tokenizer_class\": \"SentencePieceBackend\",\n  \"eos_token\": \"</s>\"\n}\n"; got != want {
		t.Errorf("unigram: got %s, want %s", got, want)
	}
	own := "{\"eos_token\": \"</s>\"}"
	if err := os.WriteFile(filepath.Join(dir, "tokenizer_config.json"), []byte(own), 0o666); err != nil {
		t.Fatal(err)
	}
	if got := string(mustOpen(t, dir).Files()["tokenizer_config.json"]); got != own {
		t.Errorf("got %s, want the one that was there", got)
	}
}
