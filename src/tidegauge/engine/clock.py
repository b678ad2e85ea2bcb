r"""The public clock: the step of an event from its own time stamp alone.

Step :math:`t` of a clock covers :math:`[s + t h, s + (t + 1) h)` with start :math:`s` and length
:math:`h`, integers in microseconds. Nothing else enters: no watermark, no latest stamp, no other
row (a single late stamp would move the events of everybody else). An event outside the steps that
are asked for takes part in nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from tidegauge.planning.plan import Clock

__all__ = ["steps"]

Int64 = NDArray[np.int64]
Bool = NDArray[np.bool_]


def steps(us: Int64, known: Bool, clock: Clock, first: int, last: int) -> tuple[Int64, Bool]:
    """Return the step of each stamp, and which lie in ``[first, last)``.

    Args:
        us: Microseconds since 1970 in UTC, shape (rows,).
        known: Which of them are stamps, shape (rows,).
        clock: With a step of fixed length.
        first: First step that is asked for.
        last: The step after the last.

    Examples:
        >>> from tidegauge.planning.plan import Clock
        >>> import numpy as np
        >>> us = np.array([0, 3_599_999_999, 3_600_000_000, -1])
        >>> step, inside = steps(us, us == us, Clock(0, 3_600_000_000, None), 0, 24)
        >>> step[inside].tolist()
        [0, 0, 1]
    """
    assert clock.step_us is not None
    low = clock.start_us + first * clock.step_us
    high = clock.start_us + last * clock.step_us
    inside = known & (us >= low) & (us < high)
    since = us - clock.start_us
    if not inside.all():
        since = np.where(inside, since, 0)  # what is outside may be as far off as int64 reaches
    return since // clock.step_us, inside
