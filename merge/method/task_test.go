// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package method

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pleach/internal/fault"
	"pleach/internal/rng"
	"pleach/kernel"
)

var (
	vectorB  = []float32{0.5, -1, 0.25, 2, 1.5, -0.75, -2, 0.125}
	vectorM1 = []float32{1, -1.25, 0.375, 1, 2.25, -0.6875, -2.375, 0.15625}
	vectorM2 = []float32{0.1875, -1.5, 0.4375, 2.25, 0.25, -0.59375, -2.4375, 0.03125}
)

// changed is a problem of models M1, M2, … that come before their base.
func changed(shape []int, global Values, models ...Values) Problem {
	p := Problem{Name: "w", Shape: shape, Base: len(models), Global: global, Seed: 42, Level: kernel.Best()}
	for i, v := range models {
		p.Inputs = append(p.Inputs, Input{Model: fmt.Sprint("M", i+1), Number: i, Params: v})
	}
	p.Inputs = append(p.Inputs, Input{Model: "B", Number: -1})
	return p
}

func jobOf(t *testing.T, name string, p Problem) Job {
	t.Helper()
	m, ok := Find(name)
	if !ok {
		t.Fatalf("no method %s", name)
	}
	j, err := m.New(p)
	if err != nil {
		t.Fatal(err)
	}
	return j
}

func solved(t *testing.T, j Job, n, workers int, inputs ...[]float32) []float32 {
	t.Helper()
	out := make([]float32, n)
	if err := Solve(j, inputs, out, workers); err != nil {
		t.Fatal(err)
	}
	return out
}

// nearPlain says whether got is want within 10⁻⁶ of its largest element.
func nearPlain(got []float32, want []float64) error {
	most := 0.0
	for _, v := range want {
		most = max(most, math.Abs(v))
	}
	for i, v := range want {
		if d := math.Abs(float64(got[i]) - v); !(d <= 1e-6*most) {
			return fmt.Errorf("element %d: got %v, want %v", i, got[i], v)
		}
	}
	return nil
}

// TestTaskVectors: a worked example of every method, computed in float64.
func TestTaskVectors(t *testing.T) {
	w := func(more ...any) []Values {
		list := []Values{{"weight": .6}, {"weight": .4}}
		for i := 0; i < len(more); i += 2 {
			for _, v := range list {
				v[more[i].(string)] = more[i+1].(float64)
			}
		}
		return list
	}
	for _, tt := range []struct {
		method string
		global Values
		models []Values
		want   []float64
	}{
		{"task_arithmetic", Values{"lambda": .7}, w(), []float64{
			.6225, -1.245, .355, 1.65, 1.465, -.68, -2.28, .111875,
		}},
		{"ties", nil, w("density", .5), []float64{1, -1.5, .25, 1, .25, -.75, -2.4, .125}},
		{"ties", Values{"normalize": 0}, w("density", .5), []float64{.8, -1.2, .25, 1.4, 1, -.75, -2.4, .125}},
		{"breadcrumbs", nil, w("density", .5, "gamma", .125), []float64{
			.675, -1.35, .25, 2.1, 1.95, -.75, -2.4, .125,
		}},
		{"breadcrumbs_ties", nil, w("density", .5, "gamma", .125), []float64{
			.8, -1.35, .25, 2.1, 1.95, -.75, -2.4, .125,
		}},
		{"sce", nil, w(), []float64{1, -1.38074811, .407687028, 1, .25, -.638469458, -2.40768703, .03125}},
		{"sce", Values{"select_topk": .5}, w(), []float64{1, -1.37817259, .25, 1, .25, -.75, -2, .125}},
		{"arcee_fusion", nil, w()[:1], []float64{1, -1, .25, 1, 1.5, -.75, -2, .125}},
	} {
		inputs := [][]float32{vectorM1, vectorM2, vectorB}
		if len(tt.models) == 1 {
			inputs = [][]float32{vectorM1, vectorB}
		}
		j := jobOf(t, tt.method, changed([]int{2, 4}, tt.global, tt.models...))
		if err := nearPlain(solved(t, j, 8, 1, inputs...), tt.want); err != nil {
			t.Errorf("%s %v: %v", tt.method, tt.global, err)
		}
	}
}

