#!/usr/bin/env python3
"""Writes the parquet files of tests/golden/parquet and what is in them.

Needs pyarrow, polars and duckdb. The rows of a set are in <set>.rows: for each
a little-endian uint32 length (0xFFFFFFFF: null) and the bytes. A parquet file
is named <set>_<setting>.parquet. Run in tests/golden.
"""
import os
import random
import struct

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "parquet")
random.seed(5)
WORDS = ("the line on the hull says how far a ship may be loaded "
         "größer 長い 文書 emoji 🚢 naïve").split()


def text(words):
    return " ".join(random.choice(WORDS) for _ in range(words))


MIXED = [None, "", "a", "It is a truth\nuniversally acknowledged", "\0\x7f"]
MIXED += [text(random.choice([1, 2, 3, 9, 30])) for _ in range(30)]
MIXED += ["once more"] * 9 + [None] * 9 + [text(400)] + ["prefix of one"]
MIXED += ["prefix of two", "prefix of", "", None, "end"]
FULL = [row for row in MIXED if row is not None]
SAME = ["the same line"] * 300
SETS = {"mixed": MIXED, "full": FULL, "same": SAME, "none": [],
        "nulls": [None] * 20}


def path(name):
    return os.path.join(HERE, name)


def write_rows():
    for name, rows in SETS.items():
        with open(path(name + ".rows"), "wb") as out:
            for row in rows:
                data = (row or "").encode()
                size = 0xFFFFFFFF if row is None else len(data)
                out.write(struct.pack("<I", size) + data)


def table(name, type=pa.string(), nullable=True):
    rows = SETS[name]
    others = range(len(rows))
    return pa.table(
        [pa.array(rows, type=type), pa.array([f"id-{i}" for i in others]),
         pa.array([i / 7 for i in others])],
        schema=pa.schema([pa.field("text", type, nullable),
                          ("id", pa.string()), ("score", pa.float64())]))


def write(setting, name="mixed", type=pa.string(), nullable=True, **options):
    pq.write_table(table(name, type, nullable),
                   path(f"{name}_{setting}.parquet"), **options)


def write_pyarrow():
    for codec in "none", "snappy", "gzip", "zstd":
        for version in "1.0", "2.0":
            end = f"{codec}_v{version[0]}"
            write(f"dict_{end}", compression=codec, data_page_version=version)
            write(f"plain_{end}", compression=codec, use_dictionary=False,
                  data_page_version=version)
            for short, encoding in (("length", "DELTA_LENGTH_BYTE_ARRAY"),
                                    ("delta", "DELTA_BYTE_ARRAY")):
                if codec in ("none", "zstd"):
                    write(f"{short}_{end}", compression=codec,
                          use_dictionary=False, data_page_version=version,
                          column_encoding={"text": encoding})
    small = dict(data_page_size=64, write_batch_size=4)
    write("groups", row_group_size=7)
    write("pages", use_dictionary=False, **small)
    write("pages_v2", data_page_version="2.0", **small)
    write("delta_pages", use_dictionary=False, compression="zstd",
          column_encoding={"text": "DELTA_BYTE_ARRAY"}, **small)
    write("fallback", dictionary_pagesize_limit=200, **small)
    write("checksum", write_page_checksum=True, write_page_index=True, **small)
    write("chunked", use_content_defined_chunking=True)
    write("large", type=pa.large_string())
    write("binary", type=pa.binary())
    write("category", type=pa.dictionary(pa.int32(), pa.string()))
    write("old", version="1.0", compression="snappy")
    for version in "1.0", "2.0":
        write(f"required_v{version[0]}", name="full", nullable=False,
              data_page_version=version, use_dictionary=False)
    write("required_dict", name="full", nullable=False)
    write("dict", name="same")
    write("groups", name="same", row_group_size=100, compression="zstd")
    write("v1", name="nulls")
    write("v2", name="nulls", data_page_version="2.0", use_dictionary=False)
    write("v1", name="none")
    write("lz4", compression="lz4")
    write("brotli", compression="brotli")


def write_nested():
    rows = [None if row is None else {"text": row, "n": i}
            for i, row in enumerate(MIXED)]
    rows[3] = {"text": None, "n": 3}
    nested = pa.table({
        "n": pa.array(range(len(rows))),
        "meta": pa.array(rows, type=pa.struct([("text", pa.string()),
                                               ("n", pa.int64())])),
        "tags": pa.array([["a", "b"]] * len(rows)),
        "text": pa.array(MIXED)})
    pq.write_table(nested, path("mixed_nested.parquet"))


def write_others():
    frame = pl.DataFrame({"id": [str(i) for i in range(len(MIXED))],
                          "text": MIXED})
    for codec in "snappy", "zstd":
        frame.write_parquet(path(f"mixed_polars_{codec}.parquet"),
                            compression=codec, row_group_size=25)
    arrow = frame.to_arrow()
    assert arrow.num_rows == len(MIXED)
    for codec in "snappy", "zstd", "gzip":
        duckdb.sql("COPY (SELECT * FROM arrow) TO '"
                   + path(f"mixed_duckdb_{codec}.parquet")
                   + f"' (FORMAT parquet, CODEC '{codec}')")
    duckdb.sql("COPY (SELECT * FROM arrow) TO '"
               + path("mixed_duckdb_v2.parquet")
               + "' (FORMAT parquet, CODEC 'zstd', PARQUET_VERSION 'V2')")


os.makedirs(HERE, exist_ok=True)
write_rows()
write_pyarrow()
write_nested()
write_others()
