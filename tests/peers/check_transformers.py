"""transformers loads our checkpoints and finds the same loss on the same
tokens; what `plimsoll import` makes loads too; tokenizer.json gives the same
ids."""

import os
import re
import shutil

import numpy
import torch
import transformers
from transformers import GPT2LMHeadModel, PreTrainedTokenizerFast

from common import checkpoint, path, plimsoll, require, tokens_of

TOLERANCE = 1e-4
transformers.logging.set_verbosity_error()
transformers.logging.disable_progress_bar()


def load(folder):
    model, info = GPT2LMHeadModel.from_pretrained(
        folder, output_loading_info=True)
    require(not info["missing_keys"] and not info["unexpected_keys"],
            f"{folder}: {info}")
    return model.eval()


def loss(model, tokens):
    ids = torch.tensor([tokens])
    with torch.no_grad():
        return model(ids, labels=ids).loss.item()


def our_loss(name, tokens):
    """Of a dataset in which only one sequence can be chosen."""
    folder = path("data", "one")
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    for part in ("train.bin", "val.bin"):
        numpy.array(tokens, dtype=numpy.uint16).tofile(
            os.path.join(folder, part))
    for part in ("meta.json", "tokenizer.json"):
        if os.path.exists(os.path.join(checkpoint(name), part)):
            shutil.copy(os.path.join(checkpoint(name), part), folder)
    out = plimsoll("eval", name, "--dataset=one", "--eval_iters=1",
                   "--eval_batch_size=1").decode()
    return float(re.search(r"val loss ([0-9.]+)", out).group(1))


for name in ("chars", "pairs", "erf"):
    folder = checkpoint(name)
    model = load(folder)
    length = model.config.n_positions
    with open(path("text.txt")) as file:
        tokens = tokens_of(folder, file.read())[1000:1000 + length + 1]
    # the last token is only ever a target: one more than the positions
    ids = torch.tensor([tokens])
    with torch.no_grad():
        scores = model(ids[:, :-1]).logits
        theirs = torch.nn.functional.cross_entropy(
            scores[0], ids[0, 1:]).item()
    ours = our_loss(name, tokens)
    print(f"{name}: loss {ours:.4f}, transformers {theirs:.6f}")
    require(abs(ours - theirs) <= TOLERANCE, f"{name}: the losses differ")

    # out and back, three ways
    for kind in ("gguf", "llmc", "hf"):
        file, back = path(f"{name}.{kind}"), path(f"{name}-{kind}-back")
        shutil.rmtree(back, ignore_errors=True)
        shutil.rmtree(file, ignore_errors=True)
        plimsoll("export", name, f"--format={kind}", f"--out={file}")
        if kind == "hf":
            back = file
        else:
            plimsoll("import", file, f"--out={back}")
        again = load(back)
        # a GGUF and llm.c's file can't say that GELU is erf's
        if name != "erf" or kind == "hf":
            require(abs(loss(again, tokens[:-1]) - loss(model, tokens[:-1])) <
                    1e-5, f"{name}: another loss after {kind}")
    print(f"{name}: the same through gguf, llmc and hf")

tokenizer = PreTrainedTokenizerFast(
    tokenizer_file=os.path.join(checkpoint("pairs"), "tokenizer.json"))
with open(path("text.txt")) as file:
    text = file.read()[:5000] + "\n  é—😀 \t don't 123"
require(tokenizer(text)["input_ids"] == tokens_of(checkpoint("pairs"), text),
        "tokenizer.json gives other ids")
print("tokenizer.json: the same ids")