// TestDareVector: the same of DARE with given masks.
func TestDareVector(t *testing.T) {
	want := []float64{.5, -2.07368421, .435625, 2, 2.61375, -.75, -2.556875, -.0763157895}
	for _, name := range []string{"dare_linear", "dare_ties"} {
		v := Values{"weight": .6, "density": .5}
		j := jobOf(t, name, changed([]int{2, 4}, nil, v, Values{"weight": .4, "density": .5})).(*taskJob)
		for i, bits := range []uint64{1<<2 | 1<<4 | 1<<6, 1<<1 | 1<<7} {
			s := j.shares[i]
			s.chance = nil // so that the mask stays as it is
			s.mask[0] = bits
		}
		if err := nearPlain(solved(t, j, 8, 1, vectorM1, vectorM2, vectorB), want); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestStream: random numbers of a known seed, name and model.
func TestStream(t *testing.T) {
	p := Problem{Seed: 42, Name: "model.layers.0.mlp.up_proj.weight"}
	s := streamOf(&p, &Input{Number: 0})
	for i, want := range []uint32{0xa1cd2422, 0xdb8ef33d, 0xcadc43fe, 0xe8d4805d, 0xc7c1cb66} {
		if got := s.Word(uint64(i)); got != want {
			t.Errorf("word %d: got %x, want %x", i, got, want)
		}
	}
}

// plainTask is a taskRule on whole tensors in float64, but for differences and which of
// them stay.
func plainTask(t taskRule, p Problem, in [][]float32) []float64 {
	n := p.Len()
	base := in[p.Base]
	var w []float64
	var weighted [][]float64
	total := 0.0
	for _, k := range p.Others() {
		v := p.Inputs[k].Params
		d := make([]float32, n)
		for i := range d {
			d[i] = in[k][i] - base[i]
		}
		x := plainThin(t, p, p.Inputs[k], d)
		weight := v["weight"]
		factor := 1.0
		all, some := 0.0, 0.0
		for i := range d {
			all += math.Abs(float64(d[i]))
			some += math.Abs(float64(x[i]))
		}
		if p.Global.orElse("rescale", t.rescale) != 0 && all >= 1e-7 && some >= 1e-7 {
			factor = all / some
		}
		y := make([]float64, n)
		for i := range y {
			y[i] = weight * factor * float64(x[i])
		}
		w, weighted, total = append(w, weight), append(weighted, y), total+weight
	}
	if math.Abs(total) < 1e-8 {
		total = 1
	}
	out := make([]float64, n)
	for i := range out {
		sum, divisor := 0.0, total
		for _, x := range weighted {
			sum += x[i]
		}
		if t.consensus {
			positive := sum >= 0
			sum, divisor = 0, 0
			for m, x := range weighted {
				if x[i] != 0 && x[i] > 0 == positive {
					sum += x[i]
					divisor += w[m]
				}
			}
			if divisor == 0 {
				divisor = 1
			}
		}
		if p.Global.orElse("normalize", t.normalize) != 0 {
			sum /= divisor
		}
		out[i] = float64(base[i]) + p.Global.orElse("lambda", 1)*sum
	}
	return out
}

// plainThin is a difference with 0 for what does not stay.
func plainThin(t taskRule, p Problem, in Input, d []float32) []float32 {
	n := len(d)
	density := in.Params.orElse("density", 1)
	if t.thin == byNone || density >= 1 {
		return d
	}
	keep := make([]bool, n)
	h := sha256.Sum256(fmt.Appendf(nil, "%d\x00%s\x00%d", p.Seed, p.Name, in.Number))
	s := rng.Keyed([2]uint32{binary.LittleEndian.Uint32(h[:4]), binary.LittleEndian.Uint32(h[4:8])})
	switch t.thin {
	case byMagnitude:
		keep = kept(d, n-int(density*float64(n)), 0)
	case byMiddle:
		stay, top := int(density*float64(n)), int(in.Params.orElse("gamma", 0.01)*float64(n))
		if stay+top > n {
			top = n - stay
		}
		if stay > 0 {
			keep = kept(d, n-stay-top, top)
		}
	case byChance:
		for i := range keep {
			keep[i] = float64(s.Word(uint64(i))>>8)*0x1p-24 < density
		}
	case byRank:
		return plainDella(d, p.Shape, density, in.Params.orElse("epsilon", 0.15), s)
	}
	x := slices.Clone(d)
	for i := range x {
		if !keep[i] {
			x[i] = 0
		}
	}
	return x
}

// rulesOf are those of the family, by name.
func rulesOf() map[string]taskRule {
	return map[string]taskRule{
		"task_arithmetic":  {},
		"ties":             {thin: byMagnitude, consensus: true, normalize: 1},
		"dare_linear":      {thin: byChance, rescale: 1},
		"dare_ties":        {thin: byChance, consensus: true, rescale: 1},
		"breadcrumbs":      {thin: byMiddle},
		"breadcrumbs_ties": {thin: byMiddle, consensus: true},
		"della":            {thin: byRank, consensus: true, normalize: 1, rescale: 1},
		"della_linear":     {thin: byRank, rescale: 1},
	}
}

var shapesOfTests = [][]int{{}, {1}, {40}, {1, 300}, {300, 1}, {33, 70}, {5, 6, 7}, {200, 333}}

// tensorsOf are so many inputs that differ a little from the last.
func tensorsOf(r *rand.Rand, count, n int) [][]float32 {
	list := make([][]float32, count+1)
	list[count] = fill(n, func(int) float32 { return float32(r.NormFloat64()) })
	for k := range count {
		list[k] = fill(n, func(i int) float32 {
			d := float32(0)
			if r.IntN(8) > 0 {
				d = float32(0.2 * r.NormFloat64())
			}
			return list[count][i] + d
		})
	}
	return list
}

// TestTaskPlain: every method of the family is what its definition says, on any number
// of workers.
func TestTaskPlain(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 12))
	for name, rule := range rulesOf() {
		for _, shape := range shapesOfTests {
			for range 3 {
				global := Values{}
				for _, g := range []string{"normalize", "rescale"} {
					if r.IntN(3) > 0 {
						global[g] = float64(r.IntN(2))
					}
				}
				if r.IntN(2) > 0 {
					global["lambda"] = 2 * r.Float64()
				}
				var models []Values
				for range 1 + r.IntN(4) {
					models = append(models, Values{
						"weight": math.Round(80*r.NormFloat64()) / 64, "density": 0.3 + 0.8*r.Float64(),
						"gamma": 0.2 * r.Float64(), "epsilon": 0.2 * r.Float64(),
					})
				}
				comparePlain(t, name, rule, changed(shape, global, models...), r)
			}
		}
	}
}

