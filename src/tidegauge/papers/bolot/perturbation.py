"""InputPerturbation: noise on each reading, and any decay of the noisy readings."""

from __future__ import annotations

from fractions import Fraction
from typing import final

from tidegauge.papers.system import System, plan_of
from tidegauge.privacy.guarantee import Guarantee
from tidegauge.strategies.decay import Decay, Running
from tidegauge.strategies.named import by_name

__all__ = ["InputPerturbation"]


@final
class InputPerturbation(System):
    r"""Releases any decay of a stream whose every reading gets noise: the trivial baseline.

    The std is that of one draw times :math:`\sqrt{\sum_k g(k)^2}`, without end where the decay's
    energy is finite. It beats ExponentialSum up to alpha = 0.9995, PolynomialSum always, and
    WindowSum up to a window of 1024 under pure epsilon.

    Args:
        epsilon: Pure epsilon-DP for one reading in [0, 1], replaced by any other; this or
            ``guarantee``.
        decay: What is released; default: the running sum.
        guarantee: Any other guarantee.
        cells: Streams side by side.

    Raises:
        InvalidParameter: A parameter is impossible.

    Cost:
        Privacy: all of the guarantee, at once. Time: one draw a cell and step.

    Examples:
        >>> from tidegauge.strategies.decay import Window
        >>> with InputPerturbation(1, decay=Window(256)) as system:
        ...     round(system.noise_std(256), 3)
        22.627

    References:
        Bolot et al. 2013, section 1.
    """

    def __init__(
        self,
        epsilon: float | Fraction | None = None,
        decay: Decay | None = None,
        *,
        guarantee: Guarantee | None = None,
        cells: int = 1,
    ) -> None:
        self._start(
            plan_of(
                Running() if decay is None else decay,
                epsilon=epsilon,
                guarantee=guarantee,
                cells=cells,
                strategy=by_name("InputPerturbation"),
            )
        )

    @property
    def source(self) -> str:
        """Where it stands in the paper."""
        return "Bolot et al. 2013, the trivial baseline"
