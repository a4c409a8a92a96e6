// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	"pleach/data"
)

// TestSeenLine: how often a source is seen, with the digits that are worth it.
func TestSeenLine(t *testing.T) {
	for _, c := range []struct {
		in   data.Repetition
		want string
	}{
		{data.Repetition{Source: "a", Tokens: 1_200_000_000, Taken: 5_040_000_000}, "source a: about 1.2 B tokens, would be seen 4.2 times"},
		{data.Repetition{Source: "a", Tokens: 1000, Taken: 12_340, Exact: true}, "source a: 1 k tokens, would be seen 12 times"},
		{data.Repetition{Source: "a", Tokens: 100, Taken: 3, Exact: true}, "source a: 100 tokens, would be seen 0.03 times"},
		{data.Repetition{Source: "a", Tokens: 10, Taken: 12_345, Exact: true}, "source a: 10 tokens, would be seen 1.23 k times"},
		{data.Repetition{Source: "a"}, "source a: about 0 tokens, would be seen 0 times"},
	} {
		if got := seenLine(c.in); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
}
