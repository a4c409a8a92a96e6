// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package compat

import (
	"pleach/half"
	"pleach/internal/fault"
	"pleach/merge/method"
)

// job is the merge of one tensor.
type job struct {
	*method.Problem
	method *method.Method
	t      half.DType // of the inputs, of which operations are rounded
	in     [][]float32
	gen    *Twister
	folds  []float32 // made by buffer
}

// rule is how a method is computed.
type rule struct {
	do func(*job) ([]float32, error)
	// wide says that the result is float32 for any inputs.
	wide bool
	// arrays is the number of arrays of float32, as long as the tensor, that do
	// makes in all for so many inputs, the result among them.
	arrays func(inputs int) int
	// alone says that a tensor that only one input has is that input's.
	alone bool
}

// rules are the methods.
func rules() map[string]rule {
	// arrays is that many for every input and some more.
	arrays := func(each, more int) func(int) int {
		return func(inputs int) int { return each*inputs + more }
	}
	r := map[string]rule{
		"linear":       {do: (*job).linear, arrays: arrays(0, 1)},
		"passthrough":  {do: (*job).passthrough, arrays: arrays(0, 1)},
		"nearswap":     {do: (*job).nearswap, arrays: arrays(0, 1)},
		"slerp":        {do: (*job).slerp, arrays: arrays(0, 2), alone: true},
		"nuslerp":      {do: (*job).nuslerp, arrays: arrays(0, 6), alone: true},
		"multislerp":   {do: (*job).multislerp, arrays: arrays(4, 1)},
		"karcher":      {do: (*job).karcher, arrays: arrays(1, 4)},
		"model_stock":  {do: (*job).modelStock, arrays: arrays(2, 4)},
		"sce":          {do: (*job).sce, arrays: arrays(2, 11)},
		"ram":          {do: (*job).ram, arrays: arrays(1, 3)},
		"ramplus_tl":   {do: (*job).ramPlus, wide: true, arrays: arrays(1, 3)},
		"arcee_fusion": {do: (*job).arceeFusion, wide: true, arrays: arrays(0, 10), alone: true},
	}
	for name, task := range taskRules() {
		r[name] = rule{do: task.merge, arrays: arrays(6, 1)}
	}
	return r
}

// Bytes is an upper bound of the memory that merging a tensor of so many elements
// needs besides its inputs, what is garbage included.
func Bytes(m *method.Method, elements, inputs int) int64 {
	arrays := 0
	if r, ok := rules()[m.Name]; ok {
		arrays = r.arrays(inputs)
	}
	return (8*int64(arrays)+4)*int64(elements)/2 + 1<<16
}

// Merge merges a tensor as mergekit 0.1.5 does. in are the values of the inputs, in
// the order of p.Inputs, in float32 (not changed; out may be one of them); types are
// their types after a cast that the configuration wants. Inputs of different types
// are promoted first. t is the type of the result, before out_dtype: the promoted
// one, or float32 for arcee_fusion and ramplus_tl. Methods with random masks take
// numbers from gen as they need them. Parameters without a value have the default of
// m. A tensor that cannot be merged is an error of kind fault.Config.
func Merge(
	m *method.Method, p method.Problem, types []half.DType, in [][]float32, gen *Twister,
) (out []float32, t half.DType, err error) {
	r, ok := rules()[m.Name]
	if !ok {
		return nil, 0, fault.Configf("merge/compat: merging %s: got method %s, want one that mergekit 0.1.5 has",
			p.Name, m.Name)
	}
	t, err = checked(p, types, in)
	if err != nil {
		return nil, 0, err
	}
	if len(in) == 1 && p.Optional && (r.alone || m.Name == "nearswap" && p.Base == 0) {
		return in[0], t, nil
	}
	if p.Len() == 0 {
		return nil, r.result(t), nil
	}
	j := &job{Problem: &p, method: m, t: t, in: in, gen: gen}
	out, err = r.do(j)
	return out, r.result(t), err
}

// result is the type of the result for inputs of a type.
func (r rule) result(t half.DType) half.DType {
	if r.wide {
		return half.F32
	}
	return t
}

