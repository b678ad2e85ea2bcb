"""ExponentialSum: sums under an exponential decay, from the left nodes of a tree without an end."""

from __future__ import annotations

from fractions import Fraction
from typing import final

from tidegauge.checks import shown
from tidegauge.errors import InvalidParameter
from tidegauge.papers.system import System, plan_of
from tidegauge.privacy.guarantee import Guarantee
from tidegauge.strategies.decay import Exponential
from tidegauge.strategies.decayed import DecayedTree
from tidegauge.strategies.named import by_name

__all__ = ["ExponentialSum"]


@final
class ExponentialSum(System):
    r"""Releases :math:`\sum_k \alpha^k x_{t-k}` at every step, without a last one.

    Each node of the tree holds the decayed sum of its steps; nodes with a right sibling to come,
    and the root, are all that is ever needed, and each step completes exactly one of them. Noise is
    calibrated to the exact sensitivity :math:`S = \sum_k \alpha^{2^k - 1}`, which the first reading
    attains.

    Args:
        alpha: The factor, strictly between 0 and 1; at most 1 - 2^-24.
        epsilon: Pure epsilon-DP for one reading in [0, 1], replaced by any other; this or
            ``guarantee``.
        guarantee: Any other guarantee; ``GaussianDP`` and ``ZCDP`` take rounded Gaussian noise.
        cells: Streams side by side.
        as_printed: Charge the paper's lambda in place of S: valid from alpha = 0.1454 on, and 1.2
            to 2.8 times more noise than needed.

    Raises:
        InvalidParameter: A number is out of range, or the printed lambda is below S.
        UnsupportedCombination: The printed lambda with Gaussian noise.

    Cost:
        Privacy: all of the guarantee, at once. Memory: O(log T) a cell. Time: O(1) noise a step.

    Examples:
        >>> with ExponentialSum(0.9, epsilon=1) as system:
        ...     released = system.update_many([0.5, 1.0, 0.0])
        >>> released.shape, round(system.noise_std(255), 4)
        ((3,), 7.6659)
        >>> round(float(system.sensitivity), 6)
        3.352652

    References:
        Bolot et al. 2013, section 4.1, Algorithm 3 and Theorem 5, as corrected in
        ``docs/errata.md``.
    """

    def __init__(
        self,
        alpha: float | Fraction,
        epsilon: float | Fraction | None = None,
        *,
        guarantee: Guarantee | None = None,
        cells: int = 1,
        as_printed: bool = False,
    ) -> None:
        if not isinstance(as_printed, bool):
            raise InvalidParameter(
                f"Expected as_printed to be True or False, got {shown(as_printed)}. It chooses the "
                "paper's lambda in place of the sensitivity. Leave it out."
            )
        decay = Exponential(factor=alpha)
        if as_printed:
            DecayedTree.of(decay, 20, printed=True)  # refuses a lambda below the sensitivity
        self._start(
            plan_of(
                decay,
                epsilon=epsilon,
                guarantee=guarantee,
                cells=cells,
                strategy=by_name("ExponentialSumAsPrinted" if as_printed else "ExponentialSum"),
            )
        )

    @property
    def source(self) -> str:
        """Where it stands in the paper."""
        return "Bolot et al. 2013, Algorithm 3"
