// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package unit

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Until is a point in a run: after so many steps, tokens or epochs. At most one
// of the fields is not zero; the zero value is no point at all.
type Until struct {
	Steps  Steps
	Tokens Tokens
	Epochs Epochs
}

// Batch is the size of a step over all ranks, in rows or in tokens.
type Batch struct {
	Sequences Sequences
	Tokens    Tokens
}

// Share is a part of a run: absolute, or per cent of its length (at most 100).
// The zero value is no part of it.
type Share struct {
	Steps   Steps
	Tokens  Tokens
	Percent Percent
}

// Level is a height below a peak: absolute, or per cent of it (at most 100).
type Level struct {
	Value   float64
	Percent Percent
}

// Every is a period in steps, tokens or time. The zero value is never.
type Every struct {
	Steps  Steps
	Tokens Tokens
	Time   Duration
}

// Mark is how far a run is.
type Mark struct {
	Steps  Steps
	Tokens Tokens
	Time   Duration
}

// Due says whether a run that has done so many steps and tokens has reached u.
// epoch is the number of tokens of one epoch; it is read only if u is in epochs.
// The zero Until is never due.
func (u Until) Due(s Steps, t, epoch Tokens) bool {
	switch u = u.Settle(epoch); {
	case u.Steps > 0:
		return s >= u.Steps
	case u.Tokens > 0:
		return t >= u.Tokens
	}
	return false
}

// Settle turns epochs into tokens, rounded to the nearest and at least 1, where
// one epoch has so many. What is not in epochs stays as it is.
func (u Until) Settle(epoch Tokens) Until {
	if u.Epochs == 0 {
		return u
	}
	n := math.Round(float64(u.Epochs) * float64(epoch))
	if n >= math.MaxInt64 {
		return Until{Tokens: math.MaxInt64}
	}
	return Until{Tokens: max(1, Tokens(n))}
}

// In is u in steps of so many tokens each: the first step at which it is due.
// Epochs are settled first; in epochs, u is 0 here.
func (u Until) In(batch Tokens) Steps {
	if u.Tokens > 0 {
		return ceil(u.Tokens, batch)
	}
	return u.Steps
}

// In is the number of steps that s is of a run of so many steps with so many
// tokens each: tokens round up to whole steps, per cent to the nearest.
func (s Share) In(steps Steps, batch Tokens) Steps {
	switch {
	case s.Tokens > 0:
		return ceil(s.Tokens, batch)
	case s.Percent > 0:
		return Steps(math.Round(s.Percent.Of(float64(steps))))
	}
	return s.Steps
}

func ceil(t, batch Tokens) Steps {
	if batch <= 0 {
		return 0
	}
	n := t / batch
	if t%batch != 0 {
		n++
	}
	return Steps(n)
}

// Of is the level under a peak.
func (l Level) Of(peak float64) float64 {
	if l.Percent > 0 {
		return l.Percent.Of(peak)
	}
	return l.Value
}

// Rows is the number of rows of T targets in b. A batch in tokens must be a
// whole number of rows.
func (b Batch) Rows(T int) (int, error) {
	switch {
	case b.Sequences > 0:
		return int(b.Sequences), nil
	case T <= 0 || b.Tokens%Tokens(T) != 0:
		return 0, fmt.Errorf("batch: got %v, want a multiple of the sequence length %d", b.Tokens, T)
	}
	return int(b.Tokens) / T, nil
}

// Due says whether a period ends between two marks: a multiple of its steps or
// tokens lies after last and not after now, or its time has passed.
func (e Every) Due(last, now Mark) bool {
	switch {
	case e.Steps > 0:
		return now.Steps/e.Steps > last.Steps/e.Steps
	case e.Tokens > 0:
		return now.Tokens/e.Tokens > last.Tokens/e.Tokens
	case e.Time > 0:
		return now.Time-last.Time >= e.Time
	}
	return false
}

// IsZero says that u is no point: the key was not given.
func (u Until) IsZero() bool { return u == Until{} }

