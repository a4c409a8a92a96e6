# SPDX-FileCopyrightText: 2026 The pleach authors
# SPDX-License-Identifier: Apache-2.0

# Makes small random tokenizers, random texts, and what the reference
# implementations make of them: one JSON line per tokenizer, with the file in
# base64 and rows of text, ids and decoded text. Run:
# python differ.py KIND SEED COUNT > FILE, KIND being bpe, unigram, bytes, spbpe
# or spunigram. differ.jsonl.gz is a selection.
# Used: tokenizers 0.23.3, sentencepiece 0.2.3.

import base64
import io
import json
import random
import sys
import tempfile

import sentencepiece as spm
from sentencepiece import sentencepiece_model_pb2 as pb
from tokenizers import Tokenizer

LETTERS = list("abcAB1 ▁") + ["é", "日", "\n", ".", "-"]
ODD = ["  ", "   ", "\t", "ﬁ", "É", "\u0301", "\u3000", "😀", "½", "İ", "x", "<", "▁▁", "ab", "aab", "\u200b", "\r\n", "ǅ", "가", "\u0345"]
ADDED = ["<x>", "<y>", "ab", "a b", "▁b", "Word", " ", "É", "<x>a", "b▁a", "--", "<unk>", "日"]


def text(rng, more=()):
    size = rng.choice([1, 2, 3, 5, 8, 13, 21, 34])
    few = rng.sample(LETTERS, rng.randint(2, 5))
    pool = few * 6 + LETTERS + ODD + list(more) * 2
    return "".join(rng.choice(pool) for _ in range(rng.randint(1, size)))


def long_text(rng, n):
    few = rng.sample(LETTERS, rng.randint(1, 4)) + rng.sample(ODD, rng.randint(0, 1))
    return "".join(rng.choice(few) for _ in range(n))


def texts(rng, more=()):
    out = ["", " "] + [text(rng, more) for _ in range(60)]
    if rng.random() < 0.3:
        out += [long_text(rng, rng.choice([50, 300, 3000])) for _ in range(3)]
    if rng.random() < 0.03:
        out.append(long_text(rng, 40000))
    return out


def base_pieces(rng):
    return rng.sample(LETTERS, rng.randint(3, len(LETTERS))) + rng.sample(["ﬁ", "É", "😀", "\ufffd", "x", "<", "\u0301"], rng.randint(0, 3))


def maybe(rng, p, v, other=None):
    return v if rng.random() < p else other


# Hugging Face tokenizers.

def bpe(rng, alphabet, byte_level):
    tokens = list(alphabet)
    merges, seen = [], set()
    for _ in range(rng.randint(0, 60)):
        a, b = rng.choice(tokens[-30:]), rng.choice(tokens)
        if rng.random() < 0.5:
            a, b = b, a
        if len(a + b) > 8 or (a, b) in seen or " " in a + b:
            continue
        seen.add((a, b))
        merges.append([a, b])
        if a + b not in tokens:
            tokens.append(a + b)
    rng.shuffle(merges) if rng.random() < 0.3 else None
    tokens += [t for t in ("ab▁a", "aaaa", "▁▁▁▁", "<unk>", "b b") if t not in tokens and rng.random() < 0.3]
    unk = maybe(rng, 0.6, "<unk>")
    fallback = rng.random() < 0.4 and not byte_level
    if unk and unk not in tokens:
        tokens.append(unk)
    if rng.random() < 0.4 and not byte_level:
        tokens += [f"<0x{b:02X}>" for b in range(256) if not (b == 0xa9 and rng.random() < 0.3)]
    if rng.random() < 0.3:
        rng.shuffle(tokens)
    return {"type": "BPE", "dropout": None, "unk_token": unk, "continuing_subword_prefix": None, "end_of_word_suffix": None,
            "fuse_unk": rng.random() < 0.5, "byte_fallback": fallback, "ignore_merges": rng.random() < 0.3,
            "vocab": {t: i for i, t in enumerate(tokens)}, "merges": merges}


def unigram(rng, maps):
    alphabet = base_pieces(rng)
    tokens = ["<unk>"] + alphabet + ["".join(rng.choice(alphabet) for _ in range(rng.randint(2, 5))) for _ in range(rng.randint(0, 40))]
    if rng.random() < 0.7:
        tokens = list(dict.fromkeys(tokens))
    if rng.random() < 0.4:
        tokens += [f"<0x{b:02X}>" for b in range(256) if not (b == 0xa9 and rng.random() < 0.3)]
    kind = rng.random()
    score = (lambda t: -0.7 * len(t)) if kind < 0.3 else (lambda t: -rng.randint(1, 6)) if kind < 0.6 else (lambda t: -rng.random() * 10)
    return {"type": "Unigram", "unk_id": maybe(rng, 0.8, 0, rng.randrange(len(tokens))), "byte_fallback": rng.random() < 0.4,
            "vocab": [[t, score(t)] for t in tokens]}


