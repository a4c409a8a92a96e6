// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"pleach/internal/strictjson"
)

// weight is a tensor that models of an architecture have, or a template of one per
// layer, whose name has a star for the number of the layer.
type weight struct {
	name     string
	aliases  []string // other names of the same
	tied     []string // tensors to take where a model has none of these names
	embed    bool     // its rows are tokens
	optional bool
}

// at is a name of layer i.
func at(name string, i int) string { return strings.Replace(name, "*", strconv.Itoa(i), 1) }

// layered says that there is one for every layer.
func (w *weight) layered() bool { return strings.Contains(w.name, "*") }

// architecture is the tensors of a class of models.
type architecture struct {
	class                string
	layersKey            string // of config.json; empty: layers are counted in the names of tensors
	ties                 bool   // models whose config.json says nothing have the embedding as lm_head
	before, layer, after []weight
}

// A family is how a table below describes an architecture. Names are separated by
// white space. A question mark at the end says that a model may lack the tensor;
// {key} stands for the numbers from 0 to what config.json has at key, and is left
// out of models that do not have it. layer lies below prefix and the number of the
// layer.
type family struct {
	classes   string
	layersKey string
	root      string // before every name but those of head; models without it are read too
	embed     string // embeddings of tokens
	before    string
	prefix    string
	layer     string
	after     string
	head      string // optional, tied to embed
	ties      bool   // so it is where config.json does not say tie_word_embeddings
}

const (
	attention = "self_attn.q_proj.weight self_attn.k_proj.weight self_attn.v_proj.weight self_attn.o_proj.weight "
	biases    = "self_attn.q_proj.bias? self_attn.k_proj.bias? self_attn.v_proj.bias? self_attn.o_proj.bias? "
	qkNorms   = "self_attn.q_norm.weight self_attn.k_norm.weight "
	mlp       = "mlp.gate_proj.weight mlp.up_proj.weight mlp.down_proj.weight "
	mlpBiases = "mlp.gate_proj.bias? mlp.up_proj.bias? mlp.down_proj.bias? "
	twoNorms  = "input_layernorm.weight post_attention_layernorm.weight "
	fourNorms = twoNorms + "pre_feedforward_layernorm.weight post_feedforward_layernorm.weight "
	// Experts lie in one tensor, or each in tensors of their own.
	fused = "mlp.experts.gate_up_proj? mlp.experts.down_proj? mlp.gate.weight? "
)

// families are the architectures with a table, from the modelling code of
// transformers. Tensors that a table lacks are no part of the output.
var families = []family{
	decoder("LlamaForCausalLM LLaMaForCausalLM", twoNorms+attention+biases+mlp+mlpBiases),
	decoder("MistralForCausalLM", twoNorms+attention+mlp),
	decoder("Qwen2ForCausalLM", twoNorms+attention+
		"self_attn.q_proj.bias self_attn.k_proj.bias self_attn.v_proj.bias "+mlp),
	decoder("Qwen3ForCausalLM", twoNorms+attention+biases+qkNorms+mlp),
	gemma("GemmaForCausalLM", twoNorms+attention+biases+mlp),
	gemma("Gemma2ForCausalLM", fourNorms+attention+biases+mlp),
	gemma("Gemma3ForCausalLM", fourNorms+attention+biases+qkNorms+mlp),
	decoder("Phi3ForCausalLM", twoNorms+"self_attn.qkv_proj.weight self_attn.o_proj.weight "+
		"mlp.gate_up_proj.weight mlp.down_proj.weight"),
	decoder("Olmo2ForCausalLM", "post_attention_layernorm.weight post_feedforward_layernorm.weight "+
		attention+biases+qkNorms+mlp),
	decoder("GraniteForCausalLM", twoNorms+attention+biases+mlp+mlpBiases),
	stableLM("StableLmForCausalLM StableLMEpochForCausalLM"),
	decoder("MixtralForCausalLM", twoNorms+attention+fused+
		"block_sparse_moe.gate.weight? block_sparse_moe.experts.{num_local_experts}.w1.weight? "+
		"block_sparse_moe.experts.{num_local_experts}.w2.weight? "+
		"block_sparse_moe.experts.{num_local_experts}.w3.weight?"),
	decoder("Qwen3MoeForCausalLM", twoNorms+attention+biases+qkNorms+fused+
		"mlp.experts.{num_experts}.gate_proj.weight? mlp.experts.{num_experts}.up_proj.weight? "+
		"mlp.experts.{num_experts}.down_proj.weight? "+
		"mlp.gate_proj.weight? mlp.up_proj.weight? mlp.down_proj.weight?"),
	{
		classes: "GPTNeoXForCausalLM", layersKey: "num_hidden_layers",
		embed: "gpt_neox.embed_in.weight", prefix: "gpt_neox.layers.",
		layer: "input_layernorm.weight input_layernorm.bias " +
			"post_attention_layernorm.weight post_attention_layernorm.bias " +
			"attention.query_key_value.weight attention.query_key_value.bias? " +
			"attention.dense.weight attention.dense.bias? " +
			"mlp.dense_h_to_4h.weight mlp.dense_h_to_4h.bias mlp.dense_4h_to_h.weight mlp.dense_4h_to_h.bias " +
			"attention.bias? attention.masked_bias? attention.rotary_emb.inv_freq?",
		after: "gpt_neox.final_layer_norm.weight gpt_neox.final_layer_norm.bias",
		head:  "embed_out.weight",
	},
	{
		classes: "GPT2LMHeadModel", layersKey: "n_layer", root: "transformer.",
		embed: "wte.weight", before: "wpe.weight", prefix: "h.",
		layer: "ln_1.weight ln_1.bias attn.c_attn.weight attn.c_attn.bias attn.c_proj.weight attn.c_proj.bias " +
			"ln_2.weight ln_2.bias mlp.c_fc.weight mlp.c_fc.bias mlp.c_proj.weight mlp.c_proj.bias",
		after: "ln_f.weight ln_f.bias", head: "lm_head.weight", ties: true,
	},
}

