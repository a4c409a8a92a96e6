// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package method

// stages are what a job does, one after the other. A stage is asked for passes until
// it has none left; only the last one's write.
type stages []func() *Pass

// Begin is that of [Job].
func (s *stages) Begin() (*Pass, error) {
	for len(*s) > 0 {
		if p := (*s)[0](); p != nil {
			return p, nil
		}
		*s = (*s)[1:]
	}
	return nil, nil
}

// once is a stage of one pass. What it returns is made when its turn comes; nil is
// none.
func once(make func() *Pass) func() *Pass {
	return func() *Pass {
		if make == nil {
			return nil
		}
		p := make()
		make = nil
		return p
	}
}
