// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"testing"

	"pleach/blob"
	"pleach/data"
	"pleach/half"
	"pleach/kernel"
	"pleach/merge/compare"
	"pleach/weights"
)

// compareVectors is a comparison of models that have a vector for each of two layers
// and one outside. Their names are not nice.
func compareVectors(t *testing.T, base bool, vectors ...[]float32) *comparison {
	t.Helper()
	d := &comparison{}
	for i, v := range vectors {
		dir := t.TempDir()
		var ts []weights.Source
		for l, name := range []string{"x.0.q_proj.weight", "x.1.up_proj.weight", "<b>\x1b&norm.weight"} {
			ts = append(ts, weights.Source{
				Name: name, DType: half.F32, Shape: []int{len(v)},
				Read: func(lo, hi int, dst []float32) error {
					copy(dst, v[lo:hi])
					if l == 1 {
						dst[0]++
					}
					return nil
				},
			})
		}
		p, err := weights.NewPlan("model", 0, ts)
		if err != nil {
			t.Fatal(err)
		}
		if err := p.Write(".", func(name string, fill func(io.Writer) error) error {
			return blob.Local(dir).Write(name, fill)
		}); err != nil {
			t.Fatal(err)
		}
		m, _, err := openWeights(dir)
		if err != nil {
			t.Fatal(err)
		}
		m.Name = fmt.Sprintf("<model> & \x1b %d", i)
		d.models = append(d.models, m)
	}
	if base {
		last := len(d.models) - 1
		d.base, d.models = &d.models[last], d.models[:last]
	}
	t.Cleanup(d.close)
	job := compare.Job{Models: d.models, Base: d.base, Level: kernel.Best(), Threads: 1, Memory: 1 << 30}
	var err error
	if d.result, err = compare.Run(context.Background(), job); err != nil {
		t.Fatal(err)
	}
	d.grid = d.result.Grid()
	return d
}

// wellFormed reads a page as XML, and counts its elements.
func wellFormed(t *testing.T, page []byte) map[string]int {
	t.Helper()
	n := map[string]int{}
	for d := xml.NewDecoder(bytes.NewReader(page)); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return n
		}
		if err != nil {
			t.Fatalf("%v in\n%s", err, page)
		}
		if e, ok := token.(xml.StartElement); ok {
			n[e.Name.Local]++
			for _, a := range e.Attr {
				if n := a.Name.Local; n == "src" || n == "href" || strings.HasPrefix(n, "on") {
					t.Errorf("the page is not alone: %s %s", n, a.Value)
				}
			}
		}
	}
}

// TestDiffPage: pages are well-formed, need nothing else, and show every cell.
func TestDiffPage(t *testing.T) {
	a, b, o := []float32{1, 2, 3}, []float32{1, -2, 5}, []float32{2, 2, 2}
	for _, base := range []bool{false, true} {
		d := compareVectors(t, base, a, b, o)
		var page bytes.Buffer
		if err := d.page(&page); err != nil {
			t.Fatal(err)
		}
		n := wellFormed(t, page.Bytes())
		maps := 3 * 3 // pairs, figures
		if base {
			maps = 9
		}
		if n["figure"] != maps || n["svg"] != 2*maps || n["script"] != 0 || n["link"] != 0 || n["style"] != 2 {
			t.Errorf("base %v: got elements %v, want %d maps", base, n, maps)
		}
		// 3 tensors, 3 rows, 3 kinds, 1 of all, and the legend; ‖A‖ is never 0.
		if got, want := n["rect"], maps*(10+heatSteps); got != want {
			t.Errorf("base %v: got %d rectangles, want %d", base, got, want)
		}
		if bytes.ContainsAny(page.Bytes(), "\x1b") || bytes.Contains(page.Bytes(), []byte("<model>")) {
			t.Errorf("base %v: names act in the page", base)
		}
	}
	var page bytes.Buffer
	lengths := data.SourceSurvey{Name: "<a>", Documents: 2}
	lengths.Lengths.Add(3)
	lengths.Lengths.Add(300)
	if err := surveyPage(&page, []data.SourceSurvey{lengths}, 8, "x & y"); err != nil {
		t.Fatal(err)
	}
	if n := wellFormed(t, page.Bytes()); n["svg"] != 1 || n["style"] != 2 || n["rect"] < 2 {
		t.Errorf("stats: got elements %v", n)
	}
}

