# SPDX-FileCopyrightText: 2026 The pleach authors
# SPDX-License-Identifier: Apache-2.0

"""pleach and PyTorch in turns on one machine: medians and ratios as a table in Markdown.

Runs `pleach bench step` and torch_step.py alternately, so that what disturbs the machine disturbs
both. By hand, on a machine that does nothing else; needs PyTorch in the Python that runs it.

    go build ./cmd/pleach
    venv/bin/python bench/side_by_side.py --configs quick d512 --threads 1 2 --runs 5
    venv/bin/python bench/side_by_side.py --configs d512 --threads 2 --precision bf16-sr
"""

import argparse
import json
import pathlib
import statistics
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent


def arguments():
    parse = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parse.add_argument("--pleach", default="./pleach", help="the program to measure")
    parse.add_argument("--configs", nargs="+", default=["quick", "d512"])
    parse.add_argument("--threads", nargs="+", type=int, default=[2, 1])
    parse.add_argument("--precision", choices=["f32", "mixed", "bf16-sr"], default="f32", help="of both programs")
    parse.add_argument("--runs", type=int, default=5)
    parse.add_argument("--rows", type=int, default=4)
    parse.add_argument("--seq", type=int, default=512)
    parse.add_argument("--steps", type=int, default=8)
    parse.add_argument("--eager", action="store_true", help="PyTorch without torch.compile")
    parse.add_argument("--keep", type=pathlib.Path, help="append every run to this file, a JSON object a line")
    return parse.parse_args()


def ours_command(args):
    """pleach. PyTorch keeps moments in the type of the weights, so they are bf16 with bf16-sr."""
    return [args.pleach, "bench", "step", "--json"] + (["--moments", "bf16"] if args.precision == "bf16-sr" else [])


def run(command, args, config, threads):
    """The report of one run; what it says on stderr is passed on."""
    flags = ["--config", config, "--precision", args.precision, "--threads", threads]
    flags += ["--rows", args.rows, "--seq", args.seq, "--steps", args.steps]
    done = subprocess.run(command + [str(f) for f in flags], stdout=subprocess.PIPE, text=True, check=True)
    report = json.loads(done.stdout.splitlines()[-1])
    if args.keep:
        with args.keep.open("a") as file:
            print(json.dumps(report), file=file)
    print(f"{config}, {threads} threads: {report['tokens_per_second']:.0f} tokens/s by {report['version']}", file=sys.stderr)
    return report


class Series:
    """Reports of one program."""

    def __init__(self):
        self.reports = []

    def values(self, key):
        return [r[key] for r in self.reports]

    def median(self, key):
        return statistics.median(self.values(key))


def compare(args, config, threads):
    mine, theirs = Series(), Series()
    peer = [sys.executable, str(HERE / "torch_step.py")] + ([] if args.eager else ["--compile"])
    for turn in range(args.runs):
        both = [(mine, ours_command(args)), (theirs, peer)]
        for series, command in both if turn % 2 == 0 else reversed(both):
            series.reports.append(run(command, args, config, threads))
    return mine, theirs


def noisy(report):
    """Whether pleach said that its own run decides nothing."""
    noise = report["noise"]
    return max(noise["peak"], noise["steps"], noise["others_cpus"] / report["threads"]) > 0.1


def row(config, threads, ours, theirs):
    speed, peer = ours.median("tokens_per_second"), theirs.median("tokens_per_second")
    each = [a / b for a, b in zip(ours.values("tokens_per_second"), theirs.values("tokens_per_second"))]
    memory, peer_memory = ours.median("peak_rss_bytes") / 2**20, theirs.median("peak_rss_bytes") / 2**20
    first = ours.median("first_step_seconds") / ours.median("step_seconds")
    cells = [
        config,
        threads,
        f"{speed:.0f}",
        f"{peer:.0f}",
        f"**{speed / peer:.2f}** ({min(each):.2f}–{max(each):.2f})",
        f"{ours.median('gflops'):.0f} of {ours.median('peak_gflops'):.0f}",
        f"{100 * ours.median('share_of_peak'):.0f} %",
        f"{memory:.0f}",
        f"{peer_memory:.0f}",
        f"{100 * memory / peer_memory:.0f} %",
        f"{first:.2f}",
        f"{ours.median('start_seconds'):.2f}",
        sum(noisy(r) for r in ours.reports),
    ]
    return "| " + " | ".join(map(str, cells)) + " |"


def main():
    args = arguments()
    rows, speeds, last = [], {}, None
    for config in args.configs:
        for threads in args.threads:
            ours, theirs = compare(args, config, threads)
            rows.append(row(config, threads, ours, theirs))
            speeds[config, threads] = ours.median("tokens_per_second")
            last = ours.reports[-1], theirs.reports[-1]
    head = "config|threads|pleach, tokens/s|PyTorch|ratio (of pairs)|GFLOP/s|of peak|MiB|PyTorch, MiB|memory|first step|start, s|noisy runs"
    ours, theirs = last
    print(f"{ours['cpu']}, {ours['level']} kernels, pleach {ours['version']}; {theirs['version']}; "
          f"{args.precision}; {args.rows} rows of {args.seq}; medians of {args.runs}\n")
    print("| " + head.replace("|", " | ") + " |")
    print("|" + "---|" * (head.count("|") + 1))
    print("\n".join(rows))
    for config in args.configs:
        if {1, 2} <= set(args.threads):
            print(f"\n{config}: 2 threads are {speeds[config, 2] / speeds[config, 1]:.2f} × one")


if __name__ == "__main__":
    main()
