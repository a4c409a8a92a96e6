# SPDX-FileCopyrightText: 2026 The pleach authors
# SPDX-License-Identifier: Apache-2.0
"""Writes golden.json: what PyYAML's safe loader makes of texts.

    python golden.py > golden.json

Made with PyYAML 6.0.3. Each entry is [text, value]; value is null where the
loader raises.
"""
import datetime
import itertools
import json
import struct

import yaml


def canon(v):
    if v is None:
        return "null"
    if isinstance(v, bool):
        return "true" if v else "false"
    if isinstance(v, int):
        return "i:%d" % v
    if isinstance(v, float):
        return "f:nan" if v != v else "f:%016x" % struct.unpack(">Q", struct.pack(">d", v))[0]
    if isinstance(v, str):
        return "s:" + v
    if isinstance(v, datetime.datetime):
        if v.tzinfo is None:
            v = v.replace(tzinfo=datetime.timezone.utc)
        u = v.astimezone(datetime.timezone.utc)
        return "t:" + u.strftime("%Y-%m-%dT%H:%M:%S.") + "%06d" % u.microsecond
    if isinstance(v, datetime.date):
        return "d:" + v.isoformat()
    if isinstance(v, list):
        return "[" + ", ".join(canon(x) for x in v) + "]"
    if isinstance(v, dict):
        return "{" + ", ".join(canon(k) + ": " + canon(x) for k, x in v.items()) + "}"
    raise TypeError(type(v))


words = """
yes Yes YES yEs no No NO true True TRUE tRue false False FALSE on On ON off Off OFF oFF y Y n N
null Null NULL nULL ~ nil none None NaN nan inf Inf
0 -0 +0 00 07 08 09 017 018 -017 +017 0_7 0_ 0__ 1 -1 +1 12 1_000 1_ -1_0 _1 1__2 --1 +-1 - + .
0b0 0b1 0b101 -0b11 +0b1_0 0b 0b_ 0b2 0B1 0x0 0xff 0xFF -0x1F +0x_a 0x 0x_ 0xg 0X1 0o17 0o8
1:30 1:3:7 190:20:30 -1:30 +1:30 1:60 1:59 01:30 0:30 1:5:60 1:030 1:30:1 1:1:1:1:1:1:1:1:1:1:1:1 1: 1:x 1_0:2
1.5 -1.5 +1.5 1. .5 -.5 +.5 0.5 00.5 01.5 1_0.5 1_0.5_0 1.5e5 1.5e+5 1.5e-5 1.5E+5 1e5 1e-5 1e+5 1E5 1.e+5 1.e5
.5e+5 .5e5 .5_e+1 ._5 . .. ... 1.2.3 1.0.0 3.11 1_ 1_. 1._ 1.e 1.5e 1.5e+ 1.5e+_ 1e 1,000 1.5f 1.0e5 1.0e+400 1.0e-400 -1.0e+400
4.9e-324 5.0e-324 2.5e-324 1.7976931348623157e+308 1.7976931348623159e+308 0.1 0.30000000000000004 123456789.123456789
.inf -.inf +.inf .Inf .INF .iNF .nan .NaN .NAN .NaNs -.nan +.nan inf -inf
1:30.5 190:20:30.15 -1:30.5 +1:30. 1:60.0 1:59.999 0:0.5 01:30.5 1:30.5e+1 1:1.1_1 20:30.15
123456789012345678901234567890 -99999999999999999999 0xffffffffffffffffffff 0777777777777777777777777777 9007199254740993
2020-01-01 2020-1-1 2020-13-01 2020-02-30 2020-02-29 2019-02-29 0000-01-01 0001-01-01 9999-12-31 2020-01-01T 2020-01-01x 20-01-01 12020-01-01
2020-01-01T00:00:00 2020-01-01t1:02:03 2020-01-01T01:02:03Z 2020-01-01T01:02:03.5 2020-01-01T01:02:03.1234567Z 2020-01-01T01:02:03.
2020-01-01T01:02:03+01:00 2020-01-01T01:02:03-5 2020-01-01T01:02:03-05:30 2020-01-01T24:00:00 2020-01-01T23:60:00 2020-01-01T23:59:60
2020-01-01T1:2:3 2020-1-2T1:02:03 2020-01-01T01:02 2020-1-1T01:02:03+23:59 2020-1-1T01:02:03+24:00 2020-12-31T23:00:00-05:00
= == << <<< <= a abc a_b a-b a.b 'yes' "yes" '1' "1" "1.5" '' "" '~' "null" "\\x41" 'it''s' "a\\nb" torch.float16
!!str !!null !!int !!map a@b a+b org/name ./path ../path /abs/path ~/home layers.0 model-00001 0.1.2 v1.0 e5 E+5 1d5 0b1.0 0x1.8
""".split("\n")
scalars = [w for line in words for w in line.split()]
scalars += [
    "2020-01-01 01:02:03", "2020-01-01 01:02:03 Z", "2020-01-01\t01:02:03", "2020-01-01 01:02:03 +2",
    "2020-01-01   01:02:03.25   -03:30", "1 000", "1 - 2", "yes no", "a # comment", "a#b", "'a' # c",
    "!!str 1", "!!str yes", "!!str ~", "!!int 1", "!!int '12'", "!!int ' 12 '", "!!int abc", "!!int 1.5",
    "!!int '0x1f'", "!!int '017'", "!!int ''", "!!int '1:30'", "!!int '-'", "!!int '--1'",
    "!!float 1", "!!float '1e5'", "!!float 1e-5", "!!float nan", "!!float inf", "!!float '-Infinity'", "!!float x",
    "!!float ''", "!!float '1:30'", "!!float 0x10", "!!bool yes", "!!bool 'True'", "!!bool yEs", "!!bool 1", "!!bool ''",
    "!!null x", "!!null ''", "!!timestamp 2020-01-02", "!!timestamp '2020-1-2'", "!!timestamp x",
    "! 1", "! yes", "!custom 1", "!!python/none x", "!<tag:yaml.org,2002:int> 7", "|\n  1\n", ">\n  yes\n  no\n",
    "a\n  b", "1\n  2", "!!float 1_0.5", "!!float '1.5 '", "!!merge x", "!!seq [1]", "!!map {a: 1}",
]
signs, mants, exps = ["", "-", "+"], ["0", "1", "12", "1.", "1.25", ".5", "0.0", "7_5.0"], ["", "e3", "e+3", "E-3", "e+03"]
scalars += [s + m + e for s, m, e in itertools.product(signs, mants, exps)]

