# SPDX-FileCopyrightText: 2026 The pleach authors
# SPDX-License-Identifier: Apache-2.0

# Trains the small tokenizers of this folder and writes what the reference
# implementations make of the hard strings. Run: python golden.py
# Used: tokenizers 0.23.3, sentencepiece 0.2.3.
#
# strings.jsonl holds the strings; line k of NAME.golden.jsonl is about line k:
# i ids, s ids with the post-processor's tokens (if they differ), d decoded
# text (if it differs from the string). A string that is not UTF-8 stands as
# {"b": base64}, and has {} where the reference takes none.

import base64
import hashlib
import io
import json
import os
import struct

import sentencepiece as spm
from tokenizers import (AddedToken, Regex, Tokenizer, decoders, models, normalizers,
                        pre_tokenizers as pre, processors, trainers)

import strings

HERE = os.path.dirname(os.path.abspath(__file__))
VALID = strings.valid()
CORPUS = strings.TEXT.strip().split("\n") + VALID

LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
          r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
QWEN2 = LLAMA3.replace("{1,3}", "")
OTHER = r"[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}{1,2}| ?[^\s\p{L}\p{N}\p{M}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"


def path(name):
    return os.path.join(HERE, name)


def dump(v):
    return json.dumps(v, ensure_ascii=False, separators=(",", ":"))


def write_strings():
    with open(path("strings.jsonl"), "w") as f:
        for s in VALID:
            f.write(json.dumps(s) + "\n")
        for b in strings.BAD:
            f.write(dump({"b": base64.b64encode(b).decode()}) + "\n")


def write_golden(name, encode, special, decode, bad=False):
    texts = VALID + (strings.BAD if bad else [])
    with open(path(name + ".golden.jsonl"), "w") as f:
        for s in texts:
            ids = encode(s)
            row = {"i": ids}
            if special and special(s) != ids:
                row["s"] = special(s)
            d = decode(ids)
            if d != s:
                row["d"] = d
            f.write(json.dumps(row, separators=(",", ":")) + "\n")
        f.write("{}\n" * (len(VALID) + len(strings.BAD) - len(texts)))


def hf_golden(name, tok):
    with open(path(name + ".json"), "w") as f:
        f.write(dump(json.loads(tok.to_str())) + "\n")
    tok = Tokenizer.from_file(path(name + ".json"))
    write_golden(name, lambda s: tok.encode(s, add_special_tokens=False).ids,
                 lambda s: tok.encode(s).ids, lambda ids: tok.decode(ids, skip_special_tokens=False))


def byte_level(name, size, specials, setup):
    tok = Tokenizer(models.BPE(ignore_merges=name.startswith("llama3")))
    setup(tok)
    tok.train_from_iterator(CORPUS, trainers.BpeTrainer(
        vocab_size=size, special_tokens=specials, initial_alphabet=pre.ByteLevel.alphabet(), show_progress=False))
    return tok


def gpt2():
    def setup(t):
        t.pre_tokenizer = pre.ByteLevel(add_prefix_space=False)
        t.decoder = decoders.ByteLevel()
        t.post_processor = processors.ByteLevel(trim_offsets=False)
    tok = byte_level("gpt2", 600, ["<|endoftext|>"], setup)
    tok.add_special_tokens([AddedToken("<mask>", lstrip=True, special=True), AddedToken("[R]", rstrip=True, special=True)])
    tok.add_tokens([AddedToken("whole", single_word=True, normalized=True), AddedToken("<extra>", lstrip=True, rstrip=True, normalized=False)])
    hf_golden("gpt2", tok)


def gpt2_prefix():
    def setup(t):
        t.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Lowercase()])
        t.pre_tokenizer = pre.ByteLevel(add_prefix_space=True)
        t.decoder = decoders.ByteLevel()
    tok = byte_level("prefix", 400, ["<|endoftext|>"], setup)
    tok.add_tokens([AddedToken("Whole", single_word=True, normalized=True)])
    hf_golden("prefix", tok)


