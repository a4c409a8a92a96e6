// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package vocab

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"pleach/internal/fault"
	"pleach/internal/strictjson"
	"pleach/token"
)

// letters is a BPE of the tokens a, b, c, ab, abc, the added tokens <s> and <pad>,
// and everything that names a token.
const letters = `{
  "version": "1.0",
  "padding": {"strategy": "BatchLongest", "pad_id": 6, "pad_token": "<pad>"},
  "added_tokens": [
    {"id": 5, "content": "<s>", "single_word": false, "lstrip": false, "rstrip": false, "normalized": false, "special": true},
    {"id": 6, "content": "<pad>", "single_word": false, "lstrip": false, "rstrip": false, "normalized": false, "special": true}
  ],
  "unknown": [1.50, {"x": null}],
  "model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "c": 2, "ab": 3, "abc": 4}, "merges": ["a b", "ab c"]}
}
`

const lettersConfig = `{
  "bos_token": "<s>", "pad_token": {"content": "<pad>", "special": true},
  "additional_special_tokens": ["<s>", "<pad>"],
  "added_tokens_decoder": {
    "5": {"content": "<s>", "special": true},
    "6": {"content": "<pad>", "special": true}
  },
  "chat_template": "{{ x }}"
}
`

func folder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// lettersModel is a model with that tokenizer, with some of its text replaced.
func lettersModel(t *testing.T, name string, rows int, oldnew ...string) Model {
	r := strings.NewReplacer(oldnew...)
	return Model{name, folder(t, map[string]string{
		fileTokenizer: r.Replace(letters), fileConfig: r.Replace(lettersConfig),
	}), rows}
}

