# SPDX-FileCopyrightText: 2026 The pleach authors
# SPDX-License-Identifier: Apache-2.0

"""Writes train/<case>/: twenty steps of a plain PyTorch loop.

    python train.py

The recipe that the loop follows (case constant: schedule {constant: {}}, clip
none):

    data:  {sequence: 48, sources: [{path: rows.jsonl, field: tokens, rows: true, mask: mask}]}
    train:
      until: 20 steps
      batch: 4 sequences
      precision: f32
      optimizer: {adamw: {lr: 3e-3, betas: [0.9, 0.95], eps: 1e-8, decay: 0.1, except: [norms, biases]}}
      schedule: {cosine: {warmup: 5 steps, floor: 3e-4}}
      clip: 1.0

Step s = 1, 2, … takes the rows g = 4(s-1) … 4s-1, row g being line g modulo
the number of lines. A row has 49 ids: inputs are the first 48, targets the
last 48. mask[i] = 1: id i counts as a target, so it is the label of position
i-1, and mask[0] means nothing. The loss is the sum over the unmasked targets
of the whole batch divided by their count. loss and grad_norm are those before
the update and before clipping.

Two loops: one in float32 (loss, grad_norm; sum and sumsq in final.json), which
is LlamaForCausalLM as it is, and one in float64 throughout (the names that end
in 64), by which a tolerance can be judged. Weights after a step are held where
the loop computes: nothing is rounded to float32 in the second.
"""

from common import *

T, B, S, W = 48, 4, 20, 5
LR, FLOOR = 3e-3, 3e-4
LINES = 13  # no multiple of the batch: every epoch starts elsewhere in a batch

BASE = dict(vocab_size=101, hidden_size=32, intermediate_size=88, num_hidden_layers=2,
            num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=64,
            rms_norm_eps=1e-5)

# name: (model, masked rows, schedule, clip)
CASES = {
    "plain": (BASE, False, "cosine", 1.0),
    "masked": (BASE, True, "cosine", 1.0),
    "tied": (dict(BASE, tie_word_embeddings=True), False, "cosine", 1.0),
    "constant": (BASE, False, "constant", None),
    # biases (no decay on them), head_dim unlike D/H, linear RoPE, tied, masked
    "bias": (dict(BASE, hidden_size=24, intermediate_size=56, num_attention_heads=3,
                  num_key_value_heads=1, head_dim=10, attention_bias=True, mlp_bias=True,
                  tie_word_embeddings=True,
                  rope_parameters={"rope_type": "linear", "rope_theta": 5e4, "factor": 2.5}),
             True, "cosine", 1.0),
}


def rate(schedule, s):
    """The learning rate of step s = 1, 2, …, S; the floor at the last."""
    if schedule == "constant":
        return LR
    if s <= W:
        return LR * s / W
    return FLOOR + (LR - FLOOR) * (1 + math.cos(math.pi * (s - W) / (S - W))) / 2


def make_rows(masked, vocab):
    """Ids with something to learn: a walk in which three of four ids follow
    from the one before. Masks: spans of uneven share; line 4 is all zero."""
    r = random.Random(7)
    next_id = [r.randrange(vocab) for _ in range(vocab)]
    out = []
    for n in range(LINES):
        ids = [r.randrange(vocab)]
        while len(ids) < T + 1:
            ids.append(next_id[ids[-1]] if r.random() < 0.75 else r.randrange(vocab))
        out.append({"tokens": ids})
    if masked:
        r = random.Random(8)
        for n, row in enumerate(out):
            bit, mask = r.randrange(2), []
            while len(mask) < T + 1:
                mask += [bit] * r.randrange(1, 2 + 3 * n if bit else 12)
                bit = 1 - bit
            row["mask"] = [0] * (T + 1) if n == 4 else mask[:T + 1]
    return out


def groups(model):
    """Decay on matrices and embeddings, none on norms and biases."""
    plain = lambda n: "norm" in n or n.endswith("bias")
    named = list(model.named_parameters())
    return [{"params": [p for n, p in named if not plain(n)], "weight_decay": 0.1},
            {"params": [p for n, p in named if plain(n)], "weight_decay": 0.0}]


