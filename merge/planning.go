// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"pleach/internal/fault"
	"pleach/internal/strictjson"
	"pleach/merge/method"
	"pleach/merge/vocab"
)

// NewPlan opens the models of a configuration, reads their headers and finds out
// what becomes of every tensor. All problems that are known before tensors are read
// are in the error. Plan.Warnings has those of the configuration too.
func NewPlan(c *Config, o Options) (*Plan, error) {
	return newPlan(c, o, method.Methods(), vocab.Build)
}

// newPlan is NewPlan with these methods and this way to build a vocabulary.
func newPlan(c *Config, o Options, methods []*method.Method, build builder) (*Plan, error) {
	pl := &planner{
		c: c, o: o, p: &Plan{Config: c, Options: o, Base: -1}, index: map[Reference]int{}, build: build,
		bad: problems{file: c.File}, warned: problems{file: c.File},
	}
	if pl.all(methods); len(pl.bad.list) > 0 {
		pl.p.Close()
		return nil, pl.bad.join()
	}
	pl.p.Warnings = append(slices.Clone(c.Warnings), pl.warned.texts()...)
	return pl.p, nil
}

// Close closes the models.
func (p *Plan) Close() {
	for _, m := range p.Models {
		if m != nil {
			m.Close()
		}
	}
	p.Models = nil
}

// builder is the type of vocab.Build.
type builder func([]vocab.Model, vocab.Options) (*vocab.Vocabulary, error)

// planner makes a plan in steps; each needs those before.
type planner struct {
	c      *Config
	o      Options
	m      *method.Method
	p      *Plan
	index  map[Reference]int // of Plan.Models
	refs   []Reference       // of them
	lines  []int             // of the configuration, where each is first
	slices []part            // of the output
	build  builder
	arch   *architecture
	layers []int               // of each model
	lacks  map[string][]string // required parameters that tensors of the output lack
	bad    problems
	warned problems
}

// part is a slice of the output with what stands around it.
type part struct {
	*Slice
	base   *Reference // nil for none
	module Parameters
}

func (pl *planner) fail(key string, line int, format string, args ...any) {
	pl.bad.add(key, line, fault.Configf(format, args...))
}

func (pl *planner) warn(key string, line int, format string, args ...any) {
	pl.warned.add(key, line, fmt.Errorf(format, args...))
}

// all takes the steps, as far as they go.
func (pl *planner) all(methods []*method.Method) {
	pl.findMethod(methods)
	pl.normalise()
	pl.open()
	if len(pl.bad.list) > 0 {
		return
	}
	pl.checkParameters()
	if !pl.architecture() || !pl.ranges() {
		return
	}
	pl.alike()
	pl.checkBases()
	pl.vocabulary()
	if len(pl.bad.list) > 0 {
		return
	}
	pl.tensors()
	pl.check()
	pl.dropped()
	pl.filters()
}

// findMethod finds the method of the configuration.
func (pl *planner) findMethod(methods []*method.Method) {
	var names []string
	for _, m := range methods {
		if m.Name == pl.c.Method {
			pl.m, pl.p.Method = m, m
			return
		}
		names = append(names, m.Name)
	}
	hint := ""
	if near := fault.Nearest(pl.c.Method, names); near != "" {
		hint = fmt.Sprintf("; did you mean %s?", near)
	}
	pl.fail("", pl.c.MethodLine, "merge_method: got %q, want one of %s%s",
		pl.c.Method, strings.Join(names, ", "), hint)
}

// normalise makes slices of all forms of input. The layers of whole models are
// not known yet; their To is 0.
func (pl *planner) normalise() {
	c := pl.c
	models, line, parts, module := c.Models, c.ModelsLine, c.Slices, Parameters(nil)
	for _, m := range c.Modules {
		if m.Name != "default" {
			pl.fail("", m.Line, "modules: got %q, want default alone: models of several modules are not merged",
				m.Name)
			continue
		}
		models, line, parts, module = m.Models, m.Line, m.Slices, m.Parameters
	}
	if len(models) > 0 {
		whole := Slice{Line: line, Sources: slices.Clone(models)}
		listed := func(s Source) bool { return s.Model == *c.Base }
		if c.Base != nil && !slices.ContainsFunc(models, listed) {
			whole.Sources = append(whole.Sources, Source{Model: *c.Base, Line: c.BaseLine})
		}
		parts = []Slice{whole}
	}
	for i := range parts {
		base := c.Base
		if parts[i].Base != nil {
			base = parts[i].Base
		}
		pl.slices = append(pl.slices, part{&parts[i], base, module})
	}
	pl.list()
}

