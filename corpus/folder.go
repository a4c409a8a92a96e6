// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"pleach/data"
	"pleach/internal/fault"
)

// userCorpus is two texts, or one folder that holds two.
func userCorpus(texts []string) (*Corpus, error) {
	sides, err := sidesOf(texts)
	if err != nil {
		return nil, err
	}
	c := &Corpus{About: "the texts in " + strings.Join(texts, " and ")}
	for side, paths := range sides {
		c.Names[side] = filepath.Base(paths[0])
		if len(paths) > 1 {
			c.Names[side] = fmt.Sprintf("the other %d entries", len(paths))
		}
		files, err := filesUnder(paths)
		if err != nil {
			return nil, err
		}
		if len(files) == 0 {
			return nil, fault.Configf("corpus: %s: there are no files", strings.Join(paths, " "))
		}
		for _, f := range files {
			c.files = append(c.files, textFile{f, []int{side}, func(nth *[2]int) iter.Seq2[textPair, error] {
				return userDocuments(f, side, &nth[side])
			}})
		}
	}
	return c, nil
}

// sidesOf says which paths are general and which are domain. Of one folder, what
// is called so is, else the first entry by name is general and the rest domain.
func sidesOf(texts []string) (sides [2][]string, err error) {
	if len(texts) == 2 {
		return [2][]string{texts[:1], texts[1:]}, nil
	}
	if len(texts) > 2 {
		return sides, fault.Configf("corpus: texts: got %d, want two (general, then domain) "+
			"or one folder of both", len(texts))
	}
	entries, err := os.ReadDir(texts[0])
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return sides, fault.Configf("corpus: %s is no folder of two texts: "+
			"want two names, general and domain", texts[0])
	} else if err != nil {
		return sides, fault.Configf("corpus: %w", err)
	}
	var names []string
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), ".") {
			names = append(names, e.Name())
		}
	}
	if len(names) < 2 {
		return sides, fault.Configf("corpus: %s: the folder has %d entries, "+
			"want two or more: general and domain", texts[0], len(names))
	}
	stem := func(n string) string { return strings.TrimSuffix(n, filepath.Ext(n)) }
	first := max(0, slices.IndexFunc(names, func(n string) bool { return stem(n) == "general" }))
	if i := slices.IndexFunc(names, func(n string) bool { return stem(n) == "domain" }); i >= 0 {
		sides[Domain] = []string{filepath.Join(texts[0], names[i])}
		names = slices.Delete(names, i, i+1)
		for _, n := range names {
			sides[General] = append(sides[General], filepath.Join(texts[0], n))
		}
		return sides, nil
	}
	for i, n := range names {
		side := Domain
		if i == first {
			side = General
		}
		sides[side] = append(sides[side], filepath.Join(texts[0], n))
	}
	return sides, nil
}

// filesUnder lists the files of paths and below them; links are not followed.
func filesUnder(paths []string) ([]string, error) {
	var files []string
	for _, p := range paths {
		err := filepath.WalkDir(p, func(name string, d fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case name != p && strings.HasPrefix(d.Name(), "."):
				if d.IsDir() {
					return fs.SkipDir
				}
			case d.Type().IsRegular() || name == p && !d.IsDir():
				files = append(files, name)
			}
			return nil
		})
		if err != nil {
			return nil, fault.Configf("corpus: %w", err)
		}
	}
	return files, nil
}

// userDocuments reads a file of one text: its documents, long ones in pieces,
// every twentieth held out. A file that is no text has none.
func userDocuments(file string, side int, nth *int) iter.Seq2[textPair, error] {
	return func(yield func(textPair, error) bool) {
		for d, err := range data.Documents(data.Source{Paths: []string{file}}) {
			if err != nil && errors.Is(err, fault.Data) {
				return // what is skipped is skipped here too
			}
			if err != nil {
				yield(textPair{}, err)
				return
			}
			if d.Text == nil {
				yield(textPair{}, fault.Configf("corpus: %s: it holds ids, want text", file))
				return
			}
			for p := range pieces(d.ID, string(d.Text), side, nth) {
				if !yield(p, nil) {
					return
				}
			}
		}
	}
}

// pieceSize is where long documents are cut, small enough that one large file
// has pieces to hold out.
const pieceSize = 4000

// pieces cuts a text of one side; nth counts pieces over all its documents.
func pieces(id, text string, side int, nth *int) iter.Seq[textPair] {
	return func(yield func(textPair) bool) {
		for i := 0; text != ""; i++ {
			p := textPair{ID: id, HeldOut: *nth%20 == 10}
			if i > 0 {
				p.ID = fmt.Sprintf("%s+%d", id, i)
			}
			*nth++
			p.Text[side] = cut(text, pieceSize)
			text = text[len(p.Text[side]):]
			if !yield(p) {
				return
			}
		}
	}
}
