"""Hugging Face's tokenizers give the same ids: for tokenizer.json in the form
of GPT-2, Llama 3, Qwen and SmolLM2, trained by them and by us, over made-up
texts of every kind, and for our reading of added tokens, NFC and lists of
merges in any order.

    PLIMSOLL=build/release/plimsoll python tests/peers/check_tokenizers.py WORK [SEED]
"""

import json
import os
import random
import sys

import numpy
from tokenizers import AddedToken, Regex, Tokenizer
from tokenizers import models, normalizers, pre_tokenizers, trainers

from common import path, plimsoll, require

LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
          r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
SPECIALS = ["<|endoftext|>", "<|end|>", "<|end|>s"]
ADDED = ["<think>", "</think>", "<|endo"]
VOCAB = 1200


def level(**changes):
    return pre_tokenizers.ByteLevel(add_prefix_space=False, **changes)


def split(regex):
    return pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(regex), "isolated"),
        level(use_regex=False)])


FORMS = {
    "gpt2": (None, level),
    "llama3": (None, lambda: split(LLAMA3)),
    "qwen2": (normalizers.NFC, lambda: split(LLAMA3.replace("{1,3}", ""))),
    "smollm2": (None, lambda: pre_tokenizers.Sequence([
        pre_tokenizers.Digits(individual_digits=True), level()])),
}


# ---- texts ----

LARGE = [(0x3400, 0x9F00), (0xAC00, 0xD700), (0xE000, 0xF800),
         (0x12000, 0x12400), (0x13000, 0x13400), (0x17000, 0x18C00),
         (0x20000, 0x2F000), (0x30000, 0xE0000), (0xE0200, 0x110000)]


def codes():
    """All but most of the large blocks whose characters are alike."""
    for code in range(0x110000):
        if 0xD800 <= code < 0xE000:
            continue
        if code % 64 == 0 or not any(a <= code < b for a, b in LARGE):
            yield code


def all_of_unicode():
    """Every character beside others of each class, and in contractions."""
    return "".join(f"{c}{c} {c}a{c}1!{c}\n{c}'{c}a\t{c}\u0301{c}"
                   for c in map(chr, codes()))


def mixed(pick, characters):
    rows = [
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJ", "0123456789²½٣", " ", "\n",
        " \t\n\r\u00a0\v\f", "'sSdDmMtTlLvVrReE\u017f\u212a", "éüößñçàèðþ",
        "абвгдежзийклмн", "汉字仮名交じり文", "العربية", "हिन्दी\u0958",
        "😀👍🏽🇩🇪\u200d\ufe0f", ".,;:!?-–—()[]{}\"'`_=/\\", "<|endothink/>s",
        "\u3000\u2003\u2028\u0085\x00\x1c\x7f", "\u0301\u0316\u0327\u0345\u0338",
        "\u1100\u1161\u11a8\uac00\uac01", "\u0344\U0001d160\ufb2c\u2126\u212b",
        "\U00011de0\U00016ff4\u0e33\u09c7\u09be",
    ]
    out = []
    while characters > 0:
        row = pick.choice(rows)
        length = min(pick.choice([1, 1, 1, 2, 3, 5, 9, 40]), characters)
        out.append("".join(pick.choice(row) for _ in range(length)))
        characters -= length
    return "".join(out)


def random_codes(pick, count):
    every = list(codes())
    return "".join(chr(pick.choice(every)) for _ in range(count))


def runs():
    return "".join(f"{' ' * n}x{chr(10) * n}{chr(9) * n}y {(' ' + chr(10)) * n}"
                   f"{'7' * n}!{(chr(13) + chr(10)) * n}" for n in range(1, 120))


def sources():
    """This project's own code and prose."""
    out = []
    for folder, _, names in os.walk("."):
        if "/." in folder or folder.startswith("./build"):
            continue
        for name in sorted(names):
            if name.endswith((".c", ".h", ".md", ".py", ".sh", ".js")):
                with open(os.path.join(folder, name), encoding="utf-8",
                          newline="") as text:
                    out.append(text.read())
    return "".join(out)


def texts(seed):
    pick = random.Random(seed)
    prose = sources()
    begin = pick.randrange(len(prose) - 400_000)
    out = [("code and prose", prose[begin:begin + 400_000]),
           ("white space", runs()),
           ("all of Unicode", all_of_unicode()),
           ("mixed scripts", mixed(pick, 150_000)),
           ("random characters", random_codes(pick, 30_000)),
           ("one letter", "a" * 30_000), ("no blanks", "汉字" * 20_000)]
    for i in range(12):
        out.append((f"short text {i}", mixed(pick, pick.choice([1, 3, 30, 300]))))
    return out


# ---- comparing ----

