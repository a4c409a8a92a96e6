# SPDX-FileCopyrightText: 2026 The pleach authors
# SPDX-License-Identifier: Apache-2.0
"""Makes combine.txt: what mergekit makes of small float32 tensors.

python combine.py > combine.txt    (mergekit 0.1.5, torch 2.15 for the CPU)

A case is a line "case METHOD exact|near BASE SHAPE", a line per parameter
("global NAME VALUE", "input NAME VALUE…"), a line "in" per tensor and a line "out",
numbers as the bits of a float32. The exact results of linear are those of torch's own
multiplication, addition and division: mergekit's are fused where the processor can.
"""
import torch

from mergekit import merge_methods
from mergekit.merge_methods.base import PerInputValues, TensorGroup

torch.manual_seed(7)


def bits(x):
    return " ".join("%08x" % (v & 0xFFFFFFFF) for v in x.contiguous().view(torch.int32).flatten().tolist())


def models(count, shape, spread):
    """A base and models around it, some elements of which are its own."""
    base = torch.randn(shape)
    list_ = [base]
    for _ in range(count):
        change = spread * torch.randn(shape)
        list_.append(base + change * (torch.rand(shape) < 0.7))
    return list_


def show(name, kind, base, tensors, shared, each, out):
    print("case", name, kind, base, " ".join(map(str, tensors[0].shape)))
    for k, v in shared.items():
        print("global", k, repr(float(v)))
    for k, v in each.items():
        print("input", k, " ".join(repr(float(x)) for x in v))
    for t in tensors:
        print("in", bits(t))
    print("out", bits(out))


def reference(name, kind, tensors, base, shared=None, each=None):
    """What mergekit's method makes of tensors, of which one may be the base."""
    shared, each = shared or {}, each or {}
    group = TensorGroup.from_tensors(tensors, base_index=base)
    parameters = dict(shared)
    for k, v in each.items():
        ids = [e.id for e in group.entries if name in ("linear", "passthrough") or not e.is_base]
        parameters[k] = PerInputValues([(i, float(v[i])) for i in ids])
    (out,) = merge_methods.get(name)((group,), parameters=parameters)
    show(name, kind, -1 if base is None else base, tensors, shared, each, out)


def linear(tensors, weights, normalize):
    w = torch.tensor(weights, dtype=torch.float32)
    out = torch.zeros_like(tensors[0])
    for t, c in zip(tensors, w.unbind()):
        out = out + t * c
    if normalize:
        out = out / w.sum()
    show("linear", "exact", -1, tensors, {"normalize": normalize}, {"weight": weights}, out)


linear(models(1, (4, 8), 0.1), [0.3, 0.7], True)
linear(models(2, (3, 7), 1.0), [0.1, 0.25, 0.4], True)
linear(models(3, (31,), 1.0), [1.3, -0.7, 0.2, 0.9], True)
linear(models(2, (3, 7), 1.0), [0.1, -0.25, 0.4], False)
reference("linear", "near", models(2, (6, 7), 1.0), None, {}, {"weight": [0.1, 0.25, 0.4]})
for t in (0.0371, 1e-4, 2.0):
    reference("nearswap", "exact", models(1, (5, 9), 0.05), 0, {"t": t})
for n in (1, 2, 4):
    reference("ram", "exact", models(n, (4, 12), 0.1), 0, {"epsilon": 0.02})
    reference("ramplus_tl", "exact", models(n, (4, 12), 0.1), 0, {"r": 0.3, "alpha": 1.7, "epsilon": 0.02})
reference("passthrough", "exact", models(0, (3, 5), 0), None, {}, {"scale": [0.37]})
for t in (0.0, 0.35, 0.9, 1.0):
    for spread in (0.01, 0.5, 3.0):
        reference("slerp", "near", models(1, (6, 5), spread), 0, {"t": t})
shapes = [(1, 0, (6, 5)), (0, 0, (6, 5)), (0, 1, (6, 5)), (0, 0, (2, 3, 4)), (0, 1, (5, 2, 3)), (0, 1, (7,))]
for flatten, wise, shape in shapes:
    shared = {"nuslerp_flatten": bool(flatten), "nuslerp_row_wise": bool(wise)}
    reference("nuslerp", "near", models(2, shape, 0.5), 0, shared, {"weight": [0, 0.3, 0.7]})
    reference("nuslerp", "near", models(1, shape, 0.5), None, shared, {"weight": [0.3, 0.7]})
reference("multislerp", "near", models(2, (6, 5), 0.5), 0, {}, {"weight": [0, 0.3, 0.7]})
reference("multislerp", "near", models(2, (6, 5), 0.5), None, {}, {"weight": [0.2, 0.3, 0.7]})
shared = {"normalize_weights": False}
reference("multislerp", "near", models(2, (6, 5), 0.5), None, shared, {"weight": [0.2, 0.3, 0.7]})
for n, spread in ((1, 0.5), (2, 0.01), (3, 3.0)):
    reference("karcher", "near", models(n, (6, 5), spread), None, {"max_iter": 5})
for n in (2, 3):
    for wise in (False, True):
        reference("model_stock", "near", models(n, (6, 9), 0.5), 0, {"filter_wise": wise})