// IsZero says that e is never.
func (e Every) IsZero() bool { return e == Every{} }

func (u Until) String() string {
	switch {
	case u.Tokens != 0:
		return u.Tokens.String()
	case u.Epochs != 0:
		return u.Epochs.String()
	}
	return u.Steps.String()
}

func (b Batch) String() string {
	if b.Tokens != 0 {
		return b.Tokens.String()
	}
	return b.Sequences.String()
}

func (s Share) String() string {
	switch {
	case s.Tokens != 0:
		return s.Tokens.String()
	case s.Percent != 0:
		return s.Percent.String()
	}
	return s.Steps.String()
}

func (l Level) String() string {
	if l.Percent != 0 {
		return l.Percent.String()
	}
	return strconv.FormatFloat(l.Value, 'g', -1, 64)
}

func (e Every) String() string {
	switch {
	case e.Tokens != 0:
		return e.Tokens.String()
	case e.Time != 0:
		return e.Time.String()
	}
	return e.Steps.String()
}

// UnmarshalText parses "20000 steps", "88B tokens" or "1 epoch", not zero.
func (u *Until) UnmarshalText(b []byte) error {
	var x Until
	s := string(b)
	var err error
	if strings.HasSuffix(s, "epoch") || strings.HasSuffix(s, "epochs") {
		err = x.Epochs.UnmarshalText(b)
		err = unwrap(err)
	} else {
		err = stepsOrTokens(s, &x.Steps, &x.Tokens)
	}
	if err == nil && x.IsZero() {
		err = errZero
	}
	if err != nil {
		return wrong("length", s, `steps, tokens or epochs, such as "500 steps"`, err)
	}
	*u = x
	return nil
}

// UnmarshalText parses "1024 sequences" or "4M tokens", not zero.
func (b *Batch) UnmarshalText(text []byte) error {
	n, noun, err := counted(string(text), "sequence", "token")
	if err == nil && n == 0 {
		err = errZero
	}
	if err != nil {
		return wrong("batch", string(text), `sequences or tokens, such as "8 sequences"`, err)
	}
	if *b = (Batch{Sequences: Sequences(n)}); noun == "token" {
		*b = Batch{Tokens: Tokens(n)}
	}
	return nil
}

// UnmarshalText parses "2000 steps", "10M tokens" or "1 %".
func (s *Share) UnmarshalText(b []byte) error {
	var x Share
	var err error
	if strings.HasSuffix(string(b), "%") {
		x.Percent, err = atMost100(b)
	} else {
		err = stepsOrTokens(string(b), &x.Steps, &x.Tokens)
	}
	if err != nil {
		return wrong("share", string(b), `steps, tokens or per cent, such as "1 %"`, err)
	}
	*s = x
	return nil
}

// UnmarshalText parses "3e-5" or "10 %".
func (l *Level) UnmarshalText(b []byte) error {
	var x Level
	var err error
	if strings.HasSuffix(string(b), "%") {
		x.Percent, err = atMost100(b)
	} else {
		x.Value, err = Number(string(b))
		err = unwrap(err)
	}
	if err != nil {
		return wrong("level", string(b), `a number such as 3e-5, or per cent of the peak such as "10 %"`, err)
	}
	*l = x
	return nil
}

// UnmarshalText parses "1000 steps", "1B tokens" or "30min", not zero.
func (e *Every) UnmarshalText(b []byte) error {
	var x Every
	s := string(b)
	var err error
	if _, rest := split(s); isTime(strings.TrimLeft(rest, " ")) {
		err = unwrap(x.Time.UnmarshalText(b))
	} else {
		err = stepsOrTokens(s, &x.Steps, &x.Tokens)
	}
	if err == nil && x.IsZero() {
		err = errZero
	}
	if err != nil {
		return wrong("period", s, `steps, tokens or time, such as "500 steps" or "30min"`, err)
	}
	*e = x
	return nil
}
