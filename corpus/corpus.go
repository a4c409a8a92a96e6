// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"iter"
	"os"
	"path/filepath"

	"pleach/internal/fault"
)

// The two kinds of text are indices, as in [Corpus.Names] and [Amounts].
const (
	General = 0
	Domain  = 1
)

// Sides are the names of the two kinds, in this order, in files, recipes and tables.
func Sides() [2]string { return [2]string{"general", "domain"} }

// Corpus is where texts of two kinds come from. It is the list of their files;
// what is in them is read by [Corpus.Write], each time again.
type Corpus struct {
	About  string    // where it was found, for people
	Names  [2]string // what general and domain are, for people
	Prompt string    // how a text of the domain may begin, "" if nothing is typical
	files  []textFile
}

// Find is the user's own texts if there are paths, else a Go source tree, else
// the documentation of this machine. Two paths are files or folders of general
// and of domain. One path is a folder of both: its entries general and domain
// are, with any extension, or else its first entry by name and all the others.
//
// An error is of kind [fault.Config] if the paths are not that, or if there are
// none and nothing was found here; of kind [fault.Data] if the Go sources cannot
// be listed.
func Find(ctx context.Context, texts []string) (*Corpus, error) {
	if len(texts) > 0 {
		return userCorpus(texts)
	}
	if root := goRoot(ctx); root != "" {
		src := filepath.Join(root, "src")
		return goCorpus(os.DirFS(src), src)
	}
	if c := documentation(documentationFolders()); c != nil {
		return c, nil
	}
	return nil, fault.Configf("corpus: this machine has neither Go sources nor enough documentation to train on: " +
		"texts of two kinds must be named, a general one and a domain")
}

// textFile is documents that are read together.
type textFile struct {
	name  string
	sides []int // which texts they give to
	// docs reads them; nth counts the pieces of each text that came before.
	docs func(nth *[2]int) iter.Seq2[textPair, error]
}

// textPair is what one document gives to general and to domain; either may be
// empty.
type textPair struct {
	ID      string
	Text    [2]string
	HeldOut bool
}

// hash is the first eight bytes of a SHA-256.
func hash(s string) uint64 {
	sum := sha256.Sum256([]byte(s))
	return binary.LittleEndian.Uint64(sum[:])
}

// inTwenty is true for one name in twenty, always the same ones: what is held
// out, where a package or a file is held out whole.
func inTwenty(name string) bool { return hash("held out "+name)%20 == 0 }

// Lengths in bytes that decide what is a document.
const (
	longestDocument  = 20_000 // the rest is cut off, at a line
	longestHeldOut   = 4000   // so that what is measured on comes from many packages
	shortestDocument = 200
	shortestComment  = 40
)
