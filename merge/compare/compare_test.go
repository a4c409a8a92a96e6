// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"pleach/blob"
	"pleach/half"
	"pleach/internal/fault"
	"pleach/kernel"
	"pleach/weights"
)

// stored is a tensor of a test's model.
type stored struct {
	name  string
	dtype half.DType
	shape []int
	v     []float32
}

// open writes a model and opens it.
func open(t testing.TB, name string, tensors ...stored) Model {
	t.Helper()
	var sources []weights.Source
	for _, x := range tensors {
		sources = append(sources, weights.Source{
			Name: x.name, DType: x.dtype, Shape: x.shape,
			Raw: func(lo, hi int, dst []byte) error {
				if !x.dtype.IsFloat() {
					clear(dst)
					return nil
				}
				return half.FromF32(dst, x.dtype, x.v[lo:hi])
			},
		})
	}
	p, err := weights.NewPlan("model", 0, sources)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := p.Write(".", func(name string, fill func(io.Writer) error) error {
		return blob.Local(dir).Write(name, fill)
	}); err != nil {
		t.Fatal(err)
	}
	set, err := weights.OpenDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = set.Close() })
	return Model{name, set}
}

// values are n numbers that a type can hold, a few of them zeros of either sign.
func values(r *rand.Rand, t half.DType, n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(r.NormFloat64()) * 0.02
		switch r.IntN(16) {
		case 0:
			x[i] = 0
		case 1:
			x[i] = float32(math.Copysign(0, -1))
		}
	}
	return rounded(t, x)
}

// rounded is what a file of this type gives back.
func rounded(t half.DType, x []float32) []float32 {
	b, y := make([]byte, len(x)*t.Size()), make([]float32, len(x))
	if err := errors.Join(half.FromF32(b, t, x), half.ToF32(y, t, b)); err != nil {
		panic(err)
	}
	return y
}

// moved is x with some elements changed.
func moved(r *rand.Rand, t half.DType, x []float32, much float32) []float32 {
	y := make([]float32, len(x))
	copy(y, x)
	for i := range y {
		if r.IntN(3) > 0 {
			y[i] += float32(r.NormFloat64()) * much
		}
	}
	return rounded(t, y)
}

// naive are the figures by the formulas, in float64.
func naive(a, b, base []float32) Figures {
	var aa, bb, ab, dd, equal float64
	var oo, ta, tb, tt, both, opposed, weight, against float64
	for i := range a {
		x, y := float64(a[i]), float64(b[i])
		aa, bb, ab, dd = aa+x*x, bb+y*y, ab+x*y, dd+(x-y)*(x-y)
		if x == y {
			equal++
		}
		if base == nil {
			continue
		}
		o := float64(base[i])
		p, q := x-o, y-o
		oo, ta, tb, tt = oo+o*o, ta+p*p, tb+q*q, tt+p*q
		if p != 0 && q != 0 {
			both++
			weight += math.Abs(p) + math.Abs(q)
			if (p > 0) != (q > 0) {
				opposed++
				against += math.Abs(p) + math.Abs(q)
			}
		}
	}
	n, nan := float64(len(a)), math.NaN()
	f := Figures{
		int64(len(a)), math.Sqrt(dd / aa), ab / math.Sqrt(aa*bb), equal / n,
		nan, nan, nan, nan, nan, nan,
	}
	if base != nil {
		f.TaskA, f.TaskB, f.TaskCosine = math.Sqrt(ta/oo), math.Sqrt(tb/oo), tt/math.Sqrt(ta*tb)
		f.Both, f.Opposed, f.OpposedWeighted = both/n, opposed/both, against/weight
	}
	return f
}

