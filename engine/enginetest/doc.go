// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

// Package enginetest is the contract of package engine as a suite. A line
// belongs here if it would fail an engine that breaks a promise, and pass every
// engine that keeps them.
//
// The types to know: [Run] and [Options].
//
//	func TestContract(t *testing.T) {
//		open := func(*testing.T) engine.Engine { return cpu.New(cpu.Options{}) }
//		enginetest.Run(t, open, enginetest.Options{Tolerance: 1e-5})
//	}
//
// Where an executable has a method Poison(c *engine.Call), which fills with NaN
// the temporaries that c must not find anything in, it is called before each
// run, so that a read before a write shows.
//
// What is not here: speed, allocations, threads; models (model has its own
// tests on the oracle).
package enginetest