func build(t *testing.T, models []Model, o Options) *Vocabulary {
	t.Helper()
	v, err := Build(models, o)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func (v *Vocabulary) list() (texts []string) {
	for id, text := range v.texts {
		if v.is[id] {
			texts = append(texts, text)
		} else {
			texts = append(texts, "-")
		}
	}
	return texts
}

func TestNothingToDo(t *testing.T) {
	v := build(t, []Model{lettersModel(t, "a", 7), lettersModel(t, "b", 9)}, Options{})
	if got := string(v.Files[fileTokenizer]); got != letters {
		t.Errorf("got\n%s\nwant the file as it was", got)
	}
	if got := string(v.Files[fileConfig]); got != lettersConfig {
		t.Errorf("got\n%s\nwant the file as it was", got)
	}
	if v.Rows != 7 || v.Tokens != 7 {
		t.Errorf("got %d rows, %d tokens; want 7, 7", v.Rows, v.Tokens)
	}
}

func TestStrip(t *testing.T) {
	for _, c := range []struct {
		rows   int
		oldnew []string
		want   string // tokens
		file   string // of tokenizer.json
		config string
	}{
		{6, nil, "a b c ab abc <s>", `"merges": ["a b", "ab c"]`, `"additional_special_tokens": ["<s>"]`},
		{4, nil, "a b c ab", `{"type": "BPE", "vocab": {"a": 0, "b": 1, "c": 2, "ab": 3}, "merges": ["a b"]}`, `"additional_special_tokens": []`},
		{2, nil, "a b", `"merges": []`, ``},
		// Merges are pairs, and "abc" is gone as what a merge makes.
		{4, []string{`"a b", "ab c"`, `["a", "b"], ["ab", "c"]`}, "a b c ab", `"merges": [["a", "b"]]`, ``},
		// With a prefix inside of words, a merge of a and ##b makes ab.
		{3, []string{`"merges"`, `"continuing_subword_prefix": "##", "merges"`, `"c": 2`, `"##b": 2`, `"a b", "ab c"`, `"a ##b"`}, "a b ##b", `"merges": []`, ``},
	} {
		v := build(t, []Model{lettersModel(t, "m", c.rows, c.oldnew...)}, Options{Source: Source{Kind: OfBase}})
		if got := strings.Join(v.list(), " "); got != c.want {
			t.Errorf("%d rows: got %s, want %s", c.rows, got, c.want)
		}
		text, config := string(v.Files[fileTokenizer]), string(v.Files[fileConfig])
		for _, want := range []string{c.file, `"padding": null`, `"unknown": [1.50, {"x": null}]`} {
			if !strings.Contains(text, want) {
				t.Errorf("%d rows: got\n%s\nwant %s in it", c.rows, text, want)
			}
		}
		for _, want := range []string{c.config, `"chat_template": "{{ x }}"`} {
			if !strings.Contains(config, want) {
				t.Errorf("%d rows: got\n%s\nwant %s in it", c.rows, config, want)
			}
		}
		if strings.Contains(text+config, "<pad>") {
			t.Errorf("%d rows: got\n%s\n%s\nwant <pad> nowhere", c.rows, text, config)
		}
		for _, want := range []string{"have no row", "padding is off", "pad_token, additional_special_tokens"} {
			if !slices.ContainsFunc(v.Warnings, func(w string) bool { return strings.Contains(w, want) }) && c.rows == 6 {
				t.Errorf("%d rows: warnings: got %q, want %q among them", c.rows, v.Warnings, want)
			}
		}
	}
}

func TestUnstripped(t *testing.T) {
	v := build(t, []Model{lettersModel(t, "m", 4), lettersModel(t, "n", 3)}, Options{Source: Source{OfModel, 1}})
	if got := strings.Join(v.list(), " "); got != "a b c ab abc <s> <pad>" {
		t.Errorf("got %s", got)
	}
	m, err := v.Matrix(1, width, []int{4, 3}, storedRows)
	if err != nil {
		t.Fatal(err)
	}
	dst := make([]float32, 7*width)
	if err := m.Read(0, len(dst), dst); err != nil {
		t.Fatal(err)
	}
	// Model 1 has rows 0 to 2, model 0 row 3, and nobody has more.
	for id, want := range []float32{64, 65, 66, 3, 0, 0, 0} {
		if got := dst[id*width]; got != want {
			t.Errorf("row %d: got %v, want %v", id, got, want)
		}
	}
}

func TestUnionOrder(t *testing.T) {
	models := []Model{
		lettersModel(t, "base", 7),
		lettersModel(t, "x", 7, `"ab"`, `"zb"`, `"ab c"`, `"zb c"`, `"a b"`, `"a c"`, `"abc"`, `"yc"`, "<pad>", "<x>"),
		lettersModel(t, "y", 7, `"b"`, `"<x>"`, `"a b", `, ``, "<pad>", "<y>", `"normalized": false`, `"normalized": true`),
	}
	v := build(t, models, Options{Tokens: []Token{{Text: "<new>"}, {Text: "a"}, {Text: "<y>"}}})
	want := "a b c ab abc <s> <pad> zb yc <x> <y> <new>"
	if got := strings.Join(v.list(), " "); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	out, err := newTokenizer(v.Files, "")
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]flags{
		"zb": {normalized: true}, "<x>": {special: true}, "<y>": {normalized: true, special: true},
		"<new>": {normalized: true}, "<s>": {special: true},
	} {
		if got := out.flagsOf(text); got != want {
			t.Errorf("%s: got %+v, want %+v", text, got, want)
		}
	}
	if !slices.ContainsFunc(v.Warnings, func(w string) bool {
		return strings.Contains(w, `token "<s>" is added by y with other settings than by base`)
	}) {
		t.Errorf("warnings: got %q", v.Warnings)
	}
	decoder := `"11": {"content": "<new>", "single_word": false, "lstrip": false, "rstrip": false, "normalized": true, "special": false}`
	if !bytes.Contains(v.Files[fileConfig], []byte(decoder)) {
		t.Errorf("got\n%s\nwant %s in it", v.Files[fileConfig], decoder)
	}
	for range 3 {
		again := build(t, models, Options{Tokens: []Token{{Text: "<new>"}, {Text: "a"}, {Text: "<y>"}}})
		if !bytes.Equal(again.Files[fileTokenizer], v.Files[fileTokenizer]) {
			t.Fatal("the same inputs made another file")
		}
	}
}

