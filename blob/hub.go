// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package blob

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"pleach/internal/fault"
)

// Hub says where the Hugging Face hub is and who asks. The token is sent to the
// endpoint alone, never to where it redirects to, and is never printed.
type Hub struct {
	Endpoint string // empty: https://huggingface.co
	Token    string // empty: none
	Client   *http.Client
}

// HubFromEnv takes the endpoint from HF_ENDPOINT and the token from HF_TOKEN or
// else from the file that logging in leaves: HF_TOKEN_PATH, or token in HF_HOME,
// or in ~/.cache/huggingface.
func HubFromEnv() Hub {
	h := Hub{Endpoint: os.Getenv("HF_ENDPOINT"), Token: os.Getenv("HF_TOKEN")}
	if h.Token == "" {
		if b, err := os.ReadFile(tokenFile()); err == nil {
			h.Token = strings.TrimSpace(string(b))
		}
	}
	return h
}

func tokenFile() string {
	if p := os.Getenv("HF_TOKEN_PATH"); p != "" {
		return p
	}
	return filepath.Join(hubHome(), "token")
}

// hubHome is where tools of the hub keep what they fetched: HF_HOME, or
// ~/.cache/huggingface.
func hubHome() string {
	if home := os.Getenv("HF_HOME"); home != "" {
		return home
	}
	cache := os.Getenv("XDG_CACHE_HOME")
	if cache == "" {
		user, err := os.UserHomeDir()
		if err != nil {
			return ""
		}
		cache = filepath.Join(user, ".cache")
	}
	return filepath.Join(cache, "huggingface")
}

// hub speaks with one endpoint.
type hub struct {
	endpoint, token string
	client          *http.Client
}

func newHub(o Hub) *hub {
	h := &hub{strings.TrimRight(o.Endpoint, "/"), o.Token, &http.Client{}}
	if h.endpoint == "" {
		h.endpoint = "https://huggingface.co"
	}
	if o.Client != nil {
		*h.client = *o.Client
	}
	// A redirect is followed by hand, so that the token stays here.
	h.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return h
}

// get asks for a URL. An answer that is not 2xx is a *failure, except redirects
// where they are wanted.
func (h *hub) get(ctx context.Context, method, at string, header http.Header, redirects bool) (*http.Response, error) {
	q, err := http.NewRequestWithContext(ctx, method, at, nil)
	if err != nil {
		return nil, &failure{err: err, kind: fault.Config}
	}
	for k, v := range header {
		q.Header[k] = v
	}
	q.Header.Set("User-Agent", "pleach")
	// Compressed answers have no ranges.
	q.Header.Set("Accept-Encoding", "identity")
	if h.token != "" && h.ours(q.URL) {
		q.Header.Set("Authorization", "Bearer "+h.token)
	}
	a, err := h.client.Do(q)
	if err != nil {
		return nil, private(err)
	}
	if a.StatusCode/100 == 2 || redirects && a.StatusCode/100 == 3 {
		return a, nil
	}
	defer a.Body.Close()
	text, _ := io.ReadAll(io.LimitReader(a.Body, 4<<10))
	return nil, refused(a, text)
}

// ours says whether a URL is at the endpoint, so that the token may go there.
func (h *hub) ours(u *url.URL) bool {
	e, err := url.Parse(h.endpoint)
	return err == nil && e.Scheme == u.Scheme && strings.EqualFold(e.Host, u.Host)
}

// private judges an error of the client and takes the URL out of it: that of a
// redirect is a key to the file.
func private(err error) *failure {
	f := offLine(err)
	var u *url.Error
	if errors.As(f.err, &u) {
		f.err = u.Err
	}
	return f
}

// refused says what the hub means by an answer.
func refused(a *http.Response, text []byte) *failure {
	why := a.Header.Get("X-Error-Message")
	if why == "" {
		var body struct{ Error string }
		if json.Unmarshal(text, &body) == nil {
			why = body.Error
		}
	}
	if why != "" {
		why = ": " + why
	}
	f := answered(a.StatusCode, a.Header, fmt.Errorf("status %d%s", a.StatusCode, why))
	switch a.Header.Get("X-Error-Code") {
	case "GatedRepo":
		f.hint = "the repository is gated: ask for access on its page, then set HF_TOKEN"
	case "RepoNotFound":
		f.hint = "no such repository, or it is private and HF_TOKEN may not read it"
	case "RevisionNotFound":
		f.hint = "the repository has no such revision"
	default:
		if a.StatusCode == http.StatusUnauthorized {
			f.hint = "no such repository, or HF_TOKEN may not read it"
		}
	}
	return f
}

// repository is a source at one commit of a repository of the hub.
type repository struct {
	hub *hub
	place
	commit string

	mu    sync.Mutex
	moved map[string]moved // where objects are redirected to
}

// moved is a redirect, used again for a while: asking the hub for each range
// would soon be too often.
type moved struct {
	to   string
	till time.Time
}

