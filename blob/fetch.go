// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package blob

import (
	"context"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"pleach/internal/fault"
)

// Fetch copies objects to files of a folder, each under its Rel. The folder
// appears when it is complete and not before: until then everything lies in a
// folder beside it whose name ends in ".part", so that a fetch that was killed
// goes on from there. Files whose objects have a hash, as those of the hub have,
// are compared with it; the others by their size.
//
// Where the folder exists already, its files are compared with the objects:
// nothing is to be done if they are the same, and anything else is an error of
// kind fault.Config. A disk without room for what is missing is refused before
// anything is fetched.
type Fetch struct {
	Remote  *Remote
	Objects []Object
	Dir     string
	Jobs    int // files at a time; 0: 4

	// Progress is told how many bytes more are there, or fewer if some turned out
	// bad; also of those that an earlier fetch left. It may be called by several
	// goroutines. nil: nobody is told.
	Progress func(bytes int64)

	part string
}

const (
	partSuffix  = ".part"
	journalName = ".pleach-get.json"
	lockName    = ".lock" // of Lock
)

// journal says what the files of an unfinished folder are.
type journal struct {
	Files map[string]string `json:"files"` // tags by name
}

// Run fetches. It says whether anything had to be done.
func (f *Fetch) Run(ctx context.Context) (done bool, err error) {
	if f.Jobs == 0 {
		f.Jobs = 4
	}
	if f.Progress == nil {
		f.Progress = func(int64) {}
	}
	dir, err := filepath.Abs(f.Dir)
	if err != nil {
		return false, wrap("finding", f.Dir, err)
	}
	f.Dir, f.part = dir, dir+partSuffix
	if err := f.checkNames(); err != nil {
		return false, err
	}
	if _, err := os.Stat(f.Dir); err == nil {
		return false, f.compare(ctx)
	} else if !errors.Is(err, fs.ErrNotExist) {
		return false, wrap("opening", f.Dir, err)
	}
	if err := Local(f.part).mkdir(f.part); err != nil {
		return false, err
	}
	unlock, err := Lock(f.part)
	if err != nil {
		return false, err
	}
	defer unlock()
	if err := f.takeUp(); err != nil {
		return false, err
	}
	if err := f.checkRoom(); err != nil {
		return false, err
	}
	if err := f.all(ctx, f.file); err != nil {
		return false, err
	}
	return true, f.publish()
}

