#!/usr/bin/env python3
"""recipe_tables HOME: the tables for docs/recipe.md, from what script/recipe
has run so far. Runs that are not done are left out."""
import glob
import json
import math
import os
import statistics
import sys

TOKENS = 32 * 256  # of an update


def end_of(folder):
    """The last evaluation of a run that is done, or None."""
    if not os.path.exists(folder + "/done"):
        return None
    with open(folder + "/metrics.jsonl") as file:
        lines = [json.loads(line) for line in file]
    return [line for line in lines if "val_loss" in line][-1]


def row(name, last):
    print(f"| {name} | {last['step'] * TOKENS / 1e6:.2f} M | "
          f"{last['val_loss']:.4f} | {last['val_bpb']:.4f} |")


def tuning(home):
    print("### Tuning, a quarter of the tokens\n")
    print("| recipe | learning_rate, muon_learning_rate | validation loss |")
    print("|---|---|---|")
    for folder in sorted(glob.glob(home + "/runs/*-tune-*")):
        last = end_of(folder)
        if last and os.path.exists(folder + "/rates"):
            with open(folder + "/rates") as file:
                rates = file.read().strip()
            print(f"| {os.path.basename(folder)[:-7]} | {rates} | "
                  f"{last['val_loss']:.4f} |")


def seeds(home):
    print("\n### Three seeds\n")
    print("| run | tokens | validation loss | bits per byte |")
    print("|---|---|---|---|")
    means = {}
    for recipe in ("nanogpt", "today"):
        found = []
        for seed in (1, 2, 3):
            last = end_of(f"{home}/runs/{recipe}-seed-{seed}")
            if last:
                row(f"{recipe}, seed {seed}", last)
                found.append(last["val_loss"])
        if len(found) > 1:
            error = statistics.stdev(found) / math.sqrt(len(found))
            print(f"| {recipe}, mean | | {statistics.mean(found):.4f} "
                  f"± {error:.4f} | |")
            means[recipe] = statistics.mean(found)
    if len(means) == 2:
        print(f"\ntoday - nanogpt: {means['today'] - means['nanogpt']:+.4f}")


def parts(home):
    print("\n### Parts, seed 1, over the tokens of the whole\n")
    print("| recipe | tokens | validation loss | bits per byte |")
    print("|---|---|---|---|")
    for name, folder in (("nanoGPT's", "part-nanogpt"),
                         ("+ qwen3", "part-qwen3"),
                         ("+ muon", "part-muon"),
                         ("+ wsd", "today-seed-1")):
        last = end_of(f"{home}/runs/{folder}")
        if last:
            row(name, last)


def time(home):
    seconds = {}
    for name in ("nanogpt", "today"):
        rounds = []
        for path in sorted(glob.glob(f"{home}/time-{name}-*.json")):
            with open(path) as file:
                rounds.append(json.load(file)["median"]["update_seconds"])
        if rounds:
            seconds[name] = rounds
    if len(seconds) == 2:
        ratios = [b / a for a, b in zip(seconds["nanogpt"], seconds["today"])]
        middle = statistics.median(ratios)
        print(f"\nAn update takes {middle:.3f} times as long "
              f"({min(ratios):.3f} to {max(ratios):.3f} in turns); "
              f"65 % of them take {65 * middle:.0f} % of the time.")


def main():
    home = sys.argv[1]
    for table in (tuning, seeds, parts, time):
        table(home)


if __name__ == "__main__":
    main()
