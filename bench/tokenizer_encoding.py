# SPDX-FileCopyrightText: 2026 The pleach authors
# SPDX-License-Identifier: Apache-2.0

"""pleach and other tokenizers in turns on the same documents: MB/s and ratios as a table in Markdown.

Makes two corpora and the tokenizers once, in --work. Then runs `pleach bench tokenizer` and, each in
a process of its own, Hugging Face tokenizers, tiktoken and SentencePiece, in turns. The ids of all
must be equal (SHA-256 over those of every document), or the script fails. MB are 10⁶ bytes of UTF-8.
By hand, on a machine that does nothing else.

    go build ./cmd/pleach
    venv/bin/pip install tokenizers tiktoken sentencepiece
    venv/bin/python bench/tokenizer_encoding.py --data DATA --threads 1 2 --runs 3

DATA holds wikitext2/{valid,test}.txt, pubmed/{train,heldout}.jsonl and tokenizers/llama2.model.
"""

import argparse
import array
import hashlib
import json
import os
import pathlib
import re
import resource
import statistics
import subprocess
import sys
import time

SPLITS = {
    "gpt2": r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
    "llama3": r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
              r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
}


def arguments():
    parse = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parse.add_argument("--pleach", default="./pleach", help="the program to measure")
    parse.add_argument("--data", type=pathlib.Path, default=os.environ.get("PLEACH_TESTDATA"), help="where the texts are")
    parse.add_argument("--work", type=pathlib.Path, default="bench-tokenizers", help="folder for what is made")
    parse.add_argument("--threads", nargs="+", type=int, default=[1, 2])
    parse.add_argument("--runs", type=int, default=3, help="processes of each, of which the median counts")
    parse.add_argument("--passes", type=int, default=3, help="of a process, of which the median counts, after one that does not")
    parse.add_argument("--cpu", action="store_true", help="compare MB for a second of processor time: where others use the machine too")
    parse.add_argument("--corpora", nargs="+", default=["text", "code"])
    parse.add_argument("--tokenizers", nargs="+", default=["gpt2", "llama3", "llama2", "unigram"])
    parse.add_argument("--unigram", type=pathlib.Path, help="a unigram model; otherwise that of DATA, if pleach reads it")
    parse.add_argument("--peer", nargs=3, metavar=("KIND", "TOKENIZER", "DOCUMENTS"), help=argparse.SUPPRESS)
    return parse.parse_args()


# The corpora: documents in JSONL, and the same texts for training.

def texts(data):
    """WikiText-2 by articles and PubMed abstracts: 4.1 MB."""
    for name in ("valid", "test"):
        text = (data / f"wikitext2/{name}.txt").read_text()
        yield from (a for a in re.split(r"(?m)^(?= = [^=].*[^=] = $)", text) if a.strip())
    for name in ("train", "heldout"):
        yield from documents(data / f"pubmed/{name}.jsonl")


def sources(limit):
    """Go source files up to a number of bytes."""
    root = pathlib.Path(subprocess.check_output(["go", "env", "GOROOT"], text=True).strip(), "src")
    size = 0
    for path in sorted(p for p in root.rglob("*.go") if p.is_file()):
        code = path.read_bytes()
        if size < limit and code.strip() and code.isascii():
            size += len(code)
            yield code.decode()


def mixed(a, b):
    """Both lists, each spread over the whole."""
    places = [(k / len(x), d) for x in (a, b) for k, d in enumerate(x)]
    return [d for _, d in sorted(places, key=lambda p: p[0])]


def corpora(args):
    made = {name: args.work / f"{name}.jsonl" for name in ("text", "code")}
    if not all(p.exists() for p in made.values()):
        args.work.mkdir(parents=True, exist_ok=True)
        text = list(texts(args.data))
        for name, docs in (("text", text * 12), ("code", mixed(text, list(sources(46_000_000))))):
            with made[name].open("w") as file:
                for d in docs:
                    print(json.dumps({"text": d}), file=file)
    return made


def documents(path):
    with open(path) as file:
        return [json.loads(line)["text"] for line in file]


# The tokenizers.

