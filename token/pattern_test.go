// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package token

import (
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

// TestScannersMatchPatterns compares the hand-written scanners with the engine
// running the patterns that they stand for.
func TestScannersMatchPatterns(t *testing.T) {
	for _, expr := range []string{patternGPT2, patternLlama3, patternQwen2} {
		re, err := compile(expr)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range hardStrings(t) {
			var a, b level
			if err := re.split(&a, s); err != nil {
				t.Fatal(err)
			}
			scanStage{scannerFor(expr)}.split(&b, s, true)
			if len(a.spans) != len(b.spans) {
				t.Errorf("%s: %q: pattern %v, scanner %v", expr, s, a.spans, b.spans)
				continue
			}
			for i := range a.spans {
				if a.spans[i] != b.spans[i] {
					t.Errorf("%s: %q: pattern %v, scanner %v", expr, s, a.spans, b.spans)
					break
				}
			}
		}
	}
}
