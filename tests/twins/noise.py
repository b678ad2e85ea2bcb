"""Second opinions on the noise: plain-Python twins of the kernels, forced words, slow samplers.

The twins work on Python integers, without wrap-around, so an overflow in a kernel shows as a
difference. The slow samplers share no code and no construction with the laws they stand beside.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from fractions import Fraction

import numpy as np

from tidegauge.noise.gaussian import RoundedGaussian
from tidegauge.noise.laplace import DiscreteLaplace
from tidegauge.noise.randomness import AesWords, Words
from tidegauge.testing import SeededWords

M64 = (1 << 64) - 1
BELOW, ABOVE = (1 << 25) + (1 << 22), 1 << 22
FACTORIAL = [M64, M64, *((1 << 64) // f for f in (2, 6, 24, 120, 720, 5040, 40320, 362880))]


class ForcedWords(Words):
    """Words of a fixed key, except where ``force(cell, coordinate, attempt, block)`` gives some."""

    def __init__(self, force: Callable[[int, int, int, int], tuple[int, int] | None]) -> None:
        self._words = AesWords(bytes(range(32)))
        self._force = force
        self.filled: list[tuple[int, int, int, int]] = []

    def fill(self, inputs, outputs):
        self._words.fill(inputs, outputs)
        for row, (cell, high) in enumerate(inputs.tolist()):
            number = (cell, high >> 20, high >> 4 & 0xFFFF, high & 15)
            self.filled.append(number)
            forced = self._force(*number)
            if forced is not None:
                outputs[row] = forced

    def check_live(self):
        self._words.check_live()

    def scratch(self, count):
        return self._words.scratch(count)

    def close(self):
        self._words.close()


class SeededCounter(ForcedWords):
    """Words of a seed that count how often a single number is asked for: by the resolver."""

    def __init__(self, seed: int) -> None:
        super().__init__(lambda *_: None)
        self._words = SeededWords(seed)
        self.single = 0

    def fill(self, inputs, outputs):
        self._words.fill(inputs, outputs)
        self.single += len(inputs) == 1


# ------------------------------------------------------------------ twins of the kernels


def number_lanes(coordinates, cells, lanes, attempt, blocks):
    return [
        [lane % cells, int(coordinates[lane // cells]) << 20 | attempt << 4 | block]
        for lane in lanes
        for block in range(blocks)
    ]


def same_key_until(inputs, start, cell_bits, coordinate_bits):
    keys = [(c >> cell_bits, h >> (coordinate_bits + 20)) for c, h in inputs]
    return next((i for i in range(start, len(keys)) if keys[i] != keys[start]), len(keys))


def look_up(u, table):
    """The first entry that is at least u, and whether u is that entry."""
    k = next(k for k, entry in enumerate(table) if u <= entry)
    return k, u == table[k]


def exp_minus(x):
    r = FACTORIAL[9]
    for n in range(8, -1, -1):
        r = FACTORIAL[n] - (x * r >> 64)
    return r


def probability(b, x, inverse):
    """The kernel's exponent and acceptance probability, in units of 2**-64."""
    f = b >> 24 << 24 | 1 << 23
    g = f * inverse >> 64
    exponent = (f * g >> 64 >> 13) + ((2 * x << 51) * g >> 64)
    return exponent, exp_minus(exponent)


def rounded_gaussian(words, table, shift, inverse, below=BELOW, above=ABOVE):
    """(draw, "rejected" or "undecided") of each lane."""
    for lane in words:
        a, b = lane[:2]
        x, tie = look_up(a >> 16, table)
        exponent, p = probability(b, x, inverse)
        w = (a & 0xFFFF) << 48 | (b & 0x7FFFFF) << 25
        sure = w + below <= M64 - exponent or w + below <= p
        if tie or not (sure or w >= p + above):
            yield "undecided"
        elif not sure:
            yield "rejected"
        else:
            y, bits = b >> 24, 40
            if shift >= 40:
                y, bits = y << 64 | lane[2], 104
            exact = Fraction((x << bits) + y, 1 << bits) * Fraction(2) ** shift
            draw = math.floor(exact + Fraction(1, 2))
            yield -draw if b >> 23 & 1 else draw


