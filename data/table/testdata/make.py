# SPDX-FileCopyrightText: 2026 The pleach authors
# SPDX-License-Identifier: Apache-2.0

"""Writes the fixtures of data/table and what they hold.

    pip install pyarrow duckdb polars datasets
    python make.py

Every file is small. want.json has, for each file, the format, the first rows of its
groups, and of each field the number of a column: the values of each row, a string
or number, null for a value that is null, false for one whose list or struct is null.
"""

import decimal
import json
import os
import random
import shutil
import subprocess
import sys
import uuid

import pyarrow as pa
import pyarrow.parquet as pq

HERE = os.path.dirname(os.path.abspath(__file__))
random.seed(7)
want = {}
columns = []  # the values of a field, by row; several files share them


def path(name):
    p = os.path.join(HERE, name)
    os.makedirs(os.path.dirname(p), exist_ok=True)
    return p


def values(t, v, names):
    """The values of one row at a path, by the rules of the package."""
    if pa.types.is_dictionary(t):
        t = t.value_type
    if pa.types.is_list(t) or pa.types.is_large_list(t) or pa.types.is_fixed_size_list(t):
        if v is None:
            return [False]
        return [x for e in v for x in values(t.value_type, e, names)]
    if pa.types.is_struct(t):
        if v is None:
            return [False]
        f = t.field(names[0])
        return values(f.type, v[names[0]], names[1:])
    if isinstance(v, bytes):
        v = v.decode()
    return [v]


def label(t, v):
    """A scalar as a label."""
    if v is None or v is False and not pa.types.is_boolean(t) or isinstance(v, str):
        return v
    if pa.types.is_boolean(t):
        return "true" if v else "false"
    return f"{v:g}" if isinstance(v, float) else str(v)


def expect(name, fmt, groups, schema, rows, fields):
    """fields: path -> form. rows: a list of dicts."""
    out = []
    for p, form in fields.items():
        names = p.split(".")
        t = schema.field(names[0]).type
        got = [values(t, r[names[0]], names[1:]) for r in rows]
        if form == "label":
            leaf = t
            for n in names[1:]:
                while pa.types.is_list(leaf):
                    leaf = leaf.value_type
                leaf = leaf.field(n).type
            got = [[label(leaf, v) for v in r] for r in got]
        if got not in columns:
            columns.append(got)
        out.append({"path": p, "form": form, "column": columns.index(got)})
    want[name] = {"format": fmt, "groups": groups, "rows": len(rows), "fields": out}


# A schema with everything a corpus has.
message = pa.struct([("role", pa.string()), ("content", pa.string())])
schema = pa.schema([
    pa.field("text", pa.string()),
    pa.field("must", pa.string(), nullable=False),
    pa.field("n", pa.int64()),
    pa.field("small", pa.uint8()),
    pa.field("score", pa.float64()),
    pa.field("flag", pa.bool_()),
    pa.field("cat", pa.dictionary(pa.int32(), pa.string())),
    pa.field("meta", pa.struct([("id", pa.string()), ("n", pa.int32())])),
    pa.field("ids", pa.list_(pa.int32())),
    pa.field("wide", pa.large_list(pa.int64())),
    pa.field("messages", pa.list_(message)),
    pa.field("deep", pa.list_(pa.list_(pa.uint16()))),
    pa.field("nothing", pa.null()),
])
fields = {
    "text": "text", "must": "text", "n": "label", "small": "ids", "score": "label", "flag": "label",
    "cat": "text", "meta.id": "label", "meta.n": "ids", "ids": "ids", "wide": "ids",
    "messages.role": "text", "messages.content": "text", "deep": "ids", "nothing": "text",
}
WORDS = "the quick brown fox jumps over a lazy dog and naïve 雪 🙂 straße".split()


def text(n):
    return " ".join(random.choice(WORDS) for _ in range(n))


def maybe(p, f):
    return None if random.random() < p else f()


