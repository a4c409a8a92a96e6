// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"pleach/internal/unit"
	"pleach/merge/method"
)

// Bytes is how many bytes of tensors one pass reads, and how many are written.
// Adapters and what building a vocabulary reads do not count.
func (p *Plan) Bytes() (read, written int64) {
	for i := range p.Tensors {
		t := &p.Tensors[i]
		written += elements(t.Shape) * int64(t.DType.Size())
		for _, in := range t.Inputs {
			n := elements(in.Shape)
			if t.Embed && p.Vocabulary == nil && len(in.Shape) == 2 { // whole rows, those that remain
				n = int64(min(in.Shape[0], t.Shape[0])) * int64(in.Shape[1])
			}
			read += n * int64(in.DType.Size())
		}
	}
	return read, written
}

// elements is the number of elements of a shape.
func elements(shape []int) int64 {
	n := int64(1)
	for _, d := range shape {
		n *= int64(d)
	}
	return n
}

// Describe writes what a plan would do: models, tensors with shape, type, sources
// and parameters, and totals. Layers that follow each other are one line, with n for
// their numbers; tensors with the same sources and parameters share what stands
// below them. Where layers have different values, these are listed in order.
//
//	model.layers.0-3.mlp.down_proj.weight  [4096 11008] bf16  ×4
//	model.layers.0-3.mlp.up_proj.weight    [11008 4096] bf16  ×4
//	    org/base  base
//	    org/chat  density 0.3, weight 0 0.25 0.5 0.75
//	    all       lambda 1, normalize 1
func (p *Plan) Describe(w io.Writer) error {
	b := bufio.NewWriter(w)
	fmt.Fprintf(b, "method %s\n", p.Method.Name)
	for i, m := range p.Models {
		role := ""
		if i == p.Base {
			role += "  base"
		}
		if i == p.Donor {
			role += "  gives config.json and tokenizer"
		}
		fmt.Fprintf(b, "model %s%s\n", m.Name, role)
	}
	if v := p.Vocabulary; v != nil {
		fmt.Fprintf(b, "vocabulary of %s tokens in %s rows\n", unit.Digits(int64(v.Tokens)), unit.Digits(int64(v.Rows)))
	}
	for _, k := range p.blocks() {
		k.write(b)
	}
	p.rest(b)
	if err := p.totals(b); err != nil {
		return err
	}
	return b.Flush()
}

// rest names the tensors that are left out.
func (p *Plan) rest(b *bufio.Writer) {
	if len(p.Dropped) > 0 {
		fmt.Fprintf(b, "\nnot in the output, since the architecture does not name them:\n")
		for _, r := range ranges(p.Dropped) {
			fmt.Fprintf(b, "    %s\n", r)
		}
	}
}

func (p *Plan) totals(b *bufio.Writer) error {
	read, written := p.Bytes()
	var n int64
	for i := range p.Tensors {
		n += elements(p.Tensors[i].Shape)
	}
	layout, err := p.Layout()
	if err != nil {
		return err
	}
	files := len(layout.Files)
	fmt.Fprintf(b, "\n%s tensors of %s elements; %s to read in each pass, %s to write in %d %s\n",
		unit.Digits(int64(len(p.Tensors))), unit.Digits(n), unit.Bytes(read).Rounded(),
		unit.Bytes(written).Rounded(), files, plural("file", files))
	return nil
}

func plural(noun string, n int) string {
	if n == 1 {
		return noun
	}
	return noun + "s"
}

// layerGroup is a tensor, or the same tensor of consecutive layers.
type layerGroup struct {
	template    string // of the name, with a star for the layer
	first, last int    // layers of the output; −1 for none
	about       string // shape and type
	rows        []row
}

// row is what is said of an input, or of all.
type row struct {
	label, notes string
	names        []string    // of parameters
	values       [][]float64 // of each, in the order of layers
}

// alike says that two groups differ in their layers and values alone.
func (g *layerGroup) alike(h *layerGroup) bool {
	same := func(a, b row) bool {
		return a.label == b.label && a.notes == b.notes && slices.Equal(a.names, b.names)
	}
	return g.about == h.about && slices.EqualFunc(g.rows, h.rows, same)
}

// groups are all tensors: those outside the layers, then layers in order.
func (p *Plan) groups() []*layerGroup {
	var list []*layerGroup
	for i := range p.Tensors {
		list = append(list, p.group(&p.Tensors[i]))
	}
	slices.SortStableFunc(list, func(a, b *layerGroup) int {
		return cmp.Or(cmp.Compare(a.first, b.first), strings.Compare(a.template, b.template))
	})
	var merged []*layerGroup
	open := map[string]*layerGroup{}
	for _, g := range list {
		h := open[g.template]
		if h == nil || h.first < 0 || h.last+1 != g.first || !h.alike(g) {
			open[g.template] = g
			merged = append(merged, g)
			continue
		}
		h.last = g.last
		for i, r := range g.rows {
			for k := range r.values {
				h.rows[i].values[k] = append(h.rows[i].values[k], r.values[k]...)
			}
		}
	}
	return merged
}

