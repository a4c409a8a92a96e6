// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package blob

import (
	"os"

	"golang.org/x/sys/windows"
)

// lockFile waits for the lock on an open file. Closing the file, or the end of
// the process, gives it back.
func lockFile(f *os.File) error {
	return windows.LockFileEx(windows.Handle(f.Fd()), windows.LOCKFILE_EXCLUSIVE_LOCK, 0, 1, 0,
		&windows.Overlapped{OffsetHigh: 1}) // a byte that nobody reads
}
