// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package unit

import (
	"strconv"
	"strings"
)

// Count parses a whole number: digits with underscores between them, a decimal
// point if a suffix makes the number whole, and one of the suffixes k, M, B, T
// for 10³, 10⁶, 10⁹, 10¹².
func Count(s string) (int64, error) {
	n, rest, err := count(s)
	if err == nil && rest != "" {
		err = errNumber
		if rest[0] == 'e' || rest[0] == 'E' {
			err = errExponent
		}
	}
	if err != nil {
		return 0, wrong("count", s, "a whole number such as 4096 or 1.5B", err)
	}
	return n, nil
}

// Digits prints n so that [Count] reads it back: with a suffix from a million
// on where two decimals are enough, else as plain digits.
func Digits(n int64) string {
	for _, u := range []struct {
		name  string
		scale int64
	}{{"T", 1e12}, {"B", 1e9}, {"M", 1e6}} {
		if n >= u.scale && n%(u.scale/100) == 0 {
			s := strconv.FormatInt(n/u.scale, 10)
			if c := n % u.scale / (u.scale / 100); c != 0 {
				s += strings.TrimRight("."+strconv.FormatInt(100+c, 10)[1:], "0")
			}
			return s + u.name
		}
	}
	return strconv.FormatInt(n, 10)
}

// count reads the number and its suffix, and returns what follows without the
// spaces before it.
func count(s string) (n int64, rest string, err error) {
	if err := sign(s); err != nil {
		return 0, "", err
	}
	number, rest := split(s)
	scale := int64(1)
	if rest != "" {
		if e := strings.IndexByte("kMBT", rest[0]); e >= 0 && (len(rest) == 1 || rest[1] == ' ') {
			for range e + 1 {
				scale *= 1000
			}
			rest = rest[1:]
		}
	}
	n, err = exact(number, scale)
	return n, strings.TrimLeft(rest, " "), err
}

// named prints n with the noun, in the plural but for 1.
func named(n int64, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return Digits(n) + " " + noun + "s"
}

// counted parses a count with one of the nouns after it, in the singular or the
// plural, and says which.
func counted(s string, nouns ...string) (n int64, noun string, err error) {
	n, rest, err := count(s)
	if err != nil {
		return 0, "", err
	}
	for _, u := range nouns {
		if rest == u || rest == u+"s" {
			return n, u, nil
		}
	}
	if rest != "" && (rest[0] == 'e' || rest[0] == 'E') && len(rest) > 1 && isDigit(rest[1]) {
		return 0, "", errExponent
	}
	return 0, "", noUnit(rest)
}
