#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The pleach authors
# SPDX-License-Identifier: Apache-2.0
"""Makes tiny models with a tokenizer, and what transformers says of their merges.

    pip install torch transformers tokenizers safetensors
    python make.py

writes, beside itself,

    models/NAME/        a model as transformers saves it
    cases/NAME/         config.yml; rows.jsonl, the text of each line and its ids;
                        want.jsonl, the log-probabilities of ids 2 to N of each
                        line and their negated sum, in nats
    versions.json

The merges are made here, in float64 and from the published formulas, and loaded
into transformers. Nothing of mergekit or of pleach takes part.
"""

import json
import math
import os
import platform
import shutil

import safetensors
import tokenizers
import torch
import transformers
from safetensors.torch import load_file
from transformers import GenerationConfig, LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

HERE = os.path.dirname(os.path.abspath(__file__))
LAYERS = 3
TEXT = [
    "The quick brown fox jumps over the lazy dog, and the dog sleeps.",
    "A merge of two models is a model: the weights of the one and of the other.",
    "for i in range(10): print(i, i * i)",
    "Grüße aus Köln – naïve façades, 12 345 times.",
]
LINES = TEXT + ["<|user|>the fox and the dog<|end|>", "models<|think|> merge <|tool|>models"]
TEMPLATE = (
    "{% for m in messages %}<|user|>{{ m['content'] }}<|end|>{% endfor %}"
    "{% if add_generation_prompt %}<|user|>{% endif %}"
)
TYPES = {"f32": torch.float32, "bf16": torch.bfloat16}

torch.set_num_threads(1)
torch.use_deterministic_algorithms(True)
transformers.logging.set_verbosity_error()
transformers.logging.disable_progress_bar()


def tokenizer(special):
    """A byte-level BPE learned from TEXT, with these special tokens behind its own."""
    t = tokenizers.Tokenizer(tokenizers.models.BPE())
    t.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    t.decoder = tokenizers.decoders.ByteLevel()
    t.train_from_iterator(
        TEXT * 4,
        tokenizers.trainers.BpeTrainer(
            vocab_size=290,
            initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet(),
            special_tokens=["<s>", "</s>"],
            show_progress=False,
        ),
    )
    out = PreTrainedTokenizerFast(
        tokenizer_object=t, bos_token="<s>", eos_token="</s>", additional_special_tokens=special
    )
    out.chat_template = TEMPLATE
    return out


def randomize(model, seed, near=None):
    """Fills a model; near another one if it is given."""
    g = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, p in model.named_parameters():
            x = torch.randn(p.shape, generator=g)
            if near is not None:
                base = near[name]
                rows = min(len(x), len(base))
                x[:rows] = base[:rows].float() + 0.08 * x[:rows]
                x[rows:] *= 0.3
                p.copy_(x)
            elif "norm" in name:
                p.copy_(1 + 0.1 * x)
            else:
                p.copy_(0.3 * x)


def save(name, t, tok, seed, near=None, **more):
    path = os.path.join(HERE, "models", name)
    model = LlamaForCausalLM(
        LlamaConfig(
            vocab_size=len(tok), hidden_size=16, intermediate_size=24, num_hidden_layers=LAYERS,
            num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=128, rms_norm_eps=1e-5,
            bos_token_id=0, eos_token_id=1, **more,
        )
    )
    randomize(model, seed, near and stored(near))
    model = model.to(TYPES[t])
    model.config.dtype = TYPES[t]
    model.generation_config = GenerationConfig(
        bos_token_id=0, eos_token_id=[1], do_sample=True, temperature=0.7, top_p=0.9
    )
    model.save_pretrained(path)
    tok.save_pretrained(path)


def stored(name):
    return load_file(os.path.join(HERE, "models", name, "model.safetensors"))


def values(name):
    return {k: v.double() for k, v in stored(name).items()}


def linear(parts):
    return {k: sum(w * m[k] for w, m in parts) / sum(w for w, _ in parts) for k in parts[0][1]}


