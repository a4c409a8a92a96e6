// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"pleach/blob"
	"pleach/half"
	"pleach/internal/fault"
	"pleach/weights"
)

// loraTensors are float tensors by name, to be written.
type loraTensors map[string]struct {
	shape []int
	x     []float32
}

// filled adds a tensor of pseudo-random numbers of at most 1.
func (ts loraTensors) filled(name string, shape ...int) loraTensors {
	n := 1
	for _, d := range shape {
		n *= d
	}
	r := rand.New(rand.NewPCG(uint64(len(name)), uint64(n)))
	x := make([]float32, n)
	for i := range x {
		x[i] = 2*r.Float32() - 1
	}
	ts[name] = struct {
		shape []int
		x     []float32
	}{shape, x}
	return ts
}

// write writes tensors as NAME.safetensors in a folder, and opens it.
func (ts loraTensors) write(t *testing.T, dir, name string, dt half.DType) *weights.Set {
	t.Helper()
	var list []weights.Source
	for n, x := range ts {
		list = append(list, weights.Source{
			Name: n, DType: dt, Shape: x.shape,
			Read: func(lo, hi int, dst []float32) error { copy(dst, x.x[lo:hi]); return nil },
		})
	}
	slices.SortFunc(list, func(a, b weights.Source) int { return strings.Compare(a.Name, b.Name) })
	p, err := weights.NewPlan(name, 0, list)
	if err == nil {
		err = p.Write(".", blob.Local(dir).Write)
	}
	if err != nil {
		t.Fatal(err)
	}
	set, err := weights.OpenFiles(blob.Local(dir), name+".safetensors")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { set.Close() })
	return set
}

// newAdapter opens an adapter of these tensors for a model of those.
func newAdapter(t *testing.T, config string, own, base loraTensors) (*Adapter, error) {
	t.Helper()
	dir := t.TempDir()
	own.write(t, dir, "adapter_model", half.F32).Close()
	set := base.write(t, t.TempDir(), "model", half.F32)
	if err := os.WriteFile(filepath.Join(dir, "adapter_config.json"), []byte(config), 0o644); err != nil {
		t.Fatal(err)
	}
	a, err := OpenAdapter(dir, set)
	if err == nil {
		t.Cleanup(a.Close)
	}
	return a, err
}

func readAll(t *testing.T, n int, read func(lo, hi int, dst []float32) error) []float32 {
	t.Helper()
	x := make([]float32, n)
	if err := read(0, n, x); err != nil {
		t.Fatal(err)
	}
	return x
}

// ulp is the distance of neighbours of type t at x.
func ulp(t half.DType, x float64) float64 {
	bits := map[half.DType]int{half.F32: 23, half.BF16: 7, half.F16: 10}[t]
	_, e := math.Frexp(x)
	return math.Ldexp(1, e-1-bits)
}

// TestAdapterGolden compares with what PEFT makes of the same model and adapter:
// testdata/adapter/make.py. The order of sums differs, so float32 may be two units
// of the sum of all parts without their signs apart, and what is rounded to 16 bits
// one.
func TestAdapterGolden(t *testing.T) {
	cases, err := filepath.Glob("testdata/adapter/*/base")
	if err != nil || len(cases) != 9 {
		t.Fatalf("got %d cases, %v, want 9", len(cases), err)
	}
	for _, base := range cases {
		dir := filepath.Dir(base)
		t.Run(filepath.Base(dir), func(t *testing.T) {
			m, err := OpenModel("m", base, filepath.Join(dir, "lora"))
			if err != nil {
				t.Fatal(err)
			}
			defer m.Close()
			want, err := weights.OpenDir(filepath.Join(dir, "merged"))
			if err != nil {
				t.Fatal(err)
			}
			defer want.Close()
			if len(want.Tensors()) != len(m.Adapter.targets) {
				t.Errorf("got %d tensors that change, want %d", len(m.Adapter.targets), len(want.Tensors()))
			}
			for _, w := range want.Tensors() {
				comparePEFT(t, m, want, w)
			}
		})
	}
}