def llama3():
    names = ["<|begin_of_text|>", "<|end_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"]

    def setup(t):
        t.pre_tokenizer = pre.Sequence([pre.Split(Regex(LLAMA3), "isolated", False),
                                        pre.ByteLevel(add_prefix_space=False, trim_offsets=True, use_regex=False)])
        t.decoder = decoders.ByteLevel()
    tok = byte_level("llama3", 620, [], setup)
    # A token that merges do not reach: ignore_merges finds it anyway.
    state = json.loads(tok.to_str())
    state["model"]["vocab"]["Ġhedgerow"] = len(state["model"]["vocab"])
    state["model"]["vocab"]["'ſ".replace("ſ", "Å¿")] = len(state["model"]["vocab"])
    state["model"]["merges"] = [" ".join(m) for m in state["model"]["merges"]]
    tok = Tokenizer.from_str(json.dumps(state))
    tok.add_special_tokens(names)
    bos = tok.token_to_id(names[0])
    tok.post_processor = processors.Sequence([
        processors.ByteLevel(trim_offsets=False),
        processors.TemplateProcessing(single=f"{names[0]} $A", pair=f"{names[0]} $A {names[0]}:1 $B:1", special_tokens=[(names[0], bos)])])
    hf_golden("llama3", tok)


def qwen2():
    def setup(t):
        t.normalizer = normalizers.NFC()
        t.pre_tokenizer = pre.Sequence([pre.Split(Regex(QWEN2), "isolated", False), pre.ByteLevel(add_prefix_space=False, use_regex=False)])
        t.decoder = decoders.ByteLevel()
    hf_golden("qwen2", byte_level("qwen2", 500, ["<|endoftext|>", "<|im_start|>", "<|im_end|>"], setup))


def other():
    """Splitters of all kinds in a row, one of them by a pattern of no known family."""
    def setup(t):
        t.pre_tokenizer = pre.Sequence([
            pre.Digits(individual_digits=True), pre.Split("<", "merged_with_next"), pre.Punctuation("contiguous"),
            pre.Split(Regex(OTHER), "isolated"), pre.ByteLevel(add_prefix_space=False, use_regex=False)])
        t.decoder = decoders.Sequence([decoders.ByteLevel(), decoders.Strip(" ", 1, 0), decoders.Replace("the", "THE")])
        t.normalizer = normalizers.Sequence([normalizers.NFD(), normalizers.Strip(), normalizers.Replace(Regex(r"\s{3,}"), "  ")])
    hf_golden("other", byte_level("other", 400, ["<|endoftext|>"], setup))


O200K = (r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
         r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
         r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+")
CL100K = (r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s")


def patterns():
    """Patterns without a scanner: with categories, possessive repeats, line ends."""
    for name, expr in (("o200k", O200K), ("cl100k", CL100K.replace("{1,3}+", "{1,3}"))):
        def setup(t):
            t.pre_tokenizer = pre.Sequence([pre.Split(Regex(expr), "isolated"), pre.ByteLevel(add_prefix_space=False, use_regex=False)])
            t.decoder = decoders.ByteLevel()
        hf_golden(name, byte_level(name, 600, ["<|endoftext|>"], setup))


def words():
    """Characters, no bytes: unknown tokens, white space dropped."""
    for name, fuse in (("words", False), ("fused", True)):
        tok = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=fuse))
        tok.normalizer = normalizers.NFKD()
        tok.pre_tokenizer = pre.Sequence([pre.WhitespaceSplit() if fuse else pre.Whitespace(), pre.Split(Regex("[aeiou]"), "merged_with_previous", invert=fuse)])
        tok.train_from_iterator(CORPUS[:24], trainers.BpeTrainer(vocab_size=330, special_tokens=["<unk>"], show_progress=False))
        hf_golden(name, tok)


def train_spm(name, **kw):
    out = io.BytesIO()
    spm.SentencePieceTrainer.train(sentence_iterator=iter(CORPUS[:24] * 2), model_writer=out, model_type="bpe",
                                   normalization_rule_name="identity", character_coverage=0.98,
                                   minloglevel=2, **kw)
    with open(path(name + ".model"), "wb") as f:
        f.write(out.getvalue())
    sp = spm.SentencePieceProcessor(model_proto=out.getvalue())
    write_golden(name, lambda s: sp.encode(s), None, lambda ids: sp.decode(ids), bad=True)
    return sp


