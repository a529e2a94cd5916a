"""gguf's reader reads our files: keys, and every tensor in every type."""

import numpy
from gguf import GGMLQuantizationType as Type
from gguf import GGUFReader, dequantize, quants

from common import checkpoint, path, plimsoll, require, weights

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

    require(key("general.architecture") == "gpt2", "architecture")
    require(key("gpt2.block_count") == 2, "block_count")
    tokens, types = (key("tokenizer.ggml.tokens"),
                     key("tokenizer.ggml.token_type"))
    arrays = {gguf_name(name): array
              for name, array in weights(checkpoint(model)).items()}
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


for model in ("chars", "pairs", "untied"):
    for kind in (Type.F32, Type.F16, Type.BF16, Type.Q8_0):
        check(model, kind)