def one_normalizer(rng, maps):
    return rng.choice([
        {"type": "NFC"}, {"type": "NFKC"}, {"type": "NFD"}, {"type": "NFKD"}, {"type": "Lowercase"}, {"type": "StripAccents"},
        {"type": "Strip", "strip_left": rng.random() < 0.5, "strip_right": rng.random() < 0.5},
        {"type": "Prepend", "prepend": rng.choice(["▁", " ", "a"])},
        {"type": "Replace", "pattern": {"String": rng.choice([" ", "a", "▁", "  "])}, "content": rng.choice(["▁", "", "b", " "])},
        {"type": "Replace", "pattern": {"Regex": rng.choice([" {2,}", "[ab]+", r"\s"])}, "content": rng.choice(["▁", "", "b", " "])},
        {"type": "Precompiled", "precompiled_charsmap": base64.b64encode(rng.choice(maps)).decode()},
    ])


def spaces(rng):
    return {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}


def normalizer(rng, maps):
    x = rng.random()
    if x < 0.25:
        return None
    if x < 0.45:
        return spaces(rng)
    if x < 0.65:
        return {"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": "▁"}, spaces(rng)]}
    return {"type": "Sequence", "normalizers": [one_normalizer(rng, maps) for _ in range(rng.randint(1, 3))]}


def metaspace(rng):
    return {"type": "Metaspace", "replacement": rng.choice("▁▁▁_"), "prepend_scheme": rng.choice(["always", "first", "never"]), "split": rng.random() < 0.5}


def behavior(rng):
    return rng.choice(["Isolated", "Removed", "Contiguous", "MergedWithPrevious", "MergedWithNext"])


def one_split(rng):
    return rng.choice([
        metaspace(rng), {"type": "Digits", "individual_digits": rng.random() < 0.5}, {"type": "Punctuation", "behavior": behavior(rng)},
        {"type": "Whitespace"}, {"type": "WhitespaceSplit"},
        {"type": "Split", "pattern": {"String": rng.choice([" ", "a", "▁", "ab", " a"])}, "behavior": behavior(rng), "invert": rng.random() < 0.4},
        {"type": "Split", "pattern": {"Regex": rng.choice([r"\s+", "[ab]", r"\p{L}+", "a|$"])}, "behavior": behavior(rng), "invert": rng.random() < 0.4},
    ])


def pre_tokenizer(rng, byte_level):
    out = []
    x = rng.random()
    if x < 0.3 and not byte_level:
        return None
    if x < 0.6 and not byte_level:
        return metaspace(rng)
    if x < 0.75:
        out = [{"type": "Split", "pattern": {"String": " "}, "behavior": behavior(rng), "invert": rng.random() < 0.3}]
    else:
        out = [one_split(rng) for _ in range(rng.randint(0, 2))]
    if byte_level:
        out.append({"type": "ByteLevel", "add_prefix_space": rng.random() < 0.4, "trim_offsets": True, "use_regex": rng.random() < 0.5})
    return {"type": "Sequence", "pretokenizers": out}


def decoder(rng, byte_level):
    if byte_level:
        return {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True}
    x = rng.random()
    if x < 0.1:
        return None
    if x < 0.5:
        return metaspace(rng)
    parts = [{"type": "Replace", "pattern": {"String": "▁"}, "content": " "}, {"type": "ByteFallback"}, {"type": "Fuse"},
             {"type": "Strip", "content": " ", "start": rng.randint(0, 2), "stop": rng.randint(0, 1)}]
    return {"type": "Sequence", "decoders": [p for p in parts if rng.random() < 0.8]}


def added_tokens(rng, model):
    vocab = model["vocab"] if model["type"] == "BPE" else {t: i for i, (t, _) in enumerate(model["vocab"])}
    size, out = len(model["vocab"]), []
    for t in rng.sample(ADDED, rng.choice([0, 0, 1, 2, 4])):
        i = vocab.get(t, -1)
        if i < 0:
            i, size = size, size + 1
        out.append({"id": i, "content": t, "single_word": rng.random() < 0.2, "lstrip": rng.random() < 0.25, "rstrip": rng.random() < 0.25,
                    "normalized": rng.random() < 0.5, "special": rng.random() < 0.5})
    return out


