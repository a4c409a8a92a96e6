// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package weights_test

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pleach/blob"
	"pleach/blob/blobtest"
	"pleach/half"
	"pleach/weights"
)

func ramp(n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(i*37%101-50) / 8
	}
	return x
}

// TestReadGolden reads what testdata/make.py wrote with the reference
// implementation: every type, a scalar, an empty tensor, a name with escapes.
func TestReadGolden(t *testing.T) {
	set, err := weights.OpenFiles(blob.Local("testdata"), "all.safetensors")
	if err != nil {
		t.Fatal(err)
	}
	defer set.Close()
	var got []string
	for _, x := range set.Tensors() {
		got = append(got, fmt.Sprintf("%q %v %d %d", x.Name, x.DType, x.Shape, x.Size))
	}
	want := []string{
		`"i64" i64 [6] 48`,
		`"f64" f64 [2 3 2] 96`,
		`"empty" f32 [0 4] 0`,
		`"f32" f32 [3 5] 60`,
		`"na\"me\\ \t\x01 é ☃" f32 [1] 4`,
		`"scalar" f32 [] 4`,
		`"special" f32 [5] 20`,
		`"i32" i32 [6] 24`,
		`"bf16" bf16 [7] 14`,
		`"f16" f16 [4 3] 24`,
		`"u8" u8 [5] 5`,
		`"bool" bool [3] 3`,
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	for _, name := range []string{"f32", "f64", "bf16", "f16"} {
		x, _ := set.Lookup(name)
		v := make([]float32, x.Len()-2)
		if err := set.ReadFinite(name, 1, x.Len()-1, v); err != nil || !slices.Equal(v, ramp(x.Len())[1:x.Len()-1]) {
			t.Errorf("%s: got %v, %v", name, v, err)
		}
	}
	var one [1]float32
	if err := set.Read("scalar", 0, 1, one[:]); err != nil || one[0] != 2.5 {
		t.Errorf("scalar: got %v, %v", one, err)
	}
	special := make([]float32, 5)
	err = set.Read("special", 0, 5, special)
	if err != nil || math.Float32bits(special[1]) != 1<<31 || math.Float32bits(special[4]) != 1 {
		t.Errorf("special: got %v, %v", special, err)
	}
	b := make([]byte, 2)
	if err := set.Raw("bool", 1, 3, b); err != nil || !bytes.Equal(b, []byte{0, 1}) {
		t.Errorf("bool: got %v, %v", b, err)
	}
	for name, want := range map[string]string{
		"special": "all.safetensors: tensor \"special\": element 2 of shape [5] is +Inf",
		"i32":     "all.safetensors: tensor \"i32\": got type i32, want floats",
		"x":       `weights: tensor "x": there is none of this name`,
	} {
		if err := set.ReadFinite(name, 0, 5, special); err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("got %v, want …%s", err, want)
		}
	}
}

// copies gives sources that write a set again: raw, or through float32.
func copies(set *weights.Set, raw bool) []weights.Source {
	var ts []weights.Source
	for _, x := range set.Tensors() {
		s := weights.Source{Name: x.Name, DType: x.DType, Shape: x.Shape}
		if raw || !x.DType.IsFloat() {
			s.Raw = func(lo, hi int, dst []byte) error { return set.Raw(x.Name, lo, hi, dst) }
		} else {
			s.Read = func(lo, hi int, dst []float32) error { return set.Read(x.Name, lo, hi, dst) }
		}
		ts = append(ts, s)
	}
	return ts
}

// TestWriteGolden writes the same tensors in the same order as the reference
// implementation did, and gets the same bytes.
func TestWriteGolden(t *testing.T) {
	open := func(s blob.Store, dir string) *weights.Set {
		set, err := weights.Open(s, dir)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { set.Close() })
		return set
	}
	for _, raw := range []bool{true, false} {
		out := &blob.Dir{Files: blobtest.NewMem(), Root: "/out"}
		all, err := weights.OpenFiles(blob.Local("testdata"), "all.safetensors")
		if err != nil {
			t.Fatal(err)
		}
		defer all.Close()
		write(t, out, "one", 0, copies(all, raw))
		same(t, "testdata/all.safetensors", out, "one/model.safetensors")

		sharded := open(blob.Local("testdata"), "sharded")
		write(t, out, "many", 400, copies(sharded, raw))
		for i := range 5 {
			name := fmt.Sprintf("model-%05d-of-00005.safetensors", i+1)
			same(t, filepath.Join("testdata/sharded", name), out, "many/"+name)
		}
		if d := cmp.Diff(sharded.Tensors(), open(out, "many").Tensors()); d != "" {
			t.Error("our index reads differently from theirs:", d)
		}
	}
}

