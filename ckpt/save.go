// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package ckpt

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"pleach/blob"
	"pleach/internal/fault"
	"pleach/weights"
)

const folder = "checkpoints"

// Name is the name of the checkpoint of a step in the store of its run.
func Name(step int64) string { return fmt.Sprintf("%s/step-%08d", folder, step) }

// Model is what others read: a Hugging Face model directory.
type Model struct {
	Config  []byte            // config.json
	Files   map[string][]byte // tokenizer files and the like, by plain names
	Tensors []weights.Source  // in the order in which they will lie
	Shard   int64             // most bytes of tensors in a file; 0 is 5 GB, as Hugging Face tools have it
}

// Training is what a run needs to go on.
type Training struct {
	State any     // printed by encoding/json
	Ranks [][]Box // by rank; each gets a file
}

// Save writes the checkpoint of a step into the store of a run and says how many
// bytes it has. It needs a few MiB beyond what the arguments hold, whatever the
// size of the model.
//
// Either the whole checkpoint is there afterwards or nothing of it. If one of
// this step is there already and good, it stays: that is success when it is equal
// to what would be written, and an error of kind fault.State otherwise. When
// less space is free than the checkpoint needs, Save refuses before it writes.
func Save(s blob.Store, step int64, m Model, t Training) (int64, error) {
	n, err := save(s, step, m, t)
	if err != nil {
		return n, fmt.Errorf("ckpt: saving step %d: %w", step, err)
	}
	return n, nil
}

func save(s blob.Store, step int64, m Model, t Training) (int64, error) {
	b, err := newBuild(step, m, t)
	if err != nil {
		return 0, err
	}
	if err := s.Sweep(folder); err != nil {
		return 0, err
	}
	name := Name(step)
	there, err := b.there(s, name)
	if there || err != nil {
		return b.bytes, err
	}
	if err := b.fits(s); err != nil {
		return 0, err
	}
	if err := s.Publish(name, b.write); err != nil {
		return 0, err
	}
	return b.bytes, nil
}

// build is a checkpoint that is ready to be written.
type build struct {
	step  int64
	small map[string][]byte // whole files
	model *weights.Plan
	ranks []*weights.Plan
	bytes int64 // written, once write has run
}

func newBuild(step int64, m Model, t Training) (*build, error) {
	if step < 0 {
		return nil, errors.New("want a step of at least 0")
	}
	b := &build{step: step, small: map[string][]byte{"config.json": m.Config}}
	for name, text := range m.Files {
		if err := plain(name); err != nil {
			return nil, err
		}
		b.small[name] = text
	}
	state, err := json.MarshalIndent(t.State, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("training/state.json: %w", err)
	}
	b.small["training/state.json"] = append(state, '\n')
	limit := m.Shard
	if limit == 0 {
		limit = 5_000_000_000
	}
	if b.model, err = weights.NewPlan("model", limit, m.Tensors); err != nil {
		return nil, err
	}
	return b, b.addRanks(t.Ranks)
}

// plain refuses names that would leave the folder or are taken.
func plain(name string) error {
	bad := !fs.ValidPath(name) || strings.ContainsAny(name, `/\`) || strings.HasPrefix(name, ".") ||
		name == "config.json" || name == manifestName || name == "training" ||
		strings.HasPrefix(name, "model") && strings.Contains(name, ".safetensors")
	if bad {
		return fmt.Errorf("file %q: want a plain name that is not one of the checkpoint's own", name)
	}
	return nil
}

func (b *build) addRanks(ranks [][]Box) error {
	var all []place
	for r, boxes := range ranks {
		ps := places{Boxes: []place{}}
		ts := make([]weights.Source, len(boxes))
		for i, x := range boxes {
			p := x.place()
			ps.Boxes = append(ps.Boxes, p)
			ts[i] = x.Source
			ts[i].Name = p.Key
		}
		all = append(all, ps.Boxes...)
		stem := fmt.Sprintf("rank-%05d", r)
		plan, err := weights.NewPlan(stem, 0, ts)
		if err != nil {
			return err
		}
		b.ranks = append(b.ranks, plan)
		b.small["training/"+stem+".json"] = indent(ps)
	}
	_, err := tabulate(all)
	return err
}

// there reports whether this checkpoint is already there, and removes a bad one.
func (b *build) there(s blob.Store, name string) (bool, error) {
	old, err := blob.ReadFile(s, name+"/"+manifestName, jsonLimit)
	if err == nil {
		err = Verify(s, name)
	}
	switch {
	case errors.Is(err, fault.Machine) || errors.Is(err, errFormat):
		return false, err // it may be good, who knows
	case err != nil: // missing or bad: nothing is lost
		return false, s.Remove(name)
	}
	m, err := b.writeTo(nowhere{})
	if err != nil {
		return false, err
	}
	if !bytes.Equal(m, old) {
		return false, fault.Statef("%s: a good checkpoint of this step with other content is there: %w",
			s.Path(name), fs.ErrExist)
	}
	return true, nil
}

// fits refuses when the disk is too small. A file takes whole blocks, and the
// manifest some 200 bytes a file.
func (b *build) fits(s blob.Store) error {
	const slack = 8 << 10 // a file
	need := b.model.Bytes + int64(slack*(len(b.small)+len(b.model.Files)+len(b.ranks)))
	for _, r := range b.ranks {
		need += r.Bytes
	}
	for _, text := range b.small {
		need += int64(len(text))
	}
	free, err := s.Free()
	if err != nil {
		return err
	}
	if free >= 0 && free < need {
		const mib = 1 << 20
		return fault.Machinef("%s: needs %.1f MiB, but only %.1f MiB are free",
			s.Path(Name(b.step)), float64(need)/mib, float64(free)/mib)
	}
	return nil
}

func (b *build) write(t blob.Tree) error {
	_, err := b.writeTo(t)
	return err
}

// writeTo writes all files, the manifest last, and returns the manifest.
func (b *build) writeTo(tree blob.Tree) ([]byte, error) {
	t := &tally{Tree: tree}
	for _, name := range slices.Sorted(maps.Keys(b.small)) {
		if err := put(t, name, b.small[name]); err != nil {
			return nil, err
		}
	}
	if err := b.model.Write("", t.Write); err != nil {
		return nil, err
	}
	for _, r := range b.ranks {
		if err := r.Write("training", t.Write); err != nil {
			return nil, err
		}
	}
	m := manifest{format, b.step, t.files}.encode()
	b.bytes = int64(len(m))
	for _, f := range t.files {
		b.bytes += f.Bytes
	}
	return m, put(tree, manifestName, m)
}

func put(t blob.Tree, name string, text []byte) error {
	return t.Write(path.Clean(name), func(w io.Writer) error {
		_, err := w.Write(text)
		return err
	})
}
