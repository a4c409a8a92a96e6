// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package config

import "fmt"

// Model says where the weights come from: exactly one of Path, Preset and
// Config is set.
type Model struct {
	Path  string // a Hugging Face directory
	State string // with Path: "fresh" or "kept" optimizer state

	Preset     string // a name that the model room knows
	Config     string // a config.json
	Vocabulary string // with Preset and Config: a tokenizer file or directory
	Init       Init   // with Preset and Config

	// Changes to a preset; zero leaves what it says.
	Layers, Width, Heads, KVHeads, HeadDim, FFN, MaxPositions int
	RopeTheta                                                 float64
	Tied                                                      *bool
}

// Init is how weights start that are not loaded.
type Init struct {
	Std      float64
	Residual string // "depth" or "none"
}

func (m *Model) short() string { return "path" }

func (m *Model) fields() []field {
	fs := []field{
		{key: "path", auto: "–", to: pathTo{&m.Path}, doc: "A Hugging Face model directory " +
			"or a checkpoint of pleach. Its tokenizer is used too."},
		{
			key: "state", def: "fresh", words: []string{"fresh", "kept"}, to: &m.State,
			omit: m.Path == "", doc: "With `path`: `fresh` starts the optimizer and the " +
				"schedule anew (continual pre-training, warmed up again), `kept` goes on with " +
				"the optimizer state of the checkpoint.",
		},
		{key: "preset", auto: "–", to: &m.Preset, doc: "A named shape to start from scratch: " +
			"`tiny` to `llama-70b`."},
		{key: "config", auto: "–", to: pathTo{&m.Config}, doc: "A `config.json` to start from " +
			"scratch."},
		{key: "vocabulary", auto: "–", to: pathTo{&m.Vocabulary}, doc: "With `preset` and " +
			"`config`: the tokenizer, a directory or a file."},
		{key: "init", to: &m.Init, omit: m.Path != "", doc: "With `preset` and `config`: how " +
			"the weights start."},
	}
	return append(fs, m.overrides()...)
}

// overrides are the keys that change a preset.
func (m *Model) overrides() []field {
	size := func(key string, to *int, doc string) field {
		return field{
			key: key, auto: "the preset's", to: to, doc: "With `preset`: " + doc,
			check: func() string { return atLeast(*to, 1) }, omit: m.Preset == "",
		}
	}
	return []field{
		size("layers", &m.Layers, "number of blocks."),
		size("width", &m.Width, "width of the residual stream."),
		size("heads", &m.Heads, "query heads."),
		size("kv_heads", &m.KVHeads, "key and value heads; they divide the query heads."),
		size("head_dim", &m.HeadDim, "width of a head; width / heads where neither this nor "+
			"the preset says otherwise."),
		size("ffn", &m.FFN, "width of the feed-forward part."),
		{key: "rope_theta", auto: "the preset's", to: &m.RopeTheta, check: func() string {
			return positive(m.RopeTheta)
		}, omit: m.Preset == "", doc: "With `preset`: base of the rotary frequencies."},
		{
			key: "tied", auto: "the preset's", to: &m.Tied, omit: m.Preset == "",
			doc: "With `preset`: the output matrix is the embedding.",
		},
		size("max_positions", &m.MaxPositions, "the longest sequence the model is meant for."),
	}
}

func (i *Init) fields() []field {
	return []field{
		{
			key: "std", def: "0.02", to: &i.Std, check: func() string { return positive(i.Std) },
			doc: "Standard deviation of the normal distribution that matrices start from.",
		},
		{
			key: "residual", def: "depth", words: []string{"depth", "none"}, to: &i.Residual,
			doc: "`depth` divides the matrices that write to the residual stream by " +
				"√(2·layers), `none` does not.",
		},
	}
}

func atLeast(n, low int) string {
	if n < low {
		return fmt.Sprintf("got %d, want at least %d", n, low)
	}
	return ""
}

func notNegative(x float64) string {
	if !(x >= 0) {
		return fmt.Sprintf("got %v, want a number from 0 on", x)
	}
	return ""
}

func positive(x float64) string {
	if !(x > 0) {
		return fmt.Sprintf("got %v, want a number above 0", x)
	}
	return ""
}
