"""The one-shot algorithms, each a frozen description of its noise with what it costs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import ceil
from typing import Any, ClassVar, final

import numpy as np

from tidegauge.checks import exact, integer
from tidegauge.mechanisms.oneshot import LATTICE_BITS, FreshCounts, NoisyOrder
from tidegauge.mechanisms.selection import std_for
from tidegauge.papers.cardoso_rogers.accounting import (
    budget_of,
    cost_of,
    gauss_rho,
    gumbel_offset,
    moved_items,
    normal_quantile,
    selection_rho,
)
from tidegauge.privacy.guarantee import Guarantee
from tidegauge.privacy.rounding import sqrt_up
from tidegauge.privacy.unit import NeighboringRelation, relation_of
from tidegauge.strategies.strategy import Int64

__all__ = [
    "KnownGauss",
    "KnownGumb",
    "OneShot",
    "Run",
    "UnkGauss",
    "UnkGumb",
    "made_for",
]

_UNIT = 1 << LATTICE_BITS
_WHY_STD = "It is the standard deviation of the noise, in counts. Write 10."
_WHY_COUNT = "So many items are shown at most. Write 10."
_WHY_DELTA = "An item of one event alone is shown this rarely. Write 1e-7."
_HALF = Fraction(1, 2)
_RELATION = "add_or_remove_one"


@final
class Run:
    """The noise of the runs of one algorithm, live: fresh counts, and an order where it picks."""

    def __init__(self, std: Fraction, *, picks: bool) -> None:
        self.counts = FreshCounts(std)
        self.order = NoisyOrder(std / 2) if picks else None

    def check_live(self) -> None:
        """Refuse closed words, and those of a fork."""
        self.counts.check_live()

    def close(self) -> None:
        """Erase the keys."""
        self.counts.close()
        if self.order is not None:
            self.order.close()


@dataclass(frozen=True)
class OneShot(ABC):
    """A one-shot algorithm with its noise.

    Args:
        std: Standard deviation tau of the noise of counts; Gumbel noise has the scale tau / 2.
    """

    std: Fraction
    unknown: ClassVar[bool]
    picks: ClassVar[bool]

    def _check(self) -> None:
        object.__setattr__(self, "std", exact("std", self.std, above=0, why=_WHY_STD))
        relation_of(self.neighboring_relation)

    @property
    @abstractmethod
    def neighboring_relation(self) -> str:
        """Which histograms are neighbors."""

    @property
    @abstractmethod
    def rho(self) -> Fraction:
        """The zCDP cost of one run."""

    @property
    def threshold_delta(self) -> Fraction:
        """The chance that an item of one histogram alone is shown; 0 for known items."""
        return Fraction(0)

    @property
    def cost(self) -> Guarantee:
        """What one run promises."""
        return self.cost_of_runs(1)

    def cost_of_runs(self, runs: int) -> Guarantee:
        """Return what so many runs promise of an event that is in all of them."""
        return cost_of(runs * self.rho, runs * self.threshold_delta, gaussian=not self.picks)

    @abstractmethod
    def run(self, noise: Run, counts: Int64, names: Sequence[str]) -> tuple[Int64, Int64]:
        """Return the places that are shown, in no order, and their noisy counts on the lattice.

        Args:
            noise: Made by :meth:`noise`.
            counts: Of all known items, or of the unknown ones that occur, shape (items,).
            names: Of these items: of equal counts those that come first go first.
        """

    def noise(self) -> Run:
        """Return fresh noise for runs of this algorithm."""
        return Run(self.std, picks=self.picks)

    @property
    def _replaced(self) -> bool:
        relation = relation_of(self.neighboring_relation)
        return relation is NeighboringRelation.REPLACE_ONE


@final
@dataclass(frozen=True)
class KnownGauss(OneShot):
    """Gaussian noise on the count of every known item.

    Args:
        std: Of the noise.
        max_items: Most items of one event.
        neighboring_relation: See :class:`~.base_mech.KnownBase`.

    Examples:
        >>> KnownGauss(10, max_items=4).rho
        Fraction(1, 50)

    References:
        Cardoso and Rogers 2022, Table 1.
    """

    max_items: int
    neighboring_relation: str = _RELATION
    unknown: ClassVar[bool] = False
    picks: ClassVar[bool] = False

    def __post_init__(self) -> None:
        self._check()
        integer("max_items", self.max_items, low=1, high=1 << 40, why=_WHY_COUNT)

    @property
    def rho(self) -> Fraction:
        """One half of max_items / std^2."""
        return gauss_rho(moved_items(self.max_items, self.neighboring_relation), self.std)

    def run(self, noise: Run, counts: Int64, names: Sequence[str]) -> tuple[Int64, Int64]:
        """Return all places with noisy counts."""
        return np.arange(len(counts)), noise.counts.of(counts)


@final
@dataclass(frozen=True)
class KnownGumb(OneShot):
    """The k items that are first under Gumbel noise, with fresh noisy counts.

    Args:
        std: tau; Gumbel noise has the scale tau / 2.
        k: How many are shown.
        neighboring_relation: Under ``"replace_one"`` counts move both ways, and a pick costs four
            times as much.

    Examples:
        >>> KnownGumb(10, k=5).rho
        Fraction(1, 20)

    References:
        Cardoso and Rogers 2022, Table 1.
    """

    k: int
    neighboring_relation: str = _RELATION
    unknown: ClassVar[bool] = False
    picks: ClassVar[bool] = True

    def __post_init__(self) -> None:
        self._check()
        integer("k", self.k, low=1, high=1 << 40, why=_WHY_COUNT)

    @property
    def rho(self) -> Fraction:
        """K / std^2: k picks, and k counts."""
        return _top_rho(self.k, self.std, self.neighboring_relation)

    def run(self, noise: Run, counts: Int64, names: Sequence[str]) -> tuple[Int64, Int64]:
        """Return k places with noisy counts; all where there are no more."""
        assert noise.order is not None
        first = noise.order.of(counts << LATTICE_BITS)[: self.k]
        return first, noise.counts.of(counts[first])


@final
@dataclass(frozen=True)
class UnkGauss(OneShot):
    """Gaussian noise on the counts of items that occur, and a threshold that hides single events.

    Args:
        std: Of the noise.
        max_items: Most items of one event.
        delta: Chance that an item is shown that one of two neighboring histograms alone has.
        kbar: Only so many of the largest counts are seen; the threshold is then above the next
            one, with noise of its own. None: all that occur are seen, and the threshold is fixed.
        neighboring_relation: Under ``"replace_one"`` twice as many items move, and with ``kbar``
            the next count as well, so that the threshold is one higher.

    Examples:
        >>> algorithm = UnkGauss(1, max_items=1, delta=1e-6, kbar=10)
        >>> [round(float(a.offset), 6) for a in (algorithm, UnkGauss(1, max_items=1, delta=1e-6))]
        [7.722357, 5.753424]

    References:
        Cardoso and Rogers 2022, section 4.
    """

    max_items: int
    delta: Fraction
    kbar: int | None = None
    neighboring_relation: str = _RELATION
    unknown: ClassVar[bool] = True
    picks: ClassVar[bool] = False

    def __post_init__(self) -> None:
        self._check()
        integer("max_items", self.max_items, low=1, high=1 << 40, why=_WHY_COUNT)
        if self.kbar is not None:
            integer("kbar", self.kbar, low=1, high=1 << 40, why=_WHY_COUNT)
        delta = exact("delta", self.delta, above=0, below=1, why=_WHY_DELTA)
        object.__setattr__(self, "delta", delta)

    @property
    def rho(self) -> Fraction:
        """One half of max_items / std^2: with ``kbar`` too, where sorted counts move instead."""
        return gauss_rho(self._moved, self.std)

    @property
    def threshold_delta(self) -> Fraction:
        """Delta."""
        return self.delta

    @cached_property
    def offset(self) -> Fraction:
        """How far above the next count (with ``kbar``), or above 0, the threshold lies."""
        if self.kbar is None:
            return 1 + self.std * normal_quantile(self.delta / self._moved)
        gap = 2 if self._replaced else 1
        quantile = normal_quantile(self.delta / min(self._moved, self.kbar))
        return gap + sqrt_up(Fraction(2)) * self.std * quantile

    @property
    def _moved(self) -> int:
        return moved_items(self.max_items, self.neighboring_relation)

    def run(self, noise: Run, counts: Int64, names: Sequence[str]) -> tuple[Int64, Int64]:
        """Return the places above the threshold, with the noisy counts that passed it."""
        if self.kbar is None:
            noisy = noise.counts.of(counts)
            # rounding lifts a draw by at most half a lattice unit
            passed = noisy > ceil(self.offset * _UNIT + _HALF)
            return np.flatnonzero(passed), noisy[passed]
        best, following = _largest(counts, names, self.kbar)
        noisy = noise.counts.of(np.append(counts[best], following))
        # two draws are rounded: one lattice unit
        passed = noisy[:-1] - noisy[-1] > ceil(self.offset * _UNIT) + 1
        return best[passed], noisy[:-1][passed]


@final
@dataclass(frozen=True)
class UnkGumb(OneShot):
    """The first items under Gumbel noise until a noisy threshold, at most k, with fresh counts.

    Args:
        std: tau; Gumbel noise has the scale tau / 2.
        k: Most items shown.
        kbar: Only so many of the largest counts are seen, at least k.
        delta: Chance that an item is shown that one of two neighboring histograms alone has.
        neighboring_relation: Under ``"replace_one"`` a pick costs four times as much, and the
            threshold is one higher.

    Examples:
        >>> round(float(UnkGumb(1, k=1, kbar=10, delta=1e-6).offset), 6)
        9.059048

    References:
        Cardoso and Rogers 2022, Table 1; Durfee and Rogers 2019.
    """

    k: int
    kbar: int
    delta: Fraction
    neighboring_relation: str = _RELATION
    unknown: ClassVar[bool] = True
    picks: ClassVar[bool] = True

    def __post_init__(self) -> None:
        self._check()
        k = integer("k", self.k, low=1, high=1 << 40, why=_WHY_COUNT)
        integer("kbar", self.kbar, low=k, high=1 << 40, why=_WHY_COUNT)
        delta = exact("delta", self.delta, above=0, below=1, why=_WHY_DELTA)
        object.__setattr__(self, "delta", delta)

    @property
    def rho(self) -> Fraction:
        """K / std^2: k picks, and k counts."""
        return _top_rho(self.k, self.std, self.neighboring_relation)

    @property
    def threshold_delta(self) -> Fraction:
        """Delta."""
        return self.delta

    @cached_property
    def offset(self) -> Fraction:
        """How far above the next count the threshold lies, before its own noise."""
        gap = 2 if self._replaced else 1
        return gap + gumbel_offset(self.std, self.delta / self.kbar)

    def run(self, noise: Run, counts: Int64, names: Sequence[str]) -> tuple[Int64, Int64]:
        """Return the places before the threshold in the noisy order, with fresh noisy counts."""
        assert noise.order is not None
        best, following = _largest(counts, names, self.kbar)
        threshold = (following << LATTICE_BITS) + ceil(self.offset * _UNIT)
        order = noise.order.of(np.append(counts[best] << LATTICE_BITS, threshold))
        before = int(np.flatnonzero(order == len(best))[0])
        found = best[order[: min(before, self.k)]]
        return found, noise.counts.of(counts[found])


def _top_rho(k: int, std: Fraction, relation: str) -> Fraction:
    return selection_rho(k, std, relation) + gauss_rho(k, std)


def _largest(counts: Int64, names: Sequence[str], kbar: int) -> tuple[Int64, int]:
    """Return the places of the kbar largest counts, the first by name among equals, and the next.

    The next is 0 where there is none.
    """
    if len(counts) <= kbar:
        return np.arange(len(counts)), 0
    following = int(np.partition(counts, len(counts) - kbar - 1)[len(counts) - kbar - 1])
    above = np.flatnonzero(counts > following)
    equal = sorted(np.flatnonzero(counts == following).tolist(), key=names.__getitem__)
    best = np.concatenate((above, np.array(equal[: kbar - len(above)], np.int64)))
    return best, following


def made_for(
    kind: type[OneShot],
    guarantee: Guarantee,
    runs: int,
    delta_share: float | Fraction = _HALF,
    **options: Any,
) -> OneShot:
    """Return an algorithm with the noise that a guarantee pays for, of so many runs."""
    budget = budget_of(
        guarantee, gaussian=not kind.picks, unknown=kind.unknown, delta_share=delta_share
    )
    if kind.unknown:
        options["delta"] = budget.delta / runs
    price = kind(std=Fraction(1), **options).rho
    found = kind(std=std_for(budget.rho, price * runs), **options)
    assert runs * found.rho <= budget.rho
    return found
