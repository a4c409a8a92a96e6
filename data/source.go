// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package data

import (
	"cmp"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"pleach/internal/fault"
	"pleach/internal/rng"
)

// A Source is documents that belong together: what a recipe lists under
// data.sources.
type Source struct {
	Paths  []string // files, folders and patterns; a pattern's matches go by name
	Access Access   // how bytes are reached
	Name   string   // default: by the first path
	Weight float64  // share of tokens relative to the other sources; all 0: equal shares
	// Field is where the text, or the list of ids, is in a JSONL line or a table:
	// names with dots, "messages.content". Several texts are joined, a line each.
	// Default: "text".
	Field string
	ID    string // where the name of the document is; default: FILE:LINE or FILE:ROW
	Mask  string // where a list of 0 and 1 is; default, and where absent: all 1
	Rows  bool   // a line, or a row of a table, is a row: exactly T+1 ids
	// Format is "text" (a file is a document), "lines" (a line of a text file is),
	// "jsonl", "parquet", "arrow"; default: by the name and head of each file. Each may
	// be compressed with gzip or zstd. In a folder files of another format than stated
	// are left out.
	Format string
	// Damaged documents may be left out and are counted, up to so many for each
	// rank in epoch 0; 0: the first one is an error.
	Damaged int64
	Epochs  float64 // a lane reads its share of the documents so often; 0: without end
}

// A block is min(blockSize, size/(blocksPerLane·L)) bytes, as they are stored; where
// they are compressed or in tables, each lane holds one of each source, and the limit
// is packedBlock.
const (
	blockSize     = 4 << 20
	packedBlock   = 1 << 20
	blocksPerLane = 64
)

// source is a Source that has been looked at. It is safe for concurrent use.
type source struct {
	Source
	key        string // its place among the sources: names may change, orders must not
	files      []file
	parts      *parts      // nil unless the documents lie as tokens
	packed     *packedRows // nil unless rows lie as they are trained on
	tables     shelf
	size       int64
	digest     []byte // of the files
	lanes      int
	vocabulary int
	block      int64 // bytes in a block
	blocks     int
	whole      index

	mu       sync.Mutex
	skipped  map[string]int64 // files, counted at the start
	examples map[string]string
	perms    [2]perm // of the epochs asked for last
}

// index is all documents of a source so small that finding them once is cheap.
type index struct {
	once sync.Once
	refs []ref
	err  error
}

// indexed is the size up to which a source has a whole index.
var indexed int64 = 16 << 20 // tests set it

type perm struct {
	epoch int64
	of    []int
}

func newSource(src Source, lanes, vocabulary int) (*source, error) {
	if src.Name == "" && len(src.Paths) > 0 {
		src.Name = nameOf(src.Paths[0])
	}
	if err := src.check(); err != nil {
		return nil, err
	}
	s := &source{Source: src, lanes: lanes, vocabulary: vocabulary}
	if err := s.openFiles(); err != nil {
		return nil, err
	}
	s.digest = digest(s.files)
	if s.packed != nil {
		s.blocks, s.block = 1, s.size
		return s, nil
	}
	most := int64(blockSize)
	if slices.ContainsFunc(s.files, func(f file) bool { return !f.plain() }) {
		most = packedBlock
	}
	s.block = max(1, min(most, s.size/(blocksPerLane*int64(lanes))))
	s.blocks = int((s.size + s.block - 1) / s.block)
	if len(s.files) == 0 {
		return nil, s.emptyError()
	}
	return s, nil
}

// check refuses numbers that mean nothing.
func (src *Source) check() error {
	if src.Weight < 0 || math.IsNaN(src.Weight) || math.IsInf(src.Weight, 0) {
		return fault.Configf("data: source %s: weight: got %v, want a number ≥ 0",
			src.Name, src.Weight)
	}
	if src.Epochs < 0 || math.IsNaN(src.Epochs) {
		return fault.Configf("data: source %s: epochs: got %v, want a number > 0",
			src.Name, src.Epochs)
	}
	if src.Damaged < 0 {
		return fault.Configf("data: source %s: damaged: got %d, want 0 or more", src.Name, src.Damaged)
	}
	if src.Rows && src.Damaged > 0 {
		return fault.Configf("data: source %s: %d damaged ready rows may be left out: want 0, for which row "+
			"follows would depend on it", src.Name, src.Damaged)
	}
	return nil
}

// openFiles finds the files of a source, or the folder of tokens or rows that it is.
func (s *source) openFiles() error {
	if packed, err := s.openRows(); packed || err != nil {
		return err
	}
	if tokens, err := s.openTokens(); tokens || err != nil {
		return err
	}
	s.Field = cmp.Or(s.Field, "text")
	if err := s.refuseFolder(); err != nil {
		return err
	}
	g, err := gather(&s.Source)
	if err != nil {
		return err
	}
	s.files, s.size = g.files, g.size
	s.skipped, s.examples = g.skipped, g.examples
	if s.Rows && !slices.ContainsFunc(s.files, func(f file) bool { return isTable(f.format) }) {
		s.Format = cmp.Or(s.Format, formatJSONL)
	}
	return nil
}

