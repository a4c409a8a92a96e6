// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

// Package fault sorts errors by whom they are for, which decides the exit code
// of the command. An error keeps its own words; its kind is asked with
// errors.Is(err, fault.Data). [Nearest] finds the word that a message may suggest.
package fault

import (
	"errors"
	"fmt"
)

// The kinds. Errors of no kind are bugs.
var (
	Config  = errors.New("configuration") // the user can fix it in a recipe or on the command line
	Data    = errors.New("data")          // a document, shard, model or tokenizer file is bad
	State   = errors.New("state")         // a checkpoint or run directory is missing, damaged or of another run
	Machine = errors.New("machine")       // try again, here or elsewhere: disk full, memory, a lost peer
	Stopped = errors.New("stopped")       // told to stop, and saved: may run again
)

// Configf is fmt.Errorf for an error of kind [Config].
func Configf(format string, args ...any) error { return &fault{fmt.Errorf(format, args...), Config} }

// Dataf is fmt.Errorf for an error of kind [Data].
func Dataf(format string, args ...any) error { return &fault{fmt.Errorf(format, args...), Data} }

// Statef is fmt.Errorf for an error of kind [State].
func Statef(format string, args ...any) error { return &fault{fmt.Errorf(format, args...), State} }

// Machinef is fmt.Errorf for an error of kind [Machine].
func Machinef(format string, args ...any) error { return &fault{fmt.Errorf(format, args...), Machine} }

// As gives err a kind, where a caller knows better whom it is for: a model
// directory that does not parse is data for a user, state for a resumed run.
// The outermost kind counts. It returns nil for nil.
func As(kind, err error) error {
	if err == nil {
		return nil
	}
	return &fault{err, kind}
}

// Exit is the exit code for an error: 0 for none, 70 for an error of no kind.
func Exit(err error) int {
	var f *fault
	switch {
	case err == nil:
		return 0
	case !errors.As(err, &f):
		return 70
	}
	switch f.kind {
	case Config:
		return 2
	case Data:
		return 3
	case State:
		return 4
	case Stopped:
		return 75
	}
	return 1
}

type fault struct {
	err  error
	kind error
}

func (f *fault) Error() string   { return f.err.Error() }
func (f *fault) Unwrap() []error { return []error{f.err, f.kind} }
