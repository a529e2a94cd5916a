#!/usr/bin/env python3
"""Measures what PyTorch needs to train and evaluate a GPT as nanoGPT does.

Run from the repository's root, in a virtual environment with torch:

    python tools/measure_torch_memory.py                 all shapes
    python tools/measure_torch_memory.py --shape=NAME    one of them
    python tools/measure_torch_memory.py --timeline=NAME its list of events

On the CPU, in float32. The model below is written for this purpose; it does
the same operations in the same order as nanoGPT's, and its variables live as
long: that is what decides the peak. Everything, from the first weight on,
runs under torch.profiler with profile_memory, whose running total of live
bytes is read; the phases are those of nanoGPT's loop:

    evaluation 0        estimate_loss() before the first update
    update 0            the first update: no moments yet
    update 1            the next: moments are there
    evaluation later    estimate_loss() after them

Writes docs/explain_measured.json and prints the rows of the table in
tests/unit/explain_measured.h, against which the prediction is tested.
"""

import argparse
import json
import math
import os
import tempfile

import torch
from torch import nn
from torch.nn import functional as F
from torch.profiler import ProfilerActivity, profile, record_function
from torch.utils.checkpoint import checkpoint

THREADS = 2  # scratch of attention on the CPU is per thread
VARIANTS = ["flash", "scores", "checkpoint"]  # the last: flash, recomputed
PHASES = ["evaluation 0", "update 0", "update 1", "evaluation later"]

# name: B, T, C, L, H, V, accumulation, bias, dropout
SHAPES = {
    "char": (12, 64, 128, 4, 4, 65, 1, False, 0.0),
    "char dropout": (16, 128, 192, 4, 6, 65, 1, False, 0.2),
    "wide": (4, 128, 512, 3, 8, 1000, 2, True, 0.0),
    "long": (2, 1024, 256, 2, 4, 4096, 2, False, 0.0),
    "long dropout": (1, 768, 192, 3, 6, 2048, 2, True, 0.1),
    "gpt2 vocabulary": (4, 256, 256, 2, 4, 50304, 3, False, 0.0),
    "one sequence": (1, 512, 384, 6, 12, 50304, 1, False, 0.0),
    "odd": (3, 100, 160, 5, 5, 777, 2, False, 0.0),
    "deep": (2, 256, 128, 16, 2, 512, 4, False, 0.0),
}


class Norm(nn.Module):
    def __init__(self, width, bias):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.bias = nn.Parameter(torch.zeros(width)) if bias else None

    def forward(self, x):
        return F.layer_norm(x, self.weight.shape, self.weight, self.bias)


class Attention(nn.Module):
    def __init__(self, C, H, T, bias, dropout, flash):
        super().__init__()
        self.into = nn.Linear(C, 3 * C, bias=bias)
        self.out = nn.Linear(C, C, bias=bias)
        self.drop_scores = nn.Dropout(dropout)
        self.drop_out = nn.Dropout(dropout)
        self.H, self.C, self.p, self.flash = H, C, dropout, flash
        if not flash:  # one mask per layer, in float32, as nanoGPT keeps it
            self.register_buffer(
                "mask", torch.tril(torch.ones(T, T)).view(1, 1, T, T))

    def forward(self, x):
        B, T, C = x.size()
        q, k, v = self.into(x).split(self.C, dim=2)
        k = k.view(B, T, self.H, C // self.H).transpose(1, 2)
        q = q.view(B, T, self.H, C // self.H).transpose(1, 2)
        v = v.view(B, T, self.H, C // self.H).transpose(1, 2)
        if self.flash:
            y = F.scaled_dot_product_attention(
                q, k, v, dropout_p=self.p if self.training else 0,
                is_causal=True)
        else:
            scores = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))
            scores = scores.masked_fill(
                self.mask[:, :, :T, :T] == 0, float("-inf"))
            scores = F.softmax(scores, dim=-1)
            scores = self.drop_scores(scores)
            y = scores @ v
        y = y.transpose(1, 2).contiguous().view(B, T, C)
        y = self.drop_out(self.out(y))
        return y


class Mlp(nn.Module):
    def __init__(self, C, bias, dropout):
        super().__init__()
        self.into = nn.Linear(C, 4 * C, bias=bias)
        self.gelu = nn.GELU()
        self.out = nn.Linear(4 * C, C, bias=bias)
        self.drop = nn.Dropout(dropout)

    def forward(self, x):
        x = self.into(x)
        x = self.gelu(x)
        x = self.out(x)
        x = self.drop(x)
        return x


class Layer(nn.Module):
    def __init__(self, C, H, T, bias, dropout, flash):
        super().__init__()
        self.norm_1 = Norm(C, bias)
        self.attention = Attention(C, H, T, bias, dropout, flash)
        self.norm_2 = Norm(C, bias)
        self.mlp = Mlp(C, bias, dropout)

    def forward(self, x):
        x = x + self.attention(self.norm_1(x))
        x = x + self.mlp(self.norm_2(x))
        return x


class Gpt(nn.Module):
    def __init__(self, T, C, L, H, V, bias, dropout, variant):
        super().__init__()
        flash = variant != "scores"
        self.recompute = variant == "checkpoint"
        self.tokens = nn.Embedding(V, C)
        self.positions = nn.Embedding(T, C)
        self.drop = nn.Dropout(dropout)
        self.layers = nn.ModuleList(
            [Layer(C, H, T, bias, dropout, flash) for _ in range(L)])
        self.norm = Norm(C, bias)
        self.head = nn.Linear(C, V, bias=False)
        self.tokens.weight = self.head.weight  # tied

    def forward(self, tokens, targets):
        at = torch.arange(0, tokens.size(1), dtype=torch.long)
        token = self.tokens(tokens)
        position = self.positions(at)
        x = self.drop(token + position)
        for layer in self.layers:
            if self.recompute and self.training:
                x = checkpoint(layer, x, use_reentrant=False)
            else:
                x = layer(x)
        x = self.norm(x)
        logits = self.head(x)
        loss = F.cross_entropy(logits.view(-1, logits.size(-1)),
                               targets.view(-1), ignore_index=-1)
        return logits, loss


def batch(B, T, V):
    x = torch.stack([torch.randint(V, (T,)) for _ in range(B)])
    y = torch.stack([torch.randint(V, (T,)) for _ in range(B)])
    return x, y


@torch.no_grad()
def evaluate(model, B, T, V):
    model.eval()
    for _ in range(2):  # two splits
        losses = torch.zeros(2)
        for i in range(2):
            x, y = batch(B, T, V)
            logits, loss = model(x, y)
            losses[i] = loss.item()
    model.train()


def run(shape, variant):
    """nanoGPT's loop, two updates of it. The variables of this frame are its
    globals: `logits` is kept while the next are computed."""
    B, T, C, L, H, V, accumulation, bias, dropout = shape
    model = Gpt(T, C, L, H, V, bias, dropout, variant)
    matrices = [p for p in model.parameters() if p.dim() >= 2]
    vectors = [p for p in model.parameters() if p.dim() < 2]
    optimizer = torch.optim.AdamW(
        [{"params": matrices, "weight_decay": 0.1},
         {"params": vectors, "weight_decay": 0.0}],
        lr=1e-4, betas=(0.9, 0.95))
    x, y = batch(B, T, V)
    with record_function(PHASES[0]):
        evaluate(model, B, T, V)
    for update in range(2):
        with record_function(PHASES[1 + update]):
            for _ in range(accumulation):
                logits, loss = model(x, y)
                loss = loss / accumulation
                x, y = batch(B, T, V)
                loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
    with record_function(PHASES[3]):
        evaluate(model, B, T, V)


def traced(shape, variant):
    """The profiler's events: memory and phases."""
    torch.manual_seed(1)
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as p:
        run(shape, variant)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "trace.json")
        p.export_chrome_trace(path)
        with open(path) as file:
            return json.load(file)["traceEvents"]


