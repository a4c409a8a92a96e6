// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

// Package eval turns a model into a score that someone else can reproduce. A
// line belongs here if it says what a number means.
//
// The types to know: [Document], held-out ids and how many bytes of text they
// stand for; [Result], what a text got. [Perplexity] is the metric so far.
//
//	r, err := eval.Perplexity(scorer, 512, bos, docs)
//	fmt.Println(r.Perplexity(), r.BitsPerByte())
//
// What is not here: running a model (infer), reading text (data, token), tasks,
// which come with the templates.
package eval