// near compares figures: counts to the bit, the rest to the rounding of a float32.
func near(t *testing.T, what string, got, want Figures) {
	t.Helper()
	g, w := reflect.ValueOf(got), reflect.ValueOf(want)
	for i := 1; i < g.NumField(); i++ {
		name, x, y := g.Type().Field(i).Name, g.Field(i).Float(), w.Field(i).Float()
		tol := 1e-6
		if name == "Equal" || name == "Both" || name == "Opposed" {
			tol = 0
		}
		if !(math.Abs(x-y) <= tol*max(1e-3, math.Abs(y))) && !(math.IsNaN(x) && math.IsNaN(y)) {
			t.Errorf("%s: %s: got %v, want %v", what, name, x, y)
		}
	}
	if got.Elements != want.Elements {
		t.Errorf("%s: got %d elements, want %d", what, got.Elements, want.Elements)
	}
}

func run1(t testing.TB, job Job) *Result {
	t.Helper()
	if job.Level == 0 {
		job.Level = kernel.Best()
	}
	job.Memory = max(job.Memory, 1<<30)
	r, err := Run(context.Background(), job)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestFigures compares three models with the formulas, with and without a base, in
// tensors of mixed types and of sizes around a chunk.
func TestFigures(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	types := []half.DType{half.BF16, half.F16, half.F32}
	names := []string{"model.embed_tokens.weight", "model.layers.0.self_attn.q_proj.weight", "model.norm.weight"}
	sizes := []int{Chunk + 37, 2 * Chunk, 5}
	var tensors [4][]stored // the last is the base
	for k, n := range sizes {
		origin := values(r, half.BF16, n)
		for i := range tensors {
			d := types[(i+k)%3]
			x := stored{names[k], d, []int{n, 1}, moved(r, d, origin, 0.001*float32(1+i))}
			tensors[i] = append(tensors[i], x)
		}
	}
	var models []Model
	for i, ts := range tensors {
		models = append(models, open(t, fmt.Sprint("m", i), ts...))
	}
	for _, base := range []*Model{nil, &models[3]} {
		res := run1(t, Job{Models: models[:3], Base: base, Threads: 2})
		for k, x := range res.Tensors {
			for i := range 3 {
				for j := i + 1; j < 3; j++ {
					var o []float32
					if base != nil {
						o = tensors[3][k].v
					}
					near(t, fmt.Sprint(x.Name, " ", i, j, base != nil), x.Sums.Figures(i, j),
						naive(tensors[i][k].v, tensors[j][k].v, o))
				}
			}
		}
	}
}

// TestSameBits: threads, levels and memory change no bit, and neither does a second
// run. Every level gives every bit.
func TestSameBits(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	n := 5*Chunk + 11
	x := values(r, half.BF16, n)
	var models []Model
	for i := range 3 {
		models = append(models, open(t, fmt.Sprint(i),
			stored{"a.0.q_proj.weight", half.BF16, []int{n}, moved(r, half.BF16, x, 0.01)},
			stored{"a.1.q_proj.weight", half.BF16, []int{7}, moved(r, half.BF16, x[:7], 0.01)}))
	}
	want := run1(t, Job{Models: models[:2], Base: &models[2], Threads: 1, Level: kernel.Portable})
	for _, l := range kernel.Levels() {
		for _, threads := range []int{1, 2, 7} {
			got := run1(t, Job{Models: models[:2], Base: &models[2], Threads: threads, Level: l})
			if !reflect.DeepEqual(got, want) {
				t.Errorf("%v, %d threads: got %v, want %v", l, threads, got, want)
			}
		}
	}
}

// TestProperties: a model is equal to itself; what is twice as far is at twice the
// distance; task vectors that are opposite are opposed in every element.
func TestProperties(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	const n = 999
	x, d := make([]float32, n), make([]float32, n)
	twice, minus := make([]float32, n), make([]float32, n)
	for i := range x {
		x[i] = float32(r.IntN(2000) - 1000)
		d[i] = x[i] + float32(1+r.IntN(9))
		twice[i], minus[i] = 2*d[i]-x[i], 2*x[i]-d[i]
	}
	model := func(v []float32) Model { return open(t, "m", stored{"w", half.F32, []int{n}, v}) }
	base := model(x)
	res := run1(t, Job{Models: []Model{model(d), model(d), model(twice), model(minus)}, Base: &base})
	s := res.Tensors[0].Sums
	if f := s.Figures(0, 1); f.Distance != 0 || f.Cosine != 1 || f.Equal != 1 || f.TaskCosine != 1 || f.Opposed != 0 {
		t.Errorf("a model and itself: %+v", f)
	}
	if f := s.Figures(0, 2); math.Abs(f.TaskB/f.TaskA-2) > 1e-12 || f.OpposedWeighted != 0 || f.Equal != 0 {
		t.Errorf("twice as far: %+v", f)
	}
	if f := s.Figures(0, 3); math.Abs(f.TaskCosine+1) > 1e-12 || f.Both != 1 || f.Opposed != 1 || f.OpposedWeighted != 1 {
		t.Errorf("the other way: %+v", f)
	}
	zero := model(make([]float32, n))
	s = run1(t, Job{Models: []Model{zero, zero}, Base: &zero}).Tensors[0].Sums
	if f := s.Figures(0, 1); f.Equal != 1 || f.Both != 0 || !math.IsNaN(f.Distance) || !math.IsNaN(f.Cosine) ||
		!math.IsNaN(f.TaskA) || !math.IsNaN(f.TaskCosine) || !math.IsNaN(f.Opposed) || !math.IsNaN(f.OpposedWeighted) {
		t.Errorf("zeros: %+v", f)
	}
}

// TestSigns compares the loop without branches with one that has them, on special
// numbers and around its unrolling.
func TestSigns(t *testing.T) {
	special := []float32{
		0, float32(math.Copysign(0, -1)), 1, -1, math.SmallestNonzeroFloat32, -math.SmallestNonzeroFloat32,
		math.MaxFloat32, -math.MaxFloat32, 0.5, -2,
	}
	r := rand.New(rand.NewPCG(7, 8))
	for n := range 40 {
		x, y := make([]float32, n), make([]float32, n)
		for i := range x {
			x[i], y[i] = special[r.IntN(len(special))], special[r.IntN(len(special))]
		}
		var want votes
		null := 0
		for i := range x {
			p, q := float64(x[i]), float64(y[i])
			if p == 0 {
				null++
			}
			if p == 0 || q == 0 {
				continue
			}
			want.both++
			want.bothWeight += math.Abs(p) + math.Abs(q)
			if p*q < 0 {
				want.opposed++
				want.opposedWeight += math.Abs(p) + math.Abs(q)
			}
		}
		got := signs(x, y)
		close := func(a, b float64) bool { return math.Abs(a-b) <= 1e-15*float64(n)*b }
		if got.both != want.both || got.opposed != want.opposed || !close(got.bothWeight, want.bothWeight) ||
			!close(got.opposedWeight, want.opposedWeight) {
			t.Errorf("%v and %v: got %+v, want %+v", x, y, got, want)
		}
		if g := zeros(x); g != null {
			t.Errorf("%v: got %d zeros, want %d", x, g, null)
		}
	}
}

func TestNotes(t *testing.T) {
	f := func(name string, rows, cols int, from float32) stored {
		v := make([]float32, rows*cols)
		for i := range v {
			v[i] = from + float32(i)
		}
		return stored{name, half.F32, []int{rows, cols}, v}
	}
	a := open(t, "a", f(embedding, 5, 2, 1), f(head, 5, 2, 1), f("model.layers.0.self_attn.rotary_emb.inv_freq", 1, 2, 1),
		stored{"model.position_ids", half.I64, []int{4}, nil})
	b := open(t, "b", f(embedding, 3, 2, 1), stored{"model.position_ids", half.I64, []int{4}, nil})
	res := run1(t, Job{Models: []Model{b, a}})
	want := []string{
		"model.embed_tokens.weight: the first 3 rows, which all have: b has 3, a has 5",
		"lm_head.weight: the first 3 rows, which all have: b has 3, a has 5",
		"lm_head.weight: b has none and uses its embedding in its place",
		"left out, tables of rotary positions that not all models have: model.layers.0.self_attn.rotary_emb.inv_freq",
		"left out, no floats: model.position_ids",
	}
	if !reflect.DeepEqual(res.Notes, want) {
		t.Errorf("got %q,\nwant %q", res.Notes, want)
	}
	if len(res.Tensors) != 2 || res.Tensors[0].Name != embedding || res.Tensors[1].Name != head {
		t.Fatalf("got %v", res.Tensors)
	}
	for _, x := range res.Tensors {
		if f := x.Sums.Figures(0, 1); f.Elements != 6 || f.Equal != 1 {
			t.Errorf("%s: got %+v, want 6 equal elements", x.Name, f)
		}
	}
}

func TestRefusals(t *testing.T) {
	x := func(name string, shape ...int) stored {
		n := 1
		for _, d := range shape {
			n *= d
		}
		return stored{name, half.F32, shape, make([]float32, n)}
	}
	nan := x("a", 2*Chunk)
	nan.v[2*Chunk-1], nan.v[Chunk+3] = float32(math.Inf(1)), float32(math.NaN())
	inf := x("b", 2, 3)
	inf.v[4] = float32(math.Inf(-1))
	a := open(t, "one", x("a", 2*Chunk), x("b", 2, 3))
	for _, tt := range []struct {
		what string
		job  Job
		kind error
		want string
	}{
		{
			"shape",
			Job{Models: []Model{a, open(t, "two", x("a", 2*Chunk), x("b", 3, 2))}},
			fault.Config, `compare: tensor "b": shape [2 3] in model one, [3 2] in model two`,
		},
		{
			"vocabulary of other widths",
			Job{Models: []Model{open(t, "one", x(embedding, 4, 3)), open(t, "two", x(embedding, 4, 2))}},
			fault.Config, `compare: tensor "model.embed_tokens.weight": shape [4 3] in model one, [4 2] in model two`,
		},
		{
			"missing, both ways",
			Job{Models: []Model{a, open(t, "two", x("a", 2*Chunk), x("c", 1))}},
			fault.Config, `compare: tensor "b": model two has none, model one has [2 3] of it` + "\n" +
				`compare: tensor "c": model one has none, model two has [1] of it`,
		},
		{
			"missing in the base",
			Job{Models: []Model{a, a}, Base: &Model{"root", open(t, "", x("a", 2*Chunk)).Weights}},
			fault.Config, `compare: tensor "b": model root has none, model one has [2 3] of it`,
		},
		{
			"NaN",
			Job{Models: []Model{a, open(t, "two", nan, x("b", 2, 3))}, Threads: 3},
			fault.Data, fmt.Sprintf(`tensor "a": element %d of shape [%d] is NaN`, Chunk+3, 2*Chunk),
		},
		{
			"infinity in the base",
			Job{Models: []Model{a, a}, Base: &Model{"root", open(t, "", x("a", 2*Chunk), inf).Weights}},
			fault.Data, `tensor "b": element 4 of shape [2 3] is -Inf`,
		},
		{"one", Job{Models: []Model{a}}, fault.Config, "compare: got 1 models, want two or more"},
		{
			"memory",
			Job{Models: []Model{a, a}, Memory: 1 << 20},
			fault.Config, "compare: memory: got 1 MiB, want at least 1536 KiB for 2 models",
		},
		{
			"no floats",
			Job{Models: []Model{open(t, "i", stored{"n", half.I64, []int{1}, nil}), open(t, "j", stored{"n", half.I64, []int{1}, nil})}},
			fault.Config, "compare: the models have no tensors of floats in common",
		},
	} {
		if tt.job.Memory == 0 {
			tt.job.Memory = 1 << 30
		}
		tt.job.Level = kernel.Best()
		_, err := Run(context.Background(), tt.job)
		if err == nil || !errors.Is(err, tt.kind) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v, want %s of kind %v", tt.what, err, tt.want, tt.kind)
		}
	}
	var many, none []stored
	for i := range 20 {
		many, none = append(many, x(fmt.Sprint("w", i), 1)), append(none, x(fmt.Sprint("v", i), 1))
	}
	_, err := Run(context.Background(), Job{Models: []Model{open(t, "one", many...), open(t, "two", none...)}})
	if err == nil || strings.Count(err.Error(), "\n") != 8 || !strings.HasSuffix(err.Error(), "and 32 more tensors that do not match") {
		t.Errorf("many: got %v", err)
	}
}

