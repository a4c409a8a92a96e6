// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package program_test

import (
	"fmt"
	"testing"

	"pleach/program"
)

// TestSchedule: every pipeline of up to 8 stages finishes with one message under
// way per link and direction, keeps as few micro-batches as its slots say, and
// idles no longer than 1F1B has to.
func TestSchedule(t *testing.T) {
	for stages := 1; stages <= 8; stages++ {
		for micros := 1; micros <= 20; micros++ {
			if left := stalled(stages, micros, 1); left > 0 {
				t.Errorf("%d stages, %d micro-batches: deadlock with %d turns left", stages, micros, left)
			}
			for at := range stages {
				checkTurns(t, at, stages, micros)
			}
			// With halves of one unit each: fill, M pairs, drain.
			if got, want := makespan(stages, micros), 2*(micros+stages-1); got != want {
				t.Errorf("%d stages, %d micro-batches: %d units, want %d", stages, micros, got, want)
			}
		}
	}
	if stalled(2, 2, 0) == 0 {
		t.Error("rendezvous does not deadlock: the simulation sees nothing")
	}
}

// checkTurns: each half of each micro-batch once, both in order, in a slot that
// is its own meanwhile; the most slots in use are Slots.
func checkTurns(t *testing.T, at, stages, micros int) {
	t.Helper()
	held, most := map[int]int{}, 0
	next := map[program.Half]int{}
	for i, turn := range program.Schedule(at, stages, micros) {
		m, taken := held[turn.Slot]
		switch {
		case turn.Micro != next[turn.Half]:
			t.Fatalf("stage %d of %d: turn %d %+v out of order", at, stages, i, turn)
		case turn.Half == program.Fore && taken:
			t.Fatalf("stage %d of %d: turn %d %+v: slot holds %d", at, stages, i, turn, m)
		case turn.Half == program.Back && (!taken || m != turn.Micro):
			t.Fatalf("stage %d of %d: turn %d %+v: not in its slot", at, stages, i, turn)
		}
		next[turn.Half]++
		if turn.Half == program.Fore {
			held[turn.Slot] = turn.Micro
		} else {
			delete(held, turn.Slot)
		}
		most = max(most, len(held))
	}
	if next[program.Fore] != micros || next[program.Back] != micros || most != program.Slots(at, stages, micros) {
		t.Errorf("stage %d of %d: %v of %d micro-batches, %d slots in use", at, stages, next, micros, most)
	}
}

// stalled runs all stages against links that hold so many messages, a message
// of depth 0 passing only into a waiting hand, and returns the turns left when
// nothing moves.
func stalled(stages, micros, depth int) (left int) {
	type step struct {
		link string // "from>to half"
		send bool
	}
	var todo [][]step
	for at := range stages {
		var steps []step
		for _, turn := range program.Schedule(at, stages, micros) {
			from, to := at-1, at+1
			if turn.Half == program.Back {
				from, to = to, from
			}
			if 0 <= from && from < stages {
				steps = append(steps, step{fmt.Sprint(from, ">", at), false})
			}
			if 0 <= to && to < stages {
				steps = append(steps, step{fmt.Sprint(at, ">", to), true})
			}
		}
		todo = append(todo, steps)
	}
	under := map[string]int{}
	wanted := func(link string) int {
		for _, s := range todo {
			if len(s) > 0 && s[0] == (step{link, false}) {
				return 1
			}
		}
		return 0
	}
	for moved := true; moved; {
		moved = false
		for at, steps := range todo {
			if len(steps) == 0 {
				continue
			}
			s := steps[0]
			room := depth
			if depth == 0 {
				room = wanted(s.link)
			}
			switch {
			case s.send && under[s.link] < room:
				under[s.link]++
			case !s.send && under[s.link] > 0:
				under[s.link]--
			default:
				continue
			}
			todo[at], moved = steps[1:], true
		}
	}
	for _, s := range todo {
		left += len(s)
	}
	return left
}

// makespan is the time of a step when each half takes one unit and messages
// take none.
func makespan(stages, micros int) (end int) {
	type half struct {
		at, micro int
		half      program.Half
	}
	done := map[half]int{}
	clock, next := make([]int, stages), make([]int, stages)
	for range stages * 2 * micros { // each pass runs at least one turn
		for at := range stages {
			turns := program.Schedule(at, stages, micros)
			if next[at] == len(turns) {
				continue
			}
			turn := turns[next[at]]
			before := half{at - 1, turn.Micro, turn.Half}
			if turn.Half == program.Back {
				before.at = at + 1
			}
			ready, ok := done[before]
			if !ok && 0 <= before.at && before.at < stages {
				continue
			}
			clock[at] = max(clock[at], ready) + 1
			done[half{at, turn.Micro, turn.Half}] = clock[at]
			next[at]++
			end = max(end, clock[at])
		}
	}
	return end
}

func TestHalves(t *testing.T) {
	p := &program.Program{Ops: make([]*program.Op, 7), Cut: 3}
	for h, want := range map[program.Half][2]int{program.Fore: {0, 3}, program.Back: {3, 7}, program.Whole: {0, 7}} {
		if lo, hi := h.Range(p); lo != want[0] || hi != want[1] {
			t.Errorf("%v: ops %d to %d, want %v", h, lo, hi, want)
		}
	}
}
