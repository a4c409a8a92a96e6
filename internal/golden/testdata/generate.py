# SPDX-FileCopyrightText: 2026 The pleach authors
# SPDX-License-Identifier: Apache-2.0

"""Writes generate/<case>.json: greedy continuations of models of score/.

    python score.py && python generate.py

The next id is the argmax of the float64 logits (common.py, as_is), the lowest
id among equals; the whole sequence is computed anew for each id. Nothing stops
a continuation early, not even the end-of-sequence id. margin is the smallest
difference between the best and the second logit on the way: prompts are
redrawn until it is above 0.02, so that a float32 program cannot choose
otherwise by rounding.
"""

from common import *

NEW, MARGIN = 16, 0.02
PROMPTS = [1, 5, 12]


def greedy(model, prompt):
    ids, margin = list(prompt), math.inf
    for _ in range(NEW):
        lp = log_probs(model, ids)[-1].tolist()
        a, b = sorted(range(len(lp)), key=lambda i: (-lp[i], i))[:2]
        margin = min(margin, lp[a] - lp[b])
        ids.append(a)
    return ids[len(prompt):], margin


def main():
    for case, seed in (("mha", 21), ("gqa-llama3-tied", 22)):
        path = os.path.join(HERE, "score", case)
        model, r, out = load64(path, "as_is"), random.Random(seed), []
        for n in PROMPTS:
            while True:
                prompt = [r.randrange(model.config.vocab_size) for _ in range(n)]
                want, margin = greedy(model, prompt)
                if margin > MARGIN and len(set(want)) > 4:
                    break
            out.append({"prompt": prompt, "want": want, "margin": margin})
        os.makedirs(os.path.join(HERE, "generate"), exist_ok=True)
        with open(os.path.join(HERE, "generate", case + ".json"), "w", encoding="utf-8") as f:
            f.write(json.dumps({"model": "score/" + case, "prompts": out}) + "\n")
        for o in out:
            print(case, o)


if __name__ == "__main__":
    main()
