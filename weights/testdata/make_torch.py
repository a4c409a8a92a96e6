# SPDX-FileCopyrightText: 2026 The pleach authors
# SPDX-License-Identifier: Apache-2.0
"""Makes the folder torch: what torch.save writes, and what it should not.

python make_torch.py    (torch 2.15)
"""
import io
import json
import os
import zipfile
from collections import OrderedDict

import torch

here = os.path.join(os.path.dirname(os.path.abspath(__file__)), "torch")


def ramp(dtype, *shape):
    """Element i is (37·i mod 101 - 50)/8: exact in every float type."""
    n = 1
    for d in shape:
        n *= d
    i = torch.arange(n, dtype=torch.int64) * 37 % 101 - 50
    return (i.to(torch.float64) / 8).to(dtype).reshape(shape)


def save(name, tensors, **kw):
    os.makedirs(os.path.dirname(os.path.join(here, name)), exist_ok=True)
    torch.save(tensors, os.path.join(here, name), **kw)


f32 = torch.float32
base = ramp(f32, 4, 6)
save("all/pytorch_model.bin", {
    "f32": ramp(f32, 3, 5),
    "f64": ramp(torch.float64, 2, 3, 2),
    "bf16": ramp(torch.bfloat16, 7),
    "f16": ramp(torch.float16, 4, 3),
    "i64": torch.arange(-3, 3),
    "i32": torch.arange(-3, 3, dtype=torch.int32),
    "i16": torch.arange(-3, 3, dtype=torch.int16),
    "i8": torch.arange(-3, 3, dtype=torch.int8),
    "u8": torch.arange(5, dtype=torch.uint8),
    "bool": torch.tensor([True, False, True]),
    "scalar": torch.tensor(2.5),
    "empty": torch.zeros(0, 4),
    "parameter": torch.nn.Parameter(ramp(f32, 3)),
    "base": base,
    "tied": base,
    "rows": base[1:3],
    "columns": base[:, 2:5],
    "steps": base[::2, ::3],
    "transposed": base.t(),
    "bf16 transposed": ramp(torch.bfloat16, 3, 70, 80).permute(2, 0, 1),
    "expanded": torch.tensor([[1.5], [-2.0]], dtype=f32).expand(2, 3),
    "one": base[:1, 5:].t(),
})


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = torch.nn.LayerNorm(4)
        self.linear = torch.nn.Linear(4, 2, bias=False)


net = Net()
net.linear.weight.data.copy_(ramp(f32, 2, 4))
save("nested/pytorch_model.bin", {"epoch": 3, "lr": 1e-3, "hyper": [1, None, {"a": (True, -5, 2**40)}],
                                  "state_dict": net.state_dict()})

shards = [{f"model.layers.{i}.w.weight": ramp(torch.bfloat16, 8, 8 + i)} for i in range(3)]
for i, s in enumerate(shards):
    save(f"sharded/pytorch_model-{i + 1:05d}-of-00003.bin", OrderedDict(s))
with open(os.path.join(here, "sharded", "pytorch_model.bin.index.json"), "w") as f:
    json.dump({"metadata": {"total_size": 432}, "weight_map": {
        k: f"pytorch_model-{i + 1:05d}-of-00003.bin" for i, s in enumerate(shards) for k in s}}, f, indent=2)

save("old.bin", {"a": ramp(f32, 3)}, _use_new_zipfile_serialization=False)
save("float8.bin", {"a": torch.zeros(3, dtype=torch.float8_e4m3fn)})
save("sparse.bin", {"a": torch.eye(3).to_sparse()})
save("negative.bin", {"a": torch.complex(torch.ones(2), torch.ones(2)).conj().imag})
save("number.bin", {"a": ramp(f32, 3), "b": 7})
save("list.bin", [ramp(f32, 3)])


class Evil:
    def __reduce__(self):
        return os.system, ("echo this must never run",)


save("call.bin", {"a": Evil()})


def rewrite(name, source, change=lambda name, text: text, method=zipfile.ZIP_STORED):
    """Writes an archive again with other entries."""
    with zipfile.ZipFile(os.path.join(here, source)) as z:
        out = io.BytesIO()
        with zipfile.ZipFile(out, "w", method) as w:
            for n in z.namelist():
                w.writestr(zipfile.ZipInfo(n), change(n, z.read(n)), method)
    with open(os.path.join(here, name), "wb") as f:
        f.write(out.getvalue())


rewrite("big.bin", "number.bin", lambda n, t: b"big" if n.endswith("byteorder") else t)
rewrite("compressed.bin", "number.bin", method=zipfile.ZIP_DEFLATED)
rewrite("short.bin", "number.bin", lambda n, t: t[:-4] if "/data/" in n else t)
