#!/usr/bin/env python3
"""Compares the tokenizers with tiktoken and Hugging Face's tokenizers: the
same tokens, and how long it takes, one after the other on the same machine.

    cmake --build --preset release --target tokens
    python3 bench/peers_tokenizer.py encode VOCAB PROSE [TEXT...]
    python3 bench/peers_tokenizer.py patterns TEXT [FOLDER...]
    python3 bench/peers_tokenizer.py train TEXT [SIZE]

in a virtual environment with tiktoken, tokenizers and numpy. VOCAB is GPT-2's
ranks (script/vocab fetches them). `encode` compares every id, on the texts
given and on made-up ones: all of Unicode, mixed scripts, invalid UTF-8
(replaced, as a caller of tiktoken must), rows of white space, repetitions.
Speed is that of one thread, the best of three, on each of the texts. `patterns`
compares ids and speed with Hugging Face's tokenizers, for a vocabulary of each
pattern trained on the text, and for the tokenizer.json of each folder. `train` compares
time, merges and compression with Hugging Face's BpeTrainer on all processors.
"""
import argparse
import base64
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import time

import numpy as np

PATTERN = (r"'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++"
           r"|\s++$|\s+(?!\S)|\s")
PART_BYTES = 8 << 20


def tokens(program, *arguments):
    run = subprocess.run([program, *map(str, arguments)], capture_output=True,
                         text=True)
    if run.returncode:
        sys.exit(run.stderr)
    return json.loads(run.stdout)


# ---- made-up texts ----

def all_of_unicode():
    """Every character alone, doubled, and between others of each class."""
    out = []
    for code in range(0x110000):
        if not 0xD800 <= code < 0xE000:
            c = chr(code)
            out.append(f"{c} {c}{c} a{c}1{c}!{c}\n{c}'{c} '{c}s\t{c}")
    return "".join(out)


def mixed_scripts(seed, characters):
    pick = random.Random(seed)
    alphabets = [
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJ", "0123456789²½٣", " \t\n\r\u00a0",
        "'sdmtlvre", "éüößñçàèðþ", "абвгдежзийклмн", "汉字仮名交じり文",
        "العربية", "हिन्दी", "😀👍🏽🇩🇪\u200d\ufe0f", ".,;:!?-–—()[]{}\"'`",
        "\u3000\u2003\u2028\u0085\x00\x1c\x7f",
    ]
    out = []
    while characters > 0:
        row = pick.choice(alphabets)
        length = min(pick.choice([1, 1, 1, 2, 3, 5, 9, 40]), characters)
        out.append("".join(pick.choice(row) for _ in range(length)))
        characters -= length
    return "".join(out)


def invalid_bytes(seed, text, share):
    """Bytes of `text` flipped here and there, read as a caller must."""
    pick = random.Random(seed)
    data = bytearray(text.encode())
    for _ in range(int(len(data) * share)):
        data[pick.randrange(len(data))] = pick.randrange(256)
    return bytes(data)


def white_space():
    return "".join(" " * n + "x" + "\n" * n + "\t" * n + "y " + " \n" * n
                   for n in range(1, 1500))


def repetitions(size):
    for unit in ["a", "ab", " ", "\n", "0", "!", "=-", "the ", "é", "汉", "aA1! "]:
        yield repr(unit), (unit * size)[:size]


# ---- encoding ----

def parts(data):
    """Large texts in parts, cut where the pattern cuts."""
    begin = 0
    while begin < len(data):
        end = begin + PART_BYTES
        if end < len(data):
            end = data.rfind(b" ", begin, end)
            while end > begin and not data[end - 1:end].isalnum():
                end = data.rfind(b" ", begin, end)
        end = end if end > begin else begin + PART_BYTES
        yield data[begin:end]
        begin = end


