// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package data

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"pleach/data/frame"
	"pleach/data/table"
	"pleach/internal/fault"
)

// A file is one object of a source.
type file struct {
	found
	from   store
	size   int64 // bytes, as it is stored
	base   int64 // where it starts among the files of its source
	format string
	packed frame.Format // its bytes are compressed
	bare   bool         // documents are not named by lines
	print  []byte       // tells its content from another
	lines  *lineIndex
	shape  *shape
}

// gathered is what a list of paths has come to.
type gathered struct {
	files    []file
	size     int64 // of all files
	skipped  map[string]int64
	examples map[string]string // the first name of each reason
	later    string            // the first named file of a format not read yet
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
// their first line, if it has one: folders hold all sorts of things. Where a
// folder has tables, what lies beside them describes them.
func gather(src *Source) (*gathered, error) {
	formats := []string{"", formatText, formatLines, formatJSONL, formatParquet, formatArrow}
	if !slices.Contains(formats, src.Format) {
		return nil, fault.Configf("data: format: got %q, want one of %s",
			src.Format, strings.Join(formats[1:], ", "))
	}
	if len(src.Paths) == 0 {
		return nil, fault.Configf("data: a source has no path")
	}
	g := &gathered{skipped: map[string]int64{}, examples: map[string]string{}}
	seen := map[string]bool{}
	for _, path := range src.Paths {
		s := src.Access.store(path)
		all, err := s.find(path)
		if err != nil {
			return nil, err
		}
		if err := oneSplit(path, all); err != nil {
			return nil, err
		}
		var files []file
		for _, f := range all {
			if seen[f.name] { // patterns of one source may overlap
				continue
			}
			seen[f.name] = true
			if f.skip != "" {
				g.skip(f.name, f.skip)
				continue
			}
			if files, err = g.look(files, s, f, src); err != nil {
				return nil, err
			}
		}
		g.add(files)
	}
	if g.later != "" {
		return nil, fault.Configf("data: %s is not read: unpack it first", g.later)
	}
	return g, nil
}

// add takes the files of one path, or of a folder with tables those.
func (g *gathered) add(files []file) {
	tables := slices.ContainsFunc(files, func(f file) bool { return f.tree && isTable(f.format) })
	for _, f := range files {
		if tables && f.tree && !isTable(f.format) {
			g.skip(f.name, "beside tables")
			continue
		}
		f.base = g.size
		g.size += f.size
		g.files = append(g.files, f)
	}
}

// splitName is how files of a split are named that Hugging Face datasets writes.
var splitName = regexp.MustCompile(`(?:^|/)([A-Za-z_]+)(?:-\d{5}-of-\d{5}|/data-\d{5}-of-\d{5})[^/]*$`)

// oneSplit refuses a folder with several splits of a data set: one of them is
// held out.
func oneSplit(path string, all []found) error {
	var splits []string
	for _, f := range all {
		if m := splitName.FindStringSubmatch(f.rel); f.tree && m != nil && !slices.Contains(splits, m[1]) {
			splits = append(splits, m[1])
		}
	}
	known := slices.ContainsFunc(splits, func(s string) bool {
		return slices.Contains([]string{"train", "test", "validation", "valid", "dev"}, s)
	})
	if len(splits) < 2 || !known {
		return nil
	}
	return fault.Configf("data: %s has the splits %s: want the path of one of them", path, strings.Join(splits, ", "))
}

// look looks at one file and takes or skips it. A file elsewhere, whose version
// is known by its tag, is not opened if its name says what it is.
func (g *gathered) look(files []file, s store, f found, src *Source) ([]file, error) {
	it := file{found: f, from: s, size: f.size, lines: &lineIndex{}, shape: &shape{}}
	if f.tag != "" && f.size > 0 {
		if it.format, it.packed = formatByName(f.name); it.format != "" {
			it.print = []byte(f.tag)
			want := src.formatFor(it.format)
			if is := it.format; want == "" || is == want || want == formatLines && is == formatText {
				it.format = cmp.Or(want, is)
				return append(files, it), nil
			}
			g.skip(f.name, "other format")
			return files, nil
		}
	}
	o, err := s.open(f.name)
	if err != nil {
		return nil, err
	}
	defer o.Close()
	it.size = o.Size()
	head, text, err := it.head(o)
	if err != nil {
		return nil, err
	}
	if why := g.judge(&it, text, src); why != "" {
		g.skip(f.name, why)
		return files, nil
	}
	if err := it.sample(o, head); err != nil {
		return nil, err
	}
	return append(files, it), nil
}

// head is the first bytes of a file, as they are stored and as they are read.
func (f *file) head(o object) (stored, text []byte, err error) {
	stored = make([]byte, min(f.size, headSize))
	if err := readAt(o, f.name, stored, 0); err != nil {
		return nil, nil, err
	}
	if f.packed = frame.Sniff(stored); f.packed == frame.None {
		return stored, stored, nil
	}
	if text, err = frame.Head(o, f.size, headSize); err != nil {
		err = fault.Dataf("data: %s: %w", f.name, err)
	}
	return stored, text, err
}

// judge settles the format of a file by its head, or says why it is left out.
func (g *gathered) judge(f *file, head []byte, src *Source) (why string) {
	name := f.name
	if f.packed != frame.None {
		name = strings.TrimSuffix(name, filepath.Ext(name))
	}
	whole := f.packed == frame.None && f.size == int64(len(head)) || f.packed != frame.None && len(head) < headSize
	why, later := notText(head)
	is := formatOf(name, head, src.Field)
	if isTable(is) {
		why, later = "", false
	}
	if later && !f.tree && g.later == "" {
		g.later = f.name + " (" + why + ")"
	}
	format := src.formatFor(is)
	switch {
	case whole && isBlank(trimBOM(head)):
		return empty.String()
	case why != "":
		return why
	case isTable(is) != isTable(format) && format != "":
		return "other format"
	case format != "" && !f.tree && !isTable(is), format == formatLines && is == formatText:
		is = format
	case format != "" && is != format:
		return "other format"
	}
	f.format = is
	switch {
	case is == formatText:
		return f.textFile(head, whole)
	case is == formatJSONL && f.tree && lacks(head, src.Field):
		return "lines without " + strconv.Quote(src.Field)
	}
	return ""
}

// formatFor is the stated format of a source, or what a file that looks like is must
// have: ready rows that are no table are lines.
func (src *Source) formatFor(is string) string {
	if src.Format == "" && src.Rows && !isTable(is) {
		return formatJSONL
	}
	return src.Format
}

// textFile says why a file whose head may be text is no document.
func (f *file) textFile(head []byte, whole bool) string {
	switch {
	case !validHead(head, whole):
		return notUTF8.String()
	case f.size > longest:
		return tooLong.String()
	}
	return ""
}

// sample makes what tells the content of this file from another: a hash of up to
// 8 KiB each of its head, middle and tail.
func (f *file) sample(o object, head []byte) error {
	h := sha256.New()
	put(h, head)
	if f.size > headSize {
		buf := make([]byte, headSize)
		for _, off := range []int64{(f.size - headSize) / 2, f.size - headSize} {
			if err := readAt(o, f.name, buf, off); err != nil {
				return err
			}
			put(h, buf)
		}
	}
	f.print = h.Sum(nil)[:16]
	return nil
}

// put writes b with its length.
func put(h hash.Hash, b []byte) {
	var n [8]byte
	binary.LittleEndian.PutUint64(n[:], uint64(len(b)))
	h.Write(n[:])
	h.Write(b)
}

// digest is a hash of everything that the order and content of documents depend
// on: names below the path, formats, sizes and contents of the files.
func digest(files []file) []byte {
	h := sha256.New()
	for i := range files {
		f := &files[i]
		put(h, []byte(f.rel))
		put(h, []byte(f.format))
		put(h, binary.LittleEndian.AppendUint64(nil, uint64(f.size)))
		put(h, f.print)
	}
	return h.Sum(nil)
}

func isTable(format string) bool { return format == formatParquet || format == formatArrow }

// tableFormat is the format of a table with a head, "" if it is none.
func tableFormat(head []byte) string {
	switch table.Sniff(head) {
	case table.Parquet:
		return formatParquet
	case table.Arrow, table.Stream:
		return formatArrow
	}
	return ""
}
