# SPDX-FileCopyrightText: 2026 The pleach authors
# SPDX-License-Identifier: Apache-2.0

"""What the golden scripts share: tiny Llama models with random weights, and
two float64 references of them.

as_is:  model.double(), nothing else. transformers then still computes in
        float32 the mean square and the scaling of RMSNorm, and the
        frequencies, angles, cosines and sines of RoPE (it casts them up
        afterwards). This is what a user of transformers gets.
exact:  the same model with those two pieces in float64 as well. A float64
        oracle may be compared with it at 1e-9.

Everything is a function of the seeds written in the scripts, one thread.
"""

import json
import math
import os
import random
import shutil

import torch
import transformers
from transformers import LlamaConfig, LlamaForCausalLM
from transformers.models.llama import modeling_llama

HERE = os.path.dirname(os.path.abspath(__file__))

torch.set_num_threads(1)
torch.use_deterministic_algorithms(True)
transformers.logging.set_verbosity_error()
transformers.logging.disable_progress_bar()


def randomize(model, seed, matrix=0.2, embed=0.3, norm=0.2, bias=0.2):
    """Draws every parameter anew: normal matrices, embeddings and biases with
    the given standard deviations, norms uniform in 1 ± norm. q and k get 1.5
    times the spread so that attention is far from uniform."""
    g = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, p in model.named_parameters():
            if "norm" in name:
                p.copy_(1 + norm * (2 * torch.rand(p.shape, generator=g) - 1))
                continue
            std = matrix
            if "embed" in name or "lm_head" in name:
                std = embed
            elif name.endswith("bias"):
                std = bias
            elif "q_proj" in name or "k_proj" in name:
                std = 1.5 * matrix
            p.copy_(std * torch.randn(p.shape, generator=g))
    return model


def save(model, path, **kwargs):
    """save_pretrained into an empty directory, without generation_config."""
    shutil.rmtree(path, ignore_errors=True)
    os.makedirs(path)
    model.save_pretrained(path, **kwargs)
    extra = os.path.join(path, "generation_config.json")
    if os.path.exists(extra):
        os.remove(extra)
    for f in os.listdir(path):
        os.chmod(os.path.join(path, f), 0o644)


class ExactNorm(torch.nn.Module):
    def __init__(self, norm):
        super().__init__()
        self.weight, self.eps = norm.weight, norm.variance_epsilon

    def forward(self, x):
        return self.weight * (x / torch.sqrt(x.pow(2).mean(-1, keepdim=True) + self.eps))


class ExactRotary(torch.nn.Module):
    """Frequencies, angles and tables in float64, from the numbers in the
    config: theta^(-2i/K), divided by the factor (linear), or by bands of the
    wavelength (llama3)."""

    def __init__(self, config):
        super().__init__()
        r = config.rope_parameters
        K = config.head_dim
        f = [r["rope_theta"] ** (-2 * i / K) for i in range(K // 2)]
        if r["rope_type"] == "linear":
            f = [x / r["factor"] for x in f]
        elif r["rope_type"] == "llama3":
            f = [self.llama3(x, r) for x in f]
        else:
            assert r["rope_type"] == "default"
        self.inv_freq = torch.tensor(f, dtype=torch.float64)

    @staticmethod
    def llama3(x, r):
        turns = r["original_max_position_embeddings"] * x / (2 * math.pi)
        lo, hi = r["low_freq_factor"], r["high_freq_factor"]
        if turns < lo:
            return x / r["factor"]
        if turns > hi:
            return x
        s = (turns - lo) / (hi - lo)
        return (1 - s) * x / r["factor"] + s * x

    def forward(self, x, position_ids):
        a = position_ids[..., None].double() * self.inv_freq
        a = torch.cat((a, a), dim=-1)
        return a.cos(), a.sin()


def exact(model):
    """Replaces the float32 pieces of a double model, in place."""
    model.model.rotary_emb = ExactRotary(model.config)
    for parent in list(model.modules()):
        for name, child in list(parent.named_children()):
            if isinstance(child, modeling_llama.LlamaRMSNorm):
                setattr(parent, name, ExactNorm(child))
    return model


def load64(path, kind, config=None):
    """The model of a directory in float64, from the values as stored (bf16
    values are exact in float64). kind is as_is or exact."""
    m = LlamaForCausalLM.from_pretrained(
        path, config=config, dtype="auto", attn_implementation="sdpa")
    m = m.double().eval()
    return exact(m) if kind == "exact" else m


@torch.no_grad()
def log_probs(model, ids):
    """[N,V] float64: row i is the distribution of the id after ids[:i+1]."""
    logits = model(torch.tensor([ids])).logits[0]
    assert logits.dtype == torch.float64
    return torch.log_softmax(logits, dim=-1)


def write_json(path, value):
    with open(path, "w", encoding="utf-8") as f:
        json.dump(value, f, indent=1)
        f.write("\n")


def write_lines(path, values):
    with open(path, "w", encoding="utf-8") as f:
        for v in values:
            f.write(json.dumps(v, separators=(",", ":")) + "\n")


def read_lines(path):
    with open(path, encoding="utf-8") as f:
        return [json.loads(line) for line in f]


def style4(path):
    """Rewrites config.json in the keys of transformers 4 as config4.json:
    rope_theta and rope_scaling instead of rope_parameters, torch_dtype
    instead of dtype, and without the keys that older files do not have where
    their default says the same."""
    with open(os.path.join(path, "config.json"), encoding="utf-8") as f:
        c = json.load(f)
    r = c.pop("rope_parameters")
    c["rope_theta"] = r.pop("rope_theta")
    kind = r.pop("rope_type")
    if kind == "default":
        c["rope_scaling"] = None
    elif kind == "linear":
        c["rope_scaling"] = {"type": kind, **r}  # the key before rope_type
    else:
        c["rope_scaling"] = {**r, "rope_type": kind}
    c["torch_dtype"] = c.pop("dtype")
    if c["head_dim"] * c["num_attention_heads"] == c["hidden_size"]:
        del c["head_dim"]
    if c["num_key_value_heads"] == c["num_attention_heads"]:
        del c["num_key_value_heads"]
    for k in ("attention_bias", "mlp_bias"):
        if not c[k]:
            del c[k]
    if c["rope_theta"] == 10000.0 and kind == "default":
        del c["rope_theta"], c["rope_scaling"]
    del c["pad_token_id"]
    c["transformers_version"] = "4.45.2"
    write_json(os.path.join(path, "config4.json"), dict(sorted(c.items())))
    return LlamaConfig.from_json_file(os.path.join(path, "config4.json"))
