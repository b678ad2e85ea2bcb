"""A clip of first values: what an event moves, that it is drawn once, and what it costs."""

import copy
import math
import pickle
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from tidegauge.errors import InvalidParameter, StreamEnded, UnsupportedCombination
from tidegauge.mechanisms import first_meter
from tidegauge.mechanisms.clip_plan import UNIT, ClipPlan
from tidegauge.mechanisms.clip_reading import ClipReading
from tidegauge.mechanisms.design import compare
from tidegauge.mechanisms.first_meter import FirstMeter
from tidegauge.mechanisms.first_values import FirstValues, set_apart, spends, threshold_of
from tidegauge.mechanisms.mean import Bounds, Values
from tidegauge.mechanisms.request import request_of
from tidegauge.privacy.costs import ThresholdCost
from tidegauge.privacy.guarantee import ZCDP, ApproxDP, GaussianDP, PureDP
from tidegauge.privacy.unit import Contributions, Event
from tidegauge.strategies.decay import Running, Step
from tidegauge.strategies.rescaled import EVENTS_ONCE
from tidegauge.testing import seeded_meter

HIGH, FIRST, STEPS, CELLS = 5000, 3, 8, 2
GUARANTEE = ApproxDP(1, Fraction(1, 10**6))
ASKED = FirstValues(FIRST, quantile=Fraction(1, 20))
EVENT = Event()


def plan_of(of="sum", relation="add_or_remove_one", unit="event", cells=CELLS, most=1000, **asked):
    (cost,) = spends(GUARANTEE, [ASKED], [Fraction(1)])
    change = (-UNIT if of == "mean" else 0, UNIT)
    mean = of == "mean"
    request = request_of(
        views={"step": Step(), "running": Running()}, unit=unit, cells=(1 + mean) * cells,
        guarantee=GUARANTEE, end=STEPS, max_change=change, max_cells=1 + mean, paired=mean,
        neighboring_relation=relation, max_per_step=most * UNIT, **asked,
    )  # fmt: skip
    (found,) = compare([replace(request, rescaled=True)], set_apart([cost]))
    threshold = threshold_of(ASKED, cost, found.plan.neighbors.unit)
    return ClipPlan(of, Bounds(0, HIGH), ASKED.share, found.plan, None, cells, threshold)


class Silent:
    """In the place of a meter: keeps the exact totals, and adds no noise."""

    clamped = 0

    def __init__(self, plan):
        self.plan, self.seen, self.step, self.once = plan, [], 0, {}
        self.state = {"encoder": plan.strategy.init_encoder(plan.neighbors.cells)}

    def measure(self, exact, once=None):
        exact = np.array(exact)
        if once is not None:
            self.once[self.step + 1] = once
            exact[0] += once
        self.seen.append(exact)
        rows = self.plan.strategy.encode(self.state["encoder"], exact, self.step)
        self.step += len(exact)
        return rows

    def close(self):
        pass


def silent(plan, kind=FirstMeter, first=None, step=0):
    meter, main = kind.__new__(kind), Silent(plan.main)
    main.step = step
    meter._start(plan, main, first)
    return meter


@pytest.fixture
def drawn_at(monkeypatch):
    """A function that fixes the clip, and a list of the values that it was drawn from."""
    seen = []

    def fix(clip):
        def draw(rule, values, most):
            seen.append(values.copy())
            return clip

        monkeypatch.setattr(first_meter, "measure_threshold", draw)
        return seen

    return fix


def block(events, length=STEPS):
    """Values of (step, cell, value)."""
    steps, cells, values = np.array(events, np.int64).reshape(-1, 3).T
    return Values(values, steps, cells, length, CELLS)


OTHERS = [(0, 0, 3), (1, 1, 4000), (2, 0, 50), (3, 0, 9), (5, 1, 70)]
EVENTS = [(s, c, v) for s in range(STEPS) for c in range(CELLS) for v in (-9, 0, 1, 299, 9999)]


