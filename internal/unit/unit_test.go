// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package unit

import (
	"encoding"
	"fmt"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func ExampleParse() {
	u, _ := Parse[Until]("1.5B tokens")
	_, err := Parse[Until]("1.5B")
	fmt.Println(int64(u.Tokens), u, err)
	// Output: 1500000000 1.5B tokens length: got "1.5B", want steps, tokens or epochs, such as "500 steps": the unit is missing
}

// parsers reads a text as each type and prints it again.
var parsers = map[string]func(string) (string, error){
	"Tokens":    again[Tokens],
	"Steps":     again[Steps],
	"Sequences": again[Sequences],
	"Epochs":    again[Epochs],
	"Bytes":     again[Bytes],
	"Duration":  again[Duration],
	"Percent":   again[Percent],
	"Until":     again[Until],
	"Batch":     again[Batch],
	"Share":     again[Share],
	"Level":     again[Level],
	"Every":     again[Every],
	"Count": func(s string) (string, error) {
		n, err := Count(s)
		return Digits(n), err
	},
	"Number": func(s string) (string, error) {
		x, err := Number(s)
		return fmt.Sprint(x), err
	},
}

func again[T any, P interface {
	*T
	encoding.TextUnmarshaler
}](s string) (string, error) {
	x, err := Parse[T, P](s)
	return fmt.Sprint(x), err
}

func TestParse(t *testing.T) {
	for _, tt := range []struct{ kind, in, want string }{
		{"Tokens", "300B tokens", "300B tokens"},
		{"Tokens", "300Btokens", "!unknown unit"},
		{"Tokens", "300 B tokens", "!unknown unit"},
		{"Tokens", "1 token", "1 token"},
		{"Tokens", "1.5 tokens", "!not a whole number"},
		{"Tokens", "1.0 tokens", "1 token"},
		{"Tokens", "1_500 tokens", "1500 tokens"},
		{"Tokens", "1__500 tokens", "!underscore"},
		{"Tokens", "1_ tokens", "!underscore"},
		{"Tokens", "300e9 tokens", "!in place of an exponent"},
		{"Tokens", "9223372036854775807 tokens", "9223372036854775807 tokens"},
		{"Tokens", "9223372036854775808 tokens", "!out of range"},
		{"Tokens", "9223373T tokens", "!out of range"},
		{"Tokens", "9223372.036854775807T tokens", "9223372036854775807 tokens"},
		{"Tokens", "9223372.036854775808T tokens", "!out of range"},
		{"Tokens", "4194304 tokens", "4194304 tokens"},
		{"Tokens", "0.12T tokens", "120B tokens"},
		{"Tokens", "1.05M tokens", "1.05M tokens"},
		{"Steps", "010 steps", "!leading zeros"},
		{"Steps", "-1 steps", "!signs"},
		{"Steps", "+1 steps", "!signs"},
		{"Steps", "steps", "!not a number"},
		{"Steps", "", "!not a number"},
		{"Steps", "20k steps", "20000 steps"},
		{"Steps", "5", "!unit is missing"},
		{"Sequences", "1024 sequences", "1024 sequences"},
		{"Epochs", "1 epoch", "1 epoch"},
		{"Epochs", "0.5 epochs", "0.5 epochs"},
		{"Epochs", "NaN epochs", "!not a number"},
		{"Bytes", "64 MiB", "64 MiB"},
		{"Bytes", "64MiB", "64 MiB"},
		{"Bytes", "1.5 GiB", "1536 MiB"},
		{"Bytes", "1 MB", "1000000 B"},
		{"Bytes", "0 B", "0 B"},
		{"Bytes", "64", "!unit is missing"},
		{"Bytes", "1.5 B", "!not a whole number"},
		{"Bytes", "99999999 TiB", "!out of range"},
		{"Duration", "180s", "3min"},
		{"Duration", "30min", "30min"},
		{"Duration", "1.5h", "90min"},
		{"Duration", "2d", "2d"},
		{"Duration", "0s", "0s"},
		{"Duration", "5 fortnights", "!unknown unit"},
		{"Percent", "5 %", "5 %"},
		{"Percent", "5%", "5 %"},
		{"Percent", "0.25 %", "0.25 %"},
		{"Percent", "150 %", "150 %"},
		{"Percent", ".5 %", "!decimal point"},
		{"Until", "500 steps", "500 steps"},
		{"Until", "1 epoch", "1 epoch"},
		{"Until", "0 steps", "!zero"},
		{"Until", "1 sequence", "!unknown unit"},
		{"Batch", "1024 sequences", "1024 sequences"},
		{"Batch", "4M tokens", "4M tokens"},
		{"Batch", "8", "!unit is missing"},
		{"Batch", "8 steps", "!unknown unit"},
		{"Share", "1 %", "1 %"},
		{"Share", "101 %", "!more than 100"},
		{"Share", "5 steps", "5 steps"},
		{"Level", "3e-5", "3e-05"},
		{"Level", "10 %", "10 %"},
		{"Level", ".nan", "!not a number"},
		{"Level", "-1", "!signs"},
		{"Every", "500 steps", "500 steps"},
		{"Every", "30min", "30min"},
		{"Every", "100B tokens", "100B tokens"},
		{"Every", "0s", "!zero"},
		{"Count", "4k", "4000"},
		{"Count", "1e3", "!in place of an exponent"},
		{"Number", "3e-4", "0.0003"},
		{"Number", "1e400", "!out of range"},
		{"Number", "0x1p3", "!not a number"},
		{"Number", "01.5", "!leading zeros"},
		{"Number", "inf", "!not a number"},
	} {
		got, err := parsers[tt.kind](tt.in)
		if frag, bad := strings.CutPrefix(tt.want, "!"); bad {
			if err == nil || !strings.Contains(err.Error(), frag) {
				t.Errorf("%s %q: got %v, %v, want an error with %q", tt.kind, tt.in, got, err, frag)
			}
		} else if err != nil || got != tt.want {
			t.Errorf("%s %q: got %q, %v, want %q", tt.kind, tt.in, got, err, tt.want)
		}
	}
}

func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Int64Min(0).Draw(t, "n")
		for _, x := range []fmt.Stringer{Tokens(n), Steps(n), Bytes(n), Duration(n), Sequences(n)} {
			s := x.String()
			got, err := parsers[strings.TrimPrefix(fmt.Sprintf("%T", x), "unit.")](s)
			if err != nil || got != s {
				t.Fatalf("%T: printed %q, read %q, %v", x, s, got, err)
			}
		}
		if got, err := Count(Digits(n)); err != nil || got != n {
			t.Fatalf("Count(%q) = %d, %v, want %d", Digits(n), got, err, n)
		}
		x := math.Abs(rapid.Float64().Draw(t, "x"))
		if got, err := Parse[Percent](Percent(x).String()); err != nil || got != Percent(x) {
			t.Fatalf("%v: read %v, %v", Percent(x), got, err)
		}
		if got, err := Parse[Level](Level{Value: x}.String()); err != nil || got.Value != x {
			t.Fatalf("%v: read %v, %v", x, got, err)
		}
	})
}