def slerp(a, b, t):
    """The points of an arc between directions, with the lengths of the ends."""
    out = {}
    for k in a:
        x, y = a[k].flatten(), b[k].flatten()
        d = (x @ y / (x.norm() * y.norm())).item()
        if abs(d) > 0.9995:
            z = (1 - t(k)) * x + t(k) * y
        else:
            angle = math.acos(d)
            z = (math.sin((1 - t(k)) * angle) * x + math.sin(t(k) * angle) * y) / math.sin(angle)
        out[k] = z.reshape(a[k].shape)
    return out


def ties(base, models, weights, density):
    """Trim, elect the sign, and take the mean of what agrees (arXiv 2306.01708)."""
    out = {}
    for k, b in base.items():
        deltas = []
        for m, w in zip(models, weights):
            d = (m[k] - b).flatten()
            # Differences as float32 has them decide what is kept.
            keep = (d.float().abs()).argsort(descending=True, stable=True)[: int(density * len(d))]
            trimmed = torch.zeros_like(d)
            trimmed[keep] = d[keep]
            deltas.append(w * trimmed)
        total = sum(deltas)
        sign = torch.where(total >= 0, 1.0, -1.0)
        agree = [(torch.sign(d) == sign).double() for d in deltas]
        mixed = sum(d * a for d, a in zip(deltas, agree))
        div = sum(w * a for w, a in zip(weights, agree))
        out[k] = b + (mixed / torch.where(div == 0, 1.0, div)).reshape(b.shape)
    return out


def stack(parts):
    """Layers of models on each other: (tensors, first, end)."""
    first, last = parts[0][0], parts[-1][0]
    out = {"model.embed_tokens.weight": first["model.embed_tokens.weight"]}
    at = 0
    for m, lo, hi in parts:
        for i in range(lo, hi):
            old = f"model.layers.{i}."
            out |= {k.replace(old, f"model.layers.{at}."): v for k, v in m.items() if k.startswith(old)}
            at += 1
    for k in ("model.norm.weight", "lm_head.weight"):
        out[k] = last[k]
    return out, at


def extended(m, rows, of):
    """The embeddings of m with rows of another model behind them."""
    out = dict(m)
    for k in ("model.embed_tokens.weight", "lm_head.weight"):
        out[k] = torch.cat([m[k], of[k][rows]])
    return out


def listed(*models):
    return "models:\n" + "".join(f"  - model: models/{m}\n    parameters: {{weight: {w}}}\n" for m, w in models)


SLERP = """parameters:
  t:
    - {filter: self_attn, value: 0.25}
    - {filter: mlp, value: 0.75}
    - value: 0.5
"""


def cases():
    """Name, configuration, tensors, the model whose files go with them, layers.

    Weights are odd numbers: of halves and quarters of bfloat16 numbers many lie
    in the middle between two, where the last bit of a sum decides.
    """
    m = {n: values(n) for n in sorted(os.listdir(os.path.join(HERE, "models")))}

    def t(name):
        return 0.25 if "self_attn" in name else 0.75 if "mlp" in name else 0.5

    for f in TYPES:
        base, a, b = m[f"base-{f}"], m[f"a-{f}"], m[f"b-{f}"]
        yield (f"linear-{f}", "merge_method: linear\n" + listed((f"a-{f}", 0.31873), (f"b-{f}", 0.87411)),
               linear([(0.31873, a), (0.87411, b)]), f"a-{f}", LAYERS)
        yield (f"slerp-{f}", f"merge_method: slerp\nbase_model: models/a-{f}\nmodels:\n  - model: models/b-{f}\n" + SLERP,
               slerp(a, b, t), f"a-{f}", LAYERS)
        yield (f"ties-{f}", f"merge_method: ties\nbase_model: models/base-{f}\n"
               + listed((f"a-{f}", 0.61537), (f"b-{f}", 0.37219)) + "parameters: {density: 0.5}\n",
               ties(base, [a, b], [0.61537, 0.37219], 0.5), f"base-{f}", LAYERS)
        tensors, n = stack([(a, 0, 3), (b, 1, 3)])
        yield (f"stack-{f}", "merge_method: passthrough\nslices:\n"
               f"  - sources:\n      - {{model: models/a-{f}, layer_range: [0, 3]}}\n"
               f"  - sources:\n      - {{model: models/b-{f}, layer_range: [1, 3]}}\n",
               tensors, f"a-{f}", n)
    yield ("linear-to-bf16", "merge_method: linear\nout_dtype: bfloat16\n" + listed(("a-f32", 0.5), ("b-f32", 0.5)),
           {k: v.bfloat16().double() for k, v in linear([(0.5, m["a-f32"]), (0.5, m["b-f32"])]).items()}, "a-f32", LAYERS)
    yield ("linear-tied", "merge_method: linear\n" + listed(("tied", 0.5), ("tied-b", 0.5)),
           linear([(0.5, m["tied"]), (0.5, m["tied-b"])]), "tied", LAYERS)
    # The third model ties nothing: the merged lm_head is another matrix than the embedding.
    parts = [dict(m[n]) for n in ("tied", "a-f32")]
    parts[0]["lm_head.weight"] = parts[0]["model.embed_tokens.weight"]
    yield ("linear-untied", "merge_method: linear\n" + listed(("tied", 0.5), ("a-f32", 0.5)),
           linear([(0.5, parts[0]), (0.5, parts[1])]), "tied", LAYERS)
    # Tokens that one model has get its rows in both.
    more, n = m["more"], len(m["a-f32"]["lm_head.weight"])
    rows = list(range(n, len(more["lm_head.weight"])))
    yield ("linear-union", "merge_method: linear\ntokenizer: {source: union}\n" + listed(("a-f32", 0.75), ("more", 0.25)),
           linear([(0.75, extended(m["a-f32"], rows, more)), (0.25, more)]), "more", LAYERS)


