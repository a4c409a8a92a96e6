// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"go/ast"
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// TestDefects: the tests that docs/defects.md names are there.
func TestDefects(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "docs", "defects.md"))
	if err != nil {
		t.Fatal(err)
	}
	there := map[string]bool{}
	for _, s := range sources(t) {
		for _, d := range s.ast.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && s.test {
				there[s.room+"."+f.Name.Name] = true
			}
		}
	}
	named := regexp.MustCompile("`([a-z/]+\\.Test[A-Za-z0-9]+)`").FindAllStringSubmatch(string(text), -1)
	for _, m := range named {
		if !there[m[1]] {
			t.Errorf("docs/defects.md names %s, which is no test", m[1])
		}
	}
	if len(named) < 30 {
		t.Errorf("docs/defects.md names %d tests", len(named))
	}
}
