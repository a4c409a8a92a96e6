# SPDX-FileCopyrightText: 2026 The pleach authors
# SPDX-License-Identifier: Apache-2.0

# Trains a small tokenizer in the pipeline of each model family and writes what
# the reference implementations make of some 2500 hard strings, into family/.
# Run: python family.py [name …]
# Used: tokenizers 0.23.3, sentencepiece 0.2.3.
#
# strings.jsonl.gz holds the strings and NAME.golden.jsonl.gz the answers, in the
# form that golden.py describes; ids with the post-processor's tokens stand on
# every tenth line only. NAME.json.gz or NAME.model.gz is the tokenizer. With
# PLEACH_TESTDATA set, hashes.jsonl holds hashes of the ids of whole files.

import base64
import gzip
import hashlib
import io
import json
import os
import random
import struct
import sys
import tempfile

import sentencepiece as spm
from sentencepiece import sentencepiece_model_pb2 as pb
from tokenizers import (AddedToken, Regex, Tokenizer, decoders, models, normalizers,
                        pre_tokenizers as pre, processors, trainers)

import golden
import strings

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "family")
DATA = os.environ.get("PLEACH_TESTDATA")


def ties(n, seed):
    """Strings of few letters, which can be cut in many ways worth the same."""
    rng = random.Random(seed)
    return ["".join(rng.choice("aab  c▁") for _ in range(rng.randint(2, 60))) for _ in range(n)]


def sentences(n, seed):
    """Words of the corpus in any order, with some faults between them."""
    rng = random.Random(seed)
    words = strings.TEXT.split()
    gaps = [" "] * 20 + ["  ", "\n", "\t", "", "-", ", ", ". ", "\u00a0", "\u3000", "<s>", "</s>", "<mask>", " <mask> ", "\u200b", "\r\n", "\u0301", "ﬁ", "①", "\u00ad", "\x01", "\x85"]
    return ["".join(rng.choice(words) + rng.choice(gaps) for _ in range(rng.randint(3, 16))) for _ in range(n)]


def clusters(n, seed):
    """Short grapheme clusters, and what only looks like one."""
    rng = random.Random(seed)
    base = list("aeAE1 ©®™½ﬁé\r\n\t\x00\x1e") + ["\u0915", "\u0958", "가", "ᄀ", "ᅡ", "ᆨ", "\u0600", "\u06dd", "Å", "ﷺ", "Ⅳ", "゙", "か", "ﾊ"]
    more = ["\u0301", "\u0308", "\u030a", "\u0327", "\u200d", "\u200c", "\u094d", "\u093c", "\u0903", "\ufe0f", "\u3099", "ﾞ", "\n", "ᅡ", "ᆨ", "\u0345", "\u20dd", "\u00ad", "\u200b"]
    return ["".join(rng.choice(base) + rng.choice(["", rng.choice(more), rng.choice(more) + rng.choice(more)]) for _ in range(rng.randint(1, 8))) for _ in range(n)]


def scripts(n, seed):
    """What grapheme clusters are made of, by script: pictures, conjuncts, Hangul."""
    rng = random.Random(seed)
    kinds = ["©®™\u200d\u200d\u0301a", "\u0915\u0958\u094d\u094d\u0301\u093c\u200d", "각가각\u0301", "\u0600\u06dda\u0301\u0915", "\u00ad\x01\r\n\u0301a"]
    return ["".join(rng.choice(kinds[k % len(kinds)]) for _ in range(rng.randint(2, 12))) for k in range(n)]


def additions(n, seed):
    """Added tokens with spaces and letters around them."""
    rng = random.Random(seed)
    parts = ["<l>", "<r>", "<b>", "<n>", "word", "Ünd", "ünd", "WORD", "<x>", "  ", " ", "\n", "\u3000", "\u200b", "a", "é", "_", "1", ".", "<", "<l", "▁", "ſ"]
    return ["".join(rng.choice(parts) for _ in range(rng.randint(1, 9))) for _ in range(n)]


