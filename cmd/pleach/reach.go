// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"pleach/data"
)

// reach is how a command's documents are reached: files of this machine and
// objects of stores, with a cache for what has to be fetched or decompressed.
type reach struct {
	data.Access
	stop func() bool
}

// newReach makes a reach; the end of ctx ends what it waits for. What does not stop
// reading is said on w.
func newReach(ctx context.Context, w io.Writer) (*reach, error) {
	remote, err := newRemote(func(message string) { fmt.Fprintln(w, "warning:", message) })
	if err != nil {
		return nil, err
	}
	r := &reach{Access: data.Access{Cache: cacheFolder("data"), Remote: remote}}
	r.stop = context.AfterFunc(ctx, func() { remote.Close() })
	return r, nil
}

func (r *reach) close() {
	if r != nil && r.stop() {
		r.Remote.Close()
	}
}

// cacheFolder is a folder of its own for each kind of what is kept: below
// PLEACH_CACHE, else below the user's folder for caches; "" where there is none.
func cacheFolder(kind string) string {
	if dir := os.Getenv("PLEACH_CACHE"); dir != "" {
		return filepath.Join(dir, kind)
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	return filepath.Join(dir, "pleach", kind)
}
