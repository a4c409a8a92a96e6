// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"math"
	"strings"
)

// sweepView is what the page of a sweep shows.
type sweepView struct {
	What   string
	Charts []curve
}

// curve is the perplexity of one text over a parameter, in units of its drawing.
type curve struct {
	Name          string
	Width, Height int
	Line          string // points of the curve
	Points        []curvePoint
	Levels        []curveLevel // the inputs
	Ticks         []curveTick
	Rows          []curveRow
}

type curvePoint struct {
	X, Y  int
	Best  bool
	Title string
}

type curveLevel struct {
	Y     int
	Label string
}

type curveTick struct {
	X, Y  int
	Label string
}

type curveRow struct{ Value, Perplexity, Bits string }

// Sizes of a curve: the drawing and the room for labels around it.
const (
	curveWidth  = 640
	curveHeight = 260
	curveLeft   = 70
	curveRight  = 190
	curveTop    = 14
	curveBottom = 34
)

// sweepPage writes one page that needs nothing else.
func (o *merging) sweepPage(w io.Writer, inputs []modelRow, points []swept) error {
	v := sweepView{What: visible(o.steps.String())}
	for k := range points[0].all {
		v.Charts = append(v.Charts, curveOf(k, inputs, points))
	}
	return sweepTemplate.Execute(w, v)
}

// curveOf draws text k.
func curveOf(k int, inputs []modelRow, points []swept) curve {
	c := curve{
		Name: visible(points[0].all[k].Name), Width: curveLeft + curveWidth + curveRight,
		Height: curveTop + curveHeight + curveBottom,
	}
	least, most := math.Inf(1), math.Inf(-1)
	see := func(v float64) { least, most = min(least, v), max(most, v) }
	for _, p := range points {
		see(p.all[k].Perplexity)
	}
	for _, m := range inputs {
		see(m.all[k].Perplexity)
	}
	if most == least {
		most = least + 1
	}
	first, last := points[0].value, points[len(points)-1].value
	x := func(v float64) int {
		return curveLeft + int(math.Round(curveWidth*(v-first)/max(last-first, 1e-300)))
	}
	y := func(v float64) int { return curveTop + int(math.Round(curveHeight*(most-v)/(most-least))) }
	var line []string
	for i, p := range points {
		r := p.all[k]
		at := curvePoint{x(p.value), y(r.Perplexity), i == best(points, k), fmt.Sprintf("%g: %.4f", p.value, r.Perplexity)}
		c.Points = append(c.Points, at)
		line = append(line, fmt.Sprintf("%d,%d", at.X, at.Y))
		c.Rows = append(c.Rows, curveRow{
			fmt.Sprintf("%g", p.value), fmt.Sprintf("%.4f", r.Perplexity), r.bits(),
		})
	}
	c.Line = strings.Join(line, " ")
	for _, m := range inputs {
		r := m.all[k].Perplexity
		c.Levels = append(c.Levels, curveLevel{y(r), visible(short(m.name)) + fmt.Sprintf(" %.4g", r)})
	}
	for _, v := range []float64{least, (least + most) / 2, most} {
		c.Ticks = append(c.Ticks, curveTick{0, y(v), fmt.Sprintf("%.4g", v)})
	}
	every := (len(points) + 9) / 10
	for i := 0; i < len(points); i += every {
		c.Ticks = append(c.Ticks, curveTick{x(points[i].value), 0, fmt.Sprintf("%g", points[i].value)})
	}
	return c
}

// short is the end of a long name.
func short(name string) string {
	const most = 18
	if r := []rune(name); len(r) > most {
		return "…" + string(r[len(r)-most+1:])
	}
	return name
}

var sweepTemplate = newPage("sweep", `{{define "title"}}Merges over {{.What}}{{end}}{{template "head" .}}
<style>
th, td { text-align: right; padding: .1rem 1rem .1rem 0; }
polyline { fill: none; stroke: #3a7d44; stroke-width: 2; }
circle { fill: #3a7d44; }
circle.best { stroke: #222; stroke-width: 2; }
line { stroke: #999; stroke-dasharray: 5 4; }
.left { text-anchor: end; } .below { text-anchor: middle; }
@media (prefers-color-scheme: dark) { polyline { stroke: #7bc086; } circle { fill: #7bc086; } circle.best { stroke: #eee; } }
</style>
<h1>Merges over {{.What}}</h1>
<p>Perplexity of the merged model; dashed lines are its inputs, the ringed point is the best.</p>
{{range .Charts}}
<h2>{{.Name}}</h2>
<svg width="{{.Width}}" height="{{.Height}}" viewBox="0 0 {{.Width}} {{.Height}}" role="img" aria-label="Perplexity of {{.Name}}">
{{range .Levels}}<line x1="70" x2="710" y1="{{.Y}}" y2="{{.Y}}"></line><text x="716" y="{{.Y}}" dy="4">{{.Label}}</text>
{{end}}<polyline points="{{.Line}}"></polyline>
{{range .Points}}<circle{{if .Best}} class="best"{{end}} cx="{{.X}}" cy="{{.Y}}" r="4"><title>{{.Title}}</title></circle>
{{end}}{{range .Ticks}}{{if .X}}<text class="below" x="{{.X}}" y="294">{{.Label}}</text>{{else}}<text class="left" x="62" y="{{.Y}}" dy="4">{{.Label}}</text>{{end}}
{{end}}</svg>
<details><summary>Table</summary>
<table><tr><th>value</th><th>perplexity</th><th>bits per byte</th></tr>
{{range .Rows}}<tr><td>{{.Value}}</td><td>{{.Perplexity}}</td><td>{{.Bits}}</td></tr>
{{end}}</table></details>
{{end}}</html>
`)