VALID = list(dict.fromkeys(strings.valid() + strings.randoms(700, 11) + ties(300, 5) + sentences(250, 6) + clusters(400, 8) + additions(250, 12) + scripts(250, 13)))
rng = random.Random(9)
BAD = strings.BAD + [bytes(rng.choice([rng.randrange(256), 0xe2, 0x96, 0x81, 0x20, 0x61, 0xcc]) for _ in range(rng.randint(1, 24))) for _ in range(80)]
BAD = list(dict.fromkeys(b for b in BAD if b.decode(errors="replace").encode() != b))
CORPUS = strings.TEXT.strip().split("\n") + strings.valid() + sentences(200, 1)


def long_text(alphabet, n):
    """Text that the test makes in the same way."""
    x, out = 1, []
    for _ in range(n):
        x = (x * 1103515245 + 12345) % 2**31
        out.append(alphabet[(x >> 16) % len(alphabet)])
    return "".join(out)


def write(name, data):
    with open(os.path.join(HERE, name), "wb") as f:
        f.write(gzip.compress(data, 9, mtime=0))


def write_golden(name, encode, special, decode, bad):
    rows = []
    for k, s in enumerate(VALID + (BAD if bad else [])):
        ids = encode(s)
        row = {"i": ids}
        if special and k % 10 == 0:
            row["s"] = special(s)
        d = decode(ids)
        if d != s:
            row["d"] = d
        rows.append(golden.dump(row) + "\n")
    write(name + ".golden.jsonl.gz", ("".join(rows) + "{}\n" * (len(VALID) + len(BAD) - len(rows))).encode())


HASHES = []


def write_hashes(name, encode, texts):
    for what, text in texts:
        ids = encode(text)
        HASHES.append({"name": name, "text": what, "ids": len(ids), "sha256": hashlib.sha256(struct.pack(f"<{len(ids)}i", *ids)).hexdigest()})


def long_texts():
    yield "long:ab", long_text("ab", 40000)
    yield "long:aab c", long_text("aab c", 40000)
    yield "long:xé日😀 ", long_text("xé日😀 ", 30000)


def file_texts():
    if DATA:
        for root, _, names in sorted(os.walk(DATA)):
            for n in sorted(names):
                path = os.path.join(root, n)
                if n.endswith((".txt", ".jsonl")):
                    yield os.path.relpath(path, DATA), open(path, encoding="utf-8", newline="").read()


def hf(name, tok):
    tok = Tokenizer.from_str(tok if isinstance(tok, str) else tok.to_str())
    write(name + ".json.gz", golden.dump(json.loads(tok.to_str())).encode())

    def encode(s):
        return tok.encode(s, add_special_tokens=False).ids
    write_golden(name, encode, lambda s: tok.encode(s).ids, lambda ids: tok.decode(ids, skip_special_tokens=False), False)
    write_hashes(name, encode, list(long_texts()) + list(file_texts()))


def sp(name, model):
    write(name + ".model.gz", model)
    p = spm.SentencePieceProcessor(model_proto=model)
    write_golden(name, p.encode, None, p.decode, True)
    write_hashes(name, p.encode, list(long_texts()) + list(file_texts()))
    return p


def byte_level(name, size, specials, expr, norm=None, split=("isolated", False), **kw):
    tok = Tokenizer(models.BPE(**kw))
    if norm:
        tok.normalizer = norm
    exprs = [expr] if isinstance(expr, str) else expr
    if expr:
        tok.pre_tokenizer = pre.Sequence([pre.Split(Regex(e), *split) for e in exprs] + [pre.ByteLevel(add_prefix_space=False, use_regex=False)])
    else:
        tok.pre_tokenizer = pre.ByteLevel(add_prefix_space=False)
    tok.decoder = decoders.ByteLevel()
    tok.train_from_iterator(CORPUS, trainers.BpeTrainer(vocab_size=size, special_tokens=specials, initial_alphabet=pre.ByteLevel.alphabet(), show_progress=False))
    return tok


def bos(tok, name):
    return processors.TemplateProcessing(single=f"{name} $A", pair=f"{name} $A {name}:1 $B:1", special_tokens=[(name, tok.token_to_id(name))])


