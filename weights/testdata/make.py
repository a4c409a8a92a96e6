# SPDX-FileCopyrightText: 2026 The pleach authors
# SPDX-License-Identifier: Apache-2.0
"""Makes the files of this folder: what the reference implementation writes.

python make.py    (safetensors 0.8.0, huggingface_hub 2.4.0, torch 2.15)
"""
import os

import torch
from huggingface_hub import save_torch_state_dict
from safetensors.torch import save_file

here = os.path.dirname(os.path.abspath(__file__))


def ramp(dtype, *shape):
    """Element i is (37·i mod 101 - 50)/8: exact in every float type."""
    n = 1
    for d in shape:
        n *= d
    i = torch.arange(n, dtype=torch.int64) * 37 % 101 - 50
    return (i.to(torch.float64) / 8).to(dtype).reshape(shape)


save_file(
    {
        "f32": ramp(torch.float32, 3, 5),
        "f64": ramp(torch.float64, 2, 3, 2),
        "bf16": ramp(torch.bfloat16, 7),
        "f16": ramp(torch.float16, 4, 3),
        "i64": torch.arange(-3, 3),
        "i32": torch.arange(-3, 3, dtype=torch.int32),
        "u8": torch.arange(5, dtype=torch.uint8),
        "bool": torch.tensor([True, False, True]),
        "scalar": torch.tensor(2.5),
        "empty": torch.zeros(0, 4),
        "special": torch.tensor([0.0, -0.0, float("inf"), float("nan"), 1e-45]),
        'na"me\\ \t\x01 é ☃': torch.ones(1),
    },
    os.path.join(here, "all.safetensors"),
    metadata={"format": "pt"},
)

out = os.path.join(here, "sharded")
os.makedirs(out, exist_ok=True)
save_torch_state_dict(
    {f"model.layers.{i}.w.weight": ramp(torch.bfloat16, 8, 8 + i) for i in range(6)}
    | {"lm_head.weight": ramp(torch.bfloat16, 40, 8), "model.norm.weight": ramp(torch.bfloat16, 8)},
    out,
    max_shard_size=400,
    metadata={"format": "pt"},
)
