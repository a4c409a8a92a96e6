// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"slices"
	"strings"
)

// Place says where in a model a tensor stands, as its name tells it.
type Place struct {
	Stack string // what stands before the number of the layer: "model.layers"
	Layer int    // -1 outside the layers
	Kind  string // one of Kinds
}

// kinds gives the last part of a name, before weight or bias, its kind.
var kinds = map[string]string{
	"embed_tokens": "embed", "wte": "embed", "embed_in": "embed",
	"q_proj": "q", "k_proj": "k", "v_proj": "v",
	"qkv_proj": "qkv", "c_attn": "qkv", "query_key_value": "qkv", "Wqkv": "qkv",
	"o_proj": "o", "out_proj": "o", "dense": "o",
	"gate_proj": "gate", "w1": "gate",
	"up_proj": "up", "w3": "up", "c_fc": "up", "fc1": "up", "dense_h_to_4h": "up",
	"gate_up_proj": "gate_up",
	"down_proj":    "down", "w2": "down", "fc2": "down", "dense_4h_to_h": "down",
	"gate": "router", "router": "router",
	"ln_1": "norm", "ln_2": "norm", "ln_f": "norm",
	"lm_head": "head", "embed_out": "head",
}

// Kinds are the kinds of tensors in the order in which they are shown.
func Kinds() []string {
	return []string{
		"embed", "norm", "q", "k", "v", "qkv", "o", "router", "gate", "up", "gate_up", "down", "head", "other",
	}
}

// PlaceOf reads a name: the first part that is a number is the layer.
func PlaceOf(name string) Place {
	parts := strings.Split(name, ".")
	p := Place{Layer: -1, Kind: "other"}
	if i := slices.IndexFunc(parts, isLayer); i >= 0 {
		p.Stack, p.Layer = strings.Join(parts[:i], "."), 0
		for _, c := range parts[i] {
			p.Layer = 10*p.Layer + int(c-'0')
		}
	}
	if n := len(parts); n > 1 && (parts[n-1] == "weight" || parts[n-1] == "bias") {
		parts = parts[:n-1]
	}
	last := parts[len(parts)-1]
	switch kind, ok := kinds[last]; {
	case ok:
		p.Kind = kind
	case last == "c_proj": // GPT-2 has one in the attention and one behind it
		p.Kind = "o"
		if slices.Contains(parts, "mlp") {
			p.Kind = "down"
		}
	case strings.Contains(last, "norm"):
		p.Kind = "norm"
	}
	return p
}

// isLayer reports whether a part of a name is a number that layers may have.
func isLayer(part string) bool {
	return part != "" && len(part) < 6 && strings.Trim(part, "0123456789") == ""
}

// isVocabulary reports whether a tensor has a row for each token, so that models
// with other vocabularies have other numbers of rows.
func isVocabulary(name string) bool {
	kind := PlaceOf(name).Kind
	return kind == "embed" || kind == "head"
}
