#!/usr/bin/env python3
"""Bare matrix products: our kernels, OpenBLAS, oneDNN and torch.mm (MKL where
torch has it), one after the other on operands of the same shapes, each between
two probes of the multiply-add peak.

    python3 bench/peers_gemm.py compare build/release/plimsoll_bench \\
        --rounds=5 [--dtype=bfloat16] > gemm.json
    python3 bench/peers_gemm.py serve torch|onednn|openblas

in an environment with torch, numpy and scipy-openblas32. `compare` keeps one
process for each side open and asks them in turns; `serve` is such a process,
and speaks what `plimsoll_bench --serve` does: a line "PASS LAYOUT ROWS IN OUT"
is answered by a line of JSON. A side that cannot be run is left out, with the
reason. With bfloat16 the libraries get operands that are rounded already and
leave a result that is, while ours rounds float32 weights as it packs them and
adds gradients of weights in float32; the peak is that of bfloat16's own
instruction.
"""
import argparse
import ctypes
import json
import os
import signal
import statistics
import subprocess
import sys
import time

ROWS = (1024, 4096)
CHANNELS = (384, 576, 768)
VOCABULARY = 50304
PARTS = (("qkv", "linear", 1, 3), ("projection", "linear", 1, 1),
         ("mlp up", "linear", 1, 4), ("mlp down", "linear", 4, 1),
         ("classifier", "classifier", 1, 0))
PASSES = ("forward", "dx", "dw")
BURST_SECONDS = 0.05
DISTURBED = 0.1  # probes before and after that differ more: measured again


def products():
    for rows in ROWS:
        for C in CHANNELS:
            for name, layout, inputs, outputs in PARTS:
                for which in PASSES:
                    yield {"name": name, "C": C, "pass": which,
                           "layout": layout, "rows": rows, "in": inputs * C,
                           "out": outputs * C or VOCABULARY}


def flops(p):
    return 2.0 * p["rows"] * p["in"] * p["out"]


def operands(which, layout, rows, inputs, outputs):
    """(M, N, K, A transposed, B transposed, added to C) of a product; a linear
    layer's weight lies as [in, out], the classifier's as [out, in]."""
    linear = layout == "linear"
    if which == "forward":
        return rows, outputs, inputs, False, not linear, False
    if which == "dx":
        return rows, inputs, outputs, False, linear, False
    if linear:
        return inputs, outputs, rows, True, False, True
    return outputs, inputs, rows, True, False, True


# ---- one side ----


def torch_version(torch, library):
    """Of what torch was built with: the first word that is a number."""
    for line in torch.__config__.show().splitlines():
        if library in line:
            words = (word.lstrip("v") for word in line.split())
            return next(word for word in words
                        if word[:1].isdigit()).split("-")[0]
    return "unknown"


def torch_product(threads, dtype, through="mm"):
    import torch
    dtype = getattr(torch, dtype)
    torch.set_num_threads(threads)
    torch.set_grad_enabled(False)

    def make(M, N, K, a_t, b_t, add):
        a = torch.empty((K, M) if a_t else (M, K)).uniform_(0.5, 1.0).to(dtype)
        b = torch.empty((N, K) if b_t else (K, N)).uniform_(0.5, 1.0).to(dtype)
        a = a.t() if a_t else a
        if through == "onednn":
            b = b if b_t else b.t()
            linear = torch.ops.mkldnn._linear_pointwise
            return lambda: linear(a, b, None, "none", [], "")
        b = b.t() if b_t else b
        c = torch.zeros(M, N, dtype=dtype)
        if add:
            return lambda: c.addmm_(a, b)
        return lambda: torch.mm(a, b, out=c)

    make(2, 3, 4, False, False, False)()  # fails here if there is no such way
    if through == "onednn":
        return make, f"oneDNN {torch_version(torch, 'MKL-DNN')}"
    by = (f"MKL {torch_version(torch, 'Math Kernel')}"
          if dtype == torch.float32 else
          f"oneDNN {torch_version(torch, 'MKL-DNN')}")
    return make, f"torch.mm {torch.__version__} ({by})"


def onednn_product(threads, dtype):
    """The library's product as torch's compiler calls it. It makes a new
    result each time and adds to none, which is less than the others do."""
    return torch_product(threads, dtype, "onednn")


def openblas_product(threads, dtype):
    if dtype != "float32":
        raise SystemExit(f"this build of OpenBLAS has no products of {dtype}")
    import numpy as np
    import scipy_openblas32
    folder = scipy_openblas32.get_lib_dir()
    path = next(os.path.join(folder, name) for name in os.listdir(folder)
                if name.startswith("libscipy_openblas"))
    library = ctypes.CDLL(path)
    sgemm = library.scipy_cblas_sgemm
    real, whole = ctypes.c_float, ctypes.c_int
    pointer = ctypes.c_void_p
    sgemm.argtypes = [whole] * 6 + [real, pointer, whole, pointer, whole, real,
                                    pointer, whole]
    sgemm.restype = None
    library.scipy_openblas_set_num_threads(threads)
    config = library.scipy_openblas_get_config
    config.restype = ctypes.c_char_p
    core = library.scipy_openblas_get_corename
    core.restype = ctypes.c_char_p
    row_major, plain, transposed = 101, 111, 112

    def make(M, N, K, a_t, b_t, add):
        pick = np.random.default_rng(1)
        a = pick.random((K, M) if a_t else (M, K), dtype=np.float32)
        b = pick.random((N, K) if b_t else (K, N), dtype=np.float32)
        c = np.zeros((M, N), dtype=np.float32)
        arguments = (row_major, transposed if a_t else plain,
                     transposed if b_t else plain, M, N, K, 1.0,
                     a.ctypes.data, a.shape[1], b.ctypes.data, b.shape[1],
                     1.0 if add else 0.0, c.ctypes.data, N)
        keep = (a, b, c)
        return lambda: keep and sgemm(*arguments)

    version = config().decode().split()[1]
    return make, f"OpenBLAS {version} ({core().decode()} kernels)"


