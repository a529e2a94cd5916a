"""What the checks against transformers share: a model in a folder, its losses,
and training that goes on in Plimsoll with what transformers saved."""

import json
import os
import re
import shutil

import numpy
import torch
import transformers
from transformers import AutoModelForCausalLM

from common import checkpoint, path, plimsoll, require

TOLERANCE = 1e-4
transformers.logging.set_verbosity_error()
transformers.logging.disable_progress_bar()


def load(folder):
    model, info = AutoModelForCausalLM.from_pretrained(
        folder, output_loading_info=True, dtype=torch.float32)
    require(not info["missing_keys"] and not info["unexpected_keys"],
            f"{folder}: {info}")
    return model.eval()


def loss(model, tokens):
    ids = torch.tensor([tokens])
    with torch.no_grad():
        return model(ids, labels=ids).loss.item()


def next_loss(model, tokens):
    """The last token is only ever a target: one more than the positions."""
    ids = torch.tensor([tokens])
    with torch.no_grad():
        return torch.nn.functional.cross_entropy(
            model(ids[:, :-1]).logits[0], ids[0, 1:]).item()


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
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
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
        value = torch.nn.functional.cross_entropy(
            model(ids[:, :-1]).logits[0], ids[0, 1:])
        value.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(value.item())
    return losses, model.eval()


def go_on(manner, model, **saving):
    """A model of theirs, saved by them and trained further by us; the folder
    that it was trained to."""
    folder, out, steps = path("theirs"), path("ours"), 10
    tied = model.config.tie_word_embeddings
    for old in (folder, out, path("exported")):
        shutil.rmtree(old, ignore_errors=True)
    model.to(saving.pop("dtype", torch.float32))
    model.save_pretrained(folder, **saving)
    length = model.config.max_position_embeddings
    tokens = torch.randint(0, model.config.vocab_size, (length + 1,)).tolist()
    plimsoll("export", folder, "--format=hf", "--out=exported")
    same = loss(load(path("exported")), tokens[:-1])
    first = loss(load(folder), tokens[:-1])
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
    return out
