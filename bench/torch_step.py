# SPDX-FileCopyrightText: 2026 The pleach authors
# SPDX-License-Identifier: Apache-2.0

"""What `pleach bench step` measures, in PyTorch: the peer that pleach is compared with.

The same architecture, sizes, optimizer and count of FLOPs, written as a careful user would write
them: products of fused weights, scaled_dot_product_attention, the fused AdamW, torch.compile on
request. Prints one JSON object with the keys of `pleach bench step --json`. peak_gflops is 0:
PyTorch has no loop that would show it.

Precisions have pleach's names. "mixed" is autocast to bfloat16 around the forward pass of a model
in float32, "bf16-sr" a model in bfloat16 whose AdamW rounds to nearest: PyTorch has no stochastic
rounding, which would cost it more.

    python bench/torch_step.py --config d512 --threads 2 --compile
    python bench/torch_step.py --config d512 --threads 2 --compile --precision mixed
"""

import argparse
import json
import resource
import statistics
import sys
import time
from typing import NamedTuple

import torch
from torch import nn
from torch.nn import functional


class Shape(NamedTuple):
    """An architecture. Letters as in docs/shapes.md."""

    layers: int
    width: int
    heads: int
    key_heads: int
    ffn: int
    words: int

    @property
    def head_width(self):
        return self.width // self.heads


SHAPES = {
    "quick": Shape(layers=4, width=256, heads=4, key_heads=4, ffn=688, words=4096),
    "d512": Shape(layers=8, width=512, heads=8, key_heads=8, ffn=1376, words=32000),
    "d1024": Shape(layers=12, width=1024, heads=16, key_heads=4, ffn=2816, words=32000),
}


def matrix(rows, columns):
    return nn.Parameter(torch.empty(rows, columns).normal_(std=0.02))


def normed(x, weight):
    return functional.rms_norm(x, weight.shape, weight, 1e-5)


def angles(positions, width, dtype, theta=10_000.0):
    """The rotations of RoPE, [positions, width/2]: cosines and sines."""
    step = torch.arange(0, width, 2, dtype=torch.float64) / width
    phi = torch.arange(positions, dtype=torch.float64)[:, None] * theta**-step
    return phi.cos().to(dtype), phi.sin().to(dtype)


def rotated(x, cos, sin):
    """Element i of a head turns with element i + width/2."""
    first, second = x.chunk(2, dim=-1)
    return torch.cat([first * cos - second * sin, first * sin + second * cos], dim=-1)


class Layer(nn.Module):
    def __init__(self, shape):
        super().__init__()
        self.shape = shape
        fused = (shape.heads + 2 * shape.key_heads) * shape.head_width
        self.attention_norm = nn.Parameter(torch.ones(shape.width))
        self.qkv = matrix(fused, shape.width)
        self.out = matrix(shape.width, shape.width)
        self.ffn_norm = nn.Parameter(torch.ones(shape.width))
        self.gate_up = matrix(2 * shape.ffn, shape.width)
        self.down = matrix(shape.width, shape.ffn)

    def attended(self, x, rotation):
        shape = self.shape
        rows, length, _ = x.shape
        groups = functional.linear(x, self.qkv).view(rows, length, -1, shape.head_width).transpose(1, 2)
        q, k, v = groups.split([shape.heads, shape.key_heads, shape.key_heads], dim=1)
        mixed = functional.scaled_dot_product_attention(
            rotated(q, *rotation),
            rotated(k, *rotation),
            v,
            is_causal=True,
            enable_gqa=shape.heads != shape.key_heads,
        )
        return functional.linear(mixed.transpose(1, 2).flatten(2), self.out)

    def gated(self, x):
        gate, up = functional.linear(x, self.gate_up).chunk(2, dim=-1)
        return functional.linear(functional.silu(gate) * up, self.down)

    def forward(self, x, rotation):
        x = x + self.attended(normed(x, self.attention_norm), rotation)
        return x + self.gated(normed(x, self.ffn_norm))


class Model(nn.Module):
    def __init__(self, shape):
        super().__init__()
        self.shape = shape
        self.embedding = matrix(shape.words, shape.width)
        self.layers = nn.ModuleList(Layer(shape) for _ in range(shape.layers))
        self.last_norm = nn.Parameter(torch.ones(shape.width))
        self.head = matrix(shape.words, shape.width)

    def forward(self, ids, labels, rotation):
        x = functional.embedding(ids, self.embedding)
        for layer in self.layers:
            x = layer(x, rotation)
        logits = functional.linear(normed(x, self.last_norm), self.head)
        return functional.cross_entropy(logits.flatten(0, 1).float(), labels.flatten())


def step_flops(shape, parameters, rows, seq):
    """As pleach counts: see docs/bench.md."""
    tokens = rows * seq
    products = 6 * (parameters - shape.words * shape.width) * tokens
    return products + 6 * shape.layers * tokens * seq * shape.width


def arguments():
    parse = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parse.add_argument("--config", choices=SHAPES, default="d512")
    parse.add_argument("--precision", choices=["f32", "mixed", "bf16-sr"], default="f32")
    parse.add_argument("--threads", type=int, default=torch.get_num_threads())
    parse.add_argument("--rows", type=int, default=4)
    parse.add_argument("--seq", type=int, default=512)
    parse.add_argument("--steps", type=int, default=8, help="to take the median of, after two")
    parse.add_argument("--compile", action="store_true")
    return parse.parse_args()


def peak_rss():
    """Bytes: the system counts KiB, macOS bytes."""
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def main():
    args = arguments()
    torch.set_num_threads(args.threads)
    torch.manual_seed(0)
    shape = SHAPES[args.config]
    model = Model(shape)
    parameters = sum(p.numel() for p in model.parameters())
    computes = torch.float32 if args.precision == "f32" else torch.bfloat16
    if args.precision == "bf16-sr":
        model = model.to(torch.bfloat16)
    rotation = angles(args.seq, shape.head_width, computes)
    loss_of = torch.compile(model) if args.compile else model
    adamw = torch.optim.AdamW(model.parameters(), lr=3e-4, betas=(0.9, 0.95), weight_decay=0.1, fused=True)

    seconds = []
    for _ in range(2 + args.steps):
        row = torch.randint(shape.words, (args.rows, args.seq + 1))
        ids, labels = row[:, :-1].contiguous(), row[:, 1:].contiguous()
        began = time.perf_counter()
        with torch.autocast("cpu", torch.bfloat16, enabled=args.precision == "mixed"):
            loss = loss_of(ids, labels, rotation)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        adamw.step()
        adamw.zero_grad(set_to_none=True)
        seconds.append(time.perf_counter() - began)

    counted = seconds[2:]
    median = statistics.median(counted)
    report = {
        "config": args.config,
        "precision": args.precision,
        "threads": args.threads,
        "tokens_per_second": args.rows * args.seq / median,
        "gflops": step_flops(shape, parameters, args.rows, args.seq) / median / 1e9,
        "peak_gflops": 0,
        "peak_rss_bytes": peak_rss(),
        "bench": "step",
        "version": "PyTorch " + torch.__version__ + (" compiled" if args.compile else ""),
        "parameters": parameters,
        "rows": args.rows,
        "seq": args.seq,
        "steps": args.steps,
        "first_step_seconds": seconds[0],
        "step_seconds": median,
        "best_step_seconds": min(counted),
        "loss": loss.item(),
    }
    print(json.dumps(report))


if __name__ == "__main__":
    main()
