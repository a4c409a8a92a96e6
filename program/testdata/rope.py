# SPDX-FileCopyrightText: 2026 The pleach authors
# SPDX-License-Identifier: Apache-2.0
"""Writes rope.json: rotary frequencies as transformers computes them (float32).

    python rope.py > rope.json
"""
import json
import sys

from transformers import LlamaConfig
from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding

CASES = [
    (8, {"rope_type": "default", "rope_theta": 10000.0}),
    (128, {"rope_type": "default", "rope_theta": 500000.0}),
    (6, {"rope_type": "linear", "rope_theta": 10000.0, "factor": 2.5}),
    (64, {"rope_type": "llama3", "rope_theta": 500000.0, "factor": 32.0, "low_freq_factor": 1.0,
          "high_freq_factor": 4.0, "original_max_position_embeddings": 8192}),
    (128, {"rope_type": "llama3", "rope_theta": 500000.0, "factor": 8.0, "low_freq_factor": 1.0,
           "high_freq_factor": 4.0, "original_max_position_embeddings": 8192}),
    (16, {"rope_type": "llama3", "rope_theta": 100.0, "factor": 4.0, "low_freq_factor": 2.0,
          "high_freq_factor": 3.0, "original_max_position_embeddings": 64}),
]

out = []
for width, rope in CASES:
    config = LlamaConfig(hidden_size=4 * width, num_attention_heads=4, head_dim=width, rope_parameters=dict(rope),
                         max_position_embeddings=131072)
    f = LlamaRotaryEmbedding(config).inv_freq
    out.append({"width": width, "rope": rope, "frequencies": [float(f"{x:.9g}") for x in f.tolist()]})
json.dump(out, sys.stdout, indent=0)
