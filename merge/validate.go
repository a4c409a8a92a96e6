// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"pleach/half"
	"pleach/internal/fault"
	"pleach/kernel"
	"pleach/merge/method"
)

// check finds the shape and type of every tensor, and lets the method look at it.
func (pl *planner) check() {
	for _, t := range []*half.DType{pl.c.DType, pl.c.OutDType} {
		if t != nil && !t.IsFloat() {
			pl.fail("int", 0, "%s: dtype and out_dtype: got int64, want float16, bfloat16 or float32: "+
				"models are merged in floats", pl.c.File)
		}
	}
	kept := pl.p.Tensors[:0]
	for i := range pl.p.Tensors {
		if t := &pl.p.Tensors[i]; pl.checkOne(t) {
			kept = append(kept, *t)
		}
	}
	pl.p.Tensors = kept
}

// checkOne returns false if the output does without the tensor.
func (pl *planner) checkOne(t *Tensor) bool {
	if !pl.types(t) || !pl.shape(t) || t.Copy || len(pl.bad.list) >= told {
		return true
	}
	return pl.try(t)
}

// types finds the type of a tensor in the output, and whether it is merged at all.
func (pl *planner) types(t *Tensor) bool {
	floats := 0
	for _, in := range t.Inputs {
		if in.DType.IsFloat() {
			floats++
		}
	}
	first := &t.Inputs[0]
	t.Copy = floats == 0
	if t.Copy {
		t.DType, t.HasCast = first.DType, false
	}
	for _, in := range t.Inputs {
		if in.DType.IsFloat() != first.DType.IsFloat() || t.Copy && in.DType != first.DType {
			pl.bad.add("types", t.Line, fault.Dataf("tensor %s: got type %v in model %s and %v in model %s, "+
				"want floats, or one type that is copied", t.Name,
				first.DType, pl.name(first), in.DType, pl.name(&in)))
			return false
		}
	}
	if t.Copy {
		return true
	}
	if t.DType = pl.result(t); pl.c.OutDType != nil {
		t.DType = *pl.c.OutDType
	}
	return true
}

// result is the type that a method gives a tensor if the configuration does not
// say: what the types of all inputs promote to, for mergekit promotes them before it
// computes. It makes float32 of two methods by a mask.
func (pl *planner) result(t *Tensor) half.DType {
	if pl.o.Compat && (pl.m.Name == "arcee_fusion" || pl.m.Name == "ramplus_tl") {
		return half.F32
	}
	if t.HasCast {
		return t.Cast
	}
	var types []half.DType
	for _, in := range t.Inputs {
		types = append(types, in.DType)
	}
	return method.Promote(types)
}

// name is the model of an input.
func (pl *planner) name(in *Input) string { return pl.p.Models[in.Model].Name }

// shape finds the shape of a tensor in the output. Embeddings of different sizes
// are cut as the method wants it, or have the rows of the new vocabulary.
func (pl *planner) shape(t *Tensor) bool {
	first := t.Inputs[0].Shape
	t.Shape = slices.Clone(first)
	same := true
	matrices := len(first) == 2
	for _, in := range t.Inputs {
		same = same && slices.Equal(in.Shape, first)
		matrices = matrices && len(in.Shape) == 2
	}
	switch {
	case t.Embed && pl.p.Vocabulary != nil:
		return pl.rows(t, matrices)
	case same:
		return true
	case t.Copy:
		return pl.differ(t, "")
	case t.Embed && matrices && pl.m.Crops == method.CropCommon:
		for _, in := range t.Inputs {
			t.Shape[0], t.Shape[1] = min(t.Shape[0], in.Shape[0]), min(t.Shape[1], in.Shape[1])
		}
		pl.warn("", pl.lineOf(t, pl.other(t)), "tensor %s: got shape %s; it is cut to %v, what all have "+
			"(tokenizer_source: union keeps the tokens of all)", t.Name, pl.shapesOf(t), t.Shape)
		return true
	case pl.m.Crops == method.CropToBase && t.Base >= 0:
		t.Shape = slices.Clone(t.Inputs[t.Base].Shape)
		if t.Embed && matrices {
			return pl.toBase(t)
		}
		return pl.skip(t)
	case t.Embed && matrices:
		return pl.differ(t, "; tokenizer_source: union makes one vocabulary")
	}
	return pl.differ(t, "")
}

// rows gives an embedding the rows of the new vocabulary.
func (pl *planner) rows(t *Tensor, matrices bool) bool {
	if !matrices {
		return pl.differ(t, "; an embedding of a new vocabulary has two dimensions")
	}
	for _, in := range t.Inputs {
		if in.Shape[1] != t.Shape[1] {
			return pl.differ(t, "; embeddings of one vocabulary have one width")
		}
	}
	t.Shape[0] = pl.p.Vocabulary.Rows
	return true
}

