// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"fmt"
	"slices"
	"strings"

	"pleach/internal/fault"
	"pleach/merge/method"
)

// resolve is the value of a parameter: the first of the settings, from the nearest
// to the farthest, that has one for the tensor.
func resolve(name, tensor string, t float64, settings ...Parameters) (float64, bool) {
	for _, ps := range settings {
		if x, ok := ps.Find(name).Value(tensor, t); ok {
			return x, true
		}
	}
	return 0, false
}

// global are the parameters that a tensor has once. Filters see the name of the
// output.
func (pl *planner) global(p place, name string) method.Values {
	vs := method.Values{}
	for _, par := range pl.m.Global {
		x, ok := resolve(par.Name, name, p.t, p.part.Parameters, p.part.module, pl.c.Parameters)
		switch {
		case ok:
			vs[par.Name] = x
		case par.Required:
			pl.lack(p, par.Name)
			pl.fail("global "+par.Name, p.part.Line, "tensor %s: method %s needs the parameter %s, "+
				"which has no value for it%s", name, pl.m.Name, par.Name, misplaced(p, par.Name))
		case !par.Nullable:
			vs[par.Name] = par.Default
		}
	}
	return vs
}

// perModel are the parameters that each input has. Filters see its own name. What
// is required may be absent for the base, unless the method counts it as an input.
func (pl *planner) perModel(p place, src *Source, name string, base bool) method.Values {
	vs := method.Values{}
	for _, par := range pl.m.PerModel {
		x, ok := resolve(par.Name, name, p.t, src.Parameters, p.part.Parameters, p.part.module, pl.c.Parameters)
		switch {
		case ok:
			vs[par.Name] = x
		case par.Required && base && pl.m.Base != method.BaseInput:
		case par.Required && base:
			pl.lack(p, par.Name)
			pl.fail(par.Name+" "+src.Model.String(), src.Line, "tensor %s: method %s counts the base_model %s "+
				"as an input, which needs the parameter %s", name, pl.m.Name, src.Model, par.Name)
		case par.Required:
			pl.lack(p, par.Name)
			pl.fail(par.Name+" "+src.Model.String(), src.Line, "tensor %s: model %s: method %s needs the parameter %s, "+
				"which has no value for it", name, src.Model, pl.m.Name, par.Name)
		case !par.Nullable:
			vs[par.Name] = par.Default
		}
	}
	return vs
}

// lack notes that a tensor has no value of a required parameter.
func (pl *planner) lack(p place, parameter string) {
	if pl.lacks == nil {
		pl.lacks = map[string][]string{}
	}
	name := p.weight.out(p)
	pl.lacks[name] = append(pl.lacks[name], parameter)
}

// misplaced says where a parameter of whole tensors belongs, if a model has it.
func misplaced(p place, parameter string) string {
	for _, src := range p.sources {
		for _, par := range src.Parameters {
			if par.Name == parameter {
				return fmt.Sprintf("; that of model %s has no effect: it belongs below the parameters at the top "+
					"or of a slice", src.Model)
			}
		}
	}
	return ""
}

// checkParameters warns of parameters that have no effect: those that the method
// does not have, and those of a tensor that stand at a model.
func (pl *planner) checkParameters() {
	pl.unused(pl.c.Parameters, false)
	for _, s := range pl.slices {
		pl.unused(s.Parameters, false)
		for _, src := range s.Sources {
			pl.unused(src.Parameters, true)
		}
	}
	if len(pl.slices) > 0 {
		pl.unused(pl.slices[0].module, false)
	}
}

func (pl *planner) unused(ps Parameters, ofModel bool) {
	named := func(name string) func(method.Parameter) bool {
		return func(p method.Parameter) bool { return p.Name == name }
	}
	var names []string
	for _, p := range slices.Concat(pl.m.Global, pl.m.PerModel) {
		names = append(names, p.Name)
	}
	for _, p := range ps {
		switch {
		case slices.ContainsFunc(pl.m.PerModel, named(p.Name)):
		case slices.ContainsFunc(pl.m.Global, named(p.Name)):
			if ofModel {
				pl.warn(fmt.Sprint("at a model ", p.Name, p.Line), p.Line,
					"parameter %s: it is one of whole tensors, and has no effect at a model; "+
						"it belongs below the parameters at the top or of a slice", p.Name)
			}
		default:
			hint := ""
			if near := fault.Nearest(p.Name, names); near != "" {
				hint = fmt.Sprintf("; did you mean %s?", near)
			}
			pl.warn(fmt.Sprint("unused ", p.Name, p.Line), p.Line,
				"parameter %s: method %s has none of this name, and ignores it%s",
				p.Name, pl.m.Name, hint)
		}
	}
}

// filters warns of those that are part of no name.
func (pl *planner) filters() {
	var all strings.Builder
	for i := range pl.p.Tensors {
		t := &pl.p.Tensors[i]
		all.WriteString(t.Name)
		all.WriteByte('\n')
		for _, in := range t.Inputs {
			if in.Name != t.Name {
				all.WriteString(in.Name)
				all.WriteByte('\n')
			}
		}
	}
	names := all.String()
	look := func(ps Parameters) {
		for _, p := range ps {
			for _, c := range p.Cases {
				if c.Filter != "*" && !strings.Contains(names, c.Filter) {
					pl.warn(fmt.Sprint(p.Name, c.Line), c.Line, "parameter %s: the filter %q is part of no tensor's name",
						p.Name, c.Filter)
				}
			}
		}
	}
	look(pl.c.Parameters)
	for _, s := range pl.slices {
		look(s.Parameters)
		look(s.module)
		for _, src := range s.Sources {
			look(src.Parameters)
		}
	}
}
