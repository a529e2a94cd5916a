"""torch.optim.Muon makes the updates that ours makes.

A run saves every update. The gradients follow from its moments: m' = m +
(g - m) (1 - momentum). torch.optim.Muon gets them, and has to arrive at our
weights: within the error of bfloat16, in which it computes its iteration, and
within float32's where it is made to compute in that.
"""

import os
from unittest import mock

import torch
from safetensors.torch import load_file

from common import path, plimsoll, require

STEPS, MOMENTUM, RATE, DECAY = 10, 0.95, 0.02, 0.1
BOUND = {"bfloat16": 0.1, "float32": 1e-3}  # of the change of a weight
MATRICES = (".c_attn.weight", ".c_proj.weight", ".c_fc.weight")


def matrices(tensors, prefix=""):
    """The matrices of the blocks, out x in, by name; q, k and v apart."""
    out = {}
    for name, tensor in tensors.items():
        if name.startswith(prefix + "transformer.h.") and name.endswith(
                MATRICES):
            parts = tensor.chunk(3 if "c_attn" in name else 1, dim=1)
            for i, part in enumerate(parts):
                out[name[len(prefix):], i] = part.T.contiguous()
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


for scale, adjust, rate in [("spectral", "original", RATE),
                            ("rms", "match_rms_adamw", 0.001)]:
    run = f"muon-{scale}"
    plimsoll("train", "--dataset=chars", f"--out_dir={run}", "--n_layer=2",
             "--n_head=4", "--n_embd=48", "--block_size=32", "--batch_size=4",
             "--gradient_accumulation_steps=2", "--eval_interval=1000",
             "--eval_iters=1", f"--max_iters={STEPS}", "--decay_lr=False",
             "--learning_rate=0.001", "--save_interval=1", f"--keep={STEPS}",
             "--optimizer=muon", f"--muon_scale={scale}",
             f"--muon_momentum={MOMENTUM}", f"--muon_weight_decay={DECAY}")
    first, last = saved(run, 1)[0], saved(run, STEPS)[0]
    for precision, bound in BOUND.items():
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
            require(off <= bound, f"{scale}, {precision}: {name} is "
                    f"{off:.3g} of its change off, more than {bound}")
        print(f"{scale}, torch's iteration in {precision}: {len(last)} "
              f"matrices, {STEPS - 1} updates, at most {worst:.2g} of their "
              "change off")