// TestStopped: a run that is told to stop stops, and says why; what it has read is
// told on the way.
func TestStopped(t *testing.T) {
	n := 9 * Chunk
	m := open(t, "m", stored{"w", half.BF16, []int{n}, make([]float32, n)})
	ctx, cancel := context.WithCancel(context.Background())
	var seen int64
	job := Job{Models: []Model{m, m}, Level: kernel.Best(), Threads: 2, Memory: 1 << 30}
	job.Progress = func(done, total int64) {
		if seen = done; total != int64(4*n) || done > total {
			t.Errorf("progress: got %d of %d", done, total)
		}
		if done > total/3 {
			cancel()
		}
	}
	if _, err := Run(ctx, job); !errors.Is(err, context.Canceled) || seen == int64(4*n) {
		t.Errorf("got %v after %d bytes", err, seen)
	}
	job.Progress = func(done, _ int64) { seen = done }
	if _, err := Run(context.Background(), job); err != nil || seen != int64(4*n) {
		t.Errorf("got %v after %d bytes, want all %d", err, seen, 4*n)
	}
}

func TestPlaceOf(t *testing.T) {
	for name, want := range map[string]Place{
		"model.embed_tokens.weight":                           {"", -1, "embed"},
		"lm_head.weight":                                      {"", -1, "head"},
		"model.norm.weight":                                   {"", -1, "norm"},
		"model.layers.12.self_attn.q_proj.weight":             {"model.layers", 12, "q"},
		"model.layers.0.self_attn.k_proj.bias":                {"model.layers", 0, "k"},
		"model.layers.3.self_attn.q_norm.weight":              {"model.layers", 3, "norm"},
		"model.layers.3.post_attention_layernorm.weight":      {"model.layers", 3, "norm"},
		"model.layers.3.mlp.experts.5.gate_proj.weight":       {"model.layers", 3, "gate"},
		"model.layers.3.mlp.experts.gate_up_proj":             {"model.layers", 3, "gate_up"},
		"model.layers.3.block_sparse_moe.experts.5.w2.weight": {"model.layers", 3, "down"},
		"model.layers.3.block_sparse_moe.gate.weight":         {"model.layers", 3, "router"},
		"h.7.mlp.c_proj.weight":                               {"h", 7, "down"},
		"h.7.attn.c_proj.weight":                              {"h", 7, "o"},
		"gpt_neox.layers.1.attention.query_key_value.bias":    {"gpt_neox.layers", 1, "qkv"},
		"rotary":         {"", -1, "other"},
		"weight":         {"", -1, "other"},
		"a.123456.b":     {"", -1, "other"},
		"..":             {"", -1, "other"},
		"blocks.3.ls1.0": {"blocks", 3, "other"},
	} {
		if got := PlaceOf(name); got != want {
			t.Errorf("%s: got %v, want %v", name, got, want)
		}
	}
}

