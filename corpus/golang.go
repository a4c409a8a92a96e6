// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"bytes"
	"context"
	"go/scanner"
	"go/token"
	"io/fs"
	"iter"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strings"

	"pleach/internal/fault"
)

// goRoot is the folder of a Go installation with its sources, "" if there is
// none: the one the environment names, else what the go in PATH says. The root
// of the build is not asked: it means nothing on another machine.
func goRoot(ctx context.Context) string {
	roots := []string{os.Getenv("GOROOT")}
	if out, err := exec.CommandContext(ctx, "go", "env", "GOROOT").Output(); err == nil {
		roots = append(roots, strings.TrimSpace(string(out)))
	}
	for _, root := range roots {
		if info, err := os.Stat(filepath.Join(root, "src", "fmt")); root != "" && err == nil && info.IsDir() {
			return root
		}
	}
	return ""
}

// goCorpus is the first choice: general is the comments of a tree of Go
// packages, domain its code without them. A package is held out whole.
func goCorpus(tree fs.FS, where string) (*Corpus, error) {
	c := &Corpus{
		About:  "the Go sources in " + where,
		Names:  [2]string{"comments", "code"},
		Prompt: "func (r *Reader) Read(p []byte) (n int, err error) {",
	}
	err := fs.WalkDir(tree, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if base := d.Name(); d.IsDir() {
			if base == "vendor" || base == "testdata" || base != "." && strings.ContainsAny(base[:1], "._") {
				return fs.SkipDir
			}
			return nil
		}
		if path.Ext(name) == ".go" && d.Type().IsRegular() {
			c.files = append(c.files, textFile{name, []int{General, Domain}, func(*[2]int) iter.Seq2[textPair, error] {
				return goDocuments(tree, name)
			}})
		}
		return nil
	})
	if err != nil {
		return nil, fault.Dataf("corpus: %s: %w", where, err)
	}
	return c, nil
}

func goDocuments(tree fs.FS, name string) iter.Seq2[textPair, error] {
	return func(yield func(textPair, error) bool) {
		src, err := fs.ReadFile(tree, name)
		if err != nil {
			yield(textPair{}, fault.Dataf("corpus: %w", err))
			return
		}
		if generated().Match(src) {
			return
		}
		p := textPair{ID: name, HeldOut: inTwenty(path.Dir(name))}
		p.Text[General], p.Text[Domain] = splitGo(src)
		yield(p, nil)
	}
}

// generated finds the line by which Go marks files that no one wrote.
func generated() *regexp.Regexp {
	return regexp.MustCompile(`(?m)^// Code generated .* DO NOT EDIT\.$`)
}

// span is a comment: bytes [lo,hi) of a source, on so many lines from line on.
type span struct{ lo, hi, line, lines int }

// comments finds the comments of a Go source without carriage returns. What is
// no Go is scanned as far as it goes.
func comments(src []byte) []span {
	files := token.NewFileSet()
	file := files.AddFile("", files.Base(), len(src))
	var s scanner.Scanner
	s.Init(file, src, func(token.Position, string) {}, scanner.ScanComments)
	var all []span
	for {
		pos, tok, lit := s.Scan()
		switch tok {
		case token.EOF:
			return all
		case token.COMMENT:
			at := file.Offset(pos)
			all = append(all, span{at, at + len(lit), file.Line(pos), 1 + strings.Count(lit, "\n")})
		}
	}
}

// splitGo is the comments of a Go source, without their markers, and the source
// without them. Comments on neighbouring lines are one paragraph. Left out are
// copyright notices, directives such as go:build, and paragraphs of less than
// 40 bytes. In the code, lines that held nothing but a comment are gone, spaces
// at ends of lines too, and of blank lines in a row one stays.
func splitGo(src []byte) (prose, code string) {
	src = bytes.ReplaceAll(src, []byte("\r"), nil)
	all := comments(src)
	var b strings.Builder
	for i := 0; i < len(all); {
		j, text := i, ""
		for ; j < len(all) && (j == i || all[j].line == all[j-1].line+all[j-1].lines); j++ {
			text += unmarked(string(src[all[j].lo:all[j].hi]))
		}
		i = j
		text = strings.TrimSpace(text)
		if len(text) >= shortestComment && !strings.HasPrefix(text, "Copyright ") {
			if b.Len() > 0 {
				b.WriteString("\n\n")
			}
			b.WriteString(text)
		}
	}
	if b.Len() > 0 {
		b.WriteByte('\n')
	}
	return b.String(), without(src, all)
}

// unmarked is the text of one comment with a newline, "" for a directive.
func unmarked(c string) string {
	if body, ok := strings.CutPrefix(c, "/*"); ok {
		return strings.TrimSpace(strings.TrimSuffix(body, "*/")) + "\n"
	}
	body := strings.TrimPrefix(c, "//")
	if directive(body) {
		return ""
	}
	return strings.TrimRight(strings.TrimPrefix(body, " "), " \t") + "\n"
}

// directive says whether what follows // is for a tool: go:build, line, export,
// or the older +build.
func directive(body string) bool {
	if strings.HasPrefix(strings.TrimSpace(body), "+build ") {
		return true
	}
	word, rest, ok := strings.Cut(body, ":")
	if ok && word != "" && rest != "" && strings.Trim(word, "abcdefghijklmnopqrstuvwxyz0123456789") == "" {
		return rest[0] != ' '
	}
	for _, w := range []string{"line ", "extern ", "export "} {
		if strings.HasPrefix(body, w) {
			return true
		}
	}
	return false
}

// without is src with its comments removed.
func without(src []byte, all []span) string {
	var out []byte
	start, touched := 0, false // of the present line of out; a comment was in it
	end := func() {
		line := bytes.TrimRight(out[start:], " \t")
		out = out[:start+len(line)]
		blank := len(line) == 0
		if blank && (touched || start == 0 || bytes.HasSuffix(out[:start], []byte("\n\n"))) {
			out = out[:start]
		} else {
			out = append(out, '\n')
		}
		start, touched = len(out), false
	}
	for at, i := 0, 0; at < len(src); at++ {
		for i < len(all) && at >= all[i].hi {
			i++
		}
		hidden := i < len(all) && at >= all[i].lo
		touched = touched || hidden
		switch {
		case src[at] == '\n':
			end()
			touched = hidden // a comment that goes on
		case !hidden:
			out = append(out, src[at])
		}
	}
	if start < len(out) {
		end()
	}
	return strings.TrimRight(string(out), "\n") + "\n"
}
