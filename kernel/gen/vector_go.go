// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"go/format"
	"log"
	"slices"
	"strings"
)

// signature is the parameters and the result.
func (d *definition) signature() string {
	var list []string
	for i, p := range d.params {
		s := p.name
		if i+1 == len(d.params) || d.params[i+1].kind != p.kind {
			s += " " + p.kind
		}
		list = append(list, s)
	}
	s := "(" + strings.Join(list, ", ") + ")"
	if d.result {
		s += " float32"
	}
	return s
}

// args is a call's.
func (d *definition) args() string {
	var list []string
	for _, p := range d.params {
		list = append(list, p.name)
	}
	return strings.Join(list, ", ")
}

func title(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

// vectorGo declares the kernels of an architecture's levels, and what chooses
// between them. Calls are direct: through a value, all pointers would escape.
func vectorGo(defs []definition, levels ...string) *text {
	t := &text{}
	t.p(header)
	if len(levels) == 0 {
		t.p("//go:build !amd64 && !arm64\n")
	}
	t.p("package kernel\n")
	t.p("// n is a multiple of 16, rows and heads are at least 1; ld, lds and skip are bytes.\n")
	for _, level := range levels {
		for _, d := range definedFor(level, defs) {
			t.p("//go:noescape\nfunc %s%s%s\n", d.name, level, d.signature())
		}
	}
	for _, d := range defs {
		t.p("// at%s: %s", title(d.name), strings.ReplaceAll(d.doc, "\n", "\n// "))
		t.p("func at%s(l Level, %s {", title(d.name), d.signature()[1:])
		back := ""
		if d.result {
			back = "return "
		}
		levels := slices.DeleteFunc(slices.Clone(levels), func(level string) bool { return d.only != "" && d.only != level })
		for i, level := range levels {
			if i+1 < len(levels) {
				t.p("if l == %s { %s%s%s(%s)", level, back, d.name, level, d.args())
				if !d.result {
					t.p("return")
				}
				t.p("}")
				continue
			}
			t.p("%s%s%s(%s)", back, d.name, level, d.args())
		}
		if len(levels) == 0 && d.result {
			t.p("return 0")
		}
		t.p("}\n")
	}
	return formatted(t)
}

func formatted(t *text) *text {
	src, err := format.Source(t.Bytes())
	if err != nil {
		log.Fatalf("%v in\n%s", err, t)
	}
	t.Reset()
	t.Write(src)
	return t
}

// eachGo is the elementwise kernels for slices of any length.
func eachGo() *text {
	t := &text{}
	t.p(header + "package kernel\n")
	for _, e := range slices.Concat(elementwise, bf16Kernels, mergeKernels) {
		e.write(t)
	}
	return formatted(t)
}

// write is the kernel on slices: pieces of whole vectors, then the rest in an
// array of 16 of its own, so that it is computed as all others are, and nothing
// beside it is read or written.
func (e *each) write(t *text) {
	all := e.slices()
	def := e.definition()
	var rest, args string
	for _, p := range e.rest {
		rest += fmt.Sprintf(", %s %s", p.name, p.kind)
		args += ", " + p.name
	}
	call := func(first string, at func(i int, s string) string) {
		var list []string
		for i, s := range all {
			list = append(list, at(i, s))
		}
		t.p("at%s(l, %s, %s%s)", title(def.name), strings.Join(list, ", "), first, args)
	}
	t.p("// each%s: %s", title(e.name), e.doc)
	t.p("func each%s(l Level, %s%s) {", title(e.name), e.operands(), rest)
	if len(all) > 1 {
		var l, r []string
		for _, s := range all[1:] {
			l, r = append(l, s), append(r, fmt.Sprintf("%s[:len(%s)]", s, all[0]))
		}
		t.p("%s = %s", strings.Join(l, ", "), strings.Join(r, ", "))
	}
	t.p("for len(%s) >= lanes {\nn := min(len(%s)/lanes*lanes, piece)", all[0], all[0])
	call("n", func(_ int, s string) string { return "&" + s + "[0]" })
	var cut []string
	for _, s := range all {
		cut = append(cut, s+"[n:]")
	}
	t.p("%s = %s\n}", strings.Join(all, ", "), strings.Join(cut, ", "))
	t.p("if len(%s) == 0 {\nreturn\n}", all[0])
	own, count := e.own()
	if n := count["float32"]; n > 0 {
		t.p("var t [%d][lanes]float32", n)
	}
	if n := count["uint16"]; n > 0 {
		t.p("var w [%d][lanes]uint16", n)
	}
	for _, s := range all[len(e.out):] {
		t.p("copy(%s[:], %s)", own[s], s)
	}
	call("lanes", func(_ int, s string) string { return "&" + own[s] + "[0]" })
	for _, s := range all[:len(e.out)+len(e.both)] {
		t.p("copy(%s, %s[:])", s, own[s])
	}
	t.p("}\n")
}

// operands is the slices as parameters.
func (e *each) operands() string {
	var list []string
	all := e.slices()
	for i, s := range all {
		if i+1 == len(all) || e.kind(all[i+1]) != e.kind(s) {
			s += " []" + e.kind(s)
		}
		list = append(list, s)
	}
	return strings.Join(list, ", ")
}

// own is the array for the rest of each operand, t[i] or w[i] by its kind, and how
// many there are of a kind.
func (e *each) own() (own map[string]string, count map[string]int) {
	own, count = map[string]string{}, map[string]int{}
	for _, s := range e.slices() {
		kind := e.kind(s)
		own[s] = fmt.Sprintf("%s[%d]", map[string]string{"float32": "t", "uint16": "w"}[kind], count[kind])
		count[kind]++
	}
	return own, count
}
