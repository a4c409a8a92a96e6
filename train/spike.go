// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package train

// Spikes finds gradient spikes: a norm above the mean of the last Window steps
// plus Above (Fan et al., "HLAT", 2024, arXiv:2404.10630, §5.2: 20 and 0.1). It
// says nothing until it has seen a whole window. Norms of spikes count in the
// mean, as in the paper.
type Spikes struct {
	Window int
	Above  float64
	Recent []float64 // the last norms, oldest first: saved with a checkpoint
	Length int       // steps that the present spike has lasted
}

// See takes the norm of a step and reports whether it is part of a spike, and
// the mean it was compared with.
func (s *Spikes) See(norm float64) (mean float64, spike bool) {
	full := s.Window > 0 && len(s.Recent) >= s.Window
	for _, x := range s.Recent {
		mean += x / float64(len(s.Recent))
	}
	spike = full && norm > mean+s.Above
	s.Length++
	if !spike {
		s.Length = 0
	}
	s.Recent = append(s.Recent, norm)
	if n := len(s.Recent) - s.Window; n > 0 {
		s.Recent = s.Recent[n:]
	}
	return mean, spike
}
