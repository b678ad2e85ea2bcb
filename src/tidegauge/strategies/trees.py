r"""Binary trees over windows: the strategies of Bolot et al. (ICDT 2013), as block strategies.

A tree over ``2^m`` steps has m + 1 levels, its root the longest; trees stand side by side. A
window of W steps is a suffix of one tree (or of what is left of it) and a prefix of the next, so
that trees as long as the window serve it. Each is :class:`~.blocks.Blocks` with the levels and row
weights given here, so that encoding, decoding, sensitivity and proof are theirs.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from tidegauge.checks import exact, integer, shown
from tidegauge.errors import InvalidParameter, UnsupportedCombination
from tidegauge.strategies.asked import Asked
from tidegauge.strategies.blocks import Blocks
from tidegauge.strategies.decay import Decay, Running, Step, Window
from tidegauge.strategies.strategy import MOST_STEPS, Norm

__all__ = [
    "DECODINGS",
    "LONGEST_WINDOW",
    "all_window_sum",
    "build_all_window_sum",
    "build_base_mech",
    "build_binary_tree",
    "build_window_sum",
    "level_weights",
    "window_sum",
]

DECODINGS = ("root-drop", "direct", "paper")
"""How a window is put together from its two trees, the least noise first."""

LONGEST_WINDOW = 1 << 37
"""Of any tree: more would be half of all the steps that have numbers."""

_LARGEST_BETA = Fraction(7, 2)
_TOP_BITS = 16
_MOST_WEIGHT = 1 << 20
_RANGE_BITS = 62
_FINEST = 20


def window_sum(window: int, decode: str = "root-drop", lattice_bits: int = 0) -> Blocks:
    r"""Return the binary trees for windows of ``window`` steps.

    With m = ceil(log2 W) and trees of 2^m steps:

    * ``"paper"``: the root of the last tree, less its prefix, plus the prefix of this one; m + 1
      levels, at most 2 m + 1 nodes. As printed.
    * ``"direct"``: the suffix of the last tree by its own nodes; m + 1 levels, at most m + 1 nodes.
    * ``"root-drop"``: without the roots, of which only whole trees made use, by two children: m
      levels (at least 1), at most m + 1 nodes for W = 2^m; nodes are subtracted only where that
      takes fewer of them.

    Source: Bolot, Fawaz, Muthukrishnan, Nikolov and Taft, "Private decayed predicate sums on
    streams" (ICDT 2013), Algorithm 1, for windows of any length. Before the first tree there is
    nothing, and no noise of it. Proof: docs/proofs/bolot_windows.md.

    Args:
        window: Steps; at most 2^37.
        decode: One of :data:`DECODINGS`.
        lattice_bits: See :class:`~.blocks.Blocks`.

    Raises:
        InvalidParameter: A parameter is out of range.

    Examples:
        >>> window_sum(8).levels, window_sum(8, "paper").levels
        ((1, 2, 4), (1, 2, 4, 8))
        >>> import numpy as np
        >>> window_sum(8, "paper").variance_gain(Window(8), np.arange(9, 17)).astype(int).tolist()
        [3, 3, 5, 3, 5, 5, 7, 1]
    """
    why = "A window is a whole number of steps. Give its length."
    integer("window", window, low=1, high=LONGEST_WINDOW, why=why)
    if decode not in DECODINGS:
        raise InvalidParameter(
            f"Expected decode to be one of {shown(DECODINGS)}, got {shown(decode)}. Nothing else "
            "is proved. Leave it out for the least noise."
        )
    height = (window - 1).bit_length()
    count = max(1, height) if decode == "root-drop" else height + 1
    levels = tuple(1 << level for level in range(count))
    return Blocks(levels, decode == "root-drop", lattice_bits, printed=decode == "paper")


def level_weights(count: int, beta: Fraction, top: int) -> tuple[int, ...]:
    r"""Return integers in the proportion k^-beta for the levels k = 1 .. ``count``.

    Level k then has the share ``w_k / sum(w)`` of the budget, and the noise of Laplace scale
    ``sum(w) / (w_k epsilon)``: with the zeta function in place of the sum, as printed. Rounded to
    integers, of which the last is ``top``, or less to keep the first within 2^20.

    Examples:
        >>> level_weights(4, Fraction(2), top=1)
        (16, 4, 2, 1)
    """
    top = max(1, min(top, int(_MOST_WEIGHT / count ** float(beta))))
    return tuple(round(top * (count / k) ** float(beta)) for k in range(1, count + 1))


def all_window_sum(
    beta: float | Fraction,
    steps: int | None = None,
    *,
    printed: bool = False,
    lattice_bits: int = 0,
    most: int = 1 << 20,
) -> Blocks:
    r"""Return one binary tree for windows of every length at once, at any step.

    Level k (leaves are 1) has the share k^-beta of the budget, so that the noise of a window
    depends on its own length and hardly on the stream's: variance
    O(log^(2 beta + 1) W / epsilon^2). A stream of unknown length needs beta > 1, for shares that
    have a sum; 38 levels serve every stream of at most 2^38 steps. The tree grows by a level when
    it is full: the new root takes over the old root's exact total, which is kept, and gets noise
    of its own.

    Source: Bolot et al. 2013, Algorithm 2, with windows of any length: where the window begins in
    the tree in which it ends, the printed formula is undefined; the difference of the two prefixes
    stands there. Proof: docs/proofs/bolot_windows.md.

    Args:
        beta: How fast shares fall; above 1, or above 0 where ``steps`` is given; at most 3.5.
        steps: The length of the stream, if known: shares are then of its levels alone.
        printed: Windows by the printed formula, which takes up to twice the nodes.
        lattice_bits: See :class:`~.blocks.Blocks`.
        most: The largest total of a step, in grains, that has to be represented: the smaller,
            the closer the integer weights come to the shares.

    Raises:
        InvalidParameter: A parameter is out of range.

    Examples:
        >>> all_window_sum(1, steps=15).weights
        (262144, 131072, 87381, 65536)
    """
    why = "Shares k^-beta of endlessly many levels have a sum only above 1. Use 1.5."
    value = exact("beta", beta, above=1 if steps is None else 0, why=why)
    if value > _LARGEST_BETA:
        raise InvalidParameter(
            f"Expected beta of at most {float(_LARGEST_BETA)}, got {shown(beta)}. The largest "
            "levels would get next to nothing. Use 1.5."
        )
    if steps is not None:
        why = "The number of levels follows from it. Leave it out if it is unknown."
        integer("steps", steps, low=1, high=MOST_STEPS, why=why)
    count = min(steps or MOST_STEPS, LONGEST_WINDOW).bit_length()
    levels = tuple(1 << level for level in range(count))
    room = _RANGE_BITS - lattice_bits - (most - 1).bit_length() - (count - 1)
    weights = level_weights(count, value, 1 << max(0, min(_TOP_BITS, room)))
    return Blocks(levels, False, lattice_bits, weights, printed)


def build_binary_tree(asked: Asked) -> Blocks:
    """Return the binary mechanism for running sums: BaseMech in base 2.

    Source: Chan, Shi and Song 2011; Perrier, Asghar and Kaafar (NDSS 2019), whose log2 n levels
    are one too few wherever n is a power of two. Proof: docs/proofs/blocks.md.

    Raises:
        UnsupportedCombination: A view is another, or the stream has no end.
    """
    return build_base_mech(asked)


def build_window_sum(asked: Asked, *, decode: str = "root-drop") -> Blocks:
    """The builder of :func:`window_sum` for a gauge whose views are windows.

    Raises:
        UnsupportedCombination: They are not.
    """
    windows = _windows(asked.views, "WindowSum")
    longest = max(view.steps for view in windows)
    if longest > LONGEST_WINDOW:
        raise UnsupportedCombination(
            f"Expected windows of at most {LONGEST_WINDOW} steps, got one of {longest}. WindowSum "
            "keeps blocks of all its sizes. Leave the strategy out."
        )
    plain = window_sum(longest, decode)
    return window_sum(longest, decode, _lattice_bits(asked, plain.levels[-1]))


def build_all_window_sum(
    asked: Asked, *, beta: Fraction = Fraction(3, 2), printed: bool = False
) -> Blocks:
    """The builder of :func:`all_window_sum` for a gauge with a window or a running sum.

    Other views are read from the leaves.

    Raises:
        UnsupportedCombination: There is none.
    """
    if not any(isinstance(view, Window | Running) for view in asked.views):
        raise UnsupportedCombination(
            f"Expected a view that is a window, got {shown([view.name for view in asked.views])}. "
            "AllWindowSum is made for sums. Leave the strategy out, or add a window."
        )
    steps = None if asked.end is None else min(asked.end, MOST_STEPS)
    plain = all_window_sum(beta, steps, most=asked.most)
    bits = _lattice_bits(asked, int(plain.absolute_gain))
    return all_window_sum(beta, steps, printed=printed, lattice_bits=bits, most=asked.most)


def build_base_mech(asked: Asked, *, base: Fraction = Fraction(2)) -> Blocks:
    """The builder of BaseMech (Cardoso and Rogers 2022, Algorithm 1): one level a digit of the end.

    Raises:
        UnsupportedCombination: A view is neither the running sum nor the steps, or there is no end.
        InvalidParameter: The base is no integer from 2 on.
    """
    if asked.end is None or not all(isinstance(view, Running | Step) for view in asked.views):
        names = [view.name for view in asked.views]
        raise UnsupportedCombination(
            f"Expected running sums of a stream with an end, got {shown(names)} and "
            f"end={asked.end}. There is a level for each digit of the end. Declare end, or "
            "leave the strategy out."
        )
    number: Any = int(base) if base.denominator == 1 else base  # no integer: refused there
    plain = Blocks.base(number, asked.end)
    return Blocks.base(number, asked.end, _lattice_bits(asked, plain.levels[-1]))


def _windows(views: Sequence[Decay], name: str) -> list[Window]:
    """The views as windows.

    Raises:
        UnsupportedCombination: One is none.
    """
    windows = [view for view in views if not isinstance(view, Step)]  # steps are leaves
    if not windows or not all(isinstance(view, Window) for view in windows):
        raise UnsupportedCombination(
            f"Expected views that are windows, got {shown([view.name for view in views])}. {name} "
            "releases no others. Leave the strategy out, or the views."
        )
    return [view for view in windows if isinstance(view, Window)]


def _lattice_bits(asked: Asked, longest: int) -> int:
    """0 under Laplace noise; under Gaussian noise as fine as the declared totals allow."""
    if asked.norm is Norm.L1:
        return 0
    room = _RANGE_BITS - (asked.most - 1).bit_length() - (longest - 1).bit_length()
    return max(0, min(_FINEST, room))
