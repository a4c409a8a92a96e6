// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package main

import (
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"pleach/internal/fault"
)

// lock keeps a second process out of a run directory. The lock goes with the
// process, however it ends.
func lock(dir string) (unlock func(), err error) {
	f, err := os.OpenFile(filepath.Join(dir, ".lock"), os.O_CREATE|os.O_RDWR, 0o666)
	if err != nil {
		return nil, fault.Machinef("run directory: %w", err)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		_ = f.Close()
		return nil, fault.Machinef("run directory %s: another process is training in it", dir)
	}
	return func() { _ = f.Close() }, nil
}
