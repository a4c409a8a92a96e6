// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package blob

import (
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"pleach/internal/fault"
)

// Lock keeps a second process out of a folder of this machine. The lock goes with
// the process, however it ends. The error is of kind fault.Machine where another
// process has it.
func Lock(dir string) (unlock func(), err error) {
	f, err := os.OpenFile(filepath.Join(dir, ".lock"), os.O_CREATE|os.O_RDWR, 0o666)
	if err != nil {
		return nil, fault.Machinef("blob: locking %s: %w", dir, err)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		_ = f.Close()
		return nil, fault.Machinef("blob: locking %s: another process is at work there", dir)
	}
	return func() { _ = f.Close() }, nil
}

// lockFile waits for the lock on an open file. Closing the file, or the end of
// the process, gives it back.
func lockFile(f *os.File) error {
	for {
		if err := unix.Flock(int(f.Fd()), unix.LOCK_EX); err != unix.EINTR {
			return err
		}
	}
}
