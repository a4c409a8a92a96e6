// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package fault

import "testing"

func TestDistance(t *testing.T) {
	for _, tt := range []struct {
		a, b string
		want int
	}{{"clip", "cilp", 1}, {"", "abc", 3}, {"Batch", "bach", 1}, {"a", "a", 0}, {"micro", "mirco", 1}} {
		if got := distance(tt.a, tt.b); got != tt.want {
			t.Errorf("%q to %q: got %d, want %d", tt.a, tt.b, got, tt.want)
		}
	}
}

func TestNearest(t *testing.T) {
	words := []string{"tiny", "llama-7b", "llama-13b"}
	for got, want := range map[string]string{"tinny": "tiny", "llama7b": "llama-7b", "Tiny": "tiny", "transformer": "", "": ""} {
		if w := Nearest(got, words); w != want {
			t.Errorf("%q: got %q, want %q", got, w, want)
		}
	}
}
