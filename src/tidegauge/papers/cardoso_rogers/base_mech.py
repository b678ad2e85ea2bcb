"""BaseMech and KnownBase: running counts by blocks of a base's digits."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike

from tidegauge.checks import integer
from tidegauge.errors import InvalidInput
from tidegauge.papers.cardoso_rogers.digits import best_base
from tidegauge.papers.cardoso_rogers.events import LARGEST_COUNT, counts_of, domain_of
from tidegauge.papers.system import System, plan_of
from tidegauge.privacy.guarantee import Guarantee
from tidegauge.strategies.decay import Running
from tidegauge.strategies.named import by_name
from tidegauge.strategies.strategy import MOST_STEPS, Float64, Int64

__all__ = ["BaseMech", "KnownBase", "best_base"]

_WHY_BASE = "A block is so many of the level below. Write best_base(end), or 2."
_WHY_END = "The number of levels follows from it. Give the number of the last step."


@final
class BaseMech(System):
    """Running sums of a stream: the binary mechanism in any base.

    Level j has the noisy sum of each block of base^j steps; the sum at a step takes as many blocks
    of each level as its digit says. There is a level for each digit of the last step, one more than
    the paper has where the end is a power of the base.

    Guarantee:
        The one given, when one reading is replaced by another in [0, 1], for everything that is
        ever released. Proof: docs/proofs/blocks.md.

    Args:
        base: At least 2; :func:`best_base` has the least worst noise.
        end: The last step; nothing is measured beyond it.
        guarantee: Any; under :class:`~tidegauge.PureDP` noise is Laplace, else Gaussian or
            whichever is less.
        cells: Independent streams side by side.

    Raises:
        InvalidParameter: A parameter is impossible.

    Cost: O(1) draws a step and cell on average, O(levels) memory a cell.

    Examples:
        >>> from tidegauge import ZCDP
        >>> system = BaseMech(4, 255, ZCDP(0.5))
        >>> round(system.noise_std(255), 6), system.update(1.0).shape
        (6.928203, ())

    References:
        Cardoso and Rogers 2022, Algorithm 1, as corrected in ``docs/errata.md``.
    """

    def __init__(self, base: int, end: int, guarantee: Guarantee, cells: int = 1) -> None:
        self.base = integer("base", base, low=2, high=MOST_STEPS, why=_WHY_BASE)
        last = integer("end", end, low=1, high=MOST_STEPS, why=_WHY_END)
        self._start(
            plan_of(
                Running(),
                epsilon=None,
                guarantee=guarantee,
                cells=cells,
                strategy=by_name("BaseMech", {"base": self.base}),
                end=last,
            )
        )

    @property
    def source(self) -> str:
        """Cardoso and Rogers 2022, Algorithm 1."""
        return "Cardoso and Rogers 2022, Algorithm 1 (BaseMech)"


@final
class KnownBase(System):
    """The running count of each known item: a BaseMech for every item, with one cost.

    Guarantee:
        The one given, for one event: a set of at most ``max_items`` items.

    Args:
        items: All items, public; text.
        base: See :class:`BaseMech`.
        end: The last step.
        guarantee: As for :class:`BaseMech`.
        max_items: Most items of one event. Of a larger set those that come first by their UTF-8
            bytes count, so that what is left of one event depends on no other.
        neighboring_relation: ``"add_or_remove_one"``: an event is there or not; ``"replace_one"``:
            it is replaced by another, which moves twice as many items.

    Raises:
        InvalidParameter: A parameter is impossible.

    Examples:
        >>> from tidegauge import ZCDP
        >>> system = KnownBase(["ale", "bread"], 4, 1000, ZCDP(0.5), max_items=2)
        >>> system.update_many([{"ale"}, {"ale", "bread"}, None]).shape
        (3, 2)

    References:
        Cardoso and Rogers 2022, Algorithm 2.
    """

    def __init__(
        self,
        items: Sequence[str],
        base: int,
        end: int,
        guarantee: Guarantee,
        *,
        max_items: int,
        neighboring_relation: str = "add_or_remove_one",
    ) -> None:
        self._places = domain_of(items)
        self._max_items = integer(
            "max_items", max_items, low=1, high=1 << 40, why="One event moves so many items."
        )
        self.base = integer("base", base, low=2, high=MOST_STEPS, why=_WHY_BASE)
        last = integer("end", end, low=1, high=MOST_STEPS, why=_WHY_END)
        self._start(
            plan_of(
                Running(),
                epsilon=None,
                guarantee=guarantee,
                cells=len(self._places),
                strategy=by_name("BaseMech", {"base": self.base}),
                neighboring_relation=neighboring_relation,
                largest=1,
                max_cells=min(self._max_items, len(self._places)),
                max_per_step=LARGEST_COUNT,
                end=last,
            ),
            unit=1,
        )
        self._scalar = False  # one item is still an axis

    @property
    def items(self) -> tuple[str, ...]:
        """All items, in the order of the released counts: by their bytes."""
        return tuple(self._places)

    @property
    def source(self) -> str:
        """Cardoso and Rogers 2022, Algorithm 2."""
        return "Cardoso and Rogers 2022, Algorithm 2 (KnownBase)"

    def update(self, reading: Any) -> Float64:
        """Measure one step and release all counts.

        Args:
            reading: A set of items (one event), a mapping from items to the number of events that
                have them, or None.

        Returns:
            float64 of shape (items,).

        Raises:
            InvalidInput: No such event, or an unknown item; the system is as it was.
            StreamEnded: The last step is reached; the system is as it was.
            LiveState: Interrupted, forked, or in use by another thread.
        """
        value: Float64 = self._released(self._exact([reading], block=True))[0]
        return value

    def _exact(self, readings: ArrayLike, *, block: bool) -> Int64:
        if isinstance(readings, str | bytes | Mapping) or not isinstance(readings, Iterable):
            raise InvalidInput(
                "Expected a sequence of steps, got one that is none. Each step has a set of items. "
                "Use update for one step, update_many for a block."
            )
        steps: list[Any] = list(readings)
        values = np.zeros((len(steps), self.cells), np.int64)
        for row, step in enumerate(steps):
            for item, count in counts_of(step, self._max_items).items():
                place = self._places.get(item)
                if place is None:
                    raise InvalidInput(
                        "Expected items that were declared, got another one. It belongs to no "
                        "cell. Declare it, or drop it from every event."
                    )
                values[row, place] = count
        return values
