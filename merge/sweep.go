// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"slices"
	"strings"

	"pleach/internal/fault"
	"pleach/merge/method"
)

// Set gives a parameter one value for all tensors, in the place of all that the
// configuration says about it. With a model, it is the parameter of that input alone.
func (c *Config) Set(name, model string, value float64) error {
	m, ok := method.Find(c.Method)
	if !ok {
		return fault.Configf("merge: %s:%d: merge_method: got %q, want one of %s",
			c.File, c.MethodLine, c.Method, strings.Join(method.Names(), ", "))
	}
	has := func(list []method.Parameter) bool {
		return slices.ContainsFunc(list, func(p method.Parameter) bool { return p.Name == name })
	}
	if !has(m.PerModel) && (model != "" || !has(m.Global)) {
		return fault.Configf("merge: %s: %s has no parameter %q%s; it has %s", c.File, c.Method, name,
			map[bool]string{true: " of a model"}[model != ""], parameterNames(m, model != ""))
	}
	p := Parameter{Name: name, Cases: []Case{{Values: []float64{value}}}}
	if model == "" {
		c.eachParameters(func(_ *Source, ps *Parameters) { ps.remove(name) })
		c.Parameters = append(c.Parameters, p)
		return nil
	}
	found := false
	var inputs []string
	c.eachParameters(func(s *Source, ps *Parameters) {
		if s != nil && !slices.Contains(inputs, s.Model.String()) {
			inputs = append(inputs, s.Model.String())
		}
		if s != nil && s.Model.String() == model {
			ps.remove(name)
			*ps = append(*ps, p)
			found = true
		}
	})
	if !found {
		return fault.Configf("merge: %s: got model %q, which is not among the inputs: want one of %s",
			c.File, model, strings.Join(inputs, ", "))
	}
	return nil
}

// eachParameters visits all places where parameters are set; s is the source that they
// belong to, if any.
func (c *Config) eachParameters(f func(s *Source, ps *Parameters)) {
	sources := func(list []Source) {
		for i := range list {
			f(&list[i], &list[i].Parameters)
		}
	}
	cut := func(list []Slice) {
		for i := range list {
			f(nil, &list[i].Parameters)
			sources(list[i].Sources)
		}
	}
	f(nil, &c.Parameters)
	sources(c.Models)
	cut(c.Slices)
	for i := range c.Modules {
		f(nil, &c.Modules[i].Parameters)
		sources(c.Modules[i].Models)
		cut(c.Modules[i].Slices)
	}
}

func (ps *Parameters) remove(name string) {
	*ps = slices.DeleteFunc(slices.Clone(*ps), func(p Parameter) bool { return p.Name == name })
}

func parameterNames(m *method.Method, perModel bool) string {
	var names []string
	for _, p := range m.PerModel {
		names = append(names, p.Name)
	}
	if !perModel {
		for _, p := range m.Global {
			names = append(names, p.Name)
		}
	}
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}
