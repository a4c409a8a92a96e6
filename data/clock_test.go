// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package data

import (
	"slices"
	"testing"
	"time"
)

// slow is an encoder that takes its time.
type slow struct{ byteEncoder }

func (s slow) Encode(dst []int32, text []byte) []int32 {
	time.Sleep(2 * time.Millisecond)
	return s.byteEncoder.Encode(dst, text)
}

// TestTimes: what lanes do is measured, whatever kind they are, and changes no row.
func TestTimes(t *testing.T) {
	row := lines(fields{"t": make([]int, 17)})
	ready := Source{Paths: []string{write(t, map[string]string{"a.jsonl": row + row})}, Field: "t", Rows: true}
	for name, change := range map[string]func(p *Spec){
		"split": func(*Spec) {}, "whole": func(p *Spec) { p.Whole = true },
		"ready rows": func(p *Spec) { p.Sources = []Source{ready} },
	} {
		p := specOf(corpus(t))
		change(&p)
		want := next(t, open(t, p), 40)
		var times Times
		p.Times = &times
		l, err := Open(p, slow{})
		if err != nil {
			t.Fatal(err)
		}
		same(t, name, next(t, l, 40), want)
		l.Close()
		for w := range works {
			if text := name != "ready rows"; times.Spent(w) <= 0 && (text || w != Encoding) {
				t.Errorf("%s: no time for %v", name, w)
			}
		}
		if encoded := times.Spent(Encoding); name != "ready rows" && encoded < 20*time.Millisecond {
			t.Errorf("%s: encoding took %v, want 2 ms for each document", name, encoded)
		}
	}
}

// TestClock: each moment counts for one work, that which was entered last.
func TestClock(t *testing.T) {
	var none *clock
	none.start()
	if none.enter(Reading) != Reading {
		t.Error("no clock: want the work itself")
	}
	none.stop()
	var times Times
	c := newClock(&times)
	began := time.Now()
	c.start()
	before := c.enter(Parsing)
	time.Sleep(3 * time.Millisecond)
	inner := c.enter(Reading)
	time.Sleep(6 * time.Millisecond)
	c.enter(inner)
	c.enter(before)
	c.stop()
	all := time.Since(began)
	if before != Packing || inner != Parsing {
		t.Errorf("interrupted: got %v and %v", before, inner)
	}
	sum := time.Duration(0)
	var names []string
	for w := range works {
		sum += times.Spent(w)
		names = append(names, w.String())
	}
	if p, r := times.Spent(Parsing), times.Spent(Reading); p < 3*time.Millisecond || r < 6*time.Millisecond || sum > all {
		t.Errorf("got %v parsing, %v reading, %v of %v in all", p, r, sum, all)
	}
	if slices.Contains(names, "") {
		t.Errorf("names: %q", names)
	}
}
