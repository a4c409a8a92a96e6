// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"pleach/blob"
	"pleach/half"
	"pleach/internal/golden"
	"pleach/model"
	"pleach/token"
	"pleach/weights"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"pleach": main})
}

// TestScripts runs testdata/script/*.txtar, each in a folder of its own. Beside
// the commands of testscript there are
//
//	model NAME DIR            the golden model score/NAME of internal/golden
//	sample PATH DIR           a folder of merge's testdata
//	tokenizer FILE DIR        a tokenizer of token's testdata
//	fresh DIR TOKENIZER [S]   a small model at random with this tokenizer, seed S
//	sub FILE OLD NEW          replaces all of OLD in a file; there must be some
//	poke FILE OFFSET HEX      overwrites bytes; a negative offset counts from the end
//	cut FILE N                leaves the first N bytes
//	near FILE GOLDEN TOL      compares lines of score with lines of want.jsonl
//	is FILE TEXT              compares a file with a text and a newline
//	fails CODE COMMAND…       runs a command that ends with this exit code
//
// HF_ENDPOINT is a hub with the repositories org/model and datasets/org/data.
func TestScripts(t *testing.T) {
	hub := hubs(t)
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(e *testscript.Env) error {
			e.Setenv("HF_ENDPOINT", hub)
			e.Setenv("PLEACH_CACHE", filepath.Join(e.WorkDir, ".objects"))
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"model":     scripted(2, 2, copyModel),
			"sample":    scripted(2, 2, copySample),
			"tokenizer": scripted(2, 2, copyTokenizer),
			"fresh":     scripted(2, 3, freshModel),
			"sub":       scripted(3, 3, substitute),
			"poke":      scripted(3, 3, poke),
			"cut":       scripted(2, 2, truncate),
			"near":      scripted(3, 3, near),
			"is":        scripted(2, 2, is),
			"fails":     scripted(2, 99, fails),
			"same":      scripted(2, 2, same),
		},
		RequireUniqueNames:  true,
		RequireExplicitExec: true,
	})
}

// scripted checks the number of arguments of a command of scripts, and that it
// does what the script expects.
func scripted(least, most int, f func(ts *testscript.TestScript, args []string) error) func(*testscript.TestScript, bool, []string) {
	return func(ts *testscript.TestScript, neg bool, args []string) {
		if len(args) < least || len(args) > most {
			ts.Fatalf("got %d arguments, want %d to %d", len(args), least, most)
		}
		switch err := f(ts, args); {
		case neg && err == nil:
			ts.Fatalf("it succeeded, want a failure")
		case !neg && err != nil:
			ts.Fatalf("%v", err)
		}
	}
}

func copyModel(ts *testscript.TestScript, args []string) error {
	return os.CopyFS(ts.MkAbs(args[1]), os.DirFS(golden.Dir("score/"+args[0])))
}

func copySample(ts *testscript.TestScript, args []string) error {
	return os.CopyFS(ts.MkAbs(args[1]), os.DirFS(filepath.Join(mergeTestdata(), filepath.FromSlash(args[0]))))
}

// mergeTestdata is beside internal/golden.
func mergeTestdata() string {
	return filepath.Join(golden.Dir("."), "..", "..", "..", "merge", "testdata")
}

// same compares files as cmp does, without printing what they hold.
func same(ts *testscript.TestScript, args []string) error {
	var text [2][]byte
	for i, name := range args {
		var err error
		if text[i], err = os.ReadFile(ts.MkAbs(name)); err != nil {
			return err
		}
	}
	if !bytes.Equal(text[0], text[1]) {
		return fmt.Errorf("%s and %s differ", args[0], args[1])
	}
	return nil
}

// tokenTestdata is beside internal/golden.
func tokenTestdata(name string) string {
	return filepath.Join(golden.Dir("."), "..", "..", "..", "token", "testdata", name)
}

func copyTokenizer(ts *testscript.TestScript, args []string) error {
	text, err := os.ReadFile(tokenTestdata(args[0]))
	if err != nil {
		return err
	}
	dir := ts.MkAbs(args[1])
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "tokenizer"+filepath.Ext(args[0])), text, 0o666)
}

// freshModel writes a model directory of a few thousand parameters.
func freshModel(ts *testscript.TestScript, args []string) error {
	t, err := token.Open(tokenTestdata(args[1]))
	if err != nil {
		return err
	}
	seed := uint64(0)
	if len(args) > 2 {
		if seed, err = strconv.ParseUint(args[2], 10, 64); err != nil {
			return err
		}
	}
	s, err := model.Preset("tiny", t.Size())
	if err != nil {
		return err
	}
	s.L, s.D, s.H, s.G, s.K, s.F, s.MaxT = 1, 16, 2, 1, 8, 24, 128
	c := &model.Config{Spec: s, DType: half.F32}
	if id, ok := t.EOS(); ok {
		c.EOS = []int32{id}
	}
	files := maps.Clone(t.Files())
	files["config.json"] = c.JSON()
	dir := ts.MkAbs(args[0])
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o666); err != nil {
			return err
		}
	}
	in := model.Init{Std: 0.3, Residual: model.DepthScaled}
	var tensors []weights.Source
	for _, t := range s.Tensors() {
		tensors = append(tensors, weights.Source{
			Name: t.Name, DType: half.F32, Shape: t.Shape,
			Read: func(lo, hi int, dst []float32) error { in.Fill(dst, s, t, seed, lo); return nil },
		})
	}
	p, err := weights.NewPlan("model", 0, tensors)
	if err != nil {
		return err
	}
	return p.Write(".", func(name string, fill func(io.Writer) error) error {
		return blob.Local(dir).Write(name, fill)
	})
}

