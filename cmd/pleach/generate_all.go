// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"

	"github.com/spf13/cobra"
)

// runAll extends the prompts of a file.
func (o *generation) runAll(c *cobra.Command, path string) error {
	m, err := openModel(path)
	if err != nil {
		return err
	}
	defer m.close()
	prompts, err := o.prompts(c, m)
	if err != nil || len(prompts) == 0 {
		return err
	}
	longest := slices.MaxFunc(prompts, func(a, b []int32) int { return len(a) - len(b) })
	e, g, err := o.start(m, len(longest), min(o.batch, len(prompts)))
	if err != nil {
		return err
	}
	defer e.Close()
	defer restrain(e)()
	err = g.GenerateAll(c.Context(), prompts, o.tokens, o.how, stops(m), func(i int, ids []int32) error {
		return printJSON(c.OutOrStdout(), struct {
			Row int `json:"row"`
			generated
		}{i, newGenerated(m, ids)})
	})
	if err == nil {
		err = interrupted(c.Context())
	}
	return err
}

// prompts are those of the file.
func (o *generation) prompts(c *cobra.Command, m *source) ([][]int32, error) {
	r := &rowReader{source: m, call: true}
	var all [][]int32
	for l, err := range lines(o.file, c.InOrStdin()) {
		if err != nil {
			return nil, err
		}
		ids, err := r.ids(l)
		if err != nil {
			return nil, err
		}
		all = append(all, ids)
	}
	if m.tokenizer != nil {
		return all, m.tokenizer.Err()
	}
	return all, nil
}
