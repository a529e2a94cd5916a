#!/usr/bin/env python3
"""What a compiled kernel's inner loops consist of.

    nvcc -arch=sm_89 -fmad=false -cubin -o gpu.cubin gpu.cu
    tools/gpu_loops.py gpu.cubin [KERNEL...]

For each loop (a backward branch) without another one in it that has at least
32 multiply-adds: instructions, the share of FFMA, and its accesses to memory.
Needs cuobjdump, which comes with nvcc. `--check` ends with 1 if a product's or
attention's loop is below what docs/gpu.md promises.
"""
import argparse
import re
import shutil
import subprocess
import sys

LEAST = {"gemm_nn": 0.85, "gemm_tn": 0.85, "gemm_tt": 0.85,
         "attention": 0.60, "attention_wide": 0.60, "attention_dq": 0.60,
         "attention_dkv": 0.60}


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


def loops(code):
    """Bodies of innermost loops, as lists of opcodes."""
    place = {address: i for i, (address, _) in enumerate(code)}
    spans = []
    for i, (address, text) in enumerate(code):
        found = re.search(r"\bBRA\b.*?(0x[0-9a-f]+)", text)
        if found:
            begin = int(found.group(1), 16)
            if begin < address and begin in place:
                spans.append((place[begin], i))
    for begin, end in spans:
        inner = any(b >= begin and e <= end and (b, e) != (begin, end)
                    for b, e in spans)
        if not inner:
            yield [opcode(text) for _, text in code[begin:end + 1]]


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("cubin")
    parser.add_argument("kernel", nargs="*")
    parser.add_argument("--check", action="store_true")
    o = parser.parse_args()
    if not shutil.which("cuobjdump"):
        sys.exit("gpu_loops: cuobjdump is not here; it comes with nvcc")
    code, bad = kernels(o.cubin), []
    names = o.kernel or [n for n in LEAST if n in code]
    for name in names:
        if name not in code:
            sys.exit(f"gpu_loops: {o.cubin} has no kernel {name}")
        for body in loops(code[name]):
            fused = sum(op.startswith("FFMA") for op in body)
            if fused < 32:
                continue
            share = fused / len(body)
            others = {}
            for op in body:
                if re.match(r"(LDS|STS|LDG|STG|LDL|STL|BAR)", op):
                    others[op] = others.get(op, 0) + 1
            print(f"{name}: {len(body)} instructions, FFMA {share:.1%}, "
                  + ", ".join(f"{op} {n}" for op, n in sorted(others.items())))
            if share < LEAST.get(name, 0.0):
                bad.append(f"{name}: {share:.1%} of a loop are FFMA, expected "
                           f"at least {LEAST[name]:.0%}")
            narrow = [op for op in body if op.startswith("LDS")
                      and not op.startswith("LDS.128")]
            if name.startswith("gemm") and narrow and name in LEAST:
                bad.append(f"{name}: {narrow[0]} in the inner loop")
    for line in bad:
        print(line, file=sys.stderr)
    return 1 if o.check and bad else 0


if __name__ == "__main__":
    sys.exit(main())
