#!/usr/bin/env python3
"""Plimsoll beside PyTorch and the BLAS libraries, in one run on one machine:
cells that take turns, medians of the turns' ratios. script/bench --peers calls
it, in the environment that script/bench --setup makes.

    python3 bench/compare.py measure --build=build/release --out=FILE.json
    python3 bench/compare.py tables FILE.json docs/performance.md

`measure` first runs every sensible way to run PyTorch once (micro-batches,
both ways to the loss, compiled or not), then lets Plimsoll, the fastest eager
and the fastest compiled way alternate. A way that cannot be run is listed with
the reason. `tables` writes what stands between the markers of the page.
"""
import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))

# What is compared: the model, a batch, and the micro-batches that PyTorch may
# cut it into. Without dropout, and one batch per update.
MODELS = {
    "story": {
        "title": "12 / 12 / 576, T 1024, batch 8",
        "shape": {"n_layer": 12, "n_head": 12, "n_embd": 576,
                  "vocab_size": 50304, "block_size": 1024, "batch_size": 8},
        "micro": (8, 1),
    },
    "gpt2-256": {
        "title": "GPT-2 124M, T 256, batch 8",
        "shape": {"n_layer": 12, "n_head": 12, "n_embd": 768,
                  "vocab_size": 50304, "block_size": 256, "batch_size": 8},
        "micro": (8, 4),
    },
    "gpt2-1024": {
        "title": "GPT-2 124M, T 1024, batch 4",
        "shape": {"n_layer": 12, "n_head": 12, "n_embd": 768,
                  "vocab_size": 50304, "block_size": 1024, "batch_size": 4},
        "micro": (4, 1),
    },
    "shakespeare-cpu": {
        "title": "4 / 4 / 128, T 64, batch 12, 65 characters",
        "shape": {"n_layer": 4, "n_head": 4, "n_embd": 128, "vocab_size": 65,
                  "block_size": 64, "batch_size": 12},
        "micro": (12,),
    },
    "shakespeare": {
        "title": "6 / 6 / 384, T 256, batch 64, 65 characters",
        "shape": {"n_layer": 6, "n_head": 6, "n_embd": 384, "vocab_size": 65,
                  "block_size": 256, "batch_size": 64},
        "micro": (64, 4),
    },
}

# The same in bfloat16, which PyTorch computes under autocast. Our own float32
# takes its turn, too: what the fewer bits bring is a ratio in one run.
HALVES = {
    f"{name}-bfloat16": dict(MODELS[name], dtype="bfloat16")
    for name in ("story", "gpt2-1024", "shakespeare")
}

# What Plimsoll may take: more than it wants. Unsaid, it would also keep below
# what nanoGPT takes.
MEMORY = "12GB"

# Its own settings, on the first model: one after the other in each turn, the
# first being what the others are compared with.
SETTINGS = {
    "float32, 12 GB, all threads": (),
    "2 GB": ("--memory=2GB",),
    "bfloat16": ("--dtype=bfloat16",),
    "float16": ("--dtype=float16",),
    "one thread": ("--threads=1",),
}

# Memory that is given back is faulted in again: the allocator keeps it. What
# else may help a machine is given with --torch_env.
KEEP = 1 << 40
ALLOCATOR = {
    "GLIBC_TUNABLES": f"glibc.malloc.hugetlb=1:"
                      f"glibc.malloc.mmap_threshold={KEEP}:"
                      f"glibc.malloc.trim_threshold={KEEP}:"
                      f"glibc.malloc.top_pad={256 << 20}",
}
# The products, by the dtype of what is multiplied.
PRODUCTS = {"products": "float32", "products-bfloat16": "bfloat16"}
PARTS = [*MODELS, *HALVES, "settings", *PRODUCTS]
# The same instruction set for all, where a lower one is asked for.
ISA = {
    "avx2": {"PLIMSOLL_ISA": "avx2", "ATEN_CPU_CAPABILITY": "avx2",
             "ONEDNN_MAX_CPU_ISA": "AVX2", "MKL_ENABLE_INSTRUCTIONS": "AVX2",
             "OPENBLAS_CORETYPE": "Haswell"},
}


