"""gguf's reader reads our files: keys, and every tensor in every type, with the
names that gguf's own table has for Hugging Face's, and for Llama in the order
that llama.cpp's converter gives queries and keys."""

import json
import os

import gguf
import numpy
from gguf import GGMLQuantizationType as Type
from gguf import GGUFReader, dequantize, quants

from common import checkpoint, path, plimsoll, require, weights
from gguf_shapes import FAMILIES, check_q8_0

NAMES = {
    "wte": "token_embd", "wpe": "position_embd", "ln_f": "output_norm",
    "ln_1": "attn_norm", "ln_2": "ffn_norm", "attn.c_attn": "attn_qkv",
    "attn.c_proj": "attn_output", "mlp.c_fc": "ffn_up",
    "mlp.c_proj": "ffn_down",
}


def gguf_name(name):
    if name == "lm_head.weight":
        return "output.weight"
    parts = name.split(".")[1:]  # without "transformer"
    end = parts.pop()
    if parts[0] == "h":
        return f"blk.{parts[1]}.{NAMES['.'.join(parts[2:])]}.{end}"
    return f"{NAMES['.'.join(parts)]}.{end}"


def permuted(array, heads):
    """As convert_hf_to_gguf.py has it for Llama."""
    return (array.reshape(heads, 2, array.shape[0] // heads // 2,
                          *array.shape[1:])
            .swapaxes(1, 2).reshape(array.shape))


def expected_arrays(model):
    """Names and values of our checkpoint as a GGUF must have them; its config.
    """
    folder = checkpoint(model)
    with open(os.path.join(folder, "config.json")) as file:
        config = json.load(file)
    kind = config["model_type"]
    if kind == "gpt2":
        return config, {gguf_name(name): array
                        for name, array in weights(folder).items()}
    names = gguf.get_tensor_name_map(FAMILIES[kind],
                                     config["num_hidden_layers"])
    arrays = {}
    for name, array in weights(folder).items():
        for part, heads in (("q_proj", "num_attention_heads"),
                            ("k_proj", "num_key_value_heads")):
            if kind == "llama" and f".{part}." in name:
                array = permuted(array, config[heads])
        arrays[names.get_name(name, try_suffixes=(".weight", ".bias"))] = array
    return config, arrays


def check_keys(config, key):
    kind = config["model_type"]
    for name, entry in (
            ("block_count", "num_hidden_layers"),
            ("context_length", "max_position_embeddings"),
            ("embedding_length", "hidden_size"),
            ("feed_forward_length", "intermediate_size"),
            ("attention.head_count", "num_attention_heads"),
            ("attention.head_count_kv", "num_key_value_heads"),
            ("attention.key_length", "head_dim"),
            ("attention.value_length", "head_dim"),
            ("rope.dimension_count", "head_dim"),
            ("rope.freq_base", "rope_theta"),
            ("vocab_size", "vocab_size")):
        require(key(f"{kind}.{name}") == config[entry], f"{kind}.{name}")
    require(key(f"{kind}.attention.layer_norm_rms_epsilon") ==
            numpy.float32(config["rms_norm_eps"]), "epsilon")


def expected_type(name, array, wanted):
    if array.ndim == 1 or name == "position_embd.weight":
        return Type.F32
    if wanted == Type.Q8_0 and array.shape[1] % 32:
        return Type.F16
    return wanted


def expected_bytes(array, kind):
    if kind == Type.F32:
        return array.tobytes()
    if kind == Type.F16:
        return array.astype(numpy.float16).tobytes()
    return quants.quantize(numpy.ascontiguousarray(array), kind).tobytes()


def check(model, kind):
    file = path(f"{model}.{kind.name.lower()}.gguf")
    plimsoll("export", model, "--format=gguf", f"--out={file}",
             f"--type={kind.name.lower()}")
    reader = GGUFReader(file)

    def key(name):
        return reader.get_field(name).contents()

    config, arrays = expected_arrays(model)
    require(key("general.architecture") == config["model_type"],
            "architecture")
    require(key(f"{config['model_type']}.block_count") == 2, "block_count")
    if config["model_type"] in FAMILIES:
        check_keys(config, key)
    if config["model_type"] in FAMILIES and kind == Type.Q8_0:
        check_q8_0(file, checkpoint(model))
    tokens, types = (key("tokenizer.ggml.tokens"),
                     key("tokenizer.ggml.token_type"))
    vocab = arrays["token_embd.weight"].shape[0]
    require(len(tokens) == len(types) == vocab == len(set(tokens)),
            "one name for each token")
    require({t.name for t in reader.tensors} == set(arrays), "names")
    for tensor in reader.tensors:
        array = arrays[tensor.name]
        want = expected_type(tensor.name, array, kind)
        require(tensor.tensor_type == want, f"{tensor.name}: type")
        require(list(tensor.shape) == list(array.shape)[::-1],
                f"{tensor.name}: shape")
        require(tensor.data.tobytes() == expected_bytes(array, want),
                f"{tensor.name}: bytes differ from gguf's own as {want.name}")
        back = dequantize(tensor.data, want).reshape(array.shape)
        require(numpy.abs(back - array).max() <= numpy.abs(array).max() / 100,
                f"{tensor.name}: values")
    print(f"{file}: {len(reader.tensors)} tensors, bit for bit")


for model in ("chars", "pairs", "untied", "llama", "llama_bias", "qwen3",
              "qwen3_untied"):
    for kind in (Type.F32, Type.F16, Type.BF16, Type.Q8_0):
        check(model, kind)
