// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package program

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// Print writes the program as a table: per op the phase (forward, recompute,
// backward, update), outputs and operands, the first output's type and spread,
// the line of the model, FLOPs, bytes read and written, bytes on the wire, and
// bytes of temporaries alive. A star marks what is updated in place.
func (p *Program) Print(w io.Writer) error {
	var s strings.Builder
	fmt.Fprintf(&s, "program %s  mesh data %d × pipe %d × tensor %d\n", p.Name,
		p.Mesh.Size(Data), p.Mesh.Size(Pipe), p.Mesh.Size(Tensor))
	for _, r := range []Role{Input, Weight, State} {
		for _, v := range p.Held(r) {
			fmt.Fprintf(&s, "%-6v %-20s %-16s %v\n", r, v.Name, shape(v), v.Spread)
		}
	}
	p.printOps(&s)
	_, err := io.WriteString(w, s.String())
	return err
}

func (p *Program) printOps(s *strings.Builder) {
	rows := [][]string{
		{"#", "φ", "op", "outputs ← operands", "shape", "spread", "from", "FLOPs", "bytes", "wire", "live"},
	}
	plan := MakePlan(p, 1)
	cut := -1
	for i, op := range p.Ops {
		if i == p.Cut && i > 0 {
			cut = len(rows)
		}
		sh, sp := "", ""
		if len(op.Out) > 0 {
			sh, sp = shape(op.Out[0]), op.Out[0].Spread.String()
		}
		rows = append(rows, []string{
			fmt.Sprint(i), op.Phase.String(), title(op), operands(op), sh, sp, op.Where,
			fmt.Sprint(op.FLOPs()), fmt.Sprint(op.Bytes()), fmt.Sprint(op.Wire(p.Mesh)), fmt.Sprint(plan.Live[i]),
		})
	}
	table(s, rows, cut)
	c := p.Cost()
	fmt.Fprintf(s, "total %d FLOPs, %d bytes read and written, %d bytes on the wire; arena %d bytes, live peak %d\n",
		c.FLOPs, c.Bytes, c.Wire, plan.Bytes, plan.Peak)
}

// table writes rows in columns as wide as they need to be, numbers to the
// right, with a line before row cut.
func table(s *strings.Builder, rows [][]string, cut int) {
	const left = 7 // the columns from the third to here are text
	width := make([]int, len(rows[0]))
	for _, r := range rows {
		for i, c := range r {
			width[i] = max(width[i], len([]rune(c)))
		}
	}
	for n, r := range rows {
		if n == cut {
			s.WriteString("— cut —\n")
		}
		for i, c := range r {
			pad := strings.Repeat(" ", width[i]-len([]rune(c)))
			switch {
			case i == 0 || i >= left:
				s.WriteString(pad + c)
			default:
				s.WriteString(c + pad)
			}
			if i < len(r)-1 {
				s.WriteString(" ")
			}
		}
		s.WriteString("\n")
	}
}

func shape(v *Value) string { return fmt.Sprintf("%s%v", v.Type, v.Shape) }

// title is the kind with what is needed to tell collectives apart.
func title(op *Op) string {
	a, s := op.Attr, op.Kind.String()
	if a.Axis != 0 {
		s += " " + a.Axis.String()
	}
	if a.Step != 0 {
		s += fmt.Sprintf(" %+d", a.Step)
	}
	if a.Copies > 0 {
		s += fmt.Sprintf("/%d", a.Copies)
	}
	if a.Stochastic {
		s += " stochastic"
	}
	if op.Kind == OpAllReduce && a.Hi > 0 {
		s += fmt.Sprintf(" %d:%d", a.Lo, a.Hi)
	}
	return s
}

func operands(op *Op) string {
	var s []string
	for _, v := range op.Out {
		if v.Role != Temp || slices.Contains(op.In, v) {
			s = append(s, "*"+v.Name)
		} else {
			s = append(s, v.Name)
		}
	}
	s = append(s, "←")
	for _, v := range op.In {
		if !slices.Contains(op.Out, v) {
			s = append(s, v.Name)
		}
	}
	return strings.Join(s, " ")
}