// TestUnionRows has tokens without a row in another model than the base, and added
// tokens that are not listed by ascending id.
func TestUnionRows(t *testing.T) {
	models := []Model{lettersModel(t, "base", 7), {"other", folder(t, map[string]string{
		fileTokenizer: `{"version": "1.0", "added_tokens": [
			{"id": 4, "content": "<q>"}, {"id": 1, "content": "<p>"}, {"id": 5, "content": "<r>"}],
			"model": {"vocab": {"x": 0, "<p>": 1, "y": 3, "z": 2, "<q>": 4}, "merges": []}}`,
	}), 3}}
	for rows, want := range map[int]string{
		3: "x z <p>", 4: "x z y <p>", 5: "x z y <p> <q>", 6: "x z y <p> <q> <r>",
	} {
		models[1].Rows = rows
		v := build(t, models, Options{})
		if got := strings.Join(v.list()[7:], " "); got != want {
			t.Errorf("%d rows: got %s, want %s", rows, got, want)
		}
	}
}

// TestImplied has a special token that tokenizer_config.json names alone.
func TestImplied(t *testing.T) {
	m := lettersModel(t, "m", 8, `"bos_token"`, `"sep_token": "<sep>", "bos_token"`)
	v := build(t, []Model{m}, Options{})
	if got := strings.Join(v.list(), " "); got != "a b c ab abc <s> <pad> <sep>" {
		t.Errorf("got %s", got)
	}
	if !bytes.Contains(v.Files[fileTokenizer], []byte(`{"id": 7, "content": "<sep>", `)) {
		t.Errorf("got\n%s\nwant <sep> in it", v.Files[fileTokenizer])
	}
	m.Rows = 7
	v = build(t, []Model{m}, Options{})
	if got := strings.Join(v.list(), " "); got != "a b c ab abc <s> <pad>" || bytes.Contains(v.Files[fileConfig], []byte("<sep>")) {
		t.Errorf("without a row: got %s and\n%s", got, v.Files[fileConfig])
	}
}

func TestUnreadable(t *testing.T) {
	good := lettersModel(t, "good", 7)
	bad := Model{"bad", folder(t, map[string]string{fileTokenizer: `{"model": 1}`}), 7}
	v := build(t, []Model{good, bad, {"none", t.TempDir(), 5}}, Options{})
	if len(v.Warnings) < 2 || !strings.Contains(v.Warnings[0], "the tokenizer of bad is taken to be that of good") {
		t.Errorf("warnings: got %q", v.Warnings)
	}
	if got := v.own[1]; !slices.Equal(got, []int32{0, 1, 2, 3, 4, 5, 6}) {
		t.Errorf("bad: got rows %v", got)
	}
	if got := v.own[2]; !slices.Equal(got, []int32{0, 1, 2, 3, 4, -1, -1}) {
		t.Errorf("none: got rows %v", got)
	}
	for _, o := range []Options{{Base: 1}, {Source: Source{OfModel, 1}}} {
		if _, err := Build([]Model{good, bad}, o); !errors.Is(err, fault.Data) || !strings.Contains(err.Error(), "the tokenizer of bad") {
			t.Errorf("%+v: got %v", o, err)
		}
	}
}

// TestPieces has a model with a SentencePiece tokenizer only.
func TestPieces(t *testing.T) {
	sp, err := token.Train(slices.Values([][]byte{[]byte("abab cab baab abc")}), token.TrainOptions{
		Size: 270, Pieces: &token.PieceOptions{},
	})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := sp.Save(dir); err != nil {
		t.Fatal(err)
	}
	models := []Model{lettersModel(t, "base", 7), {"pieces", dir, sp.Size()}}
	v := build(t, models, Options{})
	for id := range sp.Size() {
		text, _ := sp.Token(int32(id))
		if at := slices.Index(v.texts, text); at < 0 || v.own[1][at] != int32(id) {
			t.Errorf("piece %q: got id %d in the output", text, at)
		}
	}
	out, err := newTokenizer(v.Files, "")
	if err != nil || !out.flagsOf("</s>").special {
		t.Errorf("</s>: got %+v, %v, want a special token", out.flagsOf("</s>"), err)
	}
	_, err = Build(models, Options{Base: 1})
	if !errors.Is(err, fault.Data) || !strings.Contains(err.Error(), "want a tokenizer.json") {
		t.Errorf("as the base: got %v", err)
	}
}

const unigram = `{"version": "1.0", "added_tokens": [], "model": {"type": "Unigram", "unk_id": 0,
  "vocab": [["<unk>", 0.0], ["a", -1.0], ["b", -2.0]]}}`

