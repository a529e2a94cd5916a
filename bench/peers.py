#!/usr/bin/env python3
"""One measurement of PyTorch: trains and evaluates a GPT of nanoGPT's
architecture on random tokens for some seconds, and prints JSON.

    python3 bench/peers.py --n_layer=12 --n_head=12 --n_embd=576 \\
        --vocab_size=50304 --block_size=1024 --batch_size=8 --micro_batch=2 \\
        --mode=compile --dtype=bfloat16 --seconds=20

in an environment with torch. A step is what nanoGPT's is: gradients cleared,
batch_size / micro_batch times forward and backward, clipping, AdamW. One
process is one cell of the comparison, so that script/bench can alternate and
that the process's peak of memory is the cell's own. Threads and allocator are
set by the environment (bench/compare.py has what the comparison uses).
"""
import argparse
import json
import math
import statistics
import sys
import time


def memory(field):
    """VmRSS or VmHWM of this process, in bytes; 0 where there is no /proc."""
    try:
        with open("/proc/self/status") as lines:
            for line in lines:
                if line.startswith(field + ":"):
                    return int(line.split()[1]) * 1024
    except OSError:
        pass
    return 0


import torch  # noqa: E402
from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402

# ---- the model ----


class LayerNorm(nn.Module):
    def __init__(self, width, bias):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.bias = nn.Parameter(torch.zeros(width)) if bias else None

    def forward(self, x):
        return F.layer_norm(x, self.weight.shape, self.weight, self.bias, 1e-5)