func comparePEFT(t *testing.T, m *Model, want *weights.Set, w weights.Tensor) {
	t.Helper()
	shape, dt, ok := m.Tensor(w.Name)
	if !ok || !slices.Equal(shape, w.Shape) || dt != w.DType || !m.Adapter.Touches(w.Name) {
		t.Fatalf("%s: got %v %d, %t, want %v %d", w.Name, dt, shape, ok, w.DType, w.Shape)
	}
	got := readAll(t, w.Len(), func(lo, hi int, dst []float32) error { return m.Read(w.Name, lo, hi, dst) })
	exp := readAll(t, w.Len(), func(lo, hi int, dst []float32) error { return want.Read(w.Name, lo, hi, dst) })
	units, other := 2.0, 0
	if dt != half.F32 {
		units = 1
	}
	parts := loraSizes(t, m.Adapter, w)
	for i, g := range got {
		if d := math.Abs(float64(g - exp[i])); d > units*ulp(dt, parts[i]) {
			t.Errorf("%s: element %d: got %v, want %v, %v units apart", w.Name, i, g, exp[i], d/ulp(dt, parts[i]))
		} else if d != 0 {
			other++
		}
	}
	if dt != half.F32 && other > len(got)/100 && !strings.Contains(w.Name, "embed_tokens") {
		t.Errorf("%s: %d of %d elements are rounded differently", w.Name, other, len(got))
	}
}

// loraSizes is |W| + s·Σ|U|·|V| of each element.
func loraSizes(t *testing.T, a *Adapter, w weights.Tensor) []float64 {
	t.Helper()
	target := a.targets[w.Name]
	list := make([]float64, w.Len())
	x := make([]float32, w.Len())
	from, set := target.model.Name, a.base
	if target.instead != "" {
		from, set = target.instead, a.own
	}
	if err := set.Read(from, 0, len(x), x); err != nil {
		t.Fatal(err)
	}
	for i, v := range x {
		list[i] = math.Abs(float64(v))
	}
	if target.a == "" {
		return list
	}
	f, err := a.factors(target)
	if err != nil {
		t.Fatal(err)
	}
	for i := range list {
		for r := range f.R {
			uv := f.u[i/f.J*f.ui+r*f.ur] * f.v[r*f.J+i%f.J]
			list[i] += math.Abs(float64(target.scale * uv))
		}
	}
	return list
}

// TestAdapterFormula compares with the formula in float64, and ranges with the
// whole, from several goroutines at once.
func TestAdapterFormula(t *testing.T) {
	const I, J, R = 37, 1000, 5
	base := loraTensors{}.filled("l.weight", I, J).filled("f.weight", J, I).filled("e.weight", I, J).filled("n.weight", J)
	own := loraTensors{}
	for _, m := range []string{"l", "f"} {
		own.filled("base_model.model."+m+".lora_A.weight", R, J).filled("base_model.model."+m+".lora_B.weight", I, R)
	}
	own.filled("base_model.model.e.lora_embedding_A", R, I).filled("base_model.model.e.lora_embedding_B", J, R)
	a, err := newAdapter(t, `{"peft_type":"LORA","r":5,"lora_alpha":12.5}`, own, base)
	if err != nil {
		t.Fatal(err)
	}
	if a.Touches("n.weight") || len(a.Files()) != 2 || a.Memory(2) < 6*4*R*(I+J) {
		t.Errorf("got files %v, memory %d", a.Files(), a.Memory(2))
	}
	n := readAll(t, J, func(lo, hi int, dst []float32) error { return a.Read("n.weight", lo, hi, dst) })
	if !slices.Equal(n, base["n.weight"].x) {
		t.Error("another tensor changed")
	}
	A := func(m string, r, j int) float64 { return float64(own["base_model.model."+m+".lora_A.weight"].x[r*J+j]) }
	B := func(m string, i, r int) float64 { return float64(own["base_model.model."+m+".lora_B.weight"].x[i*R+r]) }
	for name, element := range map[string]func(i, r int) float64{
		"l.weight": func(i, r int) float64 { return B("l", i/J, r) * A("l", r, i%J) },
		"f.weight": func(i, r int) float64 { return B("f", i%I, r) * A("f", r, i/I) },
		"e.weight": func(i, r int) float64 {
			return float64(own["base_model.model.e.lora_embedding_A"].x[r*I+i/J]) *
				float64(own["base_model.model.e.lora_embedding_B"].x[i%J*R+r])
		},
	} {
		whole := readAll(t, I*J, func(lo, hi int, dst []float32) error { return a.Read(name, lo, hi, dst) })
		for i, got := range whole {
			want := float64(base[name].x[i])
			for r := range R {
				want += 12.5 / R * element(i, r)
			}
			if math.Abs(float64(got)-want) > 4e-6 {
				t.Fatalf("%s: element %d: got %v, want %v", name, i, got, want)
			}
		}
		loraRanges(t, a, name, whole)
	}
}

