# SPDX-FileCopyrightText: 2026 The pleach authors
# SPDX-License-Identifier: Apache-2.0

"""Writes refuse/*.json, refuse/want.json, accept/*.json and accept/want.json.

    python refuse.py

refuse/: config.json files with one field each that changes the mathematics of
the model, or is absurd. want.json says which key the refusal has to name.

accept/: config.json files that must be read, with the numbers they mean. The
numbers are asked of transformers where it reads the file, and checked against
what is written here.
"""

from common import *

NEW = {  # the keys of transformers 5
    "architectures": ["LlamaForCausalLM"], "attention_bias": False, "attention_dropout": 0.0,
    "bos_token_id": 1, "dtype": "float32", "eos_token_id": 2, "head_dim": 8,
    "hidden_act": "silu", "hidden_size": 32, "initializer_range": 0.02,
    "intermediate_size": 88, "max_position_embeddings": 64, "mlp_bias": False,
    "model_type": "llama", "num_attention_heads": 4, "num_hidden_layers": 2,
    "num_key_value_heads": 2, "pad_token_id": None, "pretraining_tp": 1,
    "rms_norm_eps": 1e-5, "rope_parameters": {"rope_theta": 10000.0, "rope_type": "default"},
    "tie_word_embeddings": False, "transformers_version": "5.23.0", "use_cache": True,
    "vocab_size": 101,
}

LLAMA3 = {"rope_theta": 10000.0, "rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0,
          "high_freq_factor": 4.0, "original_max_position_embeddings": 32}


def old():
    c = dict(NEW)
    del c["rope_parameters"], c["dtype"], c["head_dim"]
    return c | {"rope_theta": 10000.0, "rope_scaling": None, "torch_dtype": "float32",
                "transformers_version": "4.45.2"}


def new(**changes):
    return NEW | changes


def without(key, c=NEW):
    return {k: v for k, v in c.items() if k != key}


def rope(**changes):
    return new(rope_parameters={k: v for k, v in (LLAMA3 | changes).items() if v is not None})


def plain_rope(**changes):
    return new(rope_parameters=NEW["rope_parameters"] | changes)


NO_HEAD_DIM = without("head_dim")

