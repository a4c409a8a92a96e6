// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// order says which room may import which. "a, b < c, d;" lets c and d import a
// and b and all that those may import. A name stands once on a right-hand side,
// before it is used on the left. "i !< j;" asserts that j may not import i. Only
// imports of files that are not tests count. Rooms that do not exist yet may
// stand here; a folder with Go code that does not stand here is an error. The
// comment above or beside a rule is printed when it is broken.
const order = `
# Small shared types; every room may use them.
NONE
< internal/unit, internal/rng, internal/fault, internal/invariant, internal/strictjson, internal/yaml11
< BASE;

# Helpers of tests and of this check: no product code may import them.
BASE < internal/golden, internal/lint;

# Rooms that know no other room.
BASE < half, blob, config, token, template, track, data/table;

# A suite for every store, and generators of tables and of assembly.
blob < blob/blobtest;
BASE < token/gen, kernel/gen;

# Numbers, files, ranks.
half < kernel, program;
half, blob < weights;
blob < data/frame;
kernel < mesh;

# The step program: who writes it, who runs it.
program < engine, model, optim;
engine < engine/oracle < engine/enginetest;
engine, kernel, mesh < engine/cpu;
engine, mesh < engine/pjrt;

# Tokens in, state out, models combined. A checkpoint is a Hugging Face model
# directory with a training folder, so it is written in the model's words.
blob, token, template, data/table, data/frame < data < corpus;
model, weights, mesh < ckpt;
half, kernel < merge/method < merge/compat;
token < merge/vocab;
weights, kernel < merge/compare;
internal/yaml11, weights, merge/compat, merge/vocab < merge;

# Whole jobs. A plan asks through the contract what an engine would allocate.
config, engine, model, optim, mesh < plan;
config < launch;
config, engine, model, optim, data, ckpt, track < train;
engine, model, weights, token < infer;
infer, data, template, track < eval;

# The only place that names concrete engines, stores and sinks.
train, infer, eval, corpus, merge, merge/compare, plan, launch, engine/cpu, engine/pjrt < cmd/pleach;

# The experiment of docs/converging.md runs the program, and reads what it wrote.
corpus, track < bench/converging;

kernel !< program;                       # a program says what; only an engine says how
program !< kernel;                       # kernels take slices: assembly is testable with no types
mesh !< program;                         # a program names mesh axes, not who sits on them
weights, blob !< model;                  # a model is in its paper: it reads no file
engine/cpu, engine/pjrt !< train, eval;  # a run does not care who multiplies
engine/cpu, engine/pjrt !< plan;         # nor does its prediction
engine/cpu !< engine/oracle;             # the oracle shares no arithmetic with what it judges
kernel !< engine/oracle;                 # nor loops
train !< launch, plan;                   # both work before rank 0 exists
data !< plan;                            # a prediction needs no document
config !< ckpt, model, data, engine;     # state and maths outlive the config format
track !< ckpt, data, optim;              # deleting track changes no number
internal/golden !< cmd/pleach;           # a test helper imports the testing package
`

// dag is a parsed order.
type dag struct {
	after   map[string]map[string]bool // what each name may import
	comment map[string]string          // of the rule that defines it
	not     []rule
}

// rule is names on both sides of < or !<.
type rule struct {
	left, right []string
	comment     string
}

func parseOrder(text string) (*dag, error) {
	g := &dag{
		after:   map[string]map[string]bool{"NONE": {}},
		comment: map[string]string{},
	}
	rules, err := splitRules(text)
	if err != nil {
		return nil, err
	}
	for _, r := range rules {
		if strings.Contains(r.text, "!<") {
			l, rt, _ := strings.Cut(r.text, "!<")
			if strings.Contains(rt, "<") {
				return nil, fmt.Errorf("order: %q: a negative rule does not chain", r.text)
			}
			g.not = append(g.not, rule{names(l), names(rt), r.comment})
			continue
		}
		parts := strings.Split(r.text, "<")
		if len(parts) < 2 {
			return nil, fmt.Errorf("order: %q: got no <", r.text)
		}
		for i := range parts[1:] {
			if err := g.add(rule{names(parts[i]), names(parts[i+1]), r.comment}); err != nil {
				return nil, err
			}
		}
	}
	return g, g.denied()
}

// text is a rule as written, with what is said about it.
type text struct{ text, comment string }