def row(i):
    return {
        "text": maybe(0.2, lambda: text(random.randrange(12))),
        "must": text(3),
        "n": maybe(0.1, lambda: random.randrange(-(2**40), 2**40)),
        "small": maybe(0.1, lambda: random.randrange(256)),
        "score": maybe(0.1, lambda: random.choice([0.5, -1.25, 3.0625])),
        "flag": maybe(0.1, lambda: random.random() < 0.5),
        "cat": maybe(0.1, lambda: random.choice(["web", "code", "", "books"])),
        "meta": maybe(0.1, lambda: {"id": maybe(0.2, lambda: f"doc-{i}"), "n": maybe(0.2, lambda: i)}),
        "ids": maybe(0.1, lambda: [random.randrange(50000) for _ in range(random.randrange(9))]),
        "wide": maybe(0.1, lambda: [maybe(0.1, lambda: random.randrange(2**31)) for _ in range(random.randrange(4))]),
        "messages": maybe(0.1, lambda: [
            maybe(0.05, lambda: {"role": random.choice(["user", "assistant"]), "content": maybe(0.1, lambda: text(4))})
            for _ in range(random.randrange(4))]),
        "deep": maybe(0.1, lambda: [
            maybe(0.1, lambda: [random.randrange(65536) for _ in range(random.randrange(3))])
            for _ in range(random.randrange(4))]),
        "nothing": None,
    }


rows = [row(i) for i in range(200)]
table = pa.Table.from_pylist(rows, schema=schema)


def parquet(name, t, rows, fields, group=None, **options):
    p = path(name)
    pq.write_table(t, p, row_group_size=group or max(1, len(rows)), **options)
    m = pq.ParquetFile(p).metadata
    groups, at = [], 0
    for g in range(m.num_row_groups):
        groups.append(at)
        at += m.row_group(g).num_rows
    expect(name, "Parquet", groups, t.schema, rows, fields)


tiny = dict(data_page_size=300, write_batch_size=7)
parquet("pyarrow-v1.parquet", table, rows, fields, group=64, write_page_checksum=True, **tiny)
parquet("pyarrow-v2.parquet", table, rows, fields, data_page_version="2.0", write_page_checksum=True, **tiny)
parquet("pyarrow-index.parquet", table, rows, fields, group=150, write_page_index=True, compression="zstd", **tiny)
parquet("pyarrow-one.parquet", table, rows, fields, compression="none", use_dictionary=False, **tiny)
parquet("pyarrow-brotli.parquet", table, rows, fields, compression="brotli", write_page_checksum=True)
parquet("pyarrow-gzip-v2.parquet", table, rows, fields, compression="gzip", data_page_version="2.0")
parquet("pyarrow-lz4.parquet", table, rows, fields, compression="lz4", **tiny)
few = rows[:20]
parquet("pyarrow-groups.parquet", table.slice(0, 20).select(["text", "ids"]), few, {"text": "text", "ids": "ids"}, group=1)

# Encodings of the second kind, one column each.
enc = pa.schema([
    pa.field("a", pa.string()), pa.field("b", pa.string()), pa.field("c", pa.int64()),
    pa.field("d", pa.int32()), pa.field("e", pa.float32()), pa.field("f", pa.bool_()), pa.field("g", pa.int32()),
])
erows = [{
    "a": maybe(0.1, lambda: text(5)), "b": f"https://example.org/{i // 10}/{i}", "c": random.randrange(-(2**62), 2**62),
    "d": random.randrange(-(2**31), 2**31), "e": i / 4, "f": i % 3 == 0, "g": i * 3,
} for i in range(150)]
parquet("pyarrow-encodings.parquet", pa.Table.from_pylist(erows, schema=enc), erows,
        {"a": "text", "b": "text", "c": "label", "d": "ids", "e": "label", "f": "label", "g": "ids"},
        use_dictionary=False, data_page_version="2.0", data_page_size=256, write_batch_size=50,
        column_encoding={"a": "DELTA_LENGTH_BYTE_ARRAY", "b": "DELTA_BYTE_ARRAY", "c": "DELTA_BINARY_PACKED",
                         "d": "DELTA_BINARY_PACKED", "e": "BYTE_STREAM_SPLIT", "f": "RLE", "g": "BYTE_STREAM_SPLIT"})

# Nothing in it.
empty = schema.empty_table()
parquet("pyarrow-no-rows.parquet", empty, [], {"text": "text", "ids": "ids"})
parquet("pyarrow-no-columns.parquet", pa.table({}), [], {})
plain = pa.schema([("text", pa.string())])
parquet("pyarrow-nulls.parquet", pa.Table.from_pylist([{"text": None}] * 5, schema=plain), [{"text": None}] * 5, {"text": "text"})