func loraRanges(t *testing.T, a *Adapter, name string, whole []float32) {
	t.Helper()
	var group sync.WaitGroup
	for k := range 4 {
		group.Go(func() {
			r := rand.New(rand.NewPCG(3, uint64(k)))
			for range 50 {
				lo := r.IntN(len(whole) + 1)
				hi := lo + r.IntN(len(whole)-lo+1)
				part := make([]float32, hi-lo)
				if err := a.Read(name, lo, hi, part); err != nil || !slices.Equal(part, whole[lo:hi]) {
					t.Errorf("%s [%d:%d]: other bits than in the whole, %v", name, lo, hi, err)
				}
			}
		})
	}
	group.Wait()
}

// TestAdapterEviction reads more tensors than are held, in turn.
func TestAdapterEviction(t *testing.T) {
	base, own := loraTensors{}, loraTensors{}
	for i := range 2 * heldFactors {
		base.filled(fmt.Sprintf("m.%d.weight", i), 3, 4+i)
		own.filled(fmt.Sprintf("m.%d.lora_A.weight", i), 2, 4+i).filled(fmt.Sprintf("m.%d.lora_B.weight", i), 3, 2)
	}
	a, err := newAdapter(t, `{"peft_type":"LORA","r":2}`, own, base)
	if err != nil {
		t.Fatal(err)
	}
	first := map[string][]float32{}
	for range 2 {
		for name, x := range base {
			got := readAll(t, len(x.x), func(lo, hi int, dst []float32) error { return a.Read(name, lo, hi, dst) })
			if first[name] == nil {
				first[name] = got
			}
			if !slices.Equal(got, first[name]) || slices.Equal(got, x.x) {
				t.Errorf("%s: got %v, want %v", name, got, first[name])
			}
		}
		if len(a.recent) != heldFactors {
			t.Errorf("got the factors of %d tensors held, want %d", len(a.recent), heldFactors)
		}
	}
}

// TestAdapterNames finds tensors by all the names that there are.
func TestAdapterNames(t *testing.T) {
	base := loraTensors{}.filled("h.0.q.weight", 3, 4).filled("norm.weight", 4).filled("score.weight", 2, 4).
		filled("score.bias", 2).filled("model.embed_tokens.weight", 6, 4)
	own := loraTensors{}.
		filled("base_model.model.transformer.h.0.q.lora_A.default.weight", 2, 4).
		filled("base_model.model.transformer.h.0.q.lora_B.default.weight", 3, 2).
		filled("base_model.model.transformer.h.0.q.base_layer.weight", 3, 4).
		filled("base_model.model.norm.weight", 4).
		filled("base_model.model.score.modules_to_save.default.weight", 2, 4).
		filled("base_model.model.score.modules_to_save.bias", 2).
		filled("base_model.model.model.embed_tokens.lora_embedding_A.x", 2, 6).
		filled("base_model.model.model.embed_tokens.lora_embedding_B.x", 4, 2)
	a, err := newAdapter(t, `{"peft_type":"LORA","r":2,"lora_alpha":2}`, own, base)
	if err != nil {
		t.Fatal(err)
	}
	for name, from := range map[string]string{
		"norm.weight": "norm.weight", "score.weight": "score.modules_to_save.default.weight",
		"score.bias": "score.modules_to_save.bias",
	} {
		want := own["base_model.model."+from].x
		got := readAll(t, len(want), func(lo, hi int, dst []float32) error { return a.Read(name, lo, hi, dst) })
		w, ok := a.Replaced(name)
		if !ok || w.Name != name || !slices.Equal(w.Shape, base[name].shape) || !slices.Equal(got, want) {
			t.Errorf("%s: got %v, %v, %t, want %v", name, got, w, ok, want)
		}
	}
	for name, replaced := range map[string]bool{"h.0.q.weight": true, "model.embed_tokens.weight": false} {
		if _, ok := a.Replaced(name); ok != replaced || !a.Touches(name) {
			t.Errorf("%s: replaced %t, want %t", name, ok, replaced)
		}
	}
	q := readAll(t, 12, func(lo, hi int, dst []float32) error { return a.Read("h.0.q.weight", lo, hi, dst) })
	W := own["base_model.model.transformer.h.0.q.base_layer.weight"].x
	A, B := own["base_model.model.transformer.h.0.q.lora_A.default.weight"].x, own["base_model.model.transformer.h.0.q.lora_B.default.weight"].x
	for i, got := range q {
		want := W[i] + B[i/4*2]*A[i%4] + B[i/4*2+1]*A[4+i%4]
		if math.Abs(float64(got-want)) > 1e-6 {
			t.Errorf("element %d: got %v, want %v", i, got, want)
		}
	}
}

