"""Windows by binary trees: systems of Bolot et al. (ICDT 2013), Algorithms 1 and 2."""

from __future__ import annotations

from fractions import Fraction
from typing import final

import numpy as np

from tidegauge.checks import integer, shown
from tidegauge.errors import InvalidParameter
from tidegauge.papers.system import System, plan_of
from tidegauge.privacy.guarantee import Guarantee
from tidegauge.strategies.blocks import Blocks
from tidegauge.strategies.decay import Window
from tidegauge.strategies.named import by_name
from tidegauge.strategies.strategy import Float64
from tidegauge.strategies.trees import DECODINGS, LONGEST_WINDOW

__all__ = ["AllWindowSum", "WindowSum"]

_NAMES = {"root-drop": "WindowSum", "direct": "WindowSumDirect", "paper": "WindowSumAsPrinted"}


@final
class WindowSum(System):
    """The sum over the last ``window`` readings, by binary trees as long as the window.

    Corrected where the paper is not right or not best: windows of any length; the last tree's part
    by its own nodes and not by root less prefix, so that the worst window takes about half the
    nodes; and without the roots, which only whole trees need.

    Guarantee:
        Pure epsilon-DP (or ``guarantee``) when one reading is replaced by another in [0, 1], for
        everything that is ever released. Proof: docs/proofs/bolot_windows.md.

    Args:
        window: Steps summed up; at most 2^37.
        epsilon: This or ``guarantee``.
        decode: ``"root-drop"`` (the least noise), ``"direct"`` or ``"paper"``; see
            :func:`~tidegauge.strategies.trees.window_sum`.
        cells: Independent streams side by side.
        guarantee: Any guarantee, in place of epsilon.
        as_printed: As ``decode="paper"``; excludes ``decode``.

    Raises:
        InvalidParameter: A parameter is impossible.

    Cost: O(log window) time a step and cell, O(window) memory.

    Examples:
        >>> system = WindowSum(1024, epsilon=1.0)
        >>> round(system.noise_std(3000), 1), float(system.sensitivity)
        (40.0, 10.0)
        >>> system.update_many([0.5, 1.0]).shape
        (2,)
    """

    def __init__(
        self,
        window: int,
        epsilon: float | Fraction | None = None,
        decode: str | None = None,
        cells: int = 1,
        *,
        guarantee: Guarantee | None = None,
        as_printed: bool = False,
    ) -> None:
        if as_printed and decode not in (None, "paper"):
            raise InvalidParameter(
                f"Expected as_printed without decode, got decode={shown(decode)}. Printed is the "
                'decoding "paper" alone. Leave one of them out.'
            )
        way = decode or ("paper" if as_printed else DECODINGS[0])
        if way not in DECODINGS:
            raise InvalidParameter(
                f"Expected decode to be one of {shown(DECODINGS)}, got {shown(decode)}. Nothing "
                "else is proved. Leave it out for the least noise."
            )
        why = "A window is a whole number of steps. Give its length."
        steps = integer("window", window, low=1, high=LONGEST_WINDOW, why=why)
        self._start(
            plan_of(
                Window(steps),
                epsilon=epsilon,
                guarantee=guarantee,
                cells=cells,
                strategy=by_name(_NAMES[way]),
            )
        )

    @property
    def source(self) -> str:
        """Bolot et al. 2013, Algorithm 1."""
        return "Bolot et al. 2013, Algorithm 1 (WindowSum)"


@final
class AllWindowSum(System):
    """Sums over windows of every length, any of them asked at any step, of a stream without end.

    One tree that grows with the stream; level k of it has the share k^-beta of the budget. What
    :meth:`update` releases is the sum over the last ``longest`` readings, at first of all of them;
    :meth:`window` any shorter one, at no further cost.

    Corrected where the paper is: windows that are no power of two, and shares over the 38 levels
    that 2^38 steps can have.

    Guarantee:
        Pure epsilon-DP (or ``guarantee``) when one reading is replaced by another in [0, 1], for
        all windows ever asked together. Proof: docs/proofs/bolot_windows.md.

    Args:
        epsilon: This or ``guarantee``.
        beta: Above 1; above 0 where ``steps`` is given, and then best near 1.
        cells: Independent streams side by side.
        steps: The length of the stream, if known; nothing is measured beyond it.
        longest: The longest window that will be asked: what has to be kept.
        guarantee: Any guarantee, in place of epsilon.
        as_printed: Windows by the printed formula, which takes up to twice the nodes.

    Raises:
        InvalidParameter: A parameter is impossible.

    Cost: O(log T) time a step and cell; memory O(min(T, longest)).

    Examples:
        >>> system = AllWindowSum(epsilon=1.0, beta=1.5)
        >>> released = system.update_many([1.0] * 300)
        >>> system.window(256).shape, round(system.noise_std(300, window=256))
        ((), 117)
    """

    def __init__(
        self,
        epsilon: float | Fraction | None = None,
        beta: float | Fraction = 1.5,
        cells: int = 1,
        *,
        steps: int | None = None,
        longest: int = LONGEST_WINDOW,
        guarantee: Guarantee | None = None,
        as_printed: bool = False,
    ) -> None:
        why = "So much has to be kept. Leave it out for everything."
        span = integer("longest", longest, low=1, high=LONGEST_WINDOW, why=why)
        self._longest = span
        self._start(
            plan_of(
                Window(span),
                epsilon=epsilon,
                guarantee=guarantee,
                cells=cells,
                strategy=by_name("AllWindowSum" + "AsPrinted" * as_printed, {"beta": beta}),
                end=steps,
            )
        )

    @property
    def source(self) -> str:
        """Bolot et al. 2013, Algorithm 2."""
        return "Bolot et al. 2013, Algorithm 2 (AllWindowSum)"

    def window(self, length: int) -> Float64:
        """Return the sum over the last ``length`` readings released so far; free.

        Args:
            length: Steps, at most ``longest``; more than there have been means all.

        Returns:
            float64 of shape (), or (cells,).

        Raises:
            InvalidParameter: There is no such window.
        """
        strategy = self._plan.strategy
        assert isinstance(strategy, Blocks)
        lengths = np.array([self._checked_window(length)], np.int64)
        sums = strategy.windows(self._reading.state, lengths, self.step)[0] / float(self._unit)
        value: Float64 = sums[0] if self._scalar else sums
        return value

    def noise_std(self, step: int, window: int | None = None) -> float:
        """Return the standard deviation of a window's noise at a step; reads no data.

        Args:
            step: Counted from 1.
            window: Steps summed up; None: what :meth:`update` releases.

        Raises:
            InvalidParameter: There is no such step or window.
        """
        length = self._longest if window is None else self._checked_window(window)
        std = self._plan.noise_std(Window(length), [self._checked(step)])[0]
        return float(std) / float(self._unit)

    def _checked_window(self, length: int) -> int:
        why = "Blocks further back are not kept. Make the system with a larger longest."
        return integer("window", length, low=1, high=self._longest, why=why)