# What is refused, by name: a field and a part of the message.
odd = pa.table({
    "when": pa.array([0, 1], pa.timestamp("us")), "day": pa.array([0, 1], pa.date32()),
    "money": pa.array([decimal.Decimal("1.25")] * 2, pa.decimal128(9, 2)), "half": pa.array([1, 2], pa.float16()),
    "map": pa.array([[("a", 1)], []], pa.map_(pa.string(), pa.int64())), "big": pa.array([1, 2**40]),
    "key": pa.array([uuid.UUID(int=i).bytes for i in range(2)], pa.uuid()), "text": ["a", "b"],
})
pq.write_table(odd, path("odd.parquet"))
with pa.ipc.new_file(path("odd.arrow"), odd.schema) as w:
    w.write_table(odd)
union = pa.table({
    "dense": pa.UnionArray.from_dense(pa.array([0, 1], pa.int8()), pa.array([0, 0], pa.int32()), [pa.array([1]), pa.array(["x"])]),
    "sparse": pa.UnionArray.from_sparse(pa.array([0, 1], pa.int8()), [pa.array([1, 2]), pa.array(["x", "y"])]),
    "ree": pa.RunEndEncodedArray.from_arrays(pa.array([1, 2], pa.int32()), pa.array(["p", "q"])),
    "text": ["after", "unions"],
})
with pa.ipc.new_file(path("union.arrow"), union.schema) as w:
    w.write_table(union)
expect("union.arrow", "Arrow IPC file", [0], union.schema, [{"text": "after"}, {"text": "unions"}], {"text": "text"})

try:
    import pyarrow.parquet.encryption as pe

    class Kms(pe.KmsClient):
        def __init__(self, config):
            super().__init__()

        def wrap_key(self, key, name):
            return __import__("base64").b64encode(key)

        def unwrap_key(self, key, name):
            return __import__("base64").b64decode(key)

    factory = pe.CryptoFactory(Kms)
    for name, plain_footer in [("encrypted.parquet", False), ("encrypted-column.parquet", True)]:
        c = pe.EncryptionConfiguration(footer_key="f", column_keys={"c": ["text"]}, plaintext_footer=plain_footer)
        props = factory.file_encryption_properties(pe.KmsConnectionConfig(), c)
        pq.write_table(pa.table({"text": ["a"], "open": ["b"]}), path(name), encryption_properties=props)
except ImportError as e:
    sys.exit(f"encryption: {e}")


def arrow(name, t, rows, fields, batch, stream=False, **options):
    p = path(name)
    new = pa.ipc.new_stream if stream else pa.ipc.new_file
    with new(p, t.schema, options=pa.ipc.IpcWriteOptions(**options)) as w:
        w.write_table(t, max_chunksize=batch)
    expect(name, "Arrow IPC stream" if stream else "Arrow IPC file", list(range(0, len(rows), batch)), t.schema, rows, fields)


arrow("pyarrow-file.arrow", table, rows, fields, 64)
arrow("pyarrow-stream.arrow", table, rows, fields, 37, stream=True)
arrow("pyarrow-lz4.arrow", table, rows, fields, 100, compression="lz4")
arrow("pyarrow-zstd.arrow", table, rows, fields, 100, stream=True, compression="zstd")
arrow("pyarrow-no-rows.arrow", empty, [], {"text": "text"}, 10, stream=True)

# Types that only Arrow has.
kinds = pa.schema([
    pa.field("view", pa.string_view()), pa.field("large", pa.large_string()), pa.field("bytes", pa.binary()),
    pa.field("three", pa.list_(pa.int8(), 3)), pa.field("second", pa.string_view()),
    pa.field("coded", pa.list_(pa.dictionary(pa.int16(), pa.int64()))), pa.field("u", pa.uint64()), pa.field("f", pa.float32()),
])
krows = [{
    "view": maybe(0.2, lambda: text(random.randrange(8))), "large": text(2), "bytes": text(1).encode(),
    "three": maybe(0.2, lambda: [1, maybe(0.3, lambda: -128), i % 100]), "second": text(random.randrange(8)),
    "coded": [random.choice([1, 5, 2**31 - 1]) for _ in range(i % 4)], "u": random.choice([0, 2**64 - 1]), "f": i / 8,
} for i in range(60)]
ktable = pa.Table.from_pylist([{k: v for k, v in r.items() if k != "coded"} for r in krows],
                              schema=pa.schema([f for f in kinds if f.name != "coded"]))
offs = [0]
for r in krows:
    offs.append(offs[-1] + len(r["coded"]))
