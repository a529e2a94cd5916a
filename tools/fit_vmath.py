#!/usr/bin/env python3
"""Computes the constants of src/kernels/vmath.h.

Every polynomial is a weighted minimax fit (Remez exchange on a dense grid) of
a function that Python's math module gives in double. The coefficients are
printed lowest power first, rounded to float32, with the largest weighted error
of the rounded polynomial evaluated in double.

    python3 tools/fit_vmath.py
"""
import math
import struct


def f32(x):
    """x rounded to float32."""
    return struct.unpack("f", struct.pack("f", x))[0]


def solve(a, b):
    """Gaussian elimination with partial pivoting."""
    n = len(b)
    a = [row[:] + [y] for row, y in zip(a, b)]
    for i in range(n):
        p = max(range(i, n), key=lambda r: abs(a[r][i]))
        a[i], a[p] = a[p], a[i]
        for r in range(i + 1, n):
            q = a[r][i] / a[i][i]
            for c in range(i, n + 1):
                a[r][c] -= q * a[i][c]
    x = [0.0] * n
    for i in reversed(range(n)):
        x[i] = (a[i][n] - sum(a[i][c] * x[c] for c in range(i + 1, n))) / a[i][i]
    return x


def horner(coefficients, x):
    y = 0.0
    for c in reversed(coefficients):
        y = y * x + c
    return y


def remez(f, weight, low, high, degree, points=4000):
    """Coefficients that minimise max |weight(x) * (p(x) - f(x))|."""
    grid = [0.5 * (low + high) - 0.5 * (high - low) * math.cos(math.pi * i / points)
            for i in range(points + 1)]
    values = [f(x) for x in grid]
    weights = [weight(x) for x in grid]
    usable = [i for i in range(points + 1) if weights[i] > 0]
    count = degree + 2
    reference = [usable[round(i * (len(usable) - 1) / (count - 1))]
                 for i in range(count)]
    for _ in range(50):
        rows = [[grid[i] ** d for d in range(degree + 1)] + [(-1) ** j / weights[i]]
                for j, i in enumerate(reference)]
        coefficients = solve(rows, [values[i] for i in reference])[:-1]
        error = [weights[i] * (horner(coefficients, grid[i]) - values[i])
                 for i in range(points + 1)]
        # The largest error of each run of one sign is the next reference.
        extremes = []
        for i in usable:
            if extremes and (error[i] > 0) == (error[extremes[-1]] > 0):
                if abs(error[i]) > abs(error[extremes[-1]]):
                    extremes[-1] = i
            else:
                extremes.append(i)
        while len(extremes) > count:
            extremes.pop(0 if abs(error[extremes[0]]) < abs(error[extremes[-1]])
                         else -1)
        if len(extremes) < count or extremes == reference:
            break
        reference = extremes
    return coefficients


def report(name, f, weight, low, high, degree):
    coefficients = [f32(c) for c in remez(f, weight, low, high, degree)]
    worst = max(weight(x) * abs(horner(coefficients, x) - f(x))
                for x in (low + (high - low) * i / 20000 for i in range(20001)))
    print(f"{name}: largest weighted error {worst:.2e}")
    for c in coefficients:
        print(f"    {c:.9g}f  ({c.hex()})")


def exp_rest(r):
    """(e^r - 1 - r) / r^2 by its series: no cancellation near 0."""
    term, total = 0.5, 0.0
    for k in range(3, 30):
        total += term
        term *= r / k
    return total


def tanh_rest(t):
    """(tanh(x) / x - 1) / x^2 for t = x^2."""
    if t < 1e-4:
        return -1 / 3 + t * (2 / 15 - t * 17 / 315)
    x = math.sqrt(t)
    return (math.tanh(x) / x - 1) / t


def mills_rest(a):
    """(Phi(-a) / e^(-a^2/2) - 1/2) / a."""
    if a < 1e-4:
        return -1 / math.sqrt(2 * math.pi) + a / 4
    return (0.5 * math.erfc(a * math.sqrt(0.5)) * math.exp(0.5 * a * a) - 0.5) / a


def log_rest(f):
    """(log(1 + f) - f + f^2 / 2) / f^3."""
    if abs(f) < 0.02:
        return sum((-f) ** k / (k + 3) for k in range(12))
    return (math.log1p(f) - f + f * f / 2) / f**3


def main():
    ln2 = math.log(2)
    high = round(ln2 * 2**15) / 2**15  # times an 8-bit integer: exact
    print(f"log2(e) = {f32(1 / ln2):.9g}f")
    print(f"ln2 high = {high:.9g}f, low = {f32(ln2 - high):.9g}f")
    half = ln2 / 2
    report("exp: (e^r - 1 - r) / r^2, relative to e^r", exp_rest,
           lambda r: r * r / math.exp(r), -half * 1.001, half * 1.001, 4)
    report("tanh: (tanh(x)/x - 1) / x^2 in x^2, relative", tanh_rest,
           lambda t: t, 0.0, 0.625**2, 4)
    report("normal: (Phi(-a) / e^(-a^2/2) - 1/2) / a, absolute error of Phi",
           mills_rest, lambda a: a * max(math.exp(-0.5 * a * a), 0.003), 0.0, 4.5,
           10)
    report("log: (log(1+f) - f + f^2/2) / f^3, absolute error of log", log_rest,
           lambda f: abs(f) ** 3, math.sqrt(0.5) - 1, math.sqrt(2) - 1, 8)
    print(f"1/sqrt(2 pi) = {f32(1 / math.sqrt(2 * math.pi)):.9g}f")
    print(f"sqrt(2/pi) = {f32(math.sqrt(2 / math.pi)):.9g}f")


if __name__ == "__main__":
    main()
