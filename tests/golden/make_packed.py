#!/usr/bin/env python3
"""Writes the packed files of tests/golden/packed: three documents as JSON lines
and one as text, plain, as zstd of two frames and as gzip of two members; as xz with a window of
64 MiB and as lz4, by their programs.

Needs pyarrow. Run anywhere.
"""
import gzip
import os
import subprocess

import pyarrow as pa

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "packed")
LINES = (b'{"id": 1, "text": "the line on the hull"}\n'
         b'{"id": 2, "text": "gr\\u00f6\\u00dfer, \\ud83d\\udea2"}\n'
         b'{"id": 3, "text": "how far a ship may be loaded\\n"}\n')
TEXT = b"The Plimsoll line is the mark on a ship's hull.\n" * 40
FILES = {"docs.jsonl": LINES, "text.txt": TEXT}

for name, data in FILES.items():
    path = os.path.join(HERE, name)
    parts = data[:60], data[60:]
    with open(path, "wb") as out:
        out.write(data)
    with open(path + ".zst", "wb") as out:
        for part in parts:
            out.write(pa.compress(part, "zstd", asbytes=True))
    with open(path + ".gz", "wb") as out:
        for part in parts:
            out.write(gzip.compress(part, mtime=0))
    for ending, command in ((".xz", "xz -9 -c"), (".lz4", "lz4 -q -c")):
        with open(path + ending, "wb") as out:
            subprocess.run(command.split() + [path], stdout=out, check=True)
