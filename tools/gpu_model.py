#!/usr/bin/env python3
"""How long an update of GPT-2's shape would take on a card that nobody has run
it on: a prediction from the machine code of the kernels.

    tools/gpu_model.py gpu.cubin [--tensor] [--sms=46 --ghz=2.475 --gbs=504]
                       [--layers=12 --heads=12 --width=576 --context=1024
                        --vocabulary=50304 --batch=16 --accumulation=32]

The model, which docs/gpu.md explains: a multiprocessor issues four instructions
of a warp per cycle, each of which may be 32 multiply-adds. A product's tile of
128 x 128 then takes 128 * K cycles / the share of FFMA in its inner loop, tiles
go to the multiprocessors in whole rounds, and STALL of the cycles are lost to
what one tile does before and after its loop and to waiting. What isn't a
product or attention takes the time of its bytes, at BYTES of the bandwidth.

With --tensor, in 16 bits by tensor cores: an HMMA (16 x 8 x 16 multiply-adds)
keeps one of a multiprocessor's four for HMMA cycles, 32 on Ada's cards for
games, where sums are float32. A tile takes as long as its HMMA do, or as its
loop has instructions, whichever is more.

The defaults are an RTX 4070 and the 77 M model on 12 GB.
"""
import argparse
import math

from gpu_loops import ffma_share, gaps, inner_loop, kernels, tensor_loop

STALL = 0.08
BYTES = 0.80
TILE = 128
LAUNCH = 4e-6
HMMA = 32


class Card:
    def __init__(self, o, shares):
        self.sms, self.hertz = o.sms, o.ghz * 1e9
        self.bytes_per_second = o.gbs * 1e9 * BYTES
        self.shares = shares

    def product(self, kernel, M, N, K):
        tiles = math.ceil(M / TILE) * math.ceil(N / TILE)
        cycles = TILE * K / self.shares[kernel] / (1 - STALL)
        return math.ceil(tiles / self.sms) * cycles / self.hertz + LAUNCH

    def flops(self, kernel, flops):
        rate = self.sms * 256 * self.hertz
        return flops / rate / self.shares[kernel] / (1 - STALL) + LAUNCH

    def round(self, number_of_elements):
        return 0.0

    def memory(self, number_of_bytes):
        return number_of_bytes / self.bytes_per_second + LAUNCH


class TensorCard(Card):
    """The same with the kernels of tensor cores."""
    names = {"gemm_nn": "tensor_nn", "gemm_tt": "tensor_nt",
             "gemm_tn": "tensor_tn", "attention": "attention_tensor",
             "attention_dq": "attention_dq_tensor",
             "attention_dkv": "attention_dkv_tensor"}

    def __init__(self, o, bodies):
        super().__init__(o, {})
        self.bodies = bodies

    def cycles(self, kernel):
        """Cycles of a warp's HMMA, alone on one of four schedulers."""
        body = self.bodies[kernel]
        return max(HMMA, len(body) / len(gaps(body))) / (1 - STALL)

    def product(self, kernel, M, N, K):
        tiles = math.ceil(M / TILE) * math.ceil(N / TILE)
        hmma = TILE / 16 * (TILE / 8) * math.ceil(K / 16)
        cycles = hmma / 4 * self.cycles(kernel)
        return math.ceil(tiles / self.sms) * cycles / self.hertz + LAUNCH

    def flops(self, kernel, flops):
        hmma = flops / (2 * 16 * 8 * 16) / (4 * self.sms)
        return hmma * self.cycles(kernel) / self.hertz + LAUNCH

    def round(self, number_of_elements):
        return self.memory(6.0 * number_of_elements)


def micro_batch(c, o):
    """Seconds by part of one micro-batch, forward and backward."""
    R, C, T, V = o.batch * o.context, o.width, o.context, o.vocabulary
    L, H = o.layers, o.heads
    D = C // H
    of = {}

    def add(part, seconds, times=1):
        of[part] = of.get(part, 0.0) + times * seconds

    for N, K in ((3 * C, C), (C, C), (4 * C, C), (C, 4 * C)):
        add("products", c.product("gemm_nn", R, N, K), L)
        add("products", c.product("gemm_tt", R, K, N), L)  # dx
        add("products", c.product("gemm_tn", K, N, R), L)  # dw
    # two gradients of the residual stream are rounded, for both products each
    add("products", c.round(R * C), 4 * L)
    # the classifier in chunks of rows
    rows = min(R, max(64, (1 << 30) // 4 // V // 64 * 64))
    chunks = math.ceil(R / rows)
    for kernel, shape in (("gemm_tt", (rows, V, C)), ("gemm_nn", (rows, C, V)),
                          ("gemm_tn", (V, C, rows))):
        add("classifier", c.product(kernel, *shape), chunks)
    size = 2.0 if o.tensor else 4.0 # of activations
    add("loss", c.memory(4 * size * R * V))
    # scores are computed twice, and half of the square: 3 products forward,
    # 7 backward, each of T / 2 keys on average and a half tile more
    keys = T / 2 + 32
    one = 2.0 * R * keys * H * D
    add("attention", c.flops("attention", 3 * one), L)
    add("attention", c.flops("attention_dq", 3 * one), L)
    add("attention", c.flops("attention_dkv", 4 * one), L)
    # norms, GELU, residuals: floats read and written per channel
    add("the rest", c.memory(size * R * C * (2 * 8 + 2 * 20) / 4), L)
    add("the rest", c.memory(4.0 * R * C * 24))
    return of


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("cubin")
    parser.add_argument("--tensor", action="store_true")
    for key, value in (("sms", 46), ("ghz", 2.475), ("gbs", 504.0),
                       ("layers", 12), ("heads", 12), ("width", 576),
                       ("context", 1024), ("vocabulary", 50304), ("batch", 16),
                       ("accumulation", 32)):
        parser.add_argument(f"--{key}", type=type(value), default=value)
    o = parser.parse_args()
    code = kernels(o.cubin)
    if o.tensor:
        card = TensorCard(o, {name: tensor_loop(code[kernel])
                              for name, kernel in TensorCard.names.items()})
    else:
        card = Card(o, {name: ffma_share(inner_loop(code[name]))
                        for name in TensorCard.names})
    of = {part: seconds * o.accumulation
          for part, seconds in micro_batch(card, o).items()}
    parameters = o.vocabulary * o.width + 12 * o.layers * o.width ** 2
    of["AdamW, norm"] = card.memory(32.0 * parameters)
    update = sum(of.values())
    tokens = o.batch * o.accumulation * o.context
    flops = tokens * (6.0 * parameters
                      + 6.0 * o.layers * o.width * o.context)
    peak = o.sms * 256 * o.ghz * 1e9
    if o.tensor:
        peak = o.sms * 4 * (2 * 16 * 8 * 16) / HMMA * o.ghz * 1e9
    for part, seconds in of.items():
        print(f"{part:12} {seconds:7.2f} s  {seconds / update:5.1%}")
    print(f"{'an update':12} {update:7.2f} s  {tokens / update:,.0f} tokens/s, "
          f"{flops / update * 1e-12:.1f} TFLOP/s of model flops")
    print(f"{'at the peak':12} {flops / peak:7.2f} s  {peak * 1e-12:.1f} "
          f"TFLOP/s: {flops / peak / update:.0%} of it")


if __name__ == "__main__":
    main()
