r"""Laplace noise of a scale that depends on data: real, refined until its rounding is certain.

A scale that is private rules out the laws of this package: their lattice and their tables would
tell it. So the noise is a real number, of which as many bits are read as decide what is released,

.. math:: \min(\max(\lfloor c + s Z + 1/2 \rfloor, 0), n), \qquad P(|Z| > x) = e^{-x},

one integer. Z is a sign and :math:`-\ln V` for a uniform real V of [0, 1). Where the sum lies is
found by halving [0, n]; each comparison is one of V with :math:`e^{-x}` for a rational x, decided
by certified brackets (``intervals``) that reads on in the same V where its bits do not. No float
and no table is involved, and nothing that depends on the data is cached.
"""

from __future__ import annotations

from fractions import Fraction

from tidegauge.errors import InvalidParameter
from tidegauge.noise.intervals import Brackets, exp_bracket
from tidegauge.noise.randomness import Words
from tidegauge.noise.resolver import Tape, Uniform

__all__ = ["clamped_laplace"]

_HALF = Fraction(1, 2)
_BITS = 64


def clamped_laplace(words: Words, center: Fraction, scale: Fraction, most: int) -> int:
    r"""Return the real number ``center + scale Z``, rounded to an integer and clamped.

    The law is that of a real Laplace draw, exactly, for every rational center and scale; halves
    round up. What follows from the real law (differential privacy by smooth sensitivity) therefore
    holds for what is returned: it is a post-processing. Proof: ``docs/proofs/perrier.md``.

    Args:
        words: A source for this draw alone: it has no coordinate.
        center: Where the law is centered; private, and never part of a message.
        scale: Of the law, above 0; private.
        most: The largest result.

    Raises:
        InvalidParameter: The scale is not above 0 or ``most`` is below 0; no number is shown.
        LiveState: The words are closed or belong to another process.

    Cost: log2(most) comparisons, some 20 microseconds each; how long exactly depends on the data.

    Examples:
        >>> from tidegauge.noise.randomness import open_words
        >>> clamped_laplace(open_words("example"), Fraction(10**6), Fraction(1, 3), 1000)
        1000
    """
    if not (isinstance(scale, Fraction) and scale > 0 and most >= 0):
        raise InvalidParameter(
            "Expected an exact scale above 0 and a largest result of at least 0, got another. "
            "There would be no noise, or nothing to release. Floor the scale by a constant."
        )
    tape = Tape(words, 0, 0, 0, 1)
    first, second = tape.block(0)
    negative, uniform = bool(first & 1), Uniform(second, _BITS, tape)
    low, high = 0, int(most)
    while low < high:
        middle = (low + high) // 2
        if _is_below(uniform, negative, (middle + _HALF - center) / scale):
            high = middle
        else:
            low = middle + 1
    return low


def _is_below(uniform: Uniform, negative: bool, x: Fraction) -> bool:
    """Whether Z < x, for Z of this sign and size -ln(uniform)."""
    if x >= 0:
        return negative or uniform.rank(_tail(x)) == 1  # -ln V < x: V lies above e^-x
    return negative and uniform.rank(_tail(-x)) == 0


def _tail(x: Fraction) -> Brackets:
    r"""The one threshold :math:`e^{-x}`; below a unit where x has more than as many bits."""

    def brackets(bits: int) -> tuple[list[int], list[int]]:
        if x >= bits:  # e^-x < 2^-bits, without the millions of digits of e^x
            return [0], [1]
        low, high = exp_bracket(x, bits)
        return [low], [high]

    return brackets
