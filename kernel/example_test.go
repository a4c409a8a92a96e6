// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package kernel_test

import (
	"fmt"

	"pleach/kernel"
)

// A linear layer with weights [out,in] on two tokens.
func ExampleLevel_GemmNT() {
	const N, I, O = 2, 3, 2
	x := []float32{1, 2, 3, 4, 5, 6} // [N,I]
	w := []float32{1, 0, 0, 1, 1, 1} // [O,I]
	y := make([]float32, N*O)
	kernel.Portable.GemmNT(y, x, w, N, O, I, O, I, I, false, make([]float32, kernel.Portable.GemmScratch()))
	fmt.Println(y)
	// Output: [1 6 4 15]
}
