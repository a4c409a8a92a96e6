// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

// Package unit holds quantities that carry their unit when they are written:
// "300B tokens", "500 steps", "64 MiB", "180s", "5 %". A recipe key never names
// a unit, since its value does.
//
// A line belongs here if it parses, prints or compares such a quantity. What a
// step or a token is, this package does not know; it reads no file.
//
// The types to know are [Tokens] and [Steps], plain integers; [Until], a point
// in a run given in steps, tokens or epochs; and [Every], a period in steps,
// tokens or time.
//
//	u, err := unit.Parse[unit.Until]("88B tokens")
//	u.Due(step, tokens, 0)
//	fmt.Println(u) // 88B tokens
//
// All types print what they parse: Parse(x.String()) is x. Numbers are exact:
// "1.5B tokens" is 1500000000, and "1.5 tokens" is an error. Refused with the
// reason are signs, leading zeros, exponents in counts, NaN and infinities,
// overflow of int64, and a missing or foreign unit.
package unit