def say(text):
    print(text, file=sys.stderr, flush=True)


# ---- cells ----


class Failed(Exception):
    pass


def die_first():
    """If memory runs out, it is this child that the kernel ends."""
    try:
        with open("/proc/self/oom_score_adj", "w") as score:
            score.write("1000")
    except OSError:
        pass


def processor_ticks():
    """Of all processors: idle ones, and all."""
    with open("/proc/stat") as stat:
        ticks = [int(word) for word in stat.readline().split()[1:9]]
    return ticks[3], sum(ticks)


def settle(most_seconds=30):
    """Waits until the processors have nothing to do for a second: what the
    last cell has left behind (PyTorch's compiler has processes of its own)
    would count as the next one's time."""
    for _ in range(most_seconds):
        idle, total = processor_ticks()
        time.sleep(1)
        now_idle, now_total = processor_ticks()
        if now_idle - idle > 0.97 * (now_total - total):
            return
    say("  this machine is busy")


def run(command, environment, limit):
    settle()
    try:
        done = subprocess.run(command, env=environment, text=True,
                              capture_output=True, timeout=limit,
                              preexec_fn=die_first)
    except subprocess.TimeoutExpired:
        raise Failed(f"not done after {limit} s") from None
    if done.returncode == -9:
        raise Failed("out of memory")
    if done.returncode:
        lines = done.stderr.strip().splitlines() or ["nothing said"]
        raise Failed(f"exit {done.returncode}: {lines[-1][:160]}")
    return json.loads(done.stdout)


def run_ours(model, o, rounds=2, more=()):
    keys = [f"--{key}={value}" for key, value in model["shape"].items()]
    return run([os.path.join(o.build, "plimsoll"), "bench", *keys,
                "--gradient_accumulation_steps=1", "--dropout=0.0",
                "--bias=False", f"--threads={o.threads}",
                f"--memory={MEMORY}", f"--rounds={rounds}", "--json",
                f"--dtype={model.get('dtype', 'float32')}", *more,
                *model.get("more", ()), *o.ours],
               dict(os.environ, **ISA.get(o.isa, {})), o.limit)


def run_torch(model, way, o, seconds):
    keys = [f"--{key}={value}" for key, value in model["shape"].items()]
    mode, loss, micro = way
    tokens = model["shape"]["batch_size"] * model["shape"]["block_size"]
    warm = 5 if tokens < 1024 else 1 if mode == "eager" else 2
    environment = dict(os.environ, OMP_NUM_THREADS=str(o.threads),
                       **ALLOCATOR, **ISA.get(o.isa, {}),
                       **dict(pair.split("=", 1) for pair in o.torch_env))
    return run([sys.executable, os.path.join(HERE, "peers.py"), *keys,
                f"--mode={mode}", f"--loss={loss}", f"--micro_batch={micro}",
                f"--dtype={model.get('dtype', 'float32')}",
                f"--threads={o.threads}", f"--seconds={seconds}",
                f"--warm_steps={warm}"],
               environment, o.limit)


# ---- one model ----


