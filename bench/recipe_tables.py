#!/usr/bin/env python3
"""recipe_tables COMMAND HOME [RECIPE]: what script/recipe has run so far.

    tables   the tables for docs/recipe.md; runs that are not done are left out
    best     the rates with which a recipe's tuning ended best
    keep     the losses of the runs that are done, and the times of updates,
             to recipe.jsonl beside this
    kept     the other way round: what is in recipe.jsonl is done in HOME, too,
             but for the times, which are of one machine and only printed
"""
import glob
import hashlib
import json
import math
import os
import statistics
import sys

TOKENS = 32 * 256  # of an update
KEPT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "recipe.jsonl")


# ---- runs ----


def evaluations_of(folder):
    """Those of a run that is done, or none."""
    if not os.path.exists(folder + "/done"):
        return []
    with open(folder + "/metrics.jsonl") as file:
        lines = [json.loads(line) for line in file]
    return [line for line in lines if "val_loss" in line]


def end_of(folder):
    return (evaluations_of(folder) or [None])[-1]


def rates_of(folder):
    if not os.path.exists(folder + "/rates"):
        return None
    with open(folder + "/rates") as file:
        return file.read().strip()


def best(home, recipe):
    """The folder of the tuning run with the least loss, or None."""
    found = [(end_of(folder)["val_loss"], folder)
             for folder in glob.glob(f"{home}/runs/{recipe}-tune-*")
             if end_of(folder)]
    return min(found)[1] if found else None


def print_best(home, recipe):
    folder = best(home, recipe)
    if not folder:
        sys.exit(f"{home}: no tuning run of {recipe} is done")
    print(rates_of(folder))


# ---- recipe.jsonl ----


def hash_of_tokens(home):
    with open(home + "/data/text/train.bin", "rb") as file:
        return hashlib.sha256(file.read()).hexdigest()


def keep(home):
    tokens = hash_of_tokens(home)
    keys = ("step", "val_loss", "val_bpb")
    with open(KEPT + ".part", "w") as out:
        for folder in sorted(glob.glob(home + "/runs/*")):
            lines = evaluations_of(folder)
            if lines:
                out.write(json.dumps({
                    "run": os.path.basename(folder), "tokens": tokens,
                    "rates": rates_of(folder),
                    "evaluations": [{key: line[key] for key in keys}
                                    for line in lines]}) + "\n")
        times = times_of(home) or kept_times()
        if times:
            out.write(json.dumps({"times": times}) + "\n")
    os.replace(KEPT + ".part", KEPT)


def kept_lines():
    with open(KEPT) as file:
        return [json.loads(line) for line in file]


def kept_times():
    found = [line["times"] for line in kept_lines() if "times" in line]
    return found[0] if found else None


def kept(home):
    tokens = hash_of_tokens(home)
    for run in kept_lines():
        if "run" not in run:
            continue
        if run["tokens"] != tokens:
            sys.exit(f"{KEPT}: {run['run']} was trained on other tokens than "
                     f"{home}/data/text/train.bin has; run it anew")
        folder = f"{home}/runs/{run['run']}"
        if os.path.exists(folder):
            continue
        os.makedirs(folder + ".part")
        with open(folder + ".part/metrics.jsonl", "w") as out:
            for line in run["evaluations"]:
                out.write(json.dumps(line) + "\n")
        if run["rates"]:
            with open(folder + ".part/rates", "w") as out:
                out.write(run["rates"] + "\n")
        with open(folder + ".part/done", "w"):
            pass
        os.rename(folder + ".part", folder)


# ---- tables ----


def row(name, last):
    print(f"| {name} | {last['step'] * TOKENS / 1e6:.2f} M | "
          f"{last['val_loss']:.4f} | {last['val_bpb']:.4f} |")


def tuning(home):
    print("### Tuning, an eighth of the tokens\n")
    print("| recipe | learning_rate, muon_learning_rate | validation loss | "
          "bits per byte |")
    print("|---|---|---|---|")
    for folder in sorted(glob.glob(home + "/runs/*-tune-*")):
        last, rates = end_of(folder), rates_of(folder)
        if last and rates:
            print(f"| {os.path.basename(folder)[:-7]} | {rates} | "
                  f"{last['val_loss']:.4f} | {last['val_bpb']:.4f} |")


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
    print("\n### Part by part, an eighth of the tokens\n")
    print("| recipe | tokens | validation loss | bits per byte |")
    print("|---|---|---|---|")
    for name, folder in (("nanoGPT's", best(home, "nanogpt")),
                         ("+ qwen3", home + "/runs/part-qwen3"),
                         ("+ muon", home + "/runs/part-muon"),
                         ("+ wsd", best(home, "today"))):
        last = folder and end_of(folder)
        if last:
            row(name, last)


def processor():
    with open("/proc/cpuinfo") as file:
        for line in file:
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return "unknown"


def times_of(home):
    """Seconds of an update in each turn of both recipes, or None."""
    seconds = {}
    for name in ("nanogpt", "today"):
        rounds = []
        for path in sorted(glob.glob(f"{home}/time-{name}-*.json")):
            with open(path) as file:
                rounds.append(json.load(file)["median"]["update_seconds"])
        if not rounds:
            return None
        seconds[name] = rounds
    return {"processor": processor(), **seconds}


def time(home):
    times = times_of(home) or kept_times()
    if not times:
        return
    ratios = [b / a for a, b in zip(times["nanogpt"], times["today"])]
    middle = statistics.median(ratios)
    print(f"\nAn update takes {middle:.3f} times as long "
          f"({min(ratios):.3f} to {max(ratios):.3f} in {len(ratios)} turns, "
          f"{times['processor']})", end="")
    ends = [end_of(f"{home}/runs/{name}-seed-1")
            for name in ("nanogpt", "today")]
    if all(ends):
        share = 100 * ends[1]["step"] / ends[0]["step"]
        print(f"; {share:.0f} % of them take {share * middle:.0f} % of "
              "the time", end="")
    print(".")


def tables(home):
    for table in (tuning, seeds, parts, time):
        table(home)


def main():
    commands = {"tables": (tables, 3), "keep": (keep, 3), "kept": (kept, 3),
                "best": (print_best, 4)}
    command, count = commands.get(sys.argv[1] if sys.argv[1:] else "",
                                  (None, 0))
    if len(sys.argv) != count:
        sys.exit(__doc__)
    command(*sys.argv[2:])


if __name__ == "__main__":
    main()