// FuzzPlaceOf: any name has a place, whose kind is among those shown.
func FuzzPlaceOf(f *testing.F) {
	for _, s := range []string{"", ".", "model.layers.12.self_attn.q_proj.weight", "9.9.weight", "bias", "a.٣.b"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, name string) {
		p := PlaceOf(name)
		known := false
		for _, k := range Kinds() {
			known = known || k == p.Kind
		}
		if !known || p.Layer < -1 || p.Layer > 99999 || !strings.HasPrefix(name, p.Stack) {
			t.Errorf("%q: got %v", name, p)
		}
	})
}

// TestGrid: layers and kinds are sums of their tensors, in order.
func TestGrid(t *testing.T) {
	var names []string
	for _, l := range []string{"10", "2"} {
		names = append(names, "m.layers."+l+".q_proj.weight", "m.layers."+l+".q_proj.bias", "m.layers."+l+".in_norm.weight")
	}
	names = append(names, "m.norm.weight", "lm_head.weight")
	var a, b []stored
	for i, name := range names {
		v := float32(i + 1)
		a = append(a, stored{name, half.F32, []int{2}, []float32{v, 1}})
		b = append(b, stored{name, half.F32, []int{2}, []float32{v, 2}})
	}
	res := run1(t, Job{Models: []Model{open(t, "a", a...), open(t, "b", b...)}})
	g := res.Grid()
	if got := fmt.Sprint(g.Kinds, len(g.Rows)); got != "[norm q head] 3" {
		t.Errorf("got %s", got)
	}
	var labels []string
	var n int64
	for i, r := range g.Rows {
		labels = append(labels, r.Label)
		n += r.All.Elements
		if r.Layer < 0 != (r.Cells[2] != nil) || r.Layer < 0 != (r.Cells[1] == nil) {
			t.Errorf("row %d: got cells %v", i, r.Cells)
		}
	}
	if fmt.Sprint(labels) != "[outside 2 10]" || n != g.All.Elements || n != 16 {
		t.Errorf("got rows %v of %d elements, %d of %d in all", labels, n, g.All.Elements, 16)
	}
	// Layer 2 is the second in the files: its matrices of q are (4, 1), (5, 1).
	near(t, "layer 2, q", g.Rows[1].Cells[1].Figures(0, 1),
		naive([]float32{4, 1, 5, 1}, []float32{4, 2, 5, 2}, nil))
	if f := g.All.Figures(0, 1); f.Equal != 0.5 {
		t.Errorf("all: got %v equal, want half", f.Equal)
	}
	two := &Result{Tensors: []Tensor{{Place: Place{"x", 1, "q"}, Sums: newSums(2, false)}, {Place: Place{"y", 0, "q"}, Sums: newSums(2, false)}}}
	if g := two.Grid(); g.Rows[0].Label != "x.1" || g.Rows[1].Label != "y.0" {
		t.Errorf("two stacks: got %q and %q", g.Rows[0].Label, g.Rows[1].Label)
	}
}