// list numbers the models, each once.
func (pl *planner) list() {
	for _, s := range pl.slices {
		seen := map[Reference]int{}
		for _, src := range s.Sources {
			if line, twice := seen[src.Model]; twice {
				pl.fail("", src.Line, "model %s: it is in this slice already, at line %d; want each once",
					src.Model, line)
			}
			seen[src.Model] = src.Line
			pl.number(src.Model, src.Line)
		}
	}
	if pl.c.Base != nil {
		pl.p.Base = pl.number(*pl.c.Base, pl.c.BaseLine)
		pl.p.Donor = pl.p.Base
	}
}

// number is the index of a model.
func (pl *planner) number(ref Reference, line int) int {
	i, ok := pl.index[ref]
	if !ok {
		i = len(pl.refs)
		pl.index[ref] = i
		pl.refs, pl.lines = append(pl.refs, ref), append(pl.lines, line)
	}
	return i
}

// open opens every model.
func (pl *planner) open() {
	pl.p.Models = make([]*Model, len(pl.refs))
	for i, ref := range pl.refs {
		m, err := pl.openOne(ref)
		if err != nil {
			pl.bad.add("", pl.lines[i], err)
			continue
		}
		pl.p.Models[i] = m
	}
}

func (pl *planner) openOne(ref Reference) (*Model, error) {
	dir, err := pl.find(ref.Path, ref.Revision)
	if err != nil {
		return nil, err
	}
	adapter := ""
	if ref.Adapter != "" {
		if adapter, err = pl.find(ref.Adapter, ref.AdapterRevision); err != nil {
			return nil, err
		}
	}
	m, err := OpenModel(ref.String(), dir, adapter)
	if err != nil {
		return nil, err
	}
	m.Ref, m.AdapterDir = ref, adapter
	return m, nil
}

// find is the folder of a model or adapter.
func (pl *planner) find(path, revision string) (string, error) {
	if pl.o.Find != nil {
		return pl.o.Find(path, revision)
	}
	if revision != "" {
		return "", fault.Configf("model %s@%s: folders have no revisions", path, revision)
	}
	if _, err := os.Stat(path); err != nil {
		return "", fault.Configf("model %s: %w", path, err)
	}
	return path, nil
}

// architecture finds the table of the models' tensors.
func (pl *planner) architecture() bool {
	tables := 0
	for i, m := range pl.p.Models {
		class := classOf(m, pl.refs[i])
		a, ok := tableOf(class, m.Config)
		if ok {
			class = a.class
			tables++
		}
		if i == 0 {
			pl.arch = a
		}
		first := classOf(pl.p.Models[0], pl.refs[0])
		if a, ok := tableOf(first, m.Config); ok {
			first = a.class
		}
		if class != first && !pl.o.Crimes {
			pl.fail("class", pl.lines[i], "model %s: got the architecture %s, want %s as in %s "+
				"(--allow-crimes merges different ones)", m.Name, named(class), named(first), pl.p.Models[0].Name)
		}
	}
	if tables < len(pl.p.Models) {
		var prefixes []string
		if pl.arch, prefixes = infer(pl.p.Models); len(prefixes) > 1 {
			pl.fail("", pl.slices[0].Line, "the architecture %s has no table, and its models have layers in "+
				"several modules (%s), which cannot be merged",
				named(classOf(pl.p.Models[0], pl.refs[0])), strings.Join(prefixes, ", "))
		}
	}
	for i, m := range pl.p.Models[1:] {
		if a, b := experts(pl.p.Models[0]), experts(m); a != b && a != "" && b != "" {
			pl.fail("", pl.lines[i+1], "model %s: its experts are stored %s, those of %s %s; want one layout",
				m.Name, b, pl.p.Models[0].Name, a)
		}
	}
	return len(pl.bad.list) == 0
}

// named is a class for messages.
func named(class string) string {
	if class == "" {
		return "(none is named)"
	}
	return class
}

// ranges finds the layers of whole models and checks all others.
func (pl *planner) ranges() bool {
	for i, m := range pl.p.Models {
		n, ok := pl.arch.layersOf(m)
		if !ok {
			pl.bad.add("", pl.lines[i], fault.Dataf("model %s: config.json: want a number of layers at %s",
				m.Name, pl.arch.layersKey))
		} else if have := len(m.Tensors()); n > have {
			pl.bad.add("", pl.lines[i], fault.Dataf("model %s: config.json: %s: got %d layers, but the files have %d tensors",
				m.Name, pl.arch.layersKey, n, have))
		}
		pl.layers = append(pl.layers, n)
	}
	if len(pl.bad.list) > 0 {
		return false
	}
	for _, s := range pl.slices {
		for i := range s.Sources {
			pl.layerRange(s, &s.Sources[i])
		}
	}
	if len(pl.c.Models) == 0 && (len(pl.c.Modules) == 0 || len(pl.c.Modules[0].Models) == 0) {
		pl.p.LayersKey = pl.arch.layersKey
		for _, s := range pl.slices {
			pl.p.Layers += s.Sources[0].To - s.Sources[0].From
		}
	}
	return len(pl.bad.list) == 0
}

