// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package fault

import (
	"errors"
	"fmt"
	"io/fs"
	"testing"
)

func TestExit(t *testing.T) {
	missing := Dataf("weights: reading %s: %w", "a", fs.ErrNotExist)
	for _, tt := range []struct {
		err  error
		want int
	}{
		{nil, 0},
		{errors.New("?"), 70},
		{Configf("x"), 2},
		{missing, 3},
		{fmt.Errorf("outer: %w", missing), 3},
		{As(State, missing), 4},
		{Machinef("x"), 1},
		{As(Stopped, errors.New("x")), 75},
	} {
		if got := Exit(tt.err); got != tt.want {
			t.Errorf("Exit(%v) = %d, want %d", tt.err, got, tt.want)
		}
	}
	if missing.Error() != "weights: reading a: file does not exist" || !errors.Is(missing, fs.ErrNotExist) ||
		!errors.Is(missing, Data) {
		t.Errorf("%v lost its words, cause or kind", missing)
	}
}