func TestUnigram(t *testing.T) {
	m := Model{"u", folder(t, map[string]string{fileTokenizer: unigram}), 3}
	v := build(t, []Model{m, lettersModel(t, "l", 5)}, Options{})
	if got := strings.Join(v.list(), " "); got != "<unk> a b c ab abc" {
		t.Errorf("got %s", got)
	}
	m.Rows = 2
	if _, err := Build([]Model{m}, Options{}); !errors.Is(err, fault.Data) || !strings.Contains(err.Error(), "got a tokenizer of the kind Unigram") {
		t.Errorf("got %v", err)
	}
}

// TestHoles has ids without a token.
func TestHoles(t *testing.T) {
	hole := Model{"hole", folder(t, map[string]string{
		fileTokenizer: `{"version": "1.0", "model": {"type": "BPE", "vocab": {"a": 0, "b": 2, "c": 4}, "merges": []}}`,
	}), 6}
	v := build(t, []Model{hole}, Options{Source: Source{Kind: OfBase}, Pad: 4})
	if got := strings.Join(v.list(), " "); got != "a - b - c" || v.Rows != 8 || v.Tokens != 3 {
		t.Errorf("got %s, %d rows, %d tokens", got, v.Rows, v.Tokens)
	}
	m, err := v.Matrix(0, width, []int{6}, storedRows)
	if err != nil {
		t.Fatal(err)
	}
	dst := make([]float32, 8*width)
	if err := m.Read(0, len(dst), dst); err != nil {
		t.Fatal(err)
	}
	for id, want := range []float32{0, 2, 2, 2, 4, 2, 2, 2} { // the mean of 0, 2 and 4 is 2
		if got := dst[id*width]; got != want {
			t.Errorf("row %d: got %v, want %v", id, got, want)
		}
	}
	_, err = Build([]Model{hole}, Options{Tokens: []Token{{Text: "x"}, {Text: "y"}}})
	if !errors.Is(err, fault.Data) || !strings.Contains(err.Error(), "ids beyond") {
		t.Errorf("new tokens: got %v", err)
	}
}

func TestRules(t *testing.T) {
	// x has no c; its ab is the base's b, and so on.
	models := []Model{
		lettersModel(t, "base", 4),
		lettersModel(t, "x", 7),
		lettersModel(t, "y", 7, `"c": 2`, `"z": 2`, `"ab c"`, `"a b"`),
	}
	rows := []int{4, 7, 7}
	first := func(v *Vocabulary, model int, text string, rows []int) float32 {
		t.Helper()
		m, err := v.Matrix(model, width, rows, storedRows)
		if err != nil {
			t.Fatal(err)
		}
		var dst [1]float32
		id := slices.Index(v.texts, text)
		if err := m.Read(id*width, id*width+1, dst[:]); err != nil {
			t.Fatal(err)
		}
		return dst[0]
	}
	tokens := []Token{
		{Text: "zero", Kind: Zero},
		{Text: "a", Kind: Zero, Force: true},
		{Text: "b", Force: true},
		{Text: "c", Kind: FromModel, Model: 1},
		{Text: "ab", Kind: FromToken, Model: 2, Token: "z", Force: true},
		{Text: "id", Kind: FromToken, Model: 1, ID: 6, ByID: true},
		{Text: "none"},
	}
	v := build(t, models, Options{Tokens: tokens})
	plain := build(t, models, Options{NoBase: true})
	mean := build(t, models, Options{NoBase: true, Tokens: []Token{{Text: "b", Force: true}}})
	for _, c := range []struct {
		name  string
		v     *Vocabulary
		model int
		text  string
		rows  []int
		want  float32
	}{
		{"own", plain, 1, "b", rows, 64 + 1},
		{"the only model", plain, 0, "z", rows, 128 + 2},
		{"the only model that has the tensor", plain, 0, "abc", []int{4, 0, 7}, 128 + 4},
		{"the base", build(t, models, Options{}), 2, "c", rows, 2},
		{"the mean without a base", plain, 2, "c", rows, (2 + 64 + 2) / 2.0},
		{"the mean without a row in the base", plain, 0, "abc", rows, (64 + 4 + 128 + 4) / 2.0},
		{"the mean of three by force", mean, 1, "b", rows, (1 + 64 + 1 + 128 + 1) / 3.0},
		{"zeros", v, 1, "zero", rows, 0},
		{"zeros by force", v, 1, "a", rows, 0},
		{"force alone: the base's", v, 1, "b", rows, 1},
		{"own, though a source is given", v, 0, "c", rows, 2},
		{"the source", v, 2, "c", rows, 64 + 2},
		{"another token's row", v, 1, "ab", rows, 128 + 2},
		{"another token's row by id", v, 0, "id", rows, 64 + 6},
		{"nobody's", v, 2, "none", rows, 0},
	} {
		if got := first(c.v, c.model, c.text, c.rows); got != c.want {
			t.Errorf("%s: got %v, want %v", c.name, got, c.want)
		}
	}
	for _, c := range []struct {
		name string
		rows []int
		err  string
	}{
		{"a source without the tensor", []int{4, 0, 7}, `token "c" from row 2 of x: got 0 rows`},
		{"fewer rows than the configuration says", []int{4, 7, 3}, "y: token"},
		{"rows of other models", []int{4, 7}, "want one of 3 models"},
		{"no tensor", []int{4, 7, 0}, "want the tensor"},
	} {
		if _, err := v.Matrix(2, width, c.rows, storedRows); err == nil || !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: got %v, want %q", c.name, err, c.err)
		}
	}
}

