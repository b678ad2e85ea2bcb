"""A gauge whose items nobody knows before they occur, in memory.

Theory of operation. Names get numbers in order of first sight, which nobody sees; a finder measures
the numbers and tells which are visible, a growing reading decodes what was measured of those. All
that a reader sees is ordered by the bytes of the names.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from tidegauge.checks import integer, shown
from tidegauge.errors import InvalidInput, InvalidParameter
from tidegauge.mechanisms.design import design
from tidegauge.mechanisms.discovery import Discover
from tidegauge.mechanisms.finder import Finder, Found
from tidegauge.mechanisms.growing import GrowingReading
from tidegauge.mechanisms.live import LiveGauge, std_at
from tidegauge.mechanisms.plan import GaugePlan
from tidegauge.mechanisms.release import PlannedRelease
from tidegauge.mechanisms.request import request_of
from tidegauge.mechanisms.secret import noise_key
from tidegauge.privacy.guarantee import Guarantee
from tidegauge.privacy.unit import PrivacyUnit
from tidegauge.strategies.decay import Decay
from tidegauge.strategies.strategy import Int64

__all__ = ["DiscoveryGauge"]

_MOST_COUNT = 1 << 62
_WHY_ITEMS = "It is the most different items of one event. Keep at most so many of each."
_WHY_REPEATS = "It is how often one event counts for one item at most. Cut off what is above."


class DiscoveryGauge(LiveGauge[GaugePlan]):
    r"""A private count of many items whose names are found in the stream itself.

    An item is visible from the first step at which an event of it lies in the discovery view and
    its noisy count there is above a threshold; then for ever and in every view. Of hidden items
    nothing is told: no number, no order, no count of them. One part of delta pays for the names
    (that an item of one protected unit is visible), the rest for the noise.

    Args:
        views: Names and decays, or a list of decays that name themselves.
        epsilon: With ``delta``, the guarantee for everything that is ever released.
        delta: See ``epsilon``; below one over the number of protected units.
        guarantee: An ``ApproxDP`` instead of the two; no other has a delta.
        unit: Who is protected: ``"event"``, or ``Contributions(k)`` for an id with at most k
            events. There is no default.
        discover: In which view items are discovered, and at which part of delta; left out:
            ``Discover()``.
        max_items: Most different items of one event.
        repeats: How often one event counts for one item at most.
        horizon: For how many steps the accuracy is designed; see :class:`tidegauge.Gauge`.
        end: The last step, counted from 1; later ones are refused.
        neighboring_relation: ``"add_or_remove_one"`` or ``"replace_one"``.
        max_per_step: Counts of an item and step are clamped to this; default: 2^20 events'.
        level: Coverage of the intervals.
        band: See :class:`tidegauge.Gauge`.
        importance: See :class:`tidegauge.Gauge`.

    Raises:
        InvalidParameter: A parameter is impossible; the message says which and what to do.
        UnsupportedCombination: No proven mechanism serves this combination: a guarantee without a
            delta, a running discovery without an end, a view in which events fade.

    Cost:
        Privacy: all of the guarantee, at once. Time: about 40 ns an item seen and step. Memory:
        about 130 bytes an item seen, and 24 for each step at which a hidden one occurred.

    Examples:
        >>> import tidegauge as tg
        >>> gauge = tg.DiscoveryGauge(views=[tg.Running()], epsilon=1, delta=1e-6, unit="event",
        ...                           end=365)
        >>> releases = gauge.update({"bread": 900, "milk": 1200, "a letter to Ann": 1})
        >>> releases["running"].names
        ('bread', 'milk')
        >>> releases["running"].cell("milk").value.shape
        ()
        >>> 50 < gauge.threshold < 100
        True

    References:
        A threshold for names: Korolova, Kenthapadi, Mishra and Ntoulas (2009); over a stream:
        Cardoso and Rogers (2022), ``UnkBase``. That an item once shown stays, that all views share
        one threshold, and the threshold of correlated noise are ours.
    """

    def __init__(
        self,
        *,
        views: Mapping[str, Decay] | Sequence[Decay],
        unit: PrivacyUnit | str,
        epsilon: float | Fraction | None = None,
        delta: float | Fraction | None = None,
        guarantee: Guarantee | None = None,
        discover: Discover | None = None,
        max_items: int = 1,
        repeats: int = 1,
        horizon: int | None = None,
        end: int | None = None,
        neighboring_relation: str = "add_or_remove_one",
        max_per_step: int | None = None,
        level: float = 0.95,
        band: str = "pointwise",
        importance: Mapping[str, float] | None = None,
    ) -> None:
        request = request_of(
            views=views, unit=unit, epsilon=epsilon, delta=delta, guarantee=guarantee,
            horizon=horizon, end=end, neighboring_relation=neighboring_relation,
            max_change=integer("repeats", repeats, low=1, high=1 << 40, why=_WHY_REPEATS),
            max_cells=integer("max_items", max_items, low=1, high=1 << 40, why=_WHY_ITEMS),
            max_per_step=max_per_step, level=level, band=band, importance=importance,
            discover=_checked(discover),
        )  # fmt: skip
        self._begin(design(request))
        self._finder = Finder(self._plan, [(0, noise_key())], gauge="in memory")
        self._reading = GrowingReading(self._plan, [decay for _, decay in self._plan.views])
        self._numbers: dict[str, int] = {}  # of every name that was seen: private
        self._names: list[str] = []  # by number: private
        self._taken_in = np.zeros(0, np.int64)  # numbers of what the reading has, in its order
        self._visible_from: dict[str, int] = {}
        self._clamped = 0

    @property
    def step(self) -> int:
        """How many steps have been measured and released."""
        return self._reading.step

    @property
    def threshold(self) -> float:
        """What the noisy count of an item has to exceed in the discovery view."""
        assert self._plan.discovery is not None
        return float(self._plan.discovery.threshold)

    @property
    def visible_from(self) -> dict[str, int]:
        """The visible items, ordered by the bytes of their names, and their first steps, from 1."""
        return dict(self._visible_from)

    @property
    def clamped(self) -> int:
        """How many counts were clamped to ``max_per_step``: for the operator, never for readers."""
        return self._clamped

    def update(self, counts: Mapping[str, int]) -> dict[str, PlannedRelease]:
        """Measure one step and release every view of the visible items.

        Args:
            counts: How often each item occurred; items that did not are left out. An item with a
                count of 0 occurred, in events that count for nothing.

        Returns:
            The releases by view name; ``names`` are those of the visible items, ordered by their
            bytes, and values have the shape (items,).

        Raises:
            InvalidInput: Not a mapping from names to whole numbers; the gauge is as it was.
            StreamEnded: The end is reached; the gauge is as it was.
            LiveState: The gauge was forked, interrupted, or is in use by another thread.

        Examples:
            >>> import tidegauge as tg
            >>> gauge = tg.DiscoveryGauge(views=[tg.Window(7)], epsilon=1, delta=1e-6,
            ...                           unit="event")
            >>> gauge.update({"milk": 1200, "bread": 900})["window_7"].names
            ('bread', 'milk')
        """
        with self._turn:
            return self._released([counts], block=False)

    def update_many(self, history: Sequence[Mapping[str, int]]) -> dict[str, PlannedRelease]:
        """Measure a block of steps and release every view of each.

        Args:
            history: The counts of each step, as for :meth:`update`.

        Returns:
            The releases by view name; ``names`` are those of the items that are visible at the end
            of the block, and values have the shape (steps, items). Where an item was not visible
            yet, its value is NaN: the numbers do not depend on how a stream is cut into blocks.

        Raises:
            InvalidInput: Not such a list; the gauge is as it was.
            StreamEnded: The block reaches beyond the end; the gauge is as it was.
            LiveState: The gauge was forked, interrupted, or is in use by another thread.

        Examples:
            >>> import tidegauge as tg
            >>> gauge = tg.DiscoveryGauge(views=[tg.Running()], epsilon=1, delta=1e-6,
            ...                           unit="event", end=365)
            >>> release = gauge.update_many([{"milk": 1200}, {"bread": 900}])["running"]
            >>> bool(np.isnan(release.cell("bread").value[0]))
            True
        """
        if isinstance(history, str | bytes | Mapping) or not isinstance(history, Sequence):
            raise InvalidInput(
                f"Expected a list of mappings from names to counts, got a {type(history).__name__}."
                " A block has one mapping for each step. Use update for a single step."
            )
        with self._turn:
            return self._released(history, block=True)

    def noise_std(self, view: str | Decay, step: int) -> float:
        """Return the standard deviation of a visible item's noise at a step; reads no data.

        Args:
            view: The name of a view, or any decay.
            step: The step, counted from 1, up to the last one.

        Raises:
            InvalidParameter: No such view or step.

        Examples:
            >>> import tidegauge as tg
            >>> gauge = tg.DiscoveryGauge(views=[tg.Step()], epsilon=1, delta=1e-6, unit="event")
            >>> 3 < gauge.noise_std("step", step=10) < 6
            True
        """
        return std_at(self._plan, view, step)

    def statement(self) -> str:
        """Return what is promised, in words, with every declared constant."""
        return self._plan.statement()

    def close(self) -> None:
        """Erase the key; nothing more can be measured. ``with`` a gauge does it at the end."""
        self._finder.close()

    def _released(
        self, history: Sequence[Mapping[str, int]], *, block: bool
    ) -> dict[str, PlannedRelease]:
        """Measure checked counts and release what is visible, names in order of their bytes."""
        fresh, triples = _triples(history, self._numbers)
        first, steps = self._reading.step, len(history)
        found = self._finder.measure(steps, *triples)
        self._numbers |= fresh
        self._names += fresh
        self._clamped += found.clamped
        self._reading.grow(found.past)
        self._taken_in = np.concatenate([self._taken_in, found.numbers[found.new]])
        columns = np.searchsorted(found.numbers, self._taken_in)
        values = self._reading.decode(found.measured[:, columns], steps)
        hidden = np.arange(first, first + steps)[:, None] < found.visible_from[columns]
        values[:, hidden] = np.nan
        names = [self._names[number] for number in self._taken_in.tolist()]
        order = _order(names)
        self._visible_from = _starts(found, self._names)
        shown_names = tuple(names[place] for place in order)
        releases = {}
        for (view, _), out in zip(self._plan.views, values[..., order], strict=True):
            value = out if block else out[0]
            releases[view] = PlannedRelease(
                plan=self._plan,
                view=view,
                first_step=first + 1,
                value=value,
                names=shown_names,
                block=block,
            )
        return releases

    def __repr__(self) -> str:
        names = ", ".join(shown(name) for name, _ in self._plan.views[:8])
        return (
            f"DiscoveryGauge(views=[{names}], visible={len(self._visible_from)}, step={self.step}, "
            f"guarantee={self._plan.guarantee})"
        )


def _checked(discover: object) -> Discover:
    """How items are discovered; nothing given is the default."""
    if discover is None:
        return Discover()
    if not isinstance(discover, Discover):
        raise InvalidParameter(
            f"Expected discover to be a Discover, got {shown(discover)}. It says in which view an "
            "item is found. Write Discover(Window(168)), or leave it out."
        )
    return discover


def _order(names: Sequence[str]) -> list[int]:
    """The places of names by their bytes: the only order that a reader sees."""
    return sorted(range(len(names)), key=lambda place: names[place].encode())


def _starts(found: Found, names: Sequence[str]) -> dict[str, int]:
    """The visible items by the bytes of their names, with their first steps, from 1."""
    starts = zip(found.numbers.tolist(), found.visible_from.tolist(), strict=True)
    pairs = [(names[number], start + 1) for number, start in starts]
    return dict(sorted(pairs, key=lambda pair: pair[0].encode()))


def _triples(
    history: Sequence[Mapping[str, int]], known: Mapping[str, int]
) -> tuple[dict[str, int], tuple[Int64, Int64, Int64]]:
    """Return new names with their numbers, in order of steps and bytes, and all counts as triples.

    No message shows a name or a count.

    Raises:
        InvalidInput: Not mappings from names to whole numbers.
    """
    fresh: dict[str, int] = {}
    rows: list[tuple[int, int, int]] = []
    for step, counts in enumerate(history):
        if not isinstance(counts, Mapping):
            raise InvalidInput(
                f"Expected a mapping from names to counts, got a {type(counts).__name__}. An item "
                'is found by its name. Write {"milk": 12}, and {} for a step without events.'
            )
        for name in sorted(counts, key=_bytes):
            count: Any = counts[name]
            if isinstance(count, bool) or not isinstance(count, int | np.integer):
                raise InvalidInput(
                    f"Expected whole numbers of events, got a {type(count).__name__}. Sensitivity "
                    "is proved for integers. Count events, one item at a time."
                )
            number = known.get(name)
            if number is None:
                number = fresh.setdefault(name, len(known) + len(fresh))
            rows.append((step, number, max(-_MOST_COUNT, min(int(count), _MOST_COUNT))))
    when, items, amounts = np.array(rows, np.int64).reshape(-1, 3).T.copy()
    return fresh, (when, items, amounts)


def _bytes(name: Any) -> bytes:
    """The bytes that a name is ordered by."""
    if isinstance(name, str):
        try:
            return name.encode()
        except UnicodeEncodeError:
            pass
    raise InvalidInput(
        f"Expected names that are text with a UTF-8 form, got a {type(name).__name__} without. "
        "Releases are ordered by these bytes. Convert names to text first."
    )
