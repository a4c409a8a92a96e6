#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The pleach authors
# SPDX-License-Identifier: Apache-2.0
"""Makes tiny models and what mergekit merges of them.

    pip install mergekit==0.1.5
    python make.py

writes, beside itself,

    models/NAME/{config.json,model.safetensors}
    cases/NAME/{config.yml,expected.safetensors}
    versions.json

The models of a configuration are relative to this folder. Every merge is on the
CPU in one thread with --random-seed 42. No magnitude of a difference from the base occurs twice in a tensor, so that
methods that keep the largest ones have one answer.
"""

import importlib.metadata
import json
import os
import platform
import shutil
import sys
import tempfile

import numpy
import safetensors.torch
import torch
import transformers
from mergekit.scripts.run_yaml import main as mergekit_yaml

HERE = os.path.dirname(os.path.abspath(__file__))
HIDDEN, HEADS, KV, FFN, VOCAB, LAYERS = 16, 4, 2, 24, 48, 2
TYPES = {"f32": torch.float32, "bf16": torch.bfloat16, "f16": torch.float16}
NAMES = {"f32": "float32", "bf16": "bfloat16", "f16": "float16"}


def shapes():
    kv = HIDDEN // HEADS * KV
    yield "model.embed_tokens.weight", (VOCAB, HIDDEN)
    for i in range(LAYERS):
        p = f"model.layers.{i}."
        yield p + "input_layernorm.weight", (HIDDEN,)
        yield p + "self_attn.q_proj.weight", (HIDDEN, HIDDEN)
        yield p + "self_attn.k_proj.weight", (kv, HIDDEN)
        yield p + "self_attn.v_proj.weight", (kv, HIDDEN)
        yield p + "self_attn.o_proj.weight", (HIDDEN, HIDDEN)
        yield p + "post_attention_layernorm.weight", (HIDDEN,)
        yield p + "mlp.gate_proj.weight", (FFN, HIDDEN)
        yield p + "mlp.up_proj.weight", (FFN, HIDDEN)
        yield p + "mlp.down_proj.weight", (HIDDEN, FFN)
    yield "model.norm.weight", (HIDDEN,)
    yield "lm_head.weight", (VOCAB, HIDDEN)


def config(t, tied):
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_size": HIDDEN,
        "intermediate_size": FFN,
        "num_hidden_layers": LAYERS,
        "num_attention_heads": HEADS,
        "num_key_value_heads": KV,
        "vocab_size": VOCAB,
        "max_position_embeddings": 64,
        "rms_norm_eps": 1e-5,
        "rope_theta": 10000.0,
        "hidden_act": "silu",
        "bos_token_id": 1,
        "eos_token_id": 2,
        "tie_word_embeddings": tied,
        "torch_dtype": NAMES[t],
    }


def save(name, t, tensors, tied=False):
    folder = os.path.join(HERE, "models", f"{name}-{t}")
    os.makedirs(folder, exist_ok=True)
    safetensors.torch.save_file(
        tensors, os.path.join(folder, "model.safetensors"), metadata={"format": "pt"}
    )
    with open(os.path.join(folder, "config.json"), "w") as f:
        json.dump(config(t, tied), f, indent=2)
        f.write("\n")


def tuned(rng, base, low, high):
    """base plus noise, of 2^low to 2^high, whose rounded magnitudes are all different.

    bfloat16 has few numbers: the noise grows where none is left.
    """
    out, seen = [], set()
    for b in base.reshape(-1).split(1):
        top = high
        while True:
            d = rng.choice([-1, 1], 256) * 2.0 ** rng.uniform(low, top, 256)
            m = (b.float() + torch.tensor(d, dtype=torch.float32)).to(base.dtype)
            k = (m - b).abs().float().tolist()
            free = [i for i, x in enumerate(k) if x != 0 and x not in seen]
            if free:
                break
            top += 0.25
        seen.add(k[free[0]])
        out.append(m[free[0]])
    return torch.stack(out).reshape(base.shape)