// TestAdapterDifferences has the entries of "Differs:" of [Adapter].
func TestAdapterDifferences(t *testing.T) {
	// Theirs adds to the embedding what belongs to an output that is tied to it.
	base := loraTensors{}.filled("model.embed_tokens.weight", 6, 4)
	own := loraTensors{}.filled("base_model.model.lm_head.lora_A.weight", 2, 4).filled("base_model.model.lm_head.lora_B.weight", 6, 2)
	a, err := newAdapter(t, `{"peft_type":"LORA","r":2}`, own, base)
	if err != nil {
		t.Fatal(err)
	}
	w, ok := a.Replaced("lm_head.weight")
	if !ok || w.Name != "lm_head.weight" || !slices.Equal(w.Shape, []int{6, 4}) || a.Touches("model.embed_tokens.weight") {
		t.Errorf("got %v, %t, want lm_head.weight on its own", w, ok)
	}
	got := readAll(t, 24, func(lo, hi int, dst []float32) error { return a.Read("lm_head.weight", lo, hi, dst) })
	embed := base["model.embed_tokens.weight"].x
	if slices.Equal(got, embed) {
		t.Error("lm_head.weight is the embedding, want another")
	}
	// So does a model, as it finds tensors.
	m := Model{Weights: a.base, Adapter: a}
	if shape, dt, ok := m.Tensor("lm_head.weight"); !ok || dt != half.F32 || !slices.Equal(shape, []int{6, 4}) {
		t.Errorf("a model with the adapter: got %v %d, %t", dt, shape, ok)
	}
	m.Text = []byte(`{"tie_word_embeddings": true}`)
	text, err := Opened{&m}.ConfigText()
	if ts := (Opened{&m}).Tensors(); err != nil || len(ts) != len(base)+1 || ts[len(base)].Name != "lm_head.weight" ||
		string(text) != `{"tie_word_embeddings": false}` {
		t.Errorf("an opened model with the adapter: got tensors %v, config %s, %v", ts, text, err)
	}

	// Theirs rounds the product for an embedding: 1 + 3·2⁻⁹ is 1 + 2⁻⁷ in bf16, once
	// rounded, and so it is twice rounded; 1 + 2⁻⁸ + 2⁻¹⁷ is 1 + 2⁻⁷ once rounded, and
	// 1 twice rounded, since 2⁻⁸ + 2⁻¹⁷ becomes 2⁻⁸, which is a tie.
	dir, model := t.TempDir(), t.TempDir()
	one := loraTensors{"e.weight": {[]int{1, 1}, []float32{1}}}
	set := one.write(t, model, "model", half.BF16)
	loraTensors{
		"e.lora_embedding_A": {[]int{1, 1}, []float32{1}},
		"e.lora_embedding_B": {[]int{1, 1}, []float32{0x1p-8 + 0x1p-17}},
	}.write(t, dir, "adapter_model", half.F32).Close()
	config := `{"peft_type":"LORA","r":1,"lora_alpha":1}`
	if err := os.WriteFile(filepath.Join(dir, "adapter_config.json"), []byte(config), 0o644); err != nil {
		t.Fatal(err)
	}
	b, err := OpenAdapter(dir, set)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	if x := readAll(t, 1, func(lo, hi int, dst []float32) error { return b.Read("e.weight", lo, hi, dst) }); x[0] != 1+0x1p-7 {
		t.Errorf("got %v, want 1 + 2⁻⁷", x[0])
	}
}

