// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

// Package config is a run, written down: strict YAML in, a typed [Recipe] out.
//
// A line belongs here if a user may write what it is about. This package does
// no work of the run: it opens no file but the recipe, expands no glob, knows no
// preset by name, and reads neither the environment nor the machine.
//
// The types to know are [Recipe], in which every key has its value; [Error],
// one mistake with its line and what to do; and field, the row from which a key
// is read, printed, compared and documented.
//
//	r, err := config.Load("base.yaml", []string{"train.clip=0.5"})
//	if err != nil {
//		return err // all mistakes at once; matches fault.Config
//	}
//	fmt.Println(r.Train.Batch, r.Origin("train.clip")) // 8 sequences command line
//	os.WriteFile("run.yaml", r.Effective(), 0o666)
//
// YAML is walked node by node. What the YAML library would make of a text does
// not matter: 010 is an error and not eight, yes is not true, a missing value is
// not zero, and a key that stands twice is reported.
//
// Reading the files that a recipe names is the business of the rooms data, token
// and model; deciding what the recipe leaves open is plan's.
package config