documents = ["- " + s + "\n" for s in scalars] + ["{a: " + s + "}\n" for s in ["yes", "1e5", "017", "1:30", "~", "", "'no'"]]
documents += [
    "", "# only a comment\n", "---\n", "--- 1\n", "a: 1\n---\nb: 2\n", "a: 1\n...\n", "%YAML 1.1\n---\na: 1\n",
    "a: 1\na: 2\n", "a: 1\nb: 2\na: 3\n", "1: a\n1.0: b\ntrue: c\n", "yes: 1\nno: 2\non: 3\n", "~: 1\nnull: 2\n",
    "? a\n: b\n", "? [a]\n: b\n", "? {a: 1}\n: b\n", "{a, b: 1}\n", "[a: 1, b]\n", "a:\n", "a: |\n  x\n   y\n", "a: >-\n  x\n  y\n",
    "a: &x 1\nb: *x\n", "a: &x [1, 2]\nb: *x\n", "a: *x\n", "a: &x [*x]\n", "a: &x {b: *x}\n", "a: &x 1\nb: &x 2\nc: *x\n",
    "&k a: 1\n*k : 2\n",
    "a: &x {p: 1, q: 2}\nb: {<<: *x, q: 3, r: 4}\n", "a: &x {p: 1, q: 2}\nb: {q: 3, <<: *x, r: 4}\n",
    "a: &x {p: 1}\nb: &y {p: 2, q: 5}\nc: {<<: [*x, *y], z: 0}\n", "a: &x {p: 1}\nb: &y {p: 2, q: 5}\nc: {<<: *x, <<: *y}\n",
    "a: &x {p: 1}\nb: {'<<': *x}\n", "a: &x {p: 1}\nb: {\"<<\": 1}\n", "b: {<<: 1}\n", "b: {<<: [1]}\n", "b: {<<: {p: 1}}\n",
    "b: {<<: {p: 1, <<: {q: 2, p: 3}}, p: 9}\n", "<<: {a: 1}\nb: 2\n", "b: {<<: []}\n", "- <<\n", "a: <<\n", "{=: 1}\n", "a: =\n",
    "a: &x {p: 1, p: 2}\nb: {<<: *x}\n", "a: &x {<<: {k: 1}, k: 2}\nb: {<<: *x, k: 3}\n", "b: {!!merge x: {p: 1}}\n",
    "a: [1, [2, [3, {b: [4]}]]]\n", "a: {b: {c: {d: e}}}\n", "- - 1\n  - 2\n- 3\n", "a: 'multi\n  line'\n", "a: \"x\\u00e9\\U0001F600\"\n",
    "a: é\n", "a: 日本\n", "\ufeffa: 1\n", "a: b: c\n", "a: [1\n", "a: 'x\n", "\ta: 1\n", "a:\n\t- 1\n", "- a\nb\n", "a: @x\n", "a: `x\n", "a: %x\n",
    "a: !!set {x, y}\n", "a: !!omap [x: 1]\n", "a: !!pairs [x: 1]\n", "a: !!binary aGk=\n", "a: !x {b: 1}\n", "a: ! [1]\n", "!!str a: 1\n", "2020-01-01: d\n",
]
made = []
for text in documents:
    try:
        made.append([text, canon(yaml.safe_load(text))])
    except Exception:
        made.append([text, None])
print("[")
print(",\n".join(json.dumps(m) for m in made))
print("]")
