#!/usr/bin/env python3
"""Makes the fixtures of models that aren't GPT-2s: what transformers' Llama and
Qwen3 compute, and a model that belongs to no family.

Run from the repository's root, in a virtual environment with torch,
transformers, numpy and safetensors. As in make_fixtures.py, whose tensors these
fixtures have, everything is computed in float64 from inputs that are exact in
float32, and rounded once when it is stored. transformers computes the angles of
its rotations in float32 whatever the model's dtype is; here they are float64,
too. The cap on logits, which neither model has, is added by hand.

Beside make_fixtures.py's, config.* has, where they say something:
  norm_eps, rope_theta, logit_softcap  F64 [1]
  family (1: llama, 2: qwen3), rope, mlp (1: swiglu, 2: relu2), qk_norm,
  n_kv_head, mlp_hidden  F64 [1]
"""

import os

import numpy as np
import torch
from transformers import (LlamaConfig, LlamaForCausalLM, Qwen3Config,
                          Qwen3ForCausalLM)

from safetensors.numpy import save_file

FOLDER = os.path.dirname(os.path.abspath(__file__))
GPT2, LLAMA, QWEN3 = range(3)  # pl_family
GELU, SWIGLU, RELU2 = range(3)  # pl_mlp


def stored(tensor, dtype):
    if isinstance(tensor, torch.Tensor):
        tensor = tensor.detach().numpy()
    return np.ascontiguousarray(np.atleast_1d(tensor).astype(dtype))


def save(name, tensors):
    path = os.path.join(FOLDER, name + ".safetensors")
    save_file(tensors, path)
    os.chmod(path, 0o644)
    print(f"{os.path.getsize(path):7d} {name}")


def angles(T, D, theta):
    """Cosines and sines [T, D], each half twice, as transformers has them."""
    frequency = theta ** (-torch.arange(0, D, 2, dtype=torch.float64) / D)
    angle = torch.arange(T, dtype=torch.float64)[:, None] * frequency
    angle = torch.cat([angle, angle], dim=1)
    return angle.cos(), angle.sin()


class Transformers:
    """Llama or Qwen3, with our names: they are theirs."""

    def __init__(self, family, n_layer, n_head, n_kv_head, head_dim, n_embd,
                 mlp_hidden, vocab_size, block_size, bias, norm_eps,
                 rope_theta, tied, logit_softcap):
        common = dict(
            num_hidden_layers=n_layer, num_attention_heads=n_head,
            num_key_value_heads=n_kv_head, head_dim=head_dim,
            hidden_size=n_embd, intermediate_size=mlp_hidden,
            vocab_size=vocab_size, max_position_embeddings=block_size,
            rms_norm_eps=norm_eps, rope_theta=rope_theta,
            tie_word_embeddings=tied, attention_bias=bias,
            attn_implementation="eager")
        if family == LLAMA:
            self.model = LlamaForCausalLM(LlamaConfig(**common, mlp_bias=bias))
        else:
            assert not bias
            self.model = Qwen3ForCausalLM(Qwen3Config(**common))
        self.model.double()
        self.cap = logit_softcap
        table = angles(block_size, head_dim, rope_theta)

        def rotations(x, position_ids):
            return table[0][position_ids], table[1][position_ids]

        self.model.model.rotary_emb.forward = rotations
        self.weights = dict(self.model.named_parameters())

    def logits(self, tokens):
        logits = self.model(tokens, use_cache=False).logits
        return self.cap * torch.tanh(logits / self.cap) if self.cap else logits