# file: (config, key that the message must name)
REFUSE = {
    # another model, or another function inside it
    "model-type-mistral": (new(model_type="mistral", sliding_window=16), "model_type"),
    "model-type-missing": (without("model_type"), "model_type"),
    "architectures-other": (new(architectures=["LlamaForSequenceClassification"]), "architectures"),
    "hidden-act-gelu": (new(hidden_act="gelu"), "hidden_act"),
    "attention-dropout": (new(attention_dropout=0.1), "attention_dropout"),
    "partial-rotary": (plain_rope(partial_rotary_factor=0.5), "partial_rotary_factor"),
    "partial-rotary-top": (old() | {"partial_rotary_factor": 0.5}, "partial_rotary_factor"),
    "quantization": (new(quantization_config={"quant_method": "gptq", "bits": 4}),
                     "quantization_config"),
    "dtype-int8": (new(dtype="int8"), "dtype"),
    # rotary embeddings
    "rope-yarn": (plain_rope(rope_type="yarn", factor=4.0), "rope_type"),
    "rope-dynamic": (plain_rope(rope_type="dynamic", factor=4.0), "rope_type"),
    "rope-longrope": (plain_rope(rope_type="longrope", long_factor=[1.0] * 4,
                                 short_factor=[1.0] * 4), "rope_type"),
    "rope-unknown": (plain_rope(rope_type="spiral"), "rope_type"),
    "rope-old-yarn": (old() | {"rope_scaling": {"type": "yarn", "factor": 4.0}}, "rope_scaling"),
    "rope-old-not-object": (old() | {"rope_scaling": 2.0}, "rope_scaling"),
    "rope-linear-no-factor": (plain_rope(rope_type="linear"), "factor"),
    "rope-linear-factor-zero": (plain_rope(rope_type="linear", factor=0.0), "factor"),
    "rope-linear-factor-negative": (plain_rope(rope_type="linear", factor=-2.0), "factor"),
    "rope-theta-zero": (plain_rope(rope_theta=0.0), "rope_theta"),
    "rope-theta-negative": (plain_rope(rope_theta=-1e4), "rope_theta"),
    "rope-theta-string": (plain_rope(rope_theta="10000"), "rope_theta"),
    "rope-llama3-no-low": (rope(low_freq_factor=None), "low_freq_factor"),
    "rope-llama3-equal-bands": (rope(low_freq_factor=4.0), "high_freq_factor"),
    "rope-llama3-original-zero": (rope(original_max_position_embeddings=0),
                                  "original_max_position_embeddings"),
    "rope-disagree": (new(rope_theta=5e5), "rope_theta"),  # rope_parameters says 1e4
    # sizes
    "layers-huge": (new(num_hidden_layers=10**12), "num_hidden_layers"),
    "layers-zero": (new(num_hidden_layers=0), "num_hidden_layers"),
    "layers-negative": (new(num_hidden_layers=-2), "num_hidden_layers"),
    "layers-fraction": (new(num_hidden_layers=2.5), "num_hidden_layers"),
    "layers-overflow": (new(num_hidden_layers=2**64), "num_hidden_layers"),
    "hidden-missing": (without("hidden_size"), "hidden_size"),
    "hidden-zero": (new(hidden_size=0), "hidden_size"),
    "hidden-negative": (new(hidden_size=-32), "hidden_size"),
    "hidden-string": (new(hidden_size="32"), "hidden_size"),
    "hidden-huge": (new(hidden_size=2**40), "hidden_size"),
    "intermediate-missing": (without("intermediate_size"), "intermediate_size"),
    "intermediate-negative": (new(intermediate_size=-88), "intermediate_size"),
    "heads-missing": (without("num_attention_heads"), "num_attention_heads"),
    "heads-zero": (NO_HEAD_DIM | {"num_attention_heads": 0}, "num_attention_heads"),
    "heads-not-dividing": (NO_HEAD_DIM | {"num_attention_heads": 6, "num_key_value_heads": 2},
                           "num_attention_heads"),
    "kv-heads-not-dividing": (new(num_key_value_heads=3), "num_key_value_heads"),
    "kv-heads-more": (new(num_key_value_heads=8), "num_key_value_heads"),
    "kv-heads-zero": (new(num_key_value_heads=0), "num_key_value_heads"),
    "head-dim-odd": (new(head_dim=7), "head_dim"),
    "head-dim-zero": (new(head_dim=0), "head_dim"),
    "head-dim-negative": (new(head_dim=-8), "head_dim"),
    "vocab-missing": (without("vocab_size"), "vocab_size"),
    "vocab-zero": (new(vocab_size=0), "vocab_size"),
    "vocab-negative": (new(vocab_size=-1), "vocab_size"),
    "vocab-beyond-int32": (new(vocab_size=2**31 + 1), "vocab_size"),
    "positions-zero": (new(max_position_embeddings=0), "max_position_embeddings"),
    # numbers and flags
    "eps-zero": (new(rms_norm_eps=0.0), "rms_norm_eps"),
    "eps-negative": (new(rms_norm_eps=-1e-5), "rms_norm_eps"),
    "eps-string": (new(rms_norm_eps="NaN"), "rms_norm_eps"),
    "eps-large": (new(rms_norm_eps=1e300), "rms_norm_eps"),  # infinite in float32
    "tie-string": (new(tie_word_embeddings="yes"), "tie_word_embeddings"),
    "attention-bias-number": (new(attention_bias=1), "attention_bias"),
    "mlp-bias-string": (new(mlp_bias="false"), "mlp_bias"),
}

