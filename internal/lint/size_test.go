// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"fmt"
	"go/ast"
	"maps"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// sizes are figures of one room, of files that are neither tests nor generated.
type sizes struct {
	files, funcs, widths []int
	longest              string // the function
}

// TestSize prints figures. It fails for nothing: what is too long is for people
// to judge.
func TestSize(t *testing.T) {
	if !testing.Verbose() {
		t.Skip("figures only: run with -run Size -v")
	}
	rooms := map[string]*sizes{}
	all := &sizes{}
	for _, s := range sources(t) {
		if s.test || ast.IsGenerated(s.ast) {
			continue
		}
		if rooms[s.room] == nil {
			rooms[s.room] = &sizes{}
		}
		for _, z := range []*sizes{rooms[s.room], all} {
			z.add(s)
		}
	}
	t.Logf("%-20s %5s %15s %20s %13s  %s", "room", "files", "lines med/max", "func med/p90/max",
		"width p95/max", "longest function")
	for _, room := range slices.Sorted(maps.Keys(rooms)) {
		t.Log(rooms[room].line(room))
	}
	t.Log(all.line("all"))
}

func (z *sizes) add(s source) {
	z.files = append(z.files, strings.Count(s.text, "\n"))
	for line := range strings.Lines(s.text) {
		line = strings.TrimRight(strings.ReplaceAll(line, "\t", "    "), "\n")
		if line != "" {
			z.widths = append(z.widths, utf8.RuneCountInString(line))
		}
	}
	for _, d := range s.ast.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok {
			continue
		}
		n := 1 + s.fset.Position(f.End()).Line - s.fset.Position(f.Pos()).Line
		if len(z.funcs) == 0 || n > slices.Max(z.funcs) {
			z.longest = f.Name.Name
		}
		z.funcs = append(z.funcs, n)
	}
}

func (z *sizes) line(room string) string {
	return fmt.Sprintf("%-20s %5d %8d / %4d %8d / %3d / %3d %7d / %3d  %s", room, len(z.files),
		part(z.files, 50), part(z.files, 100), part(z.funcs, 50), part(z.funcs, 90),
		part(z.funcs, 100), part(z.widths, 95), part(z.widths, 100), z.longest)
}

// part is the smallest element that p per cent of the elements do not exceed.
func part(xs []int, p int) int {
	if len(xs) == 0 {
		return 0
	}
	s := slices.Sorted(slices.Values(xs))
	return s[max(0, (len(s)*p+99)/100-1)]
}
