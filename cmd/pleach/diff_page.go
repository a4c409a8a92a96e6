// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"math"
	"unicode/utf8"

	"pleach/merge/compare"
)

// diffPage is what the page of diff shows.
type diffPage struct {
	Models []fact
	Notes  []string
	Pairs  []diffPair
}

type diffPair struct {
	Title string
	Words []string
	Maps  []heatMap
}

// heatMap is a figure by layer (down) and kind (across), in units of its drawing.
type heatMap struct {
	Title         string
	Width, Height int
	Labels        []heatLabel
	Cells         []heatCell
	Scale         []heatCell // the colours from the least to the largest
	Low, High     string
	ScaleWidth    int
}

type heatLabel struct {
	X, Y   int
	Anchor string
	Text   string
}

type heatCell struct {
	X, Y, W, H  int
	Fill, Ink   string
	Text, Title string
	TextX       int
	TextY       int
}

// Sizes of a map.
const (
	heatWidth  = 58 // of a cell
	heatHeight = 20
	heatGap    = 6 // before the sums
	heatHead   = 22
	heatLetter = 7  // of a label
	heatSteps  = 24 // of the legend
)

// page writes a page with a map of every figure of every pair.
func (d *comparison) page(w io.Writer) error {
	p := diffPage{}
	for i, m := range d.models {
		p.Models = append(p.Models, fact{letter(i), visible(m.Name)})
	}
	if d.base != nil {
		p.Models = append(p.Models, fact{"base", visible(d.base.Name)})
	}
	p.Models = append(p.Models, fact{"compared", fmt.Sprintf("%d tensors, %s elements",
		len(d.result.Tensors), grouped(float64(d.grid.All.Elements)))})
	for _, n := range d.result.Notes {
		p.Notes = append(p.Notes, visible(n))
	}
	for i := range d.models {
		for j := i + 1; j < len(d.models); j++ {
			pair := diffPair{Title: as("A and B", i, j)}
			for _, line := range d.words(i, j) {
				pair.Words = append(pair.Words, visible(line))
			}
			for _, m := range metrics() {
				if !m.task || d.base != nil {
					pair.Maps = append(pair.Maps, d.heat(m, i, j))
				}
			}
			p.Pairs = append(p.Pairs, pair)
		}
	}
	return diffTemplate.Execute(w, p)
}

// heat draws a figure of a pair. Sums over rows and columns stand at the sides.
func (d *comparison) heat(m metric, i, j int) heatMap {
	g := d.grid
	left := 0
	for k := range g.Rows {
		left = max(left, heatLetter*utf8.RuneCountInString(visible(g.Rows[k].Label)))
	}
	left = max(left, heatLetter*len("outside")) + 10
	x := func(k int) int { return left + k*heatWidth + heatGap*(k/len(g.Kinds)) }
	y := func(k int) int { return heatHead + k*heatHeight + heatGap*(k/len(g.Rows)) }
	h := heatMap{
		Title: as(m.says, i, j), Width: x(len(g.Kinds)) + heatWidth, Height: y(len(g.Rows)) + heatHeight,
	}
	spread := newHeatRange(m, i, j)
	d.cells(func(_, _ int, s *compare.Sums) { spread.see(s) })
	d.cells(func(row, kind int, s *compare.Sums) {
		v := m.of(s.Figures(i, j))
		if v != v {
			return
		}
		c := heatCell{X: x(kind), Y: y(row), W: heatWidth - 1, H: heatHeight - 1, Text: m.text(v)}
		c.TextX, c.TextY = c.X+heatWidth/2, c.Y+heatHeight-6
		c.Fill, c.Ink = spread.colour(v)
		c.Title = fmt.Sprintf("%s, %s: %s", d.rowName(row), d.kindName(kind), c.Text)
		h.Cells = append(h.Cells, c)
	})
	for k := range len(g.Kinds) + 1 {
		h.Labels = append(h.Labels, heatLabel{x(k) + heatWidth/2, heatHead - 7, "middle", d.kindName(k)})
	}
	for k := range len(g.Rows) + 1 {
		label := "all"
		if k < len(g.Rows) {
			label = visible(g.Rows[k].Label)
		}
		h.Labels = append(h.Labels, heatLabel{left - 6, y(k) + heatHeight - 6, "end", label})
	}
	spread.legend(&h)
	return h
}

// cells visits layers by kinds, and then their sums, which have the next numbers.
func (d *comparison) cells(visit func(row, kind int, s *compare.Sums)) {
	g := d.grid
	for r := range g.Rows {
		for k, s := range g.Rows[r].Cells {
			if s != nil {
				visit(r, k, s)
			}
		}
		visit(r, len(g.Kinds), &g.Rows[r].All)
	}
	for k, s := range g.ByKind {
		visit(len(g.Rows), k, s)
	}
	visit(len(g.Rows), len(g.Kinds), &g.All)
}

