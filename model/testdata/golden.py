# SPDX-FileCopyrightText: 2026 The pleach authors
# SPDX-License-Identifier: Apache-2.0
"""Writes golden.json: three training steps of small Llamas by PyTorch, float64.

Autograd, torch.optim.AdamW, clip_grad_norm_ and scaled_dot_product_attention
are PyTorch's; weights and rows are formulas that golden_test.go and run_test.go
repeat; parameters have the names and shapes of model files. Rotary frequencies
are computed here, because transformers rounds them to float32.

    python golden.py > golden.json
"""
import json
import math
import sys

import torch
import torch.nn.functional as nn

torch.set_default_dtype(torch.float64)
ROWS, T, STEPS, CLIP = 4, 6, 3, 0.8


def start(name, shape):
    h = 0
    for c in name.encode():
        h = (h * 31 + c) % 1009
    out = []
    for i in range(math.prod(shape)):
        n = float((i + h + 1) * (i + h + 1) % 100003) * 0.6180339887498949
        x = n - math.floor(n) - 0.5
        if name.endswith("norm.weight"):
            x = 1 + 0.5 * x
        elif name.endswith(".bias"):
            x *= 0.5
        out.append(x)
    return torch.tensor(out).reshape(shape).requires_grad_()


def parameters(c):
    shapes = {"model.embed_tokens.weight": (c["V"], c["D"])}
    for i in range(c["L"]):
        at = f"model.layers.{i}."
        shapes[at + "input_layernorm.weight"] = shapes[at + "post_attention_layernorm.weight"] = (c["D"],)
        dense = {
            "self_attn.q_proj": (c["H"] * c["K"], c["D"]), "self_attn.k_proj": (c["G"] * c["K"], c["D"]),
            "self_attn.v_proj": (c["G"] * c["K"], c["D"]), "self_attn.o_proj": (c["D"], c["H"] * c["K"]),
            "mlp.gate_proj": (c["F"], c["D"]), "mlp.up_proj": (c["F"], c["D"]), "mlp.down_proj": (c["D"], c["F"]),
        }
        for name, shape in dense.items():
            shapes[at + name + ".weight"] = shape
            if c["attention_bias"] and "attn" in name or c["mlp_bias"] and "mlp" in name:
                shapes[at + name + ".bias"] = shape[:1]
    shapes["model.norm.weight"] = (c["D"],)
    if not c["tied"]:
        shapes["lm_head.weight"] = (c["V"], c["D"])
    return {name: start(name, shape) for name, shape in shapes.items()}


def frequencies(c):
    f = c["theta"] ** (-torch.arange(0, c["K"], 2) / c["K"])
    r = c["rope"]
    if r["type"] == "linear":
        return f / r["factor"]
    if r["type"] == "llama3":
        wave = 2 * math.pi / f
        ramp = (r["original"] / wave - r["low"]) / (r["high"] - r["low"])
        mixed = (1 - ramp) * f / r["factor"] + ramp * f
        f = torch.where(wave > r["original"] / r["low"], f / r["factor"],
                        torch.where(wave < r["original"] / r["high"], f, mixed))
    return f


def rotate(x, positions, f):  # x [R,heads,T,K], positions [R,T]
    angle = positions[:, None, :, None] * f  # [R,1,T,K/2]
    a, b = x.chunk(2, -1)
    return torch.cat([a * angle.cos() - b * angle.sin(), b * angle.cos() + a * angle.sin()], -1)


def norm(x, w, eps):
    return w * (x / torch.sqrt((x * x).mean(-1, keepdim=True) + eps))


def rows(V):
    tokens = [[(5 * r + 2 * i + i * i + 3) % V for i in range(T)] for r in range(ROWS)]
    labels = [[-1 if (2 * r + i) % 7 == 0 else (3 * r + i * i * i + 2) % V for i in range(T)] for r in range(ROWS)]
    starts = [{0, r + 2, 5 - r} for r in range(ROWS)]
    positions, document = [], []
    for r in range(ROWS):
        p, d, ps, ds = 0, -1, [], []
        for i in range(T):
            if i in starts[r]:
                p, d = 0, d + 1
            ps.append(p)
            ds.append(d)
            p += 1
        positions.append(ps)
        document.append(ds)
    return torch.tensor(tokens), torch.tensor(labels), torch.tensor(positions), torch.tensor(document)


