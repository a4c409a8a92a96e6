// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"

	"pleach/half"
	"pleach/internal/fault"
	"pleach/internal/strictjson"
)

// Config is a config.json: the architecture and what else pleach keeps of it.
//
// BOS, EOS and PAD are the ids that begin, end and fill sequences, nil if the
// file says null; whether they lie in the vocabulary is not looked at. DType is
// the type of the stored weights, a float type; mind that the zero value is
// F64. Fields without a meaning here are kept, and JSON writes them again.
type Config struct {
	Spec
	BOS, EOS, PAD []int32
	DType         half.DType

	others map[string]json.RawMessage
}

// ParseConfig reads a config.json of the Llama family in the keys of
// transformers 4 (rope_theta, rope_scaling, torch_dtype) or 5 (rope_parameters,
// dtype); where a file has both they must agree. What is absent or null has the
// default of transformers' LlamaConfig, but sizes and model_type must be there.
//
// Whatever would change the mathematics and is not in Spec is refused: known
// keys by their value, unknown ones unless they are null, false, 0 or empty.
// All errors come at once, each with its key, and match fault.Data.
//
// Differs: transformers ignores keys that it does not know, and takes
// rope_scaling where rope_parameters contradicts it. Its gradient of the
// embedding of PAD is zero; here that row learns if it occurs.
func ParseConfig(text []byte) (*Config, error) {
	o, err := parseObject(string(text))
	if err != nil {
		return nil, fault.As(fault.Data, err)
	}
	c := &Config{}
	c.read(o)
	if len(*o.errs) == 0 {
		if err := c.Check(); err != nil {
			*o.errs = append(*o.errs, fmt.Errorf("model: config.json: %w", err))
		}
	}
	if err := errors.Join(*o.errs...); err != nil {
		return nil, fault.As(fault.Data, err)
	}
	return c, nil
}

func (c *Config) read(o object) {
	if !o.has("model_type") {
		o.fail("model_type", `missing, want "llama"`)
	}
	if o.word("model_type", "llama") == "" {
		return // errors about its other keys would be beside the point
	}
	o.words("architectures", "LlamaForCausalLM", "LLaMAForCausalLM")
	o.word("hidden_act", "silu", "swish")
	o.real("attention_dropout", 0, "0", func(x float64) bool { return x == 0 })
	o.words("layer_types", "full_attention")

	c.readSizes(o)
	c.Eps = o.real("rms_norm_eps", 1e-6, "a number between 0 and 1",
		func(x float64) bool { return x > 0 && x < 1 })
	c.Tied = o.flag("tie_word_embeddings")
	c.AttnBias = o.flag("attention_bias")
	c.MLPBias = o.flag("mlp_bias")
	c.Rope = readRope(o)
	c.DType = readDType(o)
	c.BOS = o.ids("bos_token_id", 1)
	c.EOS = o.ids("eos_token_id", 2)
	c.PAD = o.ids("pad_token_id")

	c.others = map[string]json.RawMessage{}
	for _, key := range o.rest() {
		value := o.fields[key]
		if reason, ok := refused(key, value); ok {
			o.fail(key, "got %s: %s", o.show(value), reason)
		}
		c.others[key] = json.RawMessage(value.Raw(o.src))
	}
}

// readSizes bounds numbers as Spec.Check does, but names keys.
func (c *Config) readSizes(o object) {
	c.V = o.integer("vocab_size", 1<<24, 0)
	c.D = o.integer("hidden_size", 1<<20, 0)
	c.F = o.integer("intermediate_size", 1<<22, 0)
	c.L = o.integer("num_hidden_layers", 10_000, 0)
	c.MaxT = o.integer("max_position_embeddings", 1<<30, 2048)
	c.H = o.integer("num_attention_heads", 1<<14, 0)
	if c.H == 0 { // the rest is relative to it
		o.take("num_key_value_heads")
		o.take("head_dim")
		return
	}
	c.G = o.integer("num_key_value_heads", 1<<14, c.H)
	if c.G != 0 && c.H%c.G != 0 {
		o.fail("num_key_value_heads", "got %d, want a divisor of num_attention_heads, which is %d", c.G, c.H)
	}
	c.readHeadDim(o)
}