func write(t *testing.T, s blob.Store, dir string, limit int64, ts []weights.Source) {
	t.Helper()
	p, err := weights.NewPlan("model", limit, ts)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Write(dir, s.Write); err != nil {
		t.Fatal(err)
	}
	es, err := s.List(dir)
	if err != nil {
		t.Fatal(err)
	}
	var n int64
	for _, e := range es {
		n += e.Size
	}
	if n != p.Bytes {
		t.Errorf("planned %d bytes, wrote %d", p.Bytes, n)
	}
}

func same(t *testing.T, golden string, s blob.Store, name string) {
	t.Helper()
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	got, err := blob.ReadFile(s, name, 1<<20)
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("%s: got %d bytes, %v, want the %d of %s", name, len(got), err, len(want), golden)
	}
}

func ExampleOpenDir() {
	set, err := weights.OpenDir("testdata/sharded")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer set.Close()
	row := make([]float32, 4)
	err = set.Read("lm_head.weight", 0, 4, row)
	fmt.Println(len(set.Tensors()), row, err)
	// Output: 8 [-6.25 -1.625 3 -5] <nil>
}

func TestLargeTensorsAndBoxes(t *testing.T) {
	s := &blob.Dir{Files: blobtest.NewMem(), Root: "/out"}
	shape := []int{3, 50, 1000} // more than one chunk
	x := ramp(150000)
	write(t, s, "m", 0, []weights.Source{{
		Name: "x", DType: half.BF16, Shape: shape,
		Read: func(lo, hi int, dst []float32) error { copy(dst, x[lo:hi]); return nil },
	}})
	set, err := weights.Open(s, "m")
	if err != nil {
		t.Fatal(err)
	}
	y := make([]float32, len(x))
	if err := set.Read("x", 0, len(y), y); err != nil || !slices.Equal(x, y) {
		t.Error("not the same tensor:", err)
	}
	at, size := []int{1, 48, 990}, []int{2, 2, 3}
	got := make([]float32, 12)
	if err := set.Box("x", at, size, got); err != nil {
		t.Fatal(err)
	}
	var want []float32
	for i := range 2 {
		for j := range 2 {
			for k := range 3 {
				want = append(want, x[((1+i)*50+48+j)*1000+990+k])
			}
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("box: got %v, want %v", got, want)
	}
	for _, bad := range [][]int{{2, 48, 990}, {1, 49, 990}, {1, 48, 998}, {-1, 0, 0}, {0, 0}} {
		if err := set.Box("x", bad, size, got); err == nil {
			t.Errorf("a box at %d was read", bad)
		}
	}
}

func TestWriteRefuses(t *testing.T) {
	const huge = 1 << 40
	big := func(v float32) func(lo, hi int, dst []float32) error {
		return func(_, _ int, dst []float32) error { dst[0], dst[1] = 1, v; return nil }
	}
	inf := float32(math.Inf(1))
	for _, c := range []struct {
		ts   []weights.Source
		want string
	}{
		{[]weights.Source{{Name: "a", Shape: []int{2}}}, `weights: writing m: tensor "a": it has no elements to write`},
		{[]weights.Source{{Name: "", Read: big(1)}}, `weights: writing m: tensor "": not a name for a tensor`},
		{[]weights.Source{{Name: "a", DType: half.I32, Read: big(1)}}, `weights: writing m: tensor "a": type i32 is no float: want Raw`},
		{[]weights.Source{{Name: "a", Shape: []int{-1}, Read: big(1)}}, `weights: writing m: tensor "a": shape [-1]: want sizes of at least 0`},
		{[]weights.Source{{Name: "a", Shape: []int{huge, huge}, Read: big(1)}}, `weights: writing m: tensor "a": shape [1099511627776 1099511627776]: more than 2^63 bytes`},
		{[]weights.Source{{Name: "a", DType: half.F16, Shape: []int{2}, Read: big(-65520)}}, `weights: writing m.safetensors: tensor "a": element 1 is -65520, too large for f16`},
		{[]weights.Source{{Name: "a", DType: half.BF16, Shape: []int{2}, Read: big(math.MaxFloat32)}}, `weights: writing m.safetensors: tensor "a": element 1 is 3.4028235e+38, too large for bf16`},
		{[]weights.Source{{Name: "a", DType: half.F16, Shape: []int{2}, Read: big(65519.996)}, {Name: "b", DType: half.BF16, Shape: []int{2}, Read: big(inf)}}, ""},
	} {
		p, err := weights.NewPlan("m", 0, c.ts)
		if err == nil {
			err = p.Write("", func(_ string, fill func(io.Writer) error) error { return fill(io.Discard) })
		}
		if got := fmt.Sprint(err); got != c.want && !(err == nil && c.want == "") {
			t.Errorf("got  %v\nwant %s", got, c.want)
		}
	}
	a := weights.Source{Name: "a", Read: big(1)}
	if _, err := weights.NewPlan("m", 0, []weights.Source{a, a}); err == nil {
		t.Error("the same name twice was accepted")
	}
}