def scout(model, o):
    """The ways to run PyTorch once; the fastest eager and compiled one. First
    the micro-batch is chosen, then with that the way to the loss, which the
    compiled ones take over."""
    tried = []

    def rate(way):
        for old in tried:
            if old["way"] == list(way):
                return old.get("tokens_per_second", 0.0)
        say(f"  PyTorch, {' '.join(map(str, way))}")
        entry = {"way": list(way)}
        try:
            entry.update(run_torch(model, way, o, o.seconds / 4))
        except Failed as why:
            entry["failed"] = str(why)
        tried.append(entry)
        return entry.get("tokens_per_second", 0.0)

    def best(ways):
        rates = {way: rate(way) for way in ways}
        way = max(rates, key=rates.get)
        return way if rates[way] else None

    losses = ("logits",)
    if model["shape"]["vocab_size"] > 4 * model["shape"]["n_embd"]:
        losses = ("logits", "chunked")
    cuts = best([("eager", "logits", micro) for micro in model["micro"]])
    micro = cuts[2] if cuts else model["micro"][-1]
    eager = best([("eager", loss, micro) for loss in losses])
    loss = eager[1] if eager else "logits"
    compiled = best([("compile", loss, size)
                     for size in sorted({micro, *model["micro"]})])
    return tried, [way for way in (eager, compiled) if way]


def measure_model(name, o):
    model = {**MODELS, **HALVES}[name]
    single = dict(model, dtype="float32")
    ours = {"plimsoll": model}
    if "dtype" in model:
        ours["float32"] = single
        # weights in 16 bits beside the others, as `sample` has them
        ours["copy"] = dict(model, more=("--working_copy=resident",))
    say(f"{name}: {model['title']}")
    say("  Plimsoll")
    for it in ours.values():
        run_ours(it, o, 1)  # learns the machine's rates, as a first run does
    tried, ways = scout(model, o)
    turns = []
    for i in range(o.rounds):
        say(f"  turn {i + 1} of {o.rounds}")
        turn = {}
        sides = list(ours) + [way[0] for way in ways]
        shift = i % len(sides)
        for side in sides[shift:] + sides[:shift]:
            try:
                turn[side] = (
                    run_ours(ours[side], o) if side in ours else
                    run_torch(model, next(w for w in ways if w[0] == side), o,
                              o.seconds))
            except Failed as why:
                turn[side] = {"failed": str(why)}
        turns.append(turn)
    return {"title": model["title"], "shape": model["shape"], "tried": tried,
            "ways": ways, "turns": turns}


def measure_settings(o):
    model = MODELS["story"]
    turns = []
    short = ("--eval_batch_size=1",)
    for i in range(-1, o.rounds):
        say(f"settings, turn {i + 1} of {o.rounds}")
        turn = {}
        names = list(SETTINGS)
        shift = max(i, 0) % len(names)
        for name in names[shift:] + names[:shift]:
            turn[name] = run_ours(model, o, 1, short + SETTINGS[name])
        if i >= 0:  # the one before learns the machine's rates
            turns.append(turn)
    return {"title": model["title"], "turns": turns}


# ---- the machine ----


def first_line(*command):
    try:
        return subprocess.run(command, capture_output=True, text=True,
                              check=True).stdout.splitlines()[0]
    except (OSError, subprocess.CalledProcessError, IndexError):
        return "unknown"


def compiler(build):
    try:
        with open(os.path.join(build, "CMakeCache.txt")) as lines:
            path = next(line.strip().split("=", 1)[1] for line in lines
                        if line.startswith("CMAKE_C_COMPILER:"))
        return first_line(path, "--version")
    except (OSError, StopIteration):
        return "unknown"


def machine(o):
    wanted = ("avx", "avx2", "fma", "f16c", "avx512f", "avx512bw", "avx512dq",
              "avx512vl", "avx512_vnni", "avx512_bf16", "amx_tile", "asimd",
              "sve")
    flags = []
    with open("/proc/cpuinfo") as lines:
        for line in lines:
            if line.startswith(("flags", "Features")):
                flags = line.split(":", 1)[1].split()
                break
    pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return {
        "processor": platform.machine(), "threads": o.threads,
        "isa": o.isa or "all it has",
        "flags": [flag for flag in wanted if flag in flags],
        "memory_bytes": pages,
        "linux": ".".join(platform.release().split(".")[:2]),
        "compiler": compiler(o.build),
        "libc": " ".join(platform.libc_ver()),
        "python": platform.python_version(),
    }