class Encoding:
    def __init__(self, program, vocab, folder):
        import tiktoken
        ranks = {}
        for line in open(vocab, "rb").read().splitlines():
            token, rank = line.split()
            ranks[base64.b64decode(token)] = int(rank)
        self.theirs = tiktoken.Encoding(
            "gpt2", pat_str=PATTERN, mergeable_ranks=ranks,
            special_tokens={"<|endoftext|>": len(ranks)})
        self.program, self.vocab, self.folder = program, vocab, folder
        self.compared = 0

    def ours(self, data, keep=True):
        text = os.path.join(self.folder, "text")
        ids = os.path.join(self.folder, "ids")
        with open(text, "wb") as out:
            out.write(data)
        said = tokens(self.program, "encode", self.vocab, text,
                      *([ids] if keep else []))
        return said, np.fromfile(ids, dtype=np.int32) if keep else None

    def compare(self, name, data):
        """`data` as bytes: what isn't valid is replaced for both."""
        text = data.decode("utf-8", errors="replace")
        said, ours = self.ours(text.encode())
        theirs = np.array(self.theirs.encode_ordinary(text), dtype=np.int32)
        if len(ours) != len(theirs) or (ours != theirs).any():
            short = min(len(ours), len(theirs))
            differ = np.flatnonzero(ours[:short] != theirs[:short])
            at = int(differ[0]) if len(differ) else short
            before = self.theirs.decode_bytes(theirs[:at].tolist())
            sys.exit("%s: differs at token %d, byte %d: ours %s, theirs %s" %
                     (name, at, len(before), ours[at:at + 5],
                      theirs[at:at + 5]))
        self.compared += said["bytes"]
        return said


def compare_speed(both, path):
    """On the first megabytes of a text; each of our runs begins anew."""
    data = next(parts(open(path, "rb").read(4 * PART_BYTES)))
    text = data.decode("utf-8", errors="replace")
    data = text.encode()
    ours, theirs = 0, 0
    for _ in range(3):
        ours = max(ours, both.ours(data, keep=False)[0]["mb_per_s"])
        began = time.perf_counter()
        both.theirs.encode_ordinary(text)
        gone = time.perf_counter() - began
        theirs = max(theirs, len(data) / gone / 1e6)
    print("one thread, %s: %.1f MB/s, tiktoken %.1f MB/s: %.1f times" %
          (path, ours, theirs, ours / theirs), flush=True)


def encode(arguments, folder):
    both = Encoding(arguments.tokens, arguments.vocab, folder)
    for path in [arguments.prose, *arguments.text]:
        for i, part in enumerate(parts(open(path, "rb").read())):
            both.compare("%s, part %d" % (path, i), part)
        print("same: %s" % path, flush=True)
    made_up = [("all of Unicode", all_of_unicode().encode()),
               ("mixed scripts", mixed_scripts(1, 6_000_000).encode()),
               ("white space", white_space().encode())]
    made_up.append(("invalid UTF-8", invalid_bytes(
        2, mixed_scripts(3, 4_000_000), 0.05)))
    made_up += [("repeated " + n, t.encode()) for n, t in repetitions(200_000)]
    for name, data in made_up:
        both.compare(name, data)
        print("same: %s (%.1f MB)" % (name, len(data) / 1e6), flush=True)
    print("compared %.1f MB, every token is the same" % (both.compared / 1e6))

    for path in [arguments.prose, *arguments.text]:
        compare_speed(both, path)
    for name, text in repetitions(10_000_000):
        said = both.ours(text.encode(), keep=False)[0]
        print("%10s, %.1f MB: %.3f s" % (name, said["bytes"] / 1e6,
                                         said["seconds"]))


# ---- patterns ----

LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
          r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")


def forms():
    """name, normalizer, pre-tokenizer"""
    from tokenizers import Regex, normalizers
    from tokenizers import pre_tokenizers as pre
    level = pre.ByteLevel(add_prefix_space=False)

    def split(regex):
        return pre.Sequence([
            pre.Split(Regex(regex), "isolated"),
            pre.ByteLevel(add_prefix_space=False, use_regex=False)])
    yield "gpt2", None, level
    yield "llama3", None, split(LLAMA3)
    yield "qwen2", normalizers.NFC(), split(LLAMA3.replace("{1,3}", ""))
    yield "smollm2", None, pre.Sequence([
        pre.Digits(individual_digits=True), level])


def compare_with_library(name, program, folder, text):
    """Processor time of one thread: the texts are theirs by lines, since their
    cost grows with the length of a text."""
    from tokenizers import Tokenizer
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    vocab = os.path.join(folder, "tokenizer.json")
    theirs = Tokenizer.from_file(vocab)
    theirs.encode_special_tokens = True
    # behind a letter or digit: an underscore may belong to the end of its line
    lines = re.split(r"(?<=[^\W_])(?=\n)", text)
    mine = argparse.Namespace(program=program, vocab=vocab, folder=folder)
    said, ids = Encoding.ours(mine, text.encode())
    best, rate = 1e9, said["mb_per_s"]
    for _ in range(3):
        began = time.process_time()
        wanted = [i for line in lines
                  for i in theirs.encode(line, add_special_tokens=False).ids]
        best = min(best, time.process_time() - began)
        rate = max(rate, Encoding.ours(mine, text.encode(),
                                       keep=False)[0]["mb_per_s"])
    if ids.tolist() != wanted:
        sys.exit("%s: other ids" % name)
    peer = len(text.encode()) / best / 1e6
    print("%s: %d ids are the same, %.1f MB/s, tokenizers %.2f MB/s: %.0f times"
          % (name, len(wanted), rate, peer, rate / peer), flush=True)