# file: config
ACCEPT = {
    "new": NEW,
    "new-llama3": rope(),
    "new-linear": plain_rope(rope_type="linear", factor=2.5),
    "old": old(),
    "old-llama1": {k: v for k, v in old().items() if k not in (
        "attention_bias", "attention_dropout", "mlp_bias", "num_key_value_heads", "rope_theta",
        "rope_scaling", "pretraining_tp")} | {
            "_name_or_path": "llama-7b", "pad_token_id": -1},
    "old-linear": old() | {"rope_scaling": {"type": "linear", "factor": 2.5}},
    "old-llama3": old() | {"rope_scaling": without("rope_theta", LLAMA3), "rope_theta": 5e5},
    "old-bf16-eos-list": old() | {"torch_dtype": "bfloat16", "eos_token_id": [2, 7],
                                  "tie_word_embeddings": True},
    "head-dim": new(head_dim=10, attention_bias=True, mlp_bias=True),
    "head-dim-null": new(head_dim=None, num_key_value_heads=None),
    "heads-not-dividing-with-head-dim": new(num_attention_heads=6, head_dim=10,
                                            num_key_value_heads=3),
    # Splits products into two sums in transformers 4, ignored by 5: the same
    # mathematics. Early Llama 2 configs have it.
    "pretraining-tp": new(pretraining_tp=2),
    # Both styles at once, saying the same.
    "both": new(rope_theta=10000.0, torch_dtype="float32"),
}

PLAIN = dict(V=101, D=32, F=88, L=2, H=4, G=2, K=8, eps=1e-5, theta=10000.0, rope="default",
             tied=False, attention_bias=False, mlp_bias=False, dtype="float32", eos=[2])
BANDS = dict(rope="llama3", factor=8.0, low=1.0, high=4.0, original=32)
MEANS = {
    "new": {}, "old": {}, "pretraining-tp": {}, "both": {},
    "new-llama3": BANDS, "old-llama3": BANDS | {"theta": 5e5},
    "new-linear": dict(rope="linear", factor=2.5), "old-linear": dict(rope="linear", factor=2.5),
    "old-llama1": dict(G=4), "head-dim-null": dict(G=4),
    "old-bf16-eos-list": dict(dtype="bfloat16", eos=[2, 7], tied=True),
    "head-dim": dict(K=10, attention_bias=True, mlp_bias=True),
    "heads-not-dividing-with-head-dim": dict(H=6, G=3, K=10),
}


def by_transformers(c):
    """What transformers reads in a config, in the letters of MEANS."""
    x = LlamaConfig.from_dict(c)
    r = x.rope_parameters
    out = dict(V=x.vocab_size, D=x.hidden_size, F=x.intermediate_size, L=x.num_hidden_layers,
               H=x.num_attention_heads, G=x.num_key_value_heads, K=x.head_dim,
               eps=x.rms_norm_eps, theta=r["rope_theta"], rope=r["rope_type"],
               tied=x.tie_word_embeddings, attention_bias=x.attention_bias, mlp_bias=x.mlp_bias,
               dtype=str(x.dtype).replace("torch.", ""),
               eos=x.eos_token_id if isinstance(x.eos_token_id, list) else [x.eos_token_id])
    for ours, theirs in (("factor", "factor"), ("low", "low_freq_factor"),
                         ("high", "high_freq_factor"),
                         ("original", "original_max_position_embeddings")):
        if r.get(theirs) is not None:
            out[ours] = r[theirs]
    return out


def write(folder, files):
    path = os.path.join(HERE, folder)
    shutil.rmtree(path, ignore_errors=True)
    os.makedirs(path)
    for name, c in files.items():
        write_json(os.path.join(path, name + ".json"), c)
    return path


def main():
    path = write("refuse", {n: c for n, (c, _) in REFUSE.items()})
    with open(os.path.join(path, "duplicate-key.json"), "w", encoding="utf-8") as f:
        f.write(json.dumps(NEW, indent=1)[:-2] + ',\n "hidden_size": 64\n}\n')
    keys = {n: k for n, (_, k) in REFUSE.items()} | {"duplicate-key": "hidden_size"}
    write_json(os.path.join(path, "want.json"), {n + ".json": k for n, k in keys.items()})

    path = write("accept", ACCEPT)
    assert set(MEANS) == set(ACCEPT)
    means = {n: PLAIN | m for n, m in MEANS.items()}
    for n, c in ACCEPT.items():
        if n == "heads-not-dividing-with-head-dim":
            continue  # transformers 4 reads it, 5 does not
        got = by_transformers(c)
        assert got == means[n], (n, got, means[n])
    write_json(os.path.join(path, "want.json"), {n + ".json": m for n, m in means.items()})
    print(len(keys), "to refuse,", len(ACCEPT), "to accept")


if __name__ == "__main__":
    main()
