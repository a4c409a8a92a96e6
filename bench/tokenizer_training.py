# SPDX-FileCopyrightText: 2026 The pleach authors
# SPDX-License-Identifier: Apache-2.0

# Trains tokenizers with pleach, Hugging Face tokenizers and SentencePiece on the
# same documents, in turns, and prints medians of wall time, CPU time and peak
# memory as a table. Each run is a process of its own; reading the documents is
# counted for all three, importing Python modules for none.
#
#   python bench/tokenizer_training.py --pleach ./pleach text.jsonl code.jsonl
#   python bench/tokenizer_training.py --make DATA   writes text.jsonl and code.jsonl
#
# A corpus is JSONL with the text of a document in "text". --make builds the two
# of the table in bench/README.md: WikiText-2 and abstracts from PubMed, twelve
# times over; and the same once, shuffled with 46 MB of the Go source tree. DATA is
# a folder with wikitext2/{valid,test}.txt and pubmed/{train,heldout}.jsonl.
#
# Needs tokenizers and sentencepiece for the peers, and Linux.

import argparse
import json
import os
import random
import re
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

SETTINGS = dict(model_type="bpe", byte_fallback=True, split_digits=True, allow_whitespace_only_pieces=True,
                remove_extra_whitespaces=False, normalization_rule_name="identity", character_coverage=0.9995,
                max_sentence_length=1 << 28, minloglevel=2)


def documents(corpus):
    with open(corpus, encoding="utf8") as f:
        for line in f:
            yield json.loads(line)["text"]


def make(data):
    """Writes the two corpora into this folder."""
    docs = []
    for name in ("valid", "test"):
        text = open(os.path.join(data, "wikitext2", name + ".txt"), encoding="utf8").read()
        docs += [d for d in re.split(r"(?m)^(?= = [^=].* = $)", text) if d]
    for name in ("train", "heldout"):
        docs += documents(os.path.join(data, "pubmed", name + ".jsonl"))
    root = subprocess.check_output(["go", "env", "GOROOT"], text=True).strip()
    code, size = [], 0
    for folder, _, files in sorted(os.walk(os.path.join(root, "src"))):
        for name in sorted(files):
            if not name.endswith(".go"):
                continue
            b = open(os.path.join(folder, name), "rb").read()
            try:
                text = b.decode()
            except UnicodeDecodeError:
                continue
            if size + len(b) <= 46_000_000:
                size += len(b)
                code.append(text)
    mixed = docs + code
    random.Random(1).shuffle(mixed)
    for name, all_docs in (("text", docs * 12), ("code", mixed)):
        with open(name + ".jsonl", "w", encoding="utf8") as f:
            for d in all_docs:
                f.write(json.dumps({"text": d}, ensure_ascii=False) + "\n")
        print(f"{name}.jsonl: {len(all_docs)} documents, {sum(len(d.encode()) for d in all_docs)} bytes")


def train_peer(peer, corpus, size, threads):
    """Runs in a process of its own and prints seconds of wall and CPU time, and MiB."""
    if peer == "tokenizers":
        from tokenizers import Tokenizer, models, pre_tokenizers, trainers
        tok = Tokenizer(models.BPE())
        tok.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        trainer = trainers.BpeTrainer(vocab_size=size, special_tokens=["<|endoftext|>"], show_progress=False,
                                      initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
        run = lambda: tok.train_from_iterator(documents(corpus), trainer)
    else:
        import io
        import sentencepiece
        lines = (line for doc in documents(corpus) for line in doc.split("\n") if line)
        run = lambda: sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=lines, model_writer=io.BytesIO(), vocab_size=size, num_threads=threads, **SETTINGS)
    wall, cpu = time.perf_counter(), time.process_time()
    run()
    print(time.perf_counter() - wall, time.process_time() - cpu, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)


def run_peer(peer, corpus, size, threads):
    env = dict(os.environ, RAYON_NUM_THREADS=str(threads), TOKENIZERS_PARALLELISM="true")
    out = subprocess.run([sys.executable, __file__, corpus, "--peer", peer, "--size", str(size), "--threads", str(threads)],
                         env=env, check=True, capture_output=True, text=True).stdout
    return [float(x) for x in out.split()]


def run_pleach(program, kind, corpus, size, threads):
    out = tempfile.mkdtemp()
    args = [program, "tokenizer", "train", corpus, "--size", str(size), "--threads", str(threads),
            "--min-frequency", "1", "--out", os.path.join(out, "t"), "--kind", kind]
    if kind == "sentencepiece":
        args.append("--split-digits")
    began = time.perf_counter()
    p = subprocess.Popen(args, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(p.pid, 0)
    wall = time.perf_counter() - began
    shutil.rmtree(out)
    if status != 0:
        raise SystemExit("pleach failed: " + " ".join(args))
    return [wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024]


def main():
    p = argparse.ArgumentParser()
    p.add_argument("corpora", nargs="*")
    p.add_argument("--make", metavar="DATA")
    p.add_argument("--pleach", default="./pleach")
    p.add_argument("--size", type=int, default=32000)
    p.add_argument("--threads", type=int, nargs="*", default=[1, 2])
    p.add_argument("--runs", type=int, default=3)
    p.add_argument("--peer")
    o = p.parse_args()
    if o.make:
        return make(o.make)
    if o.peer:
        return train_peer(o.peer, o.corpora[0], o.size, o.threads[0])
    trainers = {
        "pleach, byte-level": lambda c, t: run_pleach(o.pleach, "byte-level", c, o.size, t),
        "Hugging Face tokenizers, byte-level": lambda c, t: run_peer("tokenizers", c, o.size, t),
        "pleach, sentencepiece": lambda c, t: run_pleach(o.pleach, "sentencepiece", c, o.size, t),
        "SentencePiece, BPE with byte fallback": lambda c, t: run_peer("sentencepiece", c, o.size, t),
    }
    print("| trainer | corpus | threads | wall, s | CPU, s | peak, MiB |\n|---|---|---|---|---|---|")
    for corpus in o.corpora:
        for threads in o.threads:
            rows = {name: [] for name in trainers}
            for _ in range(o.runs):
                for name, run in trainers.items():
                    rows[name].append(run(corpus, threads))
            for name, r in rows.items():
                wall, cpu, peak = (statistics.median(x) for x in zip(*r))
                label = os.path.splitext(os.path.basename(corpus))[0]
                print(f"| {name} | {label} | {threads} | {wall:.2f} | {cpu:.2f} | {peak:.0f} |", flush=True)


if __name__ == "__main__":
    main()