def discrete_laplace(words, negative, tables, digits):
    """Words of 32 bits: sign, digits, top."""
    for lane in words:
        undecided, total = lane[0] == negative, 0
        for d in range(digits + 1):
            k, tie = look_up(lane[1 + d], tables[d])
            undecided |= tie and (d == digits or k < 255)
            total += k * 256**d
        yield "undecided" if undecided else -1 - total if lane[0] < negative else total


def attempt(law, words: np.ndarray) -> list[int | str]:
    """One attempt of a law by its twin; words of shape (n, 2 blocks)."""
    if isinstance(law, DiscreteLaplace):
        negative, tables, _ = law._tables
        parts = [[w >> s & 0xFFFFFFFF for w in lane for s in (0, 32)] for lane in words.tolist()]
        return list(discrete_laplace(parts, int(negative), tables.tolist(), law.digits))
    table = law._tables[0].tolist()
    return list(rounded_gaussian(words.tolist(), table, law._shift, int(law._inverse)))


def kernel_attempt(law, words: np.ndarray) -> list[int | str]:
    """The same by the compiled kernel."""
    n = len(words)
    values, pending = np.zeros(n, dtype=np.int64), np.empty(n, dtype=np.int64)
    none = np.empty(0, dtype=np.int64)
    count = law.attempt(np.ascontiguousarray(words), values, 0, none, pending)
    result: list[int | str] = values.tolist()
    for lane in pending[: abs(count)].tolist():
        assert result[max(lane, -1 - lane)] == 0
        result[max(lane, -1 - lane)] = "undecided" if lane < 0 else "rejected"
    assert ("undecided" in result) == (count < 0)
    return result


# ------------------------------------------------------------------ slow samplers


def bernoulli_exp(rng: random.Random, x: Fraction) -> bool:
    """True with probability exp(-x), by von Neumann's series; uses only integers."""
    while x > 1:
        if not bernoulli_exp(rng, Fraction(1)):
            return False
        x -= 1
    k = 1
    while rng.randrange(x.denominator * k) < x.numerator:
        k += 1
    return k % 2 == 1


def slow_laplace(rng: random.Random, scale: Fraction) -> int:
    """Discrete Laplace: geometric as whole scales and a remainder (Canonne et al. 2020, Alg. 2)."""
    n, d = scale.numerator, scale.denominator
    while True:
        u = rng.randrange(n)
        if not bernoulli_exp(rng, Fraction(u, n)):
            continue
        v = 0
        while bernoulli_exp(rng, Fraction(1)):
            v += 1
        magnitude = (u + n * v) // d
        negative = rng.getrandbits(1)
        if not (negative and magnitude == 0):
            return -magnitude if negative else magnitude


def slow_discrete_gaussian(rng: random.Random, scale: Fraction) -> int:
    """Discrete Gaussian by rejection from the discrete Laplace (Canonne et al. 2020, Alg. 3)."""
    t = int(scale) + 1
    variance = scale * scale
    while True:
        y = slow_laplace(rng, Fraction(t))
        if bernoulli_exp(rng, (abs(y) - variance / t) ** 2 / (2 * variance)):
            return y


def slow_rounded_gaussian(rng: random.Random, scale: Fraction) -> int:
    """round(scale N), N by Karney 2016 (Algorithm N): whole part k, then x in [0, 1)."""
    while True:
        k = 0
        while bernoulli_exp(rng, Fraction(1, 2)):
            k += 1
        if not bernoulli_exp(rng, Fraction(k * (k - 1), 2)):
            continue
        x = Fraction(rng.getrandbits(128), 1 << 128)
        if bernoulli_exp(rng, x * (2 * k + x) / 2):
            draw = int(scale * (k + x) + Fraction(1, 2))
            return -draw if rng.getrandbits(1) else draw


LAWS: list[RoundedGaussian | DiscreteLaplace] = [
    *(
        RoundedGaussian(Fraction(s))
        for s in (
            Fraction(1, 16),
            Fraction(1, 4),
            1,
            Fraction(12345, 1000),
            Fraction(639, 10),
            64,
            Fraction(999, 8),
            128,
            1000,
            10**6,
            Fraction(2**45 + 12345, 7),
            2**46,
            Fraction(10**15, 3),
            2**55,
        )
    ),
    *(
        DiscreteLaplace(Fraction(t))
        for t in (
            Fraction(1, 512),
            Fraction(1, 3),
            1,
            10,
            32,
            Fraction(777, 10),
            8192,
            10**6,
            2**21,
            Fraction(10**9, 7),
            10**12,
            2**50,
        )
    ),
]
