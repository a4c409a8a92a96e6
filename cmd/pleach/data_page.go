// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"

	"pleach/data"
)

// page is what the page of data stats shows.
type page struct {
	What    string
	Sources []pageSource
}

type pageSource struct {
	Name  string
	Facts []fact
	Unit  string
	Chart chart
}

// chart is a histogram of bars next to each other, in units of its drawing.
type chart struct {
	Width, Height int
	Bars          []chartBar
}

type chartBar struct {
	X, Y, W, H, Middle int
	Label, Title       string
}

// Sizes of a chart.
const (
	chartBarWidth = 44
	chartHeight   = 160
	chartFoot     = 34 // for labels
	chartHead     = 16
)

// surveyPage writes one page that needs nothing else: no script, no font, no image.
func surveyPage(w io.Writer, all []data.SourceSurvey, sequence int, what string) error {
	p := page{What: visible(what)}
	for i := range all {
		s := &all[i]
		p.Sources = append(p.Sources, pageSource{visible(s.Name), facts(s, sequence), lengthUnit(s), chartOf(s)})
	}
	return pageTemplate.Execute(w, p)
}

// chartOf draws the lengths of a source.
func chartOf(s *data.SourceSurvey) chart {
	bars := s.Lengths.Bars()
	most := int64(1)
	for _, b := range bars {
		most = max(most, b.Count)
	}
	c := chart{Width: chartBarWidth * max(1, len(bars)), Height: chartHead + chartHeight + chartFoot}
	for i, b := range bars {
		h := int((b.Count*chartHeight + most - 1) / most)
		c.Bars = append(c.Bars, chartBar{
			X: i*chartBarWidth + 2, W: chartBarWidth - 4, Y: chartHead + chartHeight - h, H: h,
			Middle: i*chartBarWidth + chartBarWidth/2, Label: amount(float64(b.From)),
			Title: fmt.Sprintf("%s documents of %d to %d %s", grouped(float64(b.Count)), b.From, b.To, lengthUnit(s)),
		})
	}
	return c
}

var pageTemplate = newPage("stats", `{{define "title"}}Documents of {{.What}}{{end}}{{template "head" .}}
<style>
rect { fill: #3a7d44; }
text { text-anchor: middle; }
@media (prefers-color-scheme: dark) { rect { fill: #7bc086; } }
</style>
<h1>Documents of {{.What}}</h1>
{{range .Sources}}
<h2>{{.Name}}</h2>
<table>
{{range .Facts}}<tr><th>{{.Name}}</th><td>{{.Value}}</td></tr>
{{end}}</table>
{{if .Chart.Bars}}<figure>
<svg width="{{.Chart.Width}}" height="{{.Chart.Height}}" viewBox="0 0 {{.Chart.Width}} {{.Chart.Height}}" role="img" aria-label="Documents by length">
{{range .Chart.Bars}}<g><title>{{.Title}}</title><rect x="{{.X}}" y="{{.Y}}" width="{{.W}}" height="{{.H}}"></rect><text x="{{.Middle}}" y="192">{{.Label}}</text></g>
{{end}}</svg>
<figcaption>Documents by length in {{.Unit}}; a bar begins at the number below it and ends at its double.</figcaption>
</figure>
{{end}}{{end}}</html>
`)