def make_models():
    shutil.rmtree(os.path.join(HERE, "models"), ignore_errors=True)
    for t, dtype in TYPES.items():
        rng = numpy.random.default_rng(list(TYPES).index(t))
        base = {}
        for name, shape in shapes():
            x = rng.standard_normal(shape) * 0.03
            if name.endswith("norm.weight"):
                x = 1 + x
            base[name] = torch.tensor(x).to(dtype)
        save("base", t, base)
        for name, low, high in (("a", -13, -2), ("b", -12, -3), ("c", -14, 0)):
            save(name, t, {k: tuned(rng, v, low, high) for k, v in base.items()})
        if t == "f32":
            tied = {k: tuned(rng, v, -8, -4) for k, v in base.items()}
            del tied["lm_head.weight"]
            save("tied", t, tied, tied=True)


def listed(t, weights, **more):
    """The key models, with a weight and other parameters of each."""
    lines = ["models:"]
    for i, (name, w) in enumerate(weights.items()):
        lines += [f"  - model: models/{name}-{t}", "    parameters:"]
        if w is not None:
            lines.append(f"      weight: {w}")
        for key, values in more.items():
            lines.append(f"      {key}: {values[i]}")
        if lines[-1].endswith("parameters:"):
            lines.pop()
    return "\n".join(lines) + "\n"


def method(name, base=None, **parameters):
    lines = [f"merge_method: {name}"]
    if base:
        lines.append(f"base_model: models/base-{base}")
    if parameters:
        lines.append("parameters:")
        lines += [f"  {k.rstrip('_')}: {v}" for k, v in parameters.items()]
    return "\n".join(lines) + "\n"


# FILTERS is a slerp of the usual sort: gradients for two kinds of layers.
FILTERS = """parameters:
  t:
    - filter: self_attn
      value: [0, 0.5, 0.3, 0.7, 1]
    - filter: mlp
      value: [1, 0.5, 0.7, 0.3, 0]
    - value: 0.5
"""