def moved(kind, of, relation, clip, fix):
    """The largest squared L2 norm by which one event moves what is measured, over that charged."""
    fix(clip)
    plan, seen = plan_of(of, relation), {}
    for event in (None, *EVENTS):
        meter = silent(plan, kind)
        meter.measure(block(OTHERS if event is None else [*OTHERS, event]))
        seen[event] = np.concatenate(meter._main.seen)
    replaced = relation == "replace_one"
    pairs = [
        (a, b) for a in seen for b in seen
        if (a is None or b is None or (replaced and a[0] == b[0]))
    ]  # fmt: skip
    worst = max(float(((seen[a] - seen[b]) ** 2).sum()) for a, b in pairs)
    return worst / plan.main.neighbors.event_l2_squared


@pytest.mark.parametrize("relation", ["add_or_remove_one", "replace_one"])
@pytest.mark.parametrize("of", ["sum", "mean"])
@pytest.mark.parametrize("clip", [1, 60, HIGH])
def test_an_event_moves_no_more_than_is_charged_whenever_it_comes(of, relation, clip, drawn_at):
    assert 0.95 < moved(FirstMeter, of, relation, clip, drawn_at) <= 1


class CountsTwice(FirstMeter):
    """Broken twin: what waited counts in every block."""

    def _forget(self):
        pass

    def _waited(self, clip, step):
        return super()._waited(clip, FIRST)

    def measure(self, given):
        parts = [super(CountsTwice, self).measure(given.part(s, s + 1)) for s in range(STEPS)]
        return tuple(np.concatenate(part) for part in zip(*parts, strict=True))


class OnlyLaterOnes(FirstMeter):
    """Broken twin: what waited counts as it is."""

    def _waited(self, clip, step):
        once = super()._waited(clip, step)
        over = np.maximum(self._first["values"] - clip, 0) * UNIT // clip
        np.add.at(once, self._first["cells"], over)
        return once


@pytest.mark.parametrize("twin", [CountsTwice, OnlyLaterOnes])
def test_broken_meters_are_caught(twin, drawn_at):
    assert moved(twin, "sum", "add_or_remove_one", 60, drawn_at) > 1.01


@pytest.mark.parametrize("of", ["sum", "mean"])
def test_what_is_measured_are_the_clipped_values_what_waited_at_the_next_step(of, drawn_at):
    drawn_at(60)
    plan = plan_of(of)
    meter, reading = silent(plan), ClipReading(plan)
    rows, clips = meter.measure(block(OTHERS))
    assert [0, 0, 0, 60, 60, 60, 60, 60] == clips.tolist()
    told = np.column_stack([np.zeros_like(clips), clips])
    steps, running = reading.follow(rows, np.zeros((STEPS, 0), np.int64), told, STEPS)
    assert np.isnan(running[:FIRST]).all()
    np.testing.assert_allclose([[62, 60]], steps[FIRST : FIRST + 1, :CELLS], atol=1e-3)
    np.testing.assert_allclose([[62, 120]], running[-1:, :CELLS], atol=1e-3)
    if of == "mean":
        np.testing.assert_allclose([[3, 2]], running[-1:, CELLS:], atol=1e-6)
    assert [[FIRST + 1, 0, 60]] == reading.choices.tolist()


def test_the_clip_is_drawn_from_the_values_of_the_first_steps_within_their_bounds(drawn_at):
    seen = drawn_at(60)
    silent(plan_of()).measure(block([*OTHERS, (2, 1, 61370), (0, 0, -5)]))
    (values,) = seen
    assert [0, 3, 50, 4000, HIGH] == sorted(values.tolist())


class Forgets(FirstMeter):
    """Broken twin: the clip is no part of what is stored."""

    @property
    def state(self):
        first = {**self._first, "clip": np.zeros(1, np.int64)}
        return {**super().state, "first": first}