class Attention(nn.Module):
    def __init__(self, o):
        super().__init__()
        self.heads, self.dropout = o.n_head, o.dropout
        self.qkv = nn.Linear(o.n_embd, 3 * o.n_embd, bias=o.bias)
        self.projection = nn.Linear(o.n_embd, o.n_embd, bias=o.bias)

    def forward(self, x):
        B, T, C = x.shape
        q, k, v = (part.view(B, T, self.heads, C // self.heads).transpose(1, 2)
                   for part in self.qkv(x).split(C, dim=2))
        y = F.scaled_dot_product_attention(
            q, k, v, is_causal=True,
            dropout_p=self.dropout if self.training else 0.0)
        y = self.projection(y.transpose(1, 2).reshape(B, T, C))
        return F.dropout(y, self.dropout, self.training)


class Block(nn.Module):
    def __init__(self, o):
        super().__init__()
        self.ln1 = LayerNorm(o.n_embd, o.bias)
        self.attention = Attention(o)
        self.ln2 = LayerNorm(o.n_embd, o.bias)
        self.up = nn.Linear(o.n_embd, 4 * o.n_embd, bias=o.bias)
        self.down = nn.Linear(4 * o.n_embd, o.n_embd, bias=o.bias)
        self.dropout = o.dropout

    def forward(self, x):
        x = x + self.attention(self.ln1(x))
        y = self.down(F.gelu(self.up(self.ln2(x))))
        return x + F.dropout(y, self.dropout, self.training)


class GPT(nn.Module):
    def __init__(self, o):
        super().__init__()
        self.wte = nn.Embedding(o.vocab_size, o.n_embd)
        self.wpe = nn.Embedding(o.block_size, o.n_embd)
        self.blocks = nn.ModuleList(Block(o) for _ in range(o.n_layer))
        self.lnf = LayerNorm(o.n_embd, o.bias)
        self.head = nn.Linear(o.n_embd, o.vocab_size, bias=False)
        self.head.weight = self.wte.weight
        self.dropout, self.chunked = o.dropout, None
        if o.loss == "chunked":
            self.chunked = nn.LinearCrossEntropyOptions()
        for name, p in self.named_parameters():
            if p.dim() > 1:
                last = name.endswith(("projection.weight", "down.weight"))
                std = 0.02 / math.sqrt(2 * o.n_layer) if last else 0.02
                nn.init.normal_(p, std=std)
            elif name.endswith("bias"):
                nn.init.zeros_(p)

    def forward(self, tokens, targets):
        positions = torch.arange(tokens.shape[1])
        x = self.wte(tokens) + self.wpe(positions)
        x = F.dropout(x, self.dropout, self.training)
        for block in self.blocks:
            x = block(x)
        x = self.lnf(x)
        if self.chunked:  # never holds the logits of all rows at once
            return F.linear_cross_entropy(x.view(-1, x.shape[-1]),
                                          self.head.weight, targets.view(-1),
                                          options=self.chunked)
        logits = self.head(x)
        return F.cross_entropy(logits.view(-1, logits.shape[-1]),
                               targets.view(-1))


def optimizer_of(model, o):
    """AdamW; what has two dimensions decays."""
    params = list(model.parameters())
    groups = [
        {"params": [p for p in params if p.dim() >= 2], "weight_decay": 0.1},
        {"params": [p for p in params if p.dim() < 2], "weight_decay": 0.0},
    ]
    how = {o.optimizer: True} if o.optimizer != "plain" else {"foreach": False}
    return torch.optim.AdamW(groups, lr=1e-6, betas=(0.9, 0.95), **how)


# ---- measuring ----


def batches(o):
    """Random tokens, the same for each step: pairs of input and target."""
    source = torch.Generator().manual_seed(1337)
    shape = (o.batch_size // o.micro_batch, o.micro_batch, o.block_size)
    draw = [torch.randint(o.vocab_size, shape, generator=source)
            for _ in range(2)]
    return list(zip(*draw))


def in_dtype(forward, o):
    """The forward pass as nanoGPT runs it: 16 bits are autocast's."""
    if o.dtype == "float32":
        return forward

    def run(tokens, targets):
        with torch.autocast("cpu", dtype=getattr(torch, o.dtype)):
            return forward(tokens, targets)
    return run


def step(model, forward, optimizer, data, parts):
    optimizer.zero_grad(set_to_none=True)
    for tokens, targets in data:
        loss = forward(tokens, targets) / parts
        loss.backward()
    norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0, foreach=True)
    optimizer.step()
    return float(loss.detach()), float(norm)


def repeat(run, seconds, most=1000):
    """Seconds of each run: at least one, as many as fit."""
    times, end = [], time.perf_counter() + seconds
    while not times or (time.perf_counter() + times[-1] / 2 < end
                        and len(times) < most):
        began = time.perf_counter()
        run()
        times.append(time.perf_counter() - began)
    return times


def measure(o, after_import):
    torch.manual_seed(1337)
    model = GPT(o)
    forward = model
    if o.mode != "eager":
        how = {}
        if o.mode == "autotune":
            how["mode"] = "max-autotune-no-cudagraphs"
        forward = torch.compile(model, dynamic=False, **how)
    forward = in_dtype(forward, o)
    optimizer = optimizer_of(model, o)
    data = batches(o)

    began = time.perf_counter()
    for _ in range(o.warm_steps):
        loss, _ = step(model, forward, optimizer, data[:1], 1)
    warm = time.perf_counter() - began
    times = repeat(lambda: step(model, forward, optimizer, data, len(data)),
                   o.seconds)
    train_peak = memory("VmHWM")
    if not math.isfinite(loss):
        sys.exit("peers: the loss is not finite")

    optimizer.zero_grad(set_to_none=True)
    model.eval()
    with torch.no_grad():
        forward(*data[0])
        evals = repeat(lambda: forward(*data[0]), o.seconds / 4)
    tokens = o.batch_size * o.block_size
    return {
        "torch": torch.__version__,
        "mode": o.mode,
        "dtype": o.dtype,
        "loss_of": o.loss,
        "optimizer": o.optimizer,
        "threads": torch.get_num_threads(),
        "batch_size": o.batch_size,
        "micro_batch": o.micro_batch,
        "parameters": sum(p.numel() for p in model.parameters()),
        "tokens_per_second": tokens / statistics.median(times),
        "eval_tokens_per_second":
            tokens / len(data) / statistics.median(evals),
        "step_seconds": times,
        "eval_seconds": evals,
        "warm_up_seconds": warm,
        "loss": loss,
        "after_import_bytes": after_import,
        "train_peak_bytes": train_peak,
        "process_peak_bytes": memory("VmHWM"),
    }


def options():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    for name, value in (("n_layer", 12), ("n_head", 12), ("n_embd", 768),
                        ("vocab_size", 50304), ("block_size", 1024),
                        ("batch_size", 1), ("micro_batch", 0),
                        ("threads", 0), ("warm_steps", 1)):
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--dropout", type=float, default=0.0)
    parser.add_argument("--bias", action="store_true")
    parser.add_argument("--mode", default="eager",
                        choices=("eager", "compile", "autotune"))
    parser.add_argument("--dtype", default="float32",
                        choices=("float32", "bfloat16"))
    parser.add_argument("--loss", default="logits",
                        choices=("logits", "chunked"))
    parser.add_argument("--optimizer", default="fused",
                        choices=("fused", "foreach", "plain"))
    parser.add_argument("--seconds", type=float, default=10.0)
    o = parser.parse_args()
    o.micro_batch = o.micro_batch or o.batch_size
    if o.batch_size % o.micro_batch:
        parser.error("micro_batch must divide batch_size")
    return o


def main():
    o = options()
    after_import = memory("VmRSS")
    if o.threads:
        torch.set_num_threads(o.threads)
    torch.set_flush_denormal(True)
    print(json.dumps(measure(o, after_import), indent=2))


if __name__ == "__main__":
    main()
