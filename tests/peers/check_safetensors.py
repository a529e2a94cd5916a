"""safetensors reads every file of tensors in a checkpoint."""

import glob
import json
import os

import numpy
import safetensors

from common import checkpoint, require

for model in ("chars", "pairs"):
    folder = checkpoint(model)
    with open(os.path.join(folder, "config.json")) as file:
        config = json.load(file)
    expected = 4 + 12 * config["n_layer"]
    for file in sorted(glob.glob(os.path.join(folder, "*.safetensors"))):
        with safetensors.safe_open(file, "numpy") as tensors:
            names = list(tensors.keys())
            require(tensors.metadata() == {"format": "pt"}, f"{file}: metadata")
            values = sum(tensors.get_tensor(name).size for name in names)
            finite = all(numpy.isfinite(tensors.get_tensor(name)).all()
                         for name in names)
        require(finite, f"{file}: not all values are finite")
        if file.endswith("model.safetensors"):
            require(len(names) == expected,
                    f"{len(names)} tensors, expected {expected}")
            require("transformer.wte.weight" in names, "no token table")
        print(f"{model}/{os.path.basename(file)}: {len(names)} tensors, "
              f"{values} values")