// decoder is the frame that most families share.
func decoder(classes, layer string) family {
	return family{
		classes: classes, layersKey: "num_hidden_layers",
		embed: "model.embed_tokens.weight", prefix: "model.layers.", layer: layer,
		after: "model.norm.weight", head: "lm_head.weight",
	}
}

// gemma has the embedding as its lm_head unless it says otherwise.
func gemma(classes, layer string) family {
	f := decoder(classes, layer)
	f.ties = true
	return f
}

// stableLM has biases in its norms; with parallel branches it has one norm less.
func stableLM(classes string) family {
	f := decoder(classes, "input_layernorm.weight input_layernorm.bias "+
		"post_attention_layernorm.weight? post_attention_layernorm.bias? "+attention+biases+mlp+
		"self_attn.q_layernorm.norms.{num_attention_heads}.weight? "+
		"self_attn.k_layernorm.norms.{num_key_value_heads}.weight?")
	f.after += " model.norm.bias?"
	return f
}

// tableOf is the architecture of a class, with counts from a config.json.
func tableOf(class string, config strictjson.Value) (*architecture, bool) {
	for i := range families {
		f := &families[i]
		if !slices.Contains(strings.Fields(f.classes), class) {
			continue
		}
		a := &architecture{class: strings.Fields(f.classes)[0], layersKey: f.layersKey, ties: f.ties}
		a.before = append(f.weights(f.embed, "", config), f.weights(f.before, "", config)...)
		a.before[0].embed = true
		a.layer = f.weights(f.layer, f.prefix+"*.", config)
		a.after = f.weights(f.after, "", config)
		tied := append([]string{a.before[0].name}, a.before[0].aliases...)
		a.after = append(a.after, weight{name: f.head, embed: true, optional: true, tied: tied})
		return a, true
	}
	return nil, false
}

// weights are those of a list of names.
func (f *family) weights(names, prefix string, config strictjson.Value) []weight {
	var list []weight
	for _, name := range strings.Fields(names) {
		name, optional := strings.CutSuffix(name, "?")
		for _, name := range expand(prefix+name, config) {
			w := weight{name: f.root + name, optional: optional}
			if f.root != "" {
				w.aliases = []string{name}
			}
			list = append(list, w)
		}
	}
	return list
}

// maxExperts bounds what a damaged config.json can ask for.
const maxExperts = 1 << 12

// expand is the names that a name with {key} stands for.
func expand(name string, config strictjson.Value) []string {
	begin, rest, ok := strings.Cut(name, "{")
	if !ok {
		return []string{name}
	}
	key, end, _ := strings.Cut(rest, "}")
	v, _ := config.Lookup(key)
	n, _ := v.Int64()
	var names []string
	for i := range min(n, maxExperts) {
		names = append(names, begin+strconv.FormatInt(i, 10)+end)
	}
	return names
}