def gpt2():
    tok = byte_level("gpt2", 1000, ["<|endoftext|>"], None)
    tok.post_processor = processors.ByteLevel(trim_offsets=False)
    hf("gpt2", tok)


def llama3():
    tok = byte_level("llama3", 1000, [], golden.LLAMA3, ignore_merges=True)
    tok.add_special_tokens(["<|begin_of_text|>", "<|end_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"])
    tok.post_processor = processors.Sequence([processors.ByteLevel(trim_offsets=False), bos(tok, "<|begin_of_text|>")])
    hf("llama3", tok)


def qwen():
    tok = byte_level("qwen", 1000, [], golden.QWEN2, norm=normalizers.NFC())
    tok.add_special_tokens(["<|endoftext|>", "<|im_start|>", "<|im_end|>"])
    tok.add_tokens([AddedToken(t, normalized=False) for t in ("<think>", "</think>", "<mask>")])
    tok.post_processor = processors.ByteLevel(trim_offsets=False)
    hf("qwen", tok)


TEKKEN = (r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+"
          r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*"
          r"|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+")


def tekken():
    tok = byte_level("tekken", 1000, ["<unk>", "<s>", "</s>", "[INST]", "[/INST]", "<mask>"], TEKKEN, ignore_merges=True)
    tok.post_processor = bos(tok, "<s>")
    hf("tekken", tok)


def o200k():
    """As converted from tiktoken: what the pattern does not match is removed."""
    tok = byte_level("o200k", 1000, [], golden.O200K, split=("removed", True))
    tok.add_special_tokens(["<|startoftext|>", "<|endoftext|>", "<|start|>", "<|end|>"])
    hf("o200k", tok)


