// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package blobtest

import (
	"bytes"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// Hub is a server in this process that speaks as the Hugging Face hub does, with
// one repository. Files of at least LFS bytes lie on another host, to which it
// redirects. Fields may be changed between requests.
type Hub struct {
	URL    string // the endpoint
	Commit string // of the branch main

	Repo  string            // "org/name" or "datasets/org/name"
	Files map[string][]byte // by path
	LFS   int               // from how many bytes on a file lies elsewhere
	Page  int               // lines of a page of the tree
	Token string            // without it nothing is given, if not empty
	Gated bool              // access was not granted

	t      testing.TB
	cdn    *httptest.Server
	mu     sync.Mutex
	leaked bool
	served int64
	signed int // the signature that the other host takes
}

// NewHub starts two servers that end with the test. wrap, if not nil, stands
// before both.
func NewHub(t testing.TB, repo string, files map[string][]byte, wrap func(http.Handler) http.Handler) *Hub {
	h := &Hub{
		t: t, Repo: repo, Files: files, LFS: 1000, Page: 100,
		Commit: strings.Repeat("c0ffee", 7)[:40],
	}
	if wrap == nil {
		wrap = func(h http.Handler) http.Handler { return h }
	}
	h.cdn = httptest.NewServer(wrap(http.HandlerFunc(h.serveFile)))
	t.Cleanup(h.cdn.Close)
	s := httptest.NewServer(wrap(http.HandlerFunc(h.serve)))
	t.Cleanup(s.Close)
	h.URL = s.URL
	return h
}

// Leaked says whether a token came to the other host.
func (h *Hub) Leaked() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.leaked
}

// Served is how many bytes of files were asked for.
func (h *Hub) Served() int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.served
}

// Expire makes redirects given so far lead nowhere.
func (h *Hub) Expire() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.signed++
}

func (h *Hub) refuse(w http.ResponseWriter, status int, code, message string) {
	w.Header().Set("X-Error-Code", code)
	w.Header().Set("X-Error-Message", message)
	w.WriteHeader(status)
}

func (h *Hub) serve(w http.ResponseWriter, q *http.Request) {
	kind, id := "models", h.Repo
	if rest, ok := strings.CutPrefix(h.Repo, "datasets/"); ok {
		kind, id = "datasets", rest
	}
	api := "/api/" + kind + "/" + id + "/"
	files := "/" + h.Repo + "/resolve/"
	rest, isAPI := strings.CutPrefix(q.URL.Path, api)
	path, isFile := strings.CutPrefix(q.URL.Path, files)
	switch {
	case !isAPI && !isFile, h.Token != "" && q.Header.Get("Authorization") != "Bearer "+h.Token:
		h.refuse(w, http.StatusUnauthorized, "RepoNotFound", "Repository not found")
	case isAPI && strings.HasPrefix(rest, "revision/"):
		if r := strings.TrimPrefix(rest, "revision/"); r != "main" && r != h.Commit && r != "refs/pr/1" {
			h.refuse(w, http.StatusNotFound, "RevisionNotFound", "Invalid rev id: "+r)
			return
		}
		fmt.Fprintf(w, `{"id":%q,"sha":%q}`, id, h.Commit)
	case h.Gated && isFile:
		h.refuse(w, http.StatusForbidden, "GatedRepo", "Access to model is restricted")
	case isAPI && strings.HasPrefix(rest, "tree/"+h.Commit):
		h.tree(w, q, strings.Trim(strings.TrimPrefix(rest, "tree/"+h.Commit), "/"))
	case isFile && strings.HasPrefix(path, h.Commit+"/"):
		h.resolve(w, q, strings.TrimPrefix(path, h.Commit+"/"))
	default:
		h.refuse(w, http.StatusNotFound, "EntryNotFound", "Entry not found")
	}
}

