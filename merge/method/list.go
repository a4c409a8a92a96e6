// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package method

import "slices"

// Methods are all methods, in the order in which messages list them.
func Methods() []*Method {
	return slices.Concat(combinations(), taskArithmetic())
}

// Find is the method of a name.
func Find(name string) (*Method, bool) {
	for _, m := range Methods() {
		if m.Name == name {
			return m, true
		}
	}
	return nil, false
}

// Names are the names of all methods.
func Names() []string {
	var names []string
	for _, m := range Methods() {
		names = append(names, m.Name)
	}
	return names
}