def measure(o):
    try:
        with open(o.out) as old:
            result = json.load(old)
    except (OSError, ValueError):
        result = {"models": {}}
    result.setdefault("models", {})
    result["machine"] = machine(o)
    names = o.only or PARTS

    def save():
        with open(o.out + ".new", "w") as new:
            json.dump(result, new, indent=1)
        os.replace(o.out + ".new", o.out)

    for name in names:
        if name in PRODUCTS:
            say(name)
            done = subprocess.run(
                [sys.executable, os.path.join(HERE, "peers_gemm.py"),
                 "compare", os.path.join(o.build, "plimsoll_bench"),
                 f"--threads={o.threads}", f"--rounds={o.product_rounds}",
                 f"--most={o.most_products}", f"--dtype={PRODUCTS[name]}"],
                env=dict(os.environ, OMP_NUM_THREADS=str(o.threads),
                         **ALLOCATOR, **ISA.get(o.isa, {})),
                stdout=subprocess.PIPE, text=True, check=True)
            result[name] = json.loads(done.stdout)
        elif name == "settings":
            try:
                result["settings"] = measure_settings(o)
            except Failed as why:
                sys.exit(f"compare: plimsoll bench: {why}")
        else:
            try:
                result["models"][name] = measure_model(name, o)
            except Failed as why:
                sys.exit(f"compare: plimsoll bench, {name}: {why}")
        save()


# ---- tables ----


def median(values):
    values = [value for value in values if value is not None]
    return statistics.median(values) if values else None


def number(value, form="{:,.0f}"):
    return "-" if value is None else form.format(value)


def gigabytes(value):
    return number(value and value / 1e9, "{:.2f} GB")


def column(m, side, key):
    """One side's value in each turn; None where it could not be run."""
    if side == "plimsoll":
        key = {"tokens_per_second": "train_tokens_per_second"}.get(key, key)
        return [turn["plimsoll"].get("median", {}).get(key)
                for turn in m["turns"]]
    return [turn.get(side, {}).get(key) for turn in m["turns"]]


def ratios(m, key):
    """Ours over the better of the others, turn by turn."""
    out = []
    for ours, *theirs in zip(*(column(m, side, key) for side in
                               ("plimsoll", "eager", "compile"))):
        theirs = [value for value in theirs if value]
        if ours and theirs:
            out.append(ours / max(theirs))
    return out


def shares(m, side, key, flops_key):
    """Useful flops of a side over the peak of the same turn."""
    out = []
    for turn, rate in zip(m["turns"], column(m, side, key)):
        ours = turn["plimsoll"]
        if rate and "median" in ours:
            out.append(rate * ours[flops_key] / ours["median"]["peak_flops"])
    return out


def rate_table(result, key, flops_key):
    lines = ["| model | Plimsoll, tokens/s | of the peak | PyTorch eager | "
             "compiled | its best, of the peak | ratio | lowest, highest |",
             "|---|---|---|---|---|---|---|---|"]
    for m in models(result):
        sides = {side: median(column(m, side, key))
                 for side in ("plimsoll", "eager", "compile")}
        parts = {side: median(shares(m, side, key, flops_key))
                 for side in sides}
        theirs = [parts[side] for side in ("eager", "compile") if parts[side]]
        found = ratios(m, key)
        lines.append("| " + " | ".join([
            m["title"], number(sides["plimsoll"]),
            number(parts["plimsoll"], "{:.1%}"), number(sides["eager"]),
            number(sides["compile"]),
            number(max(theirs, default=None), "{:.1%}"),
            number(median(found), "**{:.2f}**"),
            number(min(found, default=None), "{:.2f}") + ", " +
            number(max(found, default=None), "{:.2f}")]) + " |")
    return lines