// tree lists the files of a folder, a page at a time.
func (h *Hub) tree(w http.ResponseWriter, q *http.Request, folder string) {
	var paths []string
	for p := range h.Files {
		below, ok := strings.CutPrefix(p, folder+"/")
		if folder == "" {
			below, ok = p, true
		}
		if ok && (q.URL.Query().Get("recursive") == "true" || !strings.Contains(below, "/")) {
			paths = append(paths, p)
		}
	}
	if len(paths) == 0 {
		h.refuse(w, http.StatusNotFound, "EntryNotFound", "no such folder")
		return
	}
	slices.Sort(paths)
	first, _ := strconv.Atoi(q.URL.Query().Get("cursor"))
	end := min(len(paths), first+h.Page)
	lines := []map[string]any{{"type": "directory", "oid": "d", "size": 0, "path": "somewhere"}}
	for _, p := range paths[first:end] {
		lines = append(lines, h.line(p))
	}
	if end < len(paths) {
		next := *q.URL
		v := next.Query()
		v.Set("cursor", strconv.Itoa(end))
		next.RawQuery = v.Encode()
		w.Header().Set("Link", "<https://huggingface.co"+next.String()+`>; rel="next"`)
	}
	_ = json.NewEncoder(w).Encode(lines)
}

func (h *Hub) line(path string) map[string]any {
	text := h.Files[path]
	if len(text) < h.LFS {
		return map[string]any{"type": "file", "oid": GitHash(text), "size": len(text), "path": path}
	}
	return map[string]any{
		"type": "file", "oid": "0", "size": len(text), "path": path,
		"lfs": map[string]any{"oid": sha(text), "size": len(text), "pointerSize": 130},
	}
}

func sha(b []byte) string {
	s := sha256.Sum256(b)
	return hex.EncodeToString(s[:])
}

// GitHash is the name that git gives to a file with these bytes.
func GitHash(b []byte) string {
	s := sha1.Sum(append(fmt.Appendf(nil, "blob %d\x00", len(b)), b...))
	return hex.EncodeToString(s[:])
}

func (h *Hub) resolve(w http.ResponseWriter, q *http.Request, path string) {
	text, ok := h.Files[path]
	if !ok {
		h.refuse(w, http.StatusNotFound, "EntryNotFound", "Entry not found")
		return
	}
	w.Header().Set("X-Repo-Commit", h.Commit)
	if len(text) < h.LFS {
		w.Header().Set("ETag", `"`+GitHash(text)+`"`)
		h.count(len(text))
		http.ServeContent(w, q, "", time.Time{}, bytes.NewReader(text))
		return
	}
	w.Header().Set("X-Linked-Etag", `"`+sha(text)+`"`)
	w.Header().Set("X-Linked-Size", strconv.Itoa(len(text)))
	h.mu.Lock()
	to := fmt.Sprintf("%s/%s?secret=%d", h.cdn.URL, path, h.signed)
	h.mu.Unlock()
	http.Redirect(w, q, to, http.StatusFound)
}

func (h *Hub) count(n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.served += int64(n)
}

// serveFile is the other host.
func (h *Hub) serveFile(w http.ResponseWriter, q *http.Request) {
	h.mu.Lock()
	h.leaked = h.leaked || q.Header.Get("Authorization") != ""
	good := q.URL.Query().Get("secret") == strconv.Itoa(h.signed)
	h.mu.Unlock()
	text, ok := h.Files[strings.TrimPrefix(q.URL.Path, "/")]
	switch {
	case !good:
		http.Error(w, "Request has expired", http.StatusForbidden)
	case !ok:
		http.NotFound(w, q)
	default:
		http.ServeContent(&counter{w, h}, q, "", time.Time{}, bytes.NewReader(text))
	}
}

// counter counts the bytes of files.
type counter struct {
	http.ResponseWriter
	h *Hub
}

func (c *counter) Write(b []byte) (int, error) {
	c.h.count(len(b))
	return c.ResponseWriter.Write(b)
}