func (d *comparison) rowName(row int) string {
	switch {
	case row == len(d.grid.Rows):
		return "all"
	case d.grid.Rows[row].Layer < 0:
		return "outside the layers"
	}
	return "layer " + visible(d.grid.Rows[row].Label)
}

func (d *comparison) kindName(kind int) string {
	if kind == len(d.grid.Kinds) {
		return "all"
	}
	return d.grid.Kinds[kind]
}

// heatRange is the range of a figure that the colours spread over; of a figure with
// two sides of 0, as far on both.
type heatRange struct {
	metric   metric
	i, j     int
	low, top float64
}

func newHeatRange(m metric, i, j int) *heatRange {
	return &heatRange{m, i, j, math.Inf(1), math.Inf(-1)}
}

func (r *heatRange) see(s *compare.Sums) {
	v := r.metric.of(s.Figures(r.i, r.j))
	if v != v {
		return
	}
	r.low, r.top = min(r.low, v), max(r.top, v)
	if r.metric.signed {
		r.top = max(r.top, -r.low)
		r.low = -r.top
	}
}

// The colours from low to high: dark blue over green to yellow, which is read the
// same without seeing colours; and blue over white to red for two sides.
var (
	oneSide  = [][3]float64{{68, 1, 84}, {59, 82, 139}, {33, 145, 140}, {94, 201, 98}, {253, 231, 37}}
	twoSides = [][3]float64{{33, 102, 172}, {247, 247, 247}, {178, 24, 43}}
)

// colour is that of a value, and one of text that can be read on it.
func (r *heatRange) colour(v float64) (fill, ink string) {
	stops := oneSide
	if r.metric.signed {
		stops = twoSides
	}
	t := 0.5
	if r.top > r.low {
		t = (v - r.low) / (r.top - r.low)
	}
	at := t * float64(len(stops)-1)
	k := min(int(at), len(stops)-2)
	var c [3]float64
	for n := range c {
		c[n] = math.Round(stops[k][n] + (at-float64(k))*(stops[k+1][n]-stops[k][n]))
	}
	ink = "#fff"
	if 0.299*c[0]+0.587*c[1]+0.114*c[2] > 140 { // how bright it looks, of 255
		ink = "#111"
	}
	return fmt.Sprintf("#%02x%02x%02x", int(c[0]), int(c[1]), int(c[2])), ink
}

func (r *heatRange) legend(h *heatMap) {
	if r.low > r.top {
		return // nothing is defined
	}
	const w = 10
	h.ScaleWidth = w * heatSteps
	h.Low, h.High = r.metric.text(r.low), r.metric.text(r.top)
	for k := range heatSteps {
		v := r.low + (r.top-r.low)*float64(k)/(heatSteps-1)
		fill, _ := r.colour(v)
		h.Scale = append(h.Scale, heatCell{X: k * w, W: w, H: 12, Fill: fill, Title: r.metric.text(v)})
	}
}

var diffTemplate = newPage("diff", `{{define "title"}}How models differ{{end}}{{template "head" .}}
<style>
body { max-width: 76rem; }
figure { margin: 1.5rem 0; overflow-x: auto; }
.scale { display: flex; gap: .5rem; align-items: center; font-size: 12px; }
.scale svg { margin: 0; }
</style>
<h1>How models differ</h1>
<table>
{{range .Models}}<tr><th>{{.Name}}</th><td>{{.Value}}</td></tr>
{{end}}</table>
{{range .Notes}}<p>{{.}}</p>
{{end}}{{range .Pairs}}
<h2>{{.Title}}</h2>
{{range .Words}}<p>{{.}}</p>
{{end}}{{range .Maps}}<figure>
<figcaption>{{.Title}}</figcaption>
<svg width="{{.Width}}" height="{{.Height}}" viewBox="0 0 {{.Width}} {{.Height}}" role="img" aria-label="{{.Title}}">
{{range .Labels}}<text x="{{.X}}" y="{{.Y}}" text-anchor="{{.Anchor}}">{{.Text}}</text>
{{end}}{{range .Cells}}<g><title>{{.Title}}</title><rect x="{{.X}}" y="{{.Y}}" width="{{.W}}" height="{{.H}}" fill="{{.Fill}}"></rect><text x="{{.TextX}}" y="{{.TextY}}" text-anchor="middle" style="fill: {{.Ink}}">{{.Text}}</text></g>
{{end}}</svg>
{{if .Scale}}<div class="scale"><span>{{.Low}}</span><svg width="{{.ScaleWidth}}" height="12" role="img" aria-label="colours">
{{range .Scale}}<g><title>{{.Title}}</title><rect x="{{.X}}" y="0" width="{{.W}}" height="{{.H}}" fill="{{.Fill}}"></rect></g>
{{end}}</svg><span>{{.High}}</span></div>
{{end}}</figure>
{{end}}{{end}}</html>
`)