class Mixed:
    """A GPT-2 by its names that has a part of everything: layernorms with
    biases, rotations, norms of queries and keys, grouped queries, relu2 and
    capped logits."""

    def __init__(self, n_layer, n_head, n_kv_head, head_dim, n_embd, mlp_hidden,
                 vocab_size, block_size, norm_eps, rope_theta, logit_softcap):
        self.L, self.H, self.KV, self.D = n_layer, n_head, n_kv_head, head_dim
        self.C, self.eps, self.cap = n_embd, norm_eps, logit_softcap
        self.table = angles(block_size, head_dim, rope_theta)
        A, K, C, F = n_head * head_dim, n_kv_head * head_dim, n_embd, mlp_hidden
        shapes = {"wte.weight": (vocab_size, C), "ln_f.weight": (C,),
                  "ln_f.bias": (C,)}
        for l in range(n_layer):
            for name, rows, cols in [
                    ("ln_1", C, None), ("attn.c_attn", C, A + 2 * K),
                    ("attn.c_proj", A, C), ("ln_2", C, None),
                    ("mlp.c_fc", C, F), ("mlp.c_proj", F, C)]:
                shapes[f"h.{l}.{name}.weight"] = ((rows, cols) if cols
                                                  else (rows,))
                shapes[f"h.{l}.{name}.bias"] = (cols or rows,)
            for name in ("q_norm", "k_norm"):
                shapes[f"h.{l}.attn.{name}.weight"] = (head_dim,)
        self.weights = {
            "transformer." + name: torch.zeros(shape, dtype=torch.float64,
                                               requires_grad=True)
            for name, shape in shapes.items()}

    def w(self, name):
        return self.weights["transformer." + name]

    def linear(self, name, x):
        return x @ self.w(name + ".weight") + self.w(name + ".bias")

    def norm(self, name, x):
        return torch.nn.functional.layer_norm(
            x, (self.C,), self.w(name + ".weight"), self.w(name + ".bias"),
            self.eps)

    def heads(self, x, weight):
        """RMSNorm of every head, then its rotation."""
        x = torch.nn.functional.rms_norm(x, (self.D,), weight, self.eps)
        T, half = x.shape[2], self.D // 2
        turned = torch.cat([-x[..., half:], x[..., :half]], dim=-1)
        return x * self.table[0][:T] + turned * self.table[1][:T]

    def attention(self, l, x):
        B, T, _ = x.shape
        qkv = self.linear(f"h.{l}.attn.c_attn", x).split(
            [n * self.D for n in (self.H, self.KV, self.KV)], dim=-1)
        q, k, v = (y.view(B, T, -1, self.D).transpose(1, 2) for y in qkv)
        q = self.heads(q, self.w(f"h.{l}.attn.q_norm.weight"))
        k = self.heads(k, self.w(f"h.{l}.attn.k_norm.weight"))
        times = self.H // self.KV
        k, v = (y.repeat_interleave(times, dim=1) for y in (k, v))
        score = q @ k.transpose(-2, -1) / self.D ** 0.5
        future = torch.ones(T, T, dtype=torch.bool).triu(1)
        p = torch.softmax(score.masked_fill(future, -torch.inf), dim=-1)
        return self.linear(f"h.{l}.attn.c_proj",
                           (p @ v).transpose(1, 2).reshape(B, T, -1))

    def logits(self, tokens):
        x = self.w("wte.weight")[tokens]
        for l in range(self.L):
            x = x + self.attention(l, self.norm(f"h.{l}.ln_1", x))
            h = self.linear(f"h.{l}.mlp.c_fc", self.norm(f"h.{l}.ln_2", x))
            x = x + self.linear(f"h.{l}.mlp.c_proj", torch.relu(h).square())
        logits = self.norm("ln_f", x) @ self.w("wte.weight").T
        return self.cap * torch.tanh(logits / self.cap)


def fill(model, random, std, spread):
    """Matrices N(0, std), norms and biases `spread` around 1 and 0; exact in
    float32, kept in float64."""
    with torch.no_grad():
        for name, tensor in model.weights.items():
            w = random.normal(0.0, std if tensor.dim() == 2 else spread,
                              tensor.shape)
            if tensor.dim() == 1 and name.endswith("weight"):
                w += 1.0
            tensor.copy_(torch.from_numpy(w.astype(np.float32)))


def losses(model, tokens):
    """[B, T], and the logits [B, T, V]."""
    logits = model.logits(tokens[:, :-1])
    return torch.nn.functional.cross_entropy(
        logits.transpose(1, 2), tokens[:, 1:], reduction="none"), logits


def make_model(family, *, n_layer=2, n_head, n_kv_head, head_dim, n_embd,
               mlp_hidden, vocab_size=61, block_size, bias=False,
               norm_eps=1e-5, rope_theta=10000.0, tied=False,
               logit_softcap=0.0):
    """And what a fixture says of it."""
    sizes = dict(n_layer=n_layer, n_head=n_head, head_dim=head_dim,
                 n_embd=n_embd, vocab_size=vocab_size, block_size=block_size)
    common = dict(**sizes, n_kv_head=n_kv_head, mlp_hidden=mlp_hidden,
                  norm_eps=norm_eps, rope_theta=rope_theta,
                  logit_softcap=logit_softcap)
    if family == GPT2:
        model = Mixed(**common)
        bias = True
    else:
        model = Transformers(family, **common, bias=bias, tied=tied)
    out = {f"config.{k}": stored(int(v), np.int32)
           for k, v in dict(**sizes, bias=bias, gelu_tanh=0).items()}
    numbers = dict(norm_eps=norm_eps, rope_theta=rope_theta,
                   logit_softcap=logit_softcap, family=family, rope=1,
                   mlp=RELU2 if family == GPT2 else SWIGLU,
                   qk_norm=family != LLAMA, n_kv_head=n_kv_head,
                   mlp_hidden=mlp_hidden)
    for k, v in numbers.items():
        out[f"config.{k}"] = stored(float(v), np.float64)
    if family != GPT2:
        out["config.rmsnorm"] = stored(1, np.int32)
    return model, out