def peaks(events):
    """The running total's highest value in each phase."""
    memory = [(e["ts"], e["args"]["Total Allocated"]) for e in events
              if e.get("name") == "[memory]"]
    memory.sort()
    out = {}
    for e in events:
        if e.get("cat") == "user_annotation" and e["name"] in PHASES:
            begin, end = e["ts"], e["ts"] + e["dur"]
            out[e["name"]] = max(t for at, t in memory if begin <= at <= end)
    return out


def print_timeline(events):
    """Every allocation and release with the innermost operator around it."""
    spans = [(e["ts"], e["ts"] + e["dur"], e["name"]) for e in events
             if e.get("cat") in ("cpu_op", "user_annotation")]
    memory = [e for e in events if e.get("name") == "[memory]"]
    for e in sorted(memory, key=lambda e: e["ts"]):
        around = [s for s in spans if s[0] <= e["ts"] <= s[1]]
        around.sort(key=lambda s: s[0])
        names = " > ".join(s[2] for s in around[-3:])
        print(f"{e['args']['Bytes']:>14,} {e['args']['Total Allocated']:>14,}"
              f"  {names}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--shape", choices=SHAPES)
    parser.add_argument("--timeline", choices=SHAPES)
    parser.add_argument("--variant", choices=VARIANTS, default="flash")
    parser.add_argument("--out", default="docs/explain_measured.json")
    args = parser.parse_args()
    torch.set_num_threads(THREADS)
    if args.timeline:
        print_timeline(traced(SHAPES[args.timeline], args.variant))
        return
    rows = []
    for name, shape in SHAPES.items():
        if args.shape and name != args.shape:
            continue
        for variant in VARIANTS:
            found = peaks(traced(shape, variant))
            B, T, C, L, H, V, accumulation, bias, dropout = shape
            rows.append({
                "name": name, "B": B, "T": T, "C": C, "L": L, "H": H, "V": V,
                "accumulation": accumulation, "bias": bias,
                "dropout": dropout, "variant": variant,
                "peak_bytes": [found[phase] for phase in PHASES]})
            numbers = ", ".join(str(found[phase]) for phase in PHASES)
            print(f'    {{ "{name}", {B}, {T}, {C}, {L}, {H}, {V}, '
                  f"{accumulation}, {int(bias)}, {dropout},\n"
                  f"      MEASURED_{variant.upper()},\n"
                  f"      {{ {numbers} }} }},", flush=True)
    if not args.shape:
        with open(args.out, "w") as file:
            json.dump({"torch": torch.__version__, "threads": THREADS,
                       "device": "cpu", "dtype": "float32",
                       "phases": PHASES, "shapes": rows}, file, indent=1)
            file.write("\n")


if __name__ == "__main__":
    main()