def ours(folder, text, *flags):
    out = plimsoll("tokenize", f"--tokenizer={folder}", "--ids=uint32", *flags,
                   stdin=text.encode())
    return numpy.frombuffer(out, dtype="<u4")


def same(name, what, mine, theirs):
    theirs = numpy.array(theirs, dtype=numpy.uint32)
    short = min(len(mine), len(theirs))
    differ = numpy.flatnonzero(mine[:short] != theirs[:short])
    at = int(differ[0]) if len(differ) else short
    require(len(mine) == len(theirs) == at,
            f"{name}, {what}: token {at} of {len(theirs)} is {mine[at:at + 4]}, "
            f"theirs {theirs[at:at + 4]}")


def compare(name, folder, corpus):
    """Special tokens as text, and found; others that are added are found."""
    theirs = Tokenizer.from_file(os.path.join(folder, "tokenizer.json"))
    count = 0
    for what, text in corpus:
        for flags, special in [((), True), (("--special",), False)]:
            theirs.encode_special_tokens = special
            wanted = theirs.encode(text, add_special_tokens=False).ids
            same(name, what, ours(folder, text, *flags), wanted)
            count += len(wanted)
    print(f"{name}: {count} tokens are the same")


def folder_of(name, text):
    os.makedirs(path(name), exist_ok=True)
    with open(path(name, "tokenizer.json"), "w", encoding="utf-8") as out:
        out.write(text)
    return path(name)


def trained_by_them(form, text):
    normalizer, pre = FORMS[form]
    made = Tokenizer(models.BPE())
    if normalizer:
        made.normalizer = normalizer()
    made.pre_tokenizer = pre()
    made.train_from_iterator([text], trainers.BpeTrainer(
        vocab_size=VOCAB, special_tokens=[], show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    return made


def with_added(made):
    made = Tokenizer.from_str(made.to_str())
    made.add_special_tokens([AddedToken(t, normalized=False) for t in SPECIALS])
    made.add_tokens([AddedToken(t, normalized=False) for t in ADDED])
    made.add_tokens([AddedToken("ing>", normalized=True)])
    return made


def check_training(form, made, text):
    """Our trainer finds their merges, and their library our ids."""
    with open(path("train.txt"), "w", encoding="utf-8", newline="") as out:
        out.write(text)
    folder = path(f"ours-{form}")
    plimsoll("tokenizer", "train", f"--vocab_size={VOCAB}", f"--pattern={form}",
             "--end_of_text=", f"--out={folder}", path("train.txt"))
    with open(os.path.join(folder, "tokenizer.json"), encoding="utf-8") as file:
        mine = json.load(file)["model"]["merges"]
    theirs = [" ".join(m) for m in json.loads(made.to_str())["model"]["merges"]]
    require(mine == theirs, f"{form}: other merges are trained")
    return folder


def disordered(made, seed):
    """Merges in an order that no training gives, and "ignore_merges"."""
    pick = random.Random(seed)
    whole = json.loads(made.to_str())
    merges = whole["model"]["merges"]
    for _ in range(len(merges) // 4):
        i, j = pick.randrange(len(merges)), pick.randrange(len(merges))
        merges[i], merges[j] = merges[j], merges[i]
    for _ in range(20):
        merges.pop(pick.randrange(len(merges)))
    whole["model"]["ignore_merges"] = bool(seed % 2)
    return json.dumps(whole)


def check_invalid(folder, pick):
    """Bytes that aren't UTF-8 come back."""
    data = bytearray(mixed(pick, 50_000).encode())
    for _ in range(len(data) // 20):
        data[pick.randrange(len(data))] = pick.randrange(256)
    ids = plimsoll("tokenize", f"--tokenizer={folder}", "--ids=uint32",
                   stdin=bytes(data))
    back = plimsoll("tokenize", f"--tokenizer={folder}", "--ids=uint32",
                    "--decode", stdin=ids)
    require(back == bytes(data), f"{folder}: invalid bytes are lost")


def main():
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    pick = random.Random(seed)
    corpus = texts(seed)
    few = [pair for pair in corpus if len(pair[1]) < 200_000]
    text = corpus[0][1] + mixed(pick, 60_000) + runs()[:5000]
    for form in FORMS:
        made = trained_by_them(form, text)
        compare(form, folder_of(form, with_added(made).to_str()), corpus)
        folder = check_training(form, made, text)
        compare(f"{form}, trained here", folder, few)
        for k in range(2):
            compare(f"{form}, in disorder",
                    folder_of(f"{form}-{k}", disordered(made, 2 * seed + k)),
                    few)
        if form != "qwen2":
            check_invalid(folder, pick)


if __name__ == "__main__":
    main()
