"""Releases of means: a ratio of two noisy numbers, the second of which is published beside it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Self, final

import numpy as np
from numpy.typing import NDArray

from tidegauge.mechanisms.plan import GaugePlan
from tidegauge.mechanisms.release import Release
from tidegauge.strategies.strategy import Float64, Int64

__all__ = ["NO_CLIP", "TOO_FEW", "MeanRelease", "mean_release"]

TOO_FEW = "the noisy count is too small for a mean"
NO_CLIP = "no clip is known yet: what comes waits for one"
"""Why there is no value: it counts at the first step that has a clip."""

Array = NDArray[Any]


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class MeanRelease(Release):
    """A release of means in grains, cut to what can be true; NaN where ``reason`` says why.

    Other attributes are those of :class:`~tidegauge.Release`.

    Attributes:
        ends: Lower and upper ends of the intervals, numbers everywhere: they hold for small
            counts, too, where they may be all that is possible.
        count: The noisy counts of events (weighted as the view weighs), unbiased, maybe negative.
        count_std: Standard deviation of their noise; NaN as long as there is no clip.
        clip: Least and largest value that counted as it was, of each step (see
            :class:`~tidegauge.ClippedGauge`); None: the declared bounds.

    Examples:
        >>> import tidegauge as tg
        >>> gauge = tg.MeanGauge(views=[tg.Running()], bounds=(0, 10), epsilon=1, unit="event")
        >>> release = gauge.update([3] * 1000)["running"]
        >>> bool(2 < release.lower < release.upper < 4), bool(abs(release.count - 1000) < 100)
        (True, True)
        >>> gauge = tg.MeanGauge(views=[tg.Step()], bounds=(0, 10), epsilon=1e-3, unit="event")
        >>> gauge.update([3])["step"].reason.item()
        'the noisy count is too small for a mean'
    """

    ends: tuple[Array, Array] = field(repr=False)
    count: Array = field(repr=False)
    count_std: Array = field(repr=False)
    clip: tuple[Int64, Int64] | None = field(default=None, repr=False)

    _columns = "value", "lower", "upper", "count", "count_std"

    @property
    def lower(self) -> Array:
        """Lower end of the interval; speaks of noise only."""
        return self.ends[0]

    @property
    def upper(self) -> Array:
        """Upper end of the interval; speaks of noise only."""
        return self.ends[1]

    @property
    def reason(self) -> Array:
        """Why a value is not there, by noisy numbers alone; None where it is. Shape of value."""
        reasons = np.full(self.value.shape, None, dtype=object)
        reasons[np.isnan(self.value)] = TOO_FEW
        reasons[np.isnan(self.count_std)] = NO_CLIP
        return reasons

    def _in_cells(self, pick: Callable[[Array], Array]) -> Self:
        return replace(
            self,
            value=pick(self.value),
            ends=(pick(self.lower), pick(self.upper)),
            count=pick(self.count),
            count_std=pick(self.count_std),
        )


def mean_release(
    plan: GaugePlan,
    view: str,
    first: int,
    arrays: tuple[Float64, ...],
    *,
    names: tuple[str, ...] | None,
    scalar: bool,
    block: bool,
    clip: tuple[Int64, Int64] | None = None,
) -> MeanRelease:
    """Return value, lower, upper, count and count_std of shape (steps, cells) as a release."""
    shaped = [array if block else array[0] for array in arrays]
    value, lower, upper, count, std = (array[..., 0] if scalar else array for array in shaped)
    return MeanRelease(
        plan=plan,
        view=view,
        first_step=first,
        value=value,
        names=names,
        block=block,
        ends=(lower, upper),
        count=count,
        count_std=std,
        clip=clip,
    )