def nll_sum(model, rows):
    """Sum over the unmasked targets of these rows."""
    ids = torch.tensor([row["tokens"] for row in rows])
    mask = torch.tensor([row.get("mask", [1] * (T + 1)) for row in rows])
    labels = ids[:, 1:].masked_fill(mask[:, 1:] == 0, -100)
    logits = model(ids[:, :-1]).logits
    return torch.nn.functional.cross_entropy(
        logits.flatten(0, 1), labels.flatten(), reduction="sum", ignore_index=-100)


def count(rows):
    return sum(sum(row["mask"][1:]) if "mask" in row else T for row in rows)


def run(base, rows, schedule, clip, double=False, micro=B):
    model = LlamaForCausalLM.from_pretrained(
        base, dtype=torch.float32, attn_implementation="sdpa").train()
    if double:
        model = exact(model.double())
    opt = torch.optim.AdamW(groups(model), betas=(0.9, 0.95), eps=1e-8, foreach=False)
    params = [p for _, p in model.named_parameters()]
    steps = []
    for s in range(1, S + 1):
        batch = [rows[g % len(rows)] for g in range((s - 1) * B, s * B)]
        targets, total = count(batch), 0.0
        opt.zero_grad()
        for i in range(0, B, micro):
            loss = nll_sum(model, batch[i:i + micro]) / targets
            loss.backward()
            total += loss.item()
        if clip is None:
            norm = torch.nn.utils.get_total_norm([p.grad for p in params])
        else:
            norm = torch.nn.utils.clip_grad_norm_(params, clip)  # min(1, clip/(norm+1e-6))
        lr = rate(schedule, s)
        for group in opt.param_groups:
            group["lr"] = lr
        opt.step()
        steps.append({"step": s, "loss": total, "grad_norm": norm.item(), "lr": lr,
                      "targets": targets})
    return model, steps


def sums(model):
    return {n: (p.detach().double().sum().item(), p.detach().double().pow(2).sum().item())
            for n, p in model.named_parameters()}


def worst(a, b, key):
    return max(abs(x[key] - y[key]) / abs(y[key]) for x, y in zip(a, b))


def main():
    assert rate("cosine", S) == FLOOR and rate("cosine", W) == LR
    for case, (config, masked, schedule, clip) in CASES.items():
        path = os.path.join(HERE, "train", case)
        base = os.path.join(path, "base")
        model = LlamaForCausalLM(LlamaConfig(**config))
        randomize(model, 11, matrix=0.1, embed=0.1, bias=0.1)
        save(model, base)
        rows = make_rows(masked, config["vocab_size"])
        write_lines(os.path.join(path, "rows.jsonl"), rows)

        m32, a = run(base, rows, schedule, clip)
        m64, b = run(base, rows, schedule, clip, double=True)
        for x, y in zip(a, b):
            x["loss64"], x["grad_norm64"] = y["loss"], y["grad_norm"]
        write_lines(os.path.join(path, "want.jsonl"), a)
        s32, s64 = sums(m32), sums(m64)
        write_json(os.path.join(path, "final.json"), {
            n: {"sum": s32[n][0], "sumsq": s32[n][1],
                "sum64": s64[n][0], "sumsq64": s64[n][1]} for n in s32})

        # Micro-batches of 1 and 2 must agree with the whole batch.
        for micro in (1, 2):
            for double, ref, tol in ((False, a, 1e-5), (True, b, 1e-10)):
                _, c = run(base, rows, schedule, clip, double=double, micro=micro)
                assert worst(c, ref, "loss") < tol, (case, micro, worst(c, ref, "loss"))
                assert worst(c, ref, "grad_norm") < 10 * tol, (
                    case, micro, worst(c, ref, "grad_norm"))
        q = max(abs(s32[n][1] - s64[n][1]) / s64[n][1] for n in s32)
        print(f"{case:9} loss {a[0]['loss']:.4f} → {a[-1]['loss']:.4f} "
              f"norm {min(x['grad_norm'] for x in a):.3f}–{max(x['grad_norm'] for x in a):.3f} "
              f"f32/f64: loss {worst(a, b, 'loss'):.1e} norm {worst(a, b, 'grad_norm'):.1e} "
              f"sumsq {q:.1e}")


if __name__ == "__main__":
    main()
