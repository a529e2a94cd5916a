"""tools/nanogpt_to_folder.py: a checkpoint as nanoGPT saves it becomes a
folder that transformers computes the same with, bias on and off; export takes
it, and a model without biases has none in Plimsoll either. The model below is
written for this purpose."""

import os
import shutil
import subprocess
import sys

import torch
import transformers
from torch import nn
from torch.nn import functional as F
from transformers import GPT2LMHeadModel

from common import bias_of, path, plimsoll, require

TOOL = os.path.join(os.path.dirname(__file__), "..", "..", "tools",
                    "nanogpt_to_folder.py")
transformers.logging.disable_progress_bar()
L, H, C, T, V = 2, 2, 32, 24, 65


class Norm(nn.Module):
    def __init__(self, bias):
        super().__init__()
        self.weight = nn.Parameter(torch.rand(C) + 0.5)
        self.bias = nn.Parameter(torch.randn(C)) if bias else None

    def forward(self, x):
        return F.layer_norm(x, (C,), self.weight, self.bias, 1e-5)


class Attention(nn.Module):
    def __init__(self, bias):
        super().__init__()
        self.c_attn = nn.Linear(C, 3 * C, bias=bias)
        self.c_proj = nn.Linear(C, C, bias=bias)
        self.register_buffer("bias", torch.tril(torch.ones(1, 1, T, T)))

    def forward(self, x):
        B, N, _ = x.shape
        q, k, v = (part.view(B, N, H, C // H).transpose(1, 2)
                   for part in self.c_attn(x).split(C, dim=2))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.c_proj(y.transpose(1, 2).reshape(B, N, C))


class Mlp(nn.Module):
    def __init__(self, bias):
        super().__init__()
        self.c_fc = nn.Linear(C, 4 * C, bias=bias)
        self.c_proj = nn.Linear(4 * C, C, bias=bias)

    def forward(self, x):
        return self.c_proj(F.gelu(self.c_fc(x)))


class Block(nn.Module):
    def __init__(self, bias):
        super().__init__()
        self.ln_1, self.attn = Norm(bias), Attention(bias)
        self.ln_2, self.mlp = Norm(bias), Mlp(bias)

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class Gpt(nn.Module):
    def __init__(self, bias):
        super().__init__()
        self.transformer = nn.ModuleDict({
            "wte": nn.Embedding(V, C), "wpe": nn.Embedding(T, C),
            "h": nn.ModuleList([Block(bias) for _ in range(L)]),
            "ln_f": Norm(bias)})
        self.lm_head = nn.Linear(C, V, bias=False)
        self.lm_head.weight = self.transformer.wte.weight

    def forward(self, ids):
        t = self.transformer
        x = t.wte(ids) + t.wpe(torch.arange(ids.shape[1]))
        for block in t.h:
            x = block(x)
        return self.lm_head(t.ln_f(x))


for bias in (False, True):
    torch.manual_seed(7)
    model = Gpt(bias)
    file, folder = path(f"nano{bias}.pt"), path(f"nano{bias}")
    shutil.rmtree(folder, ignore_errors=True)
    torch.save({
        "model": {"_orig_mod." + name: tensor
                  for name, tensor in model.state_dict().items()},
        "optimizer": torch.optim.AdamW(model.parameters()).state_dict(),
        "model_args": {"n_layer": L, "n_head": H, "n_embd": C,
                       "block_size": T, "vocab_size": V, "bias": bias,
                       "dropout": 0.0},
        "iter_num": 3, "best_val_loss": torch.tensor(1.5), "config": {},
    }, file)
    subprocess.run([sys.executable, TOOL, file, folder], check=True)
    again, info = GPT2LMHeadModel.from_pretrained(
        folder, output_loading_info=True)
    require(not info["missing_keys"] and not info["unexpected_keys"], info)
    ids = torch.randint(0, V, (3, T))
    with torch.no_grad():
        far = (model(ids) - again.eval()(ids).logits).abs().max().item()
    require(far < 1e-4, f"bias {bias}: logits differ by {far}")
    require(bias_of(folder) == bias, f"bias {bias}: {bias_of(folder)}")
    for kind in ("gguf", "llmc", "hf"):
        file, back = f"{folder}.{kind}", f"{folder}-{kind}-back"
        plimsoll("export", folder, f"--format={kind}", f"--out={file}")
        if kind == "hf":
            back = file
        else:
            plimsoll("import", file, f"--out={back}")
        require(bias_of(back) == bias, f"bias {bias}: lost by {kind}")
    print(f"bias {bias}: logits within {far:g}")

# what isn't weights is refused, not run
class Evil:
    def __reduce__(self):
        return (print, ("ran",))


torch.save({"model": Evil()}, path("evil.pt"))
result = subprocess.run([sys.executable, TOOL, path("evil.pt"), path("evil")],
                        capture_output=True, text=True, check=False)
require(result.returncode != 0 and "ran" not in result.stdout.split(),
        "a pickle was run")
print("a pickle with code in it is refused")
