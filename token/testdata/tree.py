# SPDX-FileCopyrightText: 2026 The pleach authors
# SPDX-License-Identifier: Apache-2.0

# Compares the ids of every family, and of the tokenizers of the shared data,
# with those of the references on the files of a tree. By hand:
#
#   go build -o pleach ../../cmd/pleach
#   python tree.py ./pleach "$(go env GOROOT)/src" MEGABYTES [NAME …]
#
# Used: tokenizers 0.23.3, sentencepiece 0.2.3.

import glob
import gzip
import json
import os
import subprocess
import sys
import tempfile

import sentencepiece as spm
from tokenizers import Tokenizer

HERE = os.path.dirname(os.path.abspath(__file__))
DATA = os.environ.get("PLEACH_TESTDATA")


def texts(tree, limit):
    """Whole files, each as one text, up to a number of bytes; only UTF-8."""
    out, size = [], 0
    for root, folders, names in os.walk(tree):
        folders.sort()
        for n in sorted(names):
            try:
                text = open(os.path.join(root, n), encoding="utf-8", newline="").read()
            except UnicodeDecodeError:
                continue
            out.append(text)
            size += len(text.encode())
            if size >= limit:
                return out, size
    return out, size


def reference(file):
    if file.endswith(".json"):
        tok = Tokenizer.from_file(file)
        return lambda s: tok.encode(s, add_special_tokens=False).ids
    return spm.SentencePieceProcessor(model_file=file).encode


def compare(pleach, name, file, lines, docs):
    encode = reference(file)
    run = subprocess.Popen([pleach, "tokenizer", "encode", file, "--jsonl", lines], stdout=subprocess.PIPE)
    different = ids = 0
    for k, line in enumerate(run.stdout):
        got, want = json.loads(line), encode(docs[k])
        ids += len(want)
        if got != want:
            different += 1
            at = next((i for i in range(min(len(got), len(want))) if got[i] != want[i]), min(len(got), len(want)))
            print(f"  text {k}: id {at}: got {got[at:at + 6]}, want {want[at:at + 6]}")
    if run.wait() or k + 1 != len(docs):
        sys.exit(f"{name}: pleach ended early")
    print(f"{name}: {len(docs)} texts, {ids} ids, {different} texts differ", flush=True)


if __name__ == "__main__":
    pleach, tree, limit, only = sys.argv[1], sys.argv[2], float(sys.argv[3]) * 1e6, sys.argv[4:]
    docs, size = texts(tree, limit)
    print(f"{size / 1e6:.1f} MB in {len(docs)} texts")
    with tempfile.TemporaryDirectory() as tmp:
        lines = os.path.join(tmp, "lines")
        with open(lines, "w") as f:
            f.writelines(json.dumps(s) + "\n" for s in docs)
        files = {}
        for z in sorted(glob.glob(os.path.join(HERE, "family", "*.json.gz")) + glob.glob(os.path.join(HERE, "family", "*.model.gz"))):
            name = os.path.basename(z)[:-3]
            if name != "strings.jsonl":
                files[name] = os.path.join(tmp, name)
                with open(files[name], "wb") as f:
                    f.write(gzip.open(z).read())
        for m in sorted(glob.glob(os.path.join(DATA or "/nowhere", "tokenizers", "*.model"))):
            files["data/" + os.path.basename(m)] = m
        for name, file in files.items():
            if not only or name.rsplit(".")[0] in only:
                compare(pleach, name, file, lines, docs)
