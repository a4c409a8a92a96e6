# SPDX-FileCopyrightText: 2026 The pleach authors
# SPDX-License-Identifier: Apache-2.0
"""Writes plans.json: what mergekit's planner makes of configurations.

    python plans.py > plans.json

Made with mergekit 0.1.5. The models are tiny; the file describes them, so that
the test can make them again. A plan is the tensors in the order in which mergekit
handles them: name, inputs with the names that they have in their files and
parameters, and parameters of the tensor.
"""
import json
import os
import sys
import tempfile

import torch
import yaml
from safetensors.torch import save_file

from mergekit.architecture import get_architecture_info
from mergekit.config import MergeConfiguration
from mergekit.io.tasks import GatherTensors, LoaderCache
from mergekit.merge import _model_out_config
from mergekit.options import MergeOptions
from mergekit.plan import MergePlanner

D, V = 16, 6


def llama(layers, head=True, extra=()):
    t = {"model.embed_tokens.weight": [V, D], "model.norm.weight": [D]}
    for i in range(layers):
        p = f"model.layers.{i}."
        for n in ("q", "k", "v", "o"):
            t[p + f"self_attn.{n}_proj.weight"] = [D, D]
        for n in ("gate", "up"):
            t[p + f"mlp.{n}_proj.weight"] = [2 * D, D]
        t[p + "mlp.down_proj.weight"] = [D, 2 * D]
        t[p + "input_layernorm.weight"] = [D]
        t[p + "post_attention_layernorm.weight"] = [D]
    if head:
        t["lm_head.weight"] = [V, D]
    for name in extra:
        t[name] = [D]
    return {
        "config": {
            "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": D, "intermediate_size": 2 * D,
            "num_attention_heads": 2, "num_hidden_layers": layers, "vocab_size": V, "tie_word_embeddings": not head,
        },
        "tensors": t,
    }


def qwen2(layers):
    m = llama(layers)
    m["config"].update(architectures=["Qwen2ForCausalLM"], model_type="qwen2")
    for i in range(layers):
        for n in ("q", "k", "v"):
            m["tensors"][f"model.layers.{i}.self_attn.{n}_proj.bias"] = [D]
    return m


def gemma2(layers):
    m = llama(layers, head=False)
    m["config"].update(architectures=["Gemma2ForCausalLM"], model_type="gemma2")
    for i in range(layers):
        for n in ("pre", "post"):
            m["tensors"][f"model.layers.{i}.{n}_feedforward_layernorm.weight"] = [D]
    return m


def gpt2(layers, prefix):
    t = {"wte.weight": [V, D], "wpe.weight": [8, D], "ln_f.weight": [D], "ln_f.bias": [D]}
    for i in range(layers):
        for n, a, b in (("attn.c_attn", D, 3 * D), ("attn.c_proj", D, D), ("mlp.c_fc", D, 4 * D), ("mlp.c_proj", 4 * D, D)):
            t[f"h.{i}.{n}.weight"], t[f"h.{i}.{n}.bias"] = [a, b], [b]
        for n in ("ln_1", "ln_2"):
            t[f"h.{i}.{n}.weight"] = t[f"h.{i}.{n}.bias"] = [D]
    return {
        "config": {
            "architectures": ["GPT2LMHeadModel"], "model_type": "gpt2", "n_embd": D, "n_head": 2, "n_layer": layers,
            "vocab_size": V, "n_positions": 8,
        },
        "tensors": {prefix + k: v for k, v in t.items()},
    }


def stablelm(layers):
    m = llama(layers)
    m["config"].update(architectures=["StableLmForCausalLM"], model_type="stablelm")
    t = m["tensors"]
    t["model.norm.bias"] = [D]
    for i in range(layers):
        for n in ("input", "post_attention"):
            t[f"model.layers.{i}.{n}_layernorm.bias"] = [D]
    return m


