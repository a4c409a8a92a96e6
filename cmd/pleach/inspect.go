// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"pleach/blob"
	"pleach/ckpt"
	"pleach/engine/cpu"
	"pleach/half"
	"pleach/infer"
	"pleach/internal/unit"
	"pleach/model"
	"pleach/optim"
	"pleach/program"
	"pleach/train"
)

func newInspect() *cobra.Command {
	var o compute
	c := &cobra.Command{
		Use:   "inspect MODEL | CHECKPOINT | RECIPE [key=value …]",
		Short: "What a model, a checkpoint or a recipe is, and what it takes",
		Long: `Inspect says of a model directory what it is made of, how large it is, whether its
tokenizer fits and what memory it takes to run it; of a checkpoint also whether it
is as it was written, and what lies in it to go on from. Of a run directory it
shows the newest checkpoint. Of a recipe (a file) it shows every value with where
it came from, which parameters decay, and the plan.`,
		Example: `  pleach inspect llama-2-7b
  pleach inspect runs/mine/checkpoints/step-00001000
  pleach inspect recipe.yaml train.batch="64 sequences"
  pleach inspect program recipe.yaml --program update`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if err := o.check(c); err != nil {
				return err
			}
			if info, err := os.Stat(args[0]); err == nil && !info.IsDir() {
				return withRecipe(c.Context(), args, func(p *prepared) error { return p.inspect(c.OutOrStdout()) })
			}
			if len(args) > 1 {
				return errUsage(c, "got %q after a model, want nothing", args[1])
			}
			return inspectModel(c.OutOrStdout(), args[0], o.options())
		},
	}
	o.flags(c)
	c.AddCommand(newInspectProgram())
	return c
}

// inspect prints a recipe as it would run, and the plan.
func (p *prepared) inspect(w io.Writer) error {
	if _, err := fmt.Fprintf(w, "%s\n", p.recipe.Effective()); err != nil {
		return printed(err)
	}
	p.describe(w)
	p.warn(w)
	return nil
}

// programNames are the programs of a run.
func programNames() []string { return []string{"accumulate", "update", "score"} }

func newInspectProgram() *cobra.Command {
	var name, precision string
	var engine bool
	c := &cobra.Command{
		Use:   "program RECIPE [key=value …]",
		Short: "The programs that a recipe runs, op by op",
		Long: `Program prints what an engine is given: accumulate, a micro-batch forward and
backward; update, the end of a step; score, evaluation. A line is an op with its
operands, shape, FLOPs, bytes and the memory alive. With --engine it prints what
the CPU engine makes of them: the passes that fuse ops and what each has changed,
then the steps that run, with packed copies and the place of every value in memory.`,
		Example: `  pleach inspect program recipe.yaml --program accumulate
  pleach inspect program recipe.yaml --program update --precision bf16-sr
  pleach inspect program recipe.yaml --program accumulate --engine`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if name != "" && !slices.Contains(programNames(), name) {
				return errUsage(c, "--program: got %q, want one of %s", name, strings.Join(programNames(), ", "))
			}
			if precision != "" {
				if _, err := optim.ParsePrecision(precision); err != nil {
					return errUsage(c, "--precision: got %q, want one of %s", precision, strings.Join(optim.Precisions(), ", "))
				}
				args = append(args, "train.precision="+precision)
			}
			return withRecipe(c.Context(), args, func(p *prepared) error { return p.print(c.OutOrStdout(), name, engine) })
		},
	}
	c.Flags().StringVar(&name, "program", "", "only this one: accumulate, update or score")
	c.Flags().StringVar(&precision, "precision", "", "instead of the recipe's: "+strings.Join(optim.Precisions(), ", "))
	c.Flags().BoolVar(&engine, "engine", false, "print the steps that the engine makes of it")
	return c
}

// print writes the programs of a run, or the one of a name, or what the engine makes
// of them.
func (p *prepared) print(w io.Writer, name string, engine bool) error {
	acc, upd, err := train.Programs(p.model.Spec, p.plan.Layout, p.plan.Batch, p.adamw)
	if err != nil {
		return err
	}
	T := p.recipe.Data.Sequence
	score, err := model.Score(p.model.Spec, p.plan.Layout, 0, model.Batch{B: p.scoredRows(), T: T}, 0)
	if err != nil {
		return err
	}
	for i, q := range []*program.Program{acc, upd, score} {
		if name != "" && name != programNames()[i] {
			continue
		}
		write := q.Print
		if engine {
			write = func(w io.Writer) error { return cpu.Print(w, q, p.options, 1) }
		}
		if err := write(w); err != nil {
			return printed(err)
		}
	}
	return nil
}

// table prints facts: a name and what it is.
type table struct{ w *tabwriter.Writer }

func newTable(w io.Writer) table { return table{tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)} }

func (t table) row(name, format string, args ...any) {
	fmt.Fprintf(t.w, "%s\t%s\n", name, fmt.Sprintf(format, args...))
}