def half_table(result):
    """bfloat16 beside PyTorch's autocast, and beside our own float32."""
    lines = ["| model | Plimsoll, tokens/s | of the bfloat16 peak | PyTorch "
             "eager | compiled | ratio | lowest, highest | / our float32 | "
             "evaluation | sampling |",
             "|---|---|---|---|---|---|---|---|---|---|"]
    for name in HALVES:
        m = result["models"].get(name)
        if not m:
            continue

        def gain(key, side="plimsoll"):
            return median(turn[side]["median"][key] /
                          turn["float32"]["median"][key]
                          for turn in m["turns"]
                          if "median" in turn.get(side, {}) and
                          "median" in turn["float32"])
        found = ratios(m, "tokens_per_second")
        lines.append("| " + " | ".join([
            m["title"],
            *(number(median(column(m, "plimsoll", "tokens_per_second"))),
              number(median(shares(m, "plimsoll", "tokens_per_second",
                                   "train_flops_per_token")), "{:.1%}")),
            *(number(median(column(m, side, "tokens_per_second")))
              for side in ("eager", "compile")),
            number(median(found), "**{:.2f}**"),
            number(min(found, default=None), "{:.2f}") + ", " +
            number(max(found, default=None), "{:.2f}"),
            *(number(gain(key), "{:.2f}") for key in
              ("train_tokens_per_second", "eval_tokens_per_second")),
            number(gain("sample_tokens_per_second", "copy"), "{:.2f}")])
            + " |")
    return lines if len(lines) > 2 else ["Not measured."]


def own_table(result):
    """What needs no peer: all within one process each."""
    lines = ["| model | training, of the peak | evaluation | evaluation / "
             "training | sampling, of what can be read | update, predicted / "
             "measured |", "|---|---|---|---|---|---|"]
    for m in models(result):
        ours = [turn["plimsoll"] for turn in m["turns"]
                if "median" in turn["plimsoll"]]
        share = {name: [it["median"][name] for it in ours] for name in
                 ("train_share_of_peak", "eval_share_of_peak",
                  "sample_share_of_reading")}
        train, evaluation, sample = share.values()
        lines.append("| " + " | ".join([
            m["title"], number(median(train), "{:.1%}"),
            number(median(evaluation), "{:.1%}"),
            number(median(e / t for e, t in zip(evaluation, train)),
                   "{:.2f}"),
            number(median(sample), "{:.1%}"),
            number(median(it["predicted_update_seconds"] /
                          it["median"]["update_seconds"] for it in ours),
                   "{:.2f}")]) + " |")
    return lines


def settings_table(result):
    data = result.get("settings")
    if not data:
        return ["Not measured."]
    lines = [f"{data['title']}; shares of the peak of the same threads.", "",
             "| setting | tokens/s | of the peak | share / the first's | "
             "lowest, highest | process peak |", "|---|---|---|---|---|---|"]
    first = next(iter(SETTINGS))
    for name in SETTINGS:
        cells = [turn[name] for turn in data["turns"]]
        share = [cell["median"]["train_share_of_peak"] for cell in cells]
        ratio = [s / turn[first]["median"]["train_share_of_peak"]
                 for s, turn in zip(share, data["turns"])]
        lines.append("| " + " | ".join([
            name,
            number(median(cell["median"]["train_tokens_per_second"]
                          for cell in cells)),
            number(median(share), "{:.1%}"), number(median(ratio), "{:.3f}"),
            f"{min(ratio):.3f}, {max(ratio):.3f}",
            gigabytes(median(cell["process_peak_bytes"]
                             for cell in cells))]) + " |")
    return lines


def models(result):
    return [result["models"][name] for name in MODELS
            if name in result["models"]]


