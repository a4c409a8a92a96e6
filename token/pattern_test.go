// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package token

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestPatternRefused: what the two engines read differently is not guessed.
func TestPatternRefused(t *testing.T) {
	for _, tt := range []struct{ expr, want string }{
		{`\w+`, `\w at byte 0 of the pattern: not supported`},
		{`a\b`, `\b at byte 1 of the pattern: not supported`},
		{`(a)\1`, `\1 at byte 3 of the pattern: not supported`},
		{`[a[b]]`, `a class inside a class at byte 2 of the pattern: not supported`},
		{`[a&&b]`, `a class inside a class at byte 2 of the pattern: not supported`},
		{`[^\P{L}]`, `a category that is negated inside a class at byte 2 of the pattern: not supported`},
		{`[]a]`, `a class that is empty or has no end at byte 1 of the pattern: not supported`},
		{`\p{Han}`, `category "Han" at byte 0 of the pattern: not supported`},
		{`\p`, `\p without a category at byte 0 of the pattern: not supported`},
		{`(?m:.)`, `this kind of group at byte 0 of the pattern: not supported`},
		{`a{2}+`, `{ at byte 1 of the pattern: not supported`},
		{`a\`, `a backslash at the end at byte 1 of the pattern: not supported`},
	} {
		if _, err := compile(tt.expr); err == nil || err.Error() != tt.want {
			t.Errorf("%s: got %v, want %s", tt.expr, err, tt.want)
		}
	}
}

// TestPatternTimeout: a pattern that backtracks without end is told by Err, and
// the text is encoded all the same.
func TestPatternTimeout(t *testing.T) {
	tok, err := parse([]byte(smallJSON("pre",
		`{"type":"Split","pattern":{"Regex":"(?:a|aa)*[cd][ef]"},"behavior":"Isolated","invert":false}`)))
	if err != nil {
		t.Fatal(err)
	}
	tok.pipe.stages[0].(patternStage).re.re.MatchTimeout = 200 * time.Millisecond
	if tok.Encode(nil, []byte("ab")); tok.Err() != nil {
		t.Fatalf("a short text: %v", tok.Err())
	}
	ids := tok.Encode(nil, []byte(strings.Repeat("a", 60)+"cce"))
	if tok.Err() == nil || !strings.HasPrefix(tok.Err().Error(), "token: splitting by ") {
		t.Errorf("got %v, want a timeout", tok.Err())
	}
	if len(ids) != 60 {
		t.Errorf("got %d ids, want 60", len(ids))
	}
}

// scanned are the patterns with a scanner.
var scanned = []string{patternGPT2, patternLlama3, patternQwen2, patternO200k}

// sameSplit compares a scanner with the engine running the pattern that it
// stands for.
func sameSplit(t *testing.T, expr string, re *pattern, s []byte) {
	t.Helper()
	var a, b level
	if err := re.split(&a, s); err != nil {
		t.Fatal(err)
	}
	scanStage{scannerFor(expr)}.split(&b, s, true)
	if !slices.Equal(a.spans, b.spans) {
		t.Errorf("%s: %q: pattern %v, scanner %v", expr, s, a.spans, b.spans)
	}
}

// patterns are compiled [scanned].
func patterns(t testing.TB) (out []*pattern) {
	for _, expr := range scanned {
		re, err := compile(expr)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, re)
	}
	return out
}

// TestScannersMatchPatterns: on the hard strings, on random strings of what the
// patterns tell apart, at all distances from the end, and on code.
func TestScannersMatchPatterns(t *testing.T) {
	atoms := []string{
		"a", "B", "s", "t", "LL", "re", "'", "'s", "'RE", "\u017f", "word", "Word", "aVeryLongWordIndeed", "ABCDEFGHIJ", "lowercase",
		" ", "  ", "\t", "\n", "\r", "\r\n", "\u00a0", "\u2003", "\u0085", "1", "23", "4567", "\u0661", "\u00bd", "\u2167",
		".", "!?", "/", "//", "_", "$", "\u2014", "\u00e9", "\u00c9", "\u01c5", "\u02b0", "\u4e00", "\u05d0", "\u0301", "\u0903",
		"\U0001f600", "\u1c89", "\ufffd", "\xff", "\xe2\x96",
	}
	rng := rand.New(rand.NewPCG(3, 4))
	for k, re := range patterns(t) {
		for _, s := range hardStrings(t) {
			sameSplit(t, scanned[k], re, s)
		}
		for range 20000 {
			var s []byte
			for range rng.IntN(14) {
				s = append(s, atoms[rng.IntN(len(atoms))]...)
			}
			sameSplit(t, scanned[k], re, s)
			if t.Failed() {
				t.FailNow()
			}
		}
		sameSplit(t, scanned[k], re, goText(t, 1<<17))
	}
}

func FuzzScanners(f *testing.F) {
	for _, s := range hardStrings(f) {
		f.Add(s)
	}
	all := patterns(f)
	f.Fuzz(func(t *testing.T, s []byte) {
		for k, re := range all {
			sameSplit(t, scanned[k], re, s)
		}
	})
}
