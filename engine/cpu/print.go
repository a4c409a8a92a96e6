// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package cpu

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"pleach/program"
)

// Print writes how an engine with these options runs p, with up to slots
// micro-batches between their halves, and allocates none of it: what each pass
// has changed, and then the steps with their operands, FLOPs, bytes, buffers of
// their own, scratch of each worker, and bytes of temporaries alive. A star marks
// what is updated in place; @ is where a value lies in the arena, = an output that
// lies over an operand.
func Print(w io.Writer, p *program.Program, o Options, slots int) error {
	if err := checkOps(p); err != nil {
		return err
	}
	s := newSchedule(p, o.chosen().Level, usual, true)
	plan := s.plan(slots)
	var b strings.Builder
	fmt.Fprintf(&b, "engine cpu, %v kernels: program %s, %d ops in %d steps\n", s.level, p.Name, len(p.Ops), len(s.steps))
	s.printPasses(&b)
	s.printSteps(&b, plan)
	flops, bytes := 0, 0
	for _, st := range s.steps {
		flops, bytes = flops+st.flops(), bytes+st.bytes()
	}
	fmt.Fprintf(&b, "total %d FLOPs, %d bytes read and written; arena %d bytes = %d slots of %d and %d, live peak %d\n",
		flops, bytes, plan.Bytes, slots, plan.Slot, plan.Work, plan.Peak)
	_, err := io.WriteString(w, b.String())
	return err
}

// printPasses says what each pass does and how often it did: by the names of the
// steps that it changed.
func (s *schedule) printPasses(b *strings.Builder) {
	t := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	for _, n := range s.notes {
		fmt.Fprintf(t, "pass %s\t%d\t%s\n", n.pass.name, len(n.steps), n.pass.says)
		for _, line := range n.lines() {
			fmt.Fprintf(t, "\t\t  %s\n", line)
		}
	}
	t.Flush()
}

// lines counts the changed steps by name, in order of appearance.
func (n note) lines() (lines []string) {
	count := map[string]int{}
	var names []string
	for _, st := range n.steps {
		if name := st.name(); count[name] == 0 {
			names = append(names, name)
		}
		count[st.name()]++
	}
	for _, name := range names {
		lines = append(lines, fmt.Sprintf("%d × %s", count[name], name))
	}
	return lines
}

func (s *schedule) printSteps(b *strings.Builder, plan *program.Plan) {
	t := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "#\tstep\toutputs ← operands\tFLOPs\tbytes\town buffers\tscratch\tlive\n")
	for i, st := range s.steps {
		if i == s.cut && i > 0 {
			fmt.Fprintf(t, "\t— cut —\t\t\t\t\t\t\n")
		}
		fmt.Fprintf(t, "%d\t%s\t%s\t%d\t%d\t%s\t%d\t%d\n", i, st.name(), st.operands(plan), st.flops(), st.bytes(),
			st.buffers(plan), 4*st.scratch, plan.Live[i])
	}
	t.Flush()
}

// operands is what a step writes, and what it reads.
func (s *step) operands(plan *program.Plan) string {
	var words []string
	for _, v := range s.out {
		switch {
		case v.Role != program.Temp || slices.Contains(s.in, v):
			words = append(words, "*"+v.Name)
		default:
			words = append(words, v.Name+s.under(v, plan)+"@"+place(plan, v))
		}
	}
	words = append(words, "←")
	for _, v := range s.in {
		if !slices.Contains(s.out, v) {
			words = append(words, v.Name)
		}
	}
	return strings.Join(words, " ")
}

// under names the operand that v lies over, if it does.
func (s *step) under(v *program.Value, plan *program.Plan) string {
	for _, pair := range s.over {
		x := pair[1]
		if pair[0] == v && x.Role == program.Temp && plan.Spots[x] == plan.Spots[v] {
			return "=" + x.Name
		}
	}
	return ""
}

// place is where v lies: its byte in the work area, or in the slot.
func place(plan *program.Plan, v *program.Value) string {
	spot := plan.Spots[v]
	if spot.Saved {
		return fmt.Sprintf("slot+%d", spot.Offset)
	}
	return fmt.Sprint(spot.Offset)
}

// buffers is the step's own buffers with their shape.
func (s *step) buffers(plan *program.Plan) string {
	var words []string
	for _, v := range s.own {
		words = append(words, fmt.Sprintf("%s%v@%s", v.Name, v.Shape, place(plan, v)))
	}
	return strings.Join(words, " ")
}
