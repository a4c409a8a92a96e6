# SPDX-FileCopyrightText: 2026 The pleach authors
# SPDX-License-Identifier: Apache-2.0

"""Writes perplexity.json: the negative log-likelihood of documents of ids,
scored in rolling windows.

    python score.py && python perplexity.py

The windows are those of lm-evaluation-harness (loglikelihood_rolling) with a
context of one id, M = sequence:

- The first window predicts d[0:min(M,n)]; its inputs are begin-of-sequence and
  the same ids without the last.
- Each following window predicts the next M ids, d[e-M:e]; its inputs are the M
  ids before each of them, d[e-M-1:e-1]: one id of context before the first
  prediction.
- The last window may have only p < M ids left to predict. It still takes M
  inputs, d[n-M-1:n-1], and only its last p predictions are scored; the ids
  before have been scored by the window before it. So a late id of the last
  window has more context than one at the start of a full window.

Every window is a sequence of its own: positions start at 0. nll is the sum over
a document with model.double() (common.py, as_is), nll64 with everything in
float64 (exact); windows is [inputs, scored] per window.
"""

from common import *

MODEL, M, BOS = "mha", 32, 1
LENGTHS = [5, 31, 32, 33, 63, 64, 65, 97, 200]


def windows(d, bos, m):
    """(inputs, number scored) in order; the targets are the ids that follow."""
    n = len(d)
    stream = [bos] + d  # stream[i] is the input that predicts d[i]
    first = min(m, n)
    out, done = [(stream[:first], first)], first
    while done < n:
        p = min(m, n - done)
        done += p
        out.append((stream[done - m:done], p))
    return out


def check():
    """34 ids, windows of 10: the example in the harness's own test."""
    w = windows(list(range(34)), -100, 10)
    assert [len(x) for x, _ in w] == [10] * 4 and [p for _, p in w] == [10, 10, 10, 4]
    assert w[0][0] == [-100] + list(range(9)) and w[1][0] == list(range(9, 19))
    assert w[3][0] == list(range(23, 33))


def nll(model, d):
    total, end = 0.0, 0
    for inputs, p in windows(d, BOS, M):
        end += p
        lp = log_probs(model, inputs)[-p:]
        total -= sum(lp[i, t].item() for i, t in enumerate(d[end - p:end]))
    assert end == len(d)
    return total


def main():
    check()
    path = os.path.join(HERE, "score", MODEL)
    asis, ex = load64(path, "as_is"), load64(path, "exact")
    r = random.Random(31)
    docs = [[r.randrange(97) for _ in range(n)] for n in LENGTHS]
    out = {"model": "score/" + MODEL, "sequence": M, "bos": BOS, "documents": docs,
           "windows": [[[len(x), p] for x, p in windows(d, BOS, M)] for d in docs],
           "nll": [nll(asis, d) for d in docs], "nll64": [nll(ex, d) for d in docs]}
    tokens = sum(LENGTHS)
    out["tokens"], out["perplexity"] = tokens, math.exp(sum(out["nll"]) / tokens)
    with open(os.path.join(HERE, "perplexity.json"), "w", encoding="utf-8") as f:
        f.write(json.dumps(out) + "\n")
    gap = max(abs(a - b) for a, b in zip(out["nll"], out["nll64"]))
    print(f"perplexity {out['perplexity']:.3f} of {tokens} ids, |as_is-exact| {gap:.1e}")


if __name__ == "__main__":
    main()
