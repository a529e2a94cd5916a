"""Models as large as those that people fine-tune, with random weights that
transformers makes in their shapes: SmolLM2-135M with AdamW as it is in 4 GB and
Qwen3-0.6B with 8-bit moments and bfloat16 weights in 6 GB. Each is planned,
trained for two updates by a process that may hold no byte more, exported as
q8_0, which gguf's reader reads, and loaded by transformers again. Takes minutes
and 6 GB of disk."""

import json
import os
import re
import subprocess

import torch
from transformers import (LlamaConfig, LlamaForCausalLM, Qwen3Config,
                          Qwen3ForCausalLM)

from common import PLIMSOLL, WORK, checkpoint, path, plimsoll, require
from gguf_shapes import check_q8_0
from torch_models import TOLERANCE, load, next_loss, one_sequence, our_loss

CAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..",
                    "support", "memory_cage.sh")
LENGTH = 512
SHAPES = [
    ("SmolLM2-135M", 4_000_000_000, [], LlamaForCausalLM, LlamaConfig(
        vocab_size=49152, hidden_size=576, intermediate_size=1536,
        num_hidden_layers=30, num_attention_heads=9, num_key_value_heads=3,
        max_position_embeddings=8192, rms_norm_eps=1e-5,
        rope_parameters={"rope_type": "default", "rope_theta": 100000.0},
        tie_word_embeddings=True, initializer_range=0.04)),
    ("Qwen3-0.6B", 6_000_000_000,
     ["--weights=bf16", "--optimizer_state=8bit"], Qwen3ForCausalLM, Qwen3Config(
         vocab_size=151936, hidden_size=1024, intermediate_size=3072,
         num_hidden_layers=28, num_attention_heads=16, num_key_value_heads=8,
         head_dim=128, max_position_embeddings=40960, rms_norm_eps=1e-6,
         rope_parameters={"rope_type": "default", "rope_theta": 1e6},
         tie_word_embeddings=True)),
]


def caged(budget, *args):
    """Both outputs of a command that may hold so many bytes."""
    result = subprocess.run(["bash", CAGE, str(budget), PLIMSOLL, *args],
                            cwd=WORK, stdout=subprocess.PIPE, text=True,
                            stderr=subprocess.STDOUT, check=False)
    require(result.returncode == 0, f"{args}: {result.stdout[-3000:]}")
    return result.stdout


def check(name, budget, settings, kind, config):
    torch.manual_seed(5)
    kind(config).to(torch.bfloat16).save_pretrained(path(name))
    tokens = torch.randint(0, 40_000, (LENGTH + 1,)).tolist()
    one_sequence(tokens)
    how = ["--dataset=one", f"--init_from={path(name)}", f"--memory={budget}",
           "--batch_size=1", f"--block_size={LENGTH}",
           "--gradient_accumulation_steps=1", *settings]
    plan = json.loads(plimsoll("plan", *how, "--json"))
    require(plan["fits"], f"{name}: it doesn't fit")
    said = caged(budget, "train", *how, "--out_dir=tuned", "--max_iters=2",
                 "--eval_interval=2", "--eval_iters=1", "--warmup_iters=0",
                 "--learning_rate=3e-5", "--decay_lr=False", "--keep=1")
    held = int(re.search(r"\(([0-9,]+) bytes\)", said.splitlines()[-1])
               .group(1).replace(",", ""))
    losses = [float(loss) for loss in re.findall(r"iter \d+: loss ([0-9.]+)",
                                                 said)]
    require(len(losses) == 2 and losses[1] < losses[0], f"{name}: {losses}")
    plimsoll("export", "tuned", "--type=q8_0", "--out=tuned.gguf")
    size = os.path.getsize(path("tuned.gguf"))
    tensors = check_q8_0(path("tuned.gguf"), checkpoint("tuned"))
    theirs, mine = next_loss(load(path("tuned", "latest")), tokens), our_loss(
        "tuned", tokens)
    require(abs(theirs - mine) <= TOLERANCE, f"{name}: {mine}, {theirs}")
    print(f"{name}: {held / 1e9:.2f} GB were held of {budget / 1e9:.0f} GB, "
          f"losses {losses}; then {mine:.4f}, transformers {theirs:.6f}; "
          f"q8_0 {size / 1e6:.0f} MB, {tensors} tensors")


for shape in SHAPES:
    check(*shape)
    subprocess.run(["rm", "-rf", path("tuned"), path(shape[0])], check=True)
