// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"pleach/internal/fault"
)

// problems are errors and warnings of a plan. What is the same for many tensors is
// told once, with their number.
type problems struct {
	file string
	list []*problem
	seen map[string]*problem
}

// problem is one, about a line of the configuration; 0 is none.
type problem struct {
	line int
	err  error // with its kind, without the line
	more int   // tensors that have the same
}

// add notes a problem. Those with the same key are one; an empty key is like no
// other.
func (ps *problems) add(key string, line int, err error) {
	if p := ps.seen[key]; p != nil && key != "" {
		p.more++
		return
	}
	p := &problem{line: line, err: err}
	ps.list = append(ps.list, p)
	if ps.seen == nil {
		ps.seen = map[string]*problem{}
	}
	ps.seen[key] = p
}

// text is a problem with its place.
func (ps *problems) text(p *problem) string {
	s := strings.TrimPrefix(p.err.Error(), "merge: ")
	if p.line > 0 {
		s = fmt.Sprintf("%s:%d: %s", ps.file, p.line, s)
	}
	if p.more > 0 {
		s += fmt.Sprintf(" (and so for %d more)", p.more)
	}
	return s
}

// sort puts problems in the order of lines.
func (ps *problems) sort() {
	slices.SortStableFunc(ps.list, func(a, b *problem) int { return cmp.Compare(a.line, b.line) })
}

// told is how many problems a user is told at once.
const told = 20

// join is all problems as one error, nil for none.
func (ps *problems) join() error {
	ps.sort()
	var errs []error
	for _, p := range ps.list {
		if len(errs) == told {
			errs = append(errs, fault.Configf("merge: %s: and %d more problems", ps.file, len(ps.list)-told))
			break
		}
		errs = append(errs, &placed{"merge: " + ps.text(p), p.err})
	}
	return errors.Join(errs...)
}

// texts are all problems as warnings.
func (ps *problems) texts() []string {
	ps.sort()
	var list []string
	for _, p := range ps.list {
		list = append(list, ps.text(p))
	}
	return list
}

// placed is an error with the place that it has in a configuration.
type placed struct {
	msg string
	err error
}

func (p *placed) Error() string { return p.msg }
func (p *placed) Unwrap() error { return p.err }