func TestBuildErrors(t *testing.T) {
	models := []Model{lettersModel(t, "m", 7), lettersModel(t, "n", 7, `"c": 2`, `"d": 2`, `"ab c"`, `"a b"`)}
	for _, c := range []struct {
		name string
		o    Options
		want []string
	}{
		{"numbers of models", Options{Base: 2, Source: Source{OfModel, -1}, Pad: -1}, []string{"base: got model 2", "source: got model -1", "multiple: got -1"}},
		{"tokens", Options{Tokens: []Token{{}, {Text: "a"}, {Text: "a", Kind: FromModel, Model: 7}}}, []string{"got no text", `"a" is listed twice`, "got model 7"}},
		{"tokens that are not there", Options{Tokens: []Token{
			{Text: "c", Kind: FromModel, Model: 1},
			{Text: "x", Kind: FromToken, Model: 1, Token: "c"},
			{Text: "y", Kind: FromToken, Model: 1, ID: -1, ByID: true},
		}}, []string{`"c" from n: that model`, `"x" from "c" of n`, `"y" from token -1 of n`}},
	} {
		_, err := Build(models, c.o)
		if !errors.Is(err, fault.Config) {
			t.Errorf("%s: got %v", c.name, err)
			continue
		}
		for _, want := range c.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: got %v, want %q", c.name, err, want)
			}
		}
	}
}

// TestRead reads a matrix in parts, at once in several goroutines, and compares with
// the whole. Padding is made by one reading of all rows.
func TestRead(t *testing.T) {
	const W = 5
	models := []Model{
		{"plain", "testdata/plain", 64}, {"other", "testdata/other", 72}, {"short", "testdata/short", 60},
	}
	v := build(t, models, Options{Pad: 16, NoBase: true})
	var reads atomic.Int64
	stored := func(model, lo, hi int, dst []float32) error {
		reads.Add(int64(hi - lo))
		if lo < 0 || hi > models[model].Rows || len(dst) != (hi-lo)*W {
			return fmt.Errorf("model %d: rows %d to %d, a place for %d", model, lo, hi, len(dst))
		}
		for i := range dst {
			dst[i] = float32(model*1000+lo) + float32(i)/W
		}
		return nil
	}
	m, err := v.Matrix(2, W, []int{64, 72, 60}, stored)
	if err != nil {
		t.Fatal(err)
	}
	whole := make([]float32, v.Rows*W)
	if err := m.Read(0, len(whole), whole); err != nil {
		t.Fatal(err)
	}
	if n := reads.Load(); n > int64(6*v.Rows) {
		t.Errorf("got %d rows read, want few more than twice %d", n, v.Rows)
	}
	if m, err = v.Matrix(2, W, []int{64, 72, 60}, stored); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for seed := range 4 {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(uint64(seed), 0))
			for range 200 {
				lo := r.IntN(len(whole) + 1)
				hi := lo + r.IntN(min(len(whole)-lo, 40)+1)
				got := make([]float32, hi-lo)
				if err := m.Read(lo, hi, got); err != nil || !slices.Equal(got, whole[lo:hi]) {
					t.Errorf("elements %d to %d: got %v, %v", lo, hi, got, err)
				}
			}
		})
	}
	wg.Wait()
	for _, c := range [][3]int{{-1, 1, 2}, {2, 1, 0}, {0, len(whole) + 1, len(whole) + 1}, {0, 2, 1}} {
		if err := m.Read(c[0], c[1], make([]float32, max(0, c[2]))); err == nil {
			t.Errorf("elements %d to %d: got no error", c[0], c[1])
		}
	}
}

