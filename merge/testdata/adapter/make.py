# SPDX-FileCopyrightText: 2026 The pleach authors
# SPDX-License-Identifier: Apache-2.0
"""Makes the folders of this one: models, adapters, and what PEFT makes of them.

NAME/base       a model
NAME/lora       an adapter
NAME/merged     the tensors of the model with the adapter merged, if they are others

python make.py    (peft 0.21.2, transformers 5.23, torch 2.15, safetensors 0.8.0)
"""
import json
import os
import shutil

import torch
from peft import LoraConfig, PeftModel, get_peft_model
from safetensors.torch import load_file, save_file
from transformers import GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM

here = os.path.dirname(os.path.abspath(__file__))
torch.manual_seed(7)


def llama(dtype, **kw):
    return LlamaForCausalLM(LlamaConfig(
        vocab_size=24, hidden_size=16, intermediate_size=20, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, **kw)).to(dtype)


def gpt2(dtype):
    return GPT2LMHeadModel(GPT2Config(vocab_size=24, n_positions=8, n_embd=12, n_layer=1, n_head=2)).to(dtype)


def randomize(model):
    with torch.no_grad():
        for p in model.parameters():
            p.copy_(torch.randn(p.shape) * 0.5)


def case(name, model, as_bin=False, adapter_dtype=None, **kw):
    out = os.path.join(here, name)
    shutil.rmtree(out, ignore_errors=True)
    base, lora, merged = (os.path.join(out, d) for d in ("base", "lora", "merged"))
    randomize(model)
    model.save_pretrained(base)
    if os.path.exists(os.path.join(base, "generation_config.json")):
        os.remove(os.path.join(base, "generation_config.json"))
    peft = get_peft_model(model, LoraConfig(task_type="CAUSAL_LM", **kw), autocast_adapter_dtype=False)
    with torch.no_grad():
        for n, p in peft.named_parameters():
            if "lora_" in n or "modules_to_save" in n or (kw.get("bias") == "all" and n.endswith("bias")):
                p.copy_(torch.randn(p.shape) * 0.3)
    peft.save_pretrained(lora)
    os.remove(os.path.join(lora, "README.md"))
    with open(os.path.join(lora, "adapter_config.json")) as f:
        config = json.load(f)
    config["base_model_name_or_path"] = "base"
    for k, v in config.items():
        if isinstance(v, list) and v and isinstance(v[0], str):
            config[k] = sorted(v)
    with open(os.path.join(lora, "adapter_config.json"), "w") as f:
        json.dump(config, f, indent=2)
    file = os.path.join(lora, "adapter_model.safetensors")
    tensors = load_file(file)
    if adapter_dtype:
        tensors = {k: v.to(adapter_dtype) for k, v in tensors.items()}
        save_file(tensors, file, metadata={"format": "pt"})
    fresh = type(model).from_pretrained(base, dtype="auto")
    before = {k: v.clone() for k, v in fresh.state_dict().items()}
    after = PeftModel.from_pretrained(fresh, lora).merge_and_unload().state_dict()
    changed = {k: v.contiguous().clone() for k, v in after.items() if k not in before or not torch.equal(v, before[k])}
    os.makedirs(merged)
    save_file(changed, os.path.join(merged, "model.safetensors"), metadata={"format": "pt"})
    if as_bin:
        torch.save(tensors, os.path.join(lora, "adapter_model.bin"))
        os.remove(file)


f32, f16, bf16 = torch.float32, torch.float16, torch.bfloat16
case("plain", llama(f32), r=4, lora_alpha=8, target_modules=["q_proj", "v_proj"])
case("bf16", llama(bf16), r=3, lora_alpha=5, target_modules="all-linear", adapter_dtype=f32)
case("f16-bin", llama(f16), as_bin=True, r=2, lora_alpha=3, target_modules=["down_proj"], adapter_dtype=bf16)
case("patterns", llama(f32), r=4, lora_alpha=8, use_rslora=True, target_modules=["q_proj", "k_proj", "v_proj", "up_proj"],
     rank_pattern={"layers.1.self_attn.v_proj": 3, "q_proj": 2, "proj": 6},
     alpha_pattern={r"^model\.layers\.\d+\.mlp.*": 32, "[qk]_proj": 1.5, "model.layers.0.self_attn.q_proj": 5})
case("embeddings", llama(f32), r=4, lora_alpha=2, target_modules=["embed_tokens", "lm_head", "o_proj"])
case("embeddings-bf16", llama(bf16), r=4, lora_alpha=2, target_modules=["embed_tokens"], adapter_dtype=f32)
case("modules", llama(bf16), r=2, lora_alpha=2, target_modules=["gate_proj"], modules_to_save=["lm_head", "norm"],
     adapter_dtype=f32)
case("biases", llama(f32, attention_bias=True), r=2, lora_alpha=2, target_modules=["q_proj", "o_proj"], bias="all")
case("gpt2", gpt2(f32), r=2, lora_alpha=4, target_modules=["c_attn", "c_proj", "c_fc"], fan_in_fan_out=True)
