// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package data

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"math"
	"slices"
	"sync"

	"pleach/internal/fault"
)

// A Class is what an id says about how a tokenizer fits a text.
type Class uint8

// The classes.
const (
	Usual    Class = iota
	Unknown        // stands for a text that the vocabulary lacks
	Fallback       // a byte of a character that the vocabulary lacks
)

// A SurveySpec says what [Survey] looks at.
type SurveySpec struct {
	// Spec is what documents are made into: its sources, sequence and special ids
	// matter, its lanes, mixtures and order do not.
	Spec
	// Sample is how many stored bytes of each source are looked at, in whole blocks
	// evenly spaced; 0: all.
	Sample int64
	Class  func(id int32) Class // nil: all are Usual
	// Progress, if not nil, is told how many of the stored bytes are done.
	Progress func(done, total int64)
}

// A SourceSurvey is what the documents of one source are like. Counts are of what
// was looked at; where that is less than all, [SourceSurvey.Scale] makes estimates
// of the source from them.
type SourceSurvey struct {
	Name       string            `json:"name"`
	Files      int               `json:"files"`
	Field      string            `json:"field,omitempty"` // of lines and tables, where the documents are
	Bytes      int64             `json:"bytes"`           // of its files, as they are stored
	Looked     int64             `json:"looked_at"`
	Documents  int64             `json:"documents"`
	TextBytes  int64             `json:"text_bytes"` // of documents that came as text
	TextIDs    int64             `json:"text_ids"`   // that these became, without special ones
	Tokens     int64             `json:"tokens"`     // with special ids; 0 without a tokenizer
	Unknown    int64             `json:"unknown"`
	Fallback   int64             `json:"fallback"`
	Overlong   int64             `json:"overlong"` // documents of more tokens than the sequence
	Skipped    map[string]int64  `json:"skipped,omitempty"`
	Examples   map[string]string `json:"examples,omitempty"` // the first of each reason
	Duplicates Duplicates        `json:"duplicates"`
	// Lengths are those of documents: in tokens, without a tokenizer in bytes.
	Lengths  Lengths `json:"lengths"`
	InTokens bool    `json:"in_tokens"` // the unit of Lengths
}

// Scale is by how much counts are multiplied to estimate those of the source: 1 if
// all of it was looked at.
func (s *SourceSurvey) Scale() float64 {
	if s.Looked == 0 {
		return 1
	}
	return max(1, float64(s.Bytes)/float64(s.Looked))
}

