// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"pleach/config"
	"pleach/data"
	"pleach/internal/fault"
	"pleach/token"
)

// inspection is what data inspect is told.
type inspection struct {
	rows   int
	from   int64
	asJSON bool
}

func newDataInspect() *cobra.Command {
	var o inspection
	c := &cobra.Command{
		Use:   "inspect RECIPE [key=value …]",
		Short: "Rows as they would be trained on: text, borders of documents, loss",
		Long: `Inspect prints rows of a run, in order, as the text of their ids: where documents
begin, what they are called, and which tokens carry no loss. On a terminal these
are dim, and other tokens alternate between two colours, so that their borders
show; elsewhere, or with NO_COLOR set, they stand in ⟦ ⟧. The first id of a row is
the last one of the row before, and carries its loss there. Special tokens and
padding stand in ⟨ ⟩. Whatever of a text would act on the terminal is shown instead.

Rows are made by serving all in front of them, or from the nearest checkpoint in
the run directory of the recipe. Without a tokenizer ids are shown.`,
		Example: `  pleach data inspect recipe.yaml
  pleach data inspect recipe.yaml --rows 1 data.pack=whole
  pleach data inspect runs/mine/run.yaml --from 81920 --json`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error { return o.run(c, args) },
	}
	c.Flags().IntVar(&o.rows, "rows", 4, "how many")
	c.Flags().Int64Var(&o.from, "from", 0, "the first one, counted from 0 at the start of the run")
	c.Flags().BoolVar(&o.asJSON, "json", false, "print a JSON object a row")
	return c
}

func (o *inspection) run(c *cobra.Command, args []string) error {
	if o.rows < 1 || o.from < 0 {
		return errUsage(c, "--rows %d --from %d: want 1 or more, and 0 or more", o.rows, o.from)
	}
	r, err := config.Load(args[0], args[1:])
	if err != nil {
		return err
	}
	p, err := prepareData(c.Context(), r)
	if err != nil {
		return err
	}
	defer p.close()
	state, err := nearest(r.Out, o.from, c.ErrOrStderr())
	if err != nil {
		return err
	}
	if state != nil && p.loader.Restore(state.Data) != nil {
		fmt.Fprintf(c.ErrOrStderr(), "the checkpoint of step %d is of other data: rows are made from the start\n", state.Step)
	}
	rows, err := p.serve(c.Context(), newETA(c.ErrOrStderr()), o.from, o.rows)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if len(rows) == 0 {
		return fault.Configf("data inspect: --from %d: the sources end before this row", o.from)
	}
	if len(rows) < o.rows {
		fmt.Fprintf(c.ErrOrStderr(), "the sources end after row %d\n", rows[len(rows)-1].Index)
	}
	out := bufio.NewWriter(c.OutOrStdout())
	v := p.rowView(out, coloured(c.OutOrStdout()))
	for i := range rows {
		if o.asJSON {
			err = v.json(&rows[i])
		} else {
			err = v.row(&rows[i])
		}
		if err != nil {
			return err
		}
	}
	if !o.asJSON {
		v.totals()
	}
	return printed(out.Flush())
}

// coloured says whether text for w may have colours.
func coloured(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && os.Getenv("NO_COLOR") == "" && term.IsTerminal(int(f.Fd()))
}

// rowView shows rows.
type rowView struct {
	w         *bufio.Writer
	colour    bool
	tokenizer *token.Tokenizer // nil: ids are shown
	bos, eos  int32
	sources   []string
	special   map[int32]string // marks of ids, "" for text

	rows, ids, targets, padding, documents int
}

func (p *prepared) rowView(w *bufio.Writer, colour bool) *rowView {
	v := &rowView{w: w, colour: colour, tokenizer: p.tokenizer, special: map[int32]string{}}
	v.bos, v.eos = specialsOf(p.model, p.tokenizer)
	v.sources = p.sourceNames()
	return v
}

// shownToken is an id of a row as it is shown: a text, or a mark for what is none.
type shownToken struct {
	text string
	mark bool
	loss bool
}

// tokens are those of a document's part in a row. What the decoder holds back, the
// start of a character, is shown with the token that completes it.
func (v *rowView) tokens(r *data.Row, s data.Span) []shownToken {
	all := make([]shownToken, s.To-s.From)
	for i := range all {
		all[i].loss = s.From+i > 0 && r.Labels[s.From+i-1] >= 0
	}
	if v.tokenizer == nil {
		for i := range all {
			all[i].text = strconv.Itoa(int(r.IDs[s.From+i])) + " "
		}
		return all
	}
	d, last := v.tokenizer.Stream(), -1 // the last one of text
	for i := range all {
		id := r.IDs[s.From+i]
		if mark := v.markOf(id); mark != "" {
			if rest := d.Flush(); last >= 0 {
				all[last].text += rest
			}
			all[i].text, all[i].mark = mark, true
			continue
		}
		all[i].text, last = d.Next(id), i
	}
	if rest := d.Flush(); last >= 0 {
		all[last].text += rest
	}
	return all
}

