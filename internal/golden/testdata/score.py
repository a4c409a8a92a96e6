# SPDX-FileCopyrightText: 2026 The pleach authors
# SPDX-License-Identifier: Apache-2.0

"""Writes score/<case>/: a tiny random model, rows of ids, and the
log-probabilities that transformers computes for them in float64.

    python score.py

config.json is as transformers 5 saves it; config4.json says the same in the
keys of transformers 4 (checked here by loading the model with it).

want.jsonl, a line per row: logprobs of ids 2..N, nll their negated sum, top
the five best [id, logprob] after each of the positions 1..N. These come from
model.double(), in which RMSNorm and the rotary tables stay float32 (common.py,
as_is). logprobs64 is the same in float64 throughout (exact).
"""

from common import *

GAP = 1e-4  # between neighbours among the six best, so that rounding keeps their order
LENGTHS = [1, 2, 3, 7, 16, 33, 48]

BASE = dict(vocab_size=97, hidden_size=24, intermediate_size=40, num_hidden_layers=2,
            num_attention_heads=3, max_position_embeddings=64, rms_norm_eps=1e-5)


def rope(kind, theta, **more):
    return {"rope_type": kind, "rope_theta": theta, **more}


CASES = {
    # Llama 1 and 2: multi-head, untied, odd vocabulary.
    "mha": (1, dict(BASE), {}),
    # Llama 3: with these numbers the first of the four frequencies (6.3
    # positions a turn) is kept, the second (23.6) lies in the band between,
    # the others are divided by 8.
    "gqa-llama3-tied": (2, dict(
        BASE, vocab_size=131, hidden_size=32, num_attention_heads=4, num_key_value_heads=2,
        tie_word_embeddings=True, max_position_embeddings=256,
        rope_parameters=rope("llama3", 200.0, factor=8.0, low_freq_factor=1.0,
                             high_freq_factor=4.0, original_max_position_embeddings=32)), {}),
    "linear": (3, dict(BASE, rope_parameters=rope("linear", 5e4, factor=2.5)), {}),
    # One key/value head for three query heads of width 10, where 24/3 is 8.
    # eps shows: the mean square of an embedding is about 0.09.
    "headdim-bias": (4, dict(BASE, head_dim=10, num_key_value_heads=1, attention_bias=True,
                             mlp_bias=True, rms_norm_eps=1e-3), {}),
    "shards": (25, dict(BASE, num_hidden_layers=3, intermediate_size=36),
               dict(max_shard_size="18KB")),
    "bf16": (6, dict(BASE, num_attention_heads=6, num_key_value_heads=3, vocab_size=89,
                     intermediate_size=48), {}),
}


def rows(seed, vocab):
    r = random.Random(seed)
    out = [[r.randrange(vocab) for _ in range(n)] for n in LENGTHS]
    out[4] = [out[4][i % 3] for i in range(16)]  # ids that repeat
    out[5][0], out[5][-1] = 0, vocab - 1         # both ends of the table
    return out


def want(asis, ex, ids):
    lp, lp64 = log_probs(asis, ids), log_probs(ex, ids)
    pick = lambda t: [t[i, ids[i + 1]].item() for i in range(len(ids) - 1)]
    top = []
    for row in lp.tolist():
        best = sorted(range(len(row)), key=lambda i: (-row[i], i))[:6]
        assert all(row[i] - row[j] > GAP for i, j in zip(best, best[1:])), "draw other rows"
        top.append([[i, row[i]] for i in best[:5]])
    a, b = pick(lp), pick(lp64)
    # not -sum(a): a row of one id would have -0.0
    return {"logprobs": a, "nll": sum(-x for x in a) + 0.0, "top": top, "logprobs64": b}


def wrong_readings(case, path):
    """(name, model) for mistakes that the rows of a case must make visible."""
    def changed(**changes):
        c = LlamaConfig.from_pretrained(path)
        r = {**c.rope_parameters, **changes.pop("rope", {})}
        c = LlamaConfig.from_dict({**c.to_dict(), **changes, "rope_parameters": r})
        return load64(path, "exact", config=c)

    yield "theta", changed(rope={"rope_theta": 1e6})
    if case == "linear":
        yield "no factor", changed(rope={"factor": 1.0})
    if case == "gqa-llama3-tied":
        yield "no factor", changed(rope={"factor": 1.0})
        yield "all divided", changed(rope={"low_freq_factor": 30.0, "high_freq_factor": 31.0})
        yield "no band", changed(rope={"low_freq_factor": 3.999})
        yield "original", changed(rope={"original_max_position_embeddings": 256})
    if case == "headdim-bias":
        yield "eps", changed(rms_norm_eps=1e-5)
        for bias in ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"):
            m = load64(path, "exact")
            for name, p in m.named_parameters():
                if name.endswith(bias + ".bias"):
                    p.data.zero_()
            yield "no bias in " + bias, m
    else:
        yield "eps", changed(rms_norm_eps=1e-3)


def main():
    for case, (seed, config, kwargs) in CASES.items():
        path = os.path.join(HERE, "score", case)
        model = LlamaForCausalLM(LlamaConfig(**config))
        randomize(model, seed)
        if case == "bf16":
            model = model.to(torch.bfloat16)
            model.config.dtype = torch.bfloat16
        save(model, path, **kwargs)
        config4 = style4(path)

        ids = rows(100 + seed, config["vocab_size"])
        asis, ex = load64(path, "as_is"), load64(path, "exact")
        old = load64(path, "as_is", config=config4)
        f32 = LlamaForCausalLM.from_pretrained(path, dtype=torch.float32).eval()
        lines, gap, gap32, gap4 = [], 0.0, 0.0, 0.0
        for row in ids:
            w = want(asis, ex, row)
            lines.append(w)
            lp = log_probs(asis, row)
            gap4 = max(gap4, (lp - log_probs(old, row)).abs().max().item())
            gap = max(gap, (lp - log_probs(ex, row)).abs().max().item())
            with torch.no_grad():
                l32 = torch.log_softmax(f32(torch.tensor([row])).logits[0], -1).double()
            gap32 = max(gap32, (l32 - lp).abs().max().item())
        assert gap4 == 0.0, (case, gap4)
        for name, bad in wrong_readings(case, path):
            off = max((log_probs(bad, row) - log_probs(ex, row)).abs().max().item() for row in ids)
            assert off > 1e-2, (case, name, off)
        write_lines(os.path.join(path, "rows.jsonl"), [{"tokens": r} for r in ids])
        write_lines(os.path.join(path, "want.jsonl"), lines)
        n = sum(len(w["logprobs"]) for w in lines)
        nll = sum(w["nll"] for w in lines)
        print(f"{case:16} parameters {sum(p.numel() for p in model.parameters()):6} "
              f"mean nll {nll / n:.3f} |as_is-exact| {gap:.1e} |f32-as_is| {gap32:.1e} "
              f"keys of 4: {gap4:.0e}")


if __name__ == "__main__":
    main()
