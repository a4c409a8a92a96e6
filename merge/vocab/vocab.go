// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package vocab

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
)

// Model is what is known of an input.
type Model struct {
	Name string // for messages
	Dir  string // its tokenizer is there
	Rows int    // vocab_size of its configuration
}

// Options say what the vocabulary of the output is.
type Options struct {
	Base   int  // index of the model whose tokenizer is the base
	NoBase bool // Base gives its tokenizer only: it is not the base of the merge
	Source Source
	Tokens []Token // in the order of the configuration
	Pad    int     // rows are rounded up to a multiple; 0 is 1
}

// Source is whose tokens are in the output.
type Source struct {
	Kind  SourceKind
	Model int // for OfModel
}

// SourceKind is union, base or a model.
type SourceKind byte

// Kinds of Source.
const (
	Union SourceKind = iota
	OfBase
	OfModel
)

// Token is what a configuration says about one token.
type Token struct {
	Text  string
	Kind  TokenKind
	Model int    // for FromModel and FromToken
	Token string // for FromToken, unless ByID
	ID    int    // for FromToken, if ByID
	ByID  bool
	Force bool // in the place of the row that a model has itself
}

// TokenKind is where the row of a token comes from.
type TokenKind byte

// Kinds of Token.
const (
	Unsaid    TokenKind = iota // by the rules
	Zero                       // zeros
	FromModel                  // the row of this token in a model
	FromToken                  // the row of another token in a model
)

// Vocabulary is the vocabulary of the output.
type Vocabulary struct {
	Rows     int               // of embeddings, padding included
	Tokens   int               // of them, those that are tokens
	Files    map[string][]byte // the tokenizer of the output
	Warnings []string

	models []Model
	base   int             // index of the base of the merge, −1 for none
	texts  []string        // of an id; ids without a token have none
	is     []bool          // whether an id has a token
	own    [][]int32       // [model][id] the row of the token of that id, −1 for none
	said   map[int]*source // by id: what the configuration says
}

// source is where a configuration takes the row of a token from.
type source struct {
	zero  bool
	model int // −1: nothing is said but force
	row   int
	force bool
}

// Sum is a hash of where all rows come from: vocabularies with the same one make the
// same of the same embeddings.
func (v *Vocabulary) Sum() (sum [sha256.Size]byte) {
	h := sha256.New()
	fmt.Fprintln(h, v.Rows, v.Tokens, v.base, len(v.own))
	for id, text := range v.texts {
		fmt.Fprintf(h, "%d %t %q\n", id, v.is[id], text)
		if s := v.said[id]; s != nil {
			fmt.Fprintf(h, "%+v\n", *s)
		}
	}
	for _, own := range v.own {
		_ = binary.Write(h, binary.LittleEndian, own) // a hash takes everything
	}
	h.Sum(sum[:0])
	return sum
}