// checked is the type in which p is computed.
func checked(p method.Problem, types []half.DType, in [][]float32) (half.DType, error) {
	if len(in) == 0 || len(in) != len(types) || len(in) != len(p.Inputs) || p.Base >= len(in) {
		return 0, fault.Configf("merge/compat: merging %s: got %d tensors, %d types and base %d, want %d of each",
			p.Name, len(in), len(types), p.Base, len(p.Inputs))
	}
	n := p.Len()
	for i, x := range in {
		if len(x) != n {
			return 0, fault.Configf("merge/compat: merging %s: got %d elements of %s, want %d",
				p.Name, len(x), p.Inputs[i].Model, n)
		}
		if t := types[i]; t != half.F32 && t != half.BF16 && t != half.F16 {
			return 0, fault.Configf("merge/compat: merging %s: got %s in %s, want f32, bf16 or f16 (give dtype)",
				p.Name, t, p.Inputs[i].Model)
		}
	}
	return method.Promote(types), nil
}

// errorf is an error about this tensor.
func (j *job) errorf(format string, args ...any) error {
	return fault.Configf("merge/compat: merging %s with %s: "+format,
		append([]any{j.Name, j.method.Name}, args...)...)
}

// want checks that there is a base, if base says so, and least to most other inputs.
func (j *job) want(base bool, least, most int) error {
	if base && j.Base < 0 {
		return j.errorf("got no tensor of the base, want one")
	}
	if n := len(j.Others()); n < least || n > most {
		return j.errorf("got %d tensors besides the base, want %d to %d", n, least, most)
	}
	return nil
}

// many is no limit for want.
const many = 1 << 30

// global is the value of a parameter of the tensor.
func (j *job) global(name string) float64 {
	return value(j.Global, j.method.Global, name)
}

// on says whether a parameter is true.
func (j *job) on(name string) bool { return j.global(name) != 0 }

// param is the value of a parameter of input i.
func (j *job) param(i int, name string) float64 {
	return value(j.Inputs[i].Params, j.method.PerModel, name)
}

// value is the value of a name, or its default.
func value(v method.Values, list []method.Parameter, name string) float64 {
	if x, ok := v[name]; ok {
		return x
	}
	for _, p := range list {
		if p.Name == name {
			return p.Default
		}
	}
	return 0
}

// r rounds to the type of the inputs.
func (j *job) r(x float32) float32 { return round(x, j.t) }

// r64 rounds a number of a configuration: to float32, then to the type of the inputs.
func (j *job) r64(x float64) float32 { return round(float32(x), j.t) }

// round is the nearest number of type t, ties to even. The conversion keeps a
// compiler from fusing the operation before with the one after.
func round(x float32, t half.DType) float32 {
	switch t {
	case half.BF16:
		return half.FromBF16(half.ToBF16(x))
	case half.F16:
		return half.FromF16(half.ToF16(x))
	}
	return float32(x)
}

// weights are the weights of inputs as a tensor of the working type.
func (j *job) weights(inputs []int) []float32 {
	w := make([]float32, len(inputs))
	for k, i := range inputs {
		w[k] = j.r64(j.param(i, "weight"))
	}
	return w
}

// differences are the inputs minus the base, rounded.
func (j *job) differences(inputs []int) [][]float32 {
	list := make([][]float32, len(inputs))
	for k, i := range inputs {
		d := make([]float32, len(j.in[i]))
		for e, x := range j.in[i] {
			d[e] = j.r(x - j.in[j.Base][e])
		}
		list[k] = d
	}
	return list
}

// total is the sum of equally long x over the list, rounded.
func (j *job) total(list [][]float32) []float32 {
	out := make([]float32, len(list[0]))
	columns(out, func(i int) []float32 { return list[i] }, len(list))
	return j.rounded(out)
}

// sum is the sum of x in float32, not yet rounded.
func (j *job) sum(x []float32) float32 { return sum(x, j.t, j.buffer()) }

// buffer is what sum needs for a tensor.
func (j *job) buffer() []float32 {
	if j.folds == nil && j.t != half.F32 {
		j.folds = make([]float32, (max(j.Len(), len(j.in))+1)/2)
	}
	return j.folds
}

// rounded rounds x, in place.
func (j *job) rounded(x []float32) []float32 {
	for e, v := range x {
		x[e] = j.r(v)
	}
	return x
}

// clamp is x in [lo, hi].
func clamp(x, lo, hi float32) float32 { return min(max(x, lo), hi) }

// abs is |x|.
func abs(x float32) float32 { return max(x, -x) }