def draws(kind, seen):
    """How often a clip is drawn in a run that stops and goes on after every step."""
    plan, state = plan_of(), None
    given = block(OTHERS)
    for step in range(STEPS):
        meter = silent(plan, kind, None if state is None else state["first"], step)
        _, clips = meter.measure(given.part(step, step + 1))
        assert clips[0] == (60 if step >= FIRST else 0)
        state = copy.deepcopy(meter.state)
        waits = step < FIRST
        assert (len(state["first"]["values"]) > 0) == waits == (len(state["first"]["cells"]) > 0)
    return len(seen)


def test_a_clip_is_drawn_once_however_often_a_run_goes_on(drawn_at):
    assert 1 == draws(FirstMeter, drawn_at(60))


def test_a_clip_that_is_drawn_again_is_caught(drawn_at):
    assert 1 < draws(Forgets, drawn_at(60))


class TellsHowMany(FirstMeter):
    """Broken twin: the size of the sample is published in the place of a clip that is not there."""

    def measure(self, given):
        rows, clips = super().measure(given)
        clips[FIRST - 1] = len(given.values)
        return rows, clips


def public(kind, events, fix):
    """All that leaves: with the measurement hidden, the clips."""
    fix(60)
    rows, clips = silent(plan_of(), kind).measure(block(events))
    return rows.shape, clips.tolist()


def test_how_many_values_there_were_is_told_by_nothing(drawn_at):
    first = public(FirstMeter, OTHERS, drawn_at)
    for events in ([], OTHERS[1:], [*OTHERS, (0, 0, 7)], OTHERS * 50):
        assert first == public(FirstMeter, events, drawn_at)
    assert public(TellsHowMany, OTHERS, drawn_at) != public(TellsHowMany, [], drawn_at)


def seeded(plan):
    meter = FirstMeter.__new__(FirstMeter)
    meter._start(plan, seeded_meter(5, plan.main))
    return meter


@pytest.mark.parametrize(
    "values", [[], [7], [0] * 900, [2] * 900, [2] * 900 + [61370], [HIGH] * 900]
)
def test_whatever_the_values_are_the_clip_lies_between_a_grain_and_the_bound(values):
    meter = seeded(plan_of("mean"))
    given = Values(np.array(values, np.int64), None, None, STEPS, CELLS)
    rows, clips = meter.measure(given)
    assert (len(rows), {0}) == (STEPS, set(clips[:FIRST].tolist()))
    assert 1 <= clips[-1] <= HIGH
    assert len(meter.state["first"]["values"]) == 0


def test_with_enough_values_the_clip_is_their_quantile_and_one_moves_it_not():
    plan = plan_of()
    many = 2 * plan.threshold.needed
    rng = np.random.default_rng(4)
    values = np.append(np.rint(rng.exponential(30, many)), 61370).astype(np.int64)
    steps = rng.integers(0, FIRST, len(values))
    clip = seeded(plan).measure(Values(values, steps, None, STEPS, CELLS))[1][-1]
    quantile = -30 * math.log(float(ASKED.quantile))
    assert 0.9 * quantile < clip < 1.5 * quantile


def test_a_block_beyond_the_end_keeps_nothing(drawn_at):
    drawn_at(60)
    meter = silent(plan_of())
    with pytest.raises(StreamEnded, match="up to 8, got 9"):
        meter.measure(block(OTHERS, STEPS + 1))
    assert (len(meter.state["first"]["values"]), []) == (0, meter._main.seen)


def test_meters_cannot_be_copied_and_show_nothing(drawn_at):
    drawn_at(60)
    meter = silent(plan_of())
    meter.measure(block([(0, 0, 4321)], 1))
    for attempt in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(Exception, match="meter"):
            attempt(meter)
    assert "4321" not in repr(meter) + repr(vars(meter)["_plan"])
    meter.close()
    assert len(meter.state["first"]["values"]) == 0


# --- what waited -----------------------------------------------------------------------------


