// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"pleach/weights"
)

// The names of an adapter's tensors:
//
//	base_model.model.MODULE.lora_A.weight          [R,in]
//	base_model.model.MODULE.lora_B.weight          [out,R]
//	base_model.model.MODULE.lora_embedding_A       [R,rows]
//	base_model.model.MODULE.lora_embedding_B       [width,R]
//	base_model.model.MODULE.weight, .bias          in the place of the model's
//
// The name of the adapter may stand behind lora_A and so on. In the place of a
// tensor there may be MODULE.base_layer.weight or MODULE.modules_to_save.NAME.weight.
var (
	factorName = regexp.MustCompile(
		`^(.+)\.lora_(?:(A|B)(?:\.[^.]+)?\.weight|embedding_(A|B)(?:\.[^.]+)?)$`)
	wholeName = regexp.MustCompile(`\.base_layer\.|\.modules_to_save\.(?:[^.]+\.)?([^.]+)$`)
)

// finding is the search for the targets of an adapter's tensors.
type finding struct {
	c         *adapterConfig
	own, base *weights.Set
	targets   map[string]*loraTarget
	modules   map[string]string // the module of a target with factors, as PEFT calls it
	errs      []error
}

// findTargets finds what each tensor of an adapter is for.
func findTargets(c *adapterConfig, own, base *weights.Set) (map[string]*loraTarget, error) {
	f := &finding{
		c: c, own: own, base: base,
		targets: map[string]*loraTarget{}, modules: map[string]string{},
	}
	ts := slices.Clone(own.Tensors())
	slices.SortFunc(ts, func(a, b weights.Tensor) int { return cmp.Compare(a.Name, b.Name) })
	if len(ts) == 0 {
		f.errs = append(f.errs, errors.New("it has no tensors"))
	}
	for _, t := range ts {
		if err := f.add(t); err != nil {
			f.errs = append(f.errs, fmt.Errorf("tensor %q of shape %d: %w", t.Name, t.Shape, err))
		}
	}
	f.fit()
	return f.targets, firstErrors(f.errs, 3)
}

// firstErrors joins the first n errors and says how many follow.
func firstErrors(errs []error, n int) error {
	if len(errs) > n {
		errs = append(slices.Clone(errs[:n]), fmt.Errorf("and %d more", len(errs)-n))
	}
	return errors.Join(errs...)
}

// add finds the target of one tensor.
func (f *finding) add(t weights.Tensor) error {
	if !t.DType.IsFloat() {
		return fmt.Errorf("got type %v, want floats", t.DType)
	}
	name := strings.TrimPrefix(t.Name, "base_model.model.")
	m := factorName.FindStringSubmatch(name)
	switch {
	case m != nil:
		return f.addFactor(t, m[1], m[2]+m[3], m[3] != "")
	case strings.Contains(name, ".lora_magnitude_vector"):
		return errors.New("this is DoRA, which is not supported")
	case strings.Contains(name, ".lora_"):
		return errors.New("want lora_A, lora_B, lora_embedding_A or lora_embedding_B: " +
			"this is another form of LoRA, which is not supported")
	}
	w, err := f.target(wholeName.ReplaceAllString(name, ".$1"))
	switch {
	case err != nil:
		return err
	case w.instead != "":
		return fmt.Errorf("is in the place of the model's %q, as is %q", w.name, w.instead)
	case !slices.Equal(t.Shape, w.model.Shape):
		return fmt.Errorf("want shape %d, that of the model's %q: it is an adapter for another base",
			w.model.Shape, w.model.Name)
	}
	w.instead = t.Name
	return nil
}

// addFactor takes A or B of a module.
func (f *finding) addFactor(t weights.Tensor, module, which string, isEmbedding bool) error {
	if len(t.Shape) != 2 {
		return errors.New("want a matrix: a LoRA of convolutions is not supported")
	}
	layer := strings.ReplaceAll(module, ".base_layer", "")
	w, err := f.target(layer + ".weight")
	if err != nil {
		return err
	}
	at, kind := &w.a, loraLinear
	if which == "B" {
		at = &w.b
	}
	if isEmbedding {
		kind = loraEmbedding
	}
	switch {
	case (w.a != "" || w.b != "") && w.layout != kind:
		return fmt.Errorf("the model's %q has factors of a layer and of an embedding, want those of one", w.name)
	case *at != "":
		return fmt.Errorf("is a second %s of the model's %q, as is %q: want one adapter", which, w.name, *at)
	}
	*at, w.layout = t.Name, kind
	f.modules[w.name] = layer
	return nil
}

