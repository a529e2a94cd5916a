#!/usr/bin/env python3
"""Makes tests/golden/*.safetensors: what PyTorch computes for nanoGPT's GPT-2.

Run from the repository's root, in a virtual environment with torch, numpy and
safetensors. The model below is written for this purpose, after nanoGPT's
architecture, with the weights of our own parameter table: matrices [in, out],
names as in src/model/params.h.

Everything is computed in float64 from inputs that are exact in float32, and
rounded once when it is stored: the fixtures are the truth, and what a test
finds is the error of our own arithmetic alone. Dropout uses our own masks
(src/kernels/kernels.h states them), multiplied in by hand.

Tensors of a model fixture (case_*.safetensors):
  config.*            I32 [1], named as nanoGPT names them; T <= block_size;
                      rmsnorm only where it is 1
  dropout             F64 [1]
  tokens              I32 [batch, T + 1]
  transformer.*       the weights; lm_head.weight where the head isn't tied
  loss                F64 [batch]: training loss summed per sequence, masks on
  grad.transformer.*  gradients of the mean training loss
  logits              F32 [batch, T, V], without dropout
  eval_losses         F64 [batch, T], without dropout
"""

import math
import os

import numpy as np
import torch
from safetensors.numpy import save_file

FOLDER = os.path.dirname(os.path.abspath(__file__))
RNG_DROPOUT = 5  # pl_rng_use
EMBED, ATTENTION, ATTENTION_OUT, MLP_OUT = range(4)  # pl_dropout_site

# ---- the masks ----


def philox(counter, key):
    """Philox4x32-10; counter: four broadcastable arrays, key: two numbers."""
    c = list(np.broadcast_arrays(*[np.asarray(x, np.uint64) for x in counter]))
    k = [np.uint64(x) for x in key]
    low, half = np.uint64(0xFFFFFFFF), np.uint64(32)
    for _ in range(10):
        p0 = np.uint64(0xD2511F53) * c[0]
        p1 = np.uint64(0xCD9E8D57) * c[2]
        c = [(p1 >> half) ^ c[1] ^ k[0], p1 & low,
             (p0 >> half) ^ c[3] ^ k[1], p0 & low]
        k = [(k[0] + np.uint64(0x9E3779B9)) & low,
             (k[1] + np.uint64(0xBB67AE85)) & low]
    return np.stack(c, axis=-1)


# Random123's known answers.
assert list(philox([0] * 4, [0] * 2)) == [
    0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]
assert list(philox([0xFFFFFFFF] * 4, [0xFFFFFFFF] * 2)) == [
    0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD]


