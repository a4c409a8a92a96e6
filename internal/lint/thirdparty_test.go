// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// party is a line of testdata/thirdparty.txt.
type party struct {
	module string
	rooms  []string // "any", "tests", or rooms
	why    string
}

func parties(t *testing.T) []party {
	t.Helper()
	text, err := os.ReadFile("testdata/thirdparty.txt")
	if err != nil {
		t.Fatal(err)
	}
	var ps []party
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
			continue
		}
		module, rest, _ := strings.Cut(line, " ")
		rooms, why, _ := strings.Cut(strings.TrimSpace(rest), " ")
		if why = strings.TrimSpace(why); why == "" {
			t.Errorf("thirdparty.txt: %s: no reason given", module)
		}
		ps = append(ps, party{module, strings.Split(rooms, ","), why})
	}
	return ps
}

// TestThirdParty: what is not ours is imported where testdata/thirdparty.txt
// allows it and nowhere else. Tests may import whatever stands there.
func TestThirdParty(t *testing.T) {
	ps := parties(t)
	for _, s := range sources(t) {
		for p, line := range s.imports() {
			first, _, _ := strings.Cut(p, "/")
			if first == module || !strings.Contains(first, ".") {
				continue
			}
			i := slices.IndexFunc(ps, func(q party) bool {
				return p == q.module || strings.HasPrefix(p, q.module+"/")
			})
			switch {
			case i < 0:
				t.Errorf("%s:%d: %s is not in thirdparty.txt", s.path, line, p)
			case s.test, slices.Contains(ps[i].rooms, s.room), slices.Contains(ps[i].rooms, "any"):
			default:
				t.Errorf("%s:%d: %s may not import %s: it is for %s: %s", s.path, line, s.room, p,
					strings.Join(ps[i].rooms, ", "), ps[i].why)
			}
		}
	}
}

// TestModules: go.mod requires directly what thirdparty.txt lists, and
// docs/dependencies.md has a line for it.
func TestModules(t *testing.T) {
	mod, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	doc, err := os.ReadFile(filepath.Join(root, "docs/dependencies.md"))
	if err != nil {
		t.Fatal(err)
	}
	ps := parties(t)
	for _, p := range ps {
		if !strings.Contains(string(mod), p.module+" v") {
			t.Errorf("thirdparty.txt: %s is not in go.mod", p.module)
		}
		if !strings.Contains(string(doc), "`"+p.module+"`") {
			t.Errorf("docs/dependencies.md: no line for %s", p.module)
		}
	}
	for line := range strings.Lines(string(mod)) {
		f := strings.Fields(strings.TrimPrefix(strings.TrimSpace(line), "require "))
		if len(f) != 2 || !strings.Contains(f[0], ".") || !strings.HasPrefix(f[1], "v") {
			continue // indirect requirements have a comment behind them
		}
		if !slices.ContainsFunc(ps, func(p party) bool { return p.module == f[0] }) {
			t.Errorf("go.mod: %s is not in thirdparty.txt", f[0])
		}
	}
}
