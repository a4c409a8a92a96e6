// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"pleach/internal/fault"
)

// version is the release, set by the build.
var version = "dev"

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

// run is main with its surroundings named, so that tests can call it.
func run(args []string, stdout, stderr io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	root := newRoot()
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
	if err != nil {
		fmt.Fprintln(stderr, "pleach:", message(err))
	}
	return fault.Exit(err)
}

// message is an error without the name of the program, which stands before it.
func message(err error) string {
	s := strings.TrimPrefix(err.Error(), "pleach: ")
	return strings.TrimPrefix(s, "pleach ") // a command's path begins with it
}

// newRoot is the command with all its verbs.
func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:           "pleach",
		Short:         "Train Llama-family language models: documents in, checkpoint out",
		Version:       version,
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.CompletionOptions.HiddenDefaultCmd = true
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return fault.Configf("%s: %w; see %s --help", c.CommandPath(), err, c.CommandPath())
	})
	for _, verb := range []func() *cobra.Command{
		newQuickstart, newInit, newTrain, newScore, newEval, newGenerate, newTokenizer, newData, newInspect, newDiff, newMerge, newGet, newBench,
	} {
		root.AddCommand(verb())
	}
	asConfig(root)
	return root
}

// asConfig makes wrong arguments of every verb errors of the command line.
func asConfig(c *cobra.Command) {
	if check := c.Args; check != nil {
		c.Args = func(cmd *cobra.Command, args []string) error {
			if err := check(cmd, args); err != nil {
				return fault.Configf("%s: %w; see %s --help", cmd.CommandPath(), err, cmd.CommandPath())
			}
			return nil
		}
	} else if c.HasSubCommands() {
		c.Args = cobra.ArbitraryArgs
		c.RunE = func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cmd.Help()
			}
			cmd.SuggestionsMinimumDistance = 2
			hint := ""
			if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
				hint = fmt.Sprintf("; did you mean %s?", strings.Join(near, " or "))
			}
			return fault.Configf("%s: unknown command %q%s", cmd.CommandPath(), args[0], hint)
		}
	}
	for _, sub := range c.Commands() {
		asConfig(sub)
	}
}

// errUsage is a refusal of a command line that flags alone cannot see.
func errUsage(c *cobra.Command, format string, args ...any) error {
	return fault.As(fault.Config, errors.New(c.CommandPath()+": "+fmt.Sprintf(format, args...)))
}