// refuseFolder refuses folders that [Tokenize] and [WriteRows] write as files.
func (s *source) refuseFolder() error {
	for _, dir := range s.Paths {
		if f, err := readTokens(dir); f != nil && err == nil {
			return fault.Configf("data: source %s: %s holds tokens: want it to be the only path of a source", s.Name, dir)
		}
		if m, err := readRows(dir); m != nil && err == nil && (s.Rows || s.Field == "text") {
			return fault.Configf("data: source %s: %s holds rows: want it to be the only path, with rows: true", s.Name, dir)
		}
	}
	return nil
}

// deal is the blocks of a lane in an epoch:
//
//	blocks perm[l], perm[l+L], perm[l+2L], …, perm = permutation of (seed, source, epoch)
//
// A source is its place in the list, so that a corpus may move or be renamed.
func (s *source) deal(seed uint64, epoch int64, lane int) []int {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := &s.perms[epoch%2]
	if p.of == nil || p.epoch != epoch {
		purpose := "data blocks " + s.key + " " + itoa(epoch)
		*p = perm{epoch, rng.New(seed, purpose).Perm(s.blocks)}
	}
	var mine []int
	for i := lane; i < len(p.of); i += s.lanes {
		mine = append(mine, p.of[i])
	}
	return mine
}

// documents is what starts in block b, in the order of an epoch.
func (s *source) documents(seed uint64, epoch int64, b int, shuffled bool) ([]ref, error) {
	lo := int64(b) * s.block
	refs, err := s.starting(lo, min(lo+s.block, s.size))
	if err != nil || !shuffled || len(refs) < 2 {
		return refs, err
	}
	purpose := "data documents " + s.key + " " + itoa(epoch) + " " + itoa(int64(b))
	p := rng.New(seed, purpose).Perm(len(refs))
	order := make([]ref, len(refs))
	for i, j := range p {
		order[i] = refs[j]
	}
	return order, nil
}

// check finds out whether a source has a document at all, and one that can be
// read without an encoder if there is none.
func (s *source) check(encoder bool) error {
	if s.packed != nil {
		return nil
	}
	skips := map[string]int64{}
	examples := map[string]string{}
	found := false
	text := false
	err := s.each(0, s.size, func(d Document, why reason) bool {
		text = d.Text != nil
		if found = why == none; !found {
			skips[why.String()]++
			if examples[why.String()] == "" {
				examples[why.String()] = d.ID
			}
		}
		return !found
	})
	if found && text && !encoder {
		return fault.Configf("data: source %s holds text: want a tokenizer", s.Name)
	}
	if found {
		return nil
	}
	for r, n := range skips {
		s.skipped[r] += n
		if s.examples[r] == "" {
			s.examples[r] = examples[r]
		}
	}
	if err == nil {
		err = s.emptyError()
	}
	return err
}

// bare is the same source with documents that are named FILE@BYTE: to look at some
// of them, the lines in front need not be counted. The caller closes it.
func (s *source) bare() *source {
	b := &source{
		Source: s.Source, key: s.key, files: slices.Clone(s.files), size: s.size, lanes: s.lanes, vocabulary: s.vocabulary,
		block: s.block, blocks: s.blocks, parts: s.parts, packed: s.packed, skipped: map[string]int64{}, examples: map[string]string{},
	}
	for i := range b.files {
		b.files[i].bare = true
	}
	return b
}

// close closes what is open.
func (s *source) close() { s.tables.close() }

// example keeps the first name of what was left out for a reason.
func (s *source) example(name string, why reason) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.examples[why.String()]; !ok {
		s.examples[why.String()] = name
	}
}

// skip counts what was left out.
func (s *source) skip(name, why string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.skipped[why]++
	if _, ok := s.examples[why]; !ok {
		s.examples[why] = name
	}
}

// nameOf is the name of a source that was given none: the last element of its
// path that is no pattern, without its extension.
func nameOf(path string) string {
	for strings.ContainsAny(filepath.Base(path), "*?[") {
		path = filepath.Dir(path)
	}
	base := filepath.Base(path)
	if name := strings.TrimSuffix(base, filepath.Ext(base)); name != "" {
		return name
	}
	return base
}

// unique gives sources of one default name different ones, so that events and
// stages can tell them apart, and refuses equal names that were given.
func unique(sources []Source) ([]Source, error) {
	sources = slices.Clone(sources)
	seen := map[string]bool{}
	for _, s := range sources {
		if s.Name != "" && seen[s.Name] {
			return nil, fault.Configf("data: two sources have the name %q", s.Name)
		}
		seen[s.Name] = true
	}
	for i := range sources {
		s := &sources[i]
		if s.Name != "" || len(s.Paths) == 0 {
			continue
		}
		base := nameOf(s.Paths[0])
		s.Name = base
		for n := int64(2); seen[s.Name]; n++ {
			s.Name = base + "-" + itoa(n)
		}
		seen[s.Name] = true
	}
	return sources, nil
}
