#!/usr/bin/env python3
"""Makes tests/golden/patterns: what Hugging Face's tokenizers do with the
patterns of Llama 3, Qwen and SmolLM2.

Run from the repository's root, in a virtual environment with tokenizers.
make_tokens.py made the text that they are trained on, beside text.txt.

  <form>.json   a vocabulary in the form of that model's, with special tokens
                and others that are added; Llama 3's has merges out of turn,
                tokens that no merge makes, and "ignore_merges"
  text.txt      text with all that is special about these patterns
  <form>.ids    its ids as 16-bit numbers, special tokens being text
  <form>.found  its ids, special tokens being found
"""
import json
import os
import random
import struct

from tokenizers import AddedToken, Regex, Tokenizer, models, normalizers
from tokenizers import pre_tokenizers, trainers

FOLDER = os.path.join("tests", "golden")
OUT = os.path.join(FOLDER, "patterns")
VOCAB = 600
LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
          r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")


def split(regex):
    return pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(regex), "isolated"),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])


FORMS = {
    "llama3": (None, split(LLAMA3)),
    "qwen2": (normalizers.NFC(), split(LLAMA3.replace("{1,3}", ""))),
    "smollm2": (None, pre_tokenizers.Sequence([
        pre_tokenizers.Digits(individual_digits=True),
        pre_tokenizers.ByteLevel(add_prefix_space=False)])),
}


def train(form, texts):
    made = Tokenizer(models.BPE())
    normalizer, made.pre_tokenizer = FORMS[form]
    if normalizer:
        made.normalizer = normalizer
    made.train_from_iterator(texts, trainers.BpeTrainer(
        vocab_size=VOCAB, special_tokens=[], show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    return made


def disorder(made, pick):
    whole = json.loads(made.to_str())
    merges = whole["model"]["merges"]
    for _ in range(60):
        i, j = pick.randrange(len(merges)), pick.randrange(len(merges))
        merges[i], merges[j] = merges[j], merges[i]
    for _ in range(10):
        merges.pop(pick.randrange(len(merges)))
    whole["model"]["ignore_merges"] = True
    return Tokenizer.from_str(json.dumps(whole))


def special_text(pick, trained):
    rows = ["abcABC", "0189²", " \t\n\r\u3000", "'sSdlLtT\u017fvVeErRmM", "éüда水",
            "😀!.,(", "\u0301\u0316\u0327", "\u1100\u1161\u11a8\uac00",
            "\u0958\u0344\u212b\U0001d160", "\U00011de0\U00016ff4", "<|end"]
    words = ["<|endoftext|>", "<|end|>", "<think>", "</think>", "<think>\u0338",
             "ing>", "ing>\u0338", "<|end|>!", "|>!", "<think", " ", "\n\n", "\r\n", "1234567", "It's IT'S"]
    out = []
    for _ in range(1500):
        if pick.random() < 0.15:
            out.append(pick.choice(words))
        out.append("".join(pick.choices(pick.choice(rows),
                                        k=pick.choice([1, 1, 2, 3, 7]))))
    return trained[:8000] + "".join(out) + "<|end|>#@ |>#@   \n  " + "9" * 50 + "  "


def put(name, data):
    with open(os.path.join(OUT, name), "wb") as out:
        out.write(data)


def main():
    pick = random.Random(1)
    with open(os.path.join(FOLDER, "tokens_train.txt"), encoding="utf-8",
              newline="") as file:
        trained = file.read()
    text = special_text(pick, trained)
    os.makedirs(OUT, exist_ok=True)
    put("text.txt", text.encode())
    for form in FORMS:
        made = train(form, [trained, text])
        if form == "llama3":
            made = disorder(made, pick)
        made.add_special_tokens([AddedToken("<|endoftext|>", normalized=False),
                                 AddedToken("<|end|>", normalized=False)])
        made.add_tokens([AddedToken("<think>", normalized=False),
                         AddedToken("</think>", normalized=False),
                         AddedToken("|>!", normalized=False),  # merged, too
                         AddedToken("|>#@", normalized=False),
                         AddedToken("ing>", normalized=True)])
        put(form + ".json", made.to_str().encode())
        for end, as_text in [(".ids", True), (".found", False)]:
            made.encode_special_tokens = as_text
            ids = made.encode(text, add_special_tokens=False).ids
            put(form + end, struct.pack("<%dH" % len(ids), *ids))


if __name__ == "__main__":
    main()