func (pl *planner) layerRange(s part, src *Source) {
	n := pl.layers[pl.index[src.Model]]
	whole := src.To == 0
	if whole {
		src.To = n
	}
	if src.To > n {
		pl.fail("", src.Line, "model %s: layer_range: got [%d, %d], but it has %d layers",
			src.Model, src.From, src.To, n)
	}
	first := &s.Sources[0]
	if got, want := src.To-src.From, first.To-first.From; got != want {
		pl.fail("", src.Line, "model %s: got %d layers, want %d as of %s in the same slice",
			src.Model, got, want, first.Model)
	}
}

// checkBases checks that methods that need a base have one in each slice.
func (pl *planner) checkBases() {
	if pl.m.Base != method.BaseRequired {
		return
	}
	for _, s := range pl.slices {
		if s.base == nil {
			pl.fail("base", pl.c.MethodLine, "merge_method %s: it needs a base_model, and there is none", pl.m.Name)
			continue
		}
		if !slices.ContainsFunc(s.Sources, func(src Source) bool { return src.Model == *s.base }) {
			pl.fail("", s.Line, "slices: method %s needs the base_model, %s, among the sources of each slice",
				pl.m.Name, s.base)
		}
	}
}

// vocabulary builds that of the output, if the configuration asks for it.
func (pl *planner) vocabulary() {
	t := pl.c.Tokenizer
	if t == nil {
		return
	}
	var models []vocab.Model
	for i, m := range pl.p.Models {
		rows, ok := vocabSize(m.Config)
		if !ok {
			pl.bad.add("", pl.lines[i], fault.Dataf("model %s: config.json: want a number at vocab_size", m.Name))
		}
		models = append(models, vocab.Model{Name: m.Name, Dir: m.Dir, Rows: rows})
	}
	o := vocab.Options{Base: pl.p.Donor, NoBase: pl.p.Base < 0, Pad: t.Pad}
	switch {
	case t.Base:
		o.Source.Kind = vocab.OfBase
	case t.Model != nil:
		o.Source = vocab.Source{Kind: vocab.OfModel, Model: len(models)}
		if i, ok := pl.index[*t.Model]; ok {
			o.Source.Model = i
		} else if m, ok := pl.tokenizerOnly(*t.Model, t.Line); ok {
			models = append(models, m)
		}
	}
	for _, rule := range t.Tokens {
		o.Tokens = append(o.Tokens, pl.token(rule))
	}
	if len(pl.bad.list) > 0 {
		return
	}
	v, err := pl.build(models, o)
	if err != nil {
		pl.bad.add("", t.Line, err)
		return
	}
	if pl.p.Vocabulary = v; v != nil {
		for _, w := range v.Warnings {
			pl.warn("", t.Line, "%s", w)
		}
	}
}

// vocabSize is the number of tokens that config.json says.
func vocabSize(config strictjson.Value) (int, bool) {
	v, _ := config.Lookup("vocab_size")
	n, ok := v.Int64()
	return int(n), ok && n > 0 && n < 1<<31
}

// tokenizerOnly is a model of which the tokenizer alone is taken.
func (pl *planner) tokenizerOnly(ref Reference, line int) (vocab.Model, bool) {
	dir, err := pl.find(ref.Path, ref.Revision)
	if err != nil {
		pl.bad.add("", line, err)
		return vocab.Model{}, false
	}
	m := vocab.Model{Name: ref.String(), Dir: dir, Rows: 1<<31 - 1}
	file := filepath.Join(dir, "config.json")
	text, err := os.ReadFile(file)
	if err != nil {
		return m, true // a folder with a tokenizer and no more: all of its tokens count
	}
	config, err := strictjson.ParseFile(file, string(text))
	if err != nil {
		pl.bad.add("", line, fault.Dataf("model %s: %w", ref, err))
		return m, false
	}
	if rows, ok := vocabSize(config); ok {
		m.Rows = rows
	}
	return m, true
}

// token is a rule in the terms of vocab.
func (pl *planner) token(r TokenRule) vocab.Token {
	t := vocab.Token{Text: r.Text, Force: r.Force}
	if r.Zero {
		t.Kind = vocab.Zero
	}
	if r.Model == nil {
		return t
	}
	i, ok := pl.index[*r.Model]
	if !ok {
		pl.fail("", r.Line, "tokenizer: token %q: got the model %s, want one that is merged", r.Text, r.Model)
	}
	t.Kind, t.Model = vocab.FromModel, i
	if r.Token != nil {
		t.Kind, t.Token = vocab.FromToken, *r.Token
	}
	if r.ID != nil {
		t.Kind, t.ID, t.ByID = vocab.FromToken, *r.ID, true
	}
	return t
}