DEEPSEEK = [r"\p{N}{1,3}", "[一-龥\u3040-ゟ゠-ヿ]+",
            r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"""]


def deepseek():
    tok = byte_level("deepseek", 1000, [], DEEPSEEK)
    tok.normalizer = normalizers.Sequence([])
    tok.add_special_tokens(["<｜begin▁of▁sentence｜>", "<｜end▁of▁sentence｜>"])
    tok.post_processor = bos(tok, "<｜begin▁of▁sentence｜>")
    hf("deepseek", tok)


def added():
    """Added tokens with every rule, before and behind normalizers."""
    tok = byte_level("added", 600, [], None, norm=normalizers.Sequence([normalizers.NFKD(), normalizers.Lowercase()]))
    tok.add_special_tokens([AddedToken("<l>", lstrip=True, normalized=False), AddedToken("<r>", rstrip=True, normalized=True), AddedToken("<|endoftext|>", special=True)])
    tok.add_tokens([AddedToken("<b>", lstrip=True, rstrip=True, normalized=True), AddedToken("<n>", normalized=False, single_word=True),
                    AddedToken("WORD", single_word=True, normalized=True), AddedToken("Ünd", normalized=True), AddedToken("<x>", lstrip=True, rstrip=True, single_word=True, normalized=False),
                    AddedToken("\u3000", normalized=False), AddedToken("<l>a", normalized=False), AddedToken("ſ", single_word=True, normalized=True)])
    hf("added", tok)
    tok.pre_tokenizer = pre.Sequence([pre.WhitespaceSplit(), pre.Metaspace("▁", "first", True)])
    tok.decoder = decoders.Metaspace("▁", "first", True)
    hf("addedfirst", tok)


def clustered():
    """A character map that shows every border of grapheme clusters: single bytes behind it."""
    with tempfile.NamedTemporaryFile("w", suffix=".tsv") as f:
        f.writelines(f"{ord(c):X}\t58\n" for c in "©®a\u0915\u0958각가각\u0600\u06dd\u00ad\x01\r\n")
        f.flush()
        m = proto(train(100, model_type="char", normalization_rule_tsv=f.name))
    tok = byte_level("clustered", 1000, [], None)
    state = json.loads(tok.to_str())
    state["normalizer"] = chars(m)
    hf("clustered", json.dumps(state))


def scores():
    """How the reference reads numbers: not as the nearest float64."""
    rng = random.Random(3)
    texts = ["0", "-1", "3", "-0.5", "1e2", "-1.5E-3", "2e+3", "12345678901234567890123", "0.1234567890123456789012345", "1e-320", "4.9e-324"]
    texts += [repr(struct.unpack("f", struct.pack("f", -rng.random() * 20))[0]) for _ in range(400)]
    vocab = ",".join(f'["t{k}", {t}]' for k, t in enumerate(texts))
    tok = Tokenizer.from_str('{"version":"1.0","truncation":null,"padding":null,"added_tokens":[],"normalizer":null,"pre_tokenizer":null,"post_processor":null,'
                             '"decoder":null,"model":{"type":"Unigram","unk_id":0,"byte_fallback":false,"vocab":[' + vocab + "]}}")
    read = [repr(v[1]) for v in json.loads(tok.to_str())["model"]["vocab"]]
    with open(os.path.join(HERE, "scores.jsonl"), "w") as f:
        f.writelines(golden.dump([a, b]) + "\n" for a, b in zip(texts, read))


def train(size, **kw):
    out = io.BytesIO()
    spm.SentencePieceTrainer.train(sentence_iterator=iter(CORPUS + CORPUS[:32] * 100), model_writer=out, vocab_size=size, minloglevel=2,
                                   **({"character_coverage": 0.98, "hard_vocab_limit": False} | kw))
    return out.getvalue()


LLAMA = dict(model_type="bpe", normalization_rule_name="identity", byte_fallback=True, split_digits=True,
             remove_extra_whitespaces=False, allow_whitespace_only_pieces=True)


def bpe_of(p):
    """Vocabulary and merges of a SentencePiece BPE model, as converters write them."""
    vocab = {p.id_to_piece(i): i for i in range(p.get_piece_size())}
    pairs = []
    for piece, i in vocab.items():
        if not (p.is_byte(i) or p.is_control(i) or p.is_unknown(i)):
            local = [(piece[:k], piece[k:]) for k in range(1, len(piece)) if piece[:k] in vocab and piece[k:] in vocab]
            pairs += [(p.get_score(i), a, b) for a, b in sorted(local, key=lambda x: (vocab[x[0]], vocab[x[1]]))]
    pairs.sort(key=lambda x: -x[0])
    return models.BPE(vocab, [(a, b) for _, a, b in pairs], unk_token="<unk>", fuse_unk=True, byte_fallback=True)


def undo():
    return decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)])


def llama2():
    """Llama 1 and 2 and the first Mistral; the third one adds control tokens."""
    p = sp("llama2", train(1000, **LLAMA))
    tok = Tokenizer(bpe_of(p))
    tok.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    tok.decoder = undo()
    tok.add_special_tokens([AddedToken(t, normalized=False, special=True) for t in ("<unk>", "<s>", "</s>")])
    tok.post_processor = bos(tok, "<s>")
    hf("llama2hf", tok)
    p = spm.SentencePieceProcessor(model_proto=train(1000, control_symbols=["[INST]", "[/INST]", "<mask>", "[R]"], **LLAMA))
    tok = Tokenizer(bpe_of(p))
    tok.pre_tokenizer = pre.Metaspace("▁", "first", False)
    tok.decoder = undo()
    tok.add_special_tokens([AddedToken(t, normalized=False, special=True) for t in ("<unk>", "<s>", "</s>", "[INST]", "[/INST]", "<mask>", "[R]")])
    tok.post_processor = bos(tok, "<s>")
    hf("mistral3", tok)


def gemma():
    users = ["<start_of_turn>", "<end_of_turn>", "\n\n", "\n\n\n", "\t\t", "<mask>", "<table>", "▁▁", "▁▁▁", "▁▁▁▁", "[R]"]
    p = sp("gemma", train(1200, user_defined_symbols=users, add_dummy_prefix=False, **LLAMA))
    tok = Tokenizer(bpe_of(p))
    tok.normalizer = normalizers.Replace(" ", "▁")
    tok.pre_tokenizer = pre.Split(" ", "merged_with_previous", False)
    tok.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()])
    tok.add_special_tokens([AddedToken(t, normalized=False, special=True) for t in ("<unk>", "<s>", "</s>", "<start_of_turn>", "<end_of_turn>")])
    tok.add_tokens([AddedToken(t, normalized=False) for t in users[2:]])
    tok.post_processor = bos(tok, "<s>")
    hf("gemmahf", tok)


def proto(model):
    m = pb.ModelProto()
    m.ParseFromString(model)
    return m


def unigram_json(m, normalizer, pretok, extra=(), unk=None, fallback=False, vocab=None):
    """A tokenizer.json around the pieces of a SentencePiece model."""
    vocab = vocab or [[p.piece, p.score] for p in m.pieces]
    tok = {"version": "1.0", "truncation": None, "padding": None, "added_tokens": [], "normalizer": normalizer(m) if normalizer else None,
           "pre_tokenizer": pretok, "post_processor": None, "decoder": {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": True},
           "model": {"type": "Unigram", "unk_id": m.trainer_spec.unk_id if unk is None else unk, "vocab": vocab + [[t, 0.0] for t in extra], "byte_fallback": fallback}}
    return Tokenizer.from_str(json.dumps(tok))


def chars(m):
    return {"type": "Precompiled", "precompiled_charsmap": base64.b64encode(m.normalizer_spec.precompiled_charsmap).decode()}


def one_space(to=" "):
    return {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": to}


META = {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": True}
UNIGRAM = dict(model_type="unigram", normalization_rule_name="nmt_nfkc")


def t5():
    model = train(1000, pad_id=0, eos_id=1, unk_id=2, bos_id=-1, **UNIGRAM)
    sp("t5", model)
    extra = [f"<extra_id_{i}>" for i in range(4, -1, -1)]
    tok = unigram_json(proto(model), chars, {"type": "Sequence", "pretokenizers": [{"type": "WhitespaceSplit"}, META]}, extra)
    tok.add_special_tokens(["</s>", "<unk>", "<pad>"] + extra)
    tok.post_processor = processors.TemplateProcessing(single="$A </s>", pair="$A </s> $B </s>", special_tokens=[("</s>", 1)])
    hf("t5hf", tok)


def albert():
    m = proto(train(900, user_defined_symbols=["[CLS]", "[SEP]", "<mask>"], model_type="unigram", normalization_rule_name="nmt_nfkc_cf"))

    def norm(m):
        quote = {"type": "Replace", "pattern": {"String": "``"}, "content": '"'}
        return {"type": "Sequence", "normalizers": [quote, quote | {"pattern": {"String": "''"}}, {"type": "NFKD"}, {"type": "StripAccents"}, {"type": "Lowercase"}, chars(m), one_space()]}
    tok = unigram_json(m, norm, META)
    tok.add_special_tokens(["<unk>", "[CLS]", "[SEP]", AddedToken("<mask>", lstrip=True, special=True)])
    tok.add_tokens([AddedToken("Whole", single_word=True, normalized=True)])
    tok.post_processor = processors.TemplateProcessing(single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1",
                                                       special_tokens=[("[CLS]", tok.token_to_id("[CLS]")), ("[SEP]", tok.token_to_id("[SEP]"))])
    hf("albert", tok)


def xlmr():
    m = proto(train(1000, **UNIGRAM))
    vocab = [["<s>", 0.0], ["<pad>", 0.0], ["</s>", 0.0], ["<unk>", 0.0]] + [[p.piece, p.score] for p in m.pieces[3:]] + [["<mask>", 0.0]]

    def norm(m):
        return {"type": "Sequence", "normalizers": [chars(m), {"type": "Strip", "strip_left": False, "strip_right": True}, one_space("▁")]}
    tok = unigram_json(m, norm, META | {"prepend_scheme": "first"}, unk=3, vocab=vocab)
    tok.add_special_tokens(["<s>", "<pad>", "</s>", "<unk>", AddedToken("<mask>", lstrip=True, special=True)])
    tok.add_tokens([AddedToken("[R]", rstrip=True, normalized=True)])
    tok.post_processor = processors.TemplateProcessing(single="<s> $A </s>", pair="<s> $A </s> </s> $B </s>", special_tokens=[("<s>", 0), ("</s>", 2)])
    hf("xlmr", tok)


def fallback():
    """Unigram with byte fallback, whole texts at once; unknown text may be a token."""
    model = train(1000, model_type="unigram", byte_fallback=True, normalization_rule_name="identity", remove_extra_whitespaces=False, add_dummy_prefix=False,
                  user_defined_symbols=["<mask>", "whole", "[R]", "ab", "aba"])
    sp("identity", model)
    tok = unigram_json(proto(model), None, META | {"prepend_scheme": "first", "split": False}, fallback=True)
    tok.decoder = undo()
    hf("fallback", tok)


def tied():
    """Every cut of a text is worth about the same; scores with rounding in them."""
    m = proto(train(400, model_type="unigram", normalization_rule_name="identity"))
    texts = sorted({s[i:j] for s in ("aabaabcaab▁aab▁▁ab", "abbabaab▁▁▁a▁b") for i in range(len(s)) for j in range(i + 1, min(len(s), i + 5) + 1)})
    del m.pieces[3:]
    for k, s in enumerate(texts):
        m.pieces.add(piece=s, score=-0.7 * len(s) - (0.1 if k % 11 == 0 else 0))
    sp("tied", m.SerializeToString())
    hf("tiedhf", unigram_json(m, None, META | {"split": False}))
    del m.pieces[3:]
    for s in texts:
        if "▁" not in s[1:]:
            m.pieces.add(piece=s, score=-0.1 * len(s))
    sp("tiedwords", m.SerializeToString())
    hf("tiedwordshf", unigram_json(m, None, META))


def others():
    """SentencePiece settings that no family above has."""
    sp("casefold", train(800, model_type="unigram", normalization_rule_name="nmt_nfkc_cf", user_defined_symbols=["<mask>", "Whole", "[R]", "a  b", "e\u0301"]))
    sp("suffix", train(800, model_type="unigram", normalization_rule_name="identity", treat_whitespace_as_suffix=True))
    sp("bpesuffix", train(700, model_type="bpe", normalization_rule_name="identity", treat_whitespace_as_suffix=True))
    sp("bpenfkc", train(700, model_type="bpe", normalization_rule_name="nfkc", byte_fallback=True))
    m = proto(train(700, model_type="unigram", normalization_rule_name="identity"))
    m.normalizer_spec.escape_whitespaces = False
    for k, p in enumerate(m.pieces):
        if k % 7 == 5 and p.type == 1:
            p.type = 5  # unused
    sp("unused", m.SerializeToString())


def real():
    """The tokenizers of the shared data: only hashes, no files."""
    for name in ("llama2", "sentencepiece_en_unigram_1000") if DATA else ():
        p = spm.SentencePieceProcessor(model_file=os.path.join(DATA, "tokenizers", name + ".model"))
        write_hashes(f"tokenizers/{name}.model", p.encode, list(long_texts()) + list(file_texts()))
        rows = [i for s in VALID + BAD for i in p.encode(s) + [-1]]
        write_hashes(f"tokenizers/{name}.model", lambda _: rows, [("strings", None)])


if __name__ == "__main__":
    os.makedirs(HERE, exist_ok=True)
    write("strings.jsonl.gz", "".join([json.dumps(s) + "\n" for s in VALID] + [golden.dump({"b": base64.b64encode(b).decode()}) + "\n" for b in BAD]).encode())
    print(len(VALID), "strings and", len(BAD), "that are not UTF-8")
    families = [gpt2, llama3, qwen, tekken, o200k, deepseek, added, clustered, scores, llama2, gemma, t5, albert, xlmr, fallback, tied, others, real]
    for f in families:
        if not sys.argv[1:] or f.__name__ in sys.argv[1:]:
            print(f.__name__)
            f()
    done = {h["name"] for h in HASHES}
    path = os.path.join(HERE, "hashes.jsonl")
    old = [json.loads(line) for line in open(path)] if os.path.exists(path) else []
    with open(path, "w") as f:
        f.write("".join(golden.dump(h) + "\n" for h in [h for h in old if h["name"] not in done] + HASHES))
