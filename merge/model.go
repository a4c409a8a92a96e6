// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"pleach/half"
	"pleach/internal/fault"
	"pleach/internal/strictjson"
	"pleach/weights"
)

// Model is an input: a Hugging Face model directory, with or without an adapter.
type Model struct {
	Name       string // as the configuration has it
	Dir        string
	Ref        Reference
	AdapterDir string // empty for none
	Weights    *weights.Set
	Adapter    *Adapter         // nil for none
	Text       []byte           // config.json
	Config     strictjson.Value // the same
}

// OpenModel opens a model and reads its headers. adapter is the folder of a LoRA
// adapter, or empty.
func OpenModel(name, dir, adapter string) (*Model, error) {
	m := &Model{Name: name, Dir: dir}
	file := filepath.Join(dir, "config.json")
	var err error
	if m.Text, err = os.ReadFile(file); err != nil {
		return nil, fault.Dataf("merge: model %s: %w", name, err)
	}
	if m.Config, err = strictjson.ParseFile(file, string(m.Text)); err != nil {
		return nil, fault.Dataf("merge: model %s: %w", name, err)
	}
	if m.Config.Kind != strictjson.Object {
		return nil, fault.Dataf("merge: model %s: %s: got %v, want an object", name, file, m.Config)
	}
	if m.Weights, err = weights.OpenDir(dir); err != nil {
		return nil, fault.As(fault.Data, fmt.Errorf("merge: model %s: %w", name, err))
	}
	if adapter == "" {
		return m, nil
	}
	if m.Adapter, err = OpenAdapter(adapter, m.Weights); err != nil {
		m.Close()
		msg := strings.TrimPrefix(err.Error(), "merge: ")
		return nil, &placed{fmt.Sprintf("merge: model %s: %s", name, msg), err}
	}
	return m, nil
}

// Close closes the files.
func (m *Model) Close() {
	_ = m.Weights.Close()
	if m.Adapter != nil {
		m.Adapter.Close()
	}
}

// Tensor finds a tensor, with its shape and type after the adapter.
func (m *Model) Tensor(name string) (shape []int, t half.DType, ok bool) {
	if m.Adapter != nil {
		if r, ok := m.Adapter.Replaced(name); ok {
			return r.Shape, r.DType, true
		}
	}
	w, ok := m.Weights.Lookup(name)
	return w.Shape, w.DType, ok
}

// Tensors are all tensors, with their shapes and types after the adapter.
func (m *Model) Tensors() []weights.Tensor {
	if m.Adapter == nil {
		return m.Weights.Tensors()
	}
	var list []weights.Tensor
	for _, t := range m.Weights.Tensors() {
		t.Shape, t.DType, _ = m.Tensor(t.Name)
		list = append(list, t)
	}
	return append(list, m.Adapter.Added()...)
}

// Read sets dst to elements lo to hi of a tensor of floats, widened, with the
// adapter applied.
func (m *Model) Read(name string, lo, hi int, dst []float32) error {
	if m.Adapter == nil || !m.Adapter.Touches(name) {
		return m.Weights.Read(name, lo, hi, dst)
	}
	return m.Adapter.Read(name, lo, hi, dst)
}