// tensors plans every tensor of the output and puts them in order.
func (pl *planner) tensors() {
	first, last := pl.slices[0], pl.slices[len(pl.slices)-1]
	for i := range pl.arch.before {
		pl.tensor(place{weight: &pl.arch.before[i], part: first, sources: first.Sources})
	}
	out := 0
	for _, s := range pl.slices {
		n := s.Sources[0].To - s.Sources[0].From
		for k := range n {
			at := place{part: s, sources: s.Sources, layer: out, offset: k, t: 1}
			if n > 1 {
				at.t = float64(k) / float64(n-1)
			}
			for i := range pl.arch.layer {
				at.weight = &pl.arch.layer[i]
				pl.tensor(at)
			}
			out++
		}
	}
	sources := last.Sources
	if pl.o.Compat { // it counts the sources of the first slice
		sources = sources[:min(len(sources), len(first.Sources))]
	}
	for i := range pl.arch.after {
		pl.tensor(place{weight: &pl.arch.after[i], part: last, sources: sources})
	}
	// The order is that of mergekit: by the names of inputs, so that tensors of the
	// tenth layer come before those of the second.
	slices.SortStableFunc(pl.p.Tensors, func(a, b Tensor) int { return cmp.Compare(a.last(), b.last()) })
}

// last is the greatest of the names that the inputs have in their files.
func (t *Tensor) last() string {
	name := ""
	for i := range t.Inputs {
		name = max(name, t.Inputs[i].Name)
	}
	return name
}

// place is a weight at its place in the output.
type place struct {
	weight  *weight
	part    part
	sources []Source
	layer   int     // of the output
	offset  int     // in the slice
	t       float64 // position in gradients; 0 outside the layers
}

// tensor plans one tensor, unless it is optional and no model has it.
func (pl *planner) tensor(at place) {
	w := at.weight
	if w.optional && !pl.anyHas(at) {
		return
	}
	t := Tensor{
		Name: w.out(at), Base: -1, Line: at.part.Line, Embed: w.embed, Optional: w.optional,
	}
	if len(w.tied) > 0 {
		t.Tied = w.tied[0]
	}
	if pl.c.DType != nil {
		t.Cast, t.HasCast = *pl.c.DType, true
	}
	t.Global = pl.global(at, t.Name)
	number := 0
	for i := range at.sources {
		src := &at.sources[i]
		in := Input{Model: pl.index[src.Model], Number: -1}
		base := at.part.base != nil && src.Model == *at.part.base
		if !base {
			in.Number = number
			number++
		}
		primary := w.in(w.name, at, src)
		in.Params = pl.perModel(at, src, primary, base)
		if !pl.locate(&in, at, src) {
			pl.missing(at, src, primary)
			continue
		}
		if base {
			t.Base = len(t.Inputs)
		}
		t.Inputs = append(t.Inputs, in)
	}
	if len(t.Inputs) > 0 {
		pl.p.Tensors = append(pl.p.Tensors, t)
	}
}

// out is the name of a weight in the output.
func (w *weight) out(p place) string { return at(w.name, p.layer) }

// in is a name of a weight in a source.
func (w *weight) in(name string, p place, src *Source) string { return at(name, src.From+p.offset) }

// anyHas says that some source has a weight under one of its own names.
func (pl *planner) anyHas(p place) bool {
	for i := range p.sources {
		src := &p.sources[i]
		m := pl.p.Models[pl.index[src.Model]]
		for _, name := range append([]string{p.weight.name}, p.weight.aliases...) {
			if _, _, ok := m.Tensor(p.weight.in(name, p, src)); ok {
				return true
			}
		}
	}
	return false
}

// locate finds a weight in a source: under its name, its aliases, or those of the
// tensor that it is tied to.
func (pl *planner) locate(in *Input, p place, src *Source) bool {
	m := pl.p.Models[in.Model]
	for _, names := range [][]string{{p.weight.name}, p.weight.aliases, p.weight.tied} {
		for _, name := range names {
			name = p.weight.in(name, p, src)
			if shape, dtype, ok := m.Tensor(name); ok {
				in.Name, in.Shape, in.DType = name, shape, dtype
				return true
			}
		}
	}
	return false
}

// missing notes that a source lacks a weight: an error, or a warning if it is
// optional.
func (pl *planner) missing(p place, src *Source, name string) {
	key := p.weight.name + " " + src.Model.String()
	if p.weight.optional {
		pl.warn(key, src.Line, "model %s: it has no tensor %s and no part in it", src.Model, name)
		return
	}
	pl.bad.add(key, src.Line, fault.Dataf("model %s: it has no tensor %s, which models of %s need",
		src.Model, name, pl.arch.class))
}