func inspectModel(w io.Writer, path string, run cpu.Options) error {
	m, err := openModel(path)
	if err != nil {
		return err
	}
	defer m.close()
	t := newTable(w)
	t.row("model", "%s", m.dir)
	m.describeSpec(t)
	m.describeFiles(t)
	if m.tokenizer == nil {
		t.row("tokenizer", "none")
	} else {
		t.row("tokenizer", "%d ids of a vocabulary of %d: it fits", m.tokenizer.Size(), m.config.V)
	}
	bos, eos := m.specials()
	t.row("specials", "begin-of-sequence %s, end-of-sequence %s", idOrNone(bos), idOrNone(eos))
	if err := m.describeMemory(t, run); err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(m.dir, "manifest.json")); err == nil {
		err := describeCheckpoint(t, m.dir)
		return errors.Join(printed(t.w.Flush()), err)
	}
	return printed(t.w.Flush())
}

func idOrNone(id int32) string {
	if id < 0 {
		return "none"
	}
	return fmt.Sprint(id)
}

func (s *source) describeSpec(t table) {
	c := s.config
	t.row("architecture", "%d layers, width %d, %d heads of %d (%d key/value), feed-forward %d, vocabulary %d",
		c.L, c.D, c.H, c.K, c.G, c.F, c.V)
	more := []string{fmt.Sprintf("%d positions", c.MaxT), fmt.Sprintf("rope theta %v", c.Rope.Theta)}
	if c.Rope.Scaling != program.NoScaling {
		more = append(more, fmt.Sprintf("%v scaling by %v", c.Rope.Scaling, c.Rope.Factor))
	}
	more = append(more, fmt.Sprintf("norm eps %v", c.Eps))
	for _, f := range []struct {
		on   bool
		name string
	}{{c.Tied, "tied embeddings"}, {c.AttnBias, "attention biases"}, {c.MLPBias, "feed-forward biases"}} {
		if f.on {
			more = append(more, f.name)
		}
	}
	t.row("", "%s", strings.Join(more, ", "))
	kinds := map[program.Class]int{}
	for _, p := range c.Whole() {
		kinds[p.Class] += p.Len()
	}
	var parts []string
	for _, k := range []program.Class{program.Embedding, program.Matrix, program.Norm, program.Bias} {
		if kinds[k] > 0 {
			parts = append(parts, fmt.Sprintf("%v %d", k, kinds[k]))
		}
	}
	t.row("parameters", "%d (%s): %s", c.Count(), amount(float64(c.Count())), strings.Join(parts, ", "))
}

// describeFiles lists the files of weights and the types in them.
func (s *source) describeFiles(t table) {
	type file struct {
		tensors int
		bytes   int64
		types   []string
	}
	files := map[string]*file{}
	var names []string
	for _, w := range s.tensors.Tensors() {
		f := files[w.File]
		if f == nil {
			f = &file{}
			files[w.File], names = f, append(names, w.File)
		}
		f.tensors++
		f.bytes += w.Size
		if d := w.DType.String(); !slices.Contains(f.types, d) {
			f.types = append(f.types, d)
		}
	}
	for i, name := range names {
		key := ""
		if f := files[name]; i < 8 || i == len(names)-1 {
			if i == 0 {
				key = "weights"
			}
			t.row(key, "%s: tensors %d, %s, %s",
				name, f.tensors, strings.Join(f.types, " and "), unit.Bytes(f.bytes).Rounded())
		} else if i == 8 {
			t.row("", "… %d more", len(names)-9)
		}
	}
}

// describeMemory predicts what running the model takes.
func (s *source) describeMemory(t table, run cpu.Options) error {
	c := s.config
	T := min(c.MaxT, 4096)
	score, err := model.Score(c.Spec, plain(), 0, model.Batch{B: 1, T: T}, 0)
	if err != nil {
		return err
	}
	layout := plain()
	if s.halved() { // as generate does
		layout = optim.BF16.Layout()
	}
	generate, err := infer.Programs(c.Spec, layout, T, 1)
	if err != nil {
		return err
	}
	small, err := infer.Programs(c.Spec, int8Layout(), T, 1)
	if err != nil {
		return err
	}
	for _, m := range []struct {
		key, what, in string
		programs      []*program.Program
	}{
		{"memory", fmt.Sprintf("to score rows of %d", T), half.F32.String(), []*program.Program{score}},
		{"", fmt.Sprintf("to generate up to %d ids", T), layout.Compute.String(), generate},
		{"", fmt.Sprintf("to generate up to %d ids", T), inInt8, small},
	} {
		need, err := cpu.Predict(run, 1, m.programs...)
		if err != nil {
			return err
		}
		t.row(m.key, "%s %s (in %s)", unit.Bytes(need.Total()+beside()).Rounded(), m.what, m.in)
	}
	if have := available(); have > 0 {
		t.row("", "%s free on this machine", unit.Bytes(have).Rounded())
	}
	return nil
}

// describeCheckpoint adds what a checkpoint has beside the model, and whether all
// of it is as it was written.
func describeCheckpoint(t table, dir string) error {
	c, state, err := train.OpenState(dir)
	if err != nil {
		return err
	}
	defer c.Close()
	t.row("checkpoint", "step %d, %d tokens", c.Step, state.Tokens)
	elements := 0
	for _, name := range c.Names() {
		if _, shape, ok := c.Lookup(name); ok {
			n := 1
			for _, d := range shape {
				n *= d
			}
			elements += n
		}
	}
	t.row("optimizer", "%d tensors, %d numbers", len(c.Names()), elements)
	if err := ckpt.Verify(blob.Local(dir), "."); err != nil {
		t.row("verified", "no")
		return err
	}
	t.row("verified", "every file has the size and the hash of the manifest")
	return nil
}
