"""What a user asks of one gauge, checked and named in our words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from tidegauge.checks import exact, integer, shown
from tidegauge.errors import InvalidParameter, UnsupportedCombination
from tidegauge.mechanisms.discovery import Discover
from tidegauge.mechanisms.intervals import Band, band_of, level_of
from tidegauge.mechanisms.selection import Select
from tidegauge.privacy.guarantee import Guarantee, guarantee_of
from tidegauge.privacy.unit import Distinct, Neighbors, relation_of, unit_of
from tidegauge.strategies.decay import Decay
from tidegauge.strategies.named import ByName

__all__ = ["Request", "importance_in", "request_of"]

_MOST_CELLS = 1 << 31
_MOST_STEPS = (1 << 38) - 1
_MOST_CHANGE = 1 << 40
_MOST_TOTAL = 1 << 62
EVENTS_PER_STEP = 1 << 20
"""For how many events of a cell and step there is room, unless something is declared."""


@dataclass(frozen=True)
class Request:
    """One gauge as asked for.

    Attributes:
        views: Name and decay of each view, in the order of publication.
        cells: Names of the cells; None where they have none.
        scalar: There is one cell, and totals come without a cell axis.
        guarantee: What the gauge may spend, all of it.
        neighbors: Who is protected and how far one unit can move the stream.
        max_per_step: Totals of a cell and step are clamped to this many grains.
        horizon: Steps to design for; None: unknown.
        end: The last step, from 1; None: no end.
        level: Coverage of the intervals.
        band: Whether the level holds at each step alone or for a whole curve.
        anticipate: Decays to design for as well, which are not published.
        importance: Name of a view, and how many times its ratio to the lower bound counts; 1 for
            views that are not named. It shapes the noise, not the guarantee.
        every: Name of a view, and at every how many steps it is read; 1 for views that are not
            named. What is told of its noise is of those steps; the choice is for each step.
        name: What the gauge is called where there are several.
        budget_weight: Its part in the split of the guarantee over several gauges.
        strategy: The only candidate, asked for by name; None: all that fit are compared.
        rescaled: Whether increments are multiplied by factors that move before views are made of
            them: only strategies are tried whose noise is then known.
        select: How the few cells are to be chosen that are shown; None: all are.
        discover: How items are discovered; None: the cells are known.
    """

    views: tuple[tuple[str, Decay], ...]
    cells: tuple[str, ...] | None
    scalar: bool
    guarantee: Guarantee
    neighbors: Neighbors
    max_per_step: int
    horizon: int | None
    end: int | None
    level: float
    band: Band = "pointwise"
    anticipate: tuple[Decay, ...] = ()
    importance: tuple[tuple[str, float], ...] = ()
    every: tuple[tuple[str, int], ...] = ()
    name: str = ""
    budget_weight: Fraction = Fraction(1)
    strategy: ByName | None = None
    rescaled: bool = False
    select: Select | None = None
    discover: Discover | None = None

    @property
    def foreseen(self) -> tuple[Decay, ...]:
        """What is designed for and not published: what is anticipated, and the discovery view."""
        asked = self.discover.view if self.discover else None
        return self.anticipate if asked is None else (*self.anticipate, asked)

    @property
    def planned_cells(self) -> int:
        """For how many cells memory is planned."""
        if self.discover is not None:
            return self.discover.expected_items
        return self.neighbors.cells or 1


def request_of(
    *,
    views: Any,
    unit: Any,
    epsilon: Any = None,
    delta: Any = None,
    guarantee: Any = None,
    cells: Any = None,
    horizon: Any = None,
    end: Any = None,
    neighboring_relation: Any = "add_or_remove_one",
    max_change: Any = 1,
    max_cells: Any = 1,
    max_per_step: Any = None,
    level: Any = 0.95,
    band: Any = "pointwise",
    importance: Any = None,
    strategy: ByName | None = None,
    distinct: Distinct | None = None,
    paired: bool = False,
    discover: Discover | None = None,
) -> Request:
    """Return the checked request; the arguments are those of :class:`tidegauge.Gauge`.

    ``strategy``, from :func:`~tidegauge.strategies.named.by_name`, is the only candidate if given.
    ``distinct`` says which different values are counted, if any, and ``paired`` whether sums and
    counts of the same events are measured together: see :class:`~tidegauge.privacy.unit.Neighbors`.
    ``discover`` says that cells are items that nobody knows before they occur.

    Raises:
        InvalidParameter: An argument is impossible; the message says which and what to do.
        UnsupportedCombination: Items are discovered and different values are counted.

    Examples:
        >>> from tidegauge.strategies.decay import Running
        >>> request_of(views=[Running()], unit="event", epsilon=1).max_per_step
        1048576
    """
    checked_views = views_of(views)
    number: int | None
    number, names, scalar = cells_of(cells)
    if discover is not None:
        _refuse_cells(cells, distinct)
        number, scalar = None, False
    low, high = _change_of(max_change)
    neighbors = Neighbors(
        unit_of(unit), relation_of(neighboring_relation), low, high, max_cells, number, distinct,
        paired,
    )  # fmt: skip
    if max_per_step is None:
        max_per_step = EVENTS_PER_STEP * neighbors.largest
    why = "Larger totals are clamped to it. Declare the largest total that can be true."
    max_per_step = integer("max_per_step", max_per_step, low=1, high=_MOST_TOTAL, why=why)
    horizon, end = steps_of(horizon, end)
    return Request(
        views=checked_views,
        cells=names,
        scalar=scalar,
        guarantee=guarantee_of(epsilon, delta, guarantee),
        neighbors=neighbors,
        max_per_step=max_per_step,
        horizon=horizon,
        end=end,
        level=level_of(level),
        band=band_of(band),
        importance=importance_of(importance, [name for name, _ in checked_views]),
        strategy=strategy,
        discover=discover,
    )


def _refuse_cells(cells: Any, distinct: Distinct | None) -> None:
    """Refuse what does not go together with items that nobody knows."""
    if cells is not None:
        raise InvalidParameter(
            f"Expected no cells where items are discovered, got cells={shown(cells)}. Items become "
            "cells when they are found. Leave one of the two out."
        )
    if distinct is not None:
        raise UnsupportedCombination(
            "Expected counts or sums where items are discovered, got a count of different values. "
            "An event moves it at several steps, and no threshold is proved for it. List the cells."
        )


def views_of(views: Any) -> tuple[tuple[str, Decay], ...]:
    """Return names and decays from a mapping, or from a sequence of decays that name themselves.

    Raises:
        InvalidParameter: No views, not decays, a name that is none, or a view listed twice.
    """
    if isinstance(views, Mapping):
        pairs = list(views.items())
    elif isinstance(views, Sequence) and not isinstance(views, str | bytes):
        pairs = [(decay.name if isinstance(decay, Decay) else "", decay) for decay in views]
    else:
        raise InvalidParameter(
            f"Expected views to be a mapping or a list of decays, got {shown(views)}. Releases are "
            "found by the names of their views. "
            'Write views={"total": tidegauge.Running()} or views=[tidegauge.Running()].'
        )
    if not pairs:
        raise InvalidParameter(
            "Expected at least one view, got none. There would be nothing to release. "
            "Write views=[tidegauge.Running()]."
        )
    seen: set[str] = set()
    for name, decay in pairs:
        if not isinstance(decay, Decay):
            raise InvalidParameter(
                f"Expected every view to be a decay, got {shown(decay)}. A view is a weight for "
                "each step of the past. Write Step(), Running(), Window(168), Custom((2, 1))."
            )
        if not isinstance(name, str) or not name:
            raise InvalidParameter(
                f"Expected the name of a view to be text, got {shown(name)}. Releases are found "
                "by it. Give it a name."
            )
        if name in seen:
            raise InvalidParameter(
                f"Expected each view once, got {shown(name)} twice. Both would be the same "
                "numbers. Leave one out, or name them in a mapping."
            )
        seen.add(name)
    return tuple(pairs)


def importance_of(importance: Any, names: Sequence[str]) -> tuple[tuple[str, float], ...]:
    """Return the importance of views by name, in the order of the views.

    Args:
        importance: A mapping from names to numbers in [0.01, 100]; None: all count once.
        names: Those of the views.

    Raises:
        InvalidParameter: Not a mapping, no such view, or a number out of range.

    Examples:
        >>> importance_of({"week": 2}, ["total", "week"])
        (('week', 2.0),)
    """
    if importance is None:
        return ()
    if not isinstance(importance, Mapping) or not set(importance) <= set(names):
        raise InvalidParameter(
            f"Expected importance to be a mapping from names of views, got {shown(importance)}. "
            f"It says whose noise matters more. Use names of {shown(list(names))}."
        )
    return tuple(
        (name, importance_in(f"importance[{shown(name)}]", importance[name]))
        for name in names
        if name in importance
    )


def importance_in(label: str, value: Any) -> float:
    """Return how many times the noise of a view counts.

    Raises:
        InvalidParameter: Not a number in [0.01, 100].
    """
    why = "The view's noise counts so many times. Give a number between 0.01 and 100."
    times = exact(label, value, above=0, why=why)
    if not Fraction(1, 100) <= times <= 100:
        raise InvalidParameter(
            f"Expected {label} in [0.01, 100], got {shown(times)}. "
            f"Others would be left without any accuracy. {why}"
        )
    return float(times)


def cells_of(cells: Any) -> tuple[int, tuple[str, ...] | None, bool]:
    """Return (how many cells, their names, whether the gauge is scalar).

    Raises:
        InvalidParameter: Not a number of cells, nor a list of different names.
    """
    if cells is None:
        return 1, None, True
    if isinstance(cells, str) or not isinstance(cells, Iterable):
        why = "Give a number of cells, a list of their names, or leave it out for a single number."
        return integer("cells", cells, low=1, high=_MOST_CELLS, why=why), None, False
    names = tuple(str(name) if isinstance(name, str) else name for name in cells)
    if not names or not all(isinstance(name, str) and name for name in names):
        raise InvalidParameter(
            f"Expected cells to be a list of names, got {shown(cells)}. Values are found by them. "
            "Give at least one name; every name is text."
        )
    if len(set(names)) < len(names):
        twice = next(name for i, name in enumerate(names) if name in names[:i])
        raise InvalidParameter(
            f"Expected each cell once, got {shown(twice)} twice. An event would count in both. "
            "Leave one out."
        )
    return len(names), names, False


def _change_of(max_change: Any) -> tuple[int, int]:
    """Return the least and the largest contribution of one event to one cell, in grains.

    Raises:
        InvalidParameter: Not an integer, nor a pair (low, high) around 0.
    """
    why = "It is the largest contribution of one event to one cell, in grains."
    if not isinstance(max_change, tuple | list):
        return 0, integer("max_change", max_change, low=1, high=_MOST_CHANGE, why=why)
    if len(max_change) != 2:
        raise InvalidParameter(
            f"Expected max_change to be a number or a pair, got {shown(max_change)}. {why}"
        )
    low = integer("the first of max_change", max_change[0], low=-_MOST_CHANGE, high=0, why=why)
    high = integer("the second of max_change", max_change[1], low=0, high=_MOST_CHANGE, why=why)
    return low, high


def steps_of(horizon: Any, end: Any) -> tuple[int | None, int | None]:
    """Return (horizon, end) in steps; the horizon is the end where only that is given.

    Raises:
        InvalidParameter: Not numbers of steps.
    """
    if end is not None:
        why = "It is the last step, counted from 1; leave it out for a stream without an end."
        end = integer("end", end, low=1, high=_MOST_STEPS, why=why)
    if horizon is None:
        return end, end
    why = "It is the number of steps that accuracy is designed for; leave it out if unknown."
    horizon = integer("horizon", horizon, low=1, high=_MOST_STEPS, why=why)
    return (horizon if end is None else min(horizon, end)), end
