// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package data

import (
	"encoding/hex"
	"fmt"
)

// A FilePrint tells one file of a source, and its version, from others.
type FilePrint struct {
	Source int    `json:"source"` // index into Spec.Sources
	Name   string `json:"name"`   // below the path of the source
	Format string `json:"format"`
	Bytes  int64  `json:"bytes"` // as it is stored
	// Print is of samples of the content, or what the store calls the version.
	Print string `json:"print"`
}

// Files is every file that is read, in order: what the fingerprint of a state has
// a hash of.
func (l *Loader) Files() []FilePrint {
	var all []FilePrint
	for i, s := range l.sources {
		for _, f := range s.files {
			all = append(all, FilePrint{i, f.rel, f.format, f.size, hex.EncodeToString(f.print)})
		}
	}
	return all
}

// AcceptChanged lets [Loader.Restore] take a state of files that have changed since.
// Its cursors are taken as they are: what follows is what lies there now.
func (l *Loader) AcceptChanged() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.accept = true
}

// Changes says in words how the files of a corpus differ from what they were.
func Changes(was, now []FilePrint) []string {
	type key struct {
		source int
		name   string
	}
	before := map[key]FilePrint{}
	for _, f := range was {
		before[key{f.Source, f.Name}] = f
	}
	var list []string
	say := func(f FilePrint, format string, args ...any) {
		list = append(list, fmt.Sprintf("source %d: %s "+format, append([]any{f.Source, f.Name}, args...)...))
	}
	for _, f := range now {
		k := key{f.Source, f.Name}
		old, ok := before[k]
		delete(before, k)
		switch {
		case !ok:
			say(f, "is new")
		case old.Bytes != f.Bytes:
			say(f, "had %d bytes, has %d", old.Bytes, f.Bytes)
		case old.Format != f.Format:
			say(f, "was %s, is %s", old.Format, f.Format)
		case old.Print != f.Print:
			say(f, "has another content")
		}
	}
	for _, f := range was {
		if _, gone := before[key{f.Source, f.Name}]; gone {
			say(f, "is gone")
		}
	}
	if len(list) == 0 && len(was) > 0 && fmt.Sprint(was) != fmt.Sprint(now) {
		list = append(list, "the order of the files")
	}
	return list
}
