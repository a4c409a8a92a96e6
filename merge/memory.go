// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"fmt"
	"path/filepath"

	"pleach/half"
	"pleach/internal/fault"
	"pleach/weights"
)

// Memory is a Sink that keeps the output, for whoever wants to use a model without
// writing it.
type Memory struct {
	tensors []weights.Tensor
	bytes   [][]byte
	byName  map[string]int
}

// NewMemory makes room for the output of a plan.
func NewMemory(p *Plan) *Memory {
	m := &Memory{byName: map[string]int{}}
	for i, t := range p.Tensors {
		size := t.Len() * t.DType.Size()
		m.tensors = append(m.tensors, weights.Tensor{Name: t.Name, DType: t.DType, Shape: t.Shape, Size: int64(size)})
		m.bytes = append(m.bytes, make([]byte, size))
		m.byName[t.Name] = i
	}
	return m
}

// Has says that nothing is there yet.
func (m *Memory) Has(int) bool { return false }

// WriteAt keeps a part of a tensor.
func (m *Memory) WriteAt(i int, b []byte, at int64) error {
	copy(m.bytes[i][at:], b)
	return nil
}

// Done does nothing.
func (m *Memory) Done(int) error { return nil }

// Tensors are the tensors of the output, as of a [weights.Set].
func (m *Memory) Tensors() []weights.Tensor { return m.tensors }

// ReadFinite sets dst to elements lo to hi of a tensor of floats, which are finite.
func (m *Memory) ReadFinite(name string, lo, hi int, dst []float32) error {
	i, ok := m.byName[name]
	if !ok {
		return fault.Dataf("merge: the output has no tensor %q", name)
	}
	t := m.tensors[i]
	size := t.DType.Size()
	if err := half.ToF32(dst, t.DType, m.bytes[i][lo*size:hi*size]); err != nil {
		return err
	}
	if k := weights.NonFinite(dst); k >= 0 {
		return fault.Dataf("merge: tensor %s: element %d of shape %d is %v", name, lo+k, t.Shape, dst[k])
	}
	return nil
}

// Close gives nothing back but lets it be used like a [weights.Set].
func (m *Memory) Close() error { return nil }

// Opened is a model as the engine reads it, with its adapter.
type Opened struct{ *Model }

// ConfigText is the config.json of the model. Where the adapter makes an lm_head of
// its own, it is no longer the embedding.
func (s Opened) ConfigText() ([]byte, error) {
	if s.Adapter == nil || len(s.Adapter.Added()) == 0 {
		return s.Text, nil
	}
	file := filepath.Join(s.Dir, "config.json")
	return patchConfig(file, s.Text, []Change{{Key: "tie_word_embeddings", Value: "false"}})
}

// ReadFinite sets dst to elements lo to hi of a tensor of floats, which are finite.
func (s Opened) ReadFinite(name string, lo, hi int, dst []float32) error {
	if err := s.Read(name, lo, hi, dst); err != nil {
		return err
	}
	if k := weights.NonFinite(dst); k >= 0 {
		return fmt.Errorf("merge: model %s: %w", s.Name, fault.Dataf("tensor %s: element %d is %v", name, lo+k, dst[k]))
	}
	return nil
}

// Close closes nothing: the model belongs to its plan.
func (s Opened) Close() error { return nil }
