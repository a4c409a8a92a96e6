// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package vocab

import (
	"slices"
	"sync"

	"pleach/internal/fault"
)

// ReadRows sets dst to rows lo to hi of a model's embedding as it is stored. dst is
// [hi−lo, width].
type ReadRows func(model, lo, hi int, dst []float32) error

// Matrix is the embedding of one model over the output's vocabulary.
type Matrix struct {
	v      *Vocabulary
	width  int
	stored ReadRows
	from   []int32   // of an id: the model whose row it has, or one of the kinds below
	row    []int32   // of an id: the row in that model
	mean   []int     // models over which a mean runs, in listed order
	rest   []float32 // the row of padding
	once   sync.Once // makes rest
	err    error     // of making it
}

// What is in the place of a model in Matrix.from.
const (
	fromNone = -1 - iota // zeros
	fromMean             // the mean of all models that have the token
	fromRest             // the mean of all rows of tokens
)

// Matrix is the embedding of a model, whose rows of a width come from stored, the
// same tensor of all models. rows is how many each model stores, 0 for one that does
// not have the tensor and takes no part, as those behind the end of rows: models that
// gave a tokenizer only. It may read all of them once.
//
// The row of a token is
//
//  1. the model's own, unless the configuration says force;
//  2. else the one that the configuration names;
//  3. else that of the only model that has the token; zeros if none has it; that of
//     the base if it has it; else the mean of all that have it, summed in float32 in
//     listed order;
//  4. for padding, the mean of all rows of tokens of this matrix, summed in float64
//     and rounded once.
func (v *Vocabulary) Matrix(model, width int, rows []int, stored ReadRows) (*Matrix, error) {
	n := len(v.texts)
	m := &Matrix{
		v: v, width: width, stored: stored,
		from: make([]int32, n), row: make([]int32, n),
	}
	if err := v.fits(model, width, rows); err != nil {
		return nil, err
	}
	rows = append(slices.Clone(rows), make([]int, len(v.models)-len(rows))...)
	for i := range v.models {
		if rows[i] > 0 {
			m.mean = append(m.mean, i)
		}
	}
	for id := range n {
		if err := m.choose(id, model, rows); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// Memory is an upper bound of the bytes that a matrix of a width holds.
func (v *Vocabulary) Memory(width int) int64 {
	return 8*int64(len(v.texts)) + 4*int64(max(blockElements, width)) + 12*int64(width)
}

// fits checks the arguments of Matrix against the vocabulary.
func (v *Vocabulary) fits(model, width int, rows []int) error {
	if len(rows) > len(v.models) || model < 0 || model >= len(rows) || width <= 0 {
		return fault.Dataf("vocab: matrix of model %d, %d wide, with rows of %d models: want one of %d models",
			model, width, len(rows), len(v.models))
	}
	for i := range rows {
		if rows[i] == 0 {
			continue
		}
		for id, row := range v.own[i] {
			if int(row) >= rows[i] {
				return fault.Dataf("vocab: %s: token %q has id %d: got %d rows stored, want vocab_size, %d",
					v.models[i].Name, v.texts[id], row, rows[i], v.models[i].Rows)
			}
		}
	}
	if rows[model] == 0 {
		return fault.Dataf("vocab: %s: got no rows, want the tensor", v.models[model].Name)
	}
	return nil
}

// choose sets where the row of an id comes from.
func (m *Matrix) choose(id, model int, rows []int) error {
	v := m.v
	if !v.is[id] {
		m.from[id] = fromRest
		return nil
	}
	said := v.said[id]
	if own := v.own[model][id]; own >= 0 && (said == nil || !said.force) {
		m.from[id], m.row[id] = int32(model), own
		return nil
	}
	switch {
	case said != nil && said.zero:
		m.from[id] = fromNone
		return nil
	case said != nil && said.model >= 0:
		if s := v.models[said.model]; said.row >= rows[said.model] {
			return fault.Configf("vocab: token %q from row %d of %s: got %d rows there",
				v.texts[id], said.row, s.Name, rows[said.model])
		}
		m.from[id], m.row[id] = int32(said.model), int32(said.row)
		return nil
	}
	have, last := 0, 0
	for _, i := range m.mean {
		if v.own[i][id] >= 0 {
			have, last = have+1, i
		}
	}
	switch b := v.base; {
	case have == 0:
		m.from[id] = fromNone
	case have == 1:
		m.from[id], m.row[id] = int32(last), v.own[last][id]
	case b >= 0 && rows[b] > 0 && v.own[b][id] >= 0:
		m.from[id], m.row[id] = int32(b), v.own[b][id]
	default:
		m.from[id] = fromMean
	}
	return nil
}

// Read sets dst to elements lo to hi, row-major. It may be called from several
// goroutines at once.
func (m *Matrix) Read(lo, hi int, dst []float32) error {
	if lo < 0 || hi < lo || hi > m.v.Rows*m.width || len(dst) != hi-lo {
		return fault.Dataf("vocab: elements %d to %d of a matrix of %d·%d: got a place for %d",
			lo, hi, m.v.Rows, m.width, len(dst))
	}
	var part []float32 // a row of which only some elements are asked for
	for lo < hi {
		r, c := lo/m.width, lo%m.width
		if c > 0 || hi-lo < m.width {
			if part == nil {
				part = make([]float32, m.width)
			}
			if err := m.rows(r, r+1, part); err != nil {
				return err
			}
			n := copy(dst, part[c:min(m.width, c+hi-lo)])
			lo, dst = lo+n, dst[n:]
			continue
		}
		n := (hi - lo) / m.width
		if err := m.rows(r, r+n, dst[:n*m.width]); err != nil {
			return err
		}
		lo, dst = lo+n*m.width, dst[n*m.width:]
	}
	return nil
}

// rows sets dst to rows lo to hi, neighbours in a model at once.
func (m *Matrix) rows(lo, hi int, dst []float32) error {
	W := m.width
	for lo < hi {
		n := m.run(lo, hi)
		part := dst[:n*W]
		var err error
		switch from := m.at(lo); from {
		case fromNone:
			clear(part)
		case fromMean:
			err = m.average(lo, part)
		case fromRest:
			if err = m.padding(); err == nil {
				for i := range n {
					copy(part[i*W:], m.rest)
				}
			}
		default:
			err = m.stored(from, int(m.row[lo]), int(m.row[lo])+n, part)
		}
		if err != nil {
			return err
		}
		lo, dst = lo+n, dst[n*W:]
	}
	return nil
}

// at is where the row of an id comes from, padding included.
func (m *Matrix) at(id int) int {
	if id >= len(m.from) {
		return fromRest
	}
	return int(m.from[id])
}

// run is how many ids from lo on have rows that are neighbours, or of one kind.
func (m *Matrix) run(lo, hi int) int {
	from, n := m.at(lo), 1
	if from == fromMean {
		return 1
	}
	for lo+n < hi && m.at(lo+n) == from && (from < 0 || int(m.row[lo+n]) == int(m.row[lo])+n) {
		n++
	}
	return n
}

// average sets dst to the mean of the rows that models have for an id.
//
//	dst = (Σ_i row_i) / count
//
// in float32, in listed order.
func (m *Matrix) average(id int, dst []float32) error {
	row := make([]float32, m.width)
	count := 0
	clear(dst)
	for _, i := range m.mean {
		own := int(m.v.own[i][id])
		if own < 0 {
			continue
		}
		if err := m.stored(i, own, own+1, row); err != nil {
			return err
		}
		for k, x := range row {
			dst[k] += x
		}
		count++
	}
	for k := range dst {
		dst[k] /= float32(count)
	}
	return nil
}

// blockElements is how many elements the mean of all rows is read in.
const blockElements = 1 << 18

// padding makes the row of padding, once: rule 4 of Matrix. Rows are summed in
// order.
func (m *Matrix) padding() error {
	m.once.Do(func() {
		W, n := m.width, len(m.from)
		sum := make([]float64, W)
		block := max(1, blockElements/W)
		buf := make([]float32, min(block, n)*W)
		count := 0
		for lo := 0; lo < n; {
			if !m.v.is[lo] {
				lo++
				continue
			}
			hi := lo
			for hi < n && hi-lo < block && m.v.is[hi] {
				hi++
			}
			rows := buf[:(hi-lo)*W]
			if m.err = m.rows(lo, hi, rows); m.err != nil {
				return
			}
			for ; len(rows) > 0; rows = rows[W:] {
				for k, x := range rows[:W] {
					sum[k] += float64(x)
				}
			}
			count += hi - lo
			lo = hi
		}
		m.rest = make([]float32, W)
		for k, s := range sum {
			m.rest[k] = float32(s / float64(count))
		}
	})
	return m.err
}
