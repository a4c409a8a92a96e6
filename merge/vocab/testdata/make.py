# SPDX-FileCopyrightText: 2026 The pleach authors
# SPDX-License-Identifier: Apache-2.0

"""Makes the tokenizers of this folder and what mergekit makes of them (cases.json).

    python make.py        with mergekit 0.1.5, transformers, tokenizers and torch

An embedding is not stored: element k of row r of model m is 64·m + r + k/8, which
is exact in every sum that occurs. Vocabularies are compared by text, since the ids
that mergekit gives to new tokens vary.
"""

import json
import os
import shutil
import tempfile
from types import SimpleNamespace

import torch
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
from transformers import LlamaConfig, PreTrainedTokenizerFast

from mergekit.common import ModelReference
from mergekit.tokenizer.build import build_tokenizer
from mergekit.tokenizer.config import TokenizerConfig
from mergekit.tokenizer.embed import PermutedVocabulary

HERE = os.path.dirname(os.path.abspath(__file__))
WIDTH = 3

COMMON = "th he in er an re on at en nd ti es or te of ed is it al ar st to nt ng se ha".split()


def tokenizer(merged, added=(), unmade=0):
    """64 tokens: 3 special ones, ▁, 26 letters, 34 merges; the last ones are not made."""
    vocab = ["<unk>", "<s>", "</s>", "▁"] + [chr(c) for c in range(ord("a"), ord("z") + 1)]
    merges = [(m[0], m[1:]) for m in merged[: len(merged) - unmade]]
    vocab += merged
    assert len(set(vocab)) == len(vocab) == 64, len(set(vocab))
    t = Tokenizer(models.BPE({v: i for i, v in enumerate(vocab)}, merges, unk_token="<unk>"))
    t.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="never", split=False)
    t.decoder = decoders.Metaspace(prepend_scheme="never", split=False)
    f = PreTrainedTokenizerFast(
        tokenizer_object=t, unk_token="<unk>", bos_token="<s>", eos_token="</s>"
    )
    f.add_tokens(list(added))
    return f


THIRTYFOUR = COMMON + ["the", "ing", "and", "▁t", "▁a", "▁o", "▁the", "ent"]
# A merge of "the" makes ▁the, which has a row, where "the" has none.
LATE = COMMON + ["ing", "and", "▁t", "▁the", "▁a", "▁o", "ent", "the"]
OTHER = COMMON + ["tha", "ing", "and", "▁s", "▁w", "▁o", "▁th", "ere"]

TOKENIZERS = {  # name: (tokenizer, rows of the embedding)
    "plain": (tokenizer(THIRTYFOUR), 64),
    "chatml": (tokenizer(THIRTYFOUR, ["<|im_start|>", "<|im_end|>"]), 66),
    "padded": (tokenizer(THIRTYFOUR, [f"<UNUSED_{i}>" for i in range(4)]), 64),
    "other": (
        tokenizer(OTHER, [AddedToken("<|im_end|>", special=True), AddedToken("<sep>", lstrip=True)]),
        72,
    ),
    # Four tokens have no row, and one that is added. mergekit fails if a merge makes
    # such a token, so none does.
    "short": (tokenizer(LATE, ["<UNUSED>"], unmade=4), 60),
}

CASES = [
    dict(name="base", models=["plain", "padded", "chatml"], source="base"),
    dict(name="union", models=["plain", "padded", "chatml"], source="union"),
    dict(name="a model", models=["plain", "padded", "chatml"], source="chatml"),
    dict(name="union of different vocabularies", models=["plain", "chatml", "other"], source="union"),
    dict(name="union, no base", models=["chatml", "plain", "other"], source="union", no_base=True),
    dict(name="the base comes last", models=["other", "chatml", "plain"], source="union", base="plain"),
    dict(name="a base with tokens without a row", models=["short", "plain"], source="base"),
    dict(name="union with such a base", models=["short", "other"], source="union"),
    dict(
        name="force",
        models=["plain", "chatml"],
        source="union",
        tokens={
            "th": {"source": "chatml", "force": True},
            "he": {"source": "plain", "force": True},
            "<|im_end|>": {"source": "chatml"},
        },
    ),
    dict(
        name="tokens of a model",
        models=["plain", "chatml"],
        source="union",  # mergekit fails on a token that it adds to the base itself
        tokens={
            "th": {"source": {"kind": "model_token", "model": "chatml", "token_id": 64}, "force": True},
            "he": {"source": {"kind": "model_token", "model": "plain", "token": "<s>"}, "force": True},
            "<new>": {"source": {"kind": "model_token", "model": "chatml", "token": "<|im_start|>"}},
            "in": {"source": {"kind": "zero"}, "force": True},
        },
    ),
    dict(name="pad", models=["chatml"], source="base", pad=16),
    dict(name="pad, two models", models=["plain", "other"], source="union", pad=16),
]