const movedFor = 10 * time.Minute

func (r *repository) close() error { return nil }

// kind is models or datasets, and id is org/name.
func (r *repository) kind() (kind, id string) {
	if id, ok := strings.CutPrefix(r.bucket, "datasets/"); ok {
		return "datasets", id
	}
	return "models", r.bucket
}

func (r *repository) name(key string) string {
	p := r.place
	if r.commit != "" {
		p.version = r.commit
	}
	p.key = key
	return p.String()
}

func (r *repository) api(part string) string {
	kind, id := r.kind()
	return r.hub.endpoint + "/api/" + kind + "/" + id + "/" + part
}

var isCommit = regexp.MustCompile(`^[0-9a-f]{40}$`)

// pin finds the commit that the revision stands for now.
func (r *repository) pin(ctx context.Context) error {
	rev := r.version
	if rev == "" {
		rev = "main"
	}
	var info struct{ SHA string }
	if _, err := r.json(ctx, r.api("revision/"+url.PathEscape(rev)), &info); err != nil {
		return err
	}
	if !isCommit.MatchString(info.SHA) {
		return bad("the hub names no commit of revision %s", rev)
	}
	r.commit = info.SHA
	return nil
}

// maxAnswer is how large an answer in JSON may be.
const maxAnswer = 64 << 20

func (r *repository) json(ctx context.Context, at string, v any) (http.Header, error) {
	for range 5 {
		a, err := r.hub.get(ctx, http.MethodGet, at, nil, true)
		if err != nil {
			return nil, err
		}
		if a.StatusCode/100 == 3 { // a repository that was renamed
			if at, err = target(a); err != nil {
				return nil, err
			}
			continue
		}
		defer a.Body.Close()
		text, err := io.ReadAll(io.LimitReader(a.Body, maxAnswer))
		if err != nil {
			return nil, inBody(ctx, err)
		}
		if err := json.Unmarshal(text, v); err != nil {
			return nil, bad("the hub's answer is not what it should be: %w", err)
		}
		return a.Header, nil
	}
	return nil, errRedirects
}

var errRedirects = bad("it is redirected again and again")

// bad is an answer that is not what it should be.
func bad(format string, args ...any) *failure {
	return &failure{err: fmt.Errorf(format, args...), kind: fault.Data}
}

// target is where a redirect leads to. What it says is read, so that the
// connection can be used again.
func target(a *http.Response) (string, error) {
	_, _ = io.CopyN(io.Discard, a.Body, 4<<10)
	a.Body.Close()
	u, err := a.Location()
	if err != nil {
		return "", bad("a redirect leads nowhere")
	}
	return u.String(), nil
}

// treeEntry is a line of the tree that the hub lists.
type treeEntry struct {
	Type, OID, Path string
	Size            int64
	LFS             *struct {
		OID  string
		Size int64
	}
}

func (e treeEntry) object() Object {
	if e.LFS != nil {
		return Object{key: e.Path, Size: e.LFS.Size, Tag: "sha256:" + e.LFS.OID}
	}
	return Object{key: e.Path, Size: e.Size, Tag: "git-sha1:" + e.OID}
}

// page lists the folder that a prefix lies in.
func (r *repository) page(ctx context.Context, prefix, token string) ([]Object, string, error) {
	if token == "" {
		token = r.tree(folderOf(prefix)) + "?recursive=true"
	}
	objs, next, err := r.entries(ctx, token)
	if errors.Is(err, errMissing) {
		return nil, "", nil // no such folder: nothing in it
	}
	n := 0
	for _, o := range objs {
		if strings.HasPrefix(o.key, prefix) {
			objs[n] = o
			n++
		}
	}
	return objs[:n], next, err
}

// folderOf is the folder that keys with this prefix lie in, without its slash.
func folderOf(prefix string) string { return prefix[:max(0, strings.LastIndex(prefix, "/"))] }

func (r *repository) stat(ctx context.Context, key string) (Object, error) {
	for token := r.tree(folderOf(key)); token != ""; {
		objs, next, err := r.entries(ctx, token)
		if err != nil {
			return Object{}, err
		}
		for _, o := range objs {
			if o.key == key {
				return o, nil
			}
		}
		token = next
	}
	return Object{}, &failure{err: errMissing, kind: fault.Config}
}

func (r *repository) tree(folder string) string {
	at := r.api("tree/" + r.commit)
	if folder != "" {
		at += "/" + escape(folder)
	}
	return at
}

// escape escapes the names of a path.
func escape(key string) string {
	names := strings.Split(key, "/")
	for i := range names {
		names[i] = url.PathEscape(names[i])
	}
	return strings.Join(names, "/")
}

