"""TensorBoard's EventAccumulator reads our event files."""

import glob
import math
import os
import subprocess

from tensorboard.backend.event_processing.event_accumulator import (
    EventAccumulator)

from common import path, require


def read(folder):
    accumulator = EventAccumulator(folder, size_guidance={"scalars": 0})
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
print(f"{len(train)} steps of {events.Tags()['scalars']}")

# those of runs, where they wrote any
for file in glob.glob(path("chars", "**", "*tfevents*"), recursive=True):
    scalars = read(os.path.dirname(file)).Tags()["scalars"]
    require(scalars, f"{file}: nothing in it")
    print(f"{file}: {scalars}")