def memory_table(result):
    lines = ["| model | Plimsoll, peak | beyond 16 per parameter | PyTorch at "
             "its fastest | beyond | ours / theirs | whole batch at once | "
             "beyond | ours / theirs |",
             "|---|---|---|---|---|---|---|---|---|"]
    for m in models(result):
        ours = median(turn["plimsoll"].get("process_peak_bytes")
                      for turn in m["turns"])
        both = 16 * next(turn["plimsoll"]["parameters"] for turn in m["turns"]
                         if "parameters" in turn["plimsoll"])
        fastest = max((m["ways"]),
                      key=lambda way: median(column(
                          m, way[0], "tokens_per_second")) or 0.0,
                      default=None)
        theirs = fastest and median(column(m, fastest[0],
                                           "process_peak_bytes"))
        whole = min((cell["process_peak_bytes"] for cell in m["tried"]
                     if "process_peak_bytes" in cell and
                     cell["way"][2] == m["shape"]["batch_size"]), default=None)
        cells = [m["title"], gigabytes(ours), gigabytes(ours - both)]
        for peak in (theirs, whole):
            cells += [gigabytes(peak), gigabytes(peak and peak - both),
                      number(peak and (ours - both) / (peak - both), "{:.2f}")]
        lines.append("| " + " | ".join(cells) + " |")
    return lines


def way_name(way):
    mode, loss, micro = way
    how = {"logits": "", "chunked": ", chunked loss"}[loss]
    return f"{mode}{how}, micro-batch {micro}"


def ways_table(result):
    lines = ["| model | PyTorch | tokens/s | evaluation, tokens/s | peak | "
             "before the first tensor |", "|---|---|---|---|---|---|"]
    for m in models(result):
        for cell in m["tried"]:
            if "failed" in cell:
                rest = [f"could not be run: {cell['failed']}", "-", "-", "-"]
            else:
                rest = [number(cell["tokens_per_second"]),
                        number(cell["eval_tokens_per_second"]),
                        gigabytes(cell["process_peak_bytes"]),
                        gigabytes(cell["after_import_bytes"])]
            lines.append("| " + " | ".join(
                [m["title"], way_name(cell["way"]), *rest]) + " |")
    return lines


def products_summary(result, part):
    data = result.get(part)
    if not data:
        return ["Not measured."]
    sides = list(data["share_of_peak"])
    titles = {"plimsoll": "Plimsoll", **data["versions"]}
    lines = ["| rows | C | " + " | ".join(titles[s] for s in sides) + " |",
             "|---|---|" + "---|" * len(sides)]

    def total(chosen, side):
        work = [(2.0 * p["rows"] * p["in"] * p["out"],
                 p[side]["share_of_peak"]) for p in chosen]
        return sum(f for f, _ in work) / sum(f / s for f, s in work)

    groups = sorted({(p["rows"], p["C"]) for p in data["products"]})
    for rows, C in groups:
        chosen = [p for p in data["products"]
                  if (p["rows"], p["C"]) == (rows, C)]
        lines.append(f"| {rows} | {C} | " + " | ".join(
            f"{total(chosen, s):.1%}" for s in sides) + " |")
    lines.append("| all | all | " + " | ".join(
        f"**{data['share_of_peak'][s]:.1%}**" for s in sides) + " |")
    for name, why in data["missing"].items():
        lines += ["", f"Could not be run: {name} ({why})."]
    return lines


def products_table(result, part):
    data = result.get(part)
    if not data:
        return ["Not measured."]
    peers = list(data["versions"])
    head = ["rows", "C", "product", "pass", "Plimsoll", *peers]
    lines = ["| " + " | ".join(head + ["ours / best"]) + " |",
             "|---|---|---|---|" + "---|" * (len(peers) + 2)]
    for p in data["products"]:
        best = min((p[peer]["ratio"] for peer in peers), default=None)
        lines.append("| " + " | ".join(
            [str(p["rows"]), str(p["C"]), p["name"], p["pass"]] +
            [f"{p[side]['share_of_peak']:.0%}"
             for side in ["plimsoll", *peers]] +
            [number(best, "{:.2f}")]) + " |")
    return lines