func TestReadFails(t *testing.T) {
	broken := errors.New("broken")
	v := build(t, []Model{lettersModel(t, "m", 7)}, Options{Pad: 4})
	m, err := v.Matrix(0, 2, []int{7}, func(_, lo, _ int, _ []float32) error {
		if lo == 0 {
			return broken
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, at := range []int{0, 14} {
		if err := m.Read(at, at+1, make([]float32, 1)); !errors.Is(err, broken) {
			t.Errorf("element %d: got %v", at, err)
		}
	}
}

// FuzzTokenizer strips and extends what can be read, and reads it again.
func FuzzTokenizer(f *testing.F) {
	f.Add(letters, lettersConfig, 4)
	f.Add(unigram, `{"unk_token": "<unk>", "extra_special_tokens": {"x": "<x>"}}`, 3)
	f.Fuzz(func(t *testing.T, src, config string, rows int) {
		tok, err := newTokenizer(map[string][]byte{fileTokenizer: []byte(src), fileConfig: []byte(config)}, "")
		if err != nil || rows < 0 {
			return
		}
		out, _, err := tok.strip(rows)
		if err != nil {
			return
		}
		for text, id := range out.ids {
			if was, ok := tok.ids[text]; !ok || was != id || id >= rows {
				t.Fatalf("%d rows: %q has id %d, had %d", rows, text, id, was)
			}
		}
		more, err := out.extend([]addition{{"new", flags{}}})
		if _, again := out.listed["new"]; err != nil || again {
			return
		}
		if len(more.ids) < len(out.ids) || more.listed["new"] != len(more.list)-1 && !slices.ContainsFunc(more.list, func(a added) bool { return a.implied }) {
			t.Fatalf("got %d tokens of %d, %+v", len(more.ids), len(out.ids), more.list)
		}
		if _, err := strictjson.Parse(string(more.files[fileTokenizer])); err != nil {
			t.Fatal(err)
		}
	})
}

// TestSum: the hash changes with everything that a row depends on.
func TestSum(t *testing.T) {
	a, b := lettersModel(t, "a", 7), lettersModel(t, "b", 7)
	swapped := lettersModel(t, "b", 7, `"a": 0, "b": 1`, `"a": 1, "b": 0`)
	seen := map[[32]byte]int{}
	for i, c := range []struct {
		models []Model
		o      Options
	}{
		{[]Model{a, b}, Options{}},
		{[]Model{a, swapped}, Options{}},
		{[]Model{a, lettersModel(t, "b", 6)}, Options{}},
		{[]Model{a, b}, Options{NoBase: true}},
		{[]Model{a, b}, Options{Pad: 4}},
		{[]Model{a, b}, Options{Tokens: []Token{{Text: "a", Kind: Zero}}}},
		{[]Model{a, b}, Options{Tokens: []Token{{Text: "a", Kind: FromModel, Model: 1}}}},
		{[]Model{a, b}, Options{Tokens: []Token{{Text: "a", Kind: FromModel, Model: 1, Force: true}}}},
	} {
		sum := build(t, c.models, c.o).Sum()
		if again := build(t, c.models, c.o).Sum(); again != sum {
			t.Errorf("case %d: got %x and %x", i, sum, again)
		}
		if j, ok := seen[sum]; ok {
			t.Errorf("cases %d and %d have one hash", i, j)
		}
		seen[sum] = i
	}
}
