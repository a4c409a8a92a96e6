# SPDX-FileCopyrightText: 2026 The pleach authors
# SPDX-License-Identifier: Apache-2.0

"""Writes adamw.json: ten steps of torch.optim.AdamW in float32 on 24 weights.

Run in this folder: python adamw.py
"""

import json

import torch

torch.manual_seed(4)
HYPER = dict(betas=(0.9, 0.95), eps=1e-8, weight_decay=0.1)
SCALE, STEPS, N = 0.125, 10, 24

start = torch.randn(N)
weight = torch.nn.Parameter(start.clone())
optimizer = torch.optim.AdamW([weight], lr=0.0, foreach=False, **HYPER)
steps = []
for step in range(STEPS):
    lr = 3e-3 * (step + 1) / STEPS
    grad = torch.randn(N) * 10.0 ** torch.randint(-6, 3, (N,))
    grad[0] = 0
    weight.grad = grad * SCALE
    optimizer.param_groups[0]["lr"] = lr
    optimizer.step()
    state = optimizer.state[weight]
    row = dict(grad=grad, weight=weight.detach(), m=state["exp_avg"], v=state["exp_avg_sq"])
    steps.append({"lr": lr} | {k: x.tolist() for k, x in row.items()})

with open("adamw.json", "w") as f:
    json.dump(dict(start=start.tolist(), scale=SCALE, steps=steps), f)
    f.write("\n")
