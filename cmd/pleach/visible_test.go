// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"testing"
)

// TestVisible: nothing that a document holds acts on the terminal.
func TestVisible(t *testing.T) {
	for in, want := range map[string]string{
		"":                     "",
		"plain é 語 👩‍🚀":        "plain é 語 👩‍🚀",
		"a\x1b[2Jb":            "a␛[2Jb",
		"tab\tnew\nline\r":     "tab␉new␊line␍",
		"\x00\x7f":             "␀␡",
		"\u009b31m":            `\u009b31m`,
		"\x9b31m":              `\x9b31m`,
		"x\u202egnp.exe":       `x\u202egnp.exe`,
		"\ufeff\u2028":         `\ufeff\u2028`,
		"\ufffd is a letter":   "\ufffd is a letter",
		"half \xe2\x82 a euro": `half \xe2\x82 a euro`,
	} {
		if got := visible(in); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}

// TestInert: JSON for a terminal reads back as the same.
func TestInert(t *testing.T) {
	for in, want := range map[string]string{
		"plain é":          `"plain é"`,
		"a\u009b\x7f语\x1b": `"a\u009b\u007f语\u001b"`,
	} {
		b, err := json.Marshal(in)
		if err != nil {
			t.Fatal(err)
		}
		var back string
		if got := inert(b); string(got) != want || json.Unmarshal(got, &back) != nil || back != in {
			t.Errorf("%q: got %s, want %s", in, got, want)
		}
	}
}