class OneStepsMost(FirstMeter):
    """Broken twin: what waited is clamped to what one step may have."""

    def _waited(self, clip, step):
        most, once = self._plan.main.max_per_step, super()._waited(clip, step)
        return None if once is None else np.clip(once, -most, most)


class OnlyIfAnyCame(FirstMeter):
    """Broken twin: whether a step adds something once is decided by the data."""

    def _waited(self, clip, step):
        return super()._waited(clip, step) if len(self._first["values"]) else None


def added_once(kind, events, fix, length=1):
    """At which steps something is added once, in blocks of a length."""
    fix(60)
    meter = silent(plan_of("mean"), kind)
    given = block(events)
    for start in range(0, STEPS, length):
        meter.measure(given.part(start, min(start + length, STEPS)))
    return {step: len(once) for step, once in meter._main.once.items()}


@pytest.mark.parametrize("length", [1, FIRST, FIRST + 1, STEPS])
@pytest.mark.parametrize("events", [OTHERS, [], OTHERS[3:]])
def test_one_step_adds_what_waited_even_if_nothing_did(events, length, drawn_at):
    assert {FIRST + 1: 2 * CELLS} == added_once(FirstMeter, events, drawn_at, length)


def test_a_step_that_adds_only_what_came_is_caught(drawn_at):
    assert added_once(OnlyIfAnyCame, [], drawn_at) != added_once(OnlyIfAnyCame, OTHERS, drawn_at)


