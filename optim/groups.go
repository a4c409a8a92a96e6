// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package optim

import (
	"fmt"
	"slices"
	"strings"

	"pleach/program"
)

// DecayOf is the weight decay that a parameter of class c receives.
func (a AdamW) DecayOf(c program.Class) float64 {
	if slices.Contains(a.Except, c) {
		return 0
	}
	return a.Decay
}

// Group is the parameters that share one weight decay.
type Group struct {
	Decay    float64
	Names    []string
	Elements int
}

// Groups puts every parameter into exactly one group, those that decay first.
func (a AdamW) Groups(params []program.Param) []Group {
	groups := []Group{{Decay: a.Decay}, {Decay: 0}}
	for _, p := range params {
		g := &groups[0]
		if a.DecayOf(p.Class) == 0 {
			g = &groups[1]
		}
		g.Names = append(g.Names, p.Name)
		g.Elements += p.Len()
	}
	return slices.DeleteFunc(groups, func(g Group) bool { return len(g.Names) == 0 })
}

// String names the parameters of the group; those of layers are listed once,
// with the layer as *.
func (g Group) String() string {
	var names []string
	for _, n := range g.Names {
		if l, rest, ok := strings.Cut(n, "."); ok && strings.Trim(l, "0123456789") == "" {
			n = "*." + rest
		}
		if !slices.Contains(names, n) {
			names = append(names, n)
		}
	}
	return fmt.Sprintf("decay %g: %d elements in %d parameters: %s", g.Decay, g.Elements, len(g.Names),
		strings.Join(names, ", "))
}

// ClassesOf turns the words of a recipe, norms, biases and embeddings, into
// classes.
func ClassesOf(words []string) ([]program.Class, error) {
	known := map[string]program.Class{"norms": program.Norm, "biases": program.Bias, "embeddings": program.Embedding}
	var cs []program.Class
	for _, w := range words {
		c, ok := known[w]
		if !ok {
			return nil, fmt.Errorf("optim: decay except %q: want norms, biases or embeddings", w)
		}
		cs = append(cs, c)
	}
	return cs, nil
}
