// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

const root = "../.."

// module is the import path of the tree.
const module = "pleach"

// source is one Go file.
type source struct {
	path string // from the root, with slashes
	room string // its folder
	test bool
	text string
	fset *token.FileSet
	ast  *ast.File
}

// imports is the file's import paths with their lines.
func (s source) imports() map[string]int {
	m := map[string]int{}
	for _, i := range s.ast.Imports {
		p, err := strconv.Unquote(i.Path.Value)
		if err == nil {
			m[p] = s.fset.Position(i.Pos()).Line
		}
	}
	return m
}

// walk calls f for every file of the module, but not for those that the go
// command skips: hidden folders, those with an underscore, other modules. Build
// outputs and runs are skipped as .gitignore does.
func walk(t *testing.T, f func(name string, text []byte)) {
	t.Helper()
	fsys := os.DirFS(root)
	err := fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		base := path.Base(name)
		switch {
		case err != nil:
			return err
		case !d.IsDir():
			if !wanted(base) && !strings.HasPrefix(name, ".ci/") {
				return nil
			}
			text, err := os.ReadFile(filepath.Join(root, name))
			f(name, text)
			return err
		case name == "." || name == ".ci":
			return nil
		case strings.HasPrefix(base, ".") || strings.HasPrefix(base, "_"),
			strings.HasPrefix(name, "pleach-"), // what quickstart and init make, if run here
			name == "runs", name == "bin", name == "tools":
			return fs.SkipDir
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func wanted(base string) bool {
	switch path.Ext(base) {
	case ".go", ".s", ".py", ".sh", ".yaml", ".yml":
		return true
	}
	return false
}

// sources parses every Go file outside testdata.
func sources(t *testing.T) []source {
	t.Helper()
	var ss []source
	walk(t, func(name string, text []byte) {
		if path.Ext(name) != ".go" || inTestdata(name) {
			return
		}
		fset := token.NewFileSet()
		file, err := parser.ParseFile(fset, name, text, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			t.Errorf("%v", err)
			return
		}
		ss = append(ss, source{
			path: name, room: path.Dir(name), test: strings.HasSuffix(name, "_test.go"),
			text: string(text), fset: fset, ast: file,
		})
	})
	if len(ss) < 20 {
		t.Fatalf("got %d Go files: is %s the root of the module?", len(ss), root)
	}
	return ss
}

func inTestdata(name string) bool { return strings.Contains("/"+name, "/testdata/") }