def cases():
    """Names and configurations."""
    for t in TYPES:
        ab = listed(t, {"a": 0.3, "b": 0.7})
        abc = listed(t, {"a": 0.6, "b": 0.4, "c": 0.3})
        minus = listed(t, {"a": 1.1, "b": -0.5, "c": 0.3})
        plain = listed(t, {"a": None, "b": None, "c": None})
        a = listed(t, {"a": None})

        def dense(*d, **more):
            return listed(t, {"a": 0.6, "b": 0.4, "c": 0.3}, density=d, **more)

        yield f"linear-{t}", abc + method("linear")
        yield f"linear-plain-{t}", abc + method("linear", normalize="false")
        yield f"slerp-{t}", a + method("slerp", t, t=0.35)
        yield f"slerp-filters-{t}", a + method("slerp", t) + FILTERS
        for flat in (0, 1):
            for rows in (0, 1):
                p = {"nuslerp_flatten": bool(flat), "nuslerp_row_wise": bool(rows)}
                p = {k: str(v).lower() for k, v in p.items()}
                if not (flat and rows):
                    yield f"nuslerp-{flat}{rows}-{t}", ab + method("nuslerp", **p)
                    yield f"nuslerp-base-{flat}{rows}-{t}", ab + method("nuslerp", t, **p)
        yield f"multislerp-{t}", abc + method("multislerp")
        yield f"multislerp-base-{t}", abc + method("multislerp", t, normalize_weights="false")
        yield f"karcher-{t}", plain + method("karcher")
        yield f"karcher-base-{t}", plain + method("karcher", t, max_iter=5, tol="1.0e-3")
        yield f"task_arithmetic-{t}", abc + method("task_arithmetic", t, lambda_=0.7)
        yield f"task_arithmetic-normalize-{t}", minus + method("task_arithmetic", t, normalize="true")
        yield f"ties-{t}", dense(0.5, 0.3, 0.8) + method("ties", t)
        yield f"ties-plain-{t}", dense(0.5, 0.3, 0.8) + method(
            "ties", t, normalize="false", rescale="true", int8_mask="true", lambda_=1.2
        )
        yield f"ties-minus-{t}", minus + method("ties", t, density=0.4)
        yield f"breadcrumbs-{t}", dense(0.5, 0.9, 0.8, gamma=[0.01, 0.05, 0.3]) + method("breadcrumbs", t)
        yield f"breadcrumbs_ties-{t}", dense(0.5, 0.9, 0.8, gamma=[0.01, 0.05, 0.3]) + method(
            "breadcrumbs_ties", t, rescale="true", normalize="true"
        )
        yield f"dare_linear-{t}", dense(0.5, 0.3, 0.8) + method("dare_linear", t)
        yield f"dare_linear-plain-{t}", dense(0.5, 1, 0.8) + method("dare_linear", t, rescale="false")
        yield f"dare_ties-{t}", dense(0.5, 0.3, 0.8) + method("dare_ties", t)
        yield f"della-{t}", dense(0.5, 0.3, 0.8) + method("della", t)
        yield f"della_linear-{t}", dense(0.5, 0.3, 0.66, epsilon=[0.05, 0.15, 0.3]) + method(
            "della_linear", t, lambda_=0.5
        )
        yield f"model_stock-{t}", plain + method("model_stock", t)
        yield f"model_stock-filter_wise-{t}", plain + method("model_stock", t, filter_wise="true")
        yield f"sce-{t}", plain + method("sce", t)
        yield f"sce-topk-{t}", plain + method("sce", t, select_topk=0.5)
        yield f"ram-{t}", plain + method("ram", t, epsilon=0.01)
        yield f"ramplus_tl-{t}", plain + method("ramplus_tl", t, epsilon=0.01)
        yield f"nearswap-{t}", a + method("nearswap", t, t=0.01)
        yield f"arcee_fusion-{t}", a + method("arcee_fusion", t)
    yield "passthrough-scale-f32", listed(
        "f32", {"a": None}, scale=["\n        - filter: o_proj\n          value: 0\n        - value: 0.3"]
    ) + method("passthrough")
    yield "passthrough-scale-bf16", listed("bf16", {"a": None}, scale=[0.3]) + method("passthrough")
    yield "passthrough-stack-f32", (
        "merge_method: passthrough\nslices:\n"
        "  - sources:\n      - {model: models/a-f32, layer_range: [0, 2]}\n"
        "  - sources:\n      - model: models/b-f32\n        layer_range: [1, 2]\n"
        "        parameters:\n          scale:\n"
        "            - {filter: down_proj, value: 0.0}\n            - value: 1.0\n"
        "  - sources:\n      - {model: models/base-f32, layer_range: [0, 2]}\n"
    )
    yield "linear-slices-f32", (
        "merge_method: linear\nslices:\n"
        "  - sources:\n"
        "      - {model: models/a-f32, layer_range: [0, 1], parameters: {weight: 0.25}}\n"
        "      - {model: models/b-f32, layer_range: [1, 2], parameters: {weight: 0.5}}\n"
        "  - sources:\n"
        "      - {model: models/b-f32, layer_range: [0, 2], parameters: {weight: [0, 1]}}\n"
        "      - {model: models/c-f32, layer_range: [0, 2]}\n"
        "    parameters: {normalize: false}\n"
        "parameters: {weight: 0.75}\n"
    )
    yield "linear-gradient-f32", (
        "merge_method: linear\nmodels:\n"
        "  - model: models/a-f32\n    parameters:\n      weight:\n"
        "        - {filter: mlp, value: [0.1, 0.9]}\n"
        "        - {filter: self_attn, value: 0.25}\n"
        "  - model: models/b-f32\n    parameters: {weight: 0.5}\n"
        "parameters:\n  weight: 0.125\n"
    )
    yield "linear-tied-f32", (
        "merge_method: linear\nmodels:\n"
        "  - {model: models/a-f32, parameters: {weight: 0.5}}\n"
        "  - {model: models/tied-f32, parameters: {weight: 0.5}}\n"
    )
    yield "linear-to-bf16", listed("f32", {"a": 0.3, "b": 0.7}) + method("linear") + "out_dtype: bfloat16\n"
    yield "linear-to-f16", listed("bf16", {"a": 0.3, "b": 0.7}) + method("linear") + "out_dtype: float16\n"
    yield "linear-as-bf16", listed("f32", {"a": 0.3, "b": 0.7}) + method("linear") + "dtype: bfloat16\n"
    yield "ties-as-f32", listed("bf16", {"a": 0.6, "b": 0.4}) + method(
        "ties", "bf16", density=0.5
    ) + "dtype: float32\nout_dtype: bfloat16\n"
    yield "task_arithmetic-as-bf16-to-f32", listed("f32", {"a": 0.6, "b": 0.4}) + method(
        "task_arithmetic", "f32"
    ) + "dtype: bfloat16\nout_dtype: float32\n"
    # Types that differ among the inputs.
    mixed = (
        "models:\n"
        "  - {model: models/a-f32, parameters: {weight: 0.6}}\n"
        "  - {model: models/b-bf16, parameters: {weight: 0.4}}\n"
    )
    halves = mixed.replace("a-f32", "a-f16")
    yield "linear-mixed", mixed + method("linear")
    yield "linear-halves", halves + method("linear")
    yield "task_arithmetic-mixed", mixed + method("task_arithmetic", "bf16")
    yield "task_arithmetic-halves", halves + method("task_arithmetic", "bf16")
    yield "model_stock-mixed", mixed.replace(", parameters: {weight: 0.6}", "").replace(
        ", parameters: {weight: 0.4}", ""
    ) + method("model_stock", "bf16")


