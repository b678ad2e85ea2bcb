"""The plan of a gauge whose clip is found: what measures under it, and what finds it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import sqrt
from typing import Any, Literal, final

from tidegauge.checks import exact, integer, shown
from tidegauge.errors import InvalidParameter, UnsupportedCombination
from tidegauge.mechanisms.accumulator import MOST
from tidegauge.mechanisms.clipping import next_epoch, octaves
from tidegauge.mechanisms.design import compare
from tidegauge.mechanisms.first_values import Threshold
from tidegauge.mechanisms.mean import Bounds, refuse_without_mean
from tidegauge.mechanisms.plan import GaugePlan
from tidegauge.mechanisms.request import EVENTS_PER_STEP, Request, cells_of, request_of
from tidegauge.privacy.guarantee import PureDP
from tidegauge.privacy.ledger import Ledger
from tidegauge.privacy.statement import privacy_statement
from tidegauge.privacy.unit import NeighboringRelation, Neighbors, PrivacyUnit
from tidegauge.strategies.decay import Step
from tidegauge.strategies.identity import Identity
from tidegauge.strategies.rescaled import refuse_rescaled, serves_rescaled

__all__ = [
    "EPOCH_EVENTS", "LEAST_SHARE", "MOST_SHARE", "SHARE", "UNIT", "ClipPlan", "clip_plan",
    "clipped_neighbors", "magnitude_neighbors", "magnitudes_request",
]  # fmt: skip

UNIT = 1 << 20
"""A value at the clip, in the integers that are measured, whatever the clip is."""
EPOCH_EVENTS = 1 << 40
"""A count of magnitudes of a whole epoch is clamped to so many events."""
SHARE, LEAST_SHARE, MOST_SHARE = Fraction(1, 8), Fraction(1, 100), Fraction(1, 2)
"""The part of the budget that learning the clip costs, unless another between two is declared."""


@final
@dataclass(frozen=True)
class ClipPlan:
    """What is measured, and at what cost: frozen, made of public numbers.

    The clip is chosen from published counts of magnitudes, or drawn once from first values.

    Attributes:
        of: ``"sum"`` or ``"mean"``.
        bounds: What a value may be, around 0: the clip never lies beyond them.
        share: The part of the budget that finding the clip costs: of mu squared for counts of
            magnitudes, of epsilon for first values.
        main: Of the clipped values; for means, sums in the first half of the cells, then counts.
        magnitudes: Of the counts of magnitudes, a step of it for each epoch: zeros, octaves above,
            octaves below; None: there are none.
        cells: How many cells the values have.
        threshold: How the clip is drawn from first values; None: it is chosen from magnitudes.
    """

    of: Literal["sum", "mean"]
    bounds: Bounds
    share: Fraction
    main: GaugePlan
    magnitudes: GaugePlan | None
    cells: int
    threshold: Threshold | None = None

    @property
    def bins(self) -> GaugePlan:
        """Of the counts of magnitudes, where the clip is chosen from them."""
        assert self.magnitudes is not None, "the clip is drawn from first values"
        return self.magnitudes

    @property
    def lag(self) -> int | None:
        """The step up to which a first clip waits for counts that leave little doubt.

        A tenth of the horizon, or as many steps as there is surely room for the events of; None:
        the horizon is unknown, and the clip waits as long as there is room.
        """
        horizon = self.main.horizon
        return None if horizon is None else max(2, min(horizon // 10, self.room + 1))

    @property
    def room(self) -> int:
        """Of how many steps the events can wait, were each of them full."""
        return self.most_waiting // self.max_events_per_step

    @property
    def most_waiting(self) -> int:
        """How many events of a cell may wait: as many as are counted exactly at one step."""
        strategy, wide = self.main.strategy, self.bounds.high - self.bounds.low
        assert serves_rescaled(strategy), "others were refused"
        return min(strategy.largest_once(self.main.max_per_step) // UNIT, MOST // wide)

    def waits(self, step: int) -> bool:
        """Whether a first clip at ``step`` should rather come an epoch later than be doubtful."""
        return (self.lag is None or step < self.lag) and self.next_epoch(step) - 1 <= self.room

    def next_epoch(self, step: int) -> int:
        """Return the first step of the epoch after that of ``step``: public, whatever the data."""
        return next_epoch(step, self.lag)

    def ends_an_epoch(self, step: int) -> bool:
        """Whether ``step`` is the last of an epoch, whatever was counted in it."""
        return self.next_epoch(step) == step + 1

    def epochs_before(self, step: int) -> int:
        """Return how many epochs end before ``step``."""
        number, first = 0, self.next_epoch(1)
        while first <= step:
            number, first = number + 1, self.next_epoch(first)
        return number

    @property
    def last_step(self) -> int | None:
        """The last step that is proved; counts of magnitudes are for any number of epochs."""
        return self.main.last_step

    @property
    def max_events_per_step(self) -> int:
        """Totals are clamped to those of so many events."""
        return self.main.max_per_step // UNIT

    @property
    def above(self) -> int:
        """How many octaves the positive values have."""
        return octaves(max(self.bounds.high, 0))

    @property
    def below(self) -> int:
        """How many octaves the negative values have."""
        return octaves(max(-self.bounds.low, 0))

    def charged(self) -> Ledger:
        """Return an account of the guarantee with both measurements charged."""
        ledger = Ledger(self.main.guarantee)
        ledger.charge({"clipped values": self.main.cost, "magnitudes": self.bins.cost})
        return ledger

    def pays_below(self) -> float:
        """Return how small the values' upper end has to be for learning it to pay.

        In parts of the declared bound. Known from the plan alone: with all of the budget the bound
        itself has the noise of a clip at this part of it, so a clip above that part is a loss.
        For a clip that is drawn from first values nearly so: mu goes about as epsilon does.
        """
        return sqrt(1 - self.share) if self.threshold is None else float(1 - self.share)

    def in_words(self) -> str:
        """Return what a release has to say of the clip."""
        found = (
            "The clip is chosen from published counts of magnitudes alone, which cost "
            f"{100 * float(self.share):.3g} % of the budget of the gauge; it moves, and each "
            "release names the one in force."
        )
        if self.threshold is not None:
            found = self.threshold.in_words()
        return (
            f"Values beyond the clip count as the clip. {found} Intervals speak of the noise, not "
            "of what the clip cuts off."
        )

    def statement(self, names: Sequence[str] | None = None) -> str:
        """Return what is promised for both measurements together, in words, as Markdown.

        Args:
            names: The names of the cells, if they have any.
        """
        values = "sums and counts" if self.of == "mean" else "sums"
        gauges = {
            "clipped values": f"Their {values}: {self.main.in_words()} {self.in_words()}",
            "magnitudes": "Counts of values by size, once an epoch of steps that are fixed in "
            f"advance: {self.bins.in_words()}",
        }
        declared = {
            **self.main.declared(),
            "cells": list(names) if names else self.cells,
            "max_change": None,  # of the measured units, which are no declared ones
            "max_cells": None,
            "max_per_step": None,
            "last step": self.last_step,
            "bounds": (self.bounds.low, self.bounds.high),
            "max_events_per_step": self.max_events_per_step,
            "share of the budget for magnitudes": self.share,
        }
        return privacy_statement(
            self.main.guarantee,
            self.main.protected,
            gauges=gauges,
            declared=declared,
            spent=self.charged().total(),
        )


def clip_plan(
    *,
    of: Any,
    bounds: Bounds,
    share: Any = SHARE,
    cells: Any = None,
    max_events_per_step: Any = None,
    **asked: Any,
) -> ClipPlan:
    """Return the plan of a :class:`~tidegauge.ClippedGauge`; reads no data.

    Args:
        of: ``"sum"`` or ``"mean"``.
        bounds: What a value may be; 0 has to be possible.
        share: The part of the budget that learning the clip costs, in [1/100, 1/2].
        cells: How many cells, or their names; all share one clip.
        max_events_per_step: Totals are clamped to those of so many events; at most 2^22.
        **asked: What :func:`~tidegauge.mechanisms.request.request_of` takes.

    Raises:
        InvalidParameter: An argument is impossible.
        UnsupportedCombination: A pure guarantee, a view without a known noise, or ids whose events
            are promised to be apart.
    """
    if of not in ("sum", "mean"):
        raise InvalidParameter(
            f'Expected "sum" or "mean", got {shown(of)}. It is what is published. Write one.'
        )
    if bounds.low > 0 or bounds.high < 0:
        raise InvalidParameter(
            f"Expected bounds around 0, got low={bounds.low} and high={bounds.high}. Clips are "
            "found from 0 on. Declare 0 as the nearer bound, or fixed bounds and no clip."
        )
    why = "It is the part of the budget that learning the clip costs. Write 0.1."
    part = exact("share", share, above=0, below=1, why=why)
    if not LEAST_SHARE <= part <= MOST_SHARE:
        raise InvalidParameter(f"Expected share in [0.01, 0.5], got {shown(share)}. {why}")
    if max_events_per_step is None:
        max_events_per_step = EVENTS_PER_STEP
    why = "Totals are clamped to those of so many events. Give the most that one step can have."
    events = integer("max_events_per_step", max_events_per_step, low=1, high=1 << 22, why=why)
    number = cells_of(cells)[0]
    mean = of == "mean"
    sums = request_of(
        cells=2 * number if mean else number, max_cells=2 if mean else 1, paired=mean,
        max_change=(-UNIT, UNIT), max_per_step=events * UNIT, **asked,
    )  # fmt: skip
    unit, relation = sums.neighbors.unit, sums.neighbors.relation
    moved = clipped_neighbors(unit, relation, bounds.low, bounds.high, number, mean=mean)
    sums = replace(sums, neighbors=moved)
    if sums.end == 1:
        raise UnsupportedCombination(
            "Expected an end of two steps or more, got one step. A clip is chosen from what "
            "earlier steps published, and there would be none. Declare a later end, or a fixed "
            "clip."
        )
    for name, decay in sums.views:
        refuse_rescaled(name, decay)
        refuse_without_mean(name, decay)
    if isinstance(sums.guarantee, PureDP):
        raise UnsupportedCombination(
            "Expected a guarantee for Gaussian noise, got a pure one. The noise of a clip that "
            "moves is known for Gaussian noise only. Declare a delta, or a fixed clip."
        )
    if unit.min_separation:
        raise UnsupportedCombination(
            "Expected events of one id that may coincide, got a min_separation. What comes before "
            "the first clip is counted together at one step. Declare no separation, or a fixed "
            "clip."
        )
    counted = magnitude_neighbors(unit, relation, bounds.low, bounds.high)
    magnitudes = magnitudes_request(sums, counted)
    requests = (
        replace(sums, rescaled=True, budget_weight=1 - part),
        replace(magnitudes, budget_weight=part),
    )
    main, bins = (found.plan for found in compare(requests))
    assert serves_rescaled(main.strategy), "others were refused"
    assert isinstance(bins.strategy, Identity), "nothing else counts steps alone with less noise"
    return ClipPlan(of, bounds, part, main, bins, number)


def clipped_neighbors(
    unit: PrivacyUnit, relation: NeighboringRelation, low: int, high: int, cells: int, *, mean: bool
) -> Neighbors:
    """Return how far a unit moves values in units of their clip: at most one unit each way."""
    below = -UNIT if mean or low < 0 else 0
    above = UNIT if mean or high > 0 else 0
    each = 2 if mean else 1
    return Neighbors(unit, relation, below, above, each, each * cells, paired=mean)


def magnitude_neighbors(
    unit: PrivacyUnit, relation: NeighboringRelation, low: int, high: int
) -> Neighbors:
    """Return how far a unit moves the counts of magnitudes: an event has one magnitude."""
    bins = 1 + octaves(max(high, 0)) + octaves(max(-low, 0))
    return Neighbors(unit, relation, 0, 1, 1, bins)


def magnitudes_request(values: Request, neighbors: Neighbors) -> Request:
    """Return what counts magnitudes beside a measurement of values: a step for each epoch.

    Args:
        values: What the values are measured with.
        neighbors: What a unit moves in the counts of one epoch, or of several together.
    """
    return replace(
        values,
        views=(("step", Step()),),
        cells=None,
        scalar=False,
        neighbors=neighbors,
        max_per_step=EPOCH_EVENTS,
        horizon=None,
        end=None,
        level=0.95,
        band="pointwise",
        anticipate=(),
        importance=(),
        every=(),
        rescaled=True,
    )