@torch.no_grad()
def write(name, config, tensors, files, layers):
    path = os.path.join(HERE, "cases", name)
    os.makedirs(path)
    with open(os.path.join(path, "config.yml"), "w") as f:
        f.write(config)
    c = LlamaConfig.from_pretrained(os.path.join(HERE, "models", files))
    c.num_hidden_layers = layers
    c.tie_word_embeddings = "lm_head.weight" not in tensors
    if c.dtype == torch.bfloat16:
        tensors = {k: v.bfloat16() for k, v in tensors.items()}
    model = LlamaForCausalLM(c).double().eval()
    missing, unexpected = model.load_state_dict({k: v.double() for k, v in tensors.items()}, strict=False)
    assert not unexpected and set(missing) <= {"lm_head.weight"}, (missing, unexpected)
    model.tie_weights()
    tok = PreTrainedTokenizerFast.from_pretrained(os.path.join(HERE, "models", files))
    with open(os.path.join(path, "rows.jsonl"), "w") as rows, open(os.path.join(path, "want.jsonl"), "w") as want:
        for line in LINES:
            ids = tok.encode(line, add_special_tokens=False)
            lp = torch.log_softmax(model(torch.tensor([ids])).logits[0].double(), -1)
            picked = [lp[i, ids[i + 1]].item() for i in range(len(ids) - 1)]
            rows.write(json.dumps({"text": line, "tokens": ids}, ensure_ascii=False) + "\n")
            want.write(json.dumps({"logprobs": picked, "nll": -sum(picked)}) + "\n")


def main():
    for name in ("models", "cases"):
        shutil.rmtree(os.path.join(HERE, name), ignore_errors=True)
    tok = tokenizer(["<|user|>", "<|end|>"])
    for f in TYPES:
        save(f"base-{f}", f, tok, 1)
        save(f"a-{f}", f, tok, 2, f"base-{f}")
        save(f"b-{f}", f, tok, 3, f"base-{f}")
    save("tied", "f32", tok, 4, tie_word_embeddings=True)
    save("tied-b", "f32", tok, 5, "tied", tie_word_embeddings=True)
    save("more", "f32", tokenizer(["<|user|>", "<|end|>", "<|think|>", "<|tool|>"]), 6, "a-f32")
    for case in cases():
        write(*case)
    with open(os.path.join(HERE, "versions.json"), "w") as f:
        json.dump({"torch": torch.__version__, "transformers": transformers.__version__,
                   "tokenizers": tokenizers.__version__, "safetensors": safetensors.__version__,
                   "python": platform.python_version(), "machine": platform.machine()}, f, indent=2)
        f.write("\n")


if __name__ == "__main__":
    main()