def make_case(name, text):
    folder = os.path.join(HERE, "cases", name)
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, "config.yml")
    with open(path, "w") as f:
        f.write(text)
    with tempfile.TemporaryDirectory() as out:
        mergekit_yaml.main(
            [path, out, "--random-seed", "42", "--no-copy-tokenizer", "--no-write-model-card", "--quiet"],
            standalone_mode=False,
        )
        file = os.path.join(out, "model.safetensors")
        if not os.path.exists(file):
            file = os.path.join(out, "model-00001-of-00001.safetensors")
        merged = safetensors.torch.load_file(file)
    for k, v in merged.items():
        if not torch.isfinite(v).all():
            print(f"{name}: {k} is not finite", file=sys.stderr)
    safetensors.torch.save_file(merged, os.path.join(folder, "expected.safetensors"))


def main():
    os.chdir(HERE)
    torch.set_num_threads(1)
    make_models()
    shutil.rmtree(os.path.join(HERE, "cases"), ignore_errors=True)
    failed = 0
    for name, text in cases():
        try:
            make_case(name, text)
        except Exception as e:  # report every case
            failed += 1
            shutil.rmtree(os.path.join(HERE, "cases", name), ignore_errors=True)
            print(f"{name}: {type(e).__name__}: {e}", file=sys.stderr)
    with open("versions.json", "w") as f:
        json.dump(
            {
                "mergekit": importlib.metadata.version("mergekit"),
                "torch": torch.__version__,
                "transformers": transformers.__version__,
                "numpy": numpy.__version__,
                "safetensors": safetensors.__version__,
                "python": platform.python_version(),
                "machine": platform.machine(),
                "cpu_capability": torch.backends.cpu.get_cpu_capability(),
            },
            f,
            indent=2,
        )
        f.write("\n")
    return int(failed != 0)


if __name__ == "__main__":
    sys.exit(main())
