// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package data

import (
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"pleach/internal/fault"
)

// A State is where a run is in its data: a few numbers for each lane. It counts
// the rows that Next has returned, not those made ahead. It is stored as JSON.
type State struct {
	Rows        int64       `json:"rows"` // of the run, over all ranks, if each served as many
	Lanes       []LaneState `json:"lanes"`
	Fingerprint Fingerprint `json:"fingerprint"`
}

// A LaneState is where one lane is: before a document, and how many ids of it
// have been served.
type LaneState struct {
	Lane    int      `json:"lane"`
	Rows    int64    `json:"rows"`
	Offset  int      `json:"offset"`           // of a window of whole documents: rows served
	Stage   int      `json:"stage,omitempty"`  // in which the document was chosen
	Padded  int64    `json:"padded,omitempty"` // ids that stand for none
	Sources []Cursor `json:"sources"`
}

// A Fingerprint is everything that the order and content of rows depend on.
type Fingerprint struct {
	Order     int           `json:"order"` // of which making the order is: see orderVersion
	Sequence  int           `json:"sequence"`
	Lanes     int           `json:"lanes"`
	Seed      uint64        `json:"seed"`
	Shuffle   string        `json:"shuffle"`
	Documents string        `json:"documents"`
	Pack      string        `json:"pack,omitempty"` // "": split
	Special   string        `json:"special"`        // ids that are added to documents
	Tokenizer string        `json:"tokenizer"`
	Stages    []Stage       `json:"stages,omitempty"`
	Sources   []SourcePrint `json:"sources"`
}

// orderVersion changes with anything that makes another order of the same spec,
// so that a run begun before is refused rather than continued wrongly.
const orderVersion = 1

// A SourcePrint is the part of one source in a [Fingerprint].
type SourcePrint struct {
	Name   string  `json:"name"`   // for people: another one is no difference
	Weight float64 `json:"weight"` // share of 1
	Field  string  `json:"field"`
	Mask   string  `json:"mask"`
	Rows   bool    `json:"rows"`
	Format string  `json:"format"`
	Epochs float64 `json:"epochs"`
	Files  int     `json:"files"`
	Bytes  int64   `json:"bytes"`
	Hash   string  `json:"hash"` // SHA-256 of names below the path, sizes and samples
}

// Fingerprint is that of the loader's spec and files.
func (l *Loader) Fingerprint() Fingerprint {
	p := &l.spec
	f := Fingerprint{
		Order: orderVersion, Sequence: p.Sequence, Lanes: p.Lanes, Seed: p.Seed, Shuffle: "window",
		Documents: "masked", Special: fmt.Sprintf("end %d", p.EOS), Tokenizer: p.Tokenizer,
	}
	if p.Shuffle != "" {
		f.Shuffle = p.Shuffle
	}
	if p.Joined {
		f.Documents = "joined"
	}
	if p.AddBOS {
		f.Special = fmt.Sprintf("begin %d, end %d", p.BOS, p.EOS)
	}
	if p.Whole {
		f.Pack = "whole"
	}
	for _, st := range l.stages[1:] {
		f.Stages = append(f.Stages, Stage{st.row, st.shares})
	}
	for i, s := range l.sources {
		f.Sources = append(f.Sources, SourcePrint{
			s.Name, l.stages[0].shares[i], s.Field, s.Mask, s.Rows, s.Format, s.Epochs,
			len(s.files), s.size, hex.EncodeToString(s.digest),
		})
	}
	return f
}

// Differ lists in words what differs between a recorded fingerprint and the one
// of today.
func (f Fingerprint) Differ(now Fingerprint) []string {
	var list []string
	add := func(what string, was, is any) {
		if was != is {
			list = append(list, fmt.Sprintf("%s was %v, is %v", what, was, is))
		}
	}
	add("version of the order", f.Order, now.Order)
	add("sequence", f.Sequence, now.Sequence)
	add("lanes", f.Lanes, now.Lanes)
	add("seed", f.Seed, now.Seed)
	add("shuffle", f.Shuffle, now.Shuffle)
	add("documents", f.Documents, now.Documents)
	add("pack", f.Pack, now.Pack)
	add("special ids", f.Special, now.Special)
	add("tokenizer", f.Tokenizer, now.Tokenizer)
	add("stages", fmt.Sprint(f.Stages), fmt.Sprint(now.Stages))
	add("number of sources", len(f.Sources), len(now.Sources))
	for i := range min(len(f.Sources), len(now.Sources)) {
		a, b := f.Sources[i], now.Sources[i]
		in := "source " + b.Name + ": "
		add(in+"weight", a.Weight, b.Weight)
		add(in+"field", a.Field, b.Field)
		add(in+"mask", a.Mask, b.Mask)
		add(in+"rows", a.Rows, b.Rows)
		add(in+"format", a.Format, b.Format)
		add(in+"epochs", a.Epochs, b.Epochs)
		add(in+"number of files", a.Files, b.Files)
		add(in+"bytes", a.Bytes, b.Bytes)
		if a.Files == b.Files && a.Bytes == b.Bytes && a.Hash != b.Hash {
			list = append(list, in+"names or content of files")
		}
	}
	return list
}

