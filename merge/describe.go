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
	"pleach/weights"
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

// files is the number of files that the tensors are written to.
func (p *Plan) files() (int, error) {
	list := make([]weights.Source, len(p.Tensors))
	for i, t := range p.Tensors {
		none := func(int, int, []byte) error { return nil }
		list[i] = weights.Source{Name: t.Name, DType: t.DType, Shape: t.Shape, Raw: none}
	}
	w, err := weights.NewPlan("model", p.Options.ShardBytes, list)
	if err != nil {
		return 0, err
	}
	return len(w.Files), nil
}

// Describe writes what a plan would do: models, tensors with shape, type, sources
// and parameters, and totals. Layers that are alike are one entry, and names of
// inputs are shown where they are not those of the output.
//
//	model.layers.0-31.mlp.up_proj.weight  [11008 4096] bf16  ×32
//	    org/base  base
//	    org/chat  weight 0.5, density 0.3
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
	fmt.Fprintln(b)
	for _, g := range p.groups() {
		p.describe(b, g)
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
	files, err := p.files()
	if err != nil {
		return err
	}
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

// group is tensors that are alike but for the numbers of consecutive layers.
type group struct {
	t           *Tensor // the first
	template    string  // with a star, if these are layers
	first, last int     // layers of the output
	count       int
	lines       []string // its sources and parameters
}

// groups are all tensors: those before the layers by name, then layers in order.
func (p *Plan) groups() []*group {
	var list []*group
	for i := range p.Tensors {
		t := &p.Tensors[i]
		template, _, layer, ok := splitLayer(t.Name)
		if !ok {
			layer = -1
		}
		list = append(list, &group{
			t: t, template: template, first: layer, last: layer, count: 1, lines: p.inputs(t, layer),
		})
	}
	slices.SortStableFunc(list, func(a, b *group) int {
		return cmp.Or(cmp.Compare(a.first, b.first), strings.Compare(a.template, b.template))
	})
	var merged []*group
	open := map[string]*group{}
	for _, g := range list {
		if h := open[g.template]; h != nil && h.last >= 0 && h.last+1 == g.first && h.alike(g) {
			h.last, h.count = g.last, h.count+1
			continue
		}
		open[g.template] = g
		merged = append(merged, g)
	}
	return merged
}

func (g *group) alike(h *group) bool {
	return slices.Equal(g.t.Shape, h.t.Shape) && g.t.DType == h.t.DType && slices.Equal(g.lines, h.lines)
}

// inputs are the lines below a tensor. The name of an input is shown where it is
// another: with the distance of layers, so that groups have the same lines.
func (p *Plan) inputs(t *Tensor, layer int) []string {
	width := len("all")
	for _, in := range t.Inputs {
		width = max(width, len(p.Models[in.Model].Name))
	}
	var lines []string
	for i, in := range t.Inputs {
		var notes []string
		if i == t.Base {
			notes = append(notes, "base")
		}
		notes = append(notes, values(in.Params)...)
		if in.Name != t.Name {
			notes = append(notes, "from "+source(in.Name, layer))
		}
		if !slices.Equal(in.Shape, t.Shape) {
			notes = append(notes, fmt.Sprintf("shape %v", in.Shape))
		}
		if in.DType != t.DType {
			notes = append(notes, "type "+in.DType.String())
		}
		lines = append(lines, strings.TrimRight(fmt.Sprintf("    %-*s  %s", width,
			p.Models[in.Model].Name, strings.Join(notes, ", ")), " "))
	}
	if all := values(t.Global); len(all) > 0 && !t.Copy {
		lines = append(lines, fmt.Sprintf("    %-*s  %s", width, "all", strings.Join(all, ", ")))
	}
	return lines
}

// source is the name of an input with the distance from the layer of the output.
func source(name string, layer int) string {
	template, _, n, ok := splitLayer(name)
	if !ok || layer < 0 {
		return name
	}
	if n == layer {
		return strings.Replace(template, "*", "(same layer)", 1)
	}
	return strings.Replace(template, "*", fmt.Sprintf("(layer%+d)", n-layer), 1)
}

// values are parameters, sorted: "weight 0.5".
func values(vs method.Values) []string {
	var list []string
	for _, name := range slices.Sorted(maps.Keys(vs)) {
		list = append(list, name+" "+strconv.FormatFloat(vs[name], 'g', 7, 64))
	}
	return list
}

func (p *Plan) describe(b *bufio.Writer, g *group) {
	name := g.t.Name
	if g.count > 1 {
		name = strings.Replace(g.template, "*", fmt.Sprintf("%d-%d", g.first, g.last), 1)
	}
	fmt.Fprintf(b, "%s  %v %v", name, g.t.Shape, g.t.DType)
	if g.t.Copy {
		fmt.Fprint(b, ", copied")
	}
	if g.count > 1 {
		fmt.Fprintf(b, "  ×%d", g.count)
	}
	fmt.Fprintln(b)
	for _, line := range g.lines {
		fmt.Fprintln(b, line)
	}
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