class Masks:
    """What dropout multiplies by, for one batch of one step."""

    def __init__(self, p, seed, step, first_sequence):
        self.p = float(np.float32(p))
        self.seed, self.step, self.first = seed, step, first_sequence

    def _kept(self, words, columns):
        word = words[..., np.arange(columns) // 4, np.arange(columns) % 4]
        threshold = int(round(self.p * 2.0**32))
        scale = float(np.float32(1.0 / (1.0 - self.p)))
        return torch.from_numpy(np.where(word >= threshold, scale, 0.0))

    def _key(self, site, layer):
        return self.seed, RNG_DROPOUT | site << 8 | layer << 16

    def rows(self, x, site, layer):
        """drop(x) for x [B, T, C]."""
        B, T, C = x.shape
        if self.p == 0.0:
            return x
        counter = [np.arange((C + 3) // 4), np.arange(T)[:, None],
                   self.first + np.arange(B)[:, None, None], self.step]
        return x * self._kept(philox(counter, self._key(site, layer)), C)

    def scores(self, x, layer):
        """drop(x) for x [B, H, query, key]."""
        B, H, T, _ = x.shape
        if self.p == 0.0:
            return x
        head = np.arange(H)[:, None, None] << 20
        counter = [head | np.arange((T + 3) // 4), np.arange(T)[:, None],
                   self.first + np.arange(B)[:, None, None, None], self.step]
        return x * self._kept(philox(counter, self._key(ATTENTION, layer)), T)


NO_MASKS = Masks(0.0, 0, 0, 0)

# ---- the model ----


class Model:
    """A GPT-2 over a dict of weights, biases optional."""

    def __init__(self, n_layer, n_head, head_dim, n_embd, vocab_size,
                 block_size, bias, gelu_tanh, own_head=False, rmsnorm=False):
        self.L, self.H, self.D, self.C = n_layer, n_head, head_dim, n_embd
        self.V, self.block, self.bias = vocab_size, block_size, bias
        self.approximate = "tanh" if gelu_tanh else "none"
        self.rmsnorm = rmsnorm
        self.head = "lm_head.weight" if own_head else "transformer.wte.weight"

    def shapes(self):
        A, C = self.H * self.D, self.C
        yield "wte.weight", (self.V, C)
        yield "wpe.weight", (self.block, C)
        for l in range(self.L):
            for name, rows, cols in [
                    ("ln_1", C, None), ("attn.c_attn", C, 3 * A),
                    ("attn.c_proj", A, C), ("ln_2", C, None),
                    ("mlp.c_fc", C, 4 * C), ("mlp.c_proj", 4 * C, C)]:
                yield f"h.{l}.{name}.weight", (rows, cols) if cols else (rows,)
                if self.bias and (cols or not self.rmsnorm):
                    yield f"h.{l}.{name}.bias", (cols or rows,)
        yield "ln_f.weight", (C,)
        if self.bias and not self.rmsnorm:
            yield "ln_f.bias", (C,)

    def weights(self, random, std, spread):
        """Matrices N(0, std); layernorms and biases `spread` around 1 and 0.
        Exact in float32, kept in float64."""
        out = {}
        for name, shape in self.shapes():
            w = random.normal(0.0, std if len(shape) == 2 else spread, shape)
            if "ln_" in name and name.endswith("weight"):
                w += 1.0
            w = torch.from_numpy(w.astype(np.float32).astype(np.float64))
            out["transformer." + name] = w.requires_grad_(True)
        if self.head not in out:
            w = random.normal(0.0, std, (self.V, self.C)).astype(np.float32)
            w = torch.from_numpy(w.astype(np.float64))
            out[self.head] = w.requires_grad_(True)
        return out

    def linear(self, w, name, x):
        y = x @ w[f"transformer.{name}.weight"]
        return y + w[f"transformer.{name}.bias"] if self.bias else y

    def norm(self, w, name, x):
        if self.rmsnorm:
            return torch.nn.functional.rms_norm(
                x, (self.C,), w[f"transformer.{name}.weight"], 1e-5)
        return torch.nn.functional.layer_norm(
            x, (self.C,), w[f"transformer.{name}.weight"],
            w.get(f"transformer.{name}.bias"), 1e-5)

    def attention(self, w, layer, x, masks):
        B, T, _ = x.shape
        qkv = self.linear(w, f"h.{layer}.attn.c_attn", x)
        q, k, v = qkv.view(B, T, 3, self.H, self.D).permute(2, 0, 3, 1, 4)
        score = q @ k.transpose(-2, -1) / math.sqrt(self.D)
        future = torch.ones(T, T, dtype=torch.bool).triu(1)
        p = torch.softmax(score.masked_fill(future, -math.inf), dim=-1)
        out = (masks.scores(p, layer) @ v).transpose(1, 2)
        return self.linear(w, f"h.{layer}.attn.c_proj",
                           out.reshape(B, T, self.H * self.D))

    def mlp(self, w, layer, x):
        h = self.linear(w, f"h.{layer}.mlp.c_fc", x)
        h = torch.nn.functional.gelu(h, approximate=self.approximate)
        return self.linear(w, f"h.{layer}.mlp.c_proj", h)

    def logits(self, w, tokens, masks):
        wte = w["transformer.wte.weight"]
        x = wte[tokens] + w["transformer.wpe.weight"][:tokens.shape[1]]
        x = masks.rows(x, EMBED, 0)
        for l in range(self.L):
            y = self.attention(w, l, self.norm(w, f"h.{l}.ln_1", x), masks)
            x = x + masks.rows(y, ATTENTION_OUT, l)
            y = self.mlp(w, l, self.norm(w, f"h.{l}.ln_2", x))
            x = x + masks.rows(y, MLP_OUT, l)
        return self.norm(w, "ln_f", x) @ w[self.head].T

    def losses(self, w, tokens, masks):
        """[B, T], and the logits [B, T, V]."""
        logits = self.logits(w, tokens[:, :-1], masks)
        losses = torch.nn.functional.cross_entropy(
            logits.transpose(1, 2), tokens[:, 1:], reduction="none")
        return losses, logits


# ---- fixtures ----


def stored(tensor, dtype):
    if isinstance(tensor, torch.Tensor):
        tensor = tensor.detach().numpy()
    return np.ascontiguousarray(np.atleast_1d(tensor).astype(dtype))


def save(name, tensors):
    path = os.path.join(FOLDER, name + ".safetensors")
    save_file(tensors, path)
    os.chmod(path, 0o644)
    print(f"{os.path.getsize(path):7d} {name}")


def config_tensors(**numbers):
    return {f"config.{k}": stored(int(v), np.int32) for k, v in numbers.items()}


def make_case(name, *, n_layer=2, n_head, head_dim, n_embd, vocab_size=61,
              block_size, T=None, batch, bias, gelu_tanh=False, own_head=False,
              rmsnorm=False, dropout=0.0, seed=1337, step=0, first_sequence=0,
              random_seed):
    random = np.random.default_rng(random_seed)
    T = T or block_size
    shape = dict(n_layer=n_layer, n_head=n_head, head_dim=head_dim,
                 n_embd=n_embd, vocab_size=vocab_size, block_size=block_size,
                 bias=bias, gelu_tanh=gelu_tanh)
    if rmsnorm:  # the others' files stay as they are
        shape["rmsnorm"] = True
    model = Model(**shape, own_head=own_head)
    w = model.weights(random, std=0.25, spread=0.1)
    tokens = torch.from_numpy(random.integers(0, vocab_size, (batch, T + 1)))
    tokens[0, T], tokens[-1, 0] = vocab_size - 1, 0  # both ends of the table

    losses, _ = model.losses(w, tokens,
                             Masks(dropout, seed, step, first_sequence))
    losses.mean().backward()
    eval_losses, logits = model.losses(w, tokens, NO_MASKS)
    out = config_tensors(**shape, T=T, batch=batch, seed=seed, step=step,
                         first_sequence=first_sequence)
    out["dropout"] = stored(dropout, np.float64)
    out["tokens"] = stored(tokens, np.int32)
    out["loss"] = stored(losses.sum(dim=1), np.float64)
    out["logits"] = stored(logits, np.float32)
    out["eval_losses"] = stored(eval_losses, np.float64)
    for key, tensor in w.items():
        out[key] = stored(tensor, np.float32)
        out["grad." + key] = stored(tensor.grad, np.float32)
    save("case_" + name, out)


def make_adamw(name, *, lr, betas, eps, decay, clip, t, random_seed):
    """torch.optim.AdamW alone: three gradients from a given state; `t` updates
    came before. The gradients of the fixture are those before clipping."""
    random = np.random.default_rng(random_seed)
    n = 203
    clip = float(np.float32(clip))

    def normal(scale, shape=(n,)):
        x = random.normal(0.0, scale, shape).astype(np.float32)
        return torch.from_numpy(x.astype(np.float64))

    w, g = normal(0.002), normal(0.05, (3, n))
    g[:, 5] = 0.0  # an unused row of an embedding
    m, v = torch.zeros(n).double(), torch.zeros(n).double()
    if t > 0:
        m, v = normal(0.01), normal(0.04).square().float().double()
    out = {"w": stored(w, np.float32), "g": stored(g, np.float32),
           "m": stored(m, np.float32), "v": stored(v, np.float32)}
    for key, value in dict(lr=lr, beta1=betas[0], beta2=betas[1], eps=eps,
                           decay=decay, clip=clip, t=t).items():
        out[key] = stored(value, np.float64)
    w.requires_grad_(True)
    optimizer = torch.optim.AdamW([w], lr=lr, betas=betas, eps=eps,
                                  weight_decay=decay)
    optimizer.state[w] = {"step": torch.tensor(float(t)), "exp_avg": m,
                          "exp_avg_sq": v}
    for i in range(3):
        w.grad = g[i] * clip
        optimizer.step()
        state = optimizer.state[w]
        for key, x in [("w", w), ("m", state["exp_avg"]),
                       ("v", state["exp_avg_sq"])]:
            out[f"{key}{i + 1}"] = stored(x, np.float32)
    assert int(state["step"]) == t + 3
    save(name, out)


# ---- Muon ----

BLOCK_MATRICES = ("attn.c_attn.weight", "attn.c_proj.weight",
                  "mlp.c_fc.weight", "mlp.c_proj.weight")


def orthogonalized(G):
    """Keller Jordan's Newton-Schulz iteration, of a matrix out x in."""
    X = G.T if G.shape[0] > G.shape[1] else G
    X = X / (torch.linalg.norm(X) + 1e-7)
    for _ in range(5):
        A = X @ X.T
        X = 3.4445 * X + (-4.7750 * A + 2.0315 * (A @ A)) @ X
    return X.T if G.shape[0] > G.shape[1] else X


def update_scale(out_, in_, scale):
    if scale == "rms":  # Moonshot's: as large as AdamW's
        return 0.2 * math.sqrt(max(out_, in_))
    return math.sqrt(max(1.0, out_ / in_))  # Keller Jordan's


class Muon:
    """On weights of the blocks: stored in x out, q, k and v side by side."""

    def __init__(self, weights, *, momentum, decay, scale):
        self.momentum, self.decay, self.scale = momentum, decay, scale
        self.weights = {name: w for name, w in weights.items()
                        if name.endswith(BLOCK_MATRICES)}
        self.m = {name: torch.zeros_like(w)
                  for name, w in self.weights.items()}

    def step(self, rate):
        for name, w in self.weights.items():
            g, m, mu = w.grad, self.m[name], self.momentum
            m += (g - m) * (1.0 - mu)
            update = g + (m - g) * mu
            parts = 3 if "c_attn" in name else 1
            done = []
            for part in update.chunk(parts, dim=1):
                in_, out_ = part.shape
                done.append(orthogonalized(part.T).T *
                            update_scale(out_, in_, self.scale))
            with torch.no_grad():
                w *= 1.0 - rate * self.decay
                w -= rate * torch.cat(done, dim=1)


def make_muon(name, *, steps=10, rate=0.02, momentum=0.95, decay=0.1, clip=0.5,
              random_seed):
    """Muon alone: ten gradients, by both scales."""
    random = np.random.default_rng(random_seed)
    shape = dict(n_layer=1, n_head=3, head_dim=3, n_embd=10, vocab_size=11,
                 block_size=5, bias=False, gelu_tanh=False)
    model = Model(**shape)
    w = model.weights(random, std=0.25, spread=0.1)
    out = config_tensors(**shape, T=5, batch=1, seed=1, step=0,
                         first_sequence=0, muon=1)
    for key, value in dict(dropout=0.0, muon_rate=rate, muon_decay=decay,
                           muon_momentum=momentum, clip=clip).items():
        out[key] = stored(value, np.float64)
    gradients = {}
    for key, tensor in w.items():
        out[key] = stored(tensor, np.float32)
        if key.endswith(BLOCK_MATRICES):
            rank_one = (random.normal(0.0, 1.0, tensor.shape[:1] + (1,)) *
                        random.normal(0.0, 1.0, (1,) + tensor.shape[1:]))
            g = random.normal(0.0, 0.05, (steps,) + tensor.shape) + rank_one
            g = g.astype(np.float32)
            out["g." + key] = g
            gradients[key] = torch.from_numpy(g.astype(np.float64))
    for scale in ("spectral", "rms"):
        copies = {key: torch.tensor(out[key].astype(np.float64))
                  for key in gradients}
        muon = Muon(copies, momentum=momentum, decay=decay, scale=scale)
        for t in range(steps):
            for key, copy in copies.items():
                copy.grad = gradients[key][t] * float(np.float32(clip))
            muon.step(rate)
        for key, copy in copies.items():
            out[f"{scale}.{key}"] = stored(copy, np.float32)
            out["m." + key] = stored(muon.m[key], np.float32)
    save(name, out)


def make_steps(name, *, steps=10, batch=2, accumulation=2, dropout=0.2,
               seed=42, clip=1.55, peak=3e-3, warmup=4, decay=0.1,
               betas=(0.9, 0.99), eps=1e-8, muon=None, random_seed):
    """Whole updates: accumulation, clipping, warm-up, decay of matrices; with
    `muon` (rate, momentum and decay) on the matrices of the blocks."""
    random = np.random.default_rng(random_seed)
    shape = dict(n_layer=2, n_head=2, head_dim=8, n_embd=16, vocab_size=61,
                 block_size=9, bias=True, gelu_tanh=False)
    T = shape["block_size"]
    model = Model(**shape)
    w = model.weights(random, std=0.1, spread=0.0)
    out = config_tensors(**shape, T=T, batch=batch, seed=seed, step=0,
                         first_sequence=0, accumulation=accumulation,
                         steps=steps, **(dict(muon=1) if muon else {}))
    for key, tensor in w.items():
        out[key] = stored(tensor, np.float32)
    tokens = torch.from_numpy(random.integers(
        0, shape["vocab_size"], (steps, accumulation * batch, T + 1)))
    rates = [peak * min(1.0, (t + 1) / (warmup + 1)) for t in range(steps)]
    orthogonal = Muon(w if muon else {}, scale="spectral",
                      momentum=muon["momentum"] if muon else 0.0,
                      decay=muon["decay"] if muon else 0.0)
    matrices = [x for key, x in w.items()
                if x.dim() == 2 and key not in orthogonal.weights]
    vectors = [x for x in w.values() if x.dim() != 2]
    optimizer = torch.optim.AdamW(
        [{"params": matrices, "weight_decay": decay},
         {"params": vectors, "weight_decay": 0.0}],
        lr=peak, betas=betas, eps=eps)
    losses, norms = [], []
    for t in range(steps):
        for group in optimizer.param_groups:
            group["lr"] = rates[t]
        total = 0.0
        for a in range(accumulation):
            first = a * batch
            row, _ = model.losses(w, tokens[t, first:first + batch],
                                  Masks(dropout, seed, t, first))
            loss = row.mean() / accumulation
            loss.backward()
            total += loss.item()
        norms.append(torch.nn.utils.clip_grad_norm_(w.values(), clip).item())
        losses.append(total)
        optimizer.step()
        if muon:
            orthogonal.step(muon["rate"] * rates[t] / peak)
        for x in w.values():
            x.grad = None
    clipped = sum(norm > clip for norm in norms)
    assert 0 < clipped < steps, (clip, norms)
    print("norms", [f"{norm:.3f}" for norm in norms], "clip", clip)
    for key, tensor in w.items():
        out["final." + key] = stored(tensor, np.float32)
    out["tokens"] = stored(tokens, np.int32)
    for key, value in dict(dropout=dropout, losses=losses, norms=norms,
                           lr=rates, clip=clip, decay=decay, beta1=betas[0],
                           beta2=betas[1], eps=eps).items():
        out[key] = stored(value, np.float64)
    for key, value in (muon or {}).items():
        out["muon_" + key] = stored(value, np.float64)
    if muon:
        out["muon_rates"] = stored([muon["rate"] * x / peak for x in rates],
                                   np.float64)
    save(name, out)


torch.set_default_dtype(torch.float64)
torch.manual_seed(0)
torch.set_num_threads(1)

make_case("bias", n_head=2, head_dim=6, n_embd=12, block_size=7, batch=2,
          bias=True, random_seed=1)
make_case("no_bias", n_head=3, head_dim=6, n_embd=18, block_size=13, batch=3,
          bias=False, random_seed=2)
make_case("gelu_tanh", n_head=2, head_dim=10, n_embd=20, block_size=11,
          batch=2, bias=True, gelu_tanh=True, random_seed=3)
make_case("dropout", n_head=3, head_dim=6, n_embd=18, block_size=9, batch=3,
          bias=True, dropout=0.2, step=5, first_sequence=3, random_seed=4)
make_case("short", n_head=2, head_dim=8, n_embd=16, block_size=16, T=7,
          batch=2, bias=False, gelu_tanh=True, dropout=0.2, seed=7, step=12345,
          random_seed=5)
make_case("head_dim", n_head=3, head_dim=8, n_embd=20, block_size=13, batch=2,
          bias=True, random_seed=6)
make_case("long", n_layer=1, n_head=2, head_dim=17, n_embd=34, vocab_size=67,
          block_size=41, batch=2, bias=True, dropout=0.1, step=1,
          random_seed=7)
make_case("own_head", n_head=2, head_dim=6, n_embd=12, block_size=9, batch=3,
          bias=True, own_head=True, dropout=0.1, step=2, random_seed=11)
make_case("rmsnorm", n_head=3, head_dim=6, n_embd=18, block_size=11, batch=3,
          bias=True, rmsnorm=True, dropout=0.1, step=3, random_seed=12)
make_case("rmsnorm_no_bias", n_head=2, head_dim=11, n_embd=22, block_size=9,
          batch=2, bias=False, rmsnorm=True, gelu_tanh=True, own_head=True,
          random_seed=13)
make_adamw("adamw_first", lr=1e-3, betas=(0.9, 0.95), eps=1e-8, decay=0.1,
           clip=1.0, t=0, random_seed=8)
make_adamw("adamw_later", lr=6e-4, betas=(0.9, 0.999), eps=1e-8, decay=0.0,
           clip=0.37, t=37, random_seed=9)
make_steps("ten_steps", random_seed=10)
make_muon("muon_alone", random_seed=14)
make_steps("ten_steps_muon", muon=dict(rate=0.02, momentum=0.95, decay=0.1),
           random_seed=15)
