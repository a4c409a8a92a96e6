// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package program_test

import (
	"fmt"

	"pleach/half"
	"pleach/program"
)

// One product and its gradient.
func Example() {
	b := program.New("example", program.Layout{Compute: half.F32, Sum: half.F32})
	x := b.Input("x", half.F32, 4, 8)
	w := b.Param("w", half.F32, program.Same, 3, 8)
	y := b.Linear(x, w) // [4,3]
	b.Seed(y, b.Input("dy", half.F32, 4, 3))
	b.Backward()
	p, err := b.Build(y)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, op := range p.Ops {
		fmt.Println(op.Phase, op.Kind, op.Out[0])
	}
	// Output:
	// F linear y.0 f32[4 3]
	// B linear.dw dw f32[3 8]
	// B linear.dx dx.0 f32[4 8]
}
