// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package data

import (
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"strconv"

	"pleach/internal/fault"
)

// A file is one object of a source.
type file struct {
	name, rel string
	size      int64
	base      int64 // where it starts among the files of its source
	format    string
	lines     *lineIndex
}

// gathered is what a list of paths has come to.
type gathered struct {
	files    []file
	size     int64 // of all files
	skipped  map[string]int64
	examples map[string]string // the first name of each reason
	later    string            // the first named file of a format not read yet
	hash     hash.Hash         // of names, sizes, formats and samples
}

func (g *gathered) skip(name, reason string) {
	g.skipped[reason]++
	if _, ok := g.examples[reason]; !ok {
		g.examples[reason] = name
	}
}

// gather finds the files of a source and looks at the head of each. The format
// of the source decides for a file that is named, and selects among those of a
// folder. Files of lines that lie in a folder need the field of the source in
// their first line, if it has one: folders hold all sorts of things.
func gather(s store, src *Source) (*gathered, error) {
	switch format := src.Format; format {
	case "", formatText, formatLines, formatJSONL:
	default:
		return nil, fault.Configf("data: format: got %q, want %s, %s or %s",
			format, formatText, formatLines, formatJSONL)
	}
	if len(src.Paths) == 0 {
		return nil, fault.Configf("data: a source has no path")
	}
	g := &gathered{
		skipped: map[string]int64{}, examples: map[string]string{}, hash: sha256.New(),
	}
	seen := map[string]bool{}
	for _, path := range src.Paths {
		all, err := s.find(path)
		if err != nil {
			return nil, err
		}
		for _, f := range all {
			if seen[f.name] { // patterns of one source may overlap
				continue
			}
			seen[f.name] = true
			if f.skip != "" {
				g.skip(f.name, f.skip)
				continue
			}
			if err := g.add(s, f, src); err != nil {
				return nil, err
			}
		}
	}
	if g.later != "" {
		return nil, fault.Configf("data: %s is not read yet: unpack it first", g.later)
	}
	return g, nil
}

// add looks at one file and takes or skips it.
func (g *gathered) add(s store, f found, src *Source) error {
	o, err := s.open(f.name)
	if err != nil {
		return err
	}
	defer o.Close()
	size := o.Size()
	head := make([]byte, min(size, headSize))
	if err := readAt(o, f.name, head, 0); err != nil {
		return err
	}
	reason, later := notText(head)
	if later && !f.tree && g.later == "" {
		g.later = f.name + " (" + reason + ")"
	}
	is, format := formatOf(f.name, head, src.Field), src.Format
	switch {
	case size == 0 || isBlank(trimBOM(head)) && size <= headSize:
		reason = empty.String()
	case reason != "":
	case format != "" && !f.tree, format == formatLines && is == formatText:
		is = format
	case format != "" && is != format:
		reason = "other format"
	}
	switch {
	case reason != "":
	case is == formatText:
		reason = textFile(head, size)
	case is == formatJSONL && f.tree && lacks(head, src.Field):
		reason = "lines without " + strconv.Quote(src.Field)
	}
	if reason != "" {
		g.skip(f.name, reason)
		return nil
	}
	g.files = append(g.files, file{f.name, f.rel, size, g.size, is, &lineIndex{}})
	g.size += size
	return g.sample(o, f, is, head)
}

// textFile says why a file whose head may be text is no document.
func textFile(head []byte, size int64) string {
	switch {
	case !validHead(head, size == int64(len(head))):
		return notUTF8.String()
	case size > longest:
		return tooLong.String()
	}
	return ""
}

// sample adds to the hash what tells this file from another: its name, size and
// format, and up to 8 KiB each of its head, middle and tail.
func (g *gathered) sample(o object, f found, format string, head []byte) error {
	var n [8]byte
	put := func(b []byte) {
		binary.LittleEndian.PutUint64(n[:], uint64(len(b)))
		g.hash.Write(n[:])
		g.hash.Write(b)
	}
	put([]byte(f.rel))
	put([]byte(format))
	binary.LittleEndian.PutUint64(n[:], uint64(o.Size()))
	g.hash.Write(n[:])
	put(head)
	if o.Size() <= headSize {
		return nil
	}
	buf := make([]byte, headSize)
	for _, off := range []int64{(o.Size() - headSize) / 2, o.Size() - headSize} {
		if err := readAt(o, f.name, buf, off); err != nil {
			return err
		}
		put(buf)
	}
	return nil
}