flat = pa.array([v for r in krows for v in r["coded"]], pa.int64()).dictionary_encode().cast(kinds.field("coded").type.value_type)
ktable = ktable.add_column(5, kinds.field("coded"), pa.ListArray.from_arrays(pa.array(offs, pa.int32()), flat))
kfields = {"view": "text", "large": "text", "bytes": "text", "three": "ids", "second": "label",
           "coded": "ids", "u": "label", "f": "label"}
arrow("kinds.arrow", ktable, krows, kfields, 60)
arrow("kinds-stream.arrow", ktable, krows, kfields, 60, stream=True, compression="zstd")

# Dictionaries that are replaced, and that grow, in a stream.
for name, deltas in [("dict-replaced.arrow", False), ("dict-delta.arrow", True)]:
    parts = [["a", "b", None, "a"], ["a", "b", "c"], ["c", "a", "b"]]
    full = ["a", "b", "c"]
    s = pa.schema([pa.field("cat", pa.dictionary(pa.int8(), pa.string()))])
    with pa.ipc.new_stream(path(name), s, options=pa.ipc.IpcWriteOptions(emit_dictionary_deltas=deltas)) as w:
        seen = []
        for p in parts:
            words = sorted({x for x in p if x} | (set(seen) if deltas else set()))
            if not deltas:
                words = words[::-1]
            seen = words
            a = pa.DictionaryArray.from_arrays(pa.array([None if x is None else words.index(x) for x in p], pa.int8()), pa.array(words))
            w.write_batch(pa.record_batch([a], schema=s))
    flat = [{"cat": x} for p in parts for x in p]
    expect(name, "Arrow IPC stream", [0, 4, 7], s, flat, {"cat": "text"})

# Other writers.
import duckdb  # noqa: E402

drows = [{"text": maybe(0.2, lambda: text(6)), "n": i, "ids": maybe(0.1, lambda: [i, i + 1][: i % 3]),
          "meta": {"id": maybe(0.2, lambda: f"d{i}")}} for i in range(120)]
dschema = pa.schema([pa.field("text", pa.string()), pa.field("n", pa.int64()), pa.field("ids", pa.list_(pa.int64())),
                     pa.field("meta", pa.struct([("id", pa.string())]))])
dtable = pa.Table.from_pylist(drows, schema=dschema)
dfields = {"text": "text", "n": "ids", "ids": "ids", "meta.id": "label"}
for name, opts in [("duckdb-snappy.parquet", "CODEC 'snappy'"), ("duckdb-zstd.parquet", "CODEC 'zstd', PARQUET_VERSION v2")]:
    duckdb.sql(f"COPY dtable TO '{path(name)}' (FORMAT parquet, {opts})")
    expect(name, "Parquet", [0], dschema, drows, dfields)

import polars  # noqa: E402

frame = polars.from_arrow(dtable)
frame.write_parquet(path("polars.parquet"), compression="zstd", row_group_size=50, data_page_size=400)
expect("polars.parquet", "Parquet", [0, 50, 100], dschema, drows, dfields)
frame.write_parquet(path("polars-lz4.parquet"), compression="lz4", statistics=False)
expect("polars-lz4.parquet", "Parquet", [0], dschema, drows, dfields)
frame.write_ipc(path("polars.arrow"), compression="lz4")
expect("polars.arrow", "Arrow IPC file", [0], dschema, drows, dfields)

import datasets  # noqa: E402

shards = path("datasets")
shutil.rmtree(shards, ignore_errors=True)
datasets.disable_progress_bars()
d = datasets.Dataset.from_list(drows)
d.save_to_disk(shards, num_shards=3)
at = 0
for name in sorted(os.listdir(shards)):
    if not name.endswith(".arrow"):
        os.remove(os.path.join(shards, name))
        continue
    with pa.OSFile(os.path.join(shards, name)) as f:
        n = pa.ipc.open_stream(f).read_all().num_rows
    expect("datasets/" + name, "Arrow IPC stream", [0], dschema, drows[at:at + n], dfields)
    at += n
assert at == len(drows)

# parquet-go, by the program beside this one.
subprocess.run(["go", "run", ".", HERE], cwd=path("parquetgo"), input=json.dumps(drows).encode(), check=True)
for name in ["parquet-go-v1.parquet", "parquet-go-v2.parquet"]:
    expect(name, "Parquet", [0, 80] if "v1" in name else [0], dschema, drows, dfields)

with open(path("want.json"), "w") as f:
    json.dump({"files": want, "columns": columns}, f, ensure_ascii=False, separators=(",", ":"))
