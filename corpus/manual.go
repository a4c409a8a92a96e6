// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"compress/gzip"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"
)

func documentationFolders() []string {
	return []string{
		"/usr/share/doc", "/usr/share/man", "/usr/share/licenses", "/usr/local/share/doc", "/usr/local/share/man",
		"/opt/homebrew/share/doc", "/opt/homebrew/share/man",
	}
}

// kindOf is what a file of documentation is, "" for what is not read.
func kindOf(name string) string {
	base := strings.ToLower(strings.TrimSuffix(filepath.Base(name), ".gz"))
	ext := filepath.Ext(base)
	starts := func(words ...string) bool {
		return slices.ContainsFunc(words, func(w string) bool { return strings.HasPrefix(base, w) })
	}
	section := strings.HasPrefix(filepath.Base(filepath.Dir(name)), "man")
	switch {
	case section && len(ext) > 1 && ext[1] >= '1' && ext[1] <= '9':
		return "manual pages"
	case ext == ".html" || ext == ".htm":
		return "web pages"
	case starts("changelog", "news", "changes"):
		return "change logs"
	case starts("copyright", "license", "licence", "copying"):
		return "licences"
	case ext == ".txt" || ext == ".md" || ext == ".rst" || starts("readme"):
		return "guides"
	}
	return ""
}

// leastKind is how many bytes a kind of documentation needs to be a text.
const leastKind = 1 << 20

// documentation is the two kinds of documentation with most text, nil if there
// are no two with enough of it. The larger one is general.
func documentation(folders []string) *Corpus {
	found, size := map[string][]string{}, map[string]int64{}
	for _, folder := range folders {
		_ = filepath.WalkDir(folder, func(name string, d fs.DirEntry, err error) error {
			if err != nil || !d.Type().IsRegular() {
				return nil // what cannot be read is not there
			}
			if kind := kindOf(name); kind != "" {
				if info, err := d.Info(); err == nil {
					n := min(info.Size(), longestDocument)
					if strings.HasSuffix(name, ".gz") {
						n = min(3*info.Size(), longestDocument)
					}
					size[kind] += n
					found[kind] = append(found[kind], name)
				}
			}
			return nil
		})
	}
	var kinds []string
	for k, n := range size {
		if n >= leastKind {
			kinds = append(kinds, k)
		}
	}
	if len(kinds) < 2 {
		return nil
	}
	slices.SortFunc(kinds, func(a, b string) int {
		if size[a] != size[b] {
			return int(min(max(size[b]-size[a], -1), 1))
		}
		return strings.Compare(a, b)
	})
	c := &Corpus{About: "the documentation of this machine", Names: [2]string(kinds[:2])}
	for side, kind := range kinds[:2] {
		for _, name := range found[kind] {
			c.files = append(c.files, textFile{name, []int{side}, func(*[2]int) iter.Seq2[textPair, error] {
				return manual(name, side)
			}})
		}
	}
	return c
}

// manual reads one file of documentation, unpacked if need be. What cannot be
// read or is no UTF-8 has no document.
func manual(name string, side int) iter.Seq2[textPair, error] {
	return func(yield func(textPair, error) bool) {
		f, err := os.Open(name)
		if err != nil {
			return
		}
		defer f.Close()
		var r io.Reader = f
		if strings.HasSuffix(name, ".gz") {
			if r, err = gzip.NewReader(f); err != nil {
				return
			}
		}
		// One byte more, so that a text of just this length is told from a longer one.
		text, err := io.ReadAll(io.LimitReader(r, longestDocument+utf8.UTFMax))
		if err != nil {
			return
		}
		p := textPair{ID: name, HeldOut: inTwenty(name)}
		p.Text[side] = cut(string(text), longestDocument)
		yield(p, nil)
	}
}