// TestAdapterSquare decides about matrices whose shape does not tell.
func TestAdapterSquare(t *testing.T) {
	for _, c := range []struct {
		name, config string
		others       [2]int // shape of the weight of another layer, which turns 4 into 8
		flipped      bool
	}{
		{"plain", `{"peft_type":"LORA","r":2}`, [2]int{8, 4}, false},
		{"the configuration says so", `{"peft_type":"LORA","r":2,"fan_in_fan_out":true}`, [2]int{8, 4}, true},
		{"others say so", `{"peft_type":"LORA","r":2}`, [2]int{4, 8}, true},
	} {
		base := loraTensors{}.filled("a.weight", 4, 4).filled("b.weight", c.others[0], c.others[1])
		own := loraTensors{}.filled("a.lora_A.weight", 2, 4).filled("a.lora_B.weight", 4, 2).
			filled("b.lora_A.weight", 2, 4).filled("b.lora_B.weight", 8, 2)
		a, err := newAdapter(t, c.config, own, base)
		if err != nil {
			t.Fatal(err)
		}
		if got := a.targets["a.weight"].layout == loraFlipped; got != c.flipped {
			t.Errorf("%s: got [in,out] %t, want %t", c.name, got, c.flipped)
		}
		if got := a.targets["b.weight"].layout == loraFlipped; got != (c.others[0] == 4) {
			t.Errorf("%s: the other layer: got [in,out] %t", c.name, got)
		}
	}
}

