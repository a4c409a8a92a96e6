// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"

	"pleach/data"
)

// oftenSeen is how often documents may be seen before it is worth a warning: up to
// about four times repeated tokens do nearly as much as new ones, and less and less
// from there on.
//
// Muennighoff et al., "Scaling Data-Constrained Language Models", 2023,
// arXiv:2305.16264.
const oftenSeen = 4

// countSources finds out how often the run would see each source, and warns of
// what its author may not have meant.
func (p *prepared) countSources(ctx context.Context) error {
	stop := context.AfterFunc(ctx, p.loader.Close)
	defer stop()
	var err error
	rows := p.steps * int64(p.rows)
	if p.sources, p.ends, err = p.loader.Repetitions(rows); err != nil {
		return err
	}
	for _, s := range p.sources {
		if s.Times() > oftenSeen {
			p.warnings = append(p.warnings, fmt.Sprintf("source %s would be seen %s times: above %d, repeated documents "+
				"teach less and less (arXiv:2305.16264)", s.Source, times(s), oftenSeen))
		}
	}
	if p.ends < rows {
		p.warnings = append(p.warnings, fmt.Sprintf("the sources end, as their `epochs` say, after about step %d of %d: "+
			"the run would end there", p.ends/int64(p.rows), p.steps))
	}
	return nil
}

// seenLine says how large a source is and how often it is seen.
func seenLine(s data.Repetition) string {
	about := ""
	if !s.Exact {
		about = "about "
	}
	return fmt.Sprintf("source %s: %s%s tokens, would be seen %s times", s.Source, about, amount(float64(s.Tokens)), times(s))
}

// times prints with how many digits it is worth saying how often a source is seen.
func times(s data.Repetition) string {
	switch n := s.Times(); {
	case n >= 1000:
		return amount(n)
	case n >= 10:
		return fmt.Sprintf("%.0f", n)
	default:
		return fmt.Sprintf("%.2g", n)
	}
}
