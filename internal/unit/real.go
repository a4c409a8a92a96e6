// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package unit

import (
	"errors"
	"math"
	"strconv"
	"strings"
)

var (
	errZero  = errors.New("zero is not allowed")
	errAbove = errors.New("more than 100 %")
)

// Number parses a finite decimal that is not negative, with or without an
// exponent: "0.5", "3e-4".
func Number(s string) (float64, error) {
	x, err := number(s)
	if err != nil {
		return 0, wrong("number", s, "a decimal such as 0.1 or 3e-4", err)
	}
	return x, nil
}

func number(s string) (float64, error) {
	if err := sign(s); err != nil {
		return 0, err
	}
	mant, rest := split(s)
	if _, _, err := decimal(mant); err != nil {
		return 0, err
	}
	if rest != "" && !isExponent(rest) {
		return 0, errNumber
	}
	x, err := strconv.ParseFloat(strings.ReplaceAll(mant, "_", "")+rest, 64)
	if err != nil || math.IsInf(x, 0) {
		return 0, errRange
	}
	return x, nil
}

// isExponent says whether s is e or E, a sign or none, and digits.
func isExponent(s string) bool {
	if s[0] != 'e' && s[0] != 'E' {
		return false
	}
	s = strings.TrimLeft(s[1:], "+-")
	for i := range len(s) {
		if !isDigit(s[i]) {
			return false
		}
	}
	return s != ""
}

func stepsOrTokens(s string, steps *Steps, tokens *Tokens) error {
	n, noun, err := counted(s, "step", "token")
	switch {
	case err != nil:
		return err
	case noun == "step":
		*steps = Steps(n)
	default:
		*tokens = Tokens(n)
	}
	return nil
}

func atMost100(b []byte) (Percent, error) {
	var p Percent
	if err := p.UnmarshalText(b); err != nil {
		return 0, unwrap(err)
	}
	if p > 100 {
		return 0, errAbove
	}
	return p, nil
}

func isTime(name string) bool {
	for _, u := range times {
		if u.name == name {
			return true
		}
	}
	return false
}

// unwrap takes the reason out of an error of another parser here, whose own
// words name a narrower want than the caller's.
func unwrap(err error) error {
	if cause := errors.Unwrap(err); cause != nil {
		return cause
	}
	return err
}
