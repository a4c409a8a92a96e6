// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package yaml11

import (
	"fmt"
	"math"
	"math/big"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// The forms of plain scalars, as YAML 1.1 has them (yaml.org/type) and PyYAML
// reads them: an exponent needs a point before it and a sign in it.
var (
	floatForm = regexp.MustCompile(`^(?:[-+]?[0-9][0-9_]*\.[0-9_]*(?:[eE][-+][0-9]+)?` +
		`|\.[0-9][0-9_]*(?:[eE][-+][0-9]+)?` +
		`|[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+\.[0-9_]*` +
		`|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$`)
	intForm = regexp.MustCompile(`^(?:[-+]?0b[01_]+|[-+]?0[0-7_]+|[-+]?(?:0|[1-9][0-9_]*)` +
		`|[-+]?0x[0-9a-fA-F_]+|[-+]?[1-9][0-9_]*(?::[0-5]?[0-9])+)$`)
	dateForm = regexp.MustCompile(`^[0-9]{4}-[0-9]{2}-[0-9]{2}$`)
	timeForm = regexp.MustCompile(`^([0-9]{4})-([0-9][0-9]?)-([0-9][0-9]?)` +
		`(?:(?:[Tt]|[ \t]+)([0-9][0-9]?):([0-9]{2}):([0-9]{2})(?:\.([0-9]*))?` +
		`(?:[ \t]*(Z|([-+])([0-9][0-9]?)(?::([0-9]{2}))?))?)?$`)
)

// bools are the words of booleans, in lower case.
var bools = map[string]bool{"yes": true, "true": true, "on": true, "no": false, "false": false, "off": false}

// tagOf is the type of a plain scalar.
func tagOf(s string) string {
	if s == "" || s == "~" || oneCase(s, "null") {
		return "!!null"
	}
	switch c := s[0]; {
	case c == '<' && s == "<<":
		return "!!merge"
	case c == '=' && s == "=":
		return "!!value"
	case strings.IndexByte("yYnNtTfFoO", c) >= 0:
		for word := range bools {
			if oneCase(s, word) {
				return "!!bool"
			}
		}
	case strings.IndexByte("-+.0123456789", c) < 0:
	case floatForm.MatchString(s):
		return "!!float"
	case intForm.MatchString(s):
		return "!!int"
	case dateForm.MatchString(s):
		return "!!timestamp"
	case strings.Contains(s, ":") && timeForm.MatchString(s):
		return "!!timestamp"
	}
	return "!!str"
}

// oneCase says that s is a word in lower case, in upper case, or with its first
// letter alone in upper case.
func oneCase(s, word string) bool {
	return s == word || s == strings.ToUpper(word) || s == strings.ToUpper(word[:1])+word[1:]
}

// scalar sets a value to a text of a type.
func (v *Value) scalar(tag, s string) error {
	v.Text = s
	switch tag {
	case "!!str":
		v.Kind = String
		return nil
	case "!!null":
		v.Kind = Null
		return nil
	case "!!bool":
		b, ok := bools[strings.ToLower(s)]
		if !ok {
			return fmt.Errorf("got %q, want a boolean", short(s))
		}
		v.Kind, v.Bool = Bool, b
		return nil
	case "!!int":
		n, ok := integer(s)
		if !ok {
			return fmt.Errorf("got %q, want a whole number of at most %d digits", short(s), maxDigits)
		}
		v.Kind, v.Int = Int, n
		v.Float, _ = new(big.Float).SetInt(n).Float64()
		return nil
	case "!!float":
		x, ok := float(s)
		if !ok {
			return fmt.Errorf("got %q, want a number", short(s))
		}
		v.Kind, v.Float = Float, x
		return nil
	case "!!timestamp":
		return v.timestamp(s)
	case "!!value", "!!merge":
		return fmt.Errorf("got %s, which has a meaning of its own in YAML 1.1; write it in quotes", short(s))
	}
	return fmt.Errorf("got the tag %s, want none, or one of !!null, !!bool, !!int, !!float, !!str, !!timestamp, "+
		"!!seq, !!map", short(tag))
}

// integer reads binary, octal, decimal, hexadecimal and base 60.
func integer(s string) (*big.Int, bool) {
	s = strings.TrimSpace(strings.ReplaceAll(s, "_", ""))
	if s == "" || len(s) > maxDigits {
		return nil, false
	}
	negative := s[0] == '-'
	if negative || s[0] == '+' {
		s = s[1:]
	}
	n, ok := magnitude(s)
	if ok && negative {
		n.Neg(n)
	}
	return n, ok
}

func magnitude(s string) (*big.Int, bool) {
	switch {
	case s == "" || s[0] == '-' || s[0] == '+':
		return nil, false
	case strings.HasPrefix(s, "0b"):
		return unsigned(s[2:], 2)
	case strings.HasPrefix(s, "0x"):
		return unsigned(s[2:], 16)
	case s[0] == '0':
		return unsigned(s, 8)
	case !strings.Contains(s, ":"):
		return unsigned(s, 10)
	}
	n := new(big.Int)
	for part := range strings.SplitSeq(s, ":") {
		d, ok := unsigned(part, 10)
		if !ok {
			return nil, false
		}
		n.Mul(n, big.NewInt(60)).Add(n, d)
	}
	return n, true
}

func unsigned(s string, base int) (*big.Int, bool) {
	if s == "" || s[0] == '-' || s[0] == '+' {
		return nil, false
	}
	return new(big.Int).SetString(s, base)
}

// float reads decimal floats, infinities, NaN and base 60.
func float(s string) (float64, bool) {
	s = strings.ToLower(strings.TrimSpace(strings.ReplaceAll(s, "_", "")))
	if s == "" || len(s) > maxDigits {
		return 0, false
	}
	sign := 1.0
	if s[0] == '-' {
		sign = -1
	}
	if s[0] == '-' || s[0] == '+' {
		s = s[1:]
	}
	switch {
	case s == "" || s[0] == '-' || s[0] == '+':
		return 0, false
	case s == ".inf":
		return sign * math.Inf(1), true
	case s == ".nan":
		return math.NaN(), true
	case strings.Contains(s, ":"):
		x, ok := base60(s)
		return sign * x, ok
	}
	x, ok := decimal(s)
	return sign * x, ok
}

// decimal is the nearest float64; one that is too large is infinite, as in Python.
func decimal(s string) (float64, bool) {
	if strings.ContainsAny(s, "xp") {
		return 0, false
	}
	x, err := strconv.ParseFloat(s, 64)
	return x, err == nil || math.IsInf(x, 0)
}

// base60 adds the parts from the last one on, as PyYAML does: the order decides
// the last bit.
func base60(s string) (float64, bool) {
	parts := strings.Split(s, ":")
	x, base := 0.0, big.NewInt(1)
	for i := len(parts) - 1; i >= 0; i-- {
		d, ok := decimal(parts[i])
		b, _ := new(big.Float).SetInt(base).Float64()
		if !ok || math.IsInf(b, 0) {
			return 0, false
		}
		x += float64(d * b)
		base.Mul(base, big.NewInt(60))
	}
	return x, true
}

// timestamp reads a day or a moment of the calendar.
func (v *Value) timestamp(s string) error {
	m := timeForm.FindStringSubmatch(s)
	if m == nil {
		return fmt.Errorf("got %q, want a date or a time", short(s))
	}
	n := make([]int, len(m))
	for i, digits := range m {
		n[i], _ = strconv.Atoi(digits)
	}
	frac := (m[7] + "000000")[:6]
	micros, _ := strconv.Atoi(frac)
	zone := time.UTC
	if m[9] != "" {
		seconds := n[10]*3600 + n[11]*60
		if m[9] == "-" {
			seconds = -seconds
		}
		zone = time.FixedZone(m[8], seconds)
	}
	t := time.Date(n[1], time.Month(n[2]), n[3], n[4], n[5], n[6], micros*1000, zone)
	// time.Date carries 30 February over to March; what is no date has changed.
	if n[1] < 1 || t.Year() != n[1] || int(t.Month()) != n[2] || t.Day() != n[3] || t.Hour() != n[4] ||
		t.Minute() != n[5] || t.Second() != n[6] || n[10]*60+n[11] >= 24*60 {
		return fmt.Errorf("got %q, which no calendar or clock shows; write it in quotes if it is a string",
			short(s))
	}
	v.Kind, v.Time = Date, t
	if m[4] != "" {
		v.Kind = Time
	}
	return nil
}