// entries is one page of the tree, and where the next one is.
func (r *repository) entries(ctx context.Context, at string) (objs []Object, next string, err error) {
	var lines []treeEntry
	h, err := r.json(ctx, at, &lines)
	if err != nil {
		return nil, "", err
	}
	for _, e := range lines {
		if e.Type != "file" {
			continue
		}
		if !fs.ValidPath(e.Path) {
			return nil, "", bad("the hub lists a file named %q", e.Path)
		}
		objs = append(objs, e.object())
	}
	return objs, r.next(h), nil
}

var nextLink = regexp.MustCompile(`<([^>]*)>\s*;[^,]*rel="?next"?`)

// next is the link to the next page (RFC 8288). One that leads away from the
// endpoint is kept there: proxies of the hub pass on the hub's own.
func (r *repository) next(h http.Header) string {
	m := nextLink.FindStringSubmatch(strings.Join(h.Values("Link"), ", "))
	if m == nil {
		return ""
	}
	u, err := url.Parse(m[1])
	if err != nil {
		return ""
	}
	if e, err := url.Parse(r.hub.endpoint); err == nil {
		u.Scheme, u.Host = e.Scheme, e.Host
	}
	return u.String()
}

// read opens a range. Large files lie elsewhere, where the hub redirects to.
func (r *repository) read(ctx context.Context, o Object, off, n int64) (io.ReadCloser, error) {
	header := http.Header{"Range": {fmt.Sprintf("bytes=%d-%d", off, off+n-1)}}
	if off == 0 && n == o.Size {
		header = nil
	}
	if to := r.known(o.key); to != "" {
		a, err := r.hub.get(ctx, http.MethodGet, to, header, false)
		if err == nil {
			return ranged(a, o, off, n)
		}
		var f *failure
		if errors.As(err, &f) && f.reason != "" {
			return nil, err
		}
		r.forget(o.key) // it expired
	}
	a, err := r.resolve(ctx, o, header)
	if err != nil {
		r.forget(o.key)
		return nil, err
	}
	return ranged(a, o, off, n)
}

// resolve asks the hub for a file and follows where it leads.
func (r *repository) resolve(ctx context.Context, o Object, header http.Header) (*http.Response, error) {
	at := r.hub.endpoint + "/" + r.bucket + "/resolve/" + r.commit + "/" + escape(o.key)
	for hop := range 5 {
		a, err := r.hub.get(ctx, http.MethodGet, at, header, true)
		if err != nil {
			return nil, err
		}
		if hop == 0 || a.Header.Get("X-Repo-Commit") != "" {
			if err := r.check(a, o); err != nil {
				a.Body.Close()
				return nil, err
			}
		}
		if a.StatusCode/100 == 2 {
			return a, nil
		}
		if at, err = target(a); err != nil {
			return nil, err
		}
		r.remember(o.key, at)
	}
	return nil, errRedirects
}

// check compares what the hub says of a file with what was listed.
func (r *repository) check(a *http.Response, o Object) error {
	if c := a.Header.Get("X-Repo-Commit"); c != "" && c != r.commit {
		return changed(o.Size, "commit "+c, o)
	}
	tag := a.Header.Get("X-Linked-Etag")
	if tag == "" && a.StatusCode/100 == 2 {
		tag = a.Header.Get("ETag")
	}
	tag = strings.Trim(strings.TrimPrefix(tag, "W/"), `"`)
	_, want, _ := strings.Cut(o.Tag, ":")
	if tag != "" && len(tag) == len(want) && tag != want {
		return changed(o.Size, tag, o)
	}
	if s, err := strconv.ParseInt(a.Header.Get("X-Linked-Size"), 10, 64); err == nil && s != o.Size {
		return changed(s, tag, o)
	}
	return nil
}

// ranged is the body of an answer that has the bytes asked for.
func ranged(a *http.Response, o Object, off, n int64) (io.ReadCloser, error) {
	var first, last, size int64 = 0, a.ContentLength - 1, a.ContentLength
	if a.StatusCode == http.StatusPartialContent {
		part := a.Header.Get("Content-Range")
		if _, err := fmt.Sscanf(part, "bytes %d-%d/%d", &first, &last, &size); err != nil {
			a.Body.Close()
			return nil, bad("Content-Range %q: %w", part, err)
		}
	}
	switch {
	case size >= 0 && size != o.Size:
		a.Body.Close()
		return nil, changed(size, "unknown", o)
	case first != off || size >= 0 && last < off+n-1:
		a.Body.Close()
		return nil, bad("got bytes %d to %d, want %d to %d: no ranges there?", first, last, off, off+n-1)
	}
	return a.Body, nil
}

func (r *repository) known(key string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if m, ok := r.moved[key]; ok && time.Now().Before(m.till) {
		return m.to
	}
	return ""
}

// remember keeps the last of several redirects.
func (r *repository) remember(key, to string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.moved == nil {
		r.moved = map[string]moved{}
	}
	r.moved[key] = moved{to, time.Now().Add(movedFor)}
}

func (r *repository) forget(key string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.moved, key)
}
