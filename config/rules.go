// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"pleach/internal/unit"
)

// rules checks what no key can know alone. Each rule asks which keys were
// given, so that a key which failed by itself is not reported twice.
func (d *reader) rules() {
	d.modelRules()
	d.sourceRules()
	d.stageRules()
	d.trainRules()
	if d.given("evaluate") && !d.given("evaluate.perplexity") && !d.given("evaluate.tasks") {
		d.fail(d.near("evaluate.perplexity"), "evaluate.perplexity", "missing", "name a held-out text")
	}
	if d.given("price") && !d.given("price.per_hour") {
		d.fail(d.near("price.per_hour"), "price.per_hour", "missing", "it has no default")
	}
	if d.r.Out == "" && !d.given("out") {
		d.r.Out = filepath.Join(d.dir, "runs", d.r.Name)
		d.place["out"] = place{from: "default"}
	}
}

func (d *reader) modelRules() {
	if !d.given("model") {
		return
	}
	var ways []string
	for _, k := range []string{"path", "preset", "config"} {
		if d.given("model." + k) {
			ways = append(ways, k)
		}
	}
	if len(ways) != 1 {
		msg := "got none of path, preset and config, want one"
		if len(ways) > 1 {
			msg = "got " + strings.Join(ways, " and ") + ", want one of them"
		}
		d.fail(d.near("model"), "model", msg)
		return
	}
	way := ways[0]
	if way != "path" && !d.given("model.vocabulary") {
		d.fail(d.near("model.vocabulary"), "model.vocabulary", "missing", "name the tokenizer of the new model")
	}
	m := &d.r.Model
	for _, f := range m.fields() {
		k := "model." + f.key
		var need string
		switch f.key {
		case "path", "preset", "config":
			continue
		case "state":
			need = "path"
		case "vocabulary", "init":
			need = "preset or config"
		default:
			need = "preset"
		}
		if d.given(k) && !strings.Contains(need, way) {
			d.fail(d.near(k), k, "does not go with "+way, "it belongs to "+need)
		}
	}
	if way != "path" {
		m.State = "fresh"
	}
}

func (d *reader) sourceRules() {
	ss := d.r.Data.Sources
	line := map[string]int{}
	for i := range ss {
		s, k := &ss[i], fmt.Sprintf("data.sources.%d", i)
		if s.Name == "" && len(s.Paths) > 0 {
			s.Name = stem(s.Paths[0])
			d.place[k+".name"] = place{from: "default"}
		}
		if j, ok := line[s.Name]; ok && s.Name != "" {
			d.fail(d.near(k), k+".name", fmt.Sprintf("got %q, which source %d has too", s.Name, j),
				"give each source a name")
		}
		line[s.Name] = i
		if s.Rows && len(ss) > 1 {
			d.fail(d.near(k+".rows"), k+".rows", "ready rows must be the only source")
		}
		for _, f := range []string{"field", "id", "mask"} {
			if s.Format == "text" && d.given(k+"."+f) {
				d.fail(d.near(k+"."+f), k+"."+f, "does not go with format text")
			}
		}
		if s.Rows && s.Format == "text" {
			d.fail(d.near(k+".rows"), k+".rows", "does not go with format text")
		}
		if s.Rows && s.Damaged > 0 {
			d.fail(d.near(k+".damaged"), k+".damaged", "does not go with ready rows", "which row follows would depend on it")
		}
	}
}

// stageRules checks that every mixture reads something that there is.
func (d *reader) stageRules() {
	weights := map[string]float64{}
	total := func() (sum float64) {
		for _, w := range weights {
			sum += w
		}
		return sum
	}
	for _, s := range d.r.Data.Sources {
		weights[s.Name] = s.Weight
	}
	if len(weights) > 0 && total() == 0 {
		d.fail(d.near("data.sources.0.weight"), "data.sources", "got weights that are all 0, want one above 0")
	}
	for i, st := range d.r.Data.Stages {
		k := fmt.Sprintf("data.stages.%d.weights", i)
		for _, w := range st.Weights {
			if _, ok := weights[w.Name]; !ok {
				d.fail(d.near(k+"."+w.Name), k+"."+w.Name, "is the name of no source", didYouMean(w.Name, d.r.Data.names()))
				continue
			}
			weights[w.Name] = w.Weight
		}
		if d.given(k) && total() == 0 {
			d.fail(d.near(k), k, "got weights that are all 0, want one above 0")
		}
	}
}