models = {
    "base": llama(4), "a": llama(4), "b": llama(4), "c": llama(4), "tied": llama(4, head=False),
    "deep1": llama(12), "deep2": llama(12), "org/wide": llama(4, extra=["model.rotary_emb.inv_freq"]),
    "qwen1": qwen2(3), "qwen2": qwen2(3), "gemma1": gemma2(2), "gemma2": gemma2(2),
    "gpt1": gpt2(2, "transformer."), "gpt2": gpt2(2, ""), "stable1": stablelm(2), "stable2": stablelm(2),
}

cases = {
    # The shapes of the examples that mergekit comes with.
    "fusion": "models: [{model: a}, {model: b}]\nmerge_method: arcee_fusion\nbase_model: a\ndtype: bfloat16\n",
    "two models and a base": """
models:
  - model: a
    parameters: {density: 0.5, weight: 0.5}
  - model: org/wide
    parameters: {density: 0.5, weight: 0.5}
merge_method: ties
base_model: base
parameters:
  normalize: false
  int8_mask: true
dtype: float16
""",
    "gradients of slerp": """
slices:
  - sources:
      - {model: deep1, layer_range: [0, 12]}
      - {model: deep2, layer_range: [0, 12]}
merge_method: slerp
base_model: deep1
parameters:
  t:
    - filter: self_attn
      value: [0, 0.5, 0.3, 0.7, 1]
    - filter: mlp
      value: [1, 0.5, 0.7, 0.3, 0]
    - value: 0.5 # for the rest
dtype: float16
""",
    "weights": """
models:
  - model: a
    parameters: {weight: 1.0}
  - model: b
    parameters: {weight: 0.3}
  - model: c
    parameters: {weight: 0.5}
merge_method: linear
dtype: float16
""",
    "layers of two": """
slices:
  - sources:
    - model: a
      layer_range: [0, 3]
  - sources:
    - model: b
      layer_range: [1, 4]
merge_method: passthrough
dtype: float16
""",
    "gradients and filters of ties": """
models:
  - model: a
    parameters:
      density: [1, 0.7, 0.1]
      weight: 1.0
  - model: b
    parameters:
      density: 0.5
      weight: [0, 0.3, 0.7, 1]
  - model: c
    parameters:
      density: 0.33
      weight:
        - filter: mlp
          value: 0.5
        - value: 0
merge_method: ties
base_model: base
parameters:
  normalize: true
  int8_mask: true
dtype: float16
""",
    # More.
    "precedence": """
slices:
  - sources:
      - {model: base, layer_range: [0, 1]}
      - {model: a, layer_range: [1, 2], parameters: {weight: [{filter: q_proj, value: 0.9}]}}
      - {model: b, layer_range: [2, 3]}
    parameters: {lambda: 0.5, weight: [{filter: k_proj, value: 0.8}]}
  - sources:
      - {model: base, layer_range: [0, 3]}
      - {model: b, layer_range: [1, 4], parameters: {weight: 0.25, lambda: 7}}
    parameters: {density: [0.2, 0.4]}
merge_method: dare_ties
base_model: base
parameters: {weight: 0.7, lambda: [1, 2], normalize: [{filter: norm, value: 1}, {value: 0}]}
""",
    "filters see both names": """
slices:
  - sources:
      - {model: base, layer_range: [0, 2]}
      - model: a
        layer_range: [2, 4]
        parameters: {weight: [{filter: layers.3, value: 0.3}, {filter: layers.0, value: 0.9}, {value: 0.1}]}
merge_method: task_arithmetic
base_model: base
parameters: {lambda: [{filter: layers.1., value: 0.5}, {filter: layers.3., value: 0.75}, {value: 1}]}
""",
    "heads": "models: [{model: tied, parameters: {weight: 1}}, {model: a, parameters: {weight: 2}}]\nmerge_method: linear\n",
    "no heads": "models: [{model: tied}]\nmerge_method: passthrough\n",
    "numbers in words": """
models: [{model: a, parameters: {weight: 1e-1, density: "0.5"}}, {model: b, parameters: {weight: yes, density: 0x1}}]
merge_method: dare_linear
base_model: base
parameters: {normalize: on, rescale: no, lambda: "1.5"}
""",
    "modules": """
modules:
  default:
    slices:
      - sources: [{model: a, layer_range: [0, 1]}, {model: b, layer_range: [3, 4]}]
    parameters: {weight: [0.2, 0.8], normalize: false}
merge_method: linear
parameters: {weight: 3, normalize: true}
""",
    "modules of models": """
modules: {default: {models: [{model: a}, {model: b}], parameters: {select_topk: 0.25}}}
merge_method: sce
base_model: base
""",
    "base in the middle": "models: [{model: a}, {model: base}, {model: b}]\nmerge_method: model_stock\nbase_model: base\n",
    "base of a slice": """
slices:
  - sources: [{model: a, layer_range: [0, 2]}, {model: b, layer_range: [0, 2]}]
    base_model: b
  - sources: [{model: a, layer_range: [2, 4]}, {model: b, layer_range: [2, 4]}]
merge_method: nearswap
base_model: a
parameters: {t: [0.1, 0.2]}
""",
    "scale": """
slices:
  - sources:
      - model: a
        layer_range: [0, 4]
        parameters: {scale: [{filter: o_proj, value: 0.0}, {filter: down_proj, value: [1, 0.5]}, {value: 1.0}]}
merge_method: passthrough
""",
    "sample of qwen": "models: [{model: qwen1, parameters: {weight: 1}}, {model: qwen2, parameters: {weight: [0, 1, 4]}}]\nmerge_method: linear\n",
    "sample of gemma": "models: [{model: gemma1}, {model: gemma2}]\nmerge_method: slerp\nbase_model: gemma1\nparameters: {t: 0.3}\n",
    "sample of gpt": "models: [{model: gpt1}, {model: gpt2}]\nmerge_method: karcher\nparameters: {tol: 1e-6}\n",
    "sample of stablelm": "models: [{model: stable1}, {model: stable2}]\nmerge_method: nuslerp\nparameters: {weight: 0.5}\n",
}


