// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

// Package plan predicts what a run would later measure: which micro-batch and
// recomputation fit into memory, how much that is, and how much a step
// computes. It runs nothing, so it may refuse before anything is allocated.
//
// The types to know: [Request], a run that is wanted; [Plan], how it would be
// run; [Predictor], an engine's answer to how much it would allocate.
//
//	p, err := plan.Choose(plan.Request{Spec: spec, Sequence: 512, Rows: 8, …}, predict)
//	fmt.Println(p.Memory.Total(), p.FLOPs)
//
// What is not here: machines in other places, throughput and money, which come
// with the planner of clusters.
package plan
