r"""The exact resolver: a whole attempt in plain integers, for words that a kernel cannot decide.

A uniform is a real number of [0, 1) whose first bits are a lane's own words. When they do not
decide a comparison, the *same* uniform goes on with further blocks of the same (cell, coordinate,
attempt): nothing is redrawn, so the law is exactly the one of infinitely many bits. An attempt has
at least 14 further blocks of 128 bits; needing more has probability below 2**-1000.

The resolver serves the about 2**-37 (Gaussian) and 2**-22 (Laplace) of all lanes that need it, and
is the oracle of the kernels in the tests.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from fractions import Fraction
from typing import final

import numpy as np

from tidegauge.noise import thresholds
from tidegauge.noise.intervals import Brackets, exp_bracket
from tidegauge.noise.randomness import Words

__all__ = ["Tape", "Uniform", "discrete_laplace", "rounded_gaussian"]

_GUARD = 32
_LAST_BLOCK = 15


@final
class Tape:
    """The words of one attempt of one lane, block by block.

    Args:
        words: Where the words come from.
        cell: The lane's cell.
        coordinate: The lane's coordinate.
        attempt: Number of the attempt, from 0.
        words_each: How many words the attempt itself takes; further ones extend its uniforms.
    """

    def __init__(
        self, words: Words, cell: int, coordinate: int, attempt: int, words_each: int
    ) -> None:
        self._words = words
        self._cell = cell
        self._high = coordinate << 20 | attempt << 4
        self._next = words_each

    def block(self, number: int) -> tuple[int, int]:
        """Return the two 64-bit words of a block."""
        inputs = np.array([[self._cell, self._high | number]], dtype=np.uint64)
        outputs = np.empty((2, 2), dtype=np.uint64)
        self._words.fill(inputs, outputs)
        return int(outputs[0, 0]), int(outputs[0, 1])

    def more(self) -> int:
        """Return 128 bits that nothing has used yet."""
        if self._next > _LAST_BLOCK:
            raise ArithmeticError(
                "Expected 1792 random bits to decide one draw, got none decided. Random words "
                "never do this: their source is broken, and so is the noise. Publish nothing more "
                "from it."
            )
        first, second = self.block(self._next)
        self._next += 1
        return first << 64 | second


@final
class Uniform:
    """A uniform real of [0, 1): ``value / 2**bits`` and a tail that is read when needed."""

    def __init__(self, value: int, bits: int, tape: Tape) -> None:
        self.value = value
        self.bits = bits
        self._tape = tape

    def extend(self) -> None:
        """Read 128 more bits."""
        self.value = self.value << 128 | self._tape.more()
        self.bits += 128

    def rank(self, brackets: Brackets) -> int:
        """Return how many of the increasing thresholds are at most this number."""
        while True:
            low, high = brackets(self.bits + _GUARD)
            # above every threshold whose upper end is at most the number's lower end,
            # below every one whose lower end is at least the number's upper end
            above = bisect_right(high, self.value << _GUARD)
            below = bisect_left(low, (self.value + 1) << _GUARD)
            if above == below:  # a list cut off near 1 ends above every number: never its length
                return above
            self.extend()


def rounded_gaussian(tape: Tape, shift: int, base: Fraction) -> int | None:
    """Return round(+-2**shift (x + y)), or None if the attempt is rejected (see ``gaussian``)."""
    a, b = tape.block(0)
    x = Uniform(a >> 16, 48, tape).rank(thresholds.half_gaussian(base))
    y = Uniform(b >> 24, 40, tape)
    if shift >= 40:
        y = Uniform(y.value << 64 | tape.block(1)[0], 104, tape)
    w = Uniform((a & 0xFFFF) << 23 | b & 0x7FFFFF, 39, tape)
    if not _accepted(w, y, x, base):
        return None
    drop = y.bits - shift
    draw = (x << y.bits) + y.value + (1 << drop - 1) >> drop
    return -draw if b >> 23 & 1 else draw


def _accepted(w: Uniform, y: Uniform, x: int, base: Fraction) -> bool:
    """Whether w < exp(-y (y + 2x) / (2 base^2)), reading on in both until it is certain."""
    inverse = 1 / (2 * base * base)
    while True:
        bits = max(w.bits, y.bits) + _GUARD
        small, large = Fraction(y.value, 1 << y.bits), Fraction(y.value + 1, 1 << y.bits)
        low = exp_bracket(large * (large + 2 * x) * inverse, bits)[0]
        high = exp_bracket(small * (small + 2 * x) * inverse, bits)[1]
        if (w.value + 1) << (bits - w.bits) <= low:
            return True
        if w.value << (bits - w.bits) >= high:
            return False
        (y if y.bits < w.bits else w).extend()


def discrete_laplace(tape: Tape, scale: Fraction, digits: int) -> int:
    """Return a discrete Laplace draw from its sign, digits and top (see ``laplace``)."""
    words: list[int] = []
    for block in range((digits + 5) // 4):
        for word in tape.block(block):
            words += [word & 0xFFFFFFFF, word >> 32]
    below = Uniform(words[0], 32, tape).rank(thresholds.negative(scale)) == 0
    total = 0
    for digit in range(digits):
        brackets = thresholds.geometric_digit(256**digit / scale)
        total += Uniform(words[1 + digit], 32, tape).rank(brackets) << 8 * digit
    top = thresholds.geometric(256**digits / scale)
    total += Uniform(words[1 + digits], 32, tape).rank(top) << 8 * digits
    return -1 - total if below else total
