#!/usr/bin/env python3
"""Makes tests/fuzz/corpus/pickle: what Python's pickle writes for nanoGPT's
meta, in every protocol, and pickles that must be refused.

Run from the repository's root. test_pickle.c knows the files by name."""
import os
import pickle

FOLDER = "tests/fuzz/corpus/pickle"
SMALL = ["\x00", "\n", "\r", "\x1a", " ", "\\", "a", "z", "\x7f", "é", "€", "😀"]
LARGE = [chr(0x3000 + i) for i in range(1050)]  # two batches, long memo places


def meta(characters, **changes):
    stoi = {c: i for i, c in enumerate(characters)}
    itos = {i: c for i, c in enumerate(characters)}
    return {"vocab_size": len(characters), "itos": itos, "stoi": stoi, **changes}


class Evil:
    def __reduce__(self):
        return os.system, ("touch executed",)


def write(name, data):
    with open(os.path.join(FOLDER, name), "wb") as f:
        f.write(data)


for protocol in range(6):
    write(f"small_{protocol}.pkl", pickle.dumps(meta(SMALL), protocol))
for protocol in (0, 2, 4):
    write(f"large_{protocol}.pkl", pickle.dumps(meta(LARGE), protocol))
ab = ["a", "b"]
write("evil_0.pkl", pickle.dumps(meta(ab, vocab_size=Evil()), 0))
write("evil_4.pkl", pickle.dumps(meta(ab, vocab_size=Evil()), 4))
write("list.pkl", pickle.dumps([1, 2, 3], 4))
write("float_size.pkl", pickle.dumps(meta(ab, vocab_size=2.0), 4))
write("bool_size.pkl", pickle.dumps(meta(ab, vocab_size=True), 0))
write("wrong_size.pkl", pickle.dumps(meta(ab, vocab_size=3), 4))
write("two_characters.pkl", pickle.dumps(meta(["a", "<pad>"]), 4))
write("not_inverse.pkl", pickle.dumps(meta(ab, stoi={"a": 1, "b": 0}), 4))
write("twice.pkl", pickle.dumps(meta(ab, itos={0: "a", 1: "a"}, stoi={"a": 0, "A": 1}), 4))
write("no_stoi.pkl", pickle.dumps({"vocab_size": 1, "itos": {0: "a"}}, 4))
write("more_keys.pkl", pickle.dumps(meta(ab, note="hello", year=2022), 4))
write("unsorted.pkl", pickle.dumps(meta(["z", "a", "m"]), 2))
write("surrogate.pkl", pickle.dumps(meta(["\ud800"]), 4))
write("surrogate_0.pkl", pickle.dumps(meta(["\ud800"]), 0))
write("big_number.pkl", pickle.dumps(meta(ab, vocab_size=2**40), 4))