// group is one tensor.
func (p *Plan) group(t *Tensor) *layerGroup {
	g := &layerGroup{about: fmt.Sprintf("%v %v", t.Shape, t.DType)}
	var ok bool
	if g.template, _, g.first, ok = splitLayer(t.Name); !ok {
		g.first = -1
	}
	g.last = g.first
	if t.Copy {
		g.about += ", copied"
	}
	for i, in := range t.Inputs {
		r := row{label: p.Models[in.Model].Name}
		var notes []string
		if i == t.Base {
			notes = append(notes, "base")
		}
		if in.Name != t.Name {
			notes = append(notes, "from "+from(in.Name, g))
		}
		if !slices.Equal(in.Shape, t.Shape) {
			notes = append(notes, fmt.Sprintf("shape %v", in.Shape))
		}
		if in.DType != t.DType {
			notes = append(notes, "stored as "+in.DType.String())
		}
		r.notes = strings.Join(notes, ", ")
		if !t.Copy && (i != t.Base || p.Method.Base == method.BaseInput) {
			r.set(in.Params)
		}
		g.rows = append(g.rows, r)
	}
	if len(t.Global) > 0 && !t.Copy {
		all := row{label: "all"}
		all.set(t.Global)
		g.rows = append(g.rows, all)
	}
	return g
}

// set takes parameters in the order of their names.
func (r *row) set(vs method.Values) {
	r.names = slices.Sorted(maps.Keys(vs))
	for _, name := range r.names {
		r.values = append(r.values, []float64{vs[name]})
	}
}

// from is the name of an input that is not that of the output. n is the layer of
// the output.
func from(name string, g *layerGroup) string {
	template, _, layer, ok := splitLayer(name)
	if !ok || g.first < 0 {
		return name
	}
	n := "n"
	if layer != g.first {
		n = fmt.Sprintf("n%+d", layer-g.first)
	}
	if template == g.template {
		return "layer " + n
	}
	return strings.Replace(template, "*", n, 1)
}

// text is a row: values that all layers share are said once.
func (r *row) text(width int) string {
	var parts []string
	if r.notes != "" {
		parts = append(parts, r.notes)
	}
	for i, name := range r.names {
		vs := r.values[i]
		if !slices.ContainsFunc(vs, func(x float64) bool { return x != vs[0] }) {
			vs = vs[:1]
		}
		s := name
		for _, x := range vs {
			s += " " + strconv.FormatFloat(x, 'g', 5, 64)
		}
		parts = append(parts, s)
	}
	return strings.TrimRight(fmt.Sprintf("    %-*s  %s", width, r.label, strings.Join(parts, ", ")), " ")
}

// block is groups of which the same is said.
type block struct {
	groups []*layerGroup
	below  string
}

// blocks puts groups together.
func (p *Plan) blocks() []*block {
	var list []*block
	at := map[string]*block{}
	for _, g := range p.groups() {
		width := 0
		for _, r := range g.rows {
			width = max(width, len(r.label))
		}
		below := ""
		for i := range g.rows {
			below += g.rows[i].text(width) + "\n"
		}
		key := fmt.Sprint(g.first, g.last, below)
		k := at[key]
		if k == nil {
			k = &block{below: below}
			at[key] = k
			list = append(list, k)
		}
		k.groups = append(k.groups, g)
	}
	return list
}

func (k *block) write(b *bufio.Writer) {
	fmt.Fprintln(b)
	var names []string
	width := 0
	for _, g := range k.groups {
		name := g.template
		if g.first >= 0 {
			name = strings.Replace(name, "*", strconv.Itoa(g.first), 1)
		}
		if g.last > g.first {
			name = strings.Replace(g.template, "*", fmt.Sprintf("%d-%d", g.first, g.last), 1)
		}
		names = append(names, name)
		width = max(width, len(name))
	}
	for i, g := range k.groups {
		fmt.Fprintf(b, "%-*s  %s", width, names[i], g.about)
		if n := g.last - g.first + 1; n > 1 {
			fmt.Fprintf(b, "  ×%d", n)
		}
		fmt.Fprintln(b)
	}
	fmt.Fprint(b, k.below)
}

// ranges writes names of layers that follow each other as one.
func ranges(names []string) []string {
	layers := map[string][]int{}
	var list []string
	for _, name := range names {
		template, _, layer, ok := splitLayer(name)
		if _, seen := layers[template]; !seen {
			list = append(list, template)
		}
		layers[template] = append(layers[template], layer)
		if !ok {
			layers[template] = nil
		}
	}
	for i, template := range list {
		ns := layers[template]
		if len(ns) == 0 {
			continue
		}
		slices.Sort(ns)
		var runs []string
		for len(ns) > 0 {
			k := 1
			for k < len(ns) && ns[k] == ns[0]+k {
				k++
			}
			run := strconv.Itoa(ns[0])
			if k > 1 {
				run += "-" + strconv.Itoa(ns[k-1])
			}
			runs, ns = append(runs, run), ns[k:]
		}
		list[i] = strings.Replace(template, "*", strings.Join(runs, ","), 1)
	}
	return list
}