def llama2(sp):
    """The SentencePiece model as a tokenizer.json, in the old and the new form."""
    n = sp.get_piece_size()
    vocab = {sp.id_to_piece(i): i for i in range(n)}
    pairs = []
    for piece, i in vocab.items():
        if sp.is_byte(i) or sp.is_control(i) or sp.is_unknown(i):
            continue
        local = [(piece[:k], piece[k:]) for k in range(1, len(piece)) if piece[:k] in vocab and piece[k:] in vocab]
        pairs += [(sp.get_score(i), a, b) for a, b in sorted(local, key=lambda x: (vocab[x[0]], vocab[x[1]]))]
    pairs.sort(key=lambda p: -p[0])
    merges = [(a, b) for _, a, b in pairs]

    def build():
        tok = Tokenizer(models.BPE(vocab, merges, unk_token="<unk>", fuse_unk=True, byte_fallback=True))
        tok.post_processor = processors.TemplateProcessing(single="<s> $A", pair="<s> $A <s>:1 $B:1", special_tokens=[("<s>", 1)])
        return tok
    old = build()
    old.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    old.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)])
    old.add_special_tokens([AddedToken(t, normalized=True, special=True) for t in ("<unk>", "<s>", "</s>")])
    hf_golden("llama2", old)
    new = build()
    new.pre_tokenizer = pre.Metaspace("▁", "first", False)
    new.decoder = old.decoder
    new.add_special_tokens([AddedToken(t, normalized=False, special=True) for t in ("<unk>", "<s>", "</s>")])
    new.add_tokens([AddedToken("whole", single_word=True, normalized=True), AddedToken("<extra>", lstrip=True, rstrip=True, normalized=False)])
    hf_golden("metaspace", new)
    split = build()
    split.normalizer = normalizers.NFKC()
    split.pre_tokenizer = pre.Metaspace("▁", "always", True)
    split.decoder = decoders.Metaspace("▁", "always", True)
    split.add_special_tokens(["</s>"])
    hf_golden("metasplit", split)


def ours():
    """What Hugging Face tokenizers makes of a tokenizer that pleach has trained."""
    tok = Tokenizer.from_file(path("ours/tokenizer.json"))
    assert json.loads(tok.to_str()) == json.load(open(path("ours/tokenizer.json")))
    write_golden("ours", lambda s: tok.encode(s, add_special_tokens=False).ids, lambda s: tok.encode(s).ids,
                 lambda ids: tok.decode(ids, skip_special_tokens=False))
    with open(path("corpus.txt"), "w") as f:
        f.write(strings.TEXT)
    ref = Tokenizer(models.BPE())
    ref.pre_tokenizer = pre.ByteLevel(add_prefix_space=False)
    ref.train_from_iterator([strings.TEXT], trainers.BpeTrainer(
        vocab_size=500, special_tokens=["<|endoftext|>"], initial_alphabet=pre.ByteLevel.alphabet(), show_progress=False))
    a, b = json.loads(ref.to_str())["model"], json.load(open(path("ours/tokenizer.json")))["model"]
    print("trained vocabulary equal:", a["vocab"] == b["vocab"], "merges equal:", a["merges"] == b["merges"])


def real(data):
    """The Llama 2 tokenizer on the hard strings, and a hash of its ids on real text."""
    sp = spm.SentencePieceProcessor(model_file=os.path.join(data, "tokenizers/llama2.model"))
    write_golden("real", lambda s: sp.encode(s), None, lambda ids: sp.decode(ids), bad=True)
    rows = []
    for name in ("wikitext2/valid.txt", "wikitext2/test.txt", "tokenizers/botchan.txt"):
        text = open(os.path.join(data, name), "rb").read()
        for how, parts in (("lines", text.split(b"\n")), ("whole", [text])):
            h, n = hashlib.sha256(), 0
            for part in parts:
                ids = sp.encode(part)
                n += len(ids)
                h.update(struct.pack(f"<{len(ids)}i", *ids))
                h.update(sp.decode(ids).encode())
            rows.append({"file": name, "how": how, "ids": n, "sha256": h.hexdigest()})
    with open(path("real.json"), "w") as f:
        f.write("\n".join(dump(r) for r in rows) + "\n")


if __name__ == "__main__":
    write_strings()
    gpt2()
    gpt2_prefix()
    llama3()
    qwen2()
    other()
    patterns()
    words()
    llama2(train_spm("piece", vocab_size=700, byte_fallback=True, remove_extra_whitespaces=False,
                     allow_whitespace_only_pieces=True, split_digits=True))
    train_spm("trim", vocab_size=420, user_defined_symbols=["<mask>", "whole", "[R]"], byte_fallback=False)
    if "PLEACH_TESTDATA" in os.environ:
        real(os.environ["PLEACH_TESTDATA"])
    if os.path.exists(path("ours/tokenizer.json")):
        ours()
