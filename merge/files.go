// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"maps"
	"os"
	"path/filepath"
	"strconv"

	"pleach/half"
	"pleach/internal/fault"
	"pleach/internal/strictjson"
)

// FileOptions says which small files an output has.
type FileOptions struct {
	Tokenizer bool // the tokenizer of the donor is copied
	// Card is the provenance of this plan, which README.md tells; nil for neither
	// README.md nor the configuration.
	Card  *Provenance
	Title string // of the card
}

// Files are the small files of an output: config.json, generation_config.json, the
// tokenizer, the card.
func (p *Plan) Files(o FileOptions) (map[string][]byte, error) {
	donor := p.Models[p.Donor]
	config, err := patchConfig(filepath.Join(donor.Dir, "config.json"), donor.Text, p.changes())
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{"config.json": config}
	if err := p.tokenizer(files, o.Tokenizer); err != nil {
		return nil, err
	}
	if o.Card == nil {
		return files, nil
	}
	files["README.md"], files["mergekit_config.yml"] = p.card(o), p.Config.Text
	return files, nil
}

// changes are what the output says otherwise than the config.json of its donor.
func (p *Plan) changes() []Change {
	var list []Change
	donor := p.Models[p.Donor].Config
	set := func(key string, value string, existing bool) {
		list = append(list, Change{Key: key, Value: value, Existing: existing})
	}
	if t := p.saved(); t != nil {
		_, newer := donor.Lookup("dtype")
		set("torch_dtype", strictjson.Quote(torchName(*t)), newer)
		set("dtype", strictjson.Quote(torchName(*t)), true)
	}
	if p.Layers > 0 && p.LayersKey != "" {
		set(p.LayersKey, strconv.Itoa(p.Layers), false)
	}
	if rows := p.rows(); rows > 0 {
		set("vocab_size", strconv.Itoa(rows), false)
	}
	if p.Untied {
		set("tie_word_embeddings", "false", false)
	}
	return list
}

// saved is the type that config.json is to name, nil to leave it.
func (p *Plan) saved() *half.DType {
	if p.Config.OutDType != nil {
		return p.Config.OutDType
	}
	return p.Config.DType
}

// rows is the vocab_size of the output where it is another one, else 0: that of the
// new vocabulary, or what cropping has left, which mergekit does not say.
func (p *Plan) rows() int {
	if p.Vocabulary != nil {
		return p.Vocabulary.Rows
	}
	if p.Options.Compat {
		return 0
	}
	for i := range p.Tensors {
		t := &p.Tensors[i]
		if !t.Embed || len(t.Shape) != 2 {
			continue
		}
		own, _, _ := p.Models[p.Donor].Tensor(t.Name) // where the donor gives the configuration only
		for _, in := range t.Inputs {
			if in.Model == p.Donor {
				own = in.Shape
			}
		}
		if len(own) == 2 && own[0] != t.Shape[0] {
			return t.Shape[0]
		}
	}
	return 0
}

// tokenizer adds the tokenizer of the output, its chat template and the defaults of
// text generation.
func (p *Plan) tokenizer(files map[string][]byte, donated bool) error {
	dir := p.Models[p.Donor].Dir
	names, err := donorFiles(dir)
	if err != nil {
		return err
	}
	own := map[string][]byte{}
	for _, name := range names {
		if name != fileGeneration && (p.Vocabulary != nil || !donated) {
			continue
		}
		if own[name], err = os.ReadFile(filepath.Join(dir, name)); err != nil {
			return fault.Dataf("merge: model %s: %w", p.Models[p.Donor].Name, err)
		}
	}
	if p.Vocabulary != nil {
		maps.Copy(own, p.Vocabulary.Files)
	}
	var dirs []string
	for _, m := range p.Models {
		dirs = append(dirs, m.Dir)
	}
	template, warnings, err := chatTemplate(p.Config.ChatTemplate, dirs)
	if err != nil {
		return err
	}
	p.Warnings = append(p.Warnings, warnings...)
	if donated || p.Vocabulary != nil {
		if err := setChat(own, template); err != nil {
			return err
		}
	} else if template != "" {
		p.Warnings = append(p.Warnings, "chat_template: the output gets no tokenizer, and so no chat template")
	}
	maps.Copy(files, own)
	return nil
}

// card is the README.md.
func (p *Plan) card(o FileOptions) []byte {
	from := o.Card
	c := CardInfo{
		Title: o.Title, Method: p.Method.Name, Reference: p.Method.Reference, Base: p.Base, Config: p.Config.Text,
		Version: from.Version, Mode: from.Mode, Seed: from.Seed,
	}
	if p.Method.Name == "slerp" {
		c.Base = -1
	}
	inputs := from.Inputs // in the order in which Provenance lists them
	next := func(path, revision string) CardInput {
		in := inputs[0]
		inputs = inputs[1:]
		return CardInput{Path: path, Revision: revision, Sum: in.SHA256, Of: in.Of}
	}
	for _, m := range p.Models {
		x := CardModel{Model: next(m.Ref.Path, m.Ref.Revision)}
		if m.AdapterDir != "" {
			x.Adapter = next(m.Ref.Adapter, m.Ref.AdapterRevision)
		}
		c.Models = append(c.Models, x)
	}
	return Card(c)
}
