// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package blob

import (
	"errors"

	"golang.org/x/sys/windows"
)

func free(path string) (int64, error) {
	p, err := windows.UTF16PtrFromString(path)
	if err != nil {
		return 0, err
	}
	var n uint64
	if err := windows.GetDiskFreeSpaceEx(p, &n, nil, nil); err != nil {
		return 0, err
	}
	return int64(n), nil
}

// A folder handle cannot be flushed on Windows.
func syncDir(string) error { return nil }

func full(err error) bool {
	return errors.Is(err, windows.ERROR_DISK_FULL) || errors.Is(err, windows.ERROR_HANDLE_DISK_FULL) ||
		errors.Is(err, windows.ERROR_DISK_QUOTA_EXCEEDED)
}