// toBase lets an embedding have the size of the base's. Models with more rows are
// cut. Rows that a model lacks do not differ from the base's.
func (pl *planner) toBase(t *Tensor) bool {
	for _, in := range t.Inputs {
		if in.Shape[1] < t.Shape[1] || pl.o.Compat && in.Shape[0] < t.Shape[0] {
			return pl.differ(t, "; the base has the most")
		}
	}
	pl.warn("", pl.lineOf(t, pl.other(t)), "tensor %s: got shape %s; it has %v, that of the base "+
		"(tokenizer_source: union keeps the tokens of all)", t.Name, pl.shapesOf(t), t.Shape)
	return true
}

// skip leaves models out of a tensor whose shape is not that of the base, if the
// user allows it.
func (pl *planner) skip(t *Tensor) bool {
	if !pl.o.Skips {
		return pl.differ(t, "; --allow-skips leaves out models that differ from the base")
	}
	base := t.Inputs[t.Base].Model
	var kept []Input
	for _, in := range t.Inputs {
		if !slices.Equal(in.Shape, t.Shape) {
			pl.warn("skip "+pl.name(&in), t.Line, "tensor %s: model %s has shape %v, the base %v: "+
				"it has no part in this tensor", t.Name, pl.name(&in), in.Shape, t.Shape)
			continue
		}
		kept = append(kept, in)
	}
	t.Inputs = kept
	t.Base = slices.IndexFunc(kept, func(in Input) bool { return in.Model == base })
	return true
}

// differ notes that the shapes of a tensor do not fit. It returns false.
func (pl *planner) differ(t *Tensor, hint string) bool {
	template, _, _, _ := splitLayer(t.Name)
	pl.bad.add("shape "+template, pl.lineOf(t, pl.other(t)), fault.Configf("tensor %s: got shape %s, want one shape%s",
		t.Name, pl.shapesOf(t), hint))
	return false
}

// shapesOf are the shapes that the models have of a tensor, for messages.
func (pl *planner) shapesOf(t *Tensor) string {
	var got []string
	for _, in := range t.Inputs {
		got = append(got, fmt.Sprintf("%v in model %s", in.Shape, pl.name(&in)))
	}
	return strings.Join(got, ", ")
}

// other is the first input of another shape than the base, or than the first input if
// there is no base.
func (pl *planner) other(t *Tensor) *Input {
	want := t.Inputs[max(t.Base, 0)].Shape
	for i := range t.Inputs {
		if !slices.Equal(t.Inputs[i].Shape, want) {
			return &t.Inputs[i]
		}
	}
	return &t.Inputs[0]
}

// lineOf is the line of the configuration where an input of a tensor is listed.
func (pl *planner) lineOf(t *Tensor, in *Input) int {
	for _, s := range pl.slices {
		if s.Line != t.Line {
			continue
		}
		for _, src := range s.Sources {
			if src.Line > 0 && pl.index[src.Model] == in.Model {
				return src.Line
			}
		}
	}
	return t.Line
}

// try begins the merge of a tensor, for the errors that this has. It returns false
// if the output does without the tensor.
func (pl *planner) try(t *Tensor) bool {
	_, err := pl.m.New(pl.p.problem(t, kernel.Portable))
	if errors.Is(err, method.Dropped) {
		template, _, _, _ := splitLayer(t.Name)
		pl.warn("drop "+template, t.Line, "tensor %s: %v: it is not in the output", t.Name, err)
		return false
	}
	if err == nil {
		return true
	}
	for msg := range strings.SplitSeq(err.Error(), "\n") { // several errors have a line each
		msg = strings.TrimPrefix(msg, "merge: ")
		if pl.told(t, msg) {
			continue
		}
		if !strings.Contains(msg, t.Name) {
			msg = "tensor " + t.Name + ": " + msg
		}
		pl.bad.add("try "+strings.ReplaceAll(msg, t.Name, ""), t.Line, &placed{msg, err})
	}
	return true
}

// told says that a message of a method is about a parameter that a tensor lacks, which
// the user is told with the line that lacks it.
func (pl *planner) told(t *Tensor, msg string) bool {
	for _, name := range pl.lacks[t.Name] {
		if strings.Contains(msg, "parameter "+name+": got none") {
			return true
		}
	}
	return false
}

// dropped lists the tensors of inputs that the architecture does not name.
func (pl *planner) dropped() {
	known := pl.known()
	drop := map[string]bool{}
	for i, m := range pl.p.Models {
		for _, t := range m.Weights.Tensors() {
			template, _, layer, _ := splitLayer(t.Name)
			if (!known[template] || layer >= pl.layers[i]) && !known[t.Name] {
				drop[t.Name] = true
			}
		}
	}
	pl.p.Dropped = slices.Sorted(maps.Keys(drop))
}

// known are all names that the architecture has, with a star for the layer.
func (pl *planner) known() map[string]bool {
	names := map[string]bool{}
	for _, w := range slices.Concat(pl.arch.before, pl.arch.layer, pl.arch.after) {
		names[w.name] = true
		for _, alias := range w.aliases {
			names[alias] = true
		}
	}
	return names
}