func (f *Fetch) checkNames() error {
	seen := map[string]bool{}
	for _, o := range f.Objects {
		name := o.Rel
		if !fs.ValidPath(name) || !filepath.IsLocal(filepath.FromSlash(name)) || strings.Contains(name, `\`) ||
			strings.HasSuffix(name, partSuffix) || name == journalName || name == lockName || seen[name] {
			return fault.Dataf("blob: fetching %s: a file cannot be named %q here", o.URL, name)
		}
		seen[name] = true
	}
	return nil
}

func (f *Fetch) at(o Object) string { return filepath.Join(f.part, filepath.FromSlash(o.Rel)) }

// takeUp keeps what an earlier fetch left of the same objects, and removes the
// rest of what it left.
func (f *Fetch) takeUp() error {
	store := Local(f.part)
	var old journal
	text, err := ReadFile(store, journalName, 1<<30)
	switch {
	case err == nil:
		_ = json.Unmarshal(text, &old) // damaged: nothing is kept
	case !errors.Is(err, fs.ErrNotExist):
		return err
	default:
		es, err := store.List(".")
		if err != nil {
			return err
		}
		for _, e := range es {
			if e.Name != lockName {
				return fault.Configf("blob: fetching into %s: the folder is in the way and not of an earlier fetch", f.part)
			}
		}
	}
	now := journal{Files: map[string]string{}}
	for _, o := range f.Objects {
		now.Files[o.Rel] = o.Tag
	}
	if err := f.drop(old, now); err != nil {
		return err
	}
	text, err = json.Marshal(now)
	if err != nil {
		return fault.Machinef("blob: fetching into %s: %w", f.part, err)
	}
	return store.Write(journalName, func(w io.Writer) error {
		_, err := w.Write(text)
		return err
	})
}

// drop removes the files of an earlier fetch that are of no use for this one.
func (f *Fetch) drop(old, now journal) error {
	var dirs []string
	err := filepath.WalkDir(f.part, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return wrap("listing", f.part, err)
		}
		rel, err := filepath.Rel(f.part, p)
		switch {
		case err != nil || rel == lockName || rel == journalName:
			return err
		case d.IsDir():
			dirs = append(dirs, p)
			return nil
		}
		name := strings.TrimSuffix(filepath.ToSlash(rel), partSuffix)
		if tag, ok := now.Files[name]; ok && old.Files[name] == tag {
			return nil
		}
		return wrap("removing", p, os.Remove(p))
	})
	for _, d := range slices.Backward(dirs) {
		_ = os.Remove(d) // those that are empty
	}
	return err
}

// sizeOf is the size of a file, 0 if there is none.
func sizeOf(path string) int64 {
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return info.Size()
}

// checkRoom refuses a disk that is too small.
func (f *Fetch) checkRoom() error {
	var need int64
	for _, o := range f.Objects {
		need += max(0, o.Size-sizeOf(f.at(o))-sizeOf(f.at(o)+partSuffix))
	}
	free, err := Local(f.part).Free()
	if err != nil || free < 0 || need <= free {
		return err
	}
	return fault.Machinef("blob: fetching into %s: the disk has %d MiB free, want %d MiB more than that",
		f.Dir, free>>20, (need-free)>>20+1)
}

// all does something for each object, several at a time, up to the first error.
func (f *Fetch) all(ctx context.Context, do func(context.Context, Object) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	next := make(chan Object)
	var wg sync.WaitGroup
	for range f.Jobs {
		wg.Go(func() {
			for o := range next {
				if err := do(ctx, o); err != nil {
					cancel(err)
				}
			}
		})
	}
	for _, o := range f.Objects {
		select {
		case next <- o:
		case <-ctx.Done():
		}
	}
	close(next)
	wg.Wait()
	err := context.Cause(ctx)
	if err == ctx.Err() && err != nil {
		return fault.Machinef("blob: fetching into %s: %w", f.Dir, err)
	}
	return err
}

// file fetches one file, or what is missing of it.
func (f *Fetch) file(ctx context.Context, o Object) error {
	p := f.at(o)
	if info, err := os.Stat(p); err == nil && info.Size() == o.Size {
		f.Progress(o.Size) // it was compared before it got its name
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(p), 0o777); err != nil {
		return wrap("making folder", filepath.Dir(p), err)
	}
	err := f.download(ctx, o, p)
	if errors.Is(err, errHash) {
		err = f.download(ctx, o, p) // what was left of an earlier fetch may be bad
	}
	return err
}

var errHash = errors.New("the hash is another")

func (f *Fetch) download(ctx context.Context, o Object, p string) error {
	w, err := os.OpenFile(p+partSuffix, os.O_RDWR|os.O_CREATE, 0o666)
	if err != nil {
		return wrap("creating", p, err)
	}
	err = f.fill(ctx, o, w)
	if err == nil {
		err = wrap("flushing", p, w.Sync())
	}
	err = errors.Join(err, wrap("closing", p, w.Close()))
	switch {
	case errors.Is(err, errHash):
		return errors.Join(err, wrap("removing", p, os.Remove(p+partSuffix)))
	case err != nil:
		return err
	}
	return wrap("renaming to", p, os.Rename(p+partSuffix, p))
}

// fill goes on with a file from where it ends, and compares the whole.
func (f *Fetch) fill(ctx context.Context, o Object, file *os.File) error {
	h, want := hasher(o)
	have := min(sizeOf(file.Name()), o.Size)
	if _, err := io.Copy(h, io.NewSectionReader(file, 0, have)); err != nil {
		return wrap("reading", file.Name(), err)
	}
	f.Progress(have)
	w := &fileWriter{f: file, at: have, also: h, progress: f.Progress}
	if err := f.Remote.Copy(ctx, o, have, w); err != nil {
		return err
	}
	if got := hex.EncodeToString(h.Sum(nil)); want != "" && got != want {
		f.Progress(-o.Size)
		return fault.Dataf("blob: fetching %s: %w: got %s, want %s", o.URL, errHash, got, want)
	}
	return wrap("writing", file.Name(), file.Truncate(o.Size))
}

// fileWriter writes on at an offset, hashes and counts.
type fileWriter struct {
	f        *os.File
	at       int64
	also     hash.Hash
	progress func(int64)
}

func (w *fileWriter) Write(b []byte) (int, error) {
	n, err := w.f.WriteAt(b, w.at)
	w.at += int64(n)
	w.also.Write(b[:n])
	w.progress(int64(n))
	return n, wrap("writing", w.f.Name(), err)
}

// hasher is the hash that the tag of an object has, and what it should come to;
// empty if the tag is not a hash of the bytes.
func hasher(o Object) (h hash.Hash, want string) {
	if sum, ok := strings.CutPrefix(o.Tag, "sha256:"); ok {
		return sha256.New(), sum
	}
	h = sha1.New()
	sum, ok := strings.CutPrefix(o.Tag, "git-sha1:")
	if !ok {
		return h, ""
	}
	fmt.Fprintf(h, "blob %d\x00", o.Size)
	return h, sum
}

// publish gives the folder its name. The journal goes last: without it the
// folder could not be taken up again.
func (f *Fetch) publish() error {
	dirs := map[string]bool{f.part: true}
	for _, o := range f.Objects {
		for d := filepath.Dir(f.at(o)); !dirs[d]; d = filepath.Dir(d) {
			dirs[d] = true
		}
	}
	for d := range dirs {
		if err := syncDir(d); err != nil {
			return wrap("flushing", d, err)
		}
	}
	if err := os.Rename(f.part, f.Dir); err != nil {
		return wrap("renaming to", f.Dir, err)
	}
	if err := f.clean(); err != nil {
		return err
	}
	return wrap("flushing", f.Dir, syncDir(filepath.Dir(f.Dir)))
}

// clean removes what is not of the objects.
func (f *Fetch) clean() error {
	for _, name := range []string{journalName, lockName} {
		if err := os.Remove(filepath.Join(f.Dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return wrap("removing", filepath.Join(f.Dir, name), err)
		}
	}
	return nil
}

// compare checks a folder that is there already.
func (f *Fetch) compare(ctx context.Context) error {
	err := f.all(ctx, func(ctx context.Context, o Object) error {
		err := f.same(ctx, o)
		if err != nil && ctx.Err() == nil {
			return fault.Configf("blob: fetching into %s: the folder exists and is something else: %s: %w; "+
				"remove it or name another", f.Dir, o.Rel, err)
		}
		return err
	})
	if _, no := os.Stat(filepath.Join(f.Dir, journalName)); err == nil && no == nil {
		err = f.clean() // killed between the rename and this
	}
	return err
}

// same compares one file with its object.
func (f *Fetch) same(ctx context.Context, o Object) error {
	file, err := os.Open(filepath.Join(f.Dir, filepath.FromSlash(o.Rel)))
	if err != nil {
		return cause(err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err == nil && info.Size() != o.Size {
		return fmt.Errorf("got %d bytes, want %d", info.Size(), o.Size)
	}
	h, want := hasher(o)
	if err == nil && want != "" {
		_, err = io.Copy(h, readerFunc(func(b []byte) (int, error) {
			n, err := file.Read(b)
			f.Progress(int64(n))
			if ctx.Err() != nil {
				err = ctx.Err()
			}
			return n, err
		}))
	}
	if got := hex.EncodeToString(h.Sum(nil)); err == nil && want != "" && got != want {
		err = errHash
	}
	return err
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(b []byte) (int, error) { return f(b) }
