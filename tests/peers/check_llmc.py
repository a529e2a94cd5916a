"""llm.c's layout, in a few lines of numpy, read from our file. The order is
that of gpt2_build_from_checkpoint and fill_in_parameter_sizes in its
train_gpt2.c."""

import json
import os

import numpy

from common import checkpoint, path, plimsoll, require, weights

ORDER = ("wte", "wpe", "ln_1.weight", "ln_1.bias", "attn.c_attn.weight",
         "attn.c_attn.bias", "attn.c_proj.weight", "attn.c_proj.bias",
         "ln_2.weight", "ln_2.bias", "mlp.c_fc.weight", "mlp.c_fc.bias",
         "mlp.c_proj.weight", "mlp.c_proj.bias", "ln_f.weight", "ln_f.bias")


def sizes(T, Vp, L, C):
    return (Vp * C, T * C, L * C, L * C, L * 3 * C * C, L * 3 * C, L * C * C,
            L * C, L * C, L * C, L * 4 * C * C, L * 4 * C, L * C * 4 * C,
            L * C, C, C)


def check(name, vocab):
    file = path(f"{name}.bin")
    plimsoll("export", name, "--format=llmc", f"--out={file}")
    header = numpy.fromfile(file, dtype="<i4", count=256)
    require(header[0] == 20240326 and header[1] == 3, "magic and version")
    T, V, L, _, C, Vp = (int(x) for x in header[2:8])
    require(V == vocab and Vp % 128 == 0 and Vp >= V, "vocabulary")
    values = numpy.fromfile(file, dtype="<f4", offset=1024)
    parts = sizes(T, Vp, L, C)
    require(values.size == sum(parts), "the file's size")
    arrays, at = weights(checkpoint(name)), 0
    for key, size in zip(ORDER, parts):
        found = values[at:at + size]
        at += size
        if key in ("wte", "wpe", "ln_f.weight", "ln_f.bias"):
            full = f"transformer.{key}"
            full += "" if "." in key else ".weight"
            expected = arrays[full].ravel()
        else:
            expected = numpy.concatenate(
                [arrays[f"transformer.h.{i}.{key}"].ravel() for i in range(L)])
        require((found[:expected.size] == expected).all(), f"{name}: {key}")
        require((found[expected.size:] == 0).all(), f"{name}: padding")
    half = path(f"{name}.bf16.bin")
    plimsoll("export", name, "--format=llmc", "--type=bf16", f"--out={half}")
    bits = numpy.fromfile(half, dtype="<u2", offset=1024).astype(numpy.uint32)
    require(numpy.fromfile(half, dtype="<i4", count=2)[1] == 5, "version 5")
    back = (bits << 16).view(numpy.float32)
    require((numpy.abs(back - values) <= numpy.abs(values) / 256).all(),
            f"{name}: bfloat16")
    print(f"{file}: {values.size} values, version 3 and 5")


def characters():
    with open(path("text.txt")) as file:
        return len(set(file.read()))


def pairs():
    with open(os.path.join(checkpoint("pairs"), "tokenizer.json")) as file:
        return max(json.load(file)["model"]["vocab"].values()) + 1


check("chars", characters())
check("pairs", pairs())
