// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

// Package program is a training step written down: a flat list of typed ops
// that engines run, the planner costs, tests check and people read. A line
// belongs here if it is true for every engine; nothing here runs anything.
//
// The types to know: [Value], [Op] and [Program]; a [Builder] writes them, and
// [MakePlan] lays their temporaries out in memory. [Layout] says how a run is
// spread over ranks, [Param] how a parameter is.
//
// Building a program of one op and its gradient:
//
//	b := program.New("example", program.Layout{})
//	x := b.Input("x", half.F32, 4, 8)
//	w := b.Param("w", half.F32, program.Same, 3, 8)
//	y := b.Linear(x, w) // [4,3]
//	b.Seed(y, b.Input("dy", half.F32, 4, 3))
//	b.Backward()        // dw is the state "dw"
//	p, err := b.Build(y)
//
// # Precision
//
// A value's type is how its elements are stored. Inside of an op everything is
// float32 at least: products, means, exponentials, the sums that make an element.
// What an op writes to a value of type bf16 is rounded once, to nearest even,
// where it is written; only AdamW may round otherwise. An operand of a product
// that the op makes itself (the probabilities of attention and of the head, and
// their gradients) may be rounded to bf16 too where the op's other operands are
// bf16. Gradient sums, the statistics lse and those of the head, losses and
// moments are of type Layout.Sum, the tally, norms and the report float64. So a
// precision is a choice of types, written into the program: no engine adds or
// leaves out a rounding that is not one of these.
//
// Weights of int8 are for programs without gradients, see [Builder.Int8]: a layout with
// Int8 makes all matrices such weights.
//
// Dimension letters are those of docs/shapes.md. What is not here: kernels and
// devices (engine), who sits on the mesh (mesh), any model (model) and the
// order of an update (optim).
package program
