// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package vocab

// Model is what is known of an input.
type Model struct {
	Name string // for messages
	Dir  string // its tokenizer is there
	Rows int    // vocab_size of its configuration
}

// Options say what the vocabulary of the output is.
type Options struct {
	Base   int // index of the model whose tokenizer is the base
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
}

// Build makes the vocabulary of the output.
func Build(models []Model, o Options) (*Vocabulary, error) { return nil, nil }

// ReadRows sets dst to rows lo to hi of a model's embedding as it is stored. dst is
// [hi−lo, width].
type ReadRows func(model, lo, hi int, dst []float32) error

// Matrix is the embedding of one model over the output's vocabulary.
type Matrix struct{}

// Matrix is the embedding of a model, whose rows of a width come from stored, the
// same tensor of all models. rows is how many each model stores. It may read all of
// them once.
func (v *Vocabulary) Matrix(model, width int, rows []int, stored ReadRows) (*Matrix, error) {
	return nil, nil
}

// Read sets dst to elements lo to hi, row-major.
func (m *Matrix) Read(lo, hi int, dst []float32) error { return nil }
