// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"pleach/blob"
	"pleach/internal/fault"
	"pleach/internal/unit"
	"pleach/weights"
)

// Names in an unfinished folder that are not in the finished one.
const (
	journalName  = "merge.journal"
	identityName = "merge.identity"
	lockName     = ".lock"
)

// Folder is a Sink in a folder beside the place where the model will be. It becomes
// that place, at once, when it is complete. A journal in it says which tensors are on
// the disk, so that a merge that was killed can go on.
type Folder struct {
	out, part string
	layout    *weights.Plan
	places    []weights.Tensor // by index in the plan of the merge
	files     map[string]*file
	unlock    func()

	mu      sync.Mutex
	journal *os.File
	sums    []uint32  // CRC-32C of the tensors that are done
	done    []bool    // they are on the disk, or will be with the next flush
	pieces  [][]piece // of tensors in work
	waiting []int     // tensors that are done and not in the journal
	bytes   int64     // of them
	flush   sync.Mutex
	pending sync.WaitGroup
	failed  error // of a flush
}

// file is a file that one goroutine writes to at a time: the system lets no two do so, and
// those that wait here leave the processor to others.
type file struct {
	sync.Mutex
	*os.File
}

// Bytes that are flushed at a time: a sixteenth of the output, in these bounds.
const (
	leastBatch = 1 << 20
	mostBatch  = 128 << 20
)

// Part is the unfinished folder of an output.
func Part(out string) string { return filepath.Clean(out) + ".part" }

// NewFolder makes the unfinished folder of an output, or opens the one that an
// earlier attempt with the same identity left, if resume is set. There must be room
// on the disk for the rest. An output that exists is not replaced, and a folder that
// no merge began is left alone. A refusal leaves no folder where nothing was done.
func NewFolder(out string, layout *weights.Plan, tensors []Tensor, identity []byte, resume bool) (_ *Folder, err error) {
	f := &Folder{out: filepath.Clean(out), part: Part(out), layout: layout, files: map[string]*file{}}
	if _, err := os.Lstat(f.out); err == nil {
		return nil, fault.Statef("merge: %s: it is there already, and is not replaced", out)
	}
	f.place(tensors)
	if err := f.mine(); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(f.part, 0o777); err != nil {
		return nil, fault.Machinef("merge: %w", err)
	}
	if f.unlock, err = blob.Lock(f.part); err != nil {
		return nil, err
	}
	begun := false
	defer func() {
		if err == nil {
			return
		}
		f.Close()
		if !resume || !begun {
			_ = os.RemoveAll(f.part) // nothing is done in it
		}
	}()
	old, err := os.ReadFile(filepath.Join(f.part, identityName))
	begun = err == nil
	if resume && begun && string(old) != string(identity) {
		return nil, fault.Statef("merge: %s: it was begun with another configuration, other models or options: %s; "+
			"without --resume it is begun anew", f.part, difference(string(old), string(identity)))
	}
	if !resume || !begun {
		if err := f.empty(); err != nil {
			return nil, fault.Machinef("merge: %w", err)
		}
		if err := f.enough(); err != nil {
			return nil, err
		}
		if err := f.create(identity); err != nil {
			return nil, fault.Machinef("merge: %w", err)
		}
	}
	if err := f.open(); err != nil {
		return nil, err
	}
	return f, f.enough()
}

// mine refuses an unfinished folder with files of which none shows that a merge began
// it, and links: making room would remove what somebody wants to keep.
func (f *Folder) mine() error {
	info, err := os.Lstat(f.part)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil && !info.IsDir() {
		return fault.Statef("merge: %s: it is no folder, and a merge needs one of this name", f.part)
	}
	es, err := os.ReadDir(f.part)
	if err != nil {
		return fault.Machinef("merge: %w", err)
	}
	has := map[string]bool{}
	other := ""
	for _, e := range es {
		if has[e.Name()] = true; e.Name() != lockName {
			other = e.Name()
		}
	}
	// An output that is complete has the manifest, but not the lock.
	if other != "" && !has[journalName] && !(has[ManifestName] && has[lockName]) {
		return fault.Statef("merge: %s: it has %s, but nothing of a merge: it is not emptied; "+
			"move it away, or choose another output", f.part, other)
	}
	return nil
}

// place finds the places of the tensors of the merge, which the layout has in the
// same order.
func (f *Folder) place(tensors []Tensor) {
	f.places = f.layout.Places()
	f.sums = make([]uint32, len(tensors))
	f.done = make([]bool, len(tensors))
	f.pieces = make([][]piece, len(tensors))
}

