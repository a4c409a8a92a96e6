// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package blob

import (
	"cmp"
	"context"
	"errors"
	"io"
	"maps"
	"slices"
	"sync"

	"pleach/internal/fault"
)

// Remote reads objects that lie elsewhere, by URL:
//
//	s3://bucket/key             and gs://, azblob://: one [Driver] each
//	hf://org/name@revision/path, hf://datasets/org/name@revision/path
//
// It reads in ranges, tries again what may pass ([Retry]), and keeps what it has
// read in a folder ([Options.Cache]). It may be used by several goroutines.
//
// Errors name the object. One of kind fault.Config is for the user: no such
// bucket, repository or object, no permission, no credentials. fault.Data: the
// object changed or went away after it was listed. fault.Machine: the store did
// not answer well in all the tries that [Retry] allows. An error of a cancelled
// context matches context.Canceled.
type Remote struct {
	opt    Options
	hub    *hub
	chunks *chunks
	stats  stats

	mu      sync.Mutex
	sources map[string]source // by what opens them
}

// Options say how a [Remote] works. The zero value has no drivers, hence only
// hf://, no cache on disk, and otherwise the defaults.
type Options struct {
	Drivers []Driver // one for each scheme beside hf

	Cache      string // the folder of the cache; empty: none. Several processes may share it
	CacheLimit int64  // bytes it may hold; 0: 10 GiB

	Retry Retry
	Hub   Hub

	// Warn is told, once each, what does not stop reading: the cache cannot be
	// written, for example. It may be called by several goroutines. nil: nobody is
	// told.
	Warn func(message string)

	// ChunkSize is how many bytes of an object are fetched and kept together; 0: 4 MiB.
	ChunkSize int
}

// Object is one object as it was listed. Its bytes are pinned: reading another
// version of it is an error.
type Object struct {
	URL  string // names it in messages: without options, on the hub with the commit
	Rel  string // what stays the same when the corpus moves: below the path that was listed
	Size int64  // bytes

	// Tag is another one when the bytes are others: the ETag, the generation, or
	// on the hub "sha256:" or "git-sha1:" and the hash in hex.
	Tag string

	key string // in its source
	src source
}

// NewRemote makes a Remote. It touches neither the network nor the disk.
func NewRemote(o Options) *Remote {
	if o.ChunkSize == 0 {
		o.ChunkSize = 4 << 20
	}
	if o.CacheLimit == 0 {
		o.CacheLimit = 10 << 30
	}
	if o.Warn == nil {
		o.Warn = func(string) {}
	}
	o.Retry = o.Retry.withDefaults()
	r := &Remote{opt: o, sources: map[string]source{}}
	r.hub = newHub(o.Hub)
	r.chunks = newChunks(r)
	return r
}

// IsRemote says whether a path is the URL of an object elsewhere rather than a
// path of this machine, whether or not a driver for its scheme is there.
func IsRemote(path string) bool {
	_, _, ok := cutScheme(path)
	return ok
}

// List finds the objects that a URL stands for, sorted by name: one object, all
// below a folder, or those whose names match a pattern. "*" and "?" stand for
// parts of one name between slashes, "[a-c]" for one letter, "**" as a name of
// its own for any folders. In a URL "?" begins the options, so a pattern there
// has to do without it.
//
// Options are those of the driver, such as region and endpoint of S3, see
// https://gocloud.dev/howto/blob; bytes in % notation are not decoded before them.
//
// An empty result is an error.
func (r *Remote) List(ctx context.Context, url string) ([]Object, error) {
	p, err := parsePlace(url)
	if err != nil {
		return nil, err
	}
	src, err := r.source(ctx, p)
	if err != nil {
		return nil, err
	}
	objs, err := r.find(ctx, src, p)
	if err != nil {
		return nil, err
	}
	for i := range objs {
		objs[i].src = src
		objs[i].URL = src.name(objs[i].key)
		objs[i].Rel = p.rel(objs[i].key)
	}
	slices.SortFunc(objs, func(a, b Object) int { return cmp.Compare(a.key, b.key) })
	return objs, nil
}

// find lists without the fields that callers see.
func (r *Remote) find(ctx context.Context, src source, p place) ([]Object, error) {
	if p.key != "" && !p.pattern() && !p.folder() {
		o, err := r.stat(ctx, src, p.key)
		if err == nil {
			return []Object{o}, nil
		}
		if !errors.Is(err, errMissing) {
			return nil, err
		}
	}
	all, err := r.listAll(ctx, src, p)
	if err != nil {
		return nil, err
	}
	if len(all) == 0 {
		return nil, p.nothing()
	}
	return all, nil
}

