"""Where the numbers of mma.m16n8k16 lie in a warp, beside tinygrad's emulation
of CUDA's tensor cores: its fragments, multiplied by ours, are the product; and
what our kernels read from a tile in local memory are its fragments. (tinygrad
has no ldmatrix: the tiles are read by the emulator's.)

The emulator's program is $FRAGMENTS. tinygrad is made to run a product of
bfloat16 on its own emulator, which tells how it finds an element."""
import os
import struct
import subprocess
import sys

os.environ["DEV"] = "PYTHON::sm_80"
os.environ["TC"] = "1"
os.environ["TC_OPT"] = "2"

import numpy as np
import tinygrad.runtime.ops_python as peer
from tinygrad import Tensor, dtypes


def peers_maps():
    """a_elem, b_elem and c_map of tinygrad, for 16 x 8 x 16."""
    seen = {}
    real = peer.generic_wmma_helper

    def spy(inp, warp, threads, K, n_a, n_b, n_c, a, b, c):
        seen[(K, n_a, n_b, n_c)] = (a, b, c)
        return real(inp, warp, threads, K, n_a, n_b, n_c, a, b, c)
    peer.generic_wmma_helper = spy
    a = Tensor(np.ones((16, 16), np.float32)).cast(dtypes.bfloat16)
    b = Tensor(np.ones((16, 8), np.float32)).cast(dtypes.bfloat16)
    a.matmul(b, dtype=dtypes.float32).numpy()
    if (16, 8, 4, 4) not in seen:
        sys.exit(f"tinygrad used no tensor core of 16 x 8 x 16: {seen}")
    return seen[(16, 8, 4, 4)]


class Where:
    """Stands for the numbers of a warp: x[element][item] is that place."""

    def __getitem__(self, element):
        class Items:
            def __getitem__(_, item):
                return element, item
        return Items()


def bits(x):
    return struct.unpack("<I", struct.pack("<f", x))[0] >> 16


def ours(what, words):
    text = "\n".join(f"{w:x}" for w in words)
    out = subprocess.run([os.environ["FRAGMENTS"], what], input=text, text=True,
                         check=True, stdout=subprocess.PIPE).stdout
    return np.array([int(w, 16) for w in out.split()], np.uint32).reshape(32, 4)


def main():
    a_elem, b_elem, c_map = peers_maps()
    rng = np.random.default_rng(1)
    A = rng.integers(-8, 9, (16, 16)).astype(np.float32)
    B = rng.integers(-8, 9, (16, 8)).astype(np.float32)
    a = np.zeros((32, 4), np.uint32)
    b = np.zeros((32, 2), np.uint32)
    for k in range(16):
        for row in range(16):
            element, item = a_elem(Where(), k, row, 0)
            a[item, element // 2] |= np.uint32(bits(A[row, k]) <<
                                               16 * (element % 2))
        for column in range(8):
            element, item = b_elem(Where(), column, k, 0)
            b[item, element // 2] |= np.uint32(bits(B[k, column]) <<
                                               16 * (element % 2))
    sums = ours("mma", [*a.ravel(), *b.ravel()]).view(np.float32)
    C = np.zeros((16, 8), np.float32)
    for item in range(32):
        for element in range(4):
            column, row = c_map(item, element)
            C[row, column] = sums[item, element]
    assert (C == A @ B).all(), "the product is another"
    print("mma.m16n8k16: 128 sums of tinygrad's fragments are the product")

    lines = [bits(A[n // 16, n % 16]) for n in range(256)]
    words = [lines[i] | lines[i + 1] << 16 for i in range(0, 256, 2)]
    for what in ("a", "a_turned"):
        assert (ours(what, words) == a).all(), f"{what}: other fragments"
    both = np.concatenate([B, B[:, ::-1]], axis=1).T  # two matrices of 8 lines
    lines = [bits(both[n // 16, n % 16]) for n in range(256)]
    words = [lines[i] | lines[i + 1] << 16 for i in range(0, 256, 2)]
    for what in ("b", "b_turned"):
        got = ours(what, words)
        assert (got[:, :2] == b).all(), f"{what}: other fragments"
    print("ldmatrix of tiles, of lines and turned: tinygrad's fragments")


if __name__ == "__main__":
    main()
