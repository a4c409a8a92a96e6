// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"pleach/internal/strictjson"
)

// alikeKeys are keys of config.json that say how a model computes with its weights.
var alikeKeys = []string{
	"num_attention_heads", "num_key_value_heads", "head_dim", "hidden_act", "rms_norm_eps", "sliding_window",
}

// ropeKeys are such keys of the rotary embedding, which stand in rope_parameters, or in
// rope_scaling and, of older files, beside it.
var ropeKeys = []string{
	"rope_theta", "rope_type", "factor", "low_freq_factor", "high_freq_factor", "original_max_position_embeddings",
}

// alike warns of inputs that compute with their weights in another way than the one
// that gives the output its config.json: the weights fit, but the output is neither.
func (pl *planner) alike() {
	donor := pl.p.Models[pl.p.Donor]
	for i, m := range pl.p.Models {
		warn := func(key string, got, want strictjson.Value) {
			if got.Kind == 0 || want.Kind == 0 || sameValue(got, want) {
				return
			}
			pl.warn("", pl.lines[i], "model %s: config.json: got %s %s, but %s in %s, whose config.json the output has",
				m.Name, key, got.Text, want.Text, donor.Name)
		}
		for _, key := range alikeKeys {
			warn(key, scalar(m.Config, key), scalar(donor.Config, key))
		}
		for _, key := range ropeKeys {
			warn(key, rope(m.Config, key), rope(donor.Config, key))
		}
	}
}

// scalar is a number or a string of an object, or the zero Value.
func scalar(object strictjson.Value, key string) strictjson.Value {
	v, _ := object.Lookup(key)
	if v.Kind != strictjson.Number && v.Kind != strictjson.String {
		return strictjson.Value{}
	}
	return v
}

// rope is a setting of the rotary embedding, whichever form config.json has. What is
// not scaled has the type default.
func rope(config strictjson.Value, key string) strictjson.Value {
	at := []strictjson.Value{config}
	for _, name := range []string{"rope_scaling", "rope_parameters"} {
		if v, ok := config.Lookup(name); ok && v.Kind == strictjson.Object {
			at = append(at, v)
		}
	}
	names := []string{key}
	if key == "rope_type" {
		names = append(names, "type")
	}
	for i := len(at) - 1; i >= 0; i-- {
		for _, name := range names {
			if v := scalar(at[i], name); v.Kind != 0 {
				return v
			}
		}
	}
	if key == "rope_type" {
		return strictjson.Value{Kind: strictjson.String, Text: "default"}
	}
	return strictjson.Value{}
}

// sameValue compares numbers by what they are, 1e-5 and 0.00001, and strings.
func sameValue(a, b strictjson.Value) bool {
	x, okX := a.Float()
	y, okY := b.Float()
	if okX && okY {
		return x == y
	}
	return a.Kind == b.Kind && a.Text == b.Text
}