func (c *Config) readHeadDim(o object) {
	if !o.has("head_dim") {
		if c.D%c.H != 0 {
			o.fail("num_attention_heads", "got %d, want a divisor of hidden_size, which is %d, or a head_dim",
				c.H, c.D)
			return
		}
		if c.D == 0 {
			return
		}
		c.K = c.D / c.H
		if c.K%2 != 0 {
			o.fail("head_dim", "hidden_size / num_attention_heads is %d, want an even number", c.K)
		}
		return
	}
	c.K = o.integer("head_dim", 1<<14, 0)
	if c.K%2 != 0 {
		o.fail("head_dim", "got %d, want an even number", c.K)
	}
}

// dtypes are the names of torch for types of stored weights.
var dtypes = map[string]half.DType{
	"float32": half.F32, "bfloat16": half.BF16, "float16": half.F16, "float64": half.F64,
}

func readDType(o object) half.DType {
	names := []string{"float32", "bfloat16", "float16", "float64"}
	both := o.has("torch_dtype") && o.has("dtype")
	var t, u string
	if both || o.has("dtype") {
		u = o.word("dtype", names...)
	}
	if t = o.word("torch_dtype", names...); both && t != u && t != "" && u != "" {
		o.fail("torch_dtype", `got %q, but "dtype" is %q`, t, u)
	}
	if u != "" {
		return dtypes[u]
	}
	return dtypes[t]
}

// ids takes an id, a list of them, or null for none.
func (o object) ids(key string, absent ...int32) []int32 {
	if _, ok := o.fields[key]; !ok {
		return absent
	}
	value, ok := o.take(key)
	if !ok {
		return nil
	}
	// Files of Llama 1 say so for none.
	if key == "pad_token_id" && value.Text == "-1" {
		return nil
	}
	ids := value.Kids
	if value.Kind != strictjson.Array {
		ids = []strictjson.Value{value}
	}
	var list []int32
	for _, v := range ids {
		id, ok := v.Int64()
		if !ok || id < 0 || id > math.MaxInt32 {
			o.want(key, value, "an id, a list of ids, or null")
			return nil
		}
		list = append(list, int32(id))
	}
	return list
}

// JSON is a config.json that transformers 4 and 5 read alike: keys in
// alphabetical order, both styles of keys, and the fields that the parsed file
// had beside those of Config. ParseConfig reads it back as c, and what it then
// writes is the same, byte by byte.
func (c *Config) JSON() []byte {
	out := map[string]any{}
	for key, value := range c.others {
		out[key] = value
	}
	dtype := "float32"
	for name, t := range dtypes {
		if t == c.DType {
			dtype = name
		}
	}
	for key, value := range map[string]any{
		"architectures": []string{"LlamaForCausalLM"}, "model_type": "llama", "hidden_act": "silu",
		"vocab_size": c.V, "hidden_size": c.D, "intermediate_size": c.F, "num_hidden_layers": c.L,
		"num_attention_heads": c.H, "num_key_value_heads": c.G, "head_dim": c.K,
		"max_position_embeddings": c.MaxT, "rms_norm_eps": decimal(c.Eps),
		"attention_bias": c.AttnBias, "mlp_bias": c.MLPBias, "tie_word_embeddings": c.Tied,
		"attention_dropout": decimal(0), "torch_dtype": dtype, "dtype": dtype,
		"bos_token_id": idsJSON(c.BOS), "eos_token_id": idsJSON(c.EOS), "pad_token_id": idsJSON(c.PAD),
		"rope_theta": decimal(c.Rope.Theta), "rope_scaling": ropeScaling(c.Rope),
		"rope_parameters": ropeParameters(c.Rope),
	} {
		out[key] = value
	}
	return encode(out)
}

func idsJSON(ids []int32) any {
	switch len(ids) {
	case 0:
		return nil
	case 1:
		return ids[0]
	}
	return ids
}

// decimal writes a float so that Python reads a float, too: 10000.0.
func decimal(x float64) json.RawMessage {
	s := strconv.FormatFloat(x, 'g', -1, 64)
	if x == math.Trunc(x) && math.Abs(x) < 1e15 {
		s = strconv.FormatFloat(x, 'f', 1, 64)
	}
	return json.RawMessage(s)
}
