// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package data

import (
	"cmp"
	"maps"
	"slices"

	"pleach/data/frame"
)

// SourceStats is what a rank has read of a source, and what it has left out.
type SourceStats struct {
	Name      string
	Files     int
	Bytes     int64
	Documents int64   // served whole
	Tokens    int64   // of these, with special ids
	Epoch     float64 // the mean over the lanes
	// Skipped counts files left out, and documents met in epoch 0, by reason.
	Skipped  map[string]int64
	Examples map[string]string // the first of each reason
	// Retries are the requests that were repeated, by reason, over all sources that
	// are read by the same Access.Remote; nil for files of this machine.
	Retries map[string]int64
}

// Stats is one entry for each source, in the order of the spec, over the lanes
// of this rank and up to the rows served.
func (l *Loader) Stats() []SourceStats {
	l.mu.Lock()
	defer l.mu.Unlock()
	var all []SourceStats
	for i, s := range l.sources {
		s.mu.Lock()
		st := SourceStats{
			Name: s.Name, Files: len(s.files), Bytes: s.size,
			Skipped: maps.Clone(s.skipped), Examples: maps.Clone(s.examples),
		}
		s.mu.Unlock()
		if s.Access.Remote != nil && slices.ContainsFunc(s.files, func(f file) bool { return f.tag != "" }) {
			st.Retries = s.Access.Remote.Stats().Retries
		}
		quota := max(1, (s.blocks+s.lanes-1)/s.lanes)
		for _, at := range l.lanes {
			c := at.before[i]
			st.Documents += c.Documents
			st.Tokens += c.Tokens
			part := min(1, float64(c.Block)/float64(quota))
			st.Epoch += (float64(c.Epoch) + part) / float64(len(l.lanes))
			for r, n := range c.Skipped {
				if n > 0 {
					st.Skipped[reason(r).String()] += n
				}
			}
		}
		all = append(all, st)
	}
	return all
}

// Padded is the ids that stand for no document in the rows served by this rank:
// 0 unless documents stay whole.
func (l *Loader) Padded() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	var n int64
	for _, at := range l.lanes {
		n += at.padded
	}
	return n
}

// expansion is what compressed text is taken to grow by.
const expansion = 4

// Held is the most bytes of text that the lanes of this rank have in hand at a
// time where a file is a document: each lane has one, and where there are fewer
// than lanes, they have copies. Lines are taken to be short. Of a source of tables
// each lane holds a block, and of whole documents a window of rows.
func (l *Loader) Held() int64 {
	var sizes []int64
	var held int64
	for _, s := range l.sources {
		for _, f := range s.files {
			switch size := f.size; {
			case f.format == formatText && f.packed != frame.None:
				sizes = append(sizes, expansion*size)
			case f.format == formatText:
				sizes = append(sizes, size)
			}
		}
		if slices.ContainsFunc(s.files, func(f file) bool { return isTable(f.format) }) {
			held += int64(len(l.lanes)) * expansion * s.block
		}
	}
	if l.spec.Whole {
		held += int64(len(l.lanes)) * packWindow * int64(l.spec.Sequence) * 4
	}
	if len(sizes) == 0 {
		return held
	}
	slices.SortFunc(sizes, func(a, b int64) int { return cmp.Compare(b, a) })
	for i := range l.lanes {
		held += sizes[i%len(sizes)]
	}
	return held
}