def patterns(arguments, folder):
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers
    data = open(arguments.text, "rb").read(arguments.bytes)
    text = data.decode("utf-8", errors="replace")
    for name, normalizer, pre in forms():
        made = Tokenizer(models.BPE())
        if normalizer:
            made.normalizer = normalizer
        made.pre_tokenizer = pre
        made.train_from_iterator([text], trainers.BpeTrainer(
            vocab_size=8192, special_tokens=[], show_progress=False,
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
        made.save(os.path.join(folder, "tokenizer.json"))
        compare_with_library(name, arguments.tokens, folder, text)
    for given in arguments.folder:
        compare_with_library(given, arguments.tokens, given, text)


# ---- training ----

def train_theirs(size, texts):
    """Of one path, the fastest way they have, or of a list of texts."""
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers
    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = trainers.BpeTrainer(
        vocab_size=size, special_tokens=[], show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    began = time.perf_counter()
    if len(texts) == 1:
        made.train(texts, trainer)
    else:
        made.train_from_iterator(texts, trainer)
    return made, time.perf_counter() - began


def train(arguments, folder):
    from tokenizers import Tokenizer
    text = open(arguments.text, "rb").read().decode("utf-8", errors="replace")
    path = os.path.join(folder, "text")
    with open(path, "w", encoding="utf-8", newline="") as out:
        out.write(text)
    threads = len(os.sched_getaffinity(0))
    said = tokens(arguments.tokens, "train", arguments.size, threads,
                  arguments.memory, path, folder)
    ours_s = said["count_s"] + said["train_s"]
    print("ours:   %.2f s (counting %.2f), %d unique pieces, %d runs spilled" %
          (ours_s, said["count_s"], said["unique"], said["spilled_runs"]),
          flush=True)
    theirs, theirs_s = train_theirs(arguments.size, [path])
    print("theirs: %.2f s: %.1f times ours" % (theirs_s, theirs_s / ours_s),
          flush=True)
    # That was by lines, each a text of its own. For the same merges the text
    # must be cut where the whole would be cut too.
    theirs, _ = train_theirs(arguments.size,
                             re.split(r"(?<=\S)(?=\n)", text))
    made = os.path.join(folder, "tokenizer.json")
    ours = Tokenizer.from_file(made)
    kept = json.loads(theirs.to_str())["model"]
    mine = json.loads(ours.to_str())["model"]
    same = sum(a == b for a, b in zip(kept["merges"], mine["merges"]))
    print("merges: %d of %d at the same place" % (same, len(kept["merges"])))
    sample = text[:8_000_000]
    count = len(theirs.encode(sample).ids)
    encoded = ours.encode(sample).ids
    _, ids = Encoding.ours(argparse.Namespace(
        program=arguments.tokens, vocab=made, folder=folder), sample.encode())
    print("bytes per token: ours %.4f, theirs %.4f" %
          (len(sample.encode()) / len(encoded), len(sample.encode()) / count))
    print("their library with our tokenizer.json: %s ids as here" %
          ("the same" if ids.tolist() == encoded else "NOT the same"))


def main():
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--tokens", default=os.path.join(
        root, "build", "release", "tokens"), help="the program")
    kinds = parser.add_subparsers(dest="kind", required=True)
    one = kinds.add_parser("encode")
    one.add_argument("vocab")
    one.add_argument("prose")
    one.add_argument("text", nargs="*")
    one = kinds.add_parser("patterns")
    one.add_argument("text")
    one.add_argument("folder", nargs="*")
    one.add_argument("--bytes", type=int, default=8_000_000)
    one = kinds.add_parser("train")
    one.add_argument("text")
    one.add_argument("size", nargs="?", type=int, default=32768)
    one.add_argument("--memory", type=int, default=1024, help="in MB")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        {"encode": encode, "patterns": patterns, "train": train}[
            arguments.kind](arguments, folder)


if __name__ == "__main__":
    main()
