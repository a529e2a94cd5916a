"""torch.optim.Muon makes the updates that ours makes, of GPT-2's matrices,
which are stored in x out with q, k and v in one, and of Qwen3's, which are
stored out x in and one by one.

A run saves every update. The gradients follow from its moments: m' = m +
(g - m) (1 - momentum). torch.optim.Muon gets them, and has to arrive at our
weights: within the error of bfloat16, in which it computes its iteration, and
within float32's where it is made to compute in that and our dtype is float32.

Moments and weights are saved in float32 whatever dtype is, so that a run in
bfloat16 differs in the iteration alone: X, A and the polynomial are rounded
to 8 bits, as torch's are, but what is rounded isn't quite the same (torch
rounds the update before it divides by its norm, ours after it). Each of both
is 3 to 5 % off what float32 gives, in directions of its own, so that they may
be sqrt(2) times that apart, 7 %: 4 to 6.2 % was found.
"""

import os
from unittest import mock

import torch
from safetensors.torch import load_file

from common import path, plimsoll, require

STEPS, MOMENTUM, RATE, DECAY = 10, 0.95, 0.02, 0.1
# of the change of a weight, by our dtype and torch's
BOUND = {("float32", "float32"): 1e-3, ("float32", "bfloat16"): 0.1,
         ("bfloat16", "bfloat16"): 0.1}
SCALES = [("spectral", "original", RATE), ("rms", "match_rms_adamw", 0.001)]
GPT2 = (".c_attn.weight", ".c_proj.weight", ".c_fc.weight")
QWEN3 = tuple(f".{name}_proj.weight"
              for name in ("q", "k", "v", "o", "gate", "up", "down"))
# Moments are saved as we keep them: 4 heads of 12 channels, 2 of keys and of
# values, and an MLP of 128.
FUSED = {"qkv": [("q", 48), ("k", 24), ("v", 24)],
         "gate_up": [("gate", 128), ("up", 128)]}
COUNT = {"gpt2": 2 * 6, "qwen3": 2 * 7}  # matrices of two blocks


def matrices(tensors, prefix=""):
    """The matrices of the blocks, out x in, by name; those that are stored in one
    apart."""
    out = {}
    for name, tensor in tensors.items():
        own = name.removeprefix(prefix)
        if not name.startswith(prefix):
            continue
        if own.startswith("transformer.h.") and own.endswith(GPT2):
            parts = tensor.chunk(3 if "c_attn" in own else 1, dim=1)
            for i, part in enumerate(parts):
                out[own, i] = part.T.contiguous()
        if own.startswith("model.layers.") and own.endswith(QWEN3):
            out[own, 0] = tensor
        for fused, parts in FUSED.items():
            if own.endswith(f".{fused}_proj.weight"):
                sizes = [rows for _, rows in parts]
                for (part, _), rows in zip(parts, tensor.split(sizes)):
                    out[own.replace(fused, part), 0] = rows.contiguous()
    return out


def saved(run, step):
    folder = path(run, f"step-{step:08d}")
    return (matrices(load_file(os.path.join(folder, "model.safetensors"))),
            matrices(load_file(os.path.join(folder, "optimizer.safetensors")),
                     "m."))


def follow(run, rate, adjust):
    """torch's weights after the last step, from ours after the first."""
    weights, moments = saved(run, 1)
    params = {name: torch.nn.Parameter(w.clone())
              for name, w in weights.items()}
    optimizer = torch.optim.Muon(params.values(), lr=rate, weight_decay=DECAY,
                                 momentum=MOMENTUM, adjust_lr_fn=adjust)
    for name, param in params.items():
        optimizer.state[param]["momentum_buffer"] = moments[name].clone()
    for step in range(2, STEPS + 1):
        _, later = saved(run, step)
        for name, param in params.items():
            param.grad = ((later[name].double() -
                           MOMENTUM * moments[name].double()) /
                          (1.0 - MOMENTUM)).float()
        optimizer.step()
        moments = later
    return {name: param.detach() for name, param in params.items()}


def compare(what, run, dtype, rate, adjust):
    first, last = saved(run, 1)[0], saved(run, STEPS)[0]
    for (ours, precision), bound in BOUND.items():
        if ours != dtype:
            continue
        if precision == "float32":
            with mock.patch.object(torch, "bfloat16", torch.float32):
                theirs = follow(run, rate, adjust)
        else:
            theirs = follow(run, rate, adjust)
        worst = 0.0
        for name, w in last.items():
            change = torch.linalg.norm(w - first[name])
            off = torch.linalg.norm(w - theirs[name]) / change
            worst = max(worst, off.item())
            require(off <= bound, f"{what}, torch's in {precision}: {name} is "
                    f"{off:.3g} of its change off, more than {bound}")
        print(f"{what}, torch's iteration in {precision}: {len(last)} "
              f"matrices, {STEPS - 1} updates, at most {worst:.2g} of their "
              "change off")


def check(architecture, settings, dtype, scale, adjust, rate):
    run = f"muon-{architecture}-{dtype}-{scale}"
    plimsoll("train", "--dataset=chars", f"--out_dir={run}", "--n_layer=2",
             "--n_head=4", "--n_embd=48", "--block_size=32", "--batch_size=4",
             "--gradient_accumulation_steps=2", "--eval_interval=1000",
             "--eval_iters=1", f"--max_iters={STEPS}", "--decay_lr=False",
             "--learning_rate=0.001", "--save_interval=1", f"--keep={STEPS}",
             "--optimizer=muon", f"--muon_scale={scale}", f"--dtype={dtype}",
             f"--muon_momentum={MOMENTUM}", f"--muon_weight_decay={DECAY}",
             f"--architecture={architecture}", *settings)
    weights, moments = saved(run, STEPS)
    require(len(weights) == COUNT[architecture] and
            set(weights) == set(moments),
            f"{run}: {sorted(weights)}, {sorted(moments)}")
    compare(f"{architecture}, {dtype}, {scale}", run, dtype, rate, adjust)


for family, more in (("gpt2", []), ("qwen3", ["--n_kv_head=2"])):
    for kind in ("float32", "bfloat16"):
        for how in SCALES:
            check(family, more, kind, *how)