// Survey looks at the documents of sources with all processors. enc may be nil:
// then there are no tokens. Damaged documents are counted with the skipped ones,
// except of ready rows. The memory does not grow with the sources.
func Survey(ctx context.Context, p SurveySpec, enc Encoder) ([]SourceSurvey, error) {
	if p.Sequence < 1 || p.Sample < 0 {
		return nil, fault.Configf("data: survey of %d bytes for rows of %d targets: want 0 or more, and 1 or more",
			p.Sample, p.Sequence)
	}
	named, err := unique(p.Sources)
	if err != nil {
		return nil, err
	}
	var sources []*source
	defer func() {
		for _, s := range sources {
			s.close()
		}
	}()
	m := progress{tell: p.Progress}
	for _, src := range named {
		ready := src.Rows
		s, err := newSource(src, 1, p.Vocabulary)
		if err == nil && enc != nil {
			err = s.checkTokenizer(p.Tokenizer)
		}
		if err == nil && s.packed != nil { // a row is looked at as a document
			src.Rows, src.Field = false, rowColumns()[rowIDs].Name
			s, err = newSource(src, 1, p.Vocabulary)
		}
		if err != nil {
			return nil, err
		}
		sources = append(sources, s)
		if !ready {
			s.Damaged = math.MaxInt64
		}
		for _, b := range s.sampleBlocks(p.Sample) {
			m.total += s.blockBytes(b)
		}
	}
	var all []SourceSurvey
	for _, s := range sources {
		one, err := s.survey(ctx, &p, enc, &m)
		if err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	return all, nil
}

// progress sums what is done.
type progress struct {
	mu          sync.Mutex
	done, total int64
	tell        func(done, total int64)
}

func (m *progress) add(n int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.done += n
	if m.tell != nil {
		m.tell(m.done, m.total)
	}
}

// sampleBlocks are blocks of a source, evenly spaced, of so many bytes in all or a
// little more; 0: all.
func (s *source) sampleBlocks(bytes int64) []int {
	n := s.blocks
	if bytes > 0 {
		n = min(n, int((bytes+s.block-1)/s.block))
	}
	blocks := make([]int, n)
	for i := range blocks {
		blocks[i] = int(int64(i) * int64(s.blocks) / int64(n))
	}
	return blocks
}

func (s *source) blockBytes(b int) int64 { return min(s.block, s.size-int64(b)*s.block) }

// survey looks at a source, or some of its blocks.
func (s *source) survey(ctx context.Context, p *SurveySpec, enc Encoder, m *progress) (SourceSurvey, error) {
	sum := SourceSurvey{
		Name: s.Name, Files: len(s.files), Bytes: s.size, Skipped: map[string]int64{}, Examples: map[string]string{},
	}
	if slices.ContainsFunc(s.files, func(f file) bool { return f.format == formatJSONL || isTable(f.format) }) {
		sum.Field = s.Field
	}
	for why, n := range s.skipped {
		sum.Skipped[why], sum.Examples[why] = n, s.examples[why]
	}
	blocks := s.sampleBlocks(p.Sample)
	if len(blocks) < s.blocks {
		s = s.bare()
		defer s.close()
	}
	v := &surveyor{p: p, src: s, sum: &sum, tokens: enc != nil, hashes: newHashes(hashLimit)}
	fresh := func() *lane { return &lane{spec: &p.Spec, enc: enc} }
	err := spread(ctx, len(blocks), fresh, func(n *lane, i int) error {
		part := SourceSurvey{Skipped: map[string]int64{}, Examples: map[string]string{}}
		if err := v.block(n, blocks[i], &part); err != nil {
			return err
		}
		v.mu.Lock()
		v.add(&part)
		v.mu.Unlock()
		m.add(s.blockBytes(blocks[i]))
		return nil
	})
	if harm := sum.Skipped[damaged.String()]; harm > 0 {
		s.mu.Lock()
		sum.Examples[damaged.String()] = s.examples[damaged.String()]
		s.mu.Unlock()
	}
	if len(blocks) == s.blocks { // bytes between documents count too
		sum.Looked = s.size
	}
	sum.Duplicates = v.hashes.duplicates()
	sum.InTokens = enc != nil || sum.TextBytes == 0
	return sum, err
}

// surveyor looks at the blocks of a source.
type surveyor struct {
	p      *SurveySpec
	src    *source
	tokens bool

	mu     sync.Mutex // of what follows
	sum    *SourceSurvey
	hashes *hashes
}

// block looks at the documents that start in a block.
func (v *surveyor) block(n *lane, b int, part *SourceSurvey) error {
	s := v.src
	lo := int64(b) * s.block
	refs, err := s.starting(lo, min(lo+s.block, s.size))
	if err != nil {
		return err
	}
	for _, r := range refs {
		d, why, err := s.read(r, &n.c)
		if err != nil {
			return err
		}
		part.Looked += s.takes(r)
		if why != none {
			part.Skipped[why.String()]++
			if part.Examples[why.String()] == "" {
				part.Examples[why.String()] = d.ID
			}
			continue
		}
		if err := v.document(n, d, part); err != nil {
			return err
		}
	}
	return nil
}

// document looks at one.
func (v *surveyor) document(n *lane, d Document, part *SourceSurvey) error {
	part.Documents++
	length := int64(len(d.Text))
	part.TextBytes += length
	content := d.Text
	if d.IDs != nil {
		content = idBytes(d.IDs)
	}
	v.hashes.add(hashOf(content))
	if v.tokens || d.IDs != nil {
		n.doc = d
		if err := n.encode(d); err != nil {
			return err
		}
		length = int64(len(n.ids))
		part.Tokens += length
		if length > int64(v.p.Sequence) {
			part.Overlong++
		}
		v.classes(n, d, part)
	}
	part.Lengths.Add(length)
	return nil
}

// classes counts the ids of a document by how they fit its text.
func (v *surveyor) classes(n *lane, d Document, part *SourceSurvey) {
	if d.IDs == nil {
		part.TextIDs += int64(len(n.ids)) - 1
		if n.spec.AddBOS {
			part.TextIDs--
		}
	}
	if v.p.Class == nil {
		return
	}
	for _, id := range n.ids {
		switch v.p.Class(id) {
		case Unknown:
			part.Unknown++
		case Fallback:
			part.Fallback++
		}
	}
}

// add takes in what a block holds.
func (v *surveyor) add(part *SourceSurvey) {
	s := v.sum
	s.Looked += part.Looked
	s.Documents += part.Documents
	s.TextBytes += part.TextBytes
	s.TextIDs += part.TextIDs
	s.Tokens += part.Tokens
	s.Unknown += part.Unknown
	s.Fallback += part.Fallback
	s.Overlong += part.Overlong
	s.Lengths.merge(&part.Lengths)
	for why, n := range part.Skipped {
		s.Skipped[why] += n
		if name := part.Examples[why]; s.Examples[why] == "" || name < s.Examples[why] {
			s.Examples[why] = name // the first by name: blocks come in any order
		}
	}
}

// idBytes is ids as bytes.
func idBytes(ids []int32) []byte {
	b := make([]byte, 0, 4*len(ids))
	for _, id := range ids {
		b = binary.LittleEndian.AppendUint32(b, uint32(id))
	}
	return b
}

// hashOf is 64 bits of a hash that nobody finds two texts for by chance.
func hashOf(b []byte) uint64 {
	h := sha256.Sum256(b)
	return binary.LittleEndian.Uint64(h[:])
}

// A Duplicates says how many documents have a text that another one before them
// has, byte for byte.
type Duplicates struct {
	Documents int64 `json:"documents"` // compared
	Copies    int64 `json:"copies"`    // of these, all but one of each text
	// Part of the documents were compared, those whose hash is small: all, until
	// there are more different texts than fit into the memory set aside for them.
	Part float64 `json:"part"`
}

// Share is the part of documents that are copies.
func (d Duplicates) Share() float64 {
	if d.Documents == 0 {
		return 0
	}
	return float64(d.Copies) / float64(d.Documents)
}

// hashLimit is how many different texts of a source are compared: about 40 MiB.
const hashLimit = 1 << 20

// hashes counts equal hashes in bounded memory: when there are too many different
// ones it forgets those above a threshold, which it halves. Whether a text is
// counted depends on its hash alone, so copies are counted together.
type hashes struct {
	mu    sync.Mutex
	limit int
	below uint64 // those ≤ below are counted
	times map[uint64]uint32
}

func newHashes(limit int) *hashes {
	return &hashes{limit: limit, below: math.MaxUint64, times: map[uint64]uint32{}}
}

func (h *hashes) add(x uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if x > h.below {
		return
	}
	h.times[x]++
	for len(h.times) > h.limit {
		h.below /= 2
		for x := range h.times {
			if x > h.below {
				delete(h.times, x)
			}
		}
	}
}

func (h *hashes) duplicates() Duplicates {
	d := Duplicates{Part: (float64(h.below) + 1) / (1 << 64)}
	for _, n := range h.times {
		d.Documents += int64(n)
		d.Copies += int64(n) - 1
	}
	return d
}
