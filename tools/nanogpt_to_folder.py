#!/usr/bin/env python3
"""Turns nanoGPT's ckpt.pt into a Hugging Face GPT-2 folder.

    python tools/nanogpt_to_folder.py out/ckpt.pt models/mine
    python tools/nanogpt_to_folder.py out-chars/ckpt.pt models/chars \\
        --tokenizer=data/shakespeare_char/meta.pkl

Needs torch and safetensors. ckpt.pt is a pickle: it is opened with
weights_only=True, which builds tensors and plain values and runs no code, here
and not in Plimsoll, which never opens one. Then

    plimsoll train --init_from=models/mine --dataset=...
    transformers.GPT2LMHeadModel.from_pretrained("models/mine")

The folder gets model.safetensors and config.json:
  - names are nanoGPT's, which are Hugging Face's; the prefix `_orig_mod.` of
    torch.compile and the buffers of the attention mask are left out;
  - matrices of products are transposed: nanoGPT's nn.Linear has [out, in],
    GPT-2's Conv1D has [in, out];
  - a model without biases (bias=False) gets biases of zeros, since GPT-2 has no
    other way, and "plimsoll_bias": false, by which Plimsoll trains it on
    without; transformers passes it over;
  - lm_head.weight is the token table and is left out; where it isn't, it is
    written and tie_word_embeddings is false;
  - nanoGPT's GELU is erf's: activation_function is "gelu".

--tokenizer copies a file beside them: meta.pkl, tokenizer.json, vocab.json
(with merges.txt). nanoGPT's checkpoints don't have one.
"""

import argparse
import json
import os
import shutil
import sys

import torch
from safetensors.torch import save_file

PRODUCTS = ("attn.c_attn", "attn.c_proj", "mlp.c_fc", "mlp.c_proj")
TOKENIZERS = ("meta.pkl", "meta.json", "tokenizer.json", "vocab.json")


def stop(message):
    sys.exit(f"nanogpt_to_folder: {message}")


def load(path):
    try:
        checkpoint = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # torch raises many kinds
        stop(f"{path} can't be read as weights: {error}")
    if not isinstance(checkpoint, dict) or "model" not in checkpoint:
        stop(f"{path} is no checkpoint of nanoGPT: it has no 'model'")
    args = dict(checkpoint.get("model_args") or {})
    for key in ("n_layer", "n_head", "n_embd", "block_size", "vocab_size"):
        if not isinstance(args.get(key), int):
            stop(f"{path}: model_args has no {key}")
    weights = {
        name.removeprefix("_orig_mod."): tensor
        for name, tensor in checkpoint["model"].items()
    }
    return args, weights


def shapes(args):
    """Every tensor of the folder with its shape, as Hugging Face has it."""
    c = args["n_embd"]
    yield "transformer.wte.weight", (args["vocab_size"], c)
    yield "transformer.wpe.weight", (args["block_size"], c)
    for i in range(args["n_layer"]):
        block = f"transformer.h.{i}."
        for name, rows, cols in (
            ("attn.c_attn", c, 3 * c),
            ("attn.c_proj", c, c),
            ("mlp.c_fc", c, 4 * c),
            ("mlp.c_proj", 4 * c, c),
        ):
            yield f"{block}{name}.weight", (rows, cols)
            yield f"{block}{name}.bias", (cols,)
        for name in ("ln_1", "ln_2"):
            yield f"{block}{name}.weight", (c,)
            yield f"{block}{name}.bias", (c,)
    yield "transformer.ln_f.weight", (c,)
    yield "transformer.ln_f.bias", (c,)


def has_biases(args, weights):
    """What the tensors say: older checkpoints have no word about it."""
    return args.get("bias") is True or any(
        name.endswith(".bias") and name in weights for name, _ in shapes(args))


def convert(args, weights, biased, path):
    out = {}
    for name, shape in shapes(args):
        tensor = weights.get(name)
        if tensor is None:
            if not name.endswith(".bias") or biased:
                stop(f"{path} has no tensor {name}")
            tensor = torch.zeros(shape)
        elif len(shape) == 2 and any(part in name for part in PRODUCTS):
            tensor = tensor.t()
        if tuple(tensor.shape) != shape:
            stop(f"{path}: {name} is {tuple(tensor.shape)}, not {shape}")
        out[name] = tensor.float().contiguous()
    head = weights.get("lm_head.weight")
    tied = head is None or torch.equal(head.float(),
                                       out["transformer.wte.weight"])
    if not tied:
        out["lm_head.weight"] = head.float().contiguous()
    return out, tied


def config(args, tied, biased):
    end = 50256 if args["vocab_size"] in (50257, 50304) else None
    keys = {
        "model_type": "gpt2",
        "architectures": ["GPT2LMHeadModel"],
        "activation_function": "gelu",
        "vocab_size": args["vocab_size"],
        "n_positions": args["block_size"],
        "n_ctx": args["block_size"],
        "n_embd": args["n_embd"],
        "n_layer": args["n_layer"],
        "n_head": args["n_head"],
        "n_inner": 4 * args["n_embd"],
        "layer_norm_epsilon": 1e-05,
        "embd_pdrop": args.get("dropout", 0.0),
        "attn_pdrop": args.get("dropout", 0.0),
        "resid_pdrop": args.get("dropout", 0.0),
        "tie_word_embeddings": tied,
        "bos_token_id": end,
        "eos_token_id": end,
    }
    if not biased:
        keys["plimsoll_bias"] = False
    return keys


def copy_tokenizer(path, folder):
    name = os.path.basename(path)
    if name not in TOKENIZERS:
        stop(f"{path}: a tokenizer is named one of {', '.join(TOKENIZERS)}")
    shutil.copyfile(path, os.path.join(folder, name))
    if name == "vocab.json":
        merges = os.path.join(os.path.dirname(path), "merges.txt")
        shutil.copyfile(merges, os.path.join(folder, "merges.txt"))


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("checkpoint", help="nanoGPT's ckpt.pt")
    parser.add_argument("folder", help="what to write; must not be there")
    parser.add_argument("--tokenizer", help="file to copy beside the weights")
    options = parser.parse_args()

    if os.path.exists(options.folder):
        stop(f"{options.folder} is there already")
    args, weights = load(options.checkpoint)
    biased = has_biases(args, weights)
    tensors, tied = convert(args, weights, biased, options.checkpoint)
    fresh = options.folder.rstrip("/") + ".tmp"
    shutil.rmtree(fresh, ignore_errors=True)
    os.makedirs(fresh)
    save_file(tensors, os.path.join(fresh, "model.safetensors"),
              metadata={"format": "pt"})
    with open(os.path.join(fresh, "config.json"), "w") as file:
        json.dump(config(args, tied, biased), file, indent=2)
        file.write("\n")
    if options.tokenizer:
        copy_tokenizer(options.tokenizer, fresh)
    os.rename(fresh, options.folder)
    count = sum(t.numel() for t in tensors.values())
    print(f"written to {options.folder}: {count:,} values"
          f"{'' if biased else ', without biases'}"
          f"{'' if tied else ', with a classifier of its own'}")


if __name__ == "__main__":
    main()
