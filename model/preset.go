// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"strings"

	"pleach/internal/fault"
	"pleach/program"
)

// PresetInfo is a named architecture. Its Spec has the vocabulary of the
// published model, 0 if it follows the tokenizer. Params is the number of
// parameters with that vocabulary, or with 32,000 words.
type PresetInfo struct {
	Name   string
	Spec   Spec
	Note   string
	Params int
}

// Preset is the architecture of that name with a vocabulary of so many words;
// 0 stands for that of the published model. An unknown name is an error of kind
// fault.Config that lists all.
func Preset(name string, vocabulary int) (Spec, error) {
	for _, p := range presets() {
		if p.Name != name {
			continue
		}
		s := p.Spec
		if vocabulary != 0 {
			s.V = vocabulary
		}
		if s.V == 0 {
			return Spec{}, fault.Configf("model: preset %q: vocabulary: got 0, want that of a tokenizer", name)
		}
		if err := s.Check(); err != nil {
			return Spec{}, fault.Configf("model: preset %q: %w", name, err)
		}
		return s, nil
	}
	return Spec{}, unknownPreset(name)
}

// Presets lists the named architectures, small ones first.
func Presets() []PresetInfo {
	list := presets()
	for i := range list {
		s := list[i].Spec
		if s.V == 0 {
			s.V = 32_000
		}
		list[i].Params = s.Count()
	}
	return list
}

// presets are Presets without their counts.
//
// The sizes of the published models are those of their papers and config.json
// files. Touvron et al., "LLaMA", 2023, arXiv:2302.13971, table 2, and "Llama 2",
// 2023, arXiv:2307.09288, table 1; "The Llama 3 Herd of Models", 2024,
// arXiv:2407.21783, table 3; Zhang et al., "TinyLlama", 2024, arXiv:2401.02385.
func presets() []PresetInfo {
	small := Spec{MaxT: 2048, Eps: 1e-5, Rope: program.Rope{Theta: 10_000}}
	llama1 := Spec{V: 32_000, MaxT: 2048, Eps: 1e-6, Rope: program.Rope{Theta: 10_000}}
	llama2 := Spec{V: 32_000, MaxT: 4096, Eps: 1e-5, Rope: program.Rope{Theta: 10_000}}
	llama3 := Spec{V: 128_256, MaxT: 8192, Eps: 1e-5, Rope: program.Rope{Theta: 500_000}}
	llama31 := stretched(llama3, 8)
	llama32 := stretched(llama3, 32)
	llama32.Tied = true
	return []PresetInfo{
		{"tiny", small.sized(2, 64, 4, 4, 176), "to try things: seconds on a CPU", 0},
		{"mini", small.sized(4, 128, 4, 4, 352), "minutes on a CPU", 0},
		{"small", small.sized(4, 192, 6, 6, 512), "minutes on a CPU", 0},
		{"quick", small.sized(4, 256, 4, 4, 688), "some minutes on a CPU", 0},
		{"d512", small.sized(8, 512, 8, 8, 1376), "hours on a CPU", 0},
		{"d1024", small.sized(12, 1024, 16, 4, 2816), "days on a CPU", 0},
		{"tinyllama-1.1b", llama2.sized(22, 2048, 32, 4, 5632).upTo(2048), "TinyLlama 1.1B", 0},
		{"llama3.2-1b", llama32.sized(16, 2048, 32, 8, 8192), "Llama 3.2 1B", 0},
		{"llama3.2-3b", llama32.sized(28, 3072, 24, 8, 8192), "Llama 3.2 3B", 0},
		{"llama1-7b", llama1.sized(32, 4096, 32, 32, 11008), "LLaMA 7B", 0},
		{"llama-7b", llama2.sized(32, 4096, 32, 32, 11008), "Llama 2 7B", 0},
		{"llama3-8b", llama3.sized(32, 4096, 32, 8, 14336), "Llama 3 8B", 0},
		{"llama3.1-8b", llama31.sized(32, 4096, 32, 8, 14336), "Llama 3.1 8B", 0},
		{"llama-13b", llama2.sized(40, 5120, 40, 40, 13824), "Llama 2 13B", 0},
		{"llama-70b", llama2.sized(80, 8192, 64, 8, 28672), "Llama 2 70B", 0},
		{"llama3-70b", llama3.sized(80, 8192, 64, 8, 28672), "Llama 3 70B", 0},
	}
}

// sized is s with L layers of width D, H query and G key/value heads of width
// D/H, and F inside the feed-forward part.
func (s Spec) sized(L, D, H, G, F int) Spec {
	s.L, s.D, s.H, s.G, s.K, s.F = L, D, H, G, D/H, F
	return s
}

func (s Spec) upTo(positions int) Spec {
	s.MaxT = positions
	return s
}

// stretched is Llama 3 made for 131,072 positions, as 3.1 (factor 8) and 3.2
// (factor 32) are.
func stretched(s Spec, factor float64) Spec {
	s.MaxT = 131_072
	s.Rope.Scaling, s.Rope.Factor = program.Llama3Scaling, factor
	s.Rope.LowFreq, s.Rope.HighFreq, s.Rope.Original = 1, 4, 8192
	return s
}

func unknownPreset(name string) error {
	var names []string
	for _, p := range presets() {
		names = append(names, p.Name)
	}
	hint := ""
	if best := fault.Nearest(name, names); best != "" {
		hint = "; did you mean " + best + "?"
	}
	return fault.Configf("model: preset %q: want %s%s", name, strings.Join(names, ", "), hint)
}