@pytest.mark.parametrize("of", ["sum", "mean"])
def test_what_waited_is_counted_whole_though_a_step_holds_fewer_events(of, drawn_at):
    drawn_at(60)
    meter = silent(plan_of(of, most=20))
    meter.measure(block([(step, 0, 45) for step in range(FIRST) for _ in range(700)]))
    waited = meter._main.once[FIRST + 1]
    if of == "sum":
        assert [2100 * 45 * UNIT // 60, 0] == waited.tolist()
    else:  # each event's own distance from 30, in units of 30
        assert [2100 * UNIT // 2, 0, 2100 * UNIT, 0] == waited.tolist()
    assert not len(meter.state["first"]["values"])


def covered(kind, of, cells=400, events=800):
    """The share of cells whose interval covers the truth right after much waited."""
    plan = plan_of(of, cells=cells, most=200, level=0.9)
    meter, reading = kind.__new__(kind), ClipReading(plan)
    meter._start(plan, seeded_meter(7, plan.main))
    every = np.arange(cells * events)
    given = Values(np.full(len(every), 45), every % FIRST, every % cells, STEPS, cells)
    rows, clips = meter.measure(given)
    told = np.column_stack([np.zeros_like(clips), clips])
    decoded = reading.follow(rows, np.zeros((STEPS, 0), np.int64), told, STEPS)[1][FIRST:]
    steps = np.arange(FIRST + 1, STEPS + 1)
    if of == "mean":
        _, lower, upper, count, std = reading.means("running", steps, decoded)
        assert kind is not FirstMeter or (np.abs(count - events) < 6 * std).all()
        truth = 45.0
    else:
        half = reading.half_width("running", steps)[:, None]
        lower, upper, truth = decoded - half, decoded + half, 45.0 * events
    return ((lower <= truth) & (truth <= upper)).mean(axis=1)


@pytest.mark.parametrize("of", ["sum", "mean"])
def test_intervals_cover_what_was_counted_after_much_waited_for_a_drawn_clip(of, drawn_at):
    drawn_at(60)
    assert (np.abs(covered(FirstMeter, of) - 0.9) < 4 * (0.09 / 400) ** 0.5).all()


@pytest.mark.parametrize("of", ["sum", "mean"])
def test_clamping_what_waited_to_a_steps_most_is_caught(of, drawn_at):
    drawn_at(60)
    assert (covered(OneStepsMost, of) < 0.7).all()


@pytest.mark.parametrize("most", [1, 600, 1 << 22])
@pytest.mark.parametrize("of", ["sum", "mean"])
def test_there_is_room_for_what_waits_for_a_drawn_clip(of, most):
    main = plan_of(of, most=most).main
    assert main.strategy.largest_once(main.max_per_step) >= EVENTS_ONCE * UNIT


# --- what it costs ---------------------------------------------------------------------------


@pytest.mark.parametrize("events", [1, 2, 7, 1000])
def test_k_events_of_an_id_spend_no_more_than_is_charged(events):
    cost = ThresholdCost(Fraction(1, 2), Fraction(1, 10**6))
    rule = threshold_of(FirstValues(4), cost, Contributions(events)).rule
    assert events * rule.epsilon == cost.epsilon
    spent = sum(rule.delta * Fraction(math.exp(j * float(rule.epsilon))) for j in range(events))
    assert Fraction(1, 2) * cost.delta < spent <= cost.delta * (1 + Fraction(1, 10**12))


def test_a_rule_of_one_event_for_ids_of_several_is_caught():
    cost = ThresholdCost(Fraction(1, 2), Fraction(1, 10**6))
    one = threshold_of(FirstValues(4), cost, EVENT)
    assert one != threshold_of(FirstValues(4), cost, Contributions(2))
    assert 2 * one.rule.epsilon > cost.epsilon


def test_gauges_spend_their_share_of_their_part():
    asked = [FirstValues(4, share=Fraction(1, 5), delta_share=Fraction(1, 4)), None, FirstValues(9)]
    costs = spends(GUARANTEE, asked, [Fraction(1), Fraction(2), Fraction(1)])
    assert ThresholdCost(Fraction(1, 20), Fraction(1, 16 * 10**6)) == costs[0]
    assert costs[1] is None
    apart = set_apart(costs)
    assert apart.epsilon == Fraction(1, 20) + Fraction(1, 8)
    assert set_apart([None]) is None
    assert (None, None) == spends(PureDP(1), [None, None], [Fraction(1), Fraction(1)])


@pytest.mark.parametrize("guarantee", [PureDP(1), ZCDP(1), GaussianDP(1)])
def test_a_guarantee_without_epsilon_and_delta_is_refused(guarantee):
    with pytest.raises(UnsupportedCombination, match="Give epsilon and delta"):
        spends(guarantee, [FirstValues(4)], [Fraction(1)])


def test_what_has_no_meaning_is_refused():
    bad = [
        {"first": 0}, {"first": 1.5}, {"first": True}, {"first": 1 << 60},
        {"quantile": 0}, {"quantile": 1}, {"beta_lt": 0}, {"beta_lt": 0.5}, {"share": 0},
        {"share": 1}, {"delta_share": 1}, {"delta_share": math.nan},
    ]  # fmt: skip
    for changed in bad:
        with pytest.raises(InvalidParameter):
            FirstValues(**{"first": 4, **changed})
    cost = ThresholdCost(20, Fraction(1, 10**6))
    with pytest.raises(UnsupportedCombination, match="first values"):
        threshold_of(FirstValues(4), cost, EVENT)
    for numbers in ((0, 0.1), (1, 0), (1, 1)):
        with pytest.raises(InvalidParameter):
            ThresholdCost(*numbers)


@pytest.mark.parametrize("epsilon", [0.1, 0.5])
@pytest.mark.parametrize("quantile", [0.00425, 0.1])
def test_so_many_values_keep_the_declared_bound_out_of_the_clip(epsilon, quantile):
    """The noise holds U e^-bk, k the number of values beyond the quantile."""
    cost = ThresholdCost(epsilon, Fraction(1, 10**9))
    found = threshold_of(FirstValues(4, quantile=quantile), cost, EVENT)
    rule = found.rule

    def moved(count):
        beyond = count - rule.rank(count)
        return float(rule.kappa * (1 + rule.shift) / rule.a) * math.exp(-float(rule.b) * beyond)

    assert 0.9e-4 < moved(found.needed) < 1.2e-4
    assert moved(found.needed // 4) > 0.5
    assert f"{found.needed:,} values" in found.in_words()