def machine_text(result):
    it = result["machine"]
    versions = set()
    for m in models(result):
        versions |= {cell["torch"] for cell in m["tried"] if "torch" in cell}
    libraries = list(result.get("products", {}).get("versions", {}).values())
    kernels = {turn["plimsoll"].get("kernels") for m in models(result)
               for turn in m["turns"]} - {None}
    return [
        f"- processor: {it['processor']}, {it['threads']} threads, "
        f"instruction sets allowed: {it['isa']}; "
        f"flags: {', '.join(it['flags'])}",
        f"- memory: {it['memory_bytes'] / 2**30:.0f} GiB; "
        f"Linux {it['linux']}, {it['libc']}",
        f"- Plimsoll: {', '.join(sorted(kernels)) or 'not measured'} kernels, "
        f"built with {it['compiler']}",
        f"- PyTorch: {', '.join(sorted(versions)) or 'could not be run'}, "
        f"Python {it['python']}",
        f"- libraries: {'; '.join(libraries) or 'not measured'}",
    ]


def tables(o):
    with open(o.result) as file:
        result = json.load(file)
    parts = {
        "machine": machine_text(result),
        "training": rate_table(result, "tokens_per_second",
                               "train_flops_per_token"),
        "evaluation": rate_table(result, "eval_tokens_per_second",
                                 "eval_flops_per_token"),
        "memory": memory_table(result),
        "bfloat16": half_table(result),
        "own": own_table(result),
        "settings": settings_table(result),
        "ways": ways_table(result),
        "products": products_summary(result, "products"),
        "products in bfloat16": products_summary(result, "products-bfloat16"),
        "every product": products_table(result, "products"),
        "every product in bfloat16": products_table(result,
                                                    "products-bfloat16"),
    }
    with open(o.page) as file:
        lines = file.read().splitlines()
    out, inside, found = [], False, set()
    for line in lines:
        if line == "<!-- end -->":
            inside = False
        if not inside:
            out.append(line)
        if line.startswith("<!-- begin: "):
            name = line[len("<!-- begin: "):-len(" -->")]
            if name not in parts:
                sys.exit(f"compare: {o.page}: no table is called {name!r}")
            found.add(name)
            out += ["", *parts[name], ""]
            inside = True
    if inside or found != set(parts):
        sys.exit(f"compare: {o.page}: markers are missing: "
                 f"{', '.join(sorted(set(parts) - found)) or 'the last end'}")
    with open(o.page + ".new", "w") as file:
        file.write("\n".join(out) + "\n")
    os.replace(o.page + ".new", o.page)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    m = commands.add_parser("measure")
    m.add_argument("--build", required=True, help="folder of the programs")
    m.add_argument("--out", required=True, help="results; others stay in it")
    m.add_argument("--only", action="append", choices=PARTS,
                   help="a part of the whole; may be given repeatedly")
    m.add_argument("--rounds", type=int, default=3, help="turns per model")
    m.add_argument("--product_rounds", type=int, default=5)
    m.add_argument("--most_products", type=int, default=0)
    m.add_argument("--seconds", type=float, default=20.0,
                   help="of training per cell, at least one step")
    m.add_argument("--limit", type=float, default=1800.0,
                   help="seconds after which a cell is given up")
    m.add_argument("--threads", type=int,
                   default=len(os.sched_getaffinity(0)))
    m.add_argument("--isa", default="", choices=["", *ISA],
                   help="the highest instruction set of all sides")
    m.add_argument("--ours", action="append", default=[],
                   help="a further argument of plimsoll bench")
    m.add_argument("--torch_env", action="append", default=[],
                   metavar="NAME=VALUE",
                   help="a further environment variable of PyTorch's cells")
    t = commands.add_parser("tables")
    t.add_argument("result")
    t.add_argument("page")
    o = parser.parse_args()
    (measure if o.command == "measure" else tables)(o)


if __name__ == "__main__":
    main()