func TestAdapterRefuses(t *testing.T) {
	const ok = `{"peft_type":"LORA","r":2}`
	base := func() loraTensors {
		return loraTensors{}.filled("q.weight", 3, 4).filled("embed_tokens.weight", 6, 4).filled("q.bias", 3)
	}
	pair := func(m string, in, out, r int) loraTensors {
		return loraTensors{}.filled(m+".lora_A.weight", r, in).filled(m+".lora_B.weight", out, r)
	}
	for _, c := range []struct {
		name, config string
		own          loraTensors
		want         string
	}{
		{"no JSON", "{", pair("q", 4, 3, 2), "adapter_config.json:1: the text ends, want a key in quotes"},
		{"no object", "[]", pair("q", 4, 3, 2), "adapter_config.json: got an array, want an object"},
		{"no type", "{}", pair("q", 4, 3, 2), "peft_type: got none, want LORA"},
		{"other type", `{"peft_type":"LOHA"}`, pair("q", 4, 3, 2), `:1: peft_type: got the string "LOHA", want LORA, the one kind of adapter that is read`},
		{"DoRA", `{"peft_type":"LORA","use_dora":true}`, pair("q", 4, 3, 2), "use_dora: got true: this is DoRA, which is not supported"},
		{"bias", `{"peft_type":"LORA","lora_bias":true}`, pair("q", 4, 3, 2), "lora_bias: got true: this is a LoRA with a bias, which is not supported"},
		{"replication", `{"peft_type":"LORA","layer_replication":[[0,4],[2,5]]}`, pair("q", 4, 3, 2), "layer_replication: got an array: this is a LoRA for a model with repeated layers, which is not supported"},
		{"parameters", `{"peft_type":"LORA","target_parameters":["experts"]}`, pair("q", 4, 3, 2), "target_parameters: got an array: this is a LoRA of parameters that are no weights of layers, which is not supported"},
		{"init", `{"peft_type":"LORA","init_lora_weights":"pissa_niter_4"}`, pair("q", 4, 3, 2), `init_lora_weights: got the string "pissa_niter_4": training began with other weights than those of the model, and the adapter fits those alone: save it again with path_initial_model_for_weight_conversion`},
		{"unknown key", `{"peft_type":"LORA","use_magic":3}`, pair("q", 4, 3, 2), "use_magic: got the number 3: this key is unknown, and may make another model of it"},
		{"rank", `{"peft_type":"LORA","r":0}`, pair("q", 4, 3, 2), "r: got the number 0, want a rank of at least 1"},
		{"alpha", `{"peft_type":"LORA","lora_alpha":"x"}`, pair("q", 4, 3, 2), `lora_alpha: got the string "x", want a number`},
		{"rslora", `{"peft_type":"LORA","use_rslora":1}`, pair("q", 4, 3, 2), `use_rslora: got the number 1, want true or false`},
		{"rank pattern", `{"peft_type":"LORA","rank_pattern":{"q":1.5}}`, pair("q", 4, 3, 2), `rank_pattern: got a rank of 1.5, want one of at least 1`},
		{"pattern", `{"peft_type":"LORA","alpha_pattern":{"q(":1}}`, pair("q", 4, 3, 2), "alpha_pattern: \"q(\": is no regular expression that can be read: missing closing ): `^(?:.*\\.)?(?:q()$`"},
		{"patterns", `{"peft_type":"LORA","alpha_pattern":[1]}`, pair("q", 4, 3, 2), `alpha_pattern: got an array, want an object`},
		{"two errors", "{\"peft_type\":\"LORA\",\n\"r\":-1,\n\"use_qalora\":true}", pair("q", 4, 3, 2), "adapter_config.json:3: use_qalora: got true: this is QALoRA, which is not supported"},

		{"no tensors", ok, loraTensors{}, "it has no tensors"},
		{"other module", ok, pair("base_model.model.v", 4, 3, 2), `tensor "base_model.model.v.lora_B.weight" of shape [3 2]: the model has no tensor "v.weight": it is an adapter for another base`},
		{"other shape", ok, pair("q", 5, 3, 2), `tensors "q.lora_A.weight" of shape [2 5] and "q.lora_B.weight" of shape [3 2]: the model's "q.weight" has shape [3 4]: it is a LoRA for another base`},
		{"other rank", ok, pair("q", 4, 3, 1), `tensor "q.lora_A.weight" of shape [1 4]: want rank 2, which the configuration gives to "q"`},
		{"no B", ok, loraTensors{}.filled("q.lora_A.weight", 2, 4), `tensor "q.lora_A.weight": the other factor of the model's "q.weight" is missing`},
		{"no A", ok, loraTensors{}.filled("q.lora_B.weight", 3, 2), `tensor "q.lora_B.weight": the other factor of the model's "q.weight" is missing`},
		{"ranks", ok, loraTensors{}.filled("q.lora_A.weight", 2, 4).filled("q.lora_B.weight", 3, 1), `tensors "q.lora_A.weight" of shape [2 4] and "q.lora_B.weight" of shape [3 1]: do not multiply`},
		{"convolution", ok, loraTensors{}.filled("q.lora_A.weight", 2, 4, 1, 1), `tensor "q.lora_A.weight" of shape [2 4 1 1]: want a matrix: a LoRA of convolutions is not supported`},
		{"embedding", ok, loraTensors{}.filled("embed_tokens.lora_embedding_A", 2, 4).filled("embed_tokens.lora_embedding_B", 6, 2), `the model's "embed_tokens.weight" has shape [6 4]: it is a LoRA for another base`},
		{"both", ok, pair("q", 4, 3, 2).filled("q.lora_embedding_B", 3, 2), `the model's "q.weight" has factors of a layer and of an embedding, want those of one`},
		{"two adapters", ok, loraTensors{}.filled("q.lora_A.x.weight", 2, 4).filled("q.lora_A.y.weight", 2, 4).filled("q.lora_B.x.weight", 3, 2), `tensor "q.lora_A.y.weight" of shape [2 4]: is a second A of the model's "q.weight", as is "q.lora_A.x.weight": want one adapter`},
		{"magnitude", ok, pair("q", 4, 3, 2).filled("q.lora_magnitude_vector.weight", 3), `tensor "q.lora_magnitude_vector.weight" of shape [3]: this is DoRA, which is not supported`},
		{"bias of B", ok, pair("q", 4, 3, 2).filled("q.lora_B.bias", 3), `tensor "q.lora_B.bias" of shape [3]: want lora_A, lora_B, lora_embedding_A or lora_embedding_B: this is another form of LoRA, which is not supported`},
		{"whole", ok, loraTensors{}.filled("base_model.model.q.weight", 3, 5), `tensor "base_model.model.q.weight" of shape [3 5]: want shape [3 4], that of the model's "q.weight": it is an adapter for another base`},
		{"whole twice", ok, loraTensors{}.filled("base_model.model.q.bias", 3).filled("q.base_layer.bias", 3), `tensor "q.base_layer.bias" of shape [3]: is in the place of the model's "q.bias", as is "base_model.model.q.bias"`},
		{"head", ok, loraTensors{}.filled("lm_head.weight", 7, 4), `tensor "lm_head.weight" of shape [7 4]: want shape [6 4], that of the model's "embed_tokens.weight": it is an adapter for another base`},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := newAdapter(t, c.config, c.own, base())
			if err == nil || !strings.HasSuffix(err.Error(), c.want) || !errors.Is(err, fault.Data) ||
				!strings.HasPrefix(err.Error(), "merge: adapter ") {
				t.Errorf("got  %v\nwant merge: adapter …: %s", err, c.want)
			}
		})
	}
}