// names are those of the sources.
func (d *Data) names() []string {
	var all []string
	for _, s := range d.Sources {
		all = append(all, s.Name)
	}
	return all
}

// stem names a path: its last folder or file that is no pattern, without
// extensions.
func stem(path string) string {
	for strings.ContainsAny(filepath.Base(path), "*?[") {
		path = filepath.Dir(path)
	}
	base := filepath.Base(path)
	if i := strings.IndexByte(base, '.'); i > 0 {
		base = base[:i]
	}
	return base
}

func (d *reader) trainRules() {
	d.precisionRules()
	s := &d.r.Train.Schedule
	cut, floor := "train.schedule.cosine.cut", "train.schedule.cosine.floor"
	if d.given(cut) {
		if d.given(floor) {
			d.fail(d.near(cut), cut, "does not go with floor", "leave one of them out")
		}
		s.Floor = unit.Level{}
	}
	b, T := d.r.Train.Batch, d.r.Data.Sequence
	if b.Tokens > 0 && T > 0 {
		if _, err := b.Rows(T); err != nil {
			d.fail(d.near("train.batch"), "train.batch", bare(err))
		}
	}
	if lr := d.r.Train.Optimizer.AdamW.LR; lr > 0 && s.Floor.Value > lr {
		k := "train.schedule." + s.Kind + ".floor"
		d.fail(d.near(k), k, fmt.Sprintf("got %v, which is above the peak %v", s.Floor, lr))
	}
}

// precisionRules refuses means in bf16 that are not rounded stochastically.
func (d *reader) precisionRules() {
	t, k := &d.r.Train, "train.optimizer.adamw.state"
	other := slices.Contains([]string{"", "f32", "mixed", "bf16"}, t.Precision) // not those that are refused anyway
	if t.Optimizer.AdamW.State == "bf16" && other {
		d.fail(d.near(k), k, fmt.Sprintf("got bf16 with the precision %s, want f32", cmp.Or(t.Precision, "f32 or mixed")),
			"means in bf16 need stochastic rounding: train.precision: bf16-sr")
	}
	if t.Precision != "" {
		d.r.settleDType(d.place)
	}
}

// SetPrecision chooses what the recipe leaves open, and what follows from it.
func (r *Recipe) SetPrecision(word, origin string) error {
	if err := r.Set("train.precision", word, origin); err != nil {
		return err
	}
	r.settleDType(r.place)
	return nil
}

// settleDType chooses the type of published weights after the precision.
func (r *Recipe) settleDType(places map[string]place) {
	c := &r.Checkpoint
	if c.DType != "" {
		return
	}
	if c.DType = "bf16"; r.Train.Precision == "f32" {
		c.DType = "f32"
	}
	places["checkpoint.dtype"] = place{from: "default"}
}

// Warnings are what a recipe may say, and probably should not.
func (r *Recipe) Warnings() []string {
	var ws []string
	switch b := r.Train.Optimizer.AdamW.Betas[1]; {
	case r.Train.Precision == "bf16":
		ws = append(ws, "train.precision: bf16 rounds weights to nearest: updates of less than half a unit in their "+
			"last place are lost, and training stalls or diverges; mixed and bf16-sr do not lose them")
	case r.Train.Precision == "bf16-sr" && b > 0.98:
		ws = append(ws, fmt.Sprintf("train.optimizer.adamw.betas: a second beta of %s is too slow to see a gradient that "+
			"explodes; with bf16-sr training was found to be unstable at 0.99 and stable at 0.95", number(b)))
	}
	return ws
}
