// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package compat

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os"
	"slices"
	"testing"

	"pleach/half"
	"pleach/merge/method"
)

// row is a line of tables.jsonl.gz.
type row struct {
	Method, Set, Type string
	Shape             []int
	Data              [][]byte
	Inputs            []int
	Base, Step        int
	Global            method.Values
	Per               map[string][]float64
	Out               []byte
}

// readRows is tables.jsonl.gz.
func readRows(t *testing.T) []row {
	t.Helper()
	f, err := os.Open("testdata/tables.jsonl.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	var list []row
	for d := json.NewDecoder(bufio.NewReader(z)); d.More(); {
		var r row
		if err := d.Decode(&r); err != nil {
			t.Fatal(err)
		}
		list = append(list, r)
	}
	return list
}

// typeOf is the type of a name.
func typeOf(name string) half.DType {
	return map[string]half.DType{"f32": half.F32, "bf16": half.BF16, "f16": half.F16}[name]
}

// decoded are the numbers of bytes.
func decoded(t *testing.T, dt half.DType, b []byte) []float32 {
	t.Helper()
	x := make([]float32, len(b)/dt.Size())
	if err := half.ToF32(x, dt, b); err != nil {
		t.Fatal(err)
	}
	return x
}

// problem is the merge of a row whose inputs have a shape.
func (r row) problem(shape []int) method.Problem {
	p := method.Problem{Name: r.Set, Shape: shape, Base: r.Base, Global: r.Global}
	for i := range r.Inputs {
		p.Inputs = append(p.Inputs, method.Input{Model: fmt.Sprint("m", i), Params: method.Values{}})
	}
	for name, values := range r.Per {
		k := 0
		for i := range p.Inputs {
			if i != r.Base {
				p.Inputs[i].Params[name] = values[k]
				k++
			}
		}
	}
	return p
}

// ulps is how many numbers of a type lie between two.
func ulps(t half.DType, x, y float32) int {
	order := func(x float32) int {
		var u, sign int
		switch t {
		case half.BF16:
			u, sign = int(half.ToBF16(x)), 1<<15
		case half.F16:
			u, sign = int(half.ToF16(x)), 1<<15
		default:
			u, sign = int(math.Float32bits(x)), 1<<31
		}
		if u&sign != 0 {
			return -(u &^ sign)
		}
		return u
	}
	d := order(x) - order(y)
	return max(d, -d)
}

// tally is how well numbers agree.
type tally struct {
	elements, equal, one, cases, wrong int

	worst float64 // difference by the largest element of the tensor
}

// exact are the methods whose results are mergekit's to the bit. Others have
// transcendental functions or products of another library.
var exact = []string{
	"linear", "passthrough", "nearswap", "model_stock", "task_arithmetic", "ties", "breadcrumbs",
	"breadcrumbs_ties", "dare_linear", "dare_ties", "della", "della_linear", "sce", "ram", "ramplus_tl",
}

func TestTables(t *testing.T) {
	sets := map[string]row{}
	count := map[string]*tally{}
	for _, r := range readRows(t) {
		if r.Method == "" {
			sets[r.Set] = r
			continue
		}
		set := sets[r.Set]
		dt := typeOf(set.Type)
		var in [][]float32
		var types []half.DType
		for _, i := range r.Inputs {
			in = append(in, decoded(t, dt, set.Data[i]))
			types = append(types, dt)
		}
		out, got, err := Merge(&method.Method{Name: r.Method}, r.problem(set.Shape), types, in, NewTwister(42))
		if err != nil {
			t.Fatal(err)
		}
		if got != typeOf(r.Type) {
			t.Errorf("%s of %s: got %s, want %s", r.Method, r.Set, got, r.Type)
		}
		want := decoded(t, got, r.Out)
		key := fmt.Sprintf("%-16s %-4s", r.Method, set.Type)
		if count[key] == nil {
			count[key] = &tally{}
		}
		c := count[key]
		c.cases++
		before, scale := c.equal, 0.0
		for _, w := range want {
			scale = max(scale, math.Abs(float64(w)))
		}
		for k, w := range want {
			c.elements++
			c.worst = max(c.worst, math.Abs(float64(out[k*r.Step]-w))/scale)
			switch d := ulps(got, out[k*r.Step], w); {
			case d == 0:
				c.equal++
			case d == 1:
				c.one++
			}
		}
		if n := len(want) - (c.equal - before); n != 0 {
			c.wrong++
			if slices.Contains(exact, r.Method) {
				t.Errorf("%s of %s %v %v, %d inputs: got %d of %d elements other than mergekit's, want none",
					r.Method, r.Set, r.Global, r.Per, len(in), n, len(want))
			}
		}
	}
	for _, key := range slices.Sorted(maps.Keys(count)) {
		c := count[key]
		near := float64(c.equal+c.one) / float64(c.elements)
		t.Logf("%s %3d cases %6d elements: equal %.5f, within one place %.5f, worst %.1e of the largest, "+
			"cases that differ %d", key, c.cases, c.elements, float64(c.equal)/float64(c.elements), near, c.worst, c.wrong)
		if near < 0.999 && c.worst > 1e-6 {
			t.Errorf("%s: got %.5f of the elements within one place and %.1e of the largest, want 0.999 or 1e-6",
				key, near, c.worst)
		}
	}
}
