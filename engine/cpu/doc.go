// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

// Package cpu is the engine that is always there: it runs programs with the
// kernels of package kernel on a pool of workers. A line belongs here if it
// decides when and where an op runs, never what the op means.
//
// The types to know: [Engine] and [Options]. Compile takes a program through
// passes (see [Print], which shows them) to a list of steps: an op, or several
// that hand tiles to each other in the caches. The memory plan is made from the
// steps, with the buffers that they need for themselves. Every step is a few
// phases: a number of independent tiles, handed out to whichever worker is free.
// No tile's result depends on who ran it or on how the step was cut or fused, so
// the bits are the same for any number of threads; a run allocates nothing.
// [Steps] and [Profiled] measure a run.
//
//	e := cpu.New(cpu.Options{})
//	defer e.Close()
//	x, err := e.Compile(p, 1)
//
// What is not here: formulas (program), loops over floats (kernel), more than
// one rank (mesh, not built yet).
package cpu
