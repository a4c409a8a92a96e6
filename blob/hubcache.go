// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package blob

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// HubCache is the folder in which Python tools of the Hugging Face hub keep
// repositories: HF_HUB_CACHE, or hub in HF_HOME or ~/.cache/huggingface.
func HubCache() string {
	if dir := os.Getenv("HF_HUB_CACHE"); dir != "" {
		return dir
	}
	return filepath.Join(hubHome(), "hub")
}

// HubSnapshot is the folder of a model, org/name, in such a cache. A revision is a
// branch, a tag or a commit; empty is main.
//
//	cache/models--org--name/refs/main              a commit
//	cache/models--org--name/snapshots/COMMIT/…     its files
func HubSnapshot(cache, model, revision string) (string, error) {
	if revision == "" {
		revision = "main"
	}
	dir := filepath.Join(cache, "models--"+strings.ReplaceAll(model, "/", "--"))
	if !filepath.IsLocal(model) || !filepath.IsLocal(revision) || strings.Count(model, "/") > 1 {
		return "", errors.New("it is no name of a model of the hub")
	}
	if b, err := os.ReadFile(filepath.Join(dir, "refs", revision)); err == nil {
		revision = strings.TrimSpace(string(b))
	}
	if !filepath.IsLocal(revision) {
		return "", fmt.Errorf("the hub's cache %s is damaged", cache)
	}
	at := filepath.Join(dir, "snapshots", revision)
	if info, err := os.Stat(at); err != nil || !info.IsDir() {
		return "", fmt.Errorf("the hub's cache %s has no such model", cache)
	}
	return at, nil
}
