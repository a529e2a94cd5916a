"""TensorBoard's EventAccumulator reads our event files."""

import glob
import json
import math
import os
import subprocess

from tensorboard.backend.event_processing.event_accumulator import (
    EventAccumulator)

from common import path, require


def read(folder):
    accumulator = EventAccumulator(folder, size_guidance={"scalars": 0,
                                                      "tensors": 0})
    accumulator.Reload()
    return accumulator


folder = path("events")
os.makedirs(folder, exist_ok=True)
subprocess.run([os.environ["WRITE_EVENTS"],
                os.path.join(folder, "events.out.tfevents.plimsoll")],
               check=True)
events = read(folder)
require(sorted(events.Tags()["scalars"]) == ["loss/train", "loss/val"],
        f"tags: {events.Tags()}")
train = events.Scalars("loss/train")
require([e.step for e in train] == list(range(1000)), "steps")
for event in train:
    require(math.isclose(event.value, math.exp(-0.01 * event.step),
                         rel_tol=1e-5), f"step {event.step}: {event.value}")
    require(event.wall_time == 1.7e9 + event.step, "wall time")
require([e.value for e in events.Scalars("loss/val")] ==
        [100.0 * i for i in range(10)], "the other tag")
texts = events.Tensors("sample/1")
require([e.step for e in texts] == list(range(0, 1000, 100)), "texts")
for event in texts:
    require(event.tensor_proto.string_val[0].decode() == "\n    café <b>",
            f"text: {event.tensor_proto}")
require(events.SummaryMetadata("sample/1").plugin_data.plugin_name == "text",
        "the plugin of texts")
print(f"{len(train)} steps of {events.Tags()['scalars']}")

# those of a run: the numbers of its metrics.jsonl
found = 0
for file in glob.glob(path("chars", "**", "*tfevents*"), recursive=True):
    run = read(os.path.dirname(file))
    scalars = run.Tags()["scalars"]
    with open(os.path.join(os.path.dirname(file), "metrics.jsonl")) as text:
        lines = [json.loads(line) for line in text]
    for tag in ("loss", "val_loss", "val_bpb"):
        want = [(line["step"], line[tag]) for line in lines if tag in line]
        require(want and tag in scalars, f"{file}: no {tag} in {scalars}")
        shown = run.Scalars(tag)
        require([e.step for e in shown] == [step for step, _ in want],
                f"{file}: {tag}: other steps than metrics.jsonl")
        for event, (step, value) in zip(shown, want):
            require(math.isclose(event.value, value, rel_tol=1e-6),
                    f"{file}: {tag} of step {step}: {event.value}, {value}")
    print(f"{file}: {len(lines)} lines of metrics.jsonl, {scalars}")
    found += 1
require(found == 1, "no event file beside metrics.jsonl")