// TestDiffWords: what is said follows from the figures.
func TestDiffWords(t *testing.T) {
	o := []float32{10, 10, 10, 10}
	for _, tt := range []struct {
		a, b []float32
		base bool
		want string
	}{
		{o, o, false, "A and B are 0 of ‖A‖ apart, with a cosine of 1.00000; 100.0 % of the numbers are equal."},
		{[]float32{1, 0, 0, 0}, []float32{0, 1, 0, 0}, false, "means of models that do not seldom work"},
		{[]float32{10, 10, 10, 10}, []float32{10, 10, 10, 10.01}, false, "In 3 of 3 tensors the cosine is above 0.9995, where slerp is linear."},
		{[]float32{11, 10, 10, 10}, []float32{10, 11, 10, 10}, true, "is 0.000: nearly orthogonal"},
		{[]float32{11, 10, 10, 10}, []float32{10, 11, 10, 10}, true, "No number was moved by both."},
		{[]float32{11, 11, 10, 10}, []float32{11, 11, 11, 11}, true, "is 0.707: much the same direction, which a sum counts twice"},
		{[]float32{11, 11, 10, 10}, []float32{11, 10, 11, 10}, true, "is 0.500: directions that share a part"},
		{[]float32{11, 11, 10, 10}, []float32{9, 10, 11, 10}, true, "is -0.500: directions that are opposed in part"},
		{[]float32{11, 11, 10, 10}, []float32{9, 9, 10, 10}, true, "is -1.000: opposite directions, which a sum cancels"},
		{[]float32{11, 11, 10, 10}, []float32{9, 9, 10, 10}, true, "Both moved 50.0 % of the numbers, 100.0 % of these in opposite directions (100.0 % when weighted by how far)."},
		{[]float32{11, 11, 10, 10}, []float32{9, 9, 10, 10}, true, "a sum (task_arithmetic, linear) cancels"},
		{[]float32{11, 10, 10, 10}, []float32{10, 14, 10, 10}, true, "B moved 4.0 times as far as A: with equal weights it outweighs A in a sum."},
		{[]float32{14, 10, 10, 10}, []float32{10, 11, 10, 10}, true, "A moved 4.0 times as far as B: with equal weights it outweighs B in a sum."},
		{[]float32{11, 10, 10, 10}, o, true, "One of them has not moved from the base."},
		{[]float32{11, 10, 10, 10}, []float32{11, 10, 10, 10}, true, "100.0 % of the numbers are equal."},
	} {
		vectors := [][]float32{tt.a, tt.b}
		if tt.base {
			vectors = append(vectors, o)
		}
		d := compareVectors(t, tt.base, vectors...)
		if got := strings.Join(d.words(0, 1), "\n"); !strings.Contains(got, tt.want) {
			t.Errorf("%v and %v: got\n%s\nwant %s", tt.a, tt.b, got, tt.want)
		}
	}
}

// TestDiffLetters: a pair is called by its letters, and words keep theirs.
func TestDiffLetters(t *testing.T) {
	const text = "Both of A and B: ‖A−B‖/‖A‖, ΔA, ΔB, All of A."
	const want = "Both of B and C: ‖B−C‖/‖B‖, ΔB, ΔC, All of B."
	if got := as(text, 1, 2); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// TestDiffColours: the ends of a range have the ends of the colours, and 0 the
// middle where there are two sides.
func TestDiffColours(t *testing.T) {
	all := metrics()
	one := &heatRange{metric: all[0], low: 1, top: 3}
	two := &heatRange{metric: all[5], low: -2, top: 2}
	for _, tt := range []struct {
		r         *heatRange
		v         float64
		fill, ink string
	}{
		{one, 1, "#440154", "#fff"},
		{one, 2, "#21918c", "#fff"},
		{one, 3, "#fde725", "#111"},
		{two, -2, "#2166ac", "#fff"},
		{two, 0, "#f7f7f7", "#111"},
		{two, 2, "#b2182b", "#fff"},
		{&heatRange{metric: all[0], low: 5, top: 5}, 5, "#21918c", "#fff"},
	} {
		if fill, ink := tt.r.colour(tt.v); fill != tt.fill || ink != tt.ink {
			t.Errorf("%v in [%v, %v]: got %s and %s, want %s and %s", tt.v, tt.r.low, tt.r.top, fill, ink, tt.fill, tt.ink)
		}
	}
	if !all[5].signed || all[0].signed {
		t.Error("the metrics have moved")
	}
	if defined(math.NaN()) != nil || *defined(0.5) != 0.5 {
		t.Error("defined")
	}
}
