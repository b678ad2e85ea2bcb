r"""The order of scores under Gumbel noise, exactly: the noise itself is never rounded to a number.

Score ``h_i`` has the key :math:`h_i / s - \ln(-\ln(1 - V_i))`, V uniform in [0, 1): the largest
key is the exponential mechanism's pick, with probability proportional to :math:`e^{h_i / s}`, and
the order of all keys is that of picking one after another without putting back. A key is a real
number with infinitely many bits of its V, of which the first 64 give a certified bracket in doubles
(``_kernels.gumbel_keys``). Keys whose brackets meet are compared exactly:

.. math:: h_i \ge h_j: \quad \text{i before j} \iff a_i e^{-(h_i - h_j) / s} < a_j,
          \qquad a = -\ln(1 - V),

by integer brackets, reading on in both V until they are apart. Proof: docs/proofs/selection.md.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cmp_to_key, partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tidegauge.compiled import lazy_module
from tidegauge.errors import InvalidParameter
from tidegauge.noise.intervals import exp_bracket, log_bracket
from tidegauge.noise.law import check_scale
from tidegauge.noise.randomness import Words
from tidegauge.noise.resolver import Tape, Uniform

if TYPE_CHECKING:
    from tidegauge.noise import _kernels
else:
    _kernels = lazy_module("tidegauge.noise._kernels")

__all__ = ["LARGEST_SCALE", "LEAST_SCALE", "gumbel_order"]

LEAST_SCALE, LARGEST_SCALE = Fraction(1, 512), Fraction(1 << 50)
_LARGEST_SCORE = 1 << 61
_BITS = 128
_GUARD = 32
_FAR = 4096

Int64 = NDArray[np.int64]
Key = tuple[int, Uniform, int]
"""A score, its V and its place."""


def gumbel_order(words: Words, scores: Int64, scale: Fraction, coordinate: int) -> Int64:
    r"""Return the places of scores with Gumbel noise of a scale added, the largest first.

    Guarantee:
        The first k places are k picks of the exponential mechanism, each among those left with
        probability proportional to :math:`e^{score / scale}`, exactly. If neighbors' scores all
        move by 0 to d, or all by -d to 0, a pick is (d / scale)-bounded-range and so
        :math:`d^2 / (8\,scale^2)`-zCDP; if they move by -d to d, four times that.

    Args:
        words: The source; its key must serve this purpose and scale only.
        scores: Integers below 2**61 in size, shape (n,), int64.
        scale: s in units of the scores, a Fraction in [1/512, 2**50].
        coordinate: Number of this order; never twice under one source.

    Returns:
        int64 of shape (n,).

    Raises:
        InvalidParameter: A score or the scale is out of range.
        LiveState: The words are closed or belong to another process.

    Cost:
        About 0.2 microseconds a score, of which most is sorting; one 128-bit word each.

    Examples:
        >>> from tidegauge.noise.randomness import open_words
        >>> words = open_words("example", "gumbel order", Fraction(1))
        >>> gumbel_order(words, np.array([0, 1000, 500]), Fraction(1), 0)
        array([1, 2, 0])

    References:
        McSherry and Talwar 2007 (the exponential mechanism); Durfee and Rogers 2019 (its order).
    """
    check_scale(scale, LEAST_SCALE, LARGEST_SCALE, "1/512", "2**50")
    n = len(scores)
    if not n:
        return np.empty(0, np.int64)
    top = int(scores.max())
    if max(top, -int(scores.min())) >= _LARGEST_SCORE:
        raise InvalidParameter(
            "Expected scores below 2**61 in size, got a larger one. Their differences would leave "
            "int64. Count in a coarser unit."
        )
    inputs, outputs = np.empty((n, 2), np.uint64), np.empty((n + 1, 2), np.uint64)
    _kernels.number_range(np.array([coordinate]), np.arange(n), 0, n, 1, inputs)
    words.fill(inputs, outputs)
    low, high = np.empty(n), np.empty(n)
    _kernels.gumbel_keys(outputs[:n], scores, top, float(1 / Fraction(scale)), low, high)
    order = np.argsort(-high, kind="stable")
    # a new group begins where everything before certainly lies above everything from here on
    apart = np.minimum.accumulate(low[order])[:-1] > high[order[1:]]
    if not apart.all():
        _resolve(
            order,
            np.flatnonzero(np.concatenate(([True], apart, [True]))),
            words,
            scores,
            outputs,
            Fraction(scale),
            coordinate,
        )
    return order


def _resolve(
    order: Int64,
    starts: Int64,
    words: Words,
    scores: Int64,
    outputs: NDArray[np.uint64],
    scale: Fraction,
    coordinate: int,
) -> None:
    """Sort each group of places whose brackets meet, in place, by exact comparisons."""
    for start in np.flatnonzero(np.diff(starts) > 1).tolist():
        group = slice(int(starts[start]), int(starts[start + 1]))
        keys = []
        for place in order[group].tolist():
            value = int(outputs[place, 0]) << 64 | int(outputs[place, 1])
            tape = Tape(words, place, coordinate, 0, 1)
            keys.append((int(scores[place]), Uniform(value, _BITS, tape), place))
        keys.sort(key=cmp_to_key(partial(compared, scale)))
        order[group] = [place for _, _, place in keys]


def compared(scale: Fraction, one: Key, other: Key) -> int:
    """Return -1 if the first key is certainly the larger one, else 1; equal keys never occur."""
    if one[2] == other[2]:
        return 0
    if one[0] < other[0]:
        return -compared(scale, other, one)
    gap = (one[0] - other[0]) / scale
    mine, theirs = one[1], other[1]
    while True:
        bits = max(mine.bits, theirs.bits) + _GUARD
        least, most = exp_bracket(min(gap, Fraction(_FAR)), bits)
        if gap > _FAR:  # what is below that far tail has the same bits to begin with
            least = 0
        a_low, a_high = _minus_log(mine, bits)
        b_low, b_high = _minus_log(theirs, bits)
        if a_high is not None and a_high * most < b_low << bits:
            return -1
        if b_high is not None and a_low * least > b_high << bits:
            return 1
        (mine if mine.bits <= theirs.bits else theirs).extend()


def _minus_log(v: Uniform, bits: int) -> tuple[int, int | None]:
    """Bracket ``-ln(1 - V)`` in units of 2**-bits; None: without an upper end."""
    whole = 1 << v.bits
    low = log_bracket(Fraction(whole, whole - v.value), bits)[0]
    rest = whole - v.value - 1
    return low, log_bracket(Fraction(whole, rest), bits)[1] if rest else None
