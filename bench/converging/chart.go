// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"math"
	"strings"
)

// chart is a figure: panels below each other, over tokens.
type chart struct {
	tokens float64 // of a whole run
	panels []panel
}

type panel struct {
	title string
	lines []line
}

// line is a curve with its range over the seeds.
type line struct {
	label  string
	colour string
	points []summary
}

// precisionChart has all precisions, and below those that are near f32 in their
// own scale.
func (e experiment) precisionChart(all map[spec]*result) chart {
	groups := e.precisions(all)
	var near, every []line
	for i, m := range []mode{again, mixed, sr, srMoment, plain16} {
		g, ok := groups[m]
		if !ok {
			continue
		}
		l := line{g.label, colours[i], g.curve()}
		every = append(every, l)
		if m != plain16 {
			near = append(near, l)
		}
	}
	return chart{float64(e.set.tokens()), []panel{
		{"training loss above f32 of the same seed, nats per token: mean and range over seeds", every},
		{"the same without plain bf16", near},
	}}
}

// betaChart is what each later β2 costs against the first, a panel for each
// rate.
func (e experiment) betaChart(all map[spec]*result) chart {
	c := chart{tokens: float64(e.set.tokens())}
	for _, lr := range e.betaRates {
		p := panel{title: fmt.Sprintf("learning rate %g: training loss above that with β2 %g, nats per token", lr, e.betas[0])}
		for i, m := range e.betaModes {
			for j, g := range e.slower(m, lr, all) {
				if j > 0 {
					label := fmt.Sprintf("%s, β2 %g", g.label, e.betas[j])
					p.lines = append(p.lines, line{label, colours[(i+len(e.betaModes)*(j-1))%len(colours)], g.curve()})
				}
			}
		}
		c.panels = append(c.panels, p)
	}
	return c
}

// Sizes in pixels.
const (
	width, height = 760, 300 // of a panel
	left, right   = 70, 20
	top, bottom   = 60, 40
	plotW         = width - left - right
	plotH         = height - top - bottom
)

// colours of lines are read on white and on black.
var colours = [5]string{"#8a8a8a", "#2f80d0", "#2a9d5c", "#c98a00", "#d9483b"}

// style lets text follow the reader's scheme.
const style = `<style>
text{font:12px sans-serif}.text{fill:#333}
.axis{stroke:#888;fill:none}.grid{stroke:#888;stroke-opacity:.25;fill:none}
.line{fill:none;stroke-width:1.8}.band{fill-opacity:.16}
@media(prefers-color-scheme:dark){.text{fill:#ccc}}
</style>
`

// svg draws the chart.
func (c chart) svg() []byte {
	var b bytes.Buffer
	h := height * len(c.panels)
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d">`+"\n", width, h, width, h)
	b.WriteString("<!-- SPDX-FileCopyrightText: 2026 The pleach authors -->\n")
	b.WriteString("<!-- SPDX-License-Identifier: Apache-2.0 -->\n")
	b.WriteString("<!-- Written by bench/converging. -->\n" + style)
	for i, p := range c.panels {
		fmt.Fprintf(&b, `<g transform="translate(0 %d)">`+"\n", i*height)
		p.draw(&b, c.tokens)
		b.WriteString("</g>\n")
	}
	b.WriteString("</svg>\n")
	return b.Bytes()
}

func (p panel) draw(b *bytes.Buffer, tokens float64) {
	lo, hi := p.span()
	y := func(v float64) float64 { return top + plotH*(hi-min(max(v, lo), hi))/(hi-lo) }
	x := func(bin int) float64 { return left + plotW*(float64(bin)+0.5)/bins }
	fmt.Fprintf(b, `<text class="text" x="%d" y="18">%s</text>`+"\n", left, escape(p.title))
	for _, v := range ticks(lo, hi, 5) {
		fmt.Fprintf(b, `<path class="grid" d="M%d %.1fh%d"/><text class="text" x="%d" y="%.1f" text-anchor="end">%s</text>`+"\n",
			left, y(v), plotW, left-6, y(v)+4, tick(v))
	}
	for _, v := range ticks(0, tokens/1e6, 6) {
		at := left + plotW*v*1e6/tokens
		fmt.Fprintf(b, `<text class="text" x="%.1f" y="%d" text-anchor="middle">%s</text>`+"\n", at, top+plotH+16, tick(v))
	}
	fmt.Fprintf(b, `<text class="text" x="%d" y="%d" text-anchor="middle">million tokens</text>`+"\n", left+plotW/2, top+plotH+32)
	fmt.Fprintf(b, `<path class="axis" d="M%d %dv%dh%d"/>`+"\n", left, top, plotH, plotW)
	at := left
	for _, l := range p.lines {
		fmt.Fprintf(b, `<text fill="%s" x="%d" y="40">%s</text>`+"\n", l.colour, at, escape(l.label))
		at += 20 + 7*len([]rune(l.label))
		l.draw(b, x, y)
	}
}

// draw leaves out what is no number, and the warm-up, where curves are steep and
// differences as large as they are short.
func (l line) draw(b *bytes.Buffer, x func(int) float64, y func(float64) float64) {
	var mean, upper, lower []string
	for i := firstBin; i < len(l.points); i++ {
		s := l.points[i]
		if math.IsNaN(s.mean) || math.IsInf(s.mean, 0) {
			continue
		}
		mean = append(mean, fmt.Sprintf("%.1f %.1f", x(i), y(s.mean)))
		upper = append(upper, fmt.Sprintf("%.1f %.1f", x(i), y(s.max)))
		lower = append([]string{fmt.Sprintf("%.1f %.1f", x(i), y(s.min))}, lower...)
	}
	if len(mean) == 0 {
		return
	}
	fmt.Fprintf(b, `<path class="band" fill="%s" d="M%sZ"/>`+"\n", l.colour, strings.Join(append(upper, lower...), "L"))
	fmt.Fprintf(b, `<path class="line" stroke="%s" d="M%s"/>`+"\n", l.colour, strings.Join(mean, "L"))
}

// span is the range of a panel: that of its means and bands, with 0.
func (p panel) span() (lo, hi float64) {
	for _, l := range p.lines {
		for _, s := range l.points[firstBin:] {
			if !math.IsNaN(s.mean) && !math.IsInf(s.mean, 0) {
				lo, hi = min(lo, s.min), max(hi, s.max)
			}
		}
	}
	if lo == hi {
		return -1, 1
	}
	room := (hi - lo) / 20
	return lo - room, hi + room
}

// ticks are about n round numbers from lo to hi.
func ticks(lo, hi float64, n int) []float64 {
	raw := (hi - lo) / float64(n)
	unit := math.Pow(10, math.Floor(math.Log10(raw)))
	step := 10 * unit
	for _, f := range []float64{5, 2, 1} {
		if f*unit >= raw {
			step = f * unit
		}
	}
	var all []float64
	for i := math.Ceil(lo / step); i*step <= hi; i++ {
		all = append(all, i*step)
	}
	return all
}

// tick is a number without the noise of its last digits.
func tick(v float64) string {
	s := fmt.Sprintf("%.4g", v)
	if s == "-0" || math.Abs(v) < 1e-12 {
		return "0"
	}
	return s
}

func escape(s string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(s)
}
