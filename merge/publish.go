// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"pleach/internal/fault"
	"pleach/weights"
)

// ManifestName is the file of an output that lists the others.
const ManifestName = "pleach_merge.json"

// Provenance is what made an output.
type Provenance struct {
	Version string        `json:"pleach_version"`
	Mode    string        `json:"mode"` // exact, or mergekit's rounding
	Seed    uint64        `json:"seed"`
	Inputs  []InputDigest `json:"inputs"`
}

// InputDigest names an input, see [Fingerprint].
type InputDigest struct {
	Model  string `json:"model"`
	Of     string `json:"of"`
	SHA256 string `json:"sha256"`
}

// manifest lists all files of an output, and the tensors with their CRC-32C.
type manifest struct {
	Provenance
	Files   []manifestFile   `json:"files"`
	Tensors []manifestTensor `json:"tensors"`
}

type manifestFile struct {
	Name   string `json:"name"`
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256,omitempty"` // of small files
}

type manifestTensor struct {
	Name   string `json:"name"`
	File   string `json:"file"`
	CRC32C string `json:"crc32c"`
}

func (f *Folder) manifest(files map[string][]byte, info Provenance) manifest {
	m := manifest{Provenance: info}
	for name, text := range files {
		sum := sha256.Sum256(text)
		m.Files = append(m.Files, manifestFile{name, int64(len(text)), hex.EncodeToString(sum[:])})
	}
	for _, p := range f.layout.Files {
		m.Files = append(m.Files, manifestFile{Name: p.Name, Bytes: p.Bytes})
	}
	slices.SortFunc(m.Files, func(a, b manifestFile) int { return strings.Compare(a.Name, b.Name) })
	for i, t := range f.places {
		m.Tensors = append(m.Tensors, manifestTensor{t.Name, t.File, fmt.Sprintf("%08x", f.sums[i])})
	}
	return m
}

// Layout distributes the output to files.
func (p *Plan) Layout() (*weights.Plan, error) {
	list := make([]weights.Source, len(p.Tensors))
	for i, t := range p.Tensors {
		list[i] = weights.Source{Name: t.Name, DType: t.DType, Shape: t.Shape}
	}
	return weights.NewPlan("model", p.Options.ShardBytes, list)
}

// Provenance says what a plan is made of.
func (p *Plan) Provenance(version string) (Provenance, error) {
	v := Provenance{Version: version, Mode: "exact", Seed: p.Options.Seed}
	if p.Options.Compat {
		v.Mode = "mergekit-compat"
	}
	for _, m := range p.Models {
		for _, dir := range []string{m.Dir, m.AdapterDir} {
			if dir == "" {
				continue
			}
			sum, of, err := Fingerprint(dir)
			if err != nil {
				return v, err
			}
			v.Inputs = append(v.Inputs, InputDigest{m.Name, of, sum})
		}
	}
	return v, nil
}

// Identity is what has to be the same for a merge to go on with this version of
// pleach: a line for each thing.
func (p *Plan) Identity(version string) ([]byte, error) {
	var b []byte
	b = fmt.Appendf(b, "pleach %s\n", version)
	for _, l := range lines(string(p.Config.Text)) {
		b = fmt.Appendf(b, "configuration: %s\n", l)
	}
	o := p.Options
	b = fmt.Appendf(b, "seed %d, compat %t, skips %t, non-finite %t, shards of %d bytes\n",
		o.Seed, o.Compat, o.Skips, o.NonFinite, o.ShardBytes)
	for _, m := range p.Models {
		var names []string
		for _, t := range m.Weights.Tensors() {
			names = append(names, filepath.Join(m.Dir, t.File))
		}
		if m.Adapter != nil {
			names = append(names, m.Adapter.Files()...)
		}
		slices.Sort(names)
		for _, n := range slices.Compact(names) {
			info, err := os.Stat(n)
			if err != nil {
				return nil, fault.Dataf("merge: model %s: %w", m.Name, err)
			}
			b = fmt.Appendf(b, "model %s: %s: %d bytes of %s\n",
				m.Name, n, info.Size(), info.ModTime().UTC().Format("2006-01-02 15:04:05.000000000"))
		}
	}
	if p.Vocabulary != nil {
		b = fmt.Appendf(b, "vocabulary %x\n", p.Vocabulary.Sum())
	}
	inputs := sha256.New()
	for _, t := range p.Tensors {
		b = fmt.Appendf(b, "tensor %s %v %d\n", t.Name, t.DType, t.Shape)
		fmt.Fprintf(inputs, "%+v\n", t)
	}
	return fmt.Appendf(b, "inputs of tensors and their parameters: %x\n", inputs.Sum(nil)), nil
}

func lines(s string) []string { return strings.Split(strings.TrimSuffix(s, "\n"), "\n") }