// markOf is what stands for an id that is no text: a special token, or one that the
// tokenizer does not have.
func (v *rowView) markOf(id int32) string {
	if mark, ok := v.special[id]; ok {
		return mark
	}
	name, ok := v.tokenizer.Token(id)
	one := []int32{id}
	mark := ""
	switch {
	case !ok:
		mark = fmt.Sprintf("⟨%d⟩", id)
	case id == v.bos, id == v.eos, v.tokenizer.Decode(one) != "" && v.tokenizer.DecodeText(one) == "":
		mark = "⟨" + visible(name) + "⟩"
	}
	v.special[id] = mark
	return mark
}

// Colours of a terminal: ECMA-48, 8.3.117.
const (
	plainColour = "\x1b[0m"
	dimColour   = "\x1b[2m"
	otherColour = "\x1b[36m"
	ruleColour  = "\x1b[33m"
)

func (v *rowView) in(colour, s string) {
	if v.colour {
		s = colour + s + plainColour
	}
	v.w.WriteString(s)
}

// row prints one.
func (v *rowView) row(r *data.Row) error {
	targets, padding := v.count(r)
	v.in(ruleColour, fmt.Sprintf("row %d, lane %d: %d of %d targets, %d documents, %d ids of padding",
		r.Index, r.Lane, targets, len(r.Labels), len(r.Docs), padding))
	v.w.WriteByte('\n')
	for _, s := range r.Docs {
		v.in(ruleColour, fmt.Sprintf("── %s (source %s, ids %d … %d of it)", visible(s.ID), visible(v.sources[s.Source]),
			s.Offset, s.Offset+s.To-s.From-1))
		v.w.WriteByte('\n')
		v.text(v.tokens(r, s))
		v.w.WriteByte('\n')
	}
	if padding > 0 {
		v.in(dimColour, fmt.Sprintf("⟨padding: %d ids⟩", padding))
		v.w.WriteByte('\n')
	}
	_, err := v.w.WriteString("\n")
	return printed(err)
}

// text prints tokens.
func (v *rowView) text(all []shownToken) {
	other, silent := false, false
	for _, t := range all {
		s := t.text
		if !t.mark {
			parts := strings.Split(s, "\n")
			for i := range parts {
				parts[i] = visible(parts[i])
			}
			s = strings.Join(parts, "↵\n")
		}
		if v.colour {
			switch other = !other; {
			case !t.loss:
				v.in(dimColour, s)
			case other:
				v.in(otherColour, s)
			default:
				v.w.WriteString(s)
			}
			continue
		}
		v.silence(&silent, !t.loss)
		v.w.WriteString(s)
	}
	v.silence(&silent, false)
}

// silence begins or ends what carries no loss.
func (v *rowView) silence(is *bool, now bool) {
	if *is != now {
		v.w.WriteString(map[bool]string{true: "⟦", false: "⟧"}[now])
	}
	*is = now
}

// count counts a row in, and says what it has.
func (v *rowView) count(r *data.Row) (targets, padding int) {
	for _, label := range r.Labels {
		if label >= 0 {
			targets++
		}
	}
	padding = len(r.IDs)
	for _, s := range r.Docs {
		padding -= s.To - s.From
	}
	v.rows++
	v.ids += len(r.IDs)
	v.targets += targets
	v.padding += padding
	v.documents += len(r.Docs)
	return targets, padding
}

func (v *rowView) totals() {
	T := v.ids/v.rows - 1
	fmt.Fprintf(v.w, "%d rows of %d ids: %d of %d targets carry loss, %d parts of documents, %d ids of padding\n",
		v.rows, T+1, v.targets, v.rows*T, v.documents, v.padding)
}

// json prints a row as an object.
func (v *rowView) json(r *data.Row) error {
	type document struct {
		Name   string  `json:"name"`
		Source string  `json:"source"`
		From   int     `json:"from"`
		To     int     `json:"to"`
		Offset int     `json:"offset"`
		Text   *string `json:"text,omitempty"`
	}
	o := struct {
		Row       int64      `json:"row"`
		Lane      int        `json:"lane"`
		Targets   int        `json:"targets"`
		Padding   int        `json:"padding"`
		Documents []document `json:"documents"`
		IDs       []int32    `json:"ids"`
		Loss      []int      `json:"loss"` // 1: the id is a target of this row
	}{Row: r.Index, Lane: r.Lane, IDs: r.IDs, Loss: make([]int, len(r.IDs))}
	o.Targets, o.Padding = v.count(r)
	for i, label := range r.Labels {
		if label >= 0 {
			o.Loss[i+1] = 1
		}
	}
	for _, s := range r.Docs {
		d := document{Name: s.ID, Source: v.sources[s.Source], From: s.From, To: s.To, Offset: s.Offset}
		if v.tokenizer != nil {
			text := v.tokenizer.Decode(r.IDs[s.From:s.To])
			d.Text = &text
		}
		o.Documents = append(o.Documents, d)
	}
	return printInert(v.w, o)
}
