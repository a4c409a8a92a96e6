#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The pleach authors
# SPDX-License-Identifier: Apache-2.0
"""Makes tables.jsonl.gz: random tensors and what mergekit's methods make of them.

    pip install mergekit==0.1.5
    python tables.py

Lines are objects: {"set", "shape", "type", "data"}, inputs by the name of a set, the
base first, and {"method", "set", "inputs", "base", "global", "per", "type", "step",
"out"}, a merge of some of them, of which every step-th element is written, with the
generator seeded with 42. Data are base64 of
little-endian numbers of the type. Made with mergekit 0.1.5, torch 2.15.0 on x86-64
with AVX-512, one thread.
"""

import base64
import gzip
import json

import numpy
import torch
from mergekit.merge_methods import registry
from mergekit.merge_methods.base import TensorGroup

TYPES = {"f32": torch.float32, "bf16": torch.bfloat16, "f16": torch.float16}
SHAPES = [(1,), (100,), (24, 33), (7, 3), (1, 21), (21, 1), (4, 6, 17)]
# Of more elements, where the levels of sums matter, and with equal magnitudes.
LARGE = [(70, 150), (300, 37)]
STEP = 17


def encoded(x):
    x = x.contiguous()
    x = x.view(torch.int16) if x.dtype != torch.float32 else x.view(torch.int32)
    return base64.b64encode(x.numpy().tobytes()).decode()


def tuned(rng, base, unique):
    """base plus noise of many sizes, of different magnitudes if unique."""
    if not unique:
        d = rng.choice([-1, 1], base.shape) * 2.0 ** rng.uniform(-9, 0.5, base.shape)
        return (base.float() + torch.tensor(d, dtype=torch.float32)).to(base.dtype)
    out, seen = [], set()
    for b in base.reshape(-1).split(1):
        top = 0.5
        while True:
            d = rng.choice([-1, 1], 256) * 2.0 ** rng.uniform(-9, top, 256)
            m = (b.float() + torch.tensor(d, dtype=torch.float32)).to(base.dtype)
            k = (m - b).abs().float().tolist()
            free = [i for i, x in enumerate(k) if x != 0 and x not in seen]
            if free:
                break
            top += 0.25
        seen.add(k[free[0]])
        out.append(m[free[0]])
    return torch.stack(out).reshape(base.shape)


def merges(large, count):
    """Method, inputs, base, global and per-input parameters; selects says that the
    answer depends on the order of magnitudes."""
    one, two, three = [0, 1], [0, 1, 2], [0, 1, 2, 3]
    five = [0, 1, 2, 3, 4, 5]
    w3 = {"weight": [0.6, 0.4, 0.3]}
    w5 = {"weight": [0.6, 0.4, -0.3, 0.2, 0.7]}
    yield "linear", three, None, {"normalize": 1}, {"weight": [0.1, 0.6, 0.4, 0.3]}
    yield "linear", two, None, {"normalize": 0}, {"weight": [0.1, -0.6, 0.4]}
    yield "slerp", one, 0, {"t": 0.35}, {}
    for flat in (0, 1):
        for rows in (0, 1):
            p = {"nuslerp_flatten": flat, "nuslerp_row_wise": rows}
            yield "nuslerp", [1, 2], None, p, {"weight": [0.3, 0.7]}
            yield "nuslerp", two, 0, p, {"weight": [0.5, 0.75]}
    yield "multislerp", three[1:], None, {"normalize_weights": 1, "eps": 1e-8}, w3
    yield "multislerp", five, 0, {"normalize_weights": 1, "eps": 1e-8}, w5
    yield "multislerp", three, 0, {"normalize_weights": 0, "eps": 1e-8}, w3
    yield "karcher", three, None, {"max_iter": 10, "tol": 1e-5}, {}
    yield "task_arithmetic", three, 0, {"lambda": 0.7, "normalize": 0}, w3
    yield "task_arithmetic", five, 0, {"lambda": 1, "normalize": 1}, w5
    yield "model_stock", three, 0, {"filter_wise": 0}, {}
    yield "model_stock", five, 0, {"filter_wise": 1}, {}
    yield "sce", three, 0, {"select_topk": 1}, {}
    yield "sce", five, 0, {"select_topk": 1}, {}
    yield "ram", three, 0, {"epsilon": 0.01}, {}
    yield "ram", five, 0, {"epsilon": 0.1}, {}
    yield "ramplus_tl", three, 0, {"epsilon": 0.01, "r": 0.1, "alpha": 0.2}, {}
    yield "nearswap", one, 0, {"t": 0.01}, {}
    yield "arcee_fusion", one, 0, {}, {}
    yield "passthrough", [1], None, {}, {"scale": [0.3]}
    d = {"density": [0.5, 0.3, 0.8]}
    for name in ("dare_linear", "dare_ties"):
        yield name, three, 0, {"lambda": 1, "normalize": 0, "rescale": 1}, w3 | d
        yield name, three, 0, {"lambda": 1.2, "normalize": 1, "rescale": 0}, w3 | d
    if large:
        return
    yield "sce", three, 0, {"select_topk": 0.5}, {}
    for rescale in (0, 1):
        p = {"lambda": 1, "normalize": rescale, "rescale": rescale}
        yield "ties", three, 0, p, w3 | d
        yield "ties", five, 0, p, w5 | {"density": [0.5, 0.3, 0.8, 1, 0.1]}
        e = {"epsilon": [0.15, 0.25, 0.1]}
        if count > 1:
            yield "della", three, 0, p, w3 | d | e
            yield "della_linear", three, 0, p, w3 | d | e
        g = {"gamma": [0.01, 0.1, 0.3]}
        yield "breadcrumbs", three, 0, p, w3 | d | g
        yield "breadcrumbs_ties", three, 0, p, w3 | d | g


def merge(name, tensors, base, shared, per):
    torch.manual_seed(42)
    group = TensorGroup.from_tensors(tensors, base_index=base, name="x")
    (out,) = registry.get(name)([group], parameters={**shared, **per})
    return out


def main():
    torch.set_num_threads(1)
    with gzip.GzipFile("tables.jsonl.gz", "wb", mtime=0) as file:

        def line(**x):
            file.write((json.dumps(x, separators=(",", ":")) + "\n").encode())

        for t, dtype in TYPES.items():
            for shape in SHAPES + LARGE:
                large = shape in LARGE
                if large and t == "f16":
                    continue
                rng = numpy.random.default_rng(sum(shape))
                base = torch.tensor(rng.standard_normal(shape) * 0.05).to(dtype)
                tensors = [base] + [tuned(rng, base, not large) for _ in range(5)]
                key = f"{t}-{'x'.join(map(str, shape))}"
                line(set=key, shape=shape, type=t, data=[encoded(x) for x in tensors])
                # Rows of one element have no ranks, and raise an error.
                row = shape[-1] if len(shape) == 1 else shape[1]
                for name, use, b, shared, per in merges(large, row):
                    out = merge(name, [tensors[i] for i in use], b, shared, per)
                    kind = {v: k for k, v in TYPES.items()}[out.dtype]
                    line(
                        method=name,
                        set=key,
                        inputs=use,
                        base=-1 if b is None else b,
                        **{"global": shared},
                        per=per,
                        type=kind,
                        step=STEP if large else 1,
                        out=encoded(out.reshape(-1)[:: STEP if large else 1]),
                    )


if __name__ == "__main__":
    main()