func comparePlain(t *testing.T, name string, rule taskRule, p Problem, r *rand.Rand) {
	t.Helper()
	n := p.Len()
	in := tensorsOf(r, len(p.Inputs)-1, n)
	m, _ := Find(name)
	j, err := m.New(p)
	if n == 1 && err != nil && strings.Contains(err.Error(), "density") {
		return // of 1 element none would be kept
	}
	if err == nil && j.Memory() < 0 {
		t.Errorf("%s: memory of %d bytes", name, j.Memory())
	}
	for _, v := range p.Inputs[:len(p.Inputs)-1] {
		d, e := v.Params["density"], v.Params["epsilon"]
		if rule.thin == byRank && d < 1 && (d-e <= 0 || d+e >= 1) {
			if err == nil {
				t.Errorf("%s: density %v ± %v is allowed", name, d, e)
			}
			return
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	got := solved(t, j, n, 1, in...)
	if err := nearPlain(got, plainTask(rule, p, in)); err != nil {
		t.Errorf("%s of %v, %v, %v: %v", name, p.Shape, p.Global, p.Inputs, err)
	}
	for _, workers := range []int{2, 8} {
		if again := solved(t, jobOf(t, name, p), n, workers, in...); !slices.Equal(got, again) {
			t.Errorf("%s of %v: %d workers got other bits than 1", name, p.Shape, workers)
		}
	}
	p.Level = kernel.Portable
	if again := solved(t, jobOf(t, name, p), n, 1, in...); !slices.Equal(got, again) {
		t.Errorf("%s of %v: plain Go got other bits than %v", name, p.Shape, kernel.Best())
	}
}

// TestTaskOrder: chunks may come in any order, also where there is a sample.
func TestTaskOrder(t *testing.T) {
	r := rand.New(rand.NewPCG(13, 14))
	const n = 1<<17 + 77
	in := tensorsOf(r, 2, n)
	for _, m := range taskArithmetic() {
		v := Values{"weight": 0.5, "density": 0.4, "epsilon": 0.1}
		models := []Values{v, v}
		x := in
		if m.Name == "arcee_fusion" {
			models, x = models[:1], in[1:]
		}
		p := changed([]int{n}, Values{"select_topk": 0.3, "rescale": 1}, models...)
		want := solved(t, jobOf(t, m.Name, p), n, 1, x...)
		j := jobOf(t, m.Name, p)
		if got := shuffled(t, j, x, n, r); !slices.Equal(got, want) {
			t.Errorf("%s: another order of chunks gives other bits", m.Name)
		}
	}
}

// shuffled is Solve with the chunks of every pass in an order of its own, and scratch
// memory full of NaN.
func shuffled(t *testing.T, j Job, in [][]float32, n int, r *rand.Rand) []float32 {
	t.Helper()
	out := make([]float32, n)
	for {
		p, err := j.Begin()
		if err != nil {
			t.Fatal(err)
		}
		if p == nil {
			return out
		}
		chunks := slices.Clone(p.Chunks)
		if chunks == nil {
			chunks = r.Perm(Chunks(n, j.Chunk()))
		}
		r.Shuffle(len(chunks), func(a, b int) { chunks[a], chunks[b] = chunks[b], chunks[a] })
		for _, i := range chunks {
			scratch := fill(j.Scratch(), func(int) float32 { return float32(math.NaN()) })
			if err := p.Do(p.chunk(i, j.Chunk(), in, out, scratch)); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestCounts: exactly as many elements change as the density says.
func TestCounts(t *testing.T) {
	r := rand.New(rand.NewPCG(15, 16))
	const n = 128 * 64
	base := make([]float32, n)
	x := fill(n, func(int) float32 { return float32(r.NormFloat64()) })
	count := func(method string, v Values) int {
		v["weight"] = 1
		out := solved(t, jobOf(t, method, changed([]int{128, 64}, nil, v)), n, 2, x, base)
		left := 0
		for _, y := range out {
			if y != 0 {
				left++
			}
		}
		return left
	}
	for _, d := range []float64{.1, .3, .5, .6, .9, 1} {
		want := int(d * n)
		if got := count("ties", Values{"density": d}); got != want {
			t.Errorf("ties, density %v: %d elements, want %d", d, got, want)
		}
		for _, gamma := range []float64{0, .1, .2, .5, 1} {
			v := Values{"density": d, "gamma": gamma * (1 - d)}
			if got := count("breadcrumbs", v); got != want {
				t.Errorf("breadcrumbs, %v: %d elements, want %d", v, got, want)
			}
		}
		got, sigma := count("dare_linear", Values{"density": d}), math.Sqrt(n*d*(1-d))
		if math.Abs(float64(got)-d*n) > 4*sigma {
			t.Errorf("dare, density %v: %d elements, want %v ± %v", d, got, d*n, sigma)
		}
	}
}

// TestSeeds: other seeds, names and models draw other numbers.
func TestSeeds(t *testing.T) {
	const n = 1000
	base := make([]float32, n)
	x := fill(n, func(int) float32 { return 1 })
	seen := map[string]string{}
	for _, tt := range []struct {
		seed   uint64
		name   string
		number int
	}{{1, "a", 0}, {2, "a", 0}, {1, "b", 0}, {1, "a", 1}} {
		for _, m := range []string{"dare_linear", "della_linear"} {
			p := changed([]int{n}, nil, Values{"weight": 1, "density": .5})
			p.Seed, p.Name, p.Inputs[0].Number = tt.seed, tt.name, tt.number
			is := fmt.Sprint(solved(t, jobOf(t, m, p), n, 1, x, base))
			if other := seen[m+is]; other != "" {
				t.Errorf("%s: %v draws the numbers of %s", m, tt, other)
			}
			seen[m+is] = fmt.Sprint(tt)
		}
	}
}

// TestTaskAlgebra: equal inputs are the result, as is the base if no other model has
// the tensor, if lambda is 0, or if nothing stays.
func TestTaskAlgebra(t *testing.T) {
	r := rand.New(rand.NewPCG(17, 18))
	const n = 600
	in := tensorsOf(r, 2, n)
	base := in[2]
	v := Values{"weight": 1, "density": 1}
	for _, m := range taskArithmetic() {
		same := func(what string, p Problem, want []float32, inputs ...[]float32) {
			t.Helper()
			if got := solved(t, jobOf(t, m.Name, p), n, 2, inputs...); !slices.Equal(got, want) {
				t.Errorf("%s: %s: not so", m.Name, what)
			}
		}
		models := []Values{v, v}
		if m.Name == "arcee_fusion" {
			models = models[:1]
		}
		same("equal inputs", changed([]int{20, 30}, nil, models...), base,
			slices.Repeat([][]float32{base}, len(models)+1)...)
		same("the base alone", changed([]int{20, 30}, nil), base, base)
		if m.Name == "arcee_fusion" || m.Name == "sce" {
			continue
		}
		same("lambda 0", changed([]int{20, 30}, Values{"lambda": 0}, models...), base, in...)
	}
	for _, tt := range []struct {
		name   string
		global Values
		model  Values
	}{
		{"sce", Values{"select_topk": 0}, v},
		{"sce", Values{"select_topk": 0.001}, v}, // ⌊600·0.001⌋ = 0
		{"dare_ties", nil, Values{"weight": 1, "density": 0}},
		{"della", nil, Values{"weight": 1, "density": 0}},
		{"breadcrumbs", nil, Values{"weight": 1, "density": 0.001}},
	} {
		p := changed([]int{20, 30}, tt.global, tt.model, tt.model)
		if got := solved(t, jobOf(t, tt.name, p), n, 1, in...); !slices.Equal(got, base) {
			t.Errorf("%s %v %v: not the base", tt.name, tt.global, tt.model)
		}
	}
	p := changed([]int{20, 30}, nil, v)
	p.Inputs, p.Base = p.Inputs[:1], -1
	if got := solved(t, jobOf(t, "arcee_fusion", p), n, 1, in[0]); !slices.Equal(got, in[0]) {
		t.Error("arcee_fusion of one model is not that model")
	}
}

// TestTaskNaN: a NaN of an input is not lost where it stays.
func TestTaskNaN(t *testing.T) {
	base := []float32{1, 1, 1, 1}
	x := []float32{2, float32(math.NaN()), 2, 2}
	for _, m := range taskArithmetic() {
		v := Values{"weight": 1, "density": 0.8}
		if m.Random {
			v["density"] = 1
		}
		p := changed([]int{4}, nil, v, v)
		in := [][]float32{x, base, base}
		if m.Name == "arcee_fusion" {
			p, in = changed([]int{4}, nil, v), in[:2]
		}
		if got := solved(t, jobOf(t, m.Name, p), 4, 1, in...); got[1] == got[1] {
			t.Errorf("%s: the NaN is lost: %v", m.Name, got)
		}
	}
}

// TestTaskErrors: what cannot be merged is told with the tensor, the model and the
// value.
func TestTaskErrors(t *testing.T) {
	for _, tt := range []struct {
		method string
		global Values
		models []Values
		base   bool
		want   []string
	}{
		{"ties", nil, []Values{{"weight": 1}}, false, []string{"want the base"}},
		{"ties", nil, []Values{{}, {"weight": 1}}, true, []string{"weight of M1: got none"}},
		{"ties", nil, []Values{{"weight": 1, "density": 0.1}, {"weight": 1, "density": -1}}, true, []string{
			"density of M1: got 0.1, want one that keeps at least 1 of 6", "density of M2: got -1",
		}},
		{"dare_ties", nil, []Values{{"weight": 1, "density": -0.1}}, true, []string{"density of M1: got -0.1"}},
		{"breadcrumbs", nil, []Values{{"weight": 1, "density": -0.1}}, true, []string{"density of M1: got -0.1"}},
		{"breadcrumbs", nil, []Values{{"weight": 1, "density": .5, "gamma": -1}}, true, []string{
			"gamma of M1: got -1",
		}},
		{"della", nil, []Values{{"weight": 1, "density": .5, "epsilon": 1.35}}, true, []string{
			"epsilon of M1: got 1.35",
		}},
		{"della_linear", nil, []Values{{"weight": 1, "density": .1}}, true, []string{"epsilon of M1: got 0.15"}},
		{"sce", nil, []Values{{}}, false, []string{"want the base"}},
		{"arcee_fusion", nil, []Values{{}, {}}, true, []string{"2 other models, want the base and 1"}},
	} {
		p := changed([]int{2, 3}, tt.global, tt.models...)
		if !tt.base {
			p.Inputs, p.Base = p.Inputs[:1], -1
			p.Inputs = append(p.Inputs, Input{Model: "M9", Number: 1, Params: Values{"weight": 1}})
		}
		m, _ := Find(tt.method)
		_, err := m.New(p)
		if !errors.Is(err, fault.Config) {
			t.Errorf("%s: got %v, want an error of the configuration", tt.method, err)
			continue
		}
		for _, want := range append(tt.want, tt.method+" of \"w\"") {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: got %q, want %q in it", tt.method, err, want)
			}
		}
	}
}
