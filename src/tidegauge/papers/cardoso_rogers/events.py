"""Events and items: what a step may be, the table of items, and what all item systems share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self, final

import numpy as np
from numpy.typing import NDArray

from tidegauge.checks import integer, shown
from tidegauge.errors import InvalidInput, InvalidParameter, StreamEnded
from tidegauge.mechanisms.turn import Turn, no_copies
from tidegauge.papers.cardoso_rogers.digits import digit_sum
from tidegauge.privacy.guarantee import Guarantee
from tidegauge.strategies.strategy import Float64, Int64

__all__ = ["LARGEST_COUNT", "ItemSystem", "Items", "Shown", "counts_of", "domain_of", "encoded"]

LARGEST_COUNT = 1 << 30
"""Of one item in one step."""

LARGEST_TOTAL = 1 << 40
"""Running counts are cut off there, as 64 bits hold no larger ones beside noise."""


@final
@dataclass(frozen=True)
class Shown:
    """What one step releases.

    Attributes:
        items: The items that are shown, sorted by their UTF-8 bytes.
        counts: Their noisy counts, float64 of shape (items,).

    Examples:
        >>> import numpy as np
        >>> Shown(("bread", "milk"), np.array([8.25, 11.5])).as_dict()
        {'bread': 8.25, 'milk': 11.5}
    """

    items: tuple[str, ...]
    counts: Float64

    def as_dict(self) -> dict[str, float]:
        """Return the counts by item."""
        return dict(zip(self.items, self.counts.tolist(), strict=True))


def encoded(item: str) -> bytes:
    """Return the bytes of an item: items are equal if these are, and sorted by them."""
    return item.encode("utf-8", "surrogatepass")


def domain_of(items: Any) -> dict[str, int]:
    """Return the place of each known item, sorted by bytes.

    Raises:
        InvalidParameter: They are not different texts, or there is none.
    """
    if isinstance(items, str | bytes) or not isinstance(items, Sequence) or not items:
        raise InvalidParameter(
            f"Expected items to be a list of text, got {shown(items)}. Counts are kept for these "
            "alone. Name them all, or take a system for unknown items."
        )
    if not all(isinstance(item, str) for item in items) or len(set(items)) < len(items):
        raise InvalidParameter(
            "Expected items that are different texts, got another kind or one twice. Its events "
            "would be counted elsewhere. Name each once."
        )
    return {str(item): place for place, item in enumerate(sorted(items))}


def counts_of(step: Any, max_items: int | None) -> dict[str, int]:
    """Return how many events of a step have each item.

    Args:
        step: None: nothing happened. A set, list or other iterable of items: one event, of which
            each item counts once. A mapping from items to counts, or a pair of NumPy arrays, items
            and counts: several events, each of which has been cut to ``max_items`` before.
        max_items: Of one event with more, those that come first by their bytes; None: any number.

    Raises:
        InvalidInput: It is none of these; no value is shown.
    """
    if step is None:
        return {}
    if isinstance(step, Mapping):
        pairs: Iterable[tuple[Any, Any]] = step.items()
    elif isinstance(step, tuple) and len(step) == 2 and isinstance(step[1], np.ndarray):
        items, counts = np.asarray(step[0]), step[1]
        if items.shape != counts.shape or items.ndim != 1:
            raise InvalidInput(
                "Expected as many counts as items, in two arrays of one axis, got others. Counts "
                "would belong to no item. Give one for each."
            )
        pairs = zip(items.tolist(), counts.tolist(), strict=True)
    elif isinstance(step, Iterable) and not isinstance(step, str | bytes):
        event = {_text(item) for item in step}
        chosen = sorted(event)[:max_items]  # as by bytes: UTF-8 keeps the order of code points
        return dict.fromkeys(chosen, 1)
    else:
        raise InvalidInput(
            "Expected a set of items, a mapping from items to counts, or None, got something else. "
            "An event is a set, also of one item. Write [item]."
        )
    found: dict[str, int] = {}
    for item, count in pairs:
        name = _text(item)
        if isinstance(count, bool) or not isinstance(count, int | np.integer):
            raise InvalidInput(
                "Expected counts that are whole numbers, got another kind. Noise is made for "
                "integers. Convert them first."
            )
        found[name] = found.get(name, 0) + int(count)
        if not 0 <= count <= found[name] <= LARGEST_COUNT:
            raise InvalidInput(
                f"Expected counts in [0, {LARGEST_COUNT}], got one outside. A count says how many "
                "events of the step have the item. Check how it was made."
            )
    return {item: count for item, count in found.items() if count}


def _text(item: Any) -> str:
    if not isinstance(item, str):
        raise InvalidInput(
            "Expected items that are text, got another kind. 1 and 1.0 would be one item, or two. "
            "Convert them to text first."
        )
    return str(item)


@final
class Items:
    """The table of items seen so far, in no order that anybody may learn.

    Args:
        known: Items known in advance, already in their order.
    """

    def __init__(self, known: Iterable[str] = ()) -> None:
        self.names: list[str] = list(known)
        self._places = {name: place for place, name in enumerate(self.names)}
        # those that were ever shown, sorted by bytes
        self._ever = np.empty(0, np.int64)
        self._ever_names = np.empty(0, object)
        self._was_shown = np.zeros(0, bool)

    def __len__(self) -> int:
        return len(self.names)

    def missing(self, names: Iterable[str]) -> list[str]:
        """Return those that are not in the table."""
        return [name for name in names if name not in self._places]

    def add(self, names: Sequence[str]) -> None:
        """Append new items."""
        for name in names:
            self._places[name] = len(self.names)
            self.names.append(name)

    def places(self, names: Iterable[str]) -> Int64:
        """Return where items stand in the table."""
        return np.fromiter((self._places[name] for name in names), np.int64)

    def shown(self, mask: NDArray[np.bool_], counts: Float64) -> Shown:
        """Return the items of a mask and their counts, both of the length of the table, sorted."""
        if len(self._was_shown) < len(mask):
            self._was_shown = np.pad(self._was_shown, (0, len(mask) - len(self._was_shown)))
        if (mask & ~self._was_shown).any():
            self._was_shown |= mask
            ever = sorted(np.flatnonzero(self._was_shown).tolist(), key=self.names.__getitem__)
            self._ever = np.array(ever, np.int64)
            self._ever_names = np.array([*(self.names[place] for place in ever), None], object)[:-1]
        now = mask[self._ever]
        return Shown(tuple(self._ever_names[now].tolist()), counts[self._ever[now]])


class ItemSystem(ABC):
    """A system whose steps are sets of items and whose releases are lists of items with counts.

    Its budget is spent once, when it is made, and covers everything it ever releases, also when
    later events were chosen after reading earlier releases. It is live: it cannot be copied,
    pickled or used in a fork, and one that was interrupted inside a step goes no further.
    """

    _end: int
    _step: int
    _cost: Guarantee

    def _begin(self, base: int, end: int, cost: Guarantee) -> None:
        self.base, self._end, self._cost, self._step = base, end, cost, 0
        self._turn = Turn("system")

    @property
    @abstractmethod
    def source(self) -> str:
        """The paper, and where in it the system stands."""

    @property
    @abstractmethod
    def _block_std(self) -> float:
        """The standard deviation of the noise of one block, in counts."""

    @abstractmethod
    def _checked_step(self, step: Any) -> dict[str, int]:
        """Return the counts of a step, or refuse it; nothing changes."""

    @abstractmethod
    def _released(self, counts: dict[str, int]) -> Shown:
        """Measure one checked step."""

    @abstractmethod
    def _check_live(self) -> None:
        """Refuse closed words and forks before anything changes."""

    @abstractmethod
    def close(self) -> None:
        """Erase all keys; nothing more can be measured."""

    @property
    def step(self) -> int:
        """How many steps have been released."""
        return self._step

    @property
    def end(self) -> int:
        """The last step."""
        return self._end

    @property
    def cost(self) -> Guarantee:
        """What the system promises for everything it ever releases, and so spends."""
        return self._cost

    def update(self, step: Any) -> Shown:
        """Measure one step and release what is shown.

        Args:
            step: See :func:`counts_of`: a set of items, a mapping from items to counts, a pair of
                arrays, or None.

        Raises:
            InvalidInput: No such step; the system is as it was.
            StreamEnded: The last step is reached; the system is as it was.
            LiveState: Closed, interrupted, forked, or in use by another thread.
        """
        return self._all([step])[0]

    def update_many(self, steps: Iterable[Any]) -> list[Shown]:
        """Measure several steps, all checked before the first; see :meth:`update`."""
        if isinstance(steps, str | bytes | Mapping) or not isinstance(steps, Iterable):
            raise InvalidInput(
                "Expected a sequence of steps, got one that is none. Each step has a set of items. "
                "Use update for one step, update_many for several."
            )
        return self._all(list(steps))

    def noise_std(self, step: int) -> float:
        """Return the standard deviation of a shown count's noise at a step; reads no data.

        Raises:
            InvalidParameter: There is no such step.
        """
        why = "Steps are counted from 1, and nothing is measured after the last."
        number = integer("step", step, low=1, high=self._end, why=why)
        return float(np.sqrt(digit_sum(self.base, number))) * self._block_std

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _all(self, steps: list[Any]) -> list[Shown]:
        checked = [self._checked_step(step) for step in steps]
        self._check_live()
        with self._turn:
            if self._step + len(checked) > self._end:
                raise StreamEnded(
                    f"Expected steps up to {self._end}, got {self._step + len(checked)}. The "
                    "guarantee was computed for these steps only. Make a system with a later end."
                )
            releases = []
            for counts in checked:
                releases.append(self._released(counts))
                self._step += 1
        return releases

    __copy__ = __deepcopy__ = __reduce__ = __reduce_ex__ = __getstate__ = no_copies("system")

    def __repr__(self) -> str:
        return f"{type(self).__name__}(step={self._step}, end={self._end}, cost={self._cost})"
