// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package weights

import (
	"fmt"
	"math"

	"pleach/half"
)

// Tensor says what a stored tensor is and where it lies.
type Tensor struct {
	Name   string
	DType  half.DType
	Shape  []int  // empty for a scalar
	File   string // name of the file in its directory
	Offset int64  // of the first byte in the file
	Size   int64  // bytes of all elements; in files of torch.save they may lie apart, so use Set.Raw
}

// Len is the number of elements.
func (t Tensor) Len() int { return int(t.Size) / t.DType.Size() }

// elements is the product of a shape, for elements of the given size: an error
// says why there is no such tensor. The bytes fit in an int64.
func elements(shape []int64, size int) (int64, error) {
	n := int64(1)
	for _, d := range shape {
		if d < 0 {
			return 0, fmt.Errorf("shape %d: want sizes of at least 0", shape)
		}
		if d > math.MaxInt {
			return 0, fmt.Errorf("shape %d: too large", shape)
		}
	}
	for _, d := range shape {
		if d == 0 {
			return 0, nil
		}
	}
	for _, d := range shape {
		if d > math.MaxInt64/int64(size)/n {
			return 0, fmt.Errorf("shape %d: more than 2^63 bytes", shape)
		}
		n *= d
	}
	return n, nil
}
