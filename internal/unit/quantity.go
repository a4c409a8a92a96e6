// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package unit

import (
	"encoding"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Tokens is a number of token ids: "300B tokens".
type Tokens int64

// Steps is a number of optimizer steps: "500 steps".
type Steps int64

// Sequences is a number of rows: "1024 sequences".
type Sequences int64

// Epochs is how often the first source is seen, not necessarily whole:
// "1 epoch", "0.5 epochs".
type Epochs float64

// Bytes is a size: "64 MiB", "1.5 GB", "512 B". KiB to TiB are powers of 1024,
// kB to TB of 1000.
type Bytes int64

// Duration is a length of time: "500ms", "180s", "30min", "12h", "2d". It counts
// nanoseconds, as time.Duration does.
type Duration time.Duration

// Percent is hundredths of something: "5 %". It is not negative, and may be
// more than 100.
type Percent float64

// Parse reads any of the types of this package.
func Parse[T any, P interface {
	*T
	encoding.TextUnmarshaler
}](s string) (T, error) {
	var x T
	err := P(&x).UnmarshalText([]byte(s))
	return x, err
}

func (n Tokens) String() string    { return named(int64(n), "token") }
func (n Steps) String() string     { return named(int64(n), "step") }
func (n Sequences) String() string { return named(int64(n), "sequence") }

// String prints the shortest number that reads back as the same.
func (n Epochs) String() string {
	if n == 1 {
		return "1 epoch"
	}
	return plain(float64(n)) + " epochs"
}

// String prints in the largest binary unit that divides n.
func (n Bytes) String() string {
	for i := len(binary) - 1; i >= 0; i-- {
		if u := binary[i]; n != 0 && int64(n)%u.scale == 0 {
			return strconv.FormatInt(int64(n)/u.scale, 10) + " " + u.name
		}
	}
	return strconv.FormatInt(int64(n), 10) + " B"
}

// Rounded prints three digits in the largest unit that n has one of: 1.21 GiB.
func (n Bytes) Rounded() string {
	for i := len(binary) - 1; i > 0; i-- {
		if u := binary[i]; int64(n) >= u.scale && u.scale > 1 {
			x := float64(n) / float64(u.scale)
			if x >= 999.5 { // three digits would be 1.02e+03 GiB
				return strconv.FormatFloat(x, 'f', 0, 64) + " " + u.name
			}
			return strconv.FormatFloat(x, 'g', 3, 64) + " " + u.name
		}
	}
	return n.String()
}

// String prints in the largest unit that divides d.
func (d Duration) String() string {
	for i := len(times) - 1; i >= 0; i-- {
		if u := times[i]; d != 0 && int64(d)%u.scale == 0 {
			return strconv.FormatInt(int64(d)/u.scale, 10) + u.name
		}
	}
	return "0s"
}

func (p Percent) String() string { return plain(float64(p)) + " %" }

// Of is p hundredths of x.
func (p Percent) Of(x float64) float64 { return x * float64(p) / 100 }

// plain never prints an exponent: the parsers of this package read none.
func plain(x float64) string { return strconv.FormatFloat(x, 'f', -1, 64) }

type scale struct {
	name  string
	scale int64
}

var (
	binary = [...]scale{{"B", 1}, {"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"TiB", 1 << 40}}
	metric = [...]scale{{"kB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"TB", 1e12}}
	times  = [...]scale{
		{"ns", 1},
		{"us", 1e3},
		{"ms", 1e6},
		{"s", 1e9},
		{"min", 60e9},
		{"h", 3600e9},
		{"d", 86400e9},
	}
)

// scaled parses a number with one of the units after it, with or without a space.
func scaled(s string, units ...scale) (int64, error) {
	if err := sign(s); err != nil {
		return 0, err
	}
	number, rest := split(s)
	rest = strings.TrimLeft(rest, " ")
	for _, u := range units {
		if rest == u.name {
			return exact(number, u.scale)
		}
	}
	if _, _, err := decimal(number); err != nil {
		return 0, err
	}
	return 0, noUnit(rest)
}

var errNoUnit = errors.New("the unit is missing")

func noUnit(rest string) error {
	if rest == "" {
		return errNoUnit
	}
	return fmt.Errorf("unknown unit %q", rest)
}

// UnmarshalText parses "300B tokens".
func (n *Tokens) UnmarshalText(b []byte) error { return nouned((*int64)(n), string(b), "token") }

// UnmarshalText parses "500 steps".
func (n *Steps) UnmarshalText(b []byte) error { return nouned((*int64)(n), string(b), "step") }

// UnmarshalText parses "1024 sequences".
func (n *Sequences) UnmarshalText(b []byte) error {
	return nouned((*int64)(n), string(b), "sequence")
}

func nouned(to *int64, s, noun string) error {
	n, _, err := counted(s, noun)
	if err != nil {
		return wrong(noun+"s", s, `a number of them such as "20 `+noun+`s"`, err)
	}
	*to = n
	return nil
}

// UnmarshalText parses "1 epoch" and "0.5 epochs".
func (n *Epochs) UnmarshalText(b []byte) error {
	x, err := fraction(string(b), "epoch", "epochs")
	if err != nil {
		return wrong("epochs", string(b), `a number of them such as "1 epoch"`, err)
	}
	*n = Epochs(x)
	return nil
}

// UnmarshalText parses "64 MiB".
func (n *Bytes) UnmarshalText(b []byte) error {
	x, err := scaled(string(b), append(binary[:], metric[:]...)...)
	if err != nil {
		return wrong("bytes", string(b), `a size such as "64 MiB"`, err)
	}
	*n = Bytes(x)
	return nil
}

// UnmarshalText parses "180s" and "30min".
func (d *Duration) UnmarshalText(b []byte) error {
	x, err := scaled(string(b), times[:]...)
	if err != nil {
		return wrong("duration", string(b), `a time such as "180s", "30min" or "12h"`, err)
	}
	*d = Duration(x)
	return nil
}

// UnmarshalText parses "5 %".
func (p *Percent) UnmarshalText(b []byte) error {
	x, err := fraction(string(b), "%")
	if err != nil {
		return wrong("per cent", string(b), `a number such as "5 %"`, err)
	}
	*p = Percent(x)
	return nil
}

func fraction(s string, units ...string) (float64, error) {
	if err := sign(s); err != nil {
		return 0, err
	}
	number, rest := split(s)
	x, err := fixed(number)
	if err != nil {
		return 0, err
	}
	rest = strings.TrimLeft(rest, " ")
	for _, u := range units {
		if rest == u {
			if math.IsInf(x, 0) {
				return 0, errRange
			}
			return x, nil
		}
	}
	return 0, noUnit(rest)
}

// MarshalText prints as String does.
func (n Tokens) MarshalText() ([]byte, error) { return []byte(n.String()), nil }

// MarshalText prints as String does.
func (n Steps) MarshalText() ([]byte, error) { return []byte(n.String()), nil }

// MarshalText prints as String does.
func (n Sequences) MarshalText() ([]byte, error) { return []byte(n.String()), nil }
