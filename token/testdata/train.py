# SPDX-FileCopyrightText: 2026 The pleach authors
# SPDX-License-Identifier: Apache-2.0

# Writes train.golden.jsonl: what the trainers of the references make of the text
# and the valid hard strings, a case a line. Run: python train.py
# Used: tokenizers 0.23.3, sentencepiece 0.2.3.
#
# A case has the options of token.Train, and tokens by id; of a byte-level one the
# merges as pairs of ids, of a SentencePiece model the scores.

import io
import json
import os

import sentencepiece as spm
from tokenizers import Regex, Tokenizer, models, pre_tokenizers as pre, trainers

import golden
import strings

DOCS = strings.valid() + [strings.TEXT] * 30
LINES = [line for doc in DOCS for line in doc.split("\n") if line]


def byte_level(split, size, least, specials, docs):
    tok = Tokenizer(models.BPE())
    tok.pre_tokenizer = pre.ByteLevel(add_prefix_space=False)
    if split != "gpt2":
        expr = {"llama3": golden.LLAMA3, "qwen2": golden.QWEN2, "o200k": golden.O200K}[split]
        tok.pre_tokenizer = pre.Sequence([pre.Split(Regex(expr), "isolated"), pre.ByteLevel(add_prefix_space=False, use_regex=False)])
    tok.train_from_iterator(docs, trainers.BpeTrainer(
        vocab_size=size, min_frequency=least, special_tokens=specials,
        initial_alphabet=pre.ByteLevel.alphabet(), show_progress=False))
    model = json.loads(tok.to_str())["model"]
    vocab = model["vocab"]
    return {"split": split, "size": size, "min": least, "specials": specials, "aaa": docs is not DOCS,
            "tokens": sorted(vocab, key=vocab.get), "merges": [[vocab[a], vocab[b]] for a, b in model["merges"]]}


def pieces(size, coverage, digits, prefix, specials):
    out = io.BytesIO()
    spm.SentencePieceTrainer.train(
        sentence_iterator=iter(LINES), model_writer=out, model_type="bpe", vocab_size=size, byte_fallback=True,
        normalization_rule_name="identity", character_coverage=coverage, split_digits=digits, add_dummy_prefix=prefix,
        user_defined_symbols=specials, remove_extra_whitespaces=False, allow_whitespace_only_pieces=True,
        max_sentence_length=1 << 26, minloglevel=2)
    sp = spm.SentencePieceProcessor(model_proto=out.getvalue())
    n = range(sp.get_piece_size())
    return {"size": size, "coverage": coverage, "digits": digits, "prefix": prefix, "specials": specials,
            "tokens": [sp.id_to_piece(i) for i in n], "scores": [sp.get_score(i) for i in n]}


if __name__ == "__main__":
    # Of few letters, many tokens come about in two ways, and pairs come up again.
    aaa = ["a" * n + " " + "ab" * n + " " + "aab" * n + " " + "abaab" * n for n in range(1, 60)]
    cases = [
        byte_level("gpt2", 900, 1, ["<|endoftext|>"], DOCS),
        byte_level("llama3", 900, 2, ["<s>", "the", "</s>"], DOCS),
        byte_level("qwen2", 700, 3, ["<|endoftext|>", "<|im_start|>"], DOCS),
        byte_level("gpt2", 600, 1, ["<|endoftext|>"], aaa),
        byte_level("o200k", 800, 2, ["<|endoftext|>"], DOCS),
        pieces(900, 0.98, True, True, []),
        pieces(2000, 1.0, False, True, ["<mask>", "hedge"]),
        pieces(1000, 0.99, False, False, ["[R]"]),
    ]
    with open(os.path.join(golden.HERE, "train.golden.jsonl"), "w") as f:
        for c in cases:
            f.write(golden.dump(c) + "\n")