def byte_level(split, docs, out):
    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers as pre, trainers
    t = Tokenizer(models.BPE())
    t.pre_tokenizer = pre.Sequence([pre.Split(Regex(SPLITS[split]), "isolated"),
                                    pre.ByteLevel(add_prefix_space=False, use_regex=False)])
    t.decoder = decoders.ByteLevel()
    t.train_from_iterator(docs, trainers.BpeTrainer(
        vocab_size=32_000, initial_alphabet=pre.ByteLevel.alphabet(), show_progress=False))
    t.save(str(out))


def converted(model, out):
    """A SentencePiece BPE model as a tokenizer.json, as the published ones of Llama 2 are."""
    import sentencepiece
    from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers
    sp = sentencepiece.SentencePieceProcessor(model_file=str(model))
    vocab = {sp.id_to_piece(i): i for i in range(sp.get_piece_size())}
    pairs = []
    for piece, i in vocab.items():
        if not (sp.is_byte(i) or sp.is_control(i) or sp.is_unknown(i)):
            cuts = [(piece[:k], piece[k:]) for k in range(1, len(piece))]
            cuts = sorted(((a, b) for a, b in cuts if a in vocab and b in vocab), key=lambda c: (vocab[c[0]], vocab[c[1]]))
            pairs += [(-sp.get_score(i), c) for c in cuts]
    pairs.sort(key=lambda p: p[0])
    t = Tokenizer(models.BPE(vocab, [c for _, c in pairs], unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    t.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    t.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)])
    t.add_special_tokens([AddedToken(s, normalized=False, special=True) for s in ("<unk>", "<s>", "</s>")])
    t.save(str(out))


def cases(args, made):
    """What is measured: name, file of the tokenizer, peers."""
    for name in args.tokenizers:
        out = args.work / f"{name}.json"
        if name in SPLITS:
            if not out.exists():
                byte_level(name, documents(made["code"]), out)
            yield f"byte-level BPE 32k, {name} split", out, ["hf", "tiktoken"]
        elif name == "llama2":
            model = args.data / "tokenizers/llama2.model"
            if not out.exists():
                converted(model, out)
            yield "Llama 2, tokenizer.json", out, ["hf"]
            yield "Llama 2, tokenizer.model", model, ["sentencepiece"]
        elif name == "unigram":
            model = args.unigram or args.data / "tokenizers/sentencepiece_en_unigram_1000.model"
            known = subprocess.run([args.pleach, "tokenizer", "inspect", model], capture_output=True, text=True)
            if known.returncode == 0 or args.unigram:
                yield "unigram", model, ["sentencepiece"]
            else:
                print(f"unigram left out: {known.stderr.strip()}", file=sys.stderr)


# The peers. Each runs in a process of its own, which prints what pleach prints.

def hf(path, threads):
    os.environ.update(RAYON_NUM_THREADS=str(threads), TOKENIZERS_PARALLELISM="true")
    from tokenizers import Tokenizer, __version__
    t = Tokenizer.from_file(path)
    return (lambda docs: t.encode_batch_fast(docs, add_special_tokens=False)), lambda e: e.ids, f"tokenizers {__version__}"


def tiktoken(path, threads):
    import tiktoken
    state = json.loads(pathlib.Path(path).read_text())
    letters = list(range(33, 127)) + list(range(161, 173)) + list(range(174, 256))
    others = [b for b in range(256) if b not in letters]
    back = {chr(b): b for b in letters} | {chr(256 + n): b for n, b in enumerate(others)}
    ranks = {bytes(back[c] for c in token): i for token, i in state["model"]["vocab"].items()}
    pattern = next(p["pattern"]["Regex"] for p in state["pre_tokenizer"]["pretokenizers"] if p["type"] == "Split")
    t = tiktoken.Encoding("bench", pat_str=pattern, mergeable_ranks=ranks, special_tokens={})
    if threads == 1:
        return (lambda docs: [t.encode_ordinary(d) for d in docs]), list, f"tiktoken {tiktoken.__version__}"
    return (lambda docs: t.encode_ordinary_batch(docs, num_threads=threads)), list, f"tiktoken {tiktoken.__version__}"


