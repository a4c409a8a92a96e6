// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"pleach/data"
	"pleach/token"
)

// viewOf shows rows of a tokenizer of token's testdata.
func viewOf(t *testing.T, name string, colour bool) (*rowView, *bytes.Buffer) {
	t.Helper()
	var out bytes.Buffer
	v := &rowView{w: bufio.NewWriter(&out), colour: colour, special: map[int32]string{}, sources: []string{"a"}}
	if name == "" {
		return v, &out
	}
	var err error
	if v.tokenizer, err = token.Open(tokenTestdata(name)); err != nil {
		t.Fatal(err)
	}
	v.bos, _ = v.tokenizer.BOS()
	v.eos, _ = v.tokenizer.EOS()
	return v, &out
}

// rowOf is a row of one document and its end, all but the first id targets.
func rowOf(v *rowView, text string) data.Row {
	ids := append(v.tokenizer.Encode(nil, []byte(text)), v.eos)
	r := data.Row{IDs: ids, Labels: slices.Clone(ids[1:]), Docs: []data.Span{{ID: "d", To: len(ids)}}}
	return r
}

func shown(t *testing.T, v *rowView, out *bytes.Buffer, r data.Row) string {
	t.Helper()
	out.Reset()
	if err := v.row(&r); err != nil {
		t.Fatal(err)
	}
	v.w.Flush()
	return out.String()
}

// TestRowViewText: the text of a row is there whole, with characters of several
// tokens, whichever way the tokenizer has of writing them, and nothing in it acts.
func TestRowViewText(t *testing.T) {
	const text = "Zoë ate 🧁 and 語 twice; \x1b[2J\u009b31m\x07 gone\n next"
	want := "Zoë ate 🧁 and 語 twice; ␛[2J\\u009b31m␇ gone↵\n next"
	for _, name := range []string{"llama2.json", "llama3.json", "gpt2.json", "piece.model", "ours"} {
		v, out := viewOf(t, name, false)
		got := shown(t, v, out, rowOf(v, text))
		got = strings.NewReplacer("⟦", "", "⟧", "").Replace(got)
		if !strings.Contains(got, want) {
			t.Errorf("%s: got %q, want in it %q", name, got, want)
		}
		end, _ := v.tokenizer.Token(v.eos)
		if !strings.Contains(got, "⟨"+end+"⟩") {
			t.Errorf("%s: no mark of the end in %q", name, got)
		}
	}
}

// TestRowViewMarks: what carries no loss, borders of documents and padding are seen,
// with colours and without.
func TestRowViewMarks(t *testing.T) {
	for _, colour := range []bool{false, true} {
		v, out := viewOf(t, "ours", colour)
		a, b := v.tokenizer.Encode(nil, []byte("first")), v.tokenizer.Encode(nil, []byte("second"))
		ids := append(slices.Clone(a), v.eos)
		n := len(ids)
		ids = append(append(ids, b...), v.eos, v.eos, v.eos)
		r := data.Row{IDs: ids, Labels: slices.Clone(ids[1:]), Index: 7, Lane: 3, Docs: []data.Span{
			{ID: "one\x1b]0;x\x07", To: n, Offset: 5}, {ID: "two", From: n, To: n + len(b) + 1},
		}}
		r.Labels[n-1] = -1                                  // the first id of a document
		r.Labels[len(ids)-3], r.Labels[len(ids)-2] = -1, -1 // padding
		got := shown(t, v, out, r)
		if strings.Contains(got, "\x1b]") || strings.Contains(got, "\x07") {
			t.Errorf("the name of a document acts: %q", got)
		}
		plain := regexp.MustCompile("\x1b\\[[0-9]+m").ReplaceAllString(got, "")
		for _, want := range []string{
			fmt.Sprintf("row 7, lane 3: %d of %d targets, 2 documents, 2 ids of padding\n", len(ids)-4, len(ids)-1),
			fmt.Sprintf("── one␛]0;x␇ (source a, ids 5 … %d of it)\n", 5+n-1), "── two (source a, ids 0 … ", "⟨padding: 2 ids⟩\n",
		} {
			if !strings.Contains(plain, want) {
				t.Errorf("colour %v: no %q in %q", colour, want, plain)
			}
		}
		if colour == strings.Contains(got, "⟦") || colour != strings.Contains(got, dimColour) {
			t.Errorf("colour %v: got %q", colour, got)
		}
		head, _, _ := strings.Cut(strings.SplitN(got, "two (", 2)[1], "\n")
		_, body, _ := strings.Cut(got, head+"\n")
		open, shut := "⟦", "⟧"
		if colour {
			open, shut = dimColour, plainColour
		}
		piece, _ := v.tokenizer.Token(b[0])
		if !strings.HasPrefix(body, open+piece+shut) {
			t.Errorf("colour %v: the first id of a document: got %q, want %q without loss", colour, body, piece)
		}
	}
}

// TestRowViewIDs: without a tokenizer ids are shown, and an id that the tokenizer
// does not have is too.
func TestRowViewIDs(t *testing.T) {
	r := data.Row{IDs: []int32{5, 6, 70}, Labels: []int32{6, 70}, Docs: []data.Span{{ID: "d", To: 3}}}
	v, out := viewOf(t, "", false)
	if got := shown(t, v, out, r); !strings.Contains(got, "\n⟦5 ⟧6 70 \n") {
		t.Errorf("got %q", got)
	}
	v, out = viewOf(t, "ours", false)
	r.IDs[1] = 1 << 20
	if got := shown(t, v, out, r); !strings.Contains(got, "⟨1048576⟩") {
		t.Errorf("got %q", got)
	}
}

