"""RandomizedResponse: each bit is flipped with a known chance, and every decay is unbiased."""

from __future__ import annotations

from fractions import Fraction
from typing import final

import numpy as np
from numpy.typing import ArrayLike

from tidegauge.errors import InvalidInput
from tidegauge.papers.system import System, plan_of
from tidegauge.privacy.guarantee import Guarantee
from tidegauge.strategies.decay import Decay, Running
from tidegauge.strategies.named import by_name
from tidegauge.strategies.strategy import Int64

__all__ = ["RandomizedResponse"]


@final
class RandomizedResponse(System):
    r"""Releases any decay of a stream of bits, each flipped with chance :math:`1/(1+e^\epsilon)`.

    The bias is taken out, so the noise of a step has variance
    :math:`e^\epsilon / (e^\epsilon - 1)^2`: half of discrete Laplace noise at epsilon = 1, for bits
    alone. The paper's chance, 1/2 - epsilon/2, would cost about 2 epsilon. The law of the noise
    depends on the bits: :meth:`error_at` is a Chernoff bound that holds whatever they are.

    Args:
        epsilon: Pure epsilon-DP for one bit; up to 32. This or ``guarantee``.
        decay: What is released; default: the running sum.
        guarantee: A ``PureDP``.
        cells: Streams side by side.

    Raises:
        InvalidParameter: A parameter is impossible.
        UnsupportedCombination: The guarantee is not pure.

    Cost:
        Privacy: all of the guarantee, at once. Time: some 20 ns a cell and step.

    Examples:
        >>> from tidegauge.strategies.decay import Exponential
        >>> with RandomizedResponse(1, decay=Exponential(factor=0.9)) as system:
        ...     released = system.update_many([True, False, True])
        >>> released.shape, round(system.noise_std(1) ** 2, 4)
        ((3,), 0.9207)

    References:
        Bolot et al. 2013, section 1 (the baseline), as corrected in ``docs/errata.md``; Warner
        1965.
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
                strategy=by_name("RandomizedResponse"),
                largest=1,
            ),
            unit=1,
        )

    @property
    def source(self) -> str:
        """Where it stands in the paper."""
        return "Bolot et al. 2013, section 1, the baseline"

    def _exact(self, readings: ArrayLike, *, block: bool) -> Int64:
        array = self._shaped(readings, block=block)
        if array.dtype.kind not in "biuf" or not ((array == 0) | (array == 1)).all():
            raise InvalidInput(
                "Expected bits, 0 or 1, got another reading. A flip hides nothing else. Use "
                "another system for readings in between."
            )
        return np.ascontiguousarray(array, dtype=np.int64)