SIDES = {"openblas": openblas_product, "onednn": onednn_product,
         "torch": torch_product}


def burst(run):
    """Seconds of one run, the middle of those that fit."""
    times, end = [], time.perf_counter() + BURST_SECONDS
    while not times or time.perf_counter() < end:
        began = time.perf_counter()
        run()
        times.append(time.perf_counter() - began)
    return statistics.median(times), len(times)


def serve(side, threads, dtype):
    make, version = SIDES[side](threads, dtype)
    ready, run = None, None
    for line in sys.stdin:
        words = line.split()
        if words == ["version"]:
            print(json.dumps({"version": version}), flush=True)
            continue
        which, layout = words[:2]
        rows, inputs, outputs = map(int, words[2:])
        if words != ready:
            run = None  # gives the memory back first
            run = make(*operands(which, layout, rows, inputs, outputs))
            run()
            ready = words
        seconds, runs = burst(run)
        print(json.dumps({
            "flops_per_second": 2.0 * rows * inputs * outputs / seconds,
            "runs": runs}), flush=True)


# ---- all sides ----


class Side:
    """A process that answers. Between questions it is stopped: threads of a
    library that wait for work by spinning would take the peak from the next."""

    def __init__(self, name, command):
        self.name = name
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)

    def ask(self, line):
        self.process.send_signal(signal.SIGCONT)
        try:
            self.process.stdin.write(line + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            pass
        answer = self.process.stdout.readline()
        if not answer:
            code = self.process.wait()
            raise RuntimeError(f"{self.name} ended with {code}")
        self.process.send_signal(signal.SIGSTOP)
        return json.loads(answer)

    def close(self):
        self.process.send_signal(signal.SIGCONT)
        self.process.stdin.close()
        self.process.wait()


def measure(sides, p, rounds):
    """Adds to p each side's rate and share of the peak, medians of rounds in
    which the sides alternate; the first round only fills the operands."""
    line = f"{p['pass']} {p['layout']} {p['rows']} {p['in']} {p['out']}"
    rates = {name: [] for name in sides}
    shares = {name: [] for name in sides}
    peaks, disturbed = [], 0
    names = list(sides)

    def ask(name, what):
        return sides[name].ask(what)["flops_per_second"]

    for name in names:
        ask(name, line)
    before = ask("plimsoll", "peak")
    for turn in range(rounds):
        shift = turn % len(names)
        for name in names[shift:] + names[:shift]:
            for _ in range(3):
                rate = ask(name, line)
                after = ask("plimsoll", "peak")
                if abs(after - before) <= DISTURBED * max(after, before):
                    break
                disturbed += 1
                earlier, before = before, after
            else:
                before = earlier  # never quiet: the last one, as it is
            rates[name].append(rate)
            shares[name].append(2.0 * rate / (before + after))
            peaks.append(after)
            before = after
    p["disturbed"] = disturbed
    p["peak_flops"] = statistics.median(peaks)
    for name in names:
        p[name] = {
            "flops_per_second": statistics.median(rates[name]),
            "share_of_peak": statistics.median(shares[name]),
            "ratio": statistics.median(
                ours / theirs for ours, theirs in
                zip(shares["plimsoll"], shares[name])),
        }


def total(rows, name):
    """Shares weighted so that times add up."""
    return (sum(map(flops, rows)) /
            sum(flops(p) / p[name]["share_of_peak"] for p in rows))


def compare(o):
    ours = [o.program, str(o.threads), o.dtype, "--serve"]
    sides = {"plimsoll": Side("plimsoll", ours)}
    versions, missing = {}, {}
    for name in SIDES:
        side = Side(name, [sys.executable, __file__, "serve", name,
                           f"--threads={o.threads}", f"--dtype={o.dtype}"])
        try:
            versions[name] = side.ask("version")["version"]
            sides[name] = side
        except RuntimeError as error:
            missing[name] = str(error)
    rows = [p for p in products() if not o.only or o.only in p["name"]]
    rows = rows[:o.most or len(rows)]
    for i, p in enumerate(rows):
        print(f"\rproducts: {i + 1} of {len(rows)}", end="", file=sys.stderr,
              flush=True)
        measure(sides, p, o.rounds)
    print(file=sys.stderr)
    for side in sides.values():
        side.close()
    json.dump({"threads": o.threads, "dtype": o.dtype, "rounds": o.rounds,
               "versions": versions, "missing": missing, "products": rows,
               "share_of_peak": {name: total(rows, name) for name in sides}},
              sys.stdout, indent=1)
    print()


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    one = commands.add_parser("serve")
    one.add_argument("side", choices=sorted(SIDES))
    both = commands.add_parser("compare")
    both.add_argument("program")
    both.add_argument("--rounds", type=int, default=5)
    both.add_argument("--only", default="", help="products of this name")
    both.add_argument("--most", type=int, default=0, help="so many products")
    for each in (one, both):
        each.add_argument("--threads", type=int,
                          default=len(os.sched_getaffinity(0)))
        each.add_argument("--dtype", choices=("float32", "bfloat16"),
                          default="float32")
    o = parser.parse_args()
    if o.command == "serve":
        serve(o.side, o.threads, o.dtype)
    else:
        compare(o)


if __name__ == "__main__":
    main()