var layerNumber = regexp.MustCompile(`\.([0-9]+)\.`)

// splitLayer takes the first number between two points of a name for that of a
// layer. template has a star in its place.
func splitLayer(name string) (template, prefix string, layer int, ok bool) {
	at := layerNumber.FindStringSubmatchIndex(name)
	if at == nil {
		return name, "", 0, false
	}
	layer, err := strconv.Atoi(name[at[2]:at[3]])
	if err != nil || layer >= 1<<20 {
		return name, "", 0, false
	}
	return name[:at[2]] + "*" + name[at[3]:], name[:at[0]], layer, true
}

// infer makes an architecture of the names of tensors alone: all names that some
// model has, those with a number of a layer as templates. A tensor that some model
// lacks, in some layer, is optional. prefixes are the beginnings of the names of
// layers: more than one means that the model has several modules.
func infer(models []*Model) (a *architecture, prefixes []string) {
	a = &architecture{class: "an architecture without a table"}
	templates := map[string]*template{}
	layers := make([]int, len(models))
	for k, m := range models {
		for _, t := range m.Tensors() {
			name, prefix, layer, ok := splitLayer(t.Name)
			s := templates[name]
			if s == nil {
				s = &template{count: make([]int, len(models))}
				templates[name] = s
			}
			s.count[k]++
			if ok {
				layers[k] = max(layers[k], layer+1)
				if !slices.Contains(prefixes, prefix) {
					prefixes = append(prefixes, prefix)
				}
			}
		}
	}
	names := make([]string, 0, len(templates))
	for name := range templates {
		names = append(names, name)
	}
	slices.Sort(names)
	slices.Sort(prefixes)
	var embedding []string
	for _, name := range names {
		w := weight{name: name, embed: isEmbedding(name)}
		for k, n := range templates[name].count {
			if w.layered() && n < layers[k] || n == 0 {
				w.optional = true
			}
		}
		if w.layered() {
			a.layer = append(a.layer, w)
			continue
		}
		if w.embed && !isHead(name) {
			embedding = append(embedding, name)
		}
		a.before = append(a.before, w)
	}
	for i := range a.before {
		if w := &a.before[i]; isHead(w.name) {
			w.tied = embedding
		}
	}
	return a, prefixes
}

// template counts, for each model, in how many layers a tensor is.
type template struct{ count []int }

// isEmbedding says that the rows of a tensor are tokens, as far as its name shows.
func isEmbedding(name string) bool {
	for _, end := range []string{"embed_tokens.weight", "wte.weight", "embed_in.weight"} {
		if strings.HasSuffix(name, end) {
			return true
		}
	}
	return isHead(name)
}

// isHead says that a tensor makes logits.
func isHead(name string) bool {
	return strings.HasSuffix(name, "lm_head.weight") || strings.HasSuffix(name, "embed_out.weight")
}

// classOf is the class of a model: what the reference or else config.json says.
func classOf(m *Model, ref Reference) string {
	if ref.Architecture != "" {
		return ref.Architecture
	}
	v, _ := m.Config.Lookup("architectures")
	if v.Kind == strictjson.Array && len(v.Kids) == 1 && v.Kids[0].Kind == strictjson.String {
		return v.Kids[0].Text
	}
	return ""
}

// layersOf is the number of layers of a model.
func (a *architecture) layersOf(m *Model) (int, bool) {
	if a.layersKey != "" {
		v, _ := m.Config.Lookup(a.layersKey)
		n, ok := v.Int64()
		return int(n), ok && n >= 0 && n < 1<<20
	}
	n := 0
	for _, t := range m.Weights.Tensors() {
		if _, _, layer, ok := splitLayer(t.Name); ok {
			n = max(n, layer+1)
		}
	}
	return n, true
}

// experts says how a model stores them: "fused", "apart" or, with none, "".
func experts(m *Model) string {
	for _, t := range m.Weights.Tensors() {
		if _, rest, ok := strings.Cut(t.Name, ".experts."); ok {
			if rest == "gate_up_proj" || rest == "down_proj" {
				return "fused"
			}
			return "apart"
		}
	}
	return ""
}