// difference is the first line that differs.
func difference(a, b string) string {
	as, bs := lines(a), lines(b)
	for i := range min(len(as), len(bs)) {
		if as[i] != bs[i] {
			return fmt.Sprintf("then %s, now %s", as[i], bs[i])
		}
	}
	return "one has more lines"
}

// empty removes what another attempt left. Without the identity, which goes first
// and comes last, nothing was begun; the journal shows all the time that the folder is
// one of a merge.
func (f *Folder) empty() error {
	err := os.Remove(filepath.Join(f.part, identityName))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := f.write(journalName, nil); err != nil {
		return err
	}
	if err := (blob.OS{}).SyncDir(f.part); err != nil {
		return err
	}
	es, err := os.ReadDir(f.part)
	if err != nil {
		return err
	}
	for _, e := range es {
		if e.Name() != lockName && e.Name() != journalName {
			if err := os.RemoveAll(filepath.Join(f.part, e.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}

// create makes the files with their headers and sizes, and writes the identity.
func (f *Folder) create(identity []byte) error {
	for _, p := range f.layout.Files {
		w, err := os.Create(filepath.Join(f.part, p.Name))
		if err != nil {
			return err
		}
		_, err = w.Write(p.Header())
		if err := errors.Join(err, w.Truncate(p.Bytes), w.Sync(), w.Close()); err != nil {
			return err
		}
	}
	if err := (blob.OS{}).SyncDir(f.part); err != nil {
		return err
	}
	return f.write(identityName, identity)
}

// open opens the files for writing in place, and reads the journal.
func (f *Folder) open() error {
	for _, p := range f.layout.Files {
		w, err := os.OpenFile(filepath.Join(f.part, p.Name), os.O_RDWR, 0)
		if err != nil {
			return fault.Statef("merge: %w", err)
		}
		f.files[p.Name] = &file{File: w}
	}
	name := filepath.Join(f.part, journalName)
	text, err := os.ReadFile(name)
	if err != nil {
		return fault.Statef("merge: %w", err)
	}
	whole := 0 // the last line may have been cut
	for i, b := range text {
		if b != '\n' {
			continue
		}
		var t int
		var sum uint32
		if n, _ := fmt.Sscanf(string(text[whole:i]), "%d %08x", &t, &sum); n != 2 || t < 0 || t >= len(f.done) {
			return fault.Statef("merge: %s: line %q says nothing", name, text[whole:i])
		}
		f.done[t], f.sums[t] = true, sum
		whole = i + 1
	}
	if f.journal, err = os.OpenFile(name, os.O_WRONLY, 0); err != nil {
		return fault.Statef("merge: %w", err)
	}
	if err := f.journal.Truncate(int64(whole)); err != nil {
		return fault.Machinef("merge: %w", err)
	}
	_, err = f.journal.Seek(int64(whole), 0)
	return err
}

// enough checks that the disk has room for what is not there yet.
func (f *Folder) enough() error {
	free, err := (blob.OS{}).Free(f.part)
	if err != nil {
		return nil // not known
	}
	need := f.layout.Bytes
	for i, done := range f.done {
		if done {
			need -= f.places[i].Size
		}
	}
	if need > free {
		return fault.Machinef("merge: writing %s: got %v free on the disk, want %v",
			f.out, unit.Bytes(free).Rounded(), unit.Bytes(need).Rounded())
	}
	return nil
}

// Has says that a tensor is on the disk.
func (f *Folder) Has(i int) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.done[i]
}

// Left is the number of bytes of tensors that are not on the disk.
func (f *Folder) Left() (n int64) {
	for i, t := range f.places {
		if !f.Has(i) {
			n += t.Size
		}
	}
	return n
}

// WriteAt writes a part of a tensor.
func (f *Folder) WriteAt(i int, b []byte, at int64) error {
	t := f.places[i]
	p := piece{at, int64(len(b)), crc32.Checksum(b, castagnoli)}
	w := f.files[t.File]
	w.Lock()
	_, err := w.WriteAt(b, t.Offset+at)
	w.Unlock()
	if err != nil {
		return fault.Machinef("merge: tensor %s: %w", t.Name, err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.pieces[i] = append(f.pieces[i], p)
	return nil
}

// Done puts a tensor on the list of those that the next flush brings to the disk.
func (f *Folder) Done(i int) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	ps := f.pieces[i]
	f.pieces[i] = nil
	slices.SortFunc(ps, func(a, b piece) int { return cmp.Compare(a.at, b.at) })
	var sum uint32
	for _, p := range ps {
		sum = joined(sum, p.sum, p.n)
	}
	f.sums[i], f.done[i] = sum, true
	f.waiting = append(f.waiting, i)
	if f.bytes += f.places[i].Size; f.bytes < min(max(f.layout.Bytes/16, leastBatch), mostBatch) {
		return f.failed
	}
	list := f.waiting
	f.waiting, f.bytes = nil, 0
	f.pending.Go(func() { f.commit(list) })
	return f.failed
}

// commit flushes files, and then says in the journal which tensors are in them.
func (f *Folder) commit(list []int) {
	f.flush.Lock()
	defer f.flush.Unlock()
	if f.failure() != nil {
		return // the journal may end within a line
	}
	err := f.sync(list)
	if err == nil {
		var b []byte
		for _, i := range list {
			b = fmt.Appendf(b, "%d %08x\n", i, f.sums[i])
		}
		_, err = f.journal.Write(b)
	}
	if err = errors.Join(err, f.journal.Sync()); err != nil {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.failed = fault.Machinef("merge: flushing: %w", err)
	}
}

func (f *Folder) failure() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.failed
}

// sync flushes the files of tensors.
func (f *Folder) sync(list []int) error {
	var names []string
	for _, i := range list {
		names = append(names, f.places[i].File)
	}
	slices.Sort(names)
	for _, n := range slices.Compact(names) {
		if err := f.files[n].Sync(); err != nil {
			return err
		}
	}
	return nil
}

// settle waits for all flushes, after the last tensor or after a failure.
func (f *Folder) settle() error {
	f.pending.Wait()
	if len(f.waiting) > 0 {
		f.commit(f.waiting)
		f.waiting = nil
	}
	return f.failed
}

// Close gives the folder up, for a later attempt to go on with, unless it was
// published.
func (f *Folder) Close() {
	if f.journal != nil {
		_ = f.settle()
	}
	_ = f.shut()
	f.unlock()
}

// Discard gives the folder up for good, where no later attempt could go on with it.
func (f *Folder) Discard() {
	f.pending.Wait()
	_ = f.shut()
	_ = os.RemoveAll(f.part)
}

// shut closes the files.
func (f *Folder) shut() error {
	var errs []error
	if f.journal != nil {
		errs = append(errs, f.journal.Close())
	}
	for _, w := range f.files {
		errs = append(errs, w.Close())
	}
	f.journal, f.files = nil, nil
	return errors.Join(errs...)
}

// Publish adds files to the model, makes the folder the output, and closes it. Its
// manifest is pleach_merge.json.
func (f *Folder) Publish(files map[string][]byte, info Provenance) error {
	defer f.Close()
	if err := f.settle(); err != nil {
		return err
	}
	if name, text := f.layout.Index(); text != nil {
		files[name] = text
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if err := f.write(name, files[name]); err != nil {
			return fault.Machinef("merge: %w", err)
		}
	}
	text, err := json.MarshalIndent(f.manifest(files, info), "", "  ")
	if err != nil {
		return err
	}
	if err := f.write(ManifestName, append(text, '\n')); err != nil {
		return fault.Machinef("merge: %w", err)
	}
	if err := f.rename(); err != nil {
		return fault.Machinef("merge: publishing %s: %w", f.out, err)
	}
	return nil
}

// rename takes away what belongs to the attempt and gives the folder its name. No
// file in it is open then, which some systems want.
func (f *Folder) rename() error {
	for _, w := range f.files {
		if err := w.Sync(); err != nil {
			return err
		}
	}
	if err := f.shut(); err != nil {
		return err
	}
	disk := blob.OS{}
	for _, n := range []string{identityName, journalName} {
		if err := disk.Remove(filepath.Join(f.part, n)); err != nil {
			return err
		}
	}
	if err := disk.SyncDir(f.part); err != nil {
		return err
	}
	// Some systems have no file for the lock.
	if err := disk.Remove(filepath.Join(f.part, lockName)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := disk.Rename(f.part, f.out); err != nil {
		return err
	}
	return disk.SyncDir(filepath.Dir(f.out))
}

// write writes a small file to the disk.
func (f *Folder) write(name string, text []byte) error {
	w, err := os.Create(filepath.Join(f.part, name))
	if err != nil {
		return err
	}
	_, err = w.Write(text)
	return errors.Join(err, w.Sync(), w.Close())
}