def hf(rng, maps, kind):
    byte_level = kind == "bytes"
    if kind == "unigram":
        model = unigram(rng, maps)
    else:
        alphabet = base_pieces(rng)
        if byte_level:
            from tokenizers import pre_tokenizers
            alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
            alphabet = list("abĠ") + [a for a in alphabet if a not in "abĠ"] if rng.random() < 0.7 else rng.sample(alphabet, 200)
        model = bpe(rng, alphabet, byte_level)
    state = {"version": "1.0", "truncation": None, "padding": None, "added_tokens": added_tokens(rng, model), "normalizer": normalizer(rng, maps),
             "pre_tokenizer": pre_tokenizer(rng, byte_level), "post_processor": None, "decoder": decoder(rng, byte_level), "model": model}
    file = json.dumps(state, ensure_ascii=False)
    tok = Tokenizer.from_str(file)
    rows = []
    for s in texts(rng, [a["content"] for a in state["added_tokens"]]):
        try:
            ids = tok.encode(s, add_special_tokens=False).ids
            back = tok.decode(ids, skip_special_tokens=False)
        except BaseException:  # it panics
            continue
        rows.append([base64.b64encode(s.encode()).decode(), ids, back])
    return file.encode(), rows


# SentencePiece.

def charsmaps():
    """Compiled character maps: small ones, and those with names."""
    out = []
    for rules in (["61\t62", "e9\t65 301", "41\t61"], ["20\t", "9\t20", "a\t20", "3000\t20 20"], ["61 62\t63", "61 62 63\t20", "65e5\t"], ["2581\t20", "2d\t2581", "61 20\t62"]):
        with tempfile.NamedTemporaryFile("w", suffix=".tsv") as f:
            f.write("".join(r + "\n" for r in rules))
            f.flush()
            out.append(train_map(normalization_rule_tsv=f.name))
    return out + [train_map(normalization_rule_name=n) for n in ("nmt_nfkc", "nfkc_cf")]


def train_map(**kw):
    out = io.BytesIO()
    spm.SentencePieceTrainer.train(sentence_iterator=iter(["a b c d e f", "xyz"]), model_writer=out, model_type="char", vocab_size=30,
                                   hard_vocab_limit=False, minloglevel=2, **kw)
    m = pb.ModelProto()
    m.ParseFromString(out.getvalue())
    return m.normalizer_spec.precompiled_charsmap


def sp(rng, maps, kind):
    m = pb.ModelProto()
    m.trainer_spec.model_type = 2 if kind == "spbpe" else 1
    m.pieces.add(piece="<unk>", score=0, type=2)
    m.pieces.add(piece="<s>", score=0, type=3)
    m.pieces.add(piece="</s>", score=0, type=3)
    seen = {"<unk>", "<s>", "</s>"}
    spec = m.normalizer_spec
    spec.add_dummy_prefix = rng.random() < 0.6
    spec.remove_extra_whitespaces = rng.random() < 0.4
    spec.escape_whitespaces = rng.random() < 0.85
    if rng.random() < 0.4:
        spec.precompiled_charsmap = rng.choice(maps)
    m.trainer_spec.treat_whitespace_as_suffix = rng.random() < 0.25
    if rng.random() < 0.4:
        m.trainer_spec.byte_fallback = True
        for b in range(256):
            m.pieces.add(piece=f"<0x{b:02X}>", score=0, type=6)
    alphabet = [c for c in base_pieces(rng) if c != " " or not spec.escape_whitespaces or rng.random() < 0.2]
    pool = list(alphabet)
    users = rng.sample(ADDED[:-2], rng.choice([0, 0, 1, 3]))
    for u in users:
        if u not in seen:
            seen.add(u)
            m.pieces.add(piece=u, score=0, type=4)
    for _ in range(rng.randint(0, 60)):
        p = rng.choice(pool[-20:]) + rng.choice(pool)
        if len(p) <= 8:
            pool.append(p)
    tied = rng.random() < 0.4
    order = pool[len(alphabet):] + alphabet if rng.random() < 0.8 else pool
    for k, p in enumerate(order):
        if p in seen or rng.random() < 0.1:
            continue
        seen.add(p)
        m.pieces.add(piece=p, score=-float(rng.randint(1, 5)) if tied else -float(k) / 3, type=1)
    file = m.SerializeToString()
    p = spm.SentencePieceProcessor(model_proto=file)
    rows = []
    for s in texts(rng, users):
        b = s.encode()
        if rng.random() < 0.1:
            b = bytes(rng.choice([rng.randrange(256), c]) if rng.random() < 0.2 else c for c in b)
        try:
            ids = p.encode(b)
            back = p.decode(ids)
        except UnicodeDecodeError:
            continue
        rows.append([base64.b64encode(b).decode(), ids, back])
    return file, rows


if __name__ == "__main__":
    kind, seed, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    maps = charsmaps()
    made = {"bpe": hf, "unigram": hf, "bytes": hf, "spbpe": sp, "spunigram": sp}[kind]
    for k in range(count):
        rng = random.Random(f"{kind} {seed} {k}")
        try:
            file, rows = made(rng, maps, kind)
        except BaseException as e:  # what the reference does not read
            print(kind, k, str(e)[:100], file=sys.stderr)
            continue
        print(json.dumps({"name": f"{kind} {seed} {k}", "file": base64.b64encode(file).decode(), "rows": rows}))
