// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"pleach/internal/strictjson"
)

// adapterFile is the name of the configuration of an adapter.
const adapterFile = "adapter_config.json"

// adapterConfig is what adapter_config.json says about the product.
type adapterConfig struct {
	rank          int
	alpha         float64
	root          bool // the product is divided by √r rather than r
	fanInFanOut   bool // weights are [in,out]
	ranks, alphas []loraPattern
}

// loraPattern is an entry of rank_pattern or alpha_pattern.
type loraPattern struct {
	modules *regexp.Regexp
	value   float64
}

// adapterPlain are the keys that change nothing about what an adapter is once it is
// trained: how it was begun and trained, and names. Which modules it has, its tensors
// say.
var adapterPlain = []string{
	"task_type", "auto_mapping", "peft_version", "base_model_name_or_path", "revision",
	"inference_mode", "target_modules", "exclude_modules", "modules_to_save", "lora_dropout",
	"layers_to_transform", "layers_pattern", "bias", "megatron_config", "megatron_core",
	"loftq_config", "eva_config", "corda_config", "lora_ga_config", "velora_config", "runtime_config",
	"qalora_group_size", "ensure_weight_tying", "target_modules_to_tie",
}

// adapterForms are the keys that make something else than W + s·B·A of an adapter.
var adapterForms = map[string]string{
	"use_dora":                "DoRA",
	"use_qalora":              "QALoRA",
	"use_bdlora":              "block-diagonal LoRA",
	"lora_bias":               "a LoRA with a bias",
	"alora_invocation_tokens": "an activated LoRA, which holds for some tokens only",
	"arrow_config":            "Arrow, which chooses among adapters",
	"kasa_config":             "KaSA",
	"monteclora_config":       "MonteCLoRA",
	"layer_replication":       "a LoRA for a model with repeated layers",
	"target_parameters":       "a LoRA of parameters that are no weights of layers",
	"trainable_token_indices": "an adapter of single rows of the embedding",
}

// adapterInits are the beginnings of training that leave the weights of the model as
// they are. The others subtract from them what the adapter begins with.
var adapterInits = []string{"gaussian", "eva", "orthogonal"}

func readAdapterConfig(dir string) (*adapterConfig, error) {
	text, err := os.ReadFile(filepath.Join(dir, adapterFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("want a LoRA adapter, a folder with %s: %w", adapterFile, err)
	}
	if err != nil {
		return nil, err
	}
	return parseAdapterConfig(string(text))
}

// parseAdapterConfig reads the text of an adapter_config.json and says all that is
// wrong with it.
func parseAdapterConfig(text string) (*adapterConfig, error) {
	root, err := strictjson.ParseFile(adapterFile, text)
	if err != nil {
		return nil, err
	}
	if root.Kind != strictjson.Object {
		return nil, fmt.Errorf("%s: got %v, want an object", adapterFile, root)
	}
	c := &adapterConfig{rank: 8, alpha: 8}
	var errs []error
	if _, ok := root.Lookup("peft_type"); !ok {
		errs = append(errs, fmt.Errorf("%s: peft_type: got none, want LORA", adapterFile))
	}
	for key, v := range root.Fields() {
		if err := c.set(key, v); err != nil {
			line := strictjson.Line(text, int(v.At))
			errs = append(errs, fmt.Errorf("%s:%d: %s: %w", adapterFile, line, key, err))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return c, nil
}

// set takes one key.
func (c *adapterConfig) set(key string, v strictjson.Value) (err error) {
	switch key {
	case "peft_type":
		if v.Kind != strictjson.String || v.Text != "LORA" {
			err = fmt.Errorf("got %v, want LORA, the one kind of adapter that is read", v)
		}
	case "r":
		n, ok := v.Int64()
		if c.rank = int(n); !ok || n < 1 || n > 1<<20 {
			err = fmt.Errorf("got %v, want a rank of at least 1", v)
		}
	case "lora_alpha":
		c.alpha, err = jsonNumber(v)
	case "use_rslora":
		c.root, err = jsonBool(v)
	case "fan_in_fan_out":
		c.fanInFanOut, err = jsonBool(v)
	case "rank_pattern":
		c.ranks, err = patterns(v)
		for _, p := range c.ranks {
			if p.value < 1 || p.value > 1<<20 || p.value != math.Trunc(p.value) {
				err = fmt.Errorf("got a rank of %v, want one of at least 1", p.value)
			}
		}
	case "alpha_pattern":
		c.alphas, err = patterns(v)
	case "init_lora_weights":
		if isOff(v) || v.Kind == strictjson.True || slices.Contains(adapterInits, v.Text) {
			return nil
		}
		err = fmt.Errorf("got %v: training began with other weights than those of the model, "+
			"and the adapter fits those alone: save it again with path_initial_model_for_weight_conversion", v)
	default:
		err = adapterKey(key, v)
	}
	return err
}

// adapterKey refuses what would make another model.
func adapterKey(key string, v strictjson.Value) error {
	if slices.Contains(adapterPlain, key) || isOff(v) {
		return nil
	}
	if form, ok := adapterForms[key]; ok {
		return fmt.Errorf("got %v: this is %s, which is not supported", v, form)
	}
	return fmt.Errorf("got %v: this key is unknown, and may make another model of it", v)
}

// isOff says that a value asks for nothing.
func isOff(v strictjson.Value) bool {
	switch v.Kind {
	case strictjson.Null, strictjson.False:
		return true
	case strictjson.Array, strictjson.Object:
		return len(v.Kids) == 0
	}
	return false
}

func jsonBool(v strictjson.Value) (bool, error) {
	if v.Kind != strictjson.True && v.Kind != strictjson.False && v.Kind != strictjson.Null {
		return false, fmt.Errorf("got %v, want true or false", v)
	}
	return v.Kind == strictjson.True, nil
}

func jsonNumber(v strictjson.Value) (float64, error) {
	x, ok := v.Float()
	if !ok {
		return 0, fmt.Errorf("got %v, want a number", v)
	}
	return x, nil
}

// patterns reads an object from regular expressions to numbers.
func patterns(v strictjson.Value) ([]loraPattern, error) {
	if v.Kind != strictjson.Object && v.Kind != strictjson.Null {
		return nil, fmt.Errorf("got %v, want an object", v)
	}
	var list []loraPattern
	for key, x := range v.Fields() {
		n, err := jsonNumber(x)
		if err != nil {
			return nil, fmt.Errorf("%q: %w", key, err)
		}
		re, err := regexp.Compile(`^(?:.*\.)?(?:` + key + `)$`)
		if err != nil {
			return nil, fmt.Errorf("%q: is no regular expression that can be read: %s", key,
				strings.TrimPrefix(err.Error(), "error parsing regexp: "))
		}
		list = append(list, loraPattern{re, n})
	}
	return list, nil
}

// of is the rank of a module and the factor of its product. The first pattern counts
// that is the module's name, or its end after a dot.
func (c *adapterConfig) of(module string) (rank int, scale float32) {
	rank, alpha := c.rank, c.alpha
	match := func(p loraPattern) bool { return p.modules.MatchString(module) }
	if i := slices.IndexFunc(c.ranks, match); i >= 0 {
		rank = int(c.ranks[i].value)
	}
	if i := slices.IndexFunc(c.alphas, match); i >= 0 {
		alpha = c.alphas[i].value
	}
	if c.root {
		return rank, float32(alpha / math.Sqrt(float64(rank)))
	}
	return rank, float32(alpha / float64(rank))
}
