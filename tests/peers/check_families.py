"""transformers loads our Llamas and Qwen3s and finds the same loss on the same
tokens; they come back from GGUF as they were; what transformers saved goes on
training in Plimsoll, update by update as in PyTorch; what a family can't say
is loaded by nobody else."""

import json
import os
import shutil
import subprocess

import torch
from safetensors.torch import load_file
from transformers import (AutoModelForCausalLM, LlamaConfig, LlamaForCausalLM,
                          Qwen3Config, Qwen3ForCausalLM)

from common import (PLIMSOLL, WORK, checkpoint, path, plimsoll, require,
                    tokens_of)
from torch_models import TOLERANCE, go_on, load, loss, next_loss, our_loss

CLASSES = {"llama": LlamaForCausalLM, "qwen3": Qwen3ForCausalLM}


def equal_files(left, right, what):
    a, b = (load_file(os.path.join(folder, "model.safetensors"))
            for folder in (left, right))
    require(a.keys() == b.keys(), f"{what}: other tensors")
    for name, value in a.items():
        require(torch.equal(value, b[name]), f"{what}: {name} differs")


def ours(name, kind):
    """A checkpoint as it is, exported, and through GGUF."""
    folder = checkpoint(name)
    model = load(folder)
    require(type(model) is CLASSES[kind], f"{name}: {type(model)}")
    require(model.config.rope_parameters["rope_theta"] ==
            {"llama": 10000.0, "qwen3": 1e6}[kind], f"{name}: theta")
    with open(path("text.txt")) as file:
        tokens = tokens_of(folder, file.read())
    length = model.config.max_position_embeddings
    tokens = tokens[1000:1000 + length + 1]
    theirs, mine = next_loss(model, tokens), our_loss(name, tokens)
    print(f"{name}: loss {mine:.4f}, transformers {theirs:.6f}")
    require(abs(mine - theirs) <= TOLERANCE, f"{name}: the losses differ")
    share, file, back = (path(f"{name}.{end}")
                         for end in ("share", "gguf", "back"))
    for old in (share, back):
        shutil.rmtree(old, ignore_errors=True)
    plimsoll("export", name, "--format=hf", f"--out={share}")
    equal_files(folder, share, f"{name}, export")
    plimsoll("export", name, f"--out={file}")
    plimsoll("import", file, f"--out={back}")
    equal_files(folder, back, f"{name}, GGUF and back")
    require(loss(load(back), tokens[:-1]) == loss(model, tokens[:-1]),
            f"{name}: another loss after GGUF")
    print(f"{name}: the same through other formats")


def theirs(kind, **shape):
    torch.manual_seed(7)
    shape = {"vocab_size": 151, "hidden_size": 48, "intermediate_size": 80,
             "num_hidden_layers": 3, "num_attention_heads": 4,
             "num_key_value_heads": 2, "head_dim": 12,
             "max_position_embeddings": 40, "bos_token_id": None,
             "eos_token_id": None, "initializer_range": 0.1, **shape}
    config = {"llama": LlamaConfig, "qwen3": Qwen3Config}[kind](**shape)
    return CLASSES[kind](config)


def refused():
    """relu2 is no Llama's: our folder has no class for it."""
    plimsoll("train", "--dataset=chars", "--architecture=llama", "--mlp=relu2",
             "--n_layer=1", "--n_head=2", "--n_embd=32", "--block_size=16",
             "--batch_size=2", "--gradient_accumulation_steps=1",
             "--max_iters=1", "--eval_iters=1", "--out_dir=alone")
    with open(os.path.join(checkpoint("alone"), "config.json")) as file:
        config = json.load(file)
    require("architectures" not in config and "relu2" in config["note"],
            f"alone: {config}")
    try:
        AutoModelForCausalLM.from_pretrained(checkpoint("alone"))
    except ValueError:
        pass
    else:
        require(False, "alone: transformers loads it")
    for args in (("export", "alone", "--out=alone.gguf"),
                 ("export", "llama", "--out=llama.bin", "--format=llmc")):
        result = subprocess.run([PLIMSOLL, *args], cwd=WORK,
                                capture_output=True, check=False)
        require(result.returncode == 6, f"{args}: {result.returncode}")
    print("what a family can't say is loaded by nobody else")


ours("llama", "llama")
ours("llama_bias", "llama")
ours("qwen3", "qwen3")
ours("qwen3_untied", "qwen3")
refused()
for kind in CLASSES:
    go_on(f"{kind}, grouped queries, untied", theirs(kind))
    go_on(f"{kind}, tied", theirs(kind, tie_word_embeddings=True,
                                  num_key_value_heads=4))
    go_on(f"{kind}, several files of bfloat16",
          theirs(kind, tie_word_embeddings=True, rope_theta=5e5),
          dtype=torch.bfloat16, max_shard_size="60KB")
    require(os.path.exists(path("theirs", "model.safetensors.index.json")),
            "one file")
    go_on(f"{kind}, float16", theirs(kind), dtype=torch.float16)
go_on("llama, biases", theirs("llama", attention_bias=True, mlp_bias=True))
go_on("qwen3, heads of their own width",
      theirs("qwen3", head_dim=20, num_key_value_heads=1))
