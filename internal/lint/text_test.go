// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"flag"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestDoc: every package says what it is, in doc.go. Helpers below internal and
// programs outside cmd may say it in any file.
func TestDoc(t *testing.T) {
	best := map[string]int{} // lines of the package comment, by room
	for _, s := range sources(t) {
		if s.test {
			continue
		}
		anywhere := strings.HasPrefix(s.room, "internal/") ||
			s.ast.Name.Name == "main" && !strings.HasPrefix(s.room, "cmd/")
		n := 0
		if s.ast.Doc != nil && (anywhere || path.Base(s.path) == "doc.go") {
			n = len(strings.Split(strings.TrimSpace(s.ast.Doc.Text()), "\n"))
		}
		best[s.room] = max(best[s.room], n)
	}
	for room, n := range best {
		want := 5
		if strings.HasPrefix(room, "internal/") {
			want = 3
		}
		if n < want {
			t.Errorf("%s: got a package comment of %d lines in doc.go, want at least %d: "+
				"the sentence of the room, the types to know, an example, what is not here",
				room, n, want)
		}
	}
}

// licence is the head of every file, after the comment marks.
var licence = []string{
	"SPDX-FileCopyrightText: 2026 The pleach authors",
	"SPDX-License-Identifier: Apache-2.0",
}

// TestLicence: every source file starts with the two lines and an empty one, or
// the end of the comment, and has no other banner. In testdata only programs do.
func TestLicence(t *testing.T) {
	banner := regexp.MustCompile(`(?i)copyright (\(c\)|©|20)|licensed under`)
	walk(t, func(name string, text []byte) {
		if ext := path.Ext(name); inTestdata(name) && ext != ".py" && ext != ".sh" {
			return
		}
		mark := "# "
		if ext := path.Ext(name); ext == ".go" || ext == ".s" {
			mark = "// "
		}
		lines := strings.SplitN(string(text), "\n", 25)
		if strings.HasPrefix(lines[0], "#!") {
			lines = lines[1:]
		}
		for i, want := range licence {
			if len(lines) <= i || lines[i] != mark+want {
				t.Errorf("%s: line %d is not %q", name, i+1, mark+want)
				return
			}
		}
		if mark == "// " && len(lines) > 2 && strings.TrimSpace(lines[2]) != "" {
			t.Errorf("%s: the licence lines are not a comment of their own", name)
		}
		if i := slices.IndexFunc(lines[2:min(len(lines), 20)], banner.MatchString); i >= 0 {
			t.Errorf("%s: a second banner: %s", name, lines[2+i])
		}
	})
}

// TestTODO: what is left to do has an issue, as in "TODO(#12): …".
func TestTODO(t *testing.T) {
	todo := regexp.MustCompile(`\b(TODO|FIXME|XXX|HACK)\b(\(#[0-9]+\))?`)
	for _, s := range sources(t) {
		if s.room == "internal/lint" {
			continue // it has to name them
		}
		for _, group := range s.ast.Comments {
			for _, c := range group.List {
				if m := todo.FindStringSubmatch(c.Text); m != nil && m[2] == "" {
					t.Errorf("%v: %s without an issue number, want %s(#N)",
						s.fset.Position(c.Pos()), m[1], m[1])
				}
			}
		}
	}
}

var update = flag.Bool("update", false, "rewrite what is generated in docs")

// TestRooms: docs/rooms.md names every room and has the order as it is checked.
func TestRooms(t *testing.T) {
	file := filepath.Join(root, "docs/rooms.md")
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	doc := string(b)
	told := map[string]bool{}
	for _, s := range sources(t) {
		if !told[s.room] && !strings.Contains(doc, "`"+s.room+"`") {
			t.Errorf("docs/rooms.md: no word about %s", s.room)
		}
		told[s.room] = true
	}
	before, rest, ok := strings.Cut(doc, "```text\n")
	old, after, ok2 := strings.Cut(rest, "```\n")
	if !ok || !ok2 {
		t.Fatal("docs/rooms.md: no block that starts with ```text")
	}
	want := strings.TrimPrefix(order, "\n")
	if old == want {
		return
	}
	if !*update {
		t.Fatal("docs/rooms.md: the order is not that of order_test.go; -update copies it")
	}
	if err := os.WriteFile(file, []byte(before+"```text\n"+want+"```\n"+after), 0o666); err != nil {
		t.Fatal(err)
	}
}
