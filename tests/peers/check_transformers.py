"""transformers loads our checkpoints and finds the same loss on the same
tokens; what `plimsoll import` makes loads too; tokenizer.json gives the same
ids; a folder that transformers saved goes on training in Plimsoll, update by
update as in PyTorch."""

import json
import os
import re
import shutil
import subprocess

import numpy
import torch
import transformers
from safetensors.torch import load_file, save_file
from transformers import (GPT2Config, GPT2LMHeadModel,
                          PreTrainedTokenizerFast)

from common import (PLIMSOLL, WORK, bias_of, checkpoint, path, plimsoll,
                    require, tokens_of)

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


def one_sequence(tokens):
    """A dataset in which only this one can be chosen."""
    folder = path("data", "one")
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    for part in ("train.bin", "val.bin"):
        numpy.array(tokens, dtype=numpy.uint16).tofile(
            os.path.join(folder, part))
    return folder


def our_loss(name, tokens):
    folder = one_sequence(tokens)
    for part in ("meta.json", "tokenizer.json"):
        if os.path.exists(os.path.join(checkpoint(name), part)):
            shutil.copy(os.path.join(checkpoint(name), part), folder)
    out = plimsoll("eval", name, "--dataset=one", "--eval_iters=1",
                   "--eval_batch_size=1").decode()
    return float(re.search(r"val loss ([0-9.]+)", out).group(1))


def their_losses(folder, tokens, steps):
    """Those of AdamW on one sequence, with decay on the matrices only."""
    model = GPT2LMHeadModel.from_pretrained(folder, dtype=torch.float32)
    model.train()  # without dropout, as the folder's config says
    matrices = [p for p in model.parameters() if p.dim() == 2]
    vectors = [p for p in model.parameters() if p.dim() != 2]
    optimizer = torch.optim.AdamW(
        [{"params": matrices, "weight_decay": 0.1},
         {"params": vectors, "weight_decay": 0.0}],
        lr=1e-3, betas=(0.9, 0.95), eps=1e-8)
    ids, losses = torch.tensor([tokens]), []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(
            model(ids[:, :-1]).logits[0], ids[0, 1:])
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
    return losses, model.eval()


def go_on(manner, *, tied=True, **saving):
    """A model of theirs, saved by them and trained further by us."""
    torch.manual_seed(7)
    folder, out, steps = path("theirs"), path("ours"), 10
    shutil.rmtree(folder, ignore_errors=True)
    shutil.rmtree(out, ignore_errors=True)
    model = GPT2LMHeadModel(GPT2Config(
        vocab_size=151, n_positions=40, n_embd=48, n_layer=3, n_head=4,
        resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0, bos_token_id=None,
        eos_token_id=None, tie_word_embeddings=tied))
    model.to(saving.pop("dtype", torch.float32))
    model.save_pretrained(folder, **saving)
    tokens = torch.randint(0, 151, (41,)).tolist()
    shutil.rmtree(path("exported"), ignore_errors=True)
    plimsoll("export", folder, "--format=hf", "--out=exported")
    same = loss(load(path("exported")), tokens[:-1])
    first = loss(GPT2LMHeadModel.from_pretrained(
        folder, dtype=torch.float32).eval(), tokens[:-1])
    require(same == first, f"{manner}: {same} after export, not {first}")
    one_sequence(tokens)
    plimsoll("train", "--dataset=one", f"--init_from={folder}",
             f"--out_dir={out}", "--batch_size=1", "--dropout=0.0",
             "--gradient_accumulation_steps=1", f"--max_iters={steps}",
             "--learning_rate=1e-3", "--decay_lr=False", "--warmup_iters=0",
             "--weight_decay=0.1", "--grad_clip=1.0", "--beta2=0.95",
             "--eval_iters=1", f"--eval_interval={steps}")
    with open(os.path.join(out, "metrics.jsonl")) as file:
        lines = [json.loads(line) for line in file]
    ours = [line["loss"] for line in lines if "loss" in line]
    theirs, trained = their_losses(folder, tokens, steps)
    require(len(ours) == steps, f"{manner}: {len(ours)} updates")
    worst = max(abs(a - b) for a, b in zip(ours, theirs))
    require(worst <= TOLERANCE, f"{manner}:\n{ours}\n{theirs}")
    again = load(os.path.join(out, "latest"))
    require(again.config.tie_word_embeddings == tied, f"{manner}: tied")
    apart = abs(loss(again, tokens[:-1]) - loss(trained, tokens[:-1]))
    require(apart <= TOLERANCE, f"{manner}: {apart} after training")
    print(f"saved by transformers, {manner}: {steps} updates, losses "
          f"{ours[0]:.4f} to {ours[-1]:.4f}, at most {worst:.1e} apart")


for name in ("chars", "pairs", "erf", "untied"):
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
go_on("float32")
go_on("bfloat16", dtype=torch.bfloat16)
go_on("float16", dtype=torch.float16)
go_on("in several files", max_shard_size="100KB")
go_on("untied head", tied=False)

tokenizer = PreTrainedTokenizerFast(
    tokenizer_file=os.path.join(checkpoint("pairs"), "tokenizer.json"))
with open(path("text.txt")) as file:
    text = file.read()[:5000] + "\n  é—😀 \t don't 123"
require(tokenizer(text)["input_ids"] == tokens_of(checkpoint("pairs"), text),
        "tokenizer.json gives other ids")
print("tokenizer.json: the same ids")