// splitRules cuts at semicolons. The comment of a rule is the one behind it,
// else the one above it, which holds for all rules up to the next empty line.
func splitRules(s string) ([]text, error) {
	var rules []text
	var part, above string
	fresh := true
	for line := range strings.Lines(s) {
		code, remark, _ := strings.Cut(strings.TrimSpace(line), "#")
		code, remark = strings.TrimSpace(code), strings.TrimSpace(remark)
		switch {
		case code == "" && remark == "":
			above, fresh = "", true
			continue
		case code == "" && fresh:
			above = strings.TrimSpace(above + " " + remark)
			continue
		}
		fresh = false
		part += " " + code
		before, rest, ended := strings.Cut(part, ";")
		if !ended {
			continue
		}
		if strings.TrimSpace(rest) != "" {
			return nil, fmt.Errorf("order: %q: one rule a line", part)
		}
		if remark == "" {
			remark = above
		}
		rules = append(rules, text{strings.TrimSpace(before), remark})
		part = ""
	}
	if part != "" {
		return nil, fmt.Errorf("order: %q: the semicolon is missing", part)
	}
	return rules, nil
}

func names(s string) []string {
	ns := strings.Split(s, ",")
	for i := range ns {
		ns[i] = strings.TrimSpace(ns[i])
	}
	return ns
}

// add defines the names on the right.
func (g *dag) add(r rule) error {
	for _, c := range r.right {
		if c == "" || strings.ContainsAny(c, " !") {
			return fmt.Errorf("order: %q is not a name", c)
		}
		if g.after[c] != nil {
			return fmt.Errorf("order: %s is defined twice", c)
		}
		may := map[string]bool{}
		for _, a := range r.left {
			if g.after[a] == nil {
				return fmt.Errorf("order: %s is used before it is defined", a)
			}
			may[a] = true
			for b := range g.after[a] {
				may[b] = true
			}
		}
		g.comment[c], g.after[c] = r.comment, may
	}
	return nil
}

// denied checks the negative rules against the positive ones.
func (g *dag) denied() error {
	for _, r := range g.not {
		for _, i := range r.left {
			for _, j := range r.right {
				switch {
				case g.after[i] == nil || g.after[j] == nil:
					return fmt.Errorf("order: %s !< %s: not both are defined", i, j)
				case g.after[j][i]:
					return fmt.Errorf("order: %s may import %s, but: %s", j, i, r.comment)
				}
			}
		}
	}
	return nil
}

// why is the reason for which room may not import target.
func (g *dag) why(room, target string) string {
	for _, r := range g.not {
		if slices.Contains(r.left, target) && slices.Contains(r.right, room) {
			return r.comment
		}
	}
	return g.comment[room]
}

func TestOrder(t *testing.T) {
	g, err := parseOrder(order)
	if err != nil {
		t.Fatal(err)
	}
	unknown := map[string]bool{}
	for _, s := range sources(t) {
		may := g.after[s.room]
		if may == nil {
			if !unknown[s.room] {
				t.Errorf("%s: the room %s has no place in the order", s.path, s.room)
			}
			unknown[s.room] = true
			continue
		}
		if s.test {
			continue
		}
		for p, line := range s.imports() {
			target, ours := strings.CutPrefix(p, module+"/")
			if ours && !may[target] {
				t.Errorf("%s:%d: %s may not import %s: %s",
					s.path, line, s.room, target, g.why(s.room, target))
			}
		}
	}
}

func TestParseOrder(t *testing.T) {
	g, err := parseOrder("NONE < a, b; # one\n\n# two\nb < c\n< d;\na !< d; # three\n")
	if err != nil {
		t.Fatal(err)
	}
	if !g.after["d"]["b"] || g.after["d"]["a"] || g.after["b"]["a"] || g.after["c"]["d"] {
		t.Errorf("got %v", g.after)
	}
	if g.why("d", "a") != "three" || g.why("c", "d") != "two" || g.why("a", "b") != "one" {
		t.Errorf("got the comments %v, %v", g.comment, g.not)
	}
	for _, tt := range []struct{ text, want string }{
		{"NONE < a; NONE < b;", "one rule a line"},
		{"NONE < a", "semicolon"},
		{"NONE < a;\nNONE < a;", "defined twice"},
		{"NONE < a, a;", "defined twice"},
		{"b < a;\nNONE < b;", "before it is defined"},
		{"NONE < a < a;", "defined twice"},
		{"NONE < a < b;\na !< b; # no", "b may import a, but: no"},
		{"NONE < a;\na !< x;", "not both"},
		{"NONE a < b;", "before it is defined"},
		{"NONE < a b;", "not a name"},
		{"a;", "got no <"},
	} {
		if _, err := parseOrder(tt.text); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%q: got %v, want %q", tt.text, err, tt.want)
		}
	}
}
