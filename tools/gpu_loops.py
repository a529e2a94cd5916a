#!/usr/bin/env python3
"""What a compiled kernel's inner loops consist of.

    nvcc -arch=sm_89 -fmad=false -cubin -o gpu.cubin gpu.cu
    tools/gpu_loops.py gpu.cubin [KERNEL...]

Of each kernel's inner loop, the one with the most multiply-adds and no other
loop in it: instructions, the share of FFMA, and its accesses to memory; of
tensor cores' kernels, how many other instructions stand between two HMMA.
Needs cuobjdump, which comes with CUDA's toolkit. `--check` ends with 1 if a
product's or attention's loop is below what docs/gpu.md promises, or a kernel
spills that may not, or takes more than 48 KiB of shared memory by itself.
"""
import argparse
import re
import shutil
import statistics
import subprocess
import sys

LEAST = {"gemm_nn": 0.85, "gemm_tn": 0.85, "gemm_tt": 0.85,
         "attention": 0.60, "attention_wide": 0.60, "attention_dq": 0.60,
         "attention_dkv": 0.60}

# Other instructions between two HMMA, in the median.
MOST = {"tensor_nn": 1, "tensor_nt": 1, "tensor_tn": 1, "tensor_tt": 1,
        "attention_tensor": 1, "attention_tensor_deep": 1,
        "attention_dq_tensor": 1, "attention_dq_tensor_deep": 1,
        "attention_dkv_tensor": 4, "attention_dkv_tensor_deep": 1}


def kernels(cubin):
    text = subprocess.run(["cuobjdump", "-sass", cubin], check=True,
                          stdout=subprocess.PIPE, text=True).stdout
    code, name = {}, None
    for line in text.splitlines():
        found = re.search(r"Function : (\S+)", line)
        if found:
            name = found.group(1)
            code[name] = []
            continue
        found = re.match(r"\s+/\*([0-9a-f]{4,})\*/\s+(.*?);", line)
        if found and name:
            code[name].append((int(found.group(1), 16), found.group(2)))
    return code


def opcode(text):
    return re.sub(r"^@!?U?P\w+\s+", "", text.strip()).split()[0]


def loops(code, marks="FFMA"):
    """Bodies of loops, as lists of opcodes, without the loops in them: those
    have no instruction that is counted."""
    place = {address: i for i, (address, _) in enumerate(code)}
    ops = [opcode(text) for _, text in code]
    spans = []
    for i, (address, text) in enumerate(code):
        found = re.search(r"\bBRA\b.*?(0x[0-9a-f]+)", text)
        if found:
            begin = int(found.group(1), 16)
            if begin < address and begin in place:
                spans.append((place[begin], i))
    for begin, end in spans:
        inner = [(b, e) for b, e in spans
                 if b >= begin and e <= end and (b, e) != (begin, end)]
        if any(op.startswith(marks) for b, e in inner for op in ops[b:e + 1]):
            continue
        yield [op for i, op in enumerate(ops[begin:end + 1], begin)
               if not any(b <= i <= e for b, e in inner)]


def inner_loop(code):
    """The body with the most FFMA, or None."""
    def fused(body):
        return sum(op.startswith("FFMA") for op in body)
    best = max(loops(code), key=fused, default=[])
    return best if fused(best) >= 32 else None


def tensor_loop(code):
    """The body with the most HMMA, or None."""
    def products(body):
        return sum(op.startswith("HMMA") for op in body)
    best = max(loops(code, "HMMA"), key=products, default=[])
    return best if products(best) >= 16 else None


def gaps(body):
    """Other instructions between one HMMA and the next, round the loop."""
    at = [i for i, op in enumerate(body) if op.startswith("HMMA")]
    return [b - a - 1 for a, b in zip(at, at[1:])] + [
        len(body) - at[-1] - 1 + at[0]]


def ffma_share(body):
    return sum(op.startswith("FFMA") for op in body) / len(body)


def resources(cubin):
    """Registers, bytes of stack (spills) and of shared memory by kernel."""
    text = subprocess.run(["cuobjdump", "-res-usage", cubin], check=True,
                          stdout=subprocess.PIPE, text=True).stdout
    found = re.findall(r"Function (\S+):\s+REG:(\d+) STACK:(\d+) "
                       r"SHARED:(\d+)", text)
    return {name: {"registers": int(r), "stack": int(s), "shared": int(m)}
            for name, r, s, m in found}


def judge_loop(name, body):
    share = ffma_share(body)
    if share < LEAST.get(name, 0.0):
        yield (f"{name}: {share:.1%} of the loop are FFMA, expected at least "
               f"{LEAST[name]:.0%}")
    narrow = [op for op in body if op.startswith("LDS") and "128" not in op]
    if name.startswith("gemm") and narrow and name in LEAST:
        yield f"{name}: {narrow[0]} in the inner loop"


def judge_resources(name, use):
    if use["stack"] and not re.match(r"gemm_..(_stored)?$", name):
        yield f"{name}: {use['stack']} bytes of registers are spilled"
    if use["shared"] > 48 * 1024:
        yield f"{name}: {use['shared']} bytes of shared memory"


def show_tensor(name, body):
    """Prints a loop of tensor cores; yields what is wrong with it."""
    between = gaps(body)
    median = statistics.median(between)
    print(f"{name}: {len(body)} instructions, HMMA {len(between)}, between "
          f"two of them {median:g} others in the median, "
          f"{statistics.mean(between):.2f} on average")
    if median > MOST.get(name, median):
        yield (f"{name}: {median:g} instructions between two HMMA, expected "
               f"at most {MOST[name]}")


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("cubin")
    parser.add_argument("kernel", nargs="*")
    parser.add_argument("--check", action="store_true")
    o = parser.parse_args()
    if not shutil.which("cuobjdump"):
        sys.exit("gpu_loops: cuobjdump is not here; it comes with "
                 "CUDA's toolkit")
    code, bad = kernels(o.cubin), []
    use = resources(o.cubin)
    for name in o.kernel or [n for n in [*LEAST, *MOST] if n in code]:
        if name not in code:
            sys.exit(f"gpu_loops: {o.cubin} has no kernel {name}")
        if "tensor" in name:
            body = tensor_loop(code[name])
            bad += (show_tensor(name, body) if body
                    else [f"{name}: no loop with 16 HMMA"])
            continue
        body = inner_loop(code[name])
        if not body:
            bad.append(f"{name}: no loop with 32 FFMA")
            continue
        others = {}
        for op in body:
            if re.match(r"(LDS|STS|LDG|STG|LDL|STL|BAR)", op):
                others[op] = others.get(op, 0) + 1
        print(f"{name}: {len(body)} instructions, FFMA {ffma_share(body):.1%}, "
              + ", ".join(f"{op} {n}" for op, n in sorted(others.items())))
        bad += judge_loop(name, body)
    for name, it in use.items():
        bad += judge_resources(name, it)
    print(f"{len(use)} kernels; most registers "
          f"{max(it['registers'] for it in use.values())}, most shared memory "
          f"{max(it['shared'] for it in use.values())} bytes; "
          f"{sum(it['stack'] > 0 for it in use.values())} spill")
    for line in bad:
        print(line, file=sys.stderr)
    return 1 if o.check and bad else 0


if __name__ == "__main__":
    sys.exit(main())