def make_case(name, family, *, T=None, batch, random_seed, **shape):
    random = np.random.default_rng(random_seed)
    model, out = make_model(family, **shape)
    T = T or shape["block_size"]
    V = shape.get("vocab_size", 61)
    fill(model, random, std=0.25, spread=0.1)
    tokens = torch.from_numpy(random.integers(0, V, (batch, T + 1)))
    tokens[0, T], tokens[-1, 0] = V - 1, 0  # both ends of the table
    rows, logits = losses(model, tokens)
    rows.mean().backward()
    for key, value in dict(T=T, batch=batch, seed=1337, step=0,
                           first_sequence=0).items():
        out["config." + key] = stored(value, np.int32)
    out["dropout"] = stored(0.0, np.float64)
    out["tokens"] = stored(tokens, np.int32)
    out["loss"] = stored(rows.sum(dim=1), np.float64)
    out["logits"] = stored(logits, np.float32)
    out["eval_losses"] = stored(rows, np.float64)
    for key, tensor in model.weights.items():
        out[key] = stored(tensor, np.float32)
        out["grad." + key] = stored(tensor.grad, np.float32)
    save("case_" + name, out)


def make_steps(name, family, *, steps=10, batch=2, accumulation=2, clip,
               peak=3e-3, warmup=4, decay=0.1, betas=(0.9, 0.99), eps=1e-8,
               random_seed, **shape):
    """Whole updates by torch.optim.AdamW: accumulation, clipping, warm-up,
    decay of matrices."""
    random = np.random.default_rng(random_seed)
    model, out = make_model(family, **shape)
    T, V = shape["block_size"], shape.get("vocab_size", 61)
    fill(model, random, std=0.1, spread=0.0)
    for key, value in dict(T=T, batch=batch, seed=42, step=0, first_sequence=0,
                           accumulation=accumulation, steps=steps).items():
        out["config." + key] = stored(value, np.int32)
    for key, tensor in model.weights.items():
        out[key] = stored(tensor, np.float32)
    tokens = torch.from_numpy(random.integers(
        0, V, (steps, accumulation * batch, T + 1)))
    rates = [peak * min(1.0, (t + 1) / (warmup + 1)) for t in range(steps)]
    w = list(model.weights.values())
    optimizer = torch.optim.AdamW(
        [{"params": [x for x in w if x.dim() == 2], "weight_decay": decay},
         {"params": [x for x in w if x.dim() != 2], "weight_decay": 0.0}],
        lr=peak, betas=betas, eps=eps)
    totals, norms = [], []
    for t in range(steps):
        for group in optimizer.param_groups:
            group["lr"] = rates[t]
        total = 0.0
        for a in range(accumulation):
            rows, _ = losses(model, tokens[t, a * batch:(a + 1) * batch])
            loss = rows.mean() / accumulation
            loss.backward()
            total += loss.item()
        norms.append(torch.nn.utils.clip_grad_norm_(w, clip).item())
        totals.append(total)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
    clipped = sum(norm > clip for norm in norms)
    print("norms", [f"{norm:.3f}" for norm in norms], "clip", clip)
    assert 0 < clipped < steps, (clip, norms)
    for key, tensor in model.weights.items():
        out["final." + key] = stored(tensor, np.float32)
    out["tokens"] = stored(tokens, np.int32)
    for key, value in dict(dropout=0.0, losses=totals, norms=norms, lr=rates,
                           clip=clip, decay=decay, beta1=betas[0],
                           beta2=betas[1], eps=eps).items():
        out[key] = stored(value, np.float64)
    save(name, out)


torch.set_default_dtype(torch.float64)
torch.manual_seed(0)
torch.set_num_threads(1)

make_case("llama", LLAMA, n_head=4, n_kv_head=2, head_dim=6, n_embd=20,
          mlp_hidden=34, block_size=11, batch=3, random_seed=21)
make_case("llama_bias", LLAMA, n_head=3, n_kv_head=1, head_dim=10, n_embd=21,
          mlp_hidden=33, block_size=16, T=9, batch=2, bias=True, tied=True,
          rope_theta=500000.0, logit_softcap=3.0, random_seed=22)
make_case("qwen3", QWEN3, n_head=4, n_kv_head=1, head_dim=8, n_embd=20,
          mlp_hidden=37, block_size=13, batch=2, norm_eps=1e-6,
          rope_theta=1000000.0, tied=True, random_seed=23)
make_case("qwen3_own_head", QWEN3, n_head=6, n_kv_head=3, head_dim=4,
          n_embd=13, mlp_hidden=29, block_size=9, batch=3, norm_eps=1e-6,
          rope_theta=1000000.0, logit_softcap=2.0, random_seed=24)
make_case("mixed", GPT2, n_head=4, n_kv_head=2, head_dim=6, n_embd=17,
          mlp_hidden=41, block_size=10, batch=2, norm_eps=1e-4,
          rope_theta=100.0, tied=True, logit_softcap=4.0, random_seed=25)
make_steps("ten_steps_llama", LLAMA, n_head=4, n_kv_head=2, head_dim=6,
           n_embd=20, mlp_hidden=34, block_size=9, logit_softcap=4.0,
           clip=1.65,
           random_seed=26)
make_steps("ten_steps_qwen3", QWEN3, n_head=4, n_kv_head=2, head_dim=8,
           n_embd=14, mlp_hidden=31, block_size=9, norm_eps=1e-6,
           rope_theta=1000000.0, tied=True,
           clip=1.5,
           random_seed=27)