func substitute(ts *testscript.TestScript, args []string) error {
	path := ts.MkAbs(args[0])
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if !bytes.Contains(text, []byte(args[1])) {
		return fmt.Errorf("%s has no %q", args[0], args[1])
	}
	return os.WriteFile(path, bytes.ReplaceAll(text, []byte(args[1]), []byte(args[2])), 0o666)
}

func poke(ts *testscript.TestScript, args []string) error {
	path := ts.MkAbs(args[0])
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	at, err := strconv.Atoi(args[1])
	if err != nil {
		return err
	}
	if at < 0 {
		at += len(text)
	}
	b, err := hex.DecodeString(args[2])
	if err != nil {
		return err
	}
	copy(text[at:], b)
	return os.WriteFile(path, text, 0o666)
}

func truncate(ts *testscript.TestScript, args []string) error {
	n, err := strconv.ParseInt(args[1], 10, 64)
	if err != nil {
		return err
	}
	return os.Truncate(ts.MkAbs(args[0]), n)
}

func is(ts *testscript.TestScript, args []string) error {
	if got := ts.ReadFile(args[0]); got != args[1]+"\n" {
		return fmt.Errorf("%s: got %q, want %q", args[0], got, args[1]+"\n")
	}
	return nil
}

func fails(ts *testscript.TestScript, args []string) error {
	err := ts.Exec(args[1], args[2:]...)
	var exit *exec.ExitError
	if !errors.As(err, &exit) || fmt.Sprint(exit.ExitCode()) != args[0] {
		return fmt.Errorf("got %v, want exit status %s", err, args[0])
	}
	return nil
}

// printedRow is a line that score prints.
type printedRow struct {
	Row      *int              `json:"row"`
	Tokens   int               `json:"tokens"`
	NLL      float64           `json:"nll"`
	LogProbs []float64         `json:"logprobs"`
	Top      [][]golden.Choice `json:"top"`
}

func near(ts *testscript.TestScript, args []string) error {
	abs, err := strconv.ParseFloat(args[2], 64)
	if err != nil {
		return err
	}
	got, want := strings.SplitAfter(ts.ReadFile(args[0]), "\n"), strings.SplitAfter(ts.ReadFile(args[1]), "\n")
	if len(got) != len(want) {
		return fmt.Errorf("got %d lines, want %d", len(got)-1, len(want)-1)
	}
	for i := range len(want) - 1 {
		if err := nearLine(i, got[i], want[i], abs); err != nil {
			return fmt.Errorf("row %d: %w", i, err)
		}
	}
	return nil
}

func nearLine(i int, got, want string, abs float64) error {
	var g printedRow
	var w golden.Score
	d := json.NewDecoder(strings.NewReader(got))
	d.DisallowUnknownFields()
	if err := d.Decode(&g); err != nil {
		return err
	}
	if err := json.Unmarshal([]byte(want), &w); err != nil {
		return err
	}
	n := len(w.Top)
	if g.Row == nil || *g.Row != i || g.Tokens != n || g.LogProbs == nil {
		return fmt.Errorf("got %s, want row %d of %d tokens", got, i, n)
	}
	if err := golden.NearAll(g.LogProbs, w.LogProbs, golden.Tol{Abs: abs}); err != nil {
		return fmt.Errorf("logprobs: %w", err)
	}
	if err := golden.Near(g.NLL, w.NLL, golden.Tol{Abs: abs * float64(n)}); err != nil {
		return fmt.Errorf("nll: %w", err)
	}
	if g.Top == nil {
		return nil
	}
	return nearTops(g.Top, w.Top, abs)
}

// nearTops compares as many choices as were printed.
func nearTops(got, want [][]golden.Choice, abs float64) error {
	if len(got) != len(want) {
		return fmt.Errorf("top: got %d positions, want %d", len(got), len(want))
	}
	for p := range got {
		for k, c := range got[p] {
			if w := want[p][k]; c.ID != w.ID || golden.Near(c.LogProb, w.LogProb, golden.Tol{Abs: abs}) != nil {
				return fmt.Errorf("top: position %d: got %v, want %v", p, got[p], want[p])
			}
		}
	}
	return nil
}

// TestHelp checks that every verb has an example, and that help is on stdout.
func TestHelp(t *testing.T) {
	var out, errs bytes.Buffer
	if code := run([]string{"--help"}, &out, &errs); code != 0 || errs.Len() > 0 || out.Len() == 0 {
		t.Errorf("--help: code %d, stderr %q", code, errs.String())
	}
	root := newRoot()
	for _, c := range root.Commands() {
		all := append(slices.Clone(c.Commands()), c)
		for _, c := range all {
			if c.Example == "" && c.Name() != "help" {
				t.Errorf("%s: no example", c.CommandPath())
			}
		}
	}
}
