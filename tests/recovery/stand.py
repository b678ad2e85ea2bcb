"""A small plan, a source made of rows, and one place with everything a run needs."""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from datetime import UTC
from datetime import datetime as _datetime
from fractions import Fraction
from functools import cache
from pathlib import Path

import numpy as np
import polars as pl

from tidegauge.engine.run import run
from tidegauge.engine.source import Source
from tidegauge.mechanisms.clip_plan import UNIT, clip_plan
from tidegauge.mechanisms.design import compare, design
from tidegauge.mechanisms.discovery import Discover
from tidegauge.mechanisms.first_values import FirstValues, set_apart, spends, threshold_of
from tidegauge.mechanisms.mean import Bounds, mean_request
from tidegauge.mechanisms.request import Request, request_of
from tidegauge.mechanisms.selection import Select
from tidegauge.planning.parts import Clip
from tidegauge.planning.plan import Clock, Plan, PlannedGauge, TimeColumn
from tidegauge.planning.settings import Settings
from tidegauge.planning.verified import verify_plan
from tidegauge.privacy.guarantee import ZCDP, ApproxDP, GaussianDP, PureDP
from tidegauge.privacy.unit import Event, NeighboringRelation, Neighbors
from tidegauge.strategies.decay import Exponential, Running, Step, Window

HOUR = 3_600_000_000
START = 1_356_998_400_000_000  # 2013-01-01T00:00:00Z
KINDS = ("AA", "B6", "UA")
VIEWS = (("step", Step()), ("running", Running()), ("day", Window(24)), ("daily", Window(24)),
         ("recent", Exponential(half_life=12)))  # fmt: skip


def datetime(*parts):
    """A moment in UTC."""
    return _datetime(*parts, tzinfo=UTC)


@cache
def plan_of(*, end=48, pure=False, views=VIEWS, cells=KINDS, start=START, gauges=("flights",)):
    """A plan of counts by kind, with a sixth of the rest; ``pure`` has blocks that stay open."""
    guarantee = PureDP(1) if pure else GaussianDP(1)
    if pure:  # decays of other kinds are not sums of blocks
        views = tuple(pair for pair in views if not isinstance(pair[1], Exponential))
    mechanism = design(
        request_of(
            views=dict(views), unit="event", cells=len(cells) + 1, end=end,
            guarantee=guarantee,
        )
    )  # fmt: skip
    if len(gauges) > 1:
        from tidegauge.privacy.ledger import GaussianCost, Ledger

        costs = Ledger(mechanism.guarantee).split([1] * len(gauges), GaussianCost)
        scale = mechanism.law.scale * len(gauges)
        mechanism = replace(mechanism, cost=costs[0], law=type(mechanism.law)(scale))
    one = PlannedGauge(
        name="flights", kind="count", column=None, low=0, high=1, round_to=Fraction(1), where=None,
        by=(("kind", cells),), other="other", views=views, every=(("daily", 24),), anticipate=(),
        budget_weight=Fraction(1), mechanism=mechanism,
    )  # fmt: skip
    return Plan(
        clock=Clock(start, HOUR, end), time=TimeColumn("at", "UTC", "iso"), unit=None,
        relation=NeighboringRelation.ADD_OR_REMOVE_ONE, guarantee=mechanism.guarantee,
        gauges=tuple(replace(one, name=name) for name in gauges),
        about=(("title", "Flights of a test"),), versions=(("tidegauge", "0.1.0"),),
    )  # fmt: skip


@cache
def distinct_plan_of(*, end=48, window=5, pure=False):
    """A plan of different ids by kind, in a window and since the start."""
    plan, gauges = plan_of(end=end, pure=pure), []
    for name, view in (("flights", ("window", Window(window))), ("ever", ("running", Running()))):
        mechanism = design(
            request_of(
                views=dict([view]), unit="event", cells=len(KINDS) + 1, end=end,
                guarantee=PureDP(Fraction(1, 2)) if pure else GaussianDP(Fraction(1, 2)),
                distinct=window if name == "flights" else "ever",
                max_per_step=1 << 30 if name == "flights" else None,
            )
        )  # fmt: skip
        gauges.append(
            replace(
                plan.gauges[0], name=name, kind="count_distinct", column="id", views=(view,),
                every=(), mechanism=replace(mechanism, guarantee=plan.guarantee),
            )
        )  # fmt: skip
    return replace(plan, gauges=tuple(gauges))


def mean_plan_of(*, end=48, pure=False):
    """A plan of the mean of ids, which are numbers, by kind."""
    plan = plan_of(end=end, pure=pure)
    mechanism = design(
        mean_request(
            bounds=Bounds(0, 40), cells=len(KINDS) + 1, views=dict(plan.gauges[0].views),
            unit="event", end=end, guarantee=plan.guarantee,
        )
    )  # fmt: skip
    one = replace(
        plan.gauges[0], kind="mean", column="id", low=0, high=40,
        mechanism=replace(mechanism, cells=None, scalar=False),
    )  # fmt: skip
    return replace(plan, gauges=(one,))


