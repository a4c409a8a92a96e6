// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"pleach/config"
	"pleach/data"
	"pleach/internal/fault"
)

func newData() *cobra.Command {
	c := &cobra.Command{
		Use:   "data",
		Short: "Look at documents and rows",
		Example: `  pleach data inspect recipe.yaml
  pleach data stats corpus/ --tokenizer llama-2-7b
  pleach data where runs/mine --step 1200
  pleach data tokenize recipe.yaml tokens`,
	}
	c.AddCommand(newDataInspect(), newDataStats(), newDataWhere(), newDataTokenize())
	return c
}

// isRecipe says whether an argument names a recipe rather than documents.
func isRecipe(path string) bool {
	if ext := strings.ToLower(filepath.Ext(path)); ext != ".yaml" && ext != ".yml" {
		return false
	}
	info, err := os.Stat(path)
	return err != nil || !info.IsDir()
}

// documentArgs is what verbs that look at documents are told: a recipe, or files.
type documentArgs struct {
	tokenizer string
	sequence  int
}

func (o *documentArgs) flags(c *cobra.Command) {
	c.Flags().StringVar(&o.tokenizer, "tokenizer", "", "of files: a tokenizer, directory or file")
	c.Flags().IntVar(&o.sequence, "sequence", 0, "targets of a row; 0: the recipe's, 4096 of files")
}

// documents are what a verb has found, and what turns them into ids.
type documents struct {
	*prepared
	spec data.Spec
	enc  data.Encoder // nil without a tokenizer
}

// open finds what the arguments of a verb name. The caller closes it.
func (o *documentArgs) open(c *cobra.Command, args []string) (*documents, error) {
	if o.sequence < 0 {
		return nil, errUsage(c, "--sequence: got %d, want 1 or more, or 0", o.sequence)
	}
	if !isRecipe(args[0]) {
		return o.openFiles(c, args)
	}
	if o.tokenizer != "" {
		return nil, errUsage(c, "--tokenizer: got one beside the recipe %s, which names its own", args[0])
	}
	if o.sequence > 0 {
		args = append(args, fmt.Sprintf("data.sequence=%d", o.sequence))
	}
	r, err := config.Load(args[0], args[1:])
	if err != nil {
		return nil, err
	}
	found := &documents{}
	found.prepared, err = prepareSteps(c.Context(), r, func(p *prepared) []func() error {
		return []func() error{p.openModel, p.setSequence, func() (err error) {
			found.spec, found.enc, err = p.dataSpec()
			return err
		}}
	})
	return found, err
}

// openFiles finds documents in files of which nothing is known.
func (o *documentArgs) openFiles(c *cobra.Command, paths []string) (_ *documents, err error) {
	found := &documents{prepared: &prepared{}, spec: data.Spec{Sequence: o.sequence, Lanes: 1}}
	if o.sequence == 0 {
		found.spec.Sequence = 4096
	}
	if found.reach, err = newReach(c.Context(), c.ErrOrStderr()); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			found.close()
		}
	}()
	report, err := data.Scan(paths, found.reach.Access)
	if err != nil {
		return nil, err
	}
	for _, f := range report.Found {
		found.spec.Sources = append(found.spec.Sources, f.Source)
	}
	if o.tokenizer == "" {
		return found, nil
	}
	t, err := openTokenizer(o.tokenizer)
	if err != nil {
		return nil, err
	}
	found.tokenizer, found.enc = t, t
	found.spec.Vocabulary, found.spec.Tokenizer = t.Size(), fingerprint(t)
	id, ok := t.EOS()
	if !ok {
		return nil, fault.Dataf("tokenizer %s: it has no end-of-sequence token, which documents need", o.tokenizer)
	}
	found.spec.EOS = id
	return found, nil
}

// eta says on a terminal, or now and then in a file, how far a verb is and how long
// the rest will take.
type eta struct {
	*screen
	began time.Time
}

func newETA(w io.Writer) *eta { return &eta{newScreen(w), time.Now()} }

// quietAtFirst is how long a verb takes before it is worth a line in a file.
const quietAtFirst = 2 * time.Second

// see is told how much is done.
func (e *eta) see(what string, done, total int64) {
	now := time.Now()
	took := now.Sub(e.began)
	if done <= 0 || !e.live() && took < quietAtFirst {
		return
	}
	left := time.Duration(float64(took) * float64(total-done) / float64(done)).Round(time.Second)
	e.renew(now, false, fmt.Sprintf("%s: %.0f %%, %v left", what, 100*float64(done)/float64(max(total, 1)), left))
}

// stoppable gives the end of a verb that was told to stop the words of others.
func stoppable(ctx context.Context, err error) error {
	if stopped := interrupted(ctx); err != nil && stopped != nil {
		return stopped
	}
	return err
}
