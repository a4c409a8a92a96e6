// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package ckpt

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strconv"

	"pleach/blob"
	"pleach/internal/fault"
)

const (
	manifestName = "manifest.json"
	format       = 1

	// jsonLimit bounds what is read into memory at once: 70 B parameters on 4096
	// ranks have some 300 MB of boxes in all, and a rank far less.
	jsonLimit = 256 << 20
)

var errFormat = errors.New("written by another version of pleach")

type manifest struct {
	Format int     `json:"format"`
	Step   int64   `json:"step"`
	Files  []entry `json:"files"`
}

type entry struct {
	Name   string `json:"name"`
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
}

func (m manifest) encode() []byte {
	slices.SortFunc(m.Files, func(a, b entry) int { return cmp.Compare(a.Name, b.Name) })
	return indent(m)
}

// indent prints v as JSON; v is of our own types, so it cannot fail.
func indent(v any) []byte {
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		panic(err)
	}
	return append(b, '\n')
}

// readManifest reads and checks the manifest alone.
func readManifest(s blob.Store, dir string) (manifest, error) {
	var m manifest
	name := path.Join(dir, manifestName)
	b, err := blob.ReadFile(s, name, jsonLimit)
	if err != nil {
		return m, fault.Statef("ckpt: %w", err)
	}
	bad := func(format string, args ...any) (manifest, error) {
		return m, fault.Statef("ckpt: %s: "+format, append([]any{s.Path(name)}, args...)...)
	}
	if err := json.Unmarshal(b, &m); err != nil {
		return bad("not a manifest: %w", err)
	}
	if m.Format != format {
		return bad("format: got %d, want %d: %w", m.Format, format, errFormat)
	}
	// The manifest has no hash of its own: there is one way to write it.
	if !bytes.Equal(b, m.encode()) {
		return bad("not as it was written")
	}
	for i, f := range m.Files {
		if !fs.ValidPath(f.Name) || f.Bytes < 0 || i > 0 && f.Name == m.Files[i-1].Name {
			return bad("file %q: want a path, once, and a size", f.Name)
		}
	}
	if n, ok := stepOf(path.Base(dir)); ok && n != m.Step {
		return bad("step: got %d, want %d, as the folder says", m.Step, n)
	}
	return m, nil
}

var stepName = regexp.MustCompile(`^step-(\d{8,18})$`)

func stepOf(name string) (int64, bool) {
	m := stepName.FindStringSubmatch(name)
	if m == nil {
		return 0, false
	}
	n, err := strconv.ParseInt(m[1], 10, 64)
	return n, err == nil && name == fmt.Sprintf("step-%08d", n)
}

// checkSize reports a file that is missing or of another size.
func (e entry) checkSize(s blob.Store, dir string) error {
	r, err := e.open(s, dir)
	if err != nil {
		return err
	}
	return r.Close()
}

func (e entry) open(s blob.Store, dir string) (blob.Reader, error) {
	name := path.Join(dir, e.Name)
	r, err := s.Open(name)
	if err != nil {
		return nil, fault.Statef("ckpt: %w", err)
	}
	if r.Size() != e.Bytes {
		_ = r.Close()
		return nil, fault.Statef("ckpt: %s: got %d bytes, want %d", s.Path(name), r.Size(), e.Bytes)
	}
	return r, nil
}

// checkHash reports a file that does not hold what was written. buf is scratch.
func (e entry) checkHash(s blob.Store, dir string, buf []byte) error {
	r, err := e.open(s, dir)
	if err != nil {
		return err
	}
	defer r.Close()
	h := sha256.New()
	if _, err := io.CopyBuffer(h, io.NewSectionReader(r, 0, e.Bytes), buf); err != nil {
		return fault.Statef("ckpt: %w", err)
	}
	if got := hex.EncodeToString(h.Sum(nil)); got != e.SHA256 {
		return fault.Statef("ckpt: %s: SHA-256: got %s, want %s: the file was changed or damaged",
			s.Path(path.Join(dir, e.Name)), got, e.SHA256)
	}
	return nil
}

// tally is a tree that notes the size and hash of what is written to it.
type tally struct {
	blob.Tree
	files []entry
}

func (t *tally) Write(name string, fill func(io.Writer) error) error {
	h := &hashing{h: sha256.New()}
	err := t.Tree.Write(name, func(w io.Writer) error {
		h.w = w
		return fill(h)
	})
	t.files = append(t.files, entry{name, h.n, hex.EncodeToString(h.h.Sum(nil))})
	return err
}

// hashing counts and hashes what passes. It hashes while the bytes are written,
// since each takes about as long as the other.
type hashing struct {
	w io.Writer
	h hash.Hash
	n int64
}

func (h *hashing) Write(b []byte) (int, error) {
	done := make(chan struct{})
	go func() {
		_, _ = h.h.Write(b) // never fails
		close(done)
	}()
	n, err := h.w.Write(b)
	<-done
	h.n += int64(n)
	return n, err
}

// nowhere is a tree of which nothing is kept: what would be written?
type nowhere struct{}

func (nowhere) Write(_ string, fill func(io.Writer) error) error { return fill(io.Discard) }
