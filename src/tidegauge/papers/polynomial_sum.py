"""PolynomialSum of Bolot et al. (ICDT 2013), Algorithm 4: corrected, and as printed."""

from __future__ import annotations

from fractions import Fraction
from typing import final

from tidegauge.papers.system import System, plan_of
from tidegauge.privacy.guarantee import Guarantee
from tidegauge.strategies.named import by_name
from tidegauge.strategies.stepped import polynomial_sum

__all__ = ["PolynomialSum"]


@final
class PolynomialSum(System):
    """A polynomially decayed sum, its weights rounded down to powers of 1 - beta.

    Weights are within [(1 - beta) g, g] of ``g(i) = (i + 1)^-c`` up to the reach, and 0 beyond.
    Corrected where the paper is wrong: windows are not one age off, empty ones do not stall it,
    and the noise of a window falls with its weight, so that the variance stays bounded. A
    baseline: noise on each reading (``Gauge`` with ``Polynomial(c)``) has less error for every
    c > 1/2, and no rounding of weights.

    Guarantee:
        Pure epsilon-DP when one reading is replaced by another in [0, 1], for everything that is
        ever released. Proof: docs/proofs/bolot_windows.md.

    Args:
        c: The exponent, above 0.
        beta: How far below the decay weights may fall, strictly between 0 and 1.
        epsilon: Pure epsilon-DP for one reading; this or ``guarantee``.
        guarantee: Any guarantee that Laplace noise serves.
        reach: Ages from here on weigh nothing; at most 65536.
        cells: Independent streams side by side.
        as_printed: The paper's windows and noise of one scale, for comparison: private, but its
            weights lie above g at most ages and far below at age 0.

    Raises:
        InvalidParameter: A parameter is impossible.
        UnsupportedCombination: The guarantee takes Gaussian noise.

    Cost: a few rows a step for each window, of which there are about
    c log(reach) / log(1 / (1 - beta)), and O(1) time for each in a block of steps on average,
    O(log reach) in a step alone; memory O(reach).

    Examples:
        >>> system = PolynomialSum(1.5, 0.5, epsilon=1.0, reach=64)
        >>> round(system.noise_std(1000), 1), system.update(0.5).shape
        (5.8, ())
    """

    def __init__(
        self,
        c: float | Fraction,
        beta: float | Fraction,
        epsilon: float | Fraction | None = None,
        *,
        guarantee: Guarantee | None = None,
        reach: int = 4096,
        cells: int = 1,
        as_printed: bool = False,
    ) -> None:
        strategy = polynomial_sum(c, beta, reach, printed=as_printed)
        name = "PolynomialSum" + "AsPrinted" * as_printed
        self._start(
            plan_of(
                strategy.decay,
                epsilon=epsilon,
                guarantee=guarantee,
                cells=cells,
                strategy=by_name(name, {"c": c, "beta": beta, "reach": reach}),
                end=strategy.hard_end,
            )
        )

    @property
    def source(self) -> str:
        """Bolot et al. 2013, Algorithm 4."""
        return "Bolot et al. 2013, Algorithm 4 (PolynomialSum)"
