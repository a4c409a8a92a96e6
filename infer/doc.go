// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

// Package infer turns ids into log-probabilities or more ids. A line belongs
// here if it uses a model without changing a weight.
//
// The types to know: [Scorer], losses of given ids, many documents packed into
// one run; [Generator], more ids after a prompt, with a cache of keys and
// values; [Sampling], how the next id is drawn.
//
//	s, err := infer.NewScorer(e, spec, layout, model.Batch{B: 4, T: 512}, 0)
//	err = s.Score(segments, func(i int, r infer.Scored) error { … })
//
//	g, err := infer.NewGenerator(e, spec, layout, 256, 1)
//	ids, err := g.Generate(ctx, prompt, 100, infer.Sampling{}, nil)
//
// The engine's weights are whatever its owner wrote there. What is not here:
// text (token), tasks and metrics (eval).
package infer
