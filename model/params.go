// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"fmt"
	"strconv"
	"strings"

	"pleach/program"
)

// Params lists the parameters of one stage for tensor degree t, in the order of
// the forward pass. It is the one table of what a model is made of: shards,
// copies, and the names in Hugging Face's files all follow from it.
func (s Spec) Params(stage, stages, t int) []program.Param {
	last := stage == stages-1
	var ps []program.Param
	if stage == 0 || last && s.Tied {
		ps = append(ps, program.Param{
			Name: "embed", Class: program.Embedding, Shape: []int{s.V, s.D},
			Parts: []program.Part{{Tensor: "model.embed_tokens.weight", Size: s.V, Ways: t}},
			Ends:  s.Tied && stages > 1,
		})
	}
	for l, hi := s.layers(stage, stages); l < hi; l++ {
		ps = append(ps, s.layerParams(l, t)...)
	}
	if last {
		ps = append(ps, norm("norm", "model.norm.weight", s.L+1, s.D))
		if !s.Tied {
			ps = append(ps, s.headParam(t, "lm_head.weight"))
		}
	}
	return ps
}

// Whole lists all parameters as one rank holds them.
func (s Spec) Whole() []program.Param { return s.Params(0, 1, 1) }

// layerParams is one decoder layer. q, k and v are one matrix, gate and up too.
func (s Spec) layerParams(l, t int) []program.Param {
	file := fmt.Sprintf("model.layers.%d.", l)
	attn, mlp := file+"self_attn.", file+"mlp."
	kv := min(t, s.G)
	qkv := []program.Part{
		{Tensor: attn + "q_proj", Size: s.H * s.K, Ways: t},
		{Tensor: attn + "k_proj", Size: s.G * s.K, Ways: kv},
		{Tensor: attn + "v_proj", Size: s.G * s.K, Ways: kv},
	}
	gateUp := []program.Part{{Tensor: mlp + "gate_proj", Size: s.F, Ways: t}, {Tensor: mlp + "up_proj", Size: s.F, Ways: t}}
	out := []program.Part{{Tensor: attn + "o_proj", Size: s.H * s.K, Ways: t}}
	down := []program.Part{{Tensor: mlp + "down_proj", Size: s.F, Ways: t}}

	ps := []program.Param{norm(inLayer(l, "attn.norm"), file+"input_layernorm.weight", l+1, s.D)}
	ps = append(ps, linear(inLayer(l, "attn.qkv"), l+1, s.D, 0, qkv, s.AttnBias)...)
	ps = append(ps, linear(inLayer(l, "attn.out"), l+1, s.D, 1, out, s.AttnBias)...)
	ps = append(ps, norm(inLayer(l, "mlp.norm"), file+"post_attention_layernorm.weight", l+1, s.D))
	ps = append(ps, linear(inLayer(l, "mlp.gateup"), l+1, s.D, 0, gateUp, s.MLPBias)...)
	return append(ps, linear(inLayer(l, "mlp.down"), l+1, s.D, 1, down, s.MLPBias)...)
}

func inLayer(l int, name string) string { return fmt.Sprintf("%d.%s", l, name) }

func norm(name, tensor string, group, D int) program.Param {
	return program.Param{
		Name: name, Class: program.Norm, Shape: []int{D}, Group: group,
		Parts: []program.Part{{Tensor: tensor, Size: D, Ways: 1}},
	}
}

// linear is a matrix made of parts along dim, D wide along the other, and its
// bias. A matrix split in columns makes terms of a sum; its bias is added to
// the sum, so every rank holds all of it.
func linear(name string, group, D, dim int, parts []program.Part, bias bool) []program.Param {
	weight := program.Param{Name: name, Class: program.Matrix, Group: group, Dim: dim}
	add := program.Param{Name: name + ".bias", Class: program.Bias, Group: group}
	size := 0
	for _, p := range parts {
		size += p.Size
		weight.Parts = append(weight.Parts, program.Part{Tensor: p.Tensor + ".weight", Size: p.Size, Ways: p.Ways})
		if dim == 0 {
			add.Parts = append(add.Parts, program.Part{Tensor: p.Tensor + ".bias", Size: p.Size, Ways: p.Ways})
		} else {
			add.Parts = append(add.Parts, program.Part{Tensor: p.Tensor + ".bias", Size: D, Ways: 1})
		}
	}
	weight.Shape, add.Shape = []int{size, D}, []int{size}
	if dim == 1 {
		weight.Shape, add.Shape = []int{D, size}, []int{D}
	}
	if !bias {
		return []program.Param{weight}
	}
	return []program.Param{weight, add}
}

// Tensor is one tensor of a model file: a range of rows of a parameter.
type Tensor struct {
	Name  string
	Shape []int
	Param string
	Class program.Class
	Lo    int // its first flat element in the whole parameter
}

// Len is the number of elements.
func (t Tensor) Len() int {
	n := 1
	for _, d := range t.Shape {
		n *= d
	}
	return n
}

// Tensors lists what a Hugging Face model directory of s holds, in the order of
// the forward pass. A tied head is not among them.
func (s Spec) Tensors() []Tensor { return tensorsOf(s.Whole()) }

func tensorsOf(ps []program.Param) []Tensor {
	var ts []Tensor
	for _, p := range ps {
		row := p.Len() / p.Shape[0]
		lo := 0
		for _, q := range p.Parts {
			shape := append([]int(nil), p.Shape...)
			shape[p.Dim] = q.Size
			t := Tensor{Name: q.Tensor, Shape: shape, Param: p.Name, Class: p.Class, Lo: lo}
			ts = append(ts, t)
			lo += q.Size * row
		}
	}
	return ts
}

// Ignored reports whether a tensor that model files may hold beside those of
// Tensors says nothing new: the head where it is tied, and tables of rotary
// frequencies that old versions of transformers stored.
func (s Spec) Ignored(name string) bool {
	if s.Tied && name == "lm_head.weight" {
		return true
	}
	layer, ok := strings.CutPrefix(name, "model.layers.")
	layer, ok2 := strings.CutSuffix(layer, ".self_attn.rotary_emb.inv_freq")
	l, err := strconv.Atoi(layer)
	return ok && ok2 && err == nil && strconv.Itoa(l) == layer && 0 <= l && l < s.L
}

// Count is the number of parameters.
func (s Spec) Count() int {
	n := 0
	for _, p := range s.Whole() {
		n += p.Len()
	}
	return n
}

// TrainFLOPs is what forward and backward of a batch compute at least, counted as
// the field does: 6 for each token and each weight but the embedding's gather, and
// attention's two products three times over half of the square. What an engine
// computes twice does not count.
func (s Spec) TrainFLOPs(b Batch) float64 {
	weights := s.Count()
	if !s.Tied {
		weights -= s.V * s.D
	}
	tokens := float64(b.N())
	return 6*float64(weights)*tokens + float64(s.L)*6*tokens*float64(b.T)*float64(s.H*s.K)
}
