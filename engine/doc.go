// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

// Package engine is the promise that every engine makes: compile a program,
// keep the state that programs share, run. A line belongs here if train, infer
// and eval may rely on it whoever multiplies.
//
// The types to know: [Engine], [Executable] and [Call]. Package
// engine/enginetest is the contract as a suite, engine/oracle its slow float64
// truth, engine/cpu the one that is always there.
//
//	x, err := e.Compile(p, 1)
//	call := engine.NewCall(p)
//	copy(program.View[int32](call.In[0]), tokens)
//	err = x.Run(call).Wait()
//	loss := program.View[float32](call.Out[0])
//
// What is not here: how anything is computed.
package engine