def write(where):
    for name, m in models.items():
        d = os.path.join(where, name)
        os.makedirs(d)
        with open(os.path.join(d, "config.json"), "w") as f:
            json.dump(m["config"], f)
        save_file({k: torch.zeros(s) for k, s in m["tensors"].items()}, os.path.join(d, "model.safetensors"))


def number(v):
    return None if v is None else float(v)


def plan(text):
    config = MergeConfiguration.model_validate(yaml.safe_load(text))
    options = MergeOptions()
    LoaderCache().setup(options)
    arch = get_architecture_info(config, options)
    planner = MergePlanner(config, arch, options, _model_out_config(config, arch))
    planner._plan()
    tensors = []
    for weight, task in planner._tensors:
        gather = task.gather_tensors
        assert isinstance(gather, GatherTensors)
        inputs = []
        for load in gather.arguments().values():
            name = load._resolve_name(LoaderCache().get(load.model))
            if name is None:
                assert load.optional
                continue
            pars = task.input_parameters.get(load.model, {})
            inputs.append([str(load.model), name, {k: number(v) for k, v in pars.items()}])
        order = [str(m) for m in task.model_order]
        inputs.sort(key=lambda x: order.index(x[0]))
        tensors.append({
            "name": weight.name, "inputs": inputs, "base": str(task.base_model) if task.base_model else "",
            "global": {k: number(v) for k, v in task.parameters.items()}, "label": task.group_label() or "",
        })
    tensors.sort(key=lambda t: t["label"])  # as the executor does; equal ones stay in the order of planning
    for t in tensors:
        del t["label"]
    return tensors


with tempfile.TemporaryDirectory() as where:
    write(where)
    os.chdir(where)
    made = {name: {"text": text, "tensors": plan(text)} for name, text in cases.items()}
lines = []
for name, c in made.items():
    ts = ",\n".join("   " + json.dumps(t) for t in c["tensors"])
    lines.append(f' {json.dumps(name)}: {{"text": {json.dumps(c["text"])}, "tensors": [\n{ts}]}}')
ms = ",\n".join(f"  {json.dumps(k)}: {json.dumps(v)}" for k, v in models.items())
sys.stdout.write('{"models": {\n' + ms + '},\n"cases": {\n' + ",\n".join(lines) + "}}\n")
