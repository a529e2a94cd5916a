#!/usr/bin/env python3
"""Makes tests/golden/tensor.safetensors: what tensor cores compute, by MMA-Sim.

Run from the repository's root, in a virtual environment with torch, numpy,
safetensors and MMA-Sim (https://github.com/microsoft/MMA-Sim, arXiv 2511.10909;
its folder in PYTHONPATH). The numbers are ours, the results are those of its
mma.m16n8k16 with a float32 sum for an architecture of each class: "Ada
Lovelace" for tensor24, "RTX Blackwell" for tensor25.

For each class and dtype (tensor24.bf16 ...), one product of each kind below:
  <name>.a  F32 [kinds, 16, 16]   rows of A, exact in the dtype
  <name>.b  F32 [kinds, 16, 8]    B
  <name>.c  F32 [kinds, 16, 8]    what the sums start from
  <name>.d  F32 [kinds, 16, 8]    the results
"""

import os

import numpy as np
import torch
from mmasim.simulator.nv_ptx import mma
from safetensors.numpy import save_file

FOLDER = os.path.dirname(os.path.abspath(__file__))
CLASSES = {"tensor24": "Ada Lovelace", "tensor25": "RTX Blackwell"}
DTYPES = {"bf16": torch.bfloat16, "f16": torch.float16}
SHAPES = ((16, 16), (16, 8), (16, 8))


def random_sizes(rng, shape, low, high):
    """Either sign, exponents from low to high, any significand."""
    sign = rng.choice([-1.0, 1.0], shape)
    return sign * rng.uniform(1, 2, shape) * 2.0 ** rng.integers(
        low, high + 1, shape)


def with_some(rng, x, value, share):
    return np.where(rng.uniform(size=x.shape) < share, value, x)


def ordinary(rng, half):
    """As training has them."""
    return [rng.normal(size=s) for s in SHAPES]


def wide(rng, half):
    """Sizes from 2^-56 to 2^24 (float16: all it has), zeros of both signs."""
    low, high = (-56, 23) if half == "bf16" else (-24, 15)
    a, b, c = [random_sizes(rng, s, low, high) for s in SHAPES]
    a = with_some(rng, with_some(rng, a, 0.0, 0.1), -0.0, 0.1)
    b = with_some(rng, with_some(rng, b, 0.0, 0.1), -0.0, 0.1)
    return [a, b, with_some(rng, c, -0.0, 0.1)]


def cancelling(rng, half):
    """Products that take each other off, but for what was cut."""
    a, b, c = [random_sizes(rng, s, -4, 4) for s in SHAPES]
    a[:, 1::2], b[1::2] = a[:, 0::2], -b[0::2]
    a[:, 7], b[7] = 0.0, 2.0 ** -9
    a[:, 6], b[6] = 2.0 ** -9, rng.uniform(1, 2, 8) * 2.0 ** -9
    return [a, b, c * 2.0 ** -20]


def crowded(rng, half):
    """All products of a row near 4, of one sign: the largest sums."""
    a, b = rng.uniform(1.98, 1.9999, SHAPES[0]), rng.uniform(1.98, 1.9999,
                                                              SHAPES[1])
    a[8:] *= -1
    return [a, b, random_sizes(rng, SHAPES[2], 0, 1)]


def tiny(rng, half):
    """The smallest numbers, and sums that start from nothing or little."""
    low, high = (-56, -50) if half == "bf16" else (-24, -13)
    a, b = [random_sizes(rng, s, low, high) for s in SHAPES[:2]]
    c = np.trunc(random_sizes(rng, SHAPES[2], 0, 23)) * 2.0 ** -126
    return [a, with_some(rng, b, 0.0, 0.3), with_some(rng, c, 0.0, 0.3)]


def large(rng, half):
    """Sums up to 2^128 and beyond it, which may come back."""
    low, high = (60, 64) if half == "bf16" else (13, 15)
    a, b = [random_sizes(rng, s, low, high) for s in SHAPES[:2]]
    if half == "f16":
        a, b = [np.clip(x, -65504, 65504) for x in (a, b)]
    return [a, b, random_sizes(rng, SHAPES[2], 120, 127)]


def not_finite(rng, half):
    """Some infinities and NaN."""
    a, b, c = [rng.normal(size=s) for s in SHAPES]
    a = with_some(rng, with_some(rng, a, np.inf, 0.02), 0.0, 0.1)
    b = with_some(rng, b, -np.inf, 0.02)
    a[3, 4] = np.nan
    return [a, b, with_some(rng, c, np.inf, 0.05)]


def beside_zeros(rng, half):
    """Zeros whose partners are so large that they set the exponent."""
    high = 100 if half == "bf16" else 15
    a, b = np.zeros(SHAPES[0]), random_sizes(rng, SHAPES[1], high - 8, high)
    c = random_sizes(rng, SHAPES[2], high - 150, high - 130)
    return [a, b, c]


KINDS = (ordinary, wide, cancelling, crowded, tiny, large, not_finite,
         beside_zeros)


def main():
    tensors = {}
    for half, dtype in DTYPES.items():
        for name, arch in CLASSES.items():
            rng = np.random.default_rng(16)
            run = mma(arch, f"m16n8k16.f32.{half}.{half}.f32")
            rows = {x: [] for x in "abcd"}
            for kind in KINDS:
                a, b, c = [torch.tensor(x) for x in kind(rng, half)]
                a, b, c = a.float().to(dtype), b.float().to(dtype), c.float()
                d = run(a, b, c)
                for x, y in zip("abcd", (a, b, c, d)):
                    rows[x].append(y.float().numpy())
            for x in "abcd":
                tensors[f"{name}.{half}.{x}"] = np.stack(rows[x])
    save_file(tensors, os.path.join(FOLDER, "tensor.safetensors"))


if __name__ == "__main__":
    main()
