"""What a builder of a strategy knows of a gauge."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from tidegauge.strategies.decay import Decay
from tidegauge.strategies.strategy import Norm

__all__ = ["Asked"]


@final
@dataclass(frozen=True)
class Asked:
    """What a builder knows of a gauge: public numbers.

    Attributes:
        views: Decays to design for, each once.
        norm: L1 for discrete Laplace noise, L2 for rounded Gaussian.
        most: Totals of one cell and step are clamped to this many grains.
        horizon: Steps to design for; None: unknown.
        end: The last step; None: no end.
    """

    views: tuple[Decay, ...]
    norm: Norm
    most: int
    horizon: int | None
    end: int | None
