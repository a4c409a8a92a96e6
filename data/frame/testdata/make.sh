#!/usr/bin/env bash
# SPDX-FileCopyrightText: 2026 The pleach authors
# SPDX-License-Identifier: Apache-2.0

# Writes the fixtures of data/frame: text.txt, compressed in every way that is told
# apart. Needs gzip 1.12, zstd 1.5 and Python with zstandard.

set -eu
cd "$(dirname "$0")"
python3 - <<'PY'
import random
random.seed(3)
words = "the quick brown fox jumps over a lazy dog and naïve 雪 🙂 straße".split()
text = "".join(" ".join(random.choice(words) for _ in range(random.randrange(3, 30))) + "\n" for _ in range(300))
open("text.txt", "w").write(text)
PY
split -n 4 -d text.txt part-
gzip -nkc text.txt > plain.gz
cat part-0* > /dev/null
for p in part-0*; do gzip -nc "$p"; done > members.gz
zstd -qc text.txt > plain.zst
zstd -qc --no-check < text.txt > unsized.zst
for p in part-0*; do zstd -qc "$p"; done > frames.zst
zstd -qc -19 --long=27 < text.txt > long.zst
: | gzip -nc > empty.gz
: | zstd -qc > empty.zst
python3 - <<'PY'
import struct, zlib
import zstandard
text = open("text.txt", "rb").read()

def bgzf(b):
    z = zlib.compressobj(9, zlib.DEFLATED, -15)
    body = z.compress(b) + z.flush()
    head = b"\x1f\x8b\x08\x04\0\0\0\0\0\xff\x06\0BC\x02\0" + struct.pack("<H", len(body) + 25)
    return head + body + struct.pack("<II", zlib.crc32(b), len(b))

with open("bgzf.gz", "wb") as f:
    for i in range(0, len(text), 5000):
        f.write(bgzf(text[i:i + 5000]))
    f.write(bgzf(b""))

c = zstandard.ZstdCompressor(level=3, write_checksum=False, write_content_size=True)
with open("seekable.zst", "wb") as f:
    table = b""
    for i in range(0, len(text), 4000):
        b = text[i:i + 4000]
        z = c.compress(b)
        f.write(z)
        table += struct.pack("<II", len(z), len(b))
    foot = struct.pack("<IBI", len(table) // 8, 0, 0x8F92EAB1)
    f.write(struct.pack("<II", 0x184D2A5E, len(table) + 9) + table + foot)
PY
rm part-0*