def embedding(m, rows):
    r = torch.arange(rows, dtype=torch.float32)[:, None]
    k = torch.arange(WIDTH, dtype=torch.float32)[None, :]
    return 64 * m + r + k / 8


def run(case, paths):
    names = case["models"]
    refs = {n: ModelReference.model_validate(paths[n]) for n in names}
    base = None if case.get("no_base") else refs[case.get("base", names[0])]

    def ref(x):
        return paths[x] if isinstance(x, str) else {**x, **({"model": paths[x["model"]]} if "model" in x else {})}

    cfg = TokenizerConfig.model_validate(
        {
            "source": paths.get(case["source"], case["source"]),
            "tokens": {t: {**c, "source": ref(c["source"])} for t, c in case.get("tokens", {}).items()},
            "pad_to_multiple_of": case.get("pad"),
        }
    )
    info = build_tokenizer(base, list(refs.values()), cfg.source, False, list(cfg.tokens))
    tensors = {refs[n]: embedding(i, TOKENIZERS[n][1]) for i, n in enumerate(names)}
    task = SimpleNamespace(
        tokens=cfg.tokens,
        pad_to_multiple_of=cfg.pad_to_multiple_of,
        base_model=base,
        vocabulary_axis=0,
    )
    for f in ("assign_embedding_sources", "compute_default_embedding"):
        setattr(task, f, getattr(PermutedVocabulary, f).__get__(task))
    out = PermutedVocabulary.execute(task, info, tensors)
    vocab = info.tokenizer.get_vocab()
    texts = sorted(vocab, key=lambda t: (vocab[t], t))
    added = {a.content: a for a in info.tokenizer.added_tokens_decoder.values()}
    size = {t.shape[0] for t in out.values()}.pop()
    return {
        **case,
        "size": size,
        "vocab": {t: vocab[t] for t in texts},
        "added": {
            t: [a.single_word, a.lstrip, a.rstrip, a.normalized, a.special] for t, a in sorted(added.items())
        },
        # by model: a row per token in the order of vocab, and one of padding
        "matrix": {
            n: [out[refs[n]][vocab[t]].tolist() for t in texts]
            + ([out[refs[n]][-1].tolist()] if size > len(vocab) else [])
            for n in names
        },
    }


def main():
    paths = {}
    with tempfile.TemporaryDirectory() as tmp:
        for name, (tok, rows) in TOKENIZERS.items():
            paths[name] = os.path.join(tmp, name)
            tok.save_pretrained(paths[name])
            LlamaConfig(vocab_size=rows, architectures=["LlamaForCausalLM"]).save_pretrained(paths[name])
            os.makedirs(os.path.join(HERE, name), exist_ok=True)
            for f in ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json"):
                if os.path.exists(os.path.join(paths[name], f)):
                    shutil.copy(os.path.join(paths[name], f), os.path.join(HERE, name, f))
        cases = [run(c, paths) for c in CASES]
    rows = {n: r for n, (_, r) in TOKENIZERS.items()}
    with open(os.path.join(HERE, "cases.json"), "w", encoding="utf-8") as f:
        f.write('{"rows": ' + json.dumps(rows) + ', "cases": [\n')
        f.write(",\n".join(json.dumps(c, ensure_ascii=False) for c in cases))
        f.write("\n]}\n")


main()
