# SPDX-FileCopyrightText: 2026 The pleach authors
# SPDX-License-Identifier: Apache-2.0

# Writes sets of code points as the tables of Go that tables.py and graphemes.py make.


def ranges(codes):
    out = []
    for c in codes:
        if out and out[-1][1] == c - 1:
            out[-1][1] = c
        else:
            out.append([c, c])
    return out


def show(name, doc, codes):
    print(f"// {name} {doc}: {len(codes)} code points.")
    print(f"var {name} = [...]uint32{{")
    r = ranges(codes)
    for i in range(0, len(r), 6):
        print("\t" + " ".join(f"0x{a:x}, 0x{b:x}," for a, b in r[i:i + 6]))
    print("}\n")
