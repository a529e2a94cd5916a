"""What gguf's reader says of an export of a Llama or a Qwen3: its architecture,
and a tensor for each of the model's, of its shape. The values are
check_gguf.py's."""

import json
import os

import gguf
from gguf import GGMLQuantizationType as Type
from safetensors import safe_open

from common import require

FAMILIES = {"llama": gguf.MODEL_ARCH.LLAMA, "qwen3": gguf.MODEL_ARCH.QWEN3}


def shapes_of(folder, names):
    """Of a model in Hugging Face's names, by gguf's own names for them."""
    with safe_open(os.path.join(folder, "model.safetensors"), "np") as model:
        return {names.get_name(name, try_suffixes=(".weight", ".bias")):
                model.get_slice(name).get_shape() for name in model.keys()}


def check_q8_0(file, folder):
    """The export of what is in a folder; how many tensors it has."""
    with open(os.path.join(folder, "config.json")) as text:
        config = json.load(text)
    kind = config["model_type"]
    reader = gguf.GGUFReader(file)
    require(reader.get_field("general.architecture").contents() == kind,
            f"{file}: architecture")
    want = shapes_of(folder, gguf.get_tensor_name_map(
        FAMILIES[kind], config["num_hidden_layers"]))
    require(len(reader.tensors) == len(want), f"{file}: "
            f"{len(reader.tensors)} tensors, the model has {len(want)}")
    for tensor in reader.tensors:
        shape = [int(size) for size in tensor.shape][::-1]
        require(shape == want.get(tensor.name),
                f"{file}: {tensor.name} is {shape}, in the model "
                f"{want.get(tensor.name)}")
        block = len(shape) == 2 and shape[1] % 32 == 0
        require((tensor.tensor_type == Type.Q8_0) == block,
                f"{file}: {tensor.name} is {tensor.tensor_type.name}")
    return len(want)