// TestAdapterManyErrors says some of what is wrong, and how much more.
func TestAdapterManyErrors(t *testing.T) {
	own := loraTensors{}
	for i := range 30 {
		own.filled(fmt.Sprintf("m.%d.weight", i), 1)
	}
	_, err := newAdapter(t, `{"peft_type":"LORA"}`, own, loraTensors{}.filled("q.weight", 1))
	if err == nil || strings.Count(err.Error(), "\n") != 3 || !strings.HasSuffix(err.Error(), "\nand 27 more") {
		t.Errorf("got %v", err)
	}
}

func TestAdapterFiles(t *testing.T) {
	dir := t.TempDir()
	base := loraTensors{}.filled("q.weight", 1).write(t, t.TempDir(), "model", half.F32)
	_, err := OpenAdapter(dir, base)
	if !errors.Is(err, os.ErrNotExist) || !errors.Is(err, fault.Data) {
		t.Errorf("an empty folder: %v", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "adapter_config.json"), []byte(`{"peft_type":"LORA"}`), 0o644); err != nil {
		t.Fatal(err)
	}
	_, err = OpenAdapter(dir, base)
	if err == nil || !strings.HasSuffix(err.Error(), "want adapter_model.safetensors or adapter_model.bin, got none of them") {
		t.Errorf("a folder without weights: %v", err)
	}
}

func TestAdapterReadRefuses(t *testing.T) {
	nan := loraTensors{}.filled("q.lora_A.weight", 2, 4).filled("q.lora_B.weight", 3, 2)
	nan["q.lora_A.weight"].x[5] = float32(math.NaN())
	a, err := newAdapter(t, `{"peft_type":"LORA","r":2}`, nan, loraTensors{}.filled("q.weight", 3, 4))
	if err != nil {
		t.Fatal(err)
	}
	err = a.Read("q.weight", 0, 1, make([]float32, 1))
	if err == nil || !strings.HasSuffix(err.Error(), `tensor "q.lora_A.weight": element 5 of shape [2 4] is NaN`) {
		t.Errorf("NaN: got %v", err)
	}
	for _, r := range [][3]int{{-1, 0, 1}, {2, 1, 0}, {0, 13, 13}, {0, 2, 1}} {
		if err := a.Read("q.weight", r[0], r[1], make([]float32, r[2])); err == nil {
			t.Errorf("[%d:%d] was read into %d", r[0], r[1], r[2])
		}
	}
}

// FuzzAdapterConfig feeds configurations. Nothing may panic, and what is accepted
// gives every module a rank.
func FuzzAdapterConfig(f *testing.F) {
	files, err := filepath.Glob("testdata/adapter/*/lora/adapter_config.json")
	if err != nil || len(files) == 0 {
		f.Fatal(err)
	}
	for _, name := range files {
		b, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(b), "model.layers.0.self_attn.q_proj")
	}
	f.Add(`{"peft_type":"LORA","rank_pattern":{"a|b":3,".*":4},"use_rslora":true}`, "x.b")
	f.Fuzz(func(t *testing.T, text, module string) {
		c, err := parseAdapterConfig(text)
		if err != nil {
			return
		}
		if rank, s := c.of(module); rank < 1 || s != s {
			t.Errorf("%q: rank %d, scale %v", module, rank, s)
		}
	})
}