// target is the one for a tensor of a model, which may have the name that PEFT knows
// or lack its first part, where the files are those of a model without a head.
func (f *finding) target(name string) (*loraTarget, error) {
	w, ok := f.base.Lookup(name)
	if !ok {
		if _, short, cut := strings.Cut(name, "."); cut {
			w, ok = f.base.Lookup(short)
		}
	}
	if ok {
		name = w.Name
	} else if w, ok = tied(f.base, name); !ok {
		return nil, fmt.Errorf("the model has no tensor %q: it is an adapter for another base", name)
	}
	if !w.DType.IsFloat() {
		return nil, fmt.Errorf("the model's %q is of type %v, want floats", w.Name, w.DType)
	}
	t := f.targets[name]
	if t == nil {
		t = &loraTarget{name: name, model: w}
		f.targets[name] = t
	}
	return t, nil
}

// inputEmbeddings are the names of the layer that turns tokens into vectors.
var inputEmbeddings = []string{"embed_tokens", "wte", "embed_in"}

// tied is the embedding of a model that has no matrix of its own for its output.
func tied(base *weights.Set, name string) (weights.Tensor, bool) {
	if name != "lm_head.weight" && name != "embed_out.weight" {
		return weights.Tensor{}, false
	}
	for _, t := range base.Tensors() {
		parts := strings.Split(t.Name, ".")
		n := len(parts)
		if n > 1 && parts[n-1] == "weight" && slices.Contains(inputEmbeddings, parts[n-2]) {
			return t, true
		}
	}
	return weights.Tensor{}, false
}

// fit checks the factors of all targets, and finds which weights are [in,out]. The
// shape says it, as PEFT goes by the class of the layer; for a square matrix the
// configuration does, or the layers around it.
func (f *finding) fit() {
	flipped := f.c.fanInFanOut
	var names []string
	for name, t := range f.targets {
		if t.a != "" || t.b != "" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		t := f.targets[name]
		if err := f.check(t); err != nil {
			f.errs = append(f.errs, err)
			continue
		}
		flipped = flipped || t.layout == loraFlipped
	}
	for _, name := range names {
		t := f.targets[name]
		if s := t.model.Shape; t.layout == loraLinear && flipped && len(s) == 2 && s[0] == s[1] {
			t.layout = loraFlipped
		}
	}
}

// check sets the rank, scale and layout of a target, if its factors fit.
func (f *finding) check(t *loraTarget) error {
	a, okA := f.own.Lookup(t.a)
	b, okB := f.own.Lookup(t.b)
	if !okA || !okB {
		return fmt.Errorf("tensor %q: the other factor of the model's %q is missing", a.Name+b.Name, t.name)
	}
	t.rank, t.scale = f.c.of(f.modules[t.name])
	product := []int{b.Shape[0], a.Shape[1]}
	back := []int{a.Shape[1], b.Shape[0]}
	switch {
	case a.Shape[0] != b.Shape[1]:
		return fmt.Errorf("tensors %q of shape %d and %q of shape %d: do not multiply", a.Name, a.Shape, b.Name, b.Shape)
	case a.Shape[0] != t.rank:
		return fmt.Errorf("tensor %q of shape %d: want rank %d, which the configuration gives to %q",
			a.Name, a.Shape, t.rank, f.modules[t.name])
	case t.layout == loraLinear && slices.Equal(product, t.model.Shape):
		return nil
	case t.layout == loraLinear && slices.Equal(back, t.model.Shape):
		t.layout = loraFlipped
		return nil
	case t.layout == loraEmbedding && slices.Equal(back, t.model.Shape):
		return nil
	}
	return fmt.Errorf("tensors %q of shape %d and %q of shape %d: the model's %q has shape %d: "+
		"it is a LoRA for another base", a.Name, a.Shape, b.Name, b.Shape, t.model.Name, t.model.Shape)
}