func BenchmarkMeasure(b *testing.B) {
	r := rand.New(rand.NewPCG(9, 9))
	x := values(r, half.BF16, Chunk)
	for _, base := range []bool{false, true} {
		b.Run(fmt.Sprintf("base=%v", base), func(b *testing.B) {
			m := [][]float32{moved(r, half.BF16, x, 0.01), moved(r, half.BF16, x, 0.01)}
			var o []float32
			n := 2
			if base {
				o, n = moved(r, half.BF16, x, 0.01), 3
			}
			s, scratch := newSums(2, base), make([]float32, Chunk)
			b.SetBytes(int64(2 * n * Chunk))
			for b.Loop() {
				s.measure(kernel.Best(), m, o, scratch)
			}
		})
	}
}

func BenchmarkRun(b *testing.B) {
	r := rand.New(rand.NewPCG(9, 9))
	const n = 256 * Chunk
	x := values(r, half.BF16, n)
	var m []Model
	for i := range 3 {
		m = append(m, open(b, fmt.Sprint(i), stored{"w", half.BF16, []int{n}, moved(r, half.BF16, x, 0.01)}))
	}
	for _, base := range []*Model{nil, &m[2]} {
		b.Run(fmt.Sprintf("base=%v", base != nil), func(b *testing.B) {
			k := 2
			if base != nil {
				k = 3
			}
			b.SetBytes(int64(2 * n * k))
			for b.Loop() {
				run1(b, Job{Models: m[:2], Base: base, Threads: 2})
			}
		})
	}
}
