// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"bytes"
	"compress/gzip"
	"path/filepath"
	"strings"
	"testing"
)

func TestDocumentation(t *testing.T) {
	files := map[string]string{}
	guide := strings.Repeat("A guide to what one would rather not know.\n", 400)
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	if _, err := z.Write([]byte(strings.Repeat(".SH NAME\nthing \\- does things of all kinds\n", 500))); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	for i := range 120 {
		name := "p" + strings.Repeat("x", i)
		files["doc/"+name+"/README"] = guide
		files["man/man1/"+name+".1"] = strings.Repeat(".SH NAME\nthing \\- does things\n", 400)
	}
	files["man/man1/packed.1.gz"] = packed.String()
	files["doc/p/broken.1.gz"] = "no gzip"
	dir := writeTree(t, files)
	c := documentation([]string{dir, "/does/not/exist"})
	if c == nil || c.Names != [2]string{"guides", "manual pages"} {
		t.Fatalf("got %+v, want guides and manual pages", c)
	}
	out := filepath.Join(t.TempDir(), "text")
	got, err := c.Write(t.Context(), out, Quota{1 << 30, 1 << 30})
	if err != nil {
		t.Fatal(err)
	}
	for side, n := range got {
		if n[1] == 0 || n[1] > n[0]/4 {
			t.Errorf("%s: %v bytes: want about a twentieth held out", Sides()[side], n)
		}
	}
	if documentation([]string{t.TempDir()}) != nil {
		t.Error("an empty folder is documentation")
	}
}
