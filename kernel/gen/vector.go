// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
)

// vectorFiles are the kernels that work along rows.
func vectorFiles() map[string]*text {
	defs := rowKernels()
	return map[string]*text{
		"vector_avx512_amd64.s": vectorAsm(isaAVX512{amd64{"Z"}}, defs),
		"vector_avx2_amd64.s":   vectorAsm(isaAVX2{amd64{"Y"}}, defs),
		"vector_neon_arm64.s":   vectorAsm(isaNEON{}, defs),
		"vector_amd64.go":       vectorGo(defs, "AVX2", "AVX512"),
		"vector_arm64.go":       vectorGo(defs, "NEON"),
		"vector_other.go":       vectorGo(defs),
		"vector_each.go":        eachGo(),
	}
}

// vectorAsm is all kernels for one instruction set.
func vectorAsm(s isa, defs []definition) *text {
	var body text
	var table []uint32
	for _, d := range definedFor(s.level(), defs) {
		build(&body, s, &table, d)
	}
	t := &text{}
	t.p(header + "#include \"textflag.h\"\n")
	for i, b := range table {
		t.p("DATA number<>+%d(SB)/4, $%#08x", 4*i, b)
	}
	t.p("GLOBL number<>(SB), RODATA|NOPTR, $%d\n", 4*len(table))
	t.Write(body.Bytes())
	return t
}

// definedFor is the kernels that a level has.
func definedFor(level string, defs []definition) []definition {
	return slices.DeleteFunc(slices.Clone(defs), func(d definition) bool { return d.only != "" && d.only != level })
}

// where is a uniform as an operand.
func (k *kern) where(u *uniform) string {
	switch {
	case u.arg != "":
		return fmt.Sprintf("%s+%d(FP)", u.arg, k.offset(u.arg))
	case u.p != "":
		return fmt.Sprintf("%d(%s)", u.off, k.gpr[u.p])
	}
	for i, b := range *k.table {
		if b == u.bits {
			return where(i)
		}
	}
	k.fail("no such number")
	return ""
}

// where is number i of the table as an operand.
func where(i int) string { return fmt.Sprintf("number<>+%d(SB)", 4*i) }

func ptrs(names ...string) []param { return params("*float32", names...) }

func params(kind string, names ...string) (list []param) {
	for _, n := range names {
		list = append(list, param{n, kind})
	}
	return list
}

func join(lists ...[]param) (all []param) {
	for _, l := range lists {
		all = append(all, l...)
	}
	return all
}

// rowKernels are all kernels in assembly.
func rowKernels() []definition {
	var defs []definition
	for _, e := range slices.Concat(elementwise, bf16Kernels) {
		defs = append(defs, e.definition())
	}
	defs = slices.Concat(defs, folds, blocks, []definition{philox})
	for _, e := range mergeKernels {
		defs = append(defs, e.definition())
	}
	return append(defs, mergeFolds...)
}

// each is a kernel whose results i need the operands i only. Operands
// are slices of one length, written ones first.
type each struct {
	name    string
	doc     string
	out     []string // written
	both    []string // read and written
	in      []string // read
	words   []string // those of 16 bits
	rest    []param  // the same for all
	compute func(k *kern)
}

func (e *each) slices() []string {
	return append(append(append([]string{}, e.out...), e.both...), e.in...)
}

func (e *each) definition() definition {
	return definition{
		name: e.name, doc: e.doc,
		params: join(e.pointers(), params("int", "n"), e.rest),
		body:   func(k *kern) { k.loop("n", func() { e.compute(k) }) },
	}
}

// kind is what an operand has elements of.
func (e *each) kind(operand string) string {
	if slices.Contains(e.words, operand) {
		return "uint16"
	}
	return "float32"
}

func (e *each) pointers() (list []param) {
	for _, s := range e.slices() {
		list = append(list, param{s, "*" + e.kind(s)})
	}
	return list
}

var float = func(names ...string) []param { return params("float32", names...) }

