// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"html/template"
	"io"
	"path/filepath"

	"pleach/internal/fault"
)

// newPage is a page that needs nothing else: no script, no font, no image. It
// defines "title" and begins with {{template "head" .}}, which is the head with
// styles for light and dark; it ends with </html>. Pages are XML too, so that a test
// can read them.
func newPage(name, text string) *template.Template {
	return template.Must(template.Must(template.New(name).Parse(pageHead)).Parse(text))
}

const pageHead = `{{define "head"}}<!doctype html>
<html lang="en">
<meta charset="utf-8"/>
<meta name="viewport" content="width=device-width, initial-scale=1"/>
<title>{{template "title" .}}</title>
<style>
body { font: 15px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; color: #222; background: #fff; }
table { border-collapse: collapse; }
th { text-align: left; font-weight: 600; vertical-align: top; padding: .15rem 1.5rem .15rem 0; white-space: nowrap; }
td { padding: .15rem 0; overflow-wrap: anywhere; }
svg { max-width: 100%; height: auto; margin-top: 1rem; }
text { font: 11px system-ui, sans-serif; fill: #555; }
figcaption { color: #555; }
@media (prefers-color-scheme: dark) { body { color: #ddd; background: #1b1b1b; } text, figcaption { fill: #aaa; color: #aaa; } }
</style>{{end}}`

// writePage replaces a file with a page, whole or not at all, and says so.
func writePage(say io.Writer, path string, fill func(w io.Writer) error) error {
	var b bytes.Buffer
	if err := fill(&b); err != nil {
		return err
	}
	if err := writeFile(filepath.Dir(path), filepath.Base(path), b.Bytes()); err != nil {
		return fault.Machinef("writing %s: %w", path, err)
	}
	fmt.Fprintln(say, "wrote", path)
	return nil
}