func TestUntil(t *testing.T) {
	for _, tt := range []struct {
		u             Until
		s             Steps
		tok, epoch    Tokens
		due           bool
		steps, settle int64
	}{
		{Until{Steps: 3}, 2, 1e9, 10, false, 3, 0},
		{Until{Steps: 3}, 3, 0, 10, true, 3, 0},
		{Until{Tokens: 25}, 3, 24, 10, false, 3, 25},
		{Until{Tokens: 25}, 3, 30, 10, true, 3, 25},
		{Until{Epochs: 2.5}, 3, 24, 10, false, 3, 25},
		{Until{Epochs: 2.5}, 3, 25, 10, true, 3, 25},
		{Until{}, 1e9, 1e9, 10, false, 0, 0},
	} {
		u := tt.u.Settle(tt.epoch)
		if got := tt.u.Due(tt.s, tt.tok, tt.epoch); got != tt.due {
			t.Errorf("%v due at %v, %v: got %t", tt.u, tt.s, tt.tok, got)
		}
		if int64(u.In(10)) != tt.steps || int64(u.Tokens) != tt.settle {
			t.Errorf("%v: settled %v, %v steps of 10", tt.u, u, u.In(10))
		}
	}
}

func TestShares(t *testing.T) {
	for _, tt := range []struct {
		s    Share
		want Steps
	}{
		{Share{Steps: 7}, 7},
		{Share{Tokens: 101}, 11},
		{Share{Percent: 1}, 2}, // of 150: 1.5 rounds away from zero
		{Share{}, 0},
	} {
		if got := tt.s.In(150, 10); got != tt.want {
			t.Errorf("%v of 150 steps: got %v, want %v", tt.s, got, tt.want)
		}
	}
	if got := (Level{Percent: 10}).Of(3e-4); math.Abs(got-3e-5) > 1e-19 {
		t.Errorf("10 %% of 3e-4: %v", got)
	}
	if n, err := (Batch{Tokens: 96}).Rows(48); n != 2 || err != nil {
		t.Errorf("96 tokens in rows of 48: %d, %v", n, err)
	}
	if _, err := (Batch{Tokens: 97}).Rows(48); err == nil {
		t.Error("97 tokens in rows of 48: no error")
	}
}

func TestEvery(t *testing.T) {
	for _, tt := range []struct {
		e         Every
		last, now Mark
		want      bool
	}{
		{Every{Steps: 5}, Mark{Steps: 4}, Mark{Steps: 5}, true},
		{Every{Steps: 5}, Mark{Steps: 5}, Mark{Steps: 9}, false},
		{Every{Tokens: 100}, Mark{Tokens: 199}, Mark{Tokens: 201}, true},
		{Every{Time: 10}, Mark{Time: 1}, Mark{Time: 10}, false},
		{Every{Time: 10}, Mark{Time: 1}, Mark{Time: 11}, true},
		{Every{}, Mark{}, Mark{Steps: 5, Tokens: 5, Time: 5}, false},
	} {
		if got := tt.e.Due(tt.last, tt.now); got != tt.want {
			t.Errorf("%v from %v to %v: got %t", tt.e, tt.last, tt.now, got)
		}
	}
}

// FuzzParse: no parser panics, and what parses prints as something that parses
// and prints the same.
func FuzzParse(f *testing.F) {
	for _, s := range []string{
		"300B tokens", "1.5B tokens", "1 epoch", "64 MiB", "180s", "5 %", "3e-4", "010 steps",
		"9223372036854775808 tokens", "1_0 sequences", "\x00", "0.000000000000000001T tokens",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		for kind, parse := range parsers {
			once, err := parse(s)
			if err != nil {
				continue
			}
			if kind == "Number" {
				continue // prints through fmt
			}
			if twice, err := parse(once); err != nil || twice != once {
				t.Errorf("%s: %q printed %q, read back %q, %v", kind, s, once, twice, err)
			}
		}
	})
}