var elementwise = []each{
	{
		name: "add", doc: "y = a + b.", out: []string{"y"}, in: []string{"a", "b"},
		compute: func(k *kern) { k.store("y", k.add(k.load("a"), k.load("b"))) },
	},
	{
		name: "scale", doc: "y = c·x.", out: []string{"y"}, in: []string{"x"}, rest: float("c"),
		compute: func(k *kern) { k.store("y", k.mul(k.load("x"), k.arg("c"))) },
	},
	{
		name: "times", doc: "y = a·b.", out: []string{"y"}, in: []string{"a", "b"},
		compute: func(k *kern) { k.store("y", k.mul(k.load("a"), k.load("b"))) },
	},
	{
		name: "norm", doc: "y = w·(x·r).", out: []string{"y"}, in: []string{"x", "w"}, rest: float("r"),
		compute: func(k *kern) { k.store("y", k.mul(k.mul(k.load("x"), k.arg("r")), k.load("w"))) },
	},
	{
		name: "normGradX", doc: "d = r·(w·dy − x·c).",
		out: []string{"d"}, in: []string{"dy", "x", "w"}, rest: float("c", "r"),
		compute: func(k *kern) {
			wg := k.mul(k.load("w"), k.load("dy"))
			k.store("d", k.mul(k.fnma(k.load("x"), k.arg("c"), wg), k.arg("r")))
		},
	},
	{
		name: "normGradW", doc: "d += dy·(x·r).",
		both: []string{"d"}, in: []string{"dy", "x"}, rest: float("r"),
		compute: normGradW,
	},
	{
		name: "swiglu", doc: "y = a/(1+e^−a)·u.", out: []string{"y"}, in: []string{"a", "u"},
		compute: func(k *kern) { k.store("y", gated(k, k.load("a"), k.load("u"))) },
	},
	{
		name: "swigluGrad", doc: "d = dy·u·σ·(1 + a·(1−σ)) and e = dy·σ·a with σ = 1/(1+e^−a).",
		out: []string{"d", "e"}, in: []string{"dy", "a", "u"},
		compute: func(k *kern) {
			d, e := gatedGrad(k, k.load("dy"), k.load("a"), k.load("u"))
			k.store("d", d)
			k.store("e", e)
		},
	},
	{
		name: "adamw", doc: "The update of AdamW.",
		both: []string{"p", "m", "v"}, in: []string{"dy"},
		rest:    join(float("scale"), params("*AdamWStep", "s")),
		compute: adamw,
	},
	{
		name: "exp", doc: "y = e^(x−c), 0 below 2^−126; c is at least x or little less.",
		out: []string{"y"}, in: []string{"x"}, rest: float("c"),
		compute: func(k *kern) {
			x := k.min(k.number(88), k.sub(k.load("x"), k.arg("c")))
			k.store("y", exp(k, x))
		},
	},
	{
		name: "softmaxEnd", doc: "corr = e^corr, sum = sum·corr + part.",
		both: []string{"corr", "sum"}, in: []string{"part"},
		compute: func(k *kern) {
			c := exp(k, k.load("corr"))
			sum := k.fma(k.load("sum"), c, k.load("part"))
			k.store("corr", c)
			k.store("sum", sum)
		},
	},
}

func normGradW(k *kern) {
	k.store("d", k.fma(k.mul(k.load("x"), k.arg("r")), k.load("dy"), k.load("d")))
}

// gated is a/(1+e^−a)·u.
func gated(k *kern, a, u *val) *val {
	_, den := logistic(k, a)
	return k.mul(k.div(a, den), u)
}

// gatedGrad: 1−σ is σ·e^−a, without the cancellation of the subtraction; where
// e^−a is beyond float32, σ is 0 and so is the gradient.
func gatedGrad(k *kern, dy, a, u *val) (d, e *val) {
	t, den := logistic(k, a)
	s := k.div(k.number(1), den)
	f := k.fma(k.mul(k.mul(t, s), a), k.number(2), k.number(1))
	h := k.mul(s, dy)
	return k.mul(k.mul(h, u), f), k.mul(h, a)
}

// adamw has the constants in the order of AdamWStep.
func adamw(k *kern) {
	c := func(i int) *val { return k.field("s", 4*i) }
	beta1, beta2, new1, new2, bias1, bias2, eps, lr, decay := c(0), c(1), c(2), c(3), c(4), c(5), c(6), c(7), c(8)
	g := k.mul(k.load("dy"), k.arg("scale"))
	m := k.fma(k.load("m"), beta1, k.mul(g, new1))
	k.store("m", m)
	v := k.fma(k.load("v"), beta2, k.mul(k.mul(g, g), new2))
	k.store("v", v)
	u := k.div(k.mul(m, bias1), k.add(k.sqrt(k.mul(v, bias2)), eps))
	p := k.load("p")
	k.store("p", k.fnma(k.fma(p, decay, u), lr, p))
}