def clipped_plan_of(*, end=48):
    """A plan of the sum of ids, which are numbers, by kind, whose clip is found."""
    plan = plan_of(end=end)
    found = clip_plan(
        of="sum", bounds=Bounds(0, 40), cells=len(KINDS) + 1, views=dict(plan.gauges[0].views),
        unit="event", end=end, guarantee=GaussianDP(4),
    )  # fmt: skip
    one = replace(
        plan.gauges[0], kind="sum", column="id", low=0, high=40, mechanism=found.main,
        clip=Clip(found.share, found.bins),
    )  # fmt: skip
    return replace(plan, guarantee=found.main.guarantee, gauges=(one,))


@cache
def drawn_plan_of(*, end=48, first=12):
    """The same plan with a clip that is drawn from the values of the first steps."""
    plan, guarantee = plan_of(end=end), ApproxDP(4, Fraction(1, 1000))
    asked = FirstValues(first, quantile=Fraction(1, 4))
    (cost,) = spends(guarantee, [asked], [Fraction(1)])
    sums = request_of(
        views=dict(plan.gauges[0].views), cells=len(KINDS) + 1, max_change=(0, UNIT), unit="event",
        end=end, guarantee=guarantee,
    )  # fmt: skip
    (found,) = compare([replace(sums, rescaled=True)], set_apart([cost]))
    one = replace(
        plan.gauges[0], kind="sum", column="id", low=0, high=40, mechanism=found.plan,
        clip=threshold_of(asked, cost, Event()),
    )  # fmt: skip
    made = replace(plan, guarantee=guarantee, gauges=(one,))
    verify_plan(made)
    return made


@cache
def found_plan_of(*, end=48, view=None):
    """A plan of counts by kinds that nobody knows, with so much delta that ten events name one."""
    discover = Discover(view or Running(), Fraction(1, 2), 8)
    views = (("step", Step()), ("running", Running()), ("daily", Window(24)))
    mechanism = design(
        request_of(
            views=dict(views), unit="event", end=end, guarantee=ApproxDP(4, Fraction(1, 20)),
            discover=discover,
        )
    )  # fmt: skip
    plan = plan_of(end=end)
    return replace(
        plan,
        guarantee=mechanism.guarantee,
        gauges=(
            replace(
                plan.gauges[0], by=(("kind", ()),), other=None, views=views, mechanism=mechanism,
                discover=discover,
            ),
        ),
    )  # fmt: skip


def chosen_plan_of(*, end=48):
    """A plan of the largest of three kinds, of events in any number of them."""
    select = Select(1, 20, 1)
    plan = plan_of(end=end)
    neighbors = Neighbors(Event(), plan.relation, 0, 1, 3, 3)
    asked = Request(
        views=(("running", Running()),), cells=None, scalar=False, guarantee=ZCDP(10),
        neighbors=neighbors, max_per_step=1000, horizon=end, end=end, level=0.95, select=select,
    )  # fmt: skip
    gauge = replace(
        plan.gauges[0], other=None, views=asked.views, every=(), mechanism=design(asked),
        max_items=3, top=1, select=select,
    )  # fmt: skip
    return replace(plan, guarantee=asked.guarantee, event="id", gauges=(gauge,))


def rows(seed=0, count=400, hours=48):
    """Events with times and kinds; some of a kind that is not declared."""
    rng = np.random.default_rng(seed)
    at = START + rng.integers(0, hours * HOUR, count)
    kinds = rng.choice([*KINDS, "XX"], count)
    ids = rng.integers(0, 40, count).astype(str)
    times = pl.Series("at", at).cast(pl.Datetime("us", "UTC"))
    return pl.DataFrame([times, pl.Series("kind", kinds), pl.Series("id", ids)])


class Rows(Source):
    """A source of the rows of a frame."""

    def __init__(self, frame):
        self.frame = frame

    def batches(self, columns):
        yield self.frame.select(columns)

    def describe(self):
        return "rows of a test"


@dataclass(frozen=True)
class Place:
    """A folder for a store, a mark elsewhere, and a public folder."""

    root: Path

    @property
    def settings(self):
        return Settings(
            base=str(self.root), sources=(), store="private/a.tidegauge", public="public",
            mark="marks/a.mark", sinks=(),
        )  # fmt: skip

    @property
    def store(self):
        return self.root / "private" / "a.tidegauge"

    @property
    def public(self):
        return self.root / "public"

    @property
    def mark(self):
        return self.root / "marks" / "a.mark"

    def run(self, plan, frame, **options):
        return run(plan, Rows(frame), self.settings, **options)

    def files(self):
        """Name and bytes of every published file."""
        public = self.public
        return {
            str(path.relative_to(public)): path.read_bytes()
            for path in sorted(public.rglob("*"))
            if path.is_file() and path.suffix != ".part"  # nobody reads those
        }

    def numbers(self):
        """Files that must never change once they are there."""
        return {
            name: data
            for name, data in self.files().items()
            if name.startswith(("releases", "measurements"))
        }


if __name__ == "__main__":
    import tidegauge.engine.run as running

    running._LANES = 8  # a block is two steps
    Place(Path(sys.argv[1])).run(plan_of(), rows())
