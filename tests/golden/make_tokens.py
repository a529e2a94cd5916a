#!/usr/bin/env python3
"""Makes tests/golden/tokens*: what tiktoken and Hugging Face's tokenizers do.

Run from the repository's root, in a virtual environment with tiktoken,
tokenizers and unicodedata2==16.0.0.

  tokens_train.txt  made-up text, the same for every run of this script
  tokens.json       the vocabulary that Hugging Face's BpeTrainer makes of it
  tokens.tiktoken   the same as OpenAI's ranks
  tokens_text.txt   text with all that is special: the first and last code
                    points of every range of letters, numbers and white space,
                    contractions, rows of white space, mixed scripts
  tokens_text.ids   tiktoken's ids for it, with the ranks and GPT-2's pattern,
                    as 16-bit numbers
"""
import base64
import json
import os
import random
import struct

import tiktoken
import unicodedata2
from tokenizers import Tokenizer, models, pre_tokenizers, trainers

FOLDER = os.path.join("tests", "golden")
VOCAB = 900
PATTERN = (r"'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++"
           r"|\s++$|\s+(?!\S)|\s")


def made_up_text(pick):
    syllables = ["ba", "ra", "the", "in", "on", "st", "er", "qui", "lo", "me",
                 "é", "ü", "да", "нет", "水", "😀"]
    words = ["".join(pick.choices(syllables, k=pick.choice([1, 1, 2, 3, 4])))
             for _ in range(700)]
    weights = [1 / (i + 1) for i in range(len(words))]
    out = []
    for _ in range(6000):
        word = pick.choices(words, weights)[0]
        word += pick.choice(["", "", "", "", ",", ".", "'s", "'ll", "!?", "..."])
        out.append(word + pick.choice([" "] * 12 + ["\n", "\n\n", "  ", "\t"]))
        if pick.random() < 0.05:
            out.append(str(pick.randrange(10000)) + " ")
    return "".join(out)


def edges(test):
    """First, last and next code points of the ranges where `test` holds."""
    inside = False
    for code in range(0x110000):
        if 0xD800 <= code < 0xE000:
            continue
        holds = test(chr(code))
        if holds != inside:
            if code > 0:
                yield chr(code - 1 if code != 0xE000 else 0xD7FF)
            yield chr(code)
        inside = holds


def special_text(pick):
    out = ["It's he'll we've they're I'm don't I'd 'sdmt 'S 'LL x'sy ''s '"]
    category = unicodedata2.category
    for test in [lambda c: category(c)[0] == "L", lambda c: category(c)[0] == "N"]:
        seen = dict.fromkeys(edges(test))
        out.append("".join(f"{c}" if i % 3 else f" {c}a" for i, c in
                           enumerate(seen)))
    spaces = "\t\n\v\f\r \x85\xa0\u1680\u2000\u200a\u2028\u2029\u202f\u205f\u3000"
    others = "\x00\x1c\x1f\u180e\u200b\u2060\ufeff\ufffd"
    for c in spaces + others:
        out.append(f"a{c}b {c}b{c} b{c}{c}b{c} {c}1!{c}")
    for n in range(1, 20):
        out.append("x" + " " * n + "y" + "\n" * n + "z" + " \n" * n)
    rows = ["abcABC", "0189²", " \t\n\u3000", "'sdl", "éüда水", "😀!.,"]
    for _ in range(1200):
        out.append("".join(pick.choices(pick.choice(rows),
                                        k=pick.choice([1, 1, 2, 3]))))
    out.append("the" * 300 + " " * 500 + "é" * 200 + "   ")
    return "".join(out)


def put(name, data):
    with open(os.path.join(FOLDER, name), "wb") as out:
        out.write(data)


def main():
    pick = random.Random(1)
    text = made_up_text(pick)
    put("tokens_train.txt", text.encode())

    theirs = Tokenizer(models.BPE())
    theirs.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    theirs.train_from_iterator([text], trainers.BpeTrainer(
        vocab_size=VOCAB, special_tokens=[], show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    theirs.add_special_tokens(["<|endoftext|>"])
    put("tokens.json", theirs.to_str().encode())

    vocab = json.loads(theirs.to_str())["model"]["vocab"]
    shown = [b for b in range(256) if 33 <= b <= 126 or 161 <= b and b != 173]
    byte_of = {chr(b): b for b in shown}
    byte_of.update({chr(256 + i): b for i, b in enumerate(
        b for b in range(256) if b not in shown)})
    ranks = {bytes(byte_of[c] for c in token): rank
             for token, rank in vocab.items()}
    put("tokens.tiktoken", b"".join(
        base64.b64encode(token) + b" %d\n" % rank
        for token, rank in sorted(ranks.items(), key=lambda item: item[1])))

    text = special_text(pick)
    put("tokens_text.txt", text.encode())
    openais = tiktoken.Encoding("made-up", pat_str=PATTERN,
                                mergeable_ranks=ranks,
                                special_tokens={"<|endoftext|>": len(ranks)})
    ids = openais.encode_ordinary(text)
    put("tokens_text.ids", struct.pack("<%dH" % len(ids), *ids))


if __name__ == "__main__":
    main()
