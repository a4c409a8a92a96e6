# SPDX-FileCopyrightText: 2026 The pleach authors
# SPDX-License-Identifier: Apache-2.0

"""Prints the numbers of TestInitStream, from the definitions and not from the
Go code: Philox4x32-10, FNV-1a, and the cosine half of Box and Muller.

    python init.py
"""

import math
import struct

M = 0xFFFFFFFF


def philox(key, ctr):
    k0, k1 = key
    c = list(ctr)
    for _ in range(10):
        a, b = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [(b >> 32) ^ c[1] ^ k0, b & M, (a >> 32) ^ c[3] ^ k1, a & M]
        k0, k1 = (k0 + 0x9E3779B9) & M, (k1 + 0xBB67AE85) & M
    return c


def normal(seed, purpose, i):
    h = 14695981039346656037
    for byte in purpose.encode():
        h = (h ^ byte) * 1099511628211 % 2**64
    block = i // 2
    w = philox((seed & M, seed >> 32), (block & M, block >> 32, h & M, h >> 32))
    u, v = (w[i % 2 * 2] + 0.5) / 2**32, w[i % 2 * 2 + 1] / 2**32
    return math.sqrt(-2 * math.log(u)) * math.cos(2 * math.pi * v)


def float32(x):
    return struct.unpack("f", struct.pack("f", x))[0]


L, SEED, STD = 3, 42, 0.02
for name, lo in (
    ("model.embed_tokens.weight", 0),
    ("model.layers.0.self_attn.q_proj.weight", 0),
    ("model.layers.0.self_attn.q_proj.weight", 4000),
    ("model.layers.2.self_attn.o_proj.weight", 1),
    ("model.layers.2.mlp.down_proj.weight", 6141),
    ("lm_head.weight", 7),
):
    std = STD / math.sqrt(2 * L) if "o_proj" in name or "down_proj" in name else STD
    values = [float32(std * normal(SEED, "init " + name, lo + i)).hex() for i in range(3)]
    print(name, lo, *values)
