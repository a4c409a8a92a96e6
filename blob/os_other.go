// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

//go:build !linux && !darwin && !windows

package blob

import (
	"errors"
	"os"
	"syscall"
)

func free(string) (int64, error) { return -1, nil }

func syncDir(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

func full(err error) bool { return errors.Is(err, syscall.ENOSPC) }
