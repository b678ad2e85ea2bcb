"""BinaryTree: the running sum of readings up to a declared bound, the paper's baseline."""

from __future__ import annotations

from fractions import Fraction
from typing import final

from tidegauge.papers.perrier.ranges import range_of
from tidegauge.papers.system import System, plan_of
from tidegauge.privacy.guarantee import Guarantee
from tidegauge.strategies.decay import Running
from tidegauge.strategies.named import by_name

__all__ = ["BinaryTree"]


@final
class BinaryTree(System):
    r"""Releases the sum of all readings in [0, upper] so far, from one binary tree.

    Its levels are counted by integers: the printed log2 n of n steps is one too few where n is a
    power of two, and no whole number elsewhere.

    Args:
        upper: The largest reading, B.
        end: The last step, n.
        epsilon: Pure epsilon-DP for one reading, replaced by any other in [0, upper]; this or
            ``guarantee``.
        guarantee: Any other guarantee.
        grain: Readings are rounded to it; upper is a whole number of it. None: upper / 2^20.
        cells: Streams side by side.

    Raises:
        InvalidParameter: A parameter is impossible.
        UnsupportedCombination: So many steps of so many grains do not fit 64 bits.

    Cost:
        Privacy: all of the guarantee, at once. Memory: O(log n) a cell. Time: about two noisy
        nodes a step.

    Examples:
        The worst step of 2^20 has 20 nodes of 21 levels:

        >>> with BinaryTree(1, end=2**20, epsilon=1) as tree:
        ...     print(round(tree.noise_std(2**20 - 1), 3), tree.sensitivity)
        132.816 21
        >>> with BinaryTree(upper=1440, end=365, epsilon=1, grain=1) as trips:
        ...     released = trips.update_many([22, 31, 147])
        >>> released.shape
        (3,)

    References:
        Perrier, Asghar and Kaafar 2019, the BT algorithm; Chan, Shi and Song 2011; Dwork, Naor,
        Pitassi and Rothblum 2010. Proof: ``docs/proofs/blocks.md``.
    """

    def __init__(
        self,
        upper: float | Fraction,
        end: int,
        epsilon: float | Fraction | None = None,
        *,
        guarantee: Guarantee | None = None,
        grain: float | Fraction | None = None,
        cells: int = 1,
    ) -> None:
        unit, most = range_of(upper, grain)
        plan = plan_of(
            Running(),
            epsilon=epsilon,
            guarantee=guarantee,
            cells=cells,
            strategy=by_name("BinaryTree"),
            largest=most,
            end=end,
        )
        self._start(plan, unit=unit, upper=most / unit)

    @property
    def source(self) -> str:
        """Where it stands in the paper."""
        return "Perrier, Asghar and Kaafar 2019, the BT algorithm"
