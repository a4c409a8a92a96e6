// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package unit

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

var (
	errNumber   = errors.New("not a number")
	errSign     = errors.New("signs are not allowed")
	errZeros    = errors.New("leading zeros are not allowed")
	errUnder    = errors.New("an underscore stands only between digits")
	errPoint    = errors.New("a decimal point stands only between digits")
	errFraction = errors.New("not a whole number")
	errRange    = errors.New("out of range")
	errExponent = errors.New("write k, M, B or T in place of an exponent")
)

// split cuts s into its leading number (digits, point, underscores) and the rest.
func split(s string) (number, rest string) {
	i := 0
	for i < len(s) && (isDigit(s[i]) || s[i] == '.' || s[i] == '_') {
		i++
	}
	return s[:i], s[i:]
}

// decimal checks a number as split returns it and gives its digits before and
// after the point, without underscores and without zeros at the end.
func decimal(s string) (whole, frac string, err error) {
	for i := range len(s) {
		if s[i] == '_' && (i == 0 || i == len(s)-1 || !isDigit(s[i-1]) || !isDigit(s[i+1])) {
			return "", "", errUnder
		}
	}
	whole, frac, point := strings.Cut(strings.ReplaceAll(s, "_", ""), ".")
	switch {
	case whole == "" && frac == "":
		return "", "", errNumber
	case whole == "" || point && frac == "" || strings.Contains(frac, "."):
		return "", "", errPoint
	case len(whole) > 1 && whole[0] == '0':
		return "", "", errZeros
	}
	return whole, strings.TrimRight(frac, "0"), nil
}

// exact is number × scale as an integer. scale is a power of ten or of two.
func exact(number string, scale int64) (int64, error) {
	whole, frac, err := decimal(number)
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseInt(whole, 10, 64)
	if err != nil || n > math.MaxInt64/scale {
		return 0, errRange
	}
	n *= scale
	if frac == "" {
		return n, nil
	}
	if len(frac) > 18 {
		return 0, errFraction
	}
	f, _ := strconv.ParseInt(frac, 10, 64) // below 10^18
	den := int64(1)
	for range frac {
		den *= 10
	}
	// Taking common factors out first keeps f·scale/den within 64 bits: what
	// remains of den must divide f.
	g := gcd(scale, den)
	if den /= g; f%den != 0 {
		return 0, errFraction
	}
	add := f / den * (scale / g) // below scale
	if n > math.MaxInt64-add {
		return 0, errRange
	}
	return n + add, nil
}

func gcd(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// fixed parses a non-negative decimal without exponent.
func fixed(number string) (float64, error) {
	whole, frac, err := decimal(number)
	if err != nil {
		return 0, err
	}
	x, err := strconv.ParseFloat(whole+"."+frac+"0", 64)
	if err != nil {
		return 0, errRange
	}
	return x, nil
}

// sign says what is wrong with a text that does not start with a digit.
func sign(s string) error {
	if s != "" && (s[0] == '-' || s[0] == '+') {
		return errSign
	}
	return nil
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// wrong is the error of all parsers here.
func wrong(what, got, want string, cause error) error {
	if cause != nil {
		return fmt.Errorf("%s: got %q, want %s: %w", what, got, want, cause)
	}
	return fmt.Errorf("%s: got %q, want %s", what, got, want)
}