// TestClasses: which ids stand for what a vocabulary lacks.
func TestClasses(t *testing.T) {
	for name, want := range map[string]struct{ unknown, fallback bool }{
		"llama2.json": {false, true}, "gpt2.json": {}, "piece.model": {false, true}, "trim.model": {true, false},
		"words.json": {true, false},
	} {
		tok, err := token.Open(tokenTestdata(name))
		if err != nil {
			t.Fatal(err)
		}
		class := classes(tok)
		got := map[data.Class]bool{}
		for _, id := range tok.Encode(nil, []byte("usual words \U0010ab00 here")) {
			got[class(id)] = true
		}
		if got[data.Unknown] != want.unknown || got[data.Fallback] != want.fallback || !got[data.Usual] {
			t.Errorf("%s: got %v, want %+v", name, got, want)
		}
		if class(-1) != data.Usual || class(1<<30) != data.Usual {
			t.Errorf("%s: an id that it does not have: want usual", name)
		}
	}
	if classes(nil) != nil {
		t.Error("without a tokenizer: want none")
	}
}

// TestSurveyPage: the page needs nothing from elsewhere, and names of files in it
// are text.
func TestSurveyPage(t *testing.T) {
	s := data.SourceSurvey{
		Name: `<script>alert("x")</script>`, Bytes: 1000, Looked: 500, Documents: 3, Tokens: 90, InTokens: true,
		Skipped: map[string]int64{"empty": 2}, Examples: map[string]string{"empty": "a<b>&\x1b.txt"},
	}
	for _, n := range []int64{1, 9, 80} {
		s.Lengths.Add(n)
	}
	var out bytes.Buffer
	if err := surveyPage(&out, []data.SourceSurvey{s}, 64, "corpus & <more>"); err != nil {
		t.Fatal(err)
	}
	page := out.String()
	for _, want := range []string{
		"&lt;script&gt;", "corpus &amp; &lt;more&gt;", "2 empty (a&lt;b&gt;&amp;␛.txt)", "about 6", "about 180",
		"1 documents of 64 to 127 tokens", "<svg width=\"308\"",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("no %q in the page", want)
		}
	}
	if m := regexp.MustCompile(`(?i)<script|<link|<img|@import|url\(|src=|href=|https?:`).FindString(page); m != "" {
		t.Errorf("the page has %q", m)
	}
	if strings.Count(page, "<rect") != 7 {
		t.Errorf("the chart has %d bars, want those of 1 to 127", strings.Count(page, "<rect"))
	}
}

// TestFacts: what a survey says in words.
func TestFacts(t *testing.T) {
	s := data.SourceSurvey{
		Name: "a", Files: 2, Bytes: 1 << 20, Looked: 1 << 20, Documents: 1000, TextBytes: 36_000, TextIDs: 9000, Tokens: 10_000,
		Unknown: 1000, Fallback: 5, Overlong: 1000, InTokens: true, Field: "text",
		Duplicates: data.Duplicates{Documents: 500, Copies: 2, Part: 0.5},
	}
	got := map[string]string{}
	for _, f := range facts(&s, 8) {
		got[f.Name] = f.Value
	}
	for name, want := range map[string]string{
		"files": `2, 1 MiB, of each line or row the field "text"`, "documents": "1 000", "tokens": "10 000",
		"bytes per token": "4.000, 0.250 tokens per byte", "unknown": "10.0 % (1 000) of the tokens, byte fallback 0.05 % (5)",
		"overlong": "100.0 % (1 000) of the documents have more than 8 tokens",
		"copies":   "0.4 % (2) of the documents, of the 500 that were compared",
	} {
		if got[name] != want {
			t.Errorf("%s: got %q, want %q", name, got[name], want)
		}
	}
}

// TestETA: progress says how long the rest takes, and is quiet about what is quick.
func TestETA(t *testing.T) {
	var out bytes.Buffer
	e := newETA(&out)
	e.see("looking", 1, 4)
	if out.Len() > 0 {
		t.Errorf("at once: got %q", out.String())
	}
	e.began = time.Now().Add(-10 * time.Second)
	e.see("looking", 0, 4)
	e.see("looking", 1, 4)
	e.see("looking", 2, 4) // too soon after
	if out.String() != "looking: 25 %, 30s left\n" {
		t.Errorf("got %q", out.String())
	}
}

// TestEncodes: what a tokenizer fails at is not hidden by who counts its texts.
func TestEncodes(t *testing.T) {
	tok, err := token.Open(tokenTestdata("ours"))
	if err != nil {
		t.Fatal(err)
	}
	e := &encodes{Encoder: tok}
	if e.Encode(nil, []byte("four")); e.bytes.Load() != 4 || e.Err() != nil {
		t.Errorf("got %d bytes, %v", e.bytes.Load(), e.Err())
	}
	e.Encoder = failing{}
	if e.Err() == nil {
		t.Error("the failure of the encoder is lost")
	}
	var r dataReport
	r.Seconds, r.Tokens = 2, 100
	r.settle(map[data.Work]float64{data.Reading: 1}, map[data.Work]float64{data.Reading: 2, data.Encoding: 3}, 50)
	b, err := json.Marshal(r.Shares)
	if err != nil || r.TokensPerSecond != 50 || r.TextPerSecond != 25 || string(b) != `{"reading and decompressing":0.25,"tokenizing":0.75}` {
		t.Errorf("got %+v, %s", r, b)
	}
}

type failing struct{ data.Encoder }

func (failing) Err() error { return fmt.Errorf("too long") }
