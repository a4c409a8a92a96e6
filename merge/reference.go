// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"fmt"
	"strings"
)

// Reference names a model, perhaps with an adapter. Two are the same model if and
// only if they are equal.
type Reference struct {
	Path, Revision           string
	Adapter, AdapterRevision string // of a LoRA; empty for none
	Architecture             string // in the place of the class that config.json names
}

// ParseReference reads path[@revision][+adapter[@revision]].
func ParseReference(s string) (Reference, error) {
	var r Reference
	model, adapter, found := strings.Cut(s, "+")
	if strings.Contains(adapter, "+") {
		return r, fmt.Errorf("got %q, want at most one + (path+adapter)", s)
	}
	var err error
	if r.Path, r.Revision, err = parsePath(model); err == nil && found {
		r.Adapter, r.AdapterRevision, err = parsePath(adapter)
	}
	return r, err
}

// parsePath reads path[@revision].
func parsePath(s string) (path, revision string, err error) {
	path, revision, _ = strings.Cut(s, "@")
	switch {
	case strings.Contains(revision, "@"):
		return "", "", fmt.Errorf("got %q, want at most one @ (path@revision)", s)
	case path == "":
		return "", "", fmt.Errorf("got %q, want the name or folder of a model", s)
	}
	return path, revision, nil
}

// String writes a reference as ParseReference reads it. It leaves out the
// architecture.
func (r Reference) String() string {
	s := pathText(r.Path, r.Revision)
	if r.Adapter != "" {
		s += "+" + pathText(r.Adapter, r.AdapterRevision)
	}
	return s
}

func pathText(path, revision string) string {
	if revision == "" {
		return path
	}
	return path + "@" + revision
}
