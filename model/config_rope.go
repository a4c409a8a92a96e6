// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"math"

	"pleach/program"
)

// readRope reads the rotary positions from both styles of keys, each of which
// may say the base of the frequencies inside or beside its object.
func readRope(o object) program.Rope {
	readPartial(o)
	theta := readTheta(o)
	news, old := o.object("rope_parameters"), o.object("rope_scaling")
	before := len(*o.errs)
	rope, other := readScaling(news), readScaling(old)
	if len(*o.errs) > before {
		return rope
	}
	agreeTheta(o, "rope_scaling.rope_theta", other.Theta, "rope_parameters.rope_theta", rope.Theta)
	agreeTheta(o, "rope_theta", theta, "rope_parameters.rope_theta", rope.Theta)
	agreeTheta(o, "rope_theta", theta, "rope_scaling.rope_theta", other.Theta)
	for _, t := range []float64{other.Theta, theta, 10_000} {
		if rope.Theta == 0 {
			rope.Theta = t
		}
	}
	other.Theta = rope.Theta
	switch {
	case old.fields == nil:
		return rope
	case news.fields != nil && rope != other:
		o.fail("rope_scaling", `means %v, but "rope_parameters" means %v`, other, rope)
	}
	return other
}

// readScaling reads rope_parameters or rope_scaling. Theta is 0 if it is not in
// there.
func readScaling(o object) program.Rope {
	r := program.Rope{Theta: readTheta(o), Scaling: readRopeType(o)}
	readPartial(o)
	above := func(lo float64) func(float64) bool {
		return func(x float64) bool { return x > lo && x < 1e6 }
	}
	if r.Scaling != program.NoScaling {
		r.Factor = o.real("factor", math.NaN(), "a number from 1 to 10⁶",
			func(x float64) bool { return x >= 1 && x < 1e6 })
	}
	if r.Scaling == program.Llama3Scaling {
		r.LowFreq = o.real("low_freq_factor", math.NaN(), "a number above 0", above(0))
		r.HighFreq = o.real("high_freq_factor", math.NaN(), "a number above low_freq_factor",
			above(r.LowFreq))
		r.Original = float64(o.integer("original_max_position_embeddings", 1<<29, 0))
	}
	for _, key := range o.rest() {
		if !empty(o.fields[key]) {
			o.fail(key, "got %s, but it is not a key of rope_type %q", o.show(o.fields[key]), r.Scaling)
		}
	}
	return r
}

// readRopeType takes rope_type, which was called type until transformers 4.43.
// Where it is bad, the keys that belong to it are taken, too.
func readRopeType(o object) program.Scaling {
	names := []string{"default", "linear", "llama3"}
	hasOld := o.has("type")
	name := ""
	if o.has("rope_type") || !hasOld {
		name = o.word("rope_type", names...)
	}
	if hasOld {
		old := o.word("type", names...)
		switch {
		case name == "":
			name = old
		case old != "" && name != old:
			o.fail("type", `got %q, but "rope_type" is %q`, old, name)
			name = ""
		}
	}
	for s, n := range names {
		if n == name {
			return program.Scaling(s)
		}
	}
	clear(o.fields)
	return program.NoScaling
}

// readTheta is 0 if there is none.
func readTheta(o object) float64 {
	if !o.has("rope_theta") {
		o.take("rope_theta")
		return 0
	}
	return o.real("rope_theta", 0, "a number above 1 and below 10¹²",
		func(x float64) bool { return x > 1 && x < 1e12 })
}

func readPartial(o object) {
	o.real("partial_rotary_factor", 1, "1: all of a head is rotated",
		func(x float64) bool { return x == 1 })
}

func agreeTheta(o object, key string, theta float64, key2 string, theta2 float64) {
	if theta != 0 && theta2 != 0 && theta != theta2 {
		o.fail(key, "got %g, but %q is %g", theta, key2, theta2)
	}
}

// ropeParameters is what transformers 5 reads.
func ropeParameters(r program.Rope) map[string]any {
	m := map[string]any{"rope_type": r.Scaling.String(), "rope_theta": decimal(r.Theta)}
	addScaling(m, r)
	return m
}

// ropeScaling is what transformers 4 reads. Before 4.43 it knew no rope_type and
// refused other keys than type and factor.
func ropeScaling(r program.Rope) map[string]any {
	m := map[string]any{}
	switch r.Scaling {
	case program.NoScaling:
		return nil
	case program.LinearScaling:
		m["type"] = r.Scaling.String()
	default:
		m["rope_type"] = r.Scaling.String()
	}
	addScaling(m, r)
	return m
}

func addScaling(m map[string]any, r program.Rope) {
	if r.Scaling != program.NoScaling {
		m["factor"] = decimal(r.Factor)
	}
	if r.Scaling == program.Llama3Scaling {
		m["low_freq_factor"], m["high_freq_factor"] = decimal(r.LowFreq), decimal(r.HighFreq)
		m["original_max_position_embeddings"] = int64(r.Original)
	}
}
