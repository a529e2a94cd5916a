"""transformers loads our checkpoints and finds the same loss on the same
tokens; what `plimsoll import` makes loads too; tokenizer.json gives the same
ids; a folder that transformers saved goes on training in Plimsoll, update by
update as in PyTorch."""

import os
import shutil
import subprocess

import torch
from safetensors.torch import load_file, save_file
from transformers import (GPT2Config, GPT2LMHeadModel,
                          PreTrainedTokenizerFast)

from common import (PLIMSOLL, WORK, bias_of, checkpoint, path, plimsoll,
                    require, tokens_of)
from torch_models import TOLERANCE, go_on, load, loss, next_loss, our_loss


def go_on_gpt2(manner, *, tied=True, **saving):
    torch.manual_seed(7)
    go_on(manner, GPT2LMHeadModel(GPT2Config(
        vocab_size=151, n_positions=40, n_embd=48, n_layer=3, n_head=4,
        resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0, bos_token_id=None,
        eos_token_id=None, tie_word_embeddings=tied)), **saving)


for name in ("chars", "pairs", "erf", "untied"):
    folder = checkpoint(name)
    model = load(folder)
    length = model.config.n_positions
    with open(path("text.txt")) as file:
        tokens = tokens_of(folder, file.read())[1000:1000 + length + 1]
    theirs = next_loss(model, tokens)
    ours = our_loss(name, tokens)
    print(f"{name}: loss {ours:.4f}, transformers {theirs:.6f}")
    require(abs(ours - theirs) <= TOLERANCE, f"{name}: the losses differ")

    # out and back, three ways
    for kind in ("gguf", "hf") if name == "untied" else ("gguf", "llmc", "hf"):
        file, back = path(f"{name}.{kind}"), path(f"{name}-{kind}-back")
        shutil.rmtree(back, ignore_errors=True)
        shutil.rmtree(file, ignore_errors=True)
        plimsoll("export", name, f"--format={kind}", f"--out={file}")
        if kind == "hf":
            back = file
        else:
            plimsoll("import", file, f"--out={back}")
        again = load(back)
        require(bias_of(back) == (name == "pairs"), f"{name}: biases, {kind}")
        # a GGUF and llm.c's file can't say that GELU is erf's
        if name != "erf" or kind == "hf":
            require(abs(loss(again, tokens[:-1]) - loss(model, tokens[:-1])) <
                    1e-5, f"{name}: another loss after {kind}")
    print(f"{name}: the same through other formats")


def refuses(*args):
    """What a command that must fail says."""
    result = subprocess.run([PLIMSOLL, *args], cwd=WORK, capture_output=True,
                            check=False)
    require(result.returncode == 6, f"{args}: {result.returncode}")
    return result.stderr.decode()


def without_biases():
    """Theirs are zeros; once they train them, they are biases; and a folder
    that leaves them out loads."""
    model, folder = load(path("chars.hf")), path("tuned")
    vectors = [value for name, value in model.named_parameters()
               if name.endswith(".bias")]
    require(all((value == 0).all() for value in vectors), "not zeros")
    shutil.rmtree(folder, ignore_errors=True)
    with torch.no_grad():
        vectors[-1] += 1.0
    model.save_pretrained(folder)
    require("plimsoll_bias" in refuses("export", folder, "--out=tuned.gguf"),
            "biases that they trained were dropped")
    bare = path("bare-hf")
    shutil.rmtree(bare, ignore_errors=True)
    shutil.copytree(path("chars.hf"), bare)
    file = os.path.join(bare, "model.safetensors")
    kept = {name: value for name, value in load_file(file).items()
            if not name.endswith(".bias")}
    save_file(kept, file, metadata={"format": "pt"})
    shutil.rmtree(path("filled"), ignore_errors=True)
    plimsoll("export", bare, "--out=filled")
    left, right = load(path("filled")), load(path("chars.hf"))
    ids = torch.arange(20).reshape(1, 20)
    with torch.no_grad():
        require(torch.equal(left(ids).logits, right(ids).logits), "filled")
    require(not bias_of(bare) and not bias_of("filled"), "biases out of air")
    print("without biases: zeros there, none here; trained ones are seen")


without_biases()
go_on_gpt2("float32")
go_on_gpt2("bfloat16", dtype=torch.bfloat16)
go_on_gpt2("float16", dtype=torch.float16)
go_on_gpt2("in several files", max_shard_size="100KB")
go_on_gpt2("untied head", tied=False)

tokenizer = PreTrainedTokenizerFast(
    tokenizer_file=os.path.join(checkpoint("pairs"), "tokenizer.json"))
with open(path("text.txt")) as file:
    text = file.read()[:5000] + "\n  é—😀 \t don't 123"
require(tokenizer(text)["input_ids"] == tokens_of(checkpoint("pairs"), text),
        "tokenizer.json gives other ids")
print("tokenizer.json: the same ids")
