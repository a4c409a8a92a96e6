// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"pleach/internal/fault"
	"pleach/weights"
)

// Adapter is a LoRA adapter in the format of PEFT, applied to a model when its
// tensors are read.
type Adapter struct{ base *weights.Set }

// OpenAdapter opens the folder of an adapter for a model with these weights.
func OpenAdapter(dir string, base *weights.Set) (*Adapter, error) {
	return nil, fault.Configf("merge: adapter %s: not yet", dir)
}

// Close closes the files.
func (a *Adapter) Close() {}

// Touches says whether a tensor is another one with the adapter.
func (a *Adapter) Touches(name string) bool { return false }

// Replaced is the tensor that stands in the place of one of the model
// (modules_to_save).
func (a *Adapter) Replaced(name string) (weights.Tensor, bool) { return weights.Tensor{}, false }

// Read sets dst to elements lo to hi of a tensor of the model with the adapter
// applied.
//
//	W' = W + s·(B·A), rounded to the type of W as stored
func (a *Adapter) Read(name string, lo, hi int, dst []float32) error {
	return a.base.Read(name, lo, hi, dst)
}

// Files are the paths of the adapter's files.
func (a *Adapter) Files() []string { return nil }
