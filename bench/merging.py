# SPDX-FileCopyrightText: 2026 The pleach authors
# SPDX-License-Identifier: Apache-2.0
"""Time pleach merge beside mergekit and beside the machine.

Models of 1.1 B parameters in the shape of Llama (hidden 2048, 22 layers, FFN 5632,
vocabulary 32,000, 4 key and value heads), bf16, 2.2 GB each in 3 shards, are made
once in --work. Each method is then run in turns, with inputs in the page cache:

    floor     cat of all inputs but one, cp of that one, and a flush of the copy
    pleach    pleach merge, which flushes its output
    mergekit  mergekit-yaml, and a flush of its output

A row is the median of --runs. Memory is the peak resident set of the process; that
of mergekit counts mapped pages of its inputs. Needs torch, safetensors, mergekit.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import time

HIDDEN, LAYERS, FFN, VOCAB, HEADS, KV = 2048, 22, 5632, 32000, 32, 4

METHODS = {
    "linear": (3, "", {"weight": 0.4}, {}),
    "slerp": (2, "base", {}, {"t": 0.4}),
    "task_arithmetic": (3, "base", {"weight": 0.6}, {}),
    "model_stock": (3, "base", {}, {}),
    "ties": (3, "base", {"weight": 0.6, "density": 0.5}, {}),
    "dare_ties": (3, "base", {"weight": 0.6, "density": 0.5}, {}),
    "breadcrumbs": (3, "base", {"weight": 0.6, "density": 0.5}, {}),
    "della": (3, "base", {"weight": 0.6, "density": 0.5}, {}),
}


def tensors(hidden, layers, ffn, vocab):
    kv = hidden * KV // HEADS
    yield "model.embed_tokens.weight", (vocab, hidden)
    for i in range(layers):
        p = f"model.layers.{i}."
        yield p + "input_layernorm.weight", (hidden,)
        yield p + "self_attn.q_proj.weight", (hidden, hidden)
        yield p + "self_attn.k_proj.weight", (kv, hidden)
        yield p + "self_attn.v_proj.weight", (kv, hidden)
        yield p + "self_attn.o_proj.weight", (hidden, hidden)
        yield p + "post_attention_layernorm.weight", (hidden,)
        yield p + "mlp.gate_proj.weight", (ffn, hidden)
        yield p + "mlp.up_proj.weight", (ffn, hidden)
        yield p + "mlp.down_proj.weight", (hidden, ffn)
    yield "model.norm.weight", (hidden,)
    yield "lm_head.weight", (vocab, hidden)


def make(work):
    """Make base, a and b: a and b are base with noise of a tenth of its size."""
    names = [os.path.join(work, n) for n in ("base", "a", "b")]
    if all(os.path.exists(os.path.join(n, "config.json")) for n in names):
        return
    import torch  # here: its memory would count as that of processes begun later
    from safetensors.torch import save_file

    config = {
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": HIDDEN,
        "num_hidden_layers": LAYERS, "intermediate_size": FFN, "vocab_size": VOCAB,
        "num_attention_heads": HEADS, "num_key_value_heads": KV, "rms_norm_eps": 1e-5,
        "max_position_embeddings": 4096, "torch_dtype": "bfloat16", "tie_word_embeddings": False,
        "bos_token_id": 1, "eos_token_id": 2, "hidden_act": "silu",
    }
    all_tensors = list(tensors(HIDDEN, LAYERS, FFN, VOCAB))
    for n in names:
        os.makedirs(n, exist_ok=True)
    third = (len(all_tensors) + 2) // 3
    weight_map, total = {}, 0
    for k in range(3):
        part = all_tensors[k * third:(k + 1) * third]
        shard = f"model-{k + 1:05d}-of-00003.safetensors"
        base = {}
        for j, (name, shape) in enumerate(part):
            g = torch.Generator().manual_seed(1000 * k + j)
            base[name] = (torch.randn(shape, generator=g) * 0.02).bfloat16()
            weight_map[name] = shard
            total += base[name].numel() * 2
        for seed, n in enumerate(names):
            out = base
            if seed:
                out = {}
                for j, (name, shape) in enumerate(part):
                    g = torch.Generator().manual_seed(10**6 * seed + 1000 * k + j)
                    out[name] = (base[name].float() + torch.randn(shape, generator=g) * 0.002).bfloat16()
            save_file(out, os.path.join(n, shard), metadata={"format": "pt"})
    for n in names:
        with open(os.path.join(n, "model.safetensors.index.json"), "w") as f:
            json.dump({"metadata": {"total_size": total}, "weight_map": weight_map}, f)
        with open(os.path.join(n, "config.json"), "w") as f:
            json.dump(config, f)


def make_sparse(work):
    """Make models of 6.7 B zeros, in the shape of Llama 2 7B, that take no room on the disk."""
    hidden, layers, ffn, vocab = 4096, 32, 11008, 32000
    config = {
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": hidden,
        "num_hidden_layers": layers, "intermediate_size": ffn, "vocab_size": vocab,
        "num_attention_heads": 32, "num_key_value_heads": 32, "torch_dtype": "bfloat16",
    }
    header, at = {}, 0
    for name, shape in tensors(hidden, layers, ffn, vocab):
        if "k_proj" in name or "v_proj" in name:
            shape = (hidden, hidden)  # as many key and value heads as heads
        size = 2
        for d in shape:
            size *= d
        header[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [at, at + size]}
        at += size
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    for n in ("base", "a", "b"):
        os.makedirs(os.path.join(work, n), exist_ok=True)
        with open(os.path.join(work, n, "config.json"), "w") as f:
            json.dump(config, f)
        with open(os.path.join(work, n, "model.safetensors"), "wb") as f:
            f.write(len(text).to_bytes(8, "little") + text)
            f.truncate(8 + len(text) + at)


def sparse(o, pleach):
    """Time and peak memory of merging the sparse models."""
    make_sparse(o.work)
    print("| method | s | peak MiB |")
    print("|---|---|---|")
    for method in o.methods:
        config = os.path.join(o.work, "config.yml")
        with open(config, "w") as f:
            f.write(config_text(method, os.path.abspath(o.work))[0])
        for memory in o.memory:
            settle(o.work)
            s, rss, _ = timed([pleach, "merge", os.path.abspath(config), "out", "--max-memory", memory, "--quiet"], o.work)
            print(f"| {method}, {memory} | {s:.1f} | {rss:.0f} |", flush=True)
    settle(o.work)


def config_text(method, work):
    count, base, per_model, top = METHODS[method]
    lines = [f"merge_method: {method}", "dtype: bfloat16"]
    names = ["base", "a", "b"][:count]
    if base:
        lines.append(f"base_model: {os.path.join(work, base)}")
    lines.append("models:")
    for n in names:
        lines.append(f"  - model: {os.path.join(work, n)}")
        if per_model and n != base:
            lines.append("    parameters:")
            lines += [f"      {k}: {v}" for k, v in per_model.items()]
    if top:
        lines.append("parameters:")
        lines += [f"  {k}: {v}" for k, v in top.items()]
    return "\n".join(lines) + "\n", names


def timed(args, cwd, env=None):
    """Seconds and peak MiB of a command."""
    began = time.time()
    p = subprocess.Popen(args, cwd=cwd, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    err = p.stderr.read()
    _, status, use = os.wait4(p.pid, 0)
    took = time.time() - began
    if status != 0:
        sys.exit(f"{args}: status {status}\n{err.decode()[-2000:]}")
    return took, use.ru_maxrss / 1024, use.ru_utime + use.ru_stime


def flush(path):
    for root, _, files in os.walk(path):
        for name in files:
            fd = os.open(os.path.join(root, name), os.O_RDONLY)
            os.fsync(fd)
            os.close(fd)


def settle(work):
    """Remove the last output and wait until the disk has nothing to write."""
    shutil.rmtree(os.path.join(work, "out"), ignore_errors=True)
    os.sync()


def floor(work, names):
    settle(work)
    began = time.time()
    files = [os.path.join(n, f) for n in names[1:] for f in sorted(os.listdir(os.path.join(work, n)))]
    subprocess.run(["cat", *files], cwd=work, stdout=subprocess.DEVNULL, check=True)
    subprocess.run(["cp", "-r", "--reflink=never", names[0], "out"], cwd=work, check=True)
    flush(os.path.join(work, "out"))
    return time.time() - began, 0, 0


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--work", required=True, help="folder for 9 GB of models and outputs")
    p.add_argument("--pleach", default="./pleach")
    p.add_argument("--mergekit", default="", help="path of mergekit-yaml; empty: not measured")
    p.add_argument("--methods", nargs="*", default=list(METHODS))
    p.add_argument("--runs", type=int, default=3)
    p.add_argument("--mergekit-runs", type=int, default=1)
    p.add_argument("--memory", default=["1GiB"], nargs="*")
    p.add_argument("--sparse", action="store_true",
                   help="merge sparse models of 6.7 B instead, for memory; outputs take 13.5 GB")
    o = p.parse_args()
    os.makedirs(o.work, exist_ok=True)
    pleach = os.path.abspath(o.pleach)
    if o.sparse:
        return sparse(o, pleach)
    make(o.work)
    mergekit = os.path.abspath(o.mergekit)
    print("| method | inputs | floor s | pleach s | of the floor | peak MiB | user+sys s | mergekit s | faster | peak MiB |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    for method in o.methods:
        text, names = config_text(method, os.path.abspath(o.work))
        config = os.path.join(o.work, "config.yml")
        with open(config, "w") as f:
            f.write(text)
        for n in names:  # into the page cache
            subprocess.run(f"cat {n}/* > /dev/null", shell=True, cwd=o.work, check=True)
        for memory in o.memory:
            rows = {"floor": [], "pleach": [], "mergekit": []}
            for i in range(max(o.runs, o.mergekit_runs)):
                if i < o.runs:
                    rows["floor"].append(floor(o.work, names))
                    settle(o.work)
                    rows["pleach"].append(timed(
                        [pleach, "merge", config, "out", "--max-memory", memory, "--quiet"], o.work))
                if o.mergekit and i < o.mergekit_runs:
                    settle(o.work)
                    began = time.time()
                    _, rss, cpu = timed([mergekit, config, "out", "--quiet", "--no-write-model-card"], o.work,
                                        dict(os.environ, HF_HUB_OFFLINE="1"))
                    flush(os.path.join(o.work, "out"))
                    rows["mergekit"].append((time.time() - began, rss, cpu))
            settle(o.work)
            f, a = ([statistics.median(r[k] for r in rows[w]) for k in range(3)] for w in ("floor", "pleach"))
            line = f"| {method}, {memory} | {len(names)} | {f[0]:.2f} | {a[0]:.2f} | {a[0] / f[0]:.2f} | {a[1]:.0f} | {a[2]:.1f} "
            if rows["mergekit"]:
                m = [statistics.median(r[k] for r in rows["mergekit"]) for k in range(3)]
                line += f"| {m[0]:.1f} | {m[0] / a[0]:.1f} × | {m[1]:.0f} |"
            else:
                line += "| | | |"
            print(line, flush=True)


if __name__ == "__main__":
    main()