def sentencepiece(path, threads):
    import sentencepiece as spm
    t = spm.SentencePieceProcessor(model_file=path)
    return (lambda docs: t.encode(docs, num_threads=threads)), list, f"sentencepiece {spm.__version__}"


def peer(args):
    kind, path, docs = args.peer
    threads = args.threads[0]
    encode, ids, version = {"hf": hf, "tiktoken": tiktoken, "sentencepiece": sentencepiece}[kind](path, threads)
    docs = documents(docs)
    size = sum(len(d.encode()) for d in docs)
    took, worked = [], []
    for _ in range(1 + args.passes):
        out = None  # the memory of the pass before
        began, cpu = time.perf_counter(), time.process_time()
        out = encode(docs)
        took.append(time.perf_counter() - began)
        worked.append(time.process_time() - cpu)
    rss = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    digest, tokens = hashlib.sha256(), 0
    for e in out:
        one = array.array("i", ids(e))
        tokens += len(one)
        digest.update(len(one).to_bytes(4, "little") + one.tobytes())
    median = statistics.median(took[1:])
    print(json.dumps({
        "threads": threads, "mb_per_second": size / 1e6 / median, "best_mb_per_second": size / 1e6 / min(took[1:]),
        "tokens_per_second": tokens / median, "mb_per_cpu_second": size / 1e6 * args.passes / sum(worked[1:]), "peak_rss_bytes": rss, "documents": len(docs), "bytes": size,
        "tokens": tokens, "ids_sha256": digest.hexdigest(), "version": version,
    }))


# Side by side.

def run(command):
    done = subprocess.run([str(c) for c in command], stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def compare(args, tokenizer, peers, docs, threads):
    """The reports of each program, measured in turns; their ids must be equal."""
    common = ["--threads", threads, "--passes", args.passes]
    commands = {"pleach": [args.pleach, "bench", "tokenizer", tokenizer, docs, "--json"] + common}
    for p in peers:
        commands[p] = [sys.executable, __file__, "--peer", p, tokenizer, docs] + common
    reports = {name: [] for name in commands}
    for turn in range(args.runs):
        for name in sorted(commands, reverse=turn % 2 == 1):
            reports[name].append(run(commands[name]))
    sums = {r["ids_sha256"] for of in reports.values() for r in of}
    if len(sums) > 1:
        counts = {name: of[0]["tokens"] for name, of in reports.items()}
        raise SystemExit(f"{tokenizer} on {docs}: the ids differ; tokens: {counts}")
    return reports


def rows(args, name, tokenizer, peers, corpus, docs, threads):
    reports = compare(args, tokenizer, peers, docs, threads)
    key = "mb_per_cpu_second" if args.cpu else "mb_per_second"
    speed = {k: [r[key] for r in of] for k, of in reports.items()}
    memory = {k: statistics.median(r["peak_rss_bytes"] for r in of) / 2**20 for k, of in reports.items()}
    mine = statistics.median(speed["pleach"])
    for p in peers:
        theirs = statistics.median(speed[p])
        each = [a / b for a, b in zip(speed["pleach"], speed[p])]
        cells = [name, corpus, threads, f"{mine:.1f}", reports[p][0]["version"], f"{theirs:.1f}",
                 f"**{mine / theirs:.1f}** ({min(each):.1f}–{max(each):.1f})", f"{memory['pleach']:.0f}", f"{memory[p]:.0f}"]
        print("| " + " | ".join(map(str, cells)) + " |", flush=True)


def main():
    args = arguments()
    if args.peer:
        return peer(args)
    made = corpora(args)
    unit = "MB/CPU s" if args.cpu else "MB/s"
    head = f"tokenizer|corpus|threads|pleach, {unit}|peer|{unit}|ratio (of pairs)|pleach, MiB|peer, MiB"
    print("| " + head.replace("|", " | ") + " |\n|" + "---|" * (head.count("|") + 1), flush=True)
    for name, tokenizer, peers in cases(args, made):
        for corpus in args.corpora:
            for threads in args.threads:
                rows(args, name, tokenizer, peers, corpus, made[corpus], threads)


if __name__ == "__main__":
    main()
