// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"pleach/internal/fault"
	"pleach/weights"
)

// Model is a model to compare, and what messages call it.
type Model struct {
	Name    string
	Weights *weights.Set
}

// matched is a tensor that all models have.
type matched struct {
	Place
	name     string
	shape    []int
	elements int
	names    []string // in each model, which differ where one ties its head
}

// The names of the embedding and of the head that a model may have besides.
const (
	embedding = "model.embed_tokens.weight"
	head      = "lm_head.weight"
)

// match finds the tensors that all models have, in the order of the first one's
// files, and says in notes what is not compared whole. Tensors that some model
// lacks, or that have other shapes, are refused, all at once.
func match(models []Model) (all []matched, notes []string, err error) {
	var m matcher
	m.models = models
	for _, model := range models {
		for _, t := range model.Weights.Tensors() {
			m.add(t)
		}
	}
	if len(m.bad) > 0 {
		const most = 8
		if more := len(m.bad) - most; more > 0 {
			m.bad = append(m.bad[:most], fault.Configf("compare: and %d more tensors that do not match", more))
		}
		return nil, nil, fault.As(fault.Config, errors.Join(m.bad...))
	}
	if len(m.all) == 0 {
		return nil, nil, fault.Configf("compare: the models have no tensors of floats in common")
	}
	return m.all, m.said(), nil
}

type matcher struct {
	models []Model
	seen   map[string]bool
	all    []matched
	bad    []error

	tied, cut, buffers, integers []string // for notes
}

// add looks at a tensor of one model in all of them.
func (m *matcher) add(t weights.Tensor) {
	if m.seen[t.Name] {
		return
	}
	if m.seen == nil {
		m.seen = map[string]bool{}
	}
	m.seen[t.Name] = true
	x := matched{Place: PlaceOf(t.Name), name: t.Name}
	var found []weights.Tensor
	for _, model := range m.models {
		name := t.Name
		w, ok := model.Weights.Lookup(name)
		if !ok && name == head {
			name = embedding
			if w, ok = model.Weights.Lookup(name); ok {
				m.tied = append(m.tied, model.Name)
			}
		}
		if !ok && strings.HasSuffix(t.Name, ".rotary_emb.inv_freq") {
			m.buffers = append(m.buffers, t.Name)
			return
		}
		if !ok {
			m.bad = append(m.bad, fault.Configf("compare: tensor %q: model %s has none, model %s has %v of it",
				t.Name, model.Name, m.owner(t.Name), t.Shape))
			return
		}
		x.names, found = append(x.names, name), append(found, w)
	}
	if slices.ContainsFunc(found, func(w weights.Tensor) bool { return !w.DType.IsFloat() }) {
		m.integers = append(m.integers, t.Name)
		return
	}
	m.fit(x, found)
}

// owner is the first model with a tensor.
func (m *matcher) owner(name string) string {
	for _, model := range m.models {
		if _, ok := model.Weights.Lookup(name); ok {
			return model.Name
		}
	}
	return ""
}

// fit takes a tensor whose shapes agree, or agree but for the number of tokens.
func (m *matcher) fit(x matched, found []weights.Tensor) {
	x.shape = slices.Clone(found[0].Shape)
	rows := false
	for i, w := range found {
		switch {
		case slices.Equal(w.Shape, found[0].Shape):
		case isVocabulary(x.name) && len(w.Shape) > 0 && len(x.shape) > 0 && slices.Equal(w.Shape[1:], x.shape[1:]):
			rows = true
			x.shape[0] = min(x.shape[0], w.Shape[0])
		default:
			m.bad = append(m.bad, fault.Configf("compare: tensor %q: shape %v in model %s, %v in model %s",
				x.name, found[0].Shape, m.models[0].Name, w.Shape, m.models[i].Name))
			return
		}
	}
	if rows {
		var each []string
		for i, w := range found {
			each = append(each, fmt.Sprintf("%s has %d", m.models[i].Name, w.Shape[0]))
		}
		m.cut = append(m.cut, fmt.Sprintf("%s: the first %d rows, which all have: %s",
			x.name, x.shape[0], strings.Join(each, ", ")))
	}
	x.elements = 1
	for _, d := range x.shape {
		x.elements *= d
	}
	m.all = append(m.all, x)
}

// said is what the reader of the figures must know.
func (m *matcher) said() []string {
	notes := m.cut
	if len(m.tied) > 0 {
		notes = append(notes, fmt.Sprintf("%s: %s has none and uses its embedding in its place",
			head, strings.Join(m.tied, ", ")))
	}
	for _, left := range []struct {
		names []string
		why   string
	}{{m.buffers, "tables of rotary positions that not all models have"}, {m.integers, "no floats"}} {
		if n := len(left.names); n > 0 {
			notes = append(notes, fmt.Sprintf("left out, %s: %s%s", left.why, left.names[0], andMore(n-1)))
		}
	}
	return notes
}

func andMore(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(" and %d more", n)
}