def loss_sum(p, c, tokens, labels, positions, document):
    H, G, K, eps, f = c["H"], c["G"], c["K"], c["eps"], frequencies(c)
    seen = (document[:, :, None] == document[:, None, :]) & torch.ones(T, T, dtype=torch.bool).tril()

    def dense(name, x):
        return nn.linear(x, p[name + ".weight"], p.get(name + ".bias"))

    x = nn.embedding(tokens, p["model.embed_tokens.weight"])
    for i in range(c["L"]):
        at = f"model.layers.{i}."
        h = norm(x, p[at + "input_layernorm.weight"], eps)
        q, k, v = (dense(at + f"self_attn.{n}_proj", h).unflatten(-1, (-1, K)).transpose(1, 2) for n in "qkv")
        o = nn.scaled_dot_product_attention(
            rotate(q, positions, f), rotate(k, positions, f).repeat_interleave(H // G, 1),
            v.repeat_interleave(H // G, 1), attn_mask=seen[:, None])
        x = x + dense(at + "self_attn.o_proj", o.transpose(1, 2).flatten(2))
        h = norm(x, p[at + "post_attention_layernorm.weight"], eps)
        x = x + dense(at + "mlp.down_proj", nn.silu(dense(at + "mlp.gate_proj", h)) * dense(at + "mlp.up_proj", h))
    head = p["model.embed_tokens.weight" if c["tied"] else "lm_head.weight"]
    logits = norm(x, p["model.norm.weight"], eps) @ head.T
    return nn.cross_entropy(logits.flatten(0, 1), labels.flatten(), ignore_index=-1, reduction="sum")


def train(c):
    p = parameters(c)
    plain = [w for n, w in p.items() if c["spare"] and (n.endswith("norm.weight") or n.endswith(".bias"))]
    decayed = [w for w in p.values() if not any(w is q for q in plain)]
    groups = [{"params": g, "weight_decay": d} for g, d in ((decayed, 0.1), (plain, 0.0)) if g]
    adam = torch.optim.AdamW(groups, betas=(0.9, 0.95), eps=1e-6, foreach=False)
    batch = rows(c["V"])
    count = int((batch[1] >= 0).sum())
    out = {"config": c, "loss": [], "norm": []}
    for step in range(1, STEPS + 1):
        adam.zero_grad()
        total = loss_sum(p, c, *batch)
        total.backward()
        if step == 1:
            out["grads"] = {n: listed(w.grad) for n, w in p.items()}
        for w in p.values():
            w.grad /= count
        out["loss"].append(total.item() / count)
        out["norm"].append(torch.nn.utils.clip_grad_norm_(p.values(), CLIP).item())
        for g in adam.param_groups:
            g["lr"] = 0.01 * step
        adam.step()
    out["weights"] = {n: listed(w.detach()) for n, w in p.items()}
    return out


def listed(x):
    return [float(f"{v:.14g}") for v in x.flatten().tolist()]


BASE = dict(L=2, D=6, H=4, G=2, K=4, F=8, V=11, eps=1e-5, theta=100.0, tied=False, attention_bias=False,
            mlp_bias=False, spare=True, rope={"type": "default"})
CASES = [
    dict(BASE),
    dict(BASE, tied=True, attention_bias=True, mlp_bias=True,
         rope={"type": "llama3", "factor": 8.0, "low": 1.0, "high": 4.0, "original": 16.0}),
    dict(BASE, L=1, G=4, K=6, attention_bias=True, spare=False, rope={"type": "linear", "factor": 2.5}),
]
json.dump([train(c) for c in CASES], sys.stdout)