// withoutFiles is the fingerprint of a spec, whatever its files hold.
func (f Fingerprint) withoutFiles() Fingerprint {
	f.Sources = slices.Clone(f.Sources)
	for i := range f.Sources {
		s := &f.Sources[i]
		s.Files, s.Bytes, s.Hash = 0, 0, ""
	}
	return f
}

// State is where the loader is: after the rows that Next has returned. A rank
// knows its own lanes; [Merge] puts ranks together.
func (l *Loader) State() State {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := State{Rows: l.served * int64(l.spec.Ranks), Fingerprint: l.Fingerprint()}
	for i, at := range l.lanes {
		s.Lanes = append(s.Lanes, LaneState{
			Lane: l.spec.Rank + i*l.spec.Ranks, Rows: at.rows, Offset: at.offset,
			Stage: at.stage, Padded: at.padded, Sources: slices.Clone(at.before),
		})
	}
	return s
}

// Merge is the state of all lanes from the states of ranks that have served as
// many rows each.
func Merge(states ...State) (State, error) {
	if len(states) == 0 {
		return State{}, fault.Statef("data: no states to merge")
	}
	all := State{Rows: states[0].Rows, Fingerprint: states[0].Fingerprint}
	for _, s := range states {
		if s.Rows != all.Rows {
			return State{}, fault.Statef("data: merging states: one is after row %d, one after row %d",
				all.Rows, s.Rows)
		}
		if d := all.Fingerprint.Differ(s.Fingerprint); len(d) > 0 {
			return State{}, fault.Statef("data: merging states: %s", strings.Join(d, "; "))
		}
		all.Lanes = append(all.Lanes, s.Lanes...)
	}
	slices.SortStableFunc(all.Lanes, func(a, b LaneState) int { return a.Lane - b.Lane })
	for i := range all.Lanes {
		if all.Lanes[i].Lane != i {
			return State{}, fault.Statef("data: merging states: lane %d is missing or twice", i)
		}
	}
	return all, nil
}

// Restore puts the loader where a state was taken: the next rows are those that
// would have come then, whatever the number of ranks. A state of other data, or
// one that lacks a lane of this rank, is refused with fault.State, and the
// loader stays where it is.
func (l *Loader) Restore(s State) error {
	was, is := s.Fingerprint, l.Fingerprint()
	if l.accept {
		was, is = was.withoutFiles(), is.withoutFiles()
	}
	if d := was.Differ(is); len(d) > 0 {
		return fault.Statef("data: the state is of other data: %s", strings.Join(d, "; "))
	}
	if R := int64(l.spec.Ranks); s.Rows < 0 || s.Rows%R != 0 {
		return fault.Statef("data: the state is after row %d, which %d ranks do not divide",
			s.Rows, R)
	}
	lanes := l.fresh()
	found := make([]bool, len(lanes))
	for _, at := range s.Lanes {
		i := (at.Lane - l.spec.Rank) / l.spec.Ranks
		if at.Lane < 0 || at.Lane >= l.spec.Lanes || at.Lane%l.spec.Ranks != l.spec.Rank {
			continue
		}
		if err := l.sound(s.Rows, at); err != nil {
			return err
		}
		if found[i] {
			return fault.Statef("data: the state has lane %d twice", at.Lane)
		}
		found[i] = true
		lanes[i] = laneState{at.Rows, at.Offset, at.Stage, at.Padded, slices.Clone(at.Sources)}
	}
	if i := slices.Index(found, false); i >= 0 {
		return fault.Statef("data: the state lacks lane %d: it is that of another rank",
			l.spec.Rank+i*l.spec.Ranks)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.closed(); err != nil {
		return err
	}
	l.stop()
	l.served, l.lanes, l.err = s.Rows/int64(l.spec.Ranks), lanes, nil
	return nil
}

// sound refuses numbers that no loader writes.
func (l *Loader) sound(rows int64, at LaneState) error {
	L := int64(l.spec.Lanes)
	if want := (rows - int64(at.Lane) + L - 1) / L; at.Rows != want {
		return fault.Statef("data: lane %d: the state has %d rows, want %d of %d",
			at.Lane, at.Rows, want, rows)
	}
	if len(at.Sources) != len(l.sources) {
		return fault.Statef("data: lane %d: the state has %d sources, want %d",
			at.Lane, len(at.Sources), len(l.sources))
	}
	if at.Stage < 0 || at.Stage >= len(l.stages) {
		return fault.Statef("data: lane %d: the state is in stage %d, want 0 … %d",
			at.Lane, at.Stage, len(l.stages)-1)
	}
	numbers := []int64{int64(at.Offset), at.Padded}
	for _, c := range at.Sources {
		numbers = append(numbers, c.Epoch, int64(c.Block), int64(c.Document), c.Tokens, c.Documents,
			c.Since, c.Tokens-c.Since)
	}
	for _, n := range numbers {
		// 2⁵³: what JSON carries exactly, and far from where sums overflow.
		if n < 0 || n > 1<<53 {
			return fault.Statef("data: lane %d: the state has a cursor at %d, want 0 … 2⁵³", at.Lane, n)
		}
	}
	return nil
}
