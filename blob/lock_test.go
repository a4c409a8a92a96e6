// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package blob

import (
	"errors"
	"testing"

	"pleach/internal/fault"
)

// TestLock: a folder has one holder at a time, and is free again after it.
func TestLock(t *testing.T) {
	dir := t.TempDir()
	unlock, err := Lock(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Lock(dir); !errors.Is(err, fault.Machine) {
		t.Errorf("a second lock: got %v, want an error of kind machine", err)
	}
	unlock()
	again, err := Lock(dir)
	if err != nil {
		t.Fatalf("after unlocking: %v", err)
	}
	again()
}