// Open opens an object that was listed. No request is made before the first
// read. Reads end with an error when ctx is cancelled.
func (r *Remote) Open(ctx context.Context, o Object) (Reader, error) {
	if o.src == nil {
		return nil, fault.Dataf("blob: opening %s: it was not listed", o.URL)
	}
	return newObjectReader(ctx, r, o), nil
}

// Copy writes the bytes of an object from an offset on to w, past the cache.
// What w has when it fails is the object's bytes up to there, so a later Copy may
// go on from there. Errors of w are returned as they are.
func (r *Remote) Copy(ctx context.Context, o Object, from int64, w io.Writer) error {
	if o.src == nil {
		return fault.Dataf("blob: copying %s: it was not listed", o.URL)
	}
	return r.stream(ctx, o, from, o.Size-from, w)
}

// Close stops fetching ahead and frees connections. Readers fail afterwards.
func (r *Remote) Close() error {
	r.chunks.close()
	r.hub.client.CloseIdleConnections()
	r.mu.Lock()
	defer r.mu.Unlock()
	var errs []error
	for _, s := range r.sources {
		errs = append(errs, s.close())
	}
	clear(r.sources)
	return errors.Join(errs...)
}

// Stats is what a Remote has done so far.
type Stats struct {
	Requests  int64            // ranges asked for and pages listed, tries counted each
	Bytes     int64            // received of objects
	FromCache int64            // chunks found on disk
	Retries   map[string]int64 // tries that failed and were repeated, by reason; net/http
	// repeats a request by itself, once, if a connection that idled was closed meanwhile
}

// Reasons of retries, as keys of [Stats.Retries].
const (
	Busy       = "busy"       // the store asked for patience: status 429
	Failing    = "failing"    // status 408 or 5xx
	Timeout    = "timeout"    // nothing came for too long, or too little
	Connection = "connection" // refused, reset, or broken
	Truncated  = "truncated"  // fewer bytes than announced
)

// Stats says what was done so far.
func (r *Remote) Stats() Stats {
	s := &r.stats
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.Stats
	t.Retries = maps.Clone(s.Retries)
	return t
}

// stats are counted by several goroutines.
type stats struct {
	mu sync.Mutex
	Stats
}

func (s *stats) count(f func(*Stats)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.Retries == nil {
		s.Retries = map[string]int64{}
	}
	f(&s.Stats)
}

// source is a bucket or a repository. Its methods try once. Errors that know
// better than their type what is to be done are a *failure.
type source interface {
	// name is what an object is called in messages.
	name(key string) string
	// stat describes one object; errMissing if there is none of this name.
	stat(ctx context.Context, key string) (Object, error)
	// page lists objects whose key begins with prefix; token is empty for the first
	// page, and next for the last.
	page(ctx context.Context, prefix, token string) (objs []Object, next string, err error)
	// read opens n > 0 bytes from off on, of the version that was listed.
	read(ctx context.Context, o Object, off, n int64) (io.ReadCloser, error)
	close() error
}

// source opens a bucket or repository, once.
func (r *Remote) source(ctx context.Context, p place) (source, error) {
	id := p.source()
	r.mu.Lock()
	s := r.sources[id]
	r.mu.Unlock()
	if s != nil {
		return s, nil
	}
	s, err := r.openSource(ctx, p) // may take long: others need not wait
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if first := r.sources[id]; first != nil {
		return first, s.close()
	}
	r.sources[id] = s
	return s, nil
}

func (r *Remote) openSource(ctx context.Context, p place) (source, error) {
	if p.scheme == hubScheme {
		repo := &repository{hub: r.hub, place: p}
		return repo, r.again(ctx, "asking", p.String(), repo.pin)
	}
	for _, d := range r.opt.Drivers {
		if d.Scheme == p.scheme {
			return openBucket(ctx, d, p)
		}
	}
	return nil, fault.Configf("blob: opening %s: this program has no driver for %s://", p, p.scheme)
}

// stat describes one object, trying again.
func (r *Remote) stat(ctx context.Context, src source, key string) (o Object, err error) {
	err = r.again(ctx, "looking for", src.name(key), func(ctx context.Context) error {
		o, err = src.stat(ctx, key)
		return err
	})
	return o, err
}

// listAll lists what a pattern matches, or all below a folder.
func (r *Remote) listAll(ctx context.Context, src source, p place) ([]Object, error) {
	var all []Object
	prefix, token := p.prefix(), ""
	for {
		var objs []Object
		var next string // token stays until a try succeeds
		err := r.again(ctx, "listing", p.String(), func(ctx context.Context) (err error) {
			objs, next, err = src.page(ctx, prefix, token)
			return err
		})
		if err != nil {
			return nil, err
		}
		token = next
		for _, o := range objs {
			if p.match(o.key) {
				all = append(all, o)
			}
		}
		if token == "" {
			return all, nil
		}
	}
}
