# SPDX-FileCopyrightText: 2026 The pleach authors
# SPDX-License-Identifier: Apache-2.0

# Writes normal.json: which code points the reference's normal forms know, as
# first and last of each range. Run: python normal.py, then in the folder above
# go test -run TestNewer -update .

import json
import os

from tokenizers import normalizers

nfd, nfkd = normalizers.NFD().normalize_str, normalizers.NFKD().normalize_str
ALL = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000]


def ranges(codes):
    out = []
    for c in sorted(codes):
        if out and out[-1][1] == c - 1:
            out[-1][1] = c
        else:
            out.append([c, c])
    return out


composed = {c for c in ALL if nfkd(chr(c)) != chr(c)}
marks = set()  # change places with a neighbour, or join the one in front
for c in ALL:
    s = chr(c)
    if c not in composed and (nfd("a" + s + "\u0334") != "a" + s + "\u0334" or nfd("a\u0345" + s) != "a\u0345" + s):
        marks.add(c)
    marks.update(ord(p) for p in nfd(s)[1:])
here = os.path.dirname(os.path.abspath(__file__))
with open(os.path.join(here, "normal.json"), "w") as f:
    json.dump({"composed": ranges(composed), "marks": ranges(marks)}, f, separators=(",", ":"))
