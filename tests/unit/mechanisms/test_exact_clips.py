"""Totals beyond 64 bits, and what waits for a clip: exact, cut off, counted whole."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tidegauge as tg
from tidegauge.mechanisms.clip_meter import ClipMeter, in_units
from tidegauge.mechanisms.clip_plan import UNIT, clip_plan
from tidegauge.mechanisms.clip_reading import ClipReading
from tidegauge.mechanisms.mean import Bounds, Values
from tidegauge.mechanisms.mean_gauge import MeanGauge
from tidegauge.mechanisms.mean_release import NO_CLIP
from tidegauge.strategies.blt import Blt
from tidegauge.strategies.identity import Identity
from tidegauge.strategies.rescaled import EVENTS_ONCE
from tidegauge.testing import seeded_meter

LARGEST = 1 << 39
MOST = 1 << 24  # so many of the largest values are 2^63 grains
ASKED = {"views": [tg.Running()], "unit": "event", "guarantee": tg.ZCDP(5), "horizon": 20}


def plan_of(of="sum", bounds=(0, LARGEST), **changes):
    return clip_plan(of=of, bounds=Bounds(*bounds), **(ASKED | changes))


class Seen:
    """In the place of a meter: keeps what is measured, clamped as it is, and measures nothing."""

    def __init__(self, plan):
        self.plan, self.step, self.rows, self.once = plan, 0, [], None

    def measure(self, exact, once=None):
        self.rows.append(np.clip(exact, -self.plan.max_per_step, self.plan.max_per_step))
        self.once = self.once if once is None else once
        self.step += len(exact)
        return exact


def seen(plan):
    meter = ClipMeter.__new__(ClipMeter)
    meter._start(plan, Seen(plan.main), Seen(plan.bins))
    return meter


def wrapping(self, each):
    """Broken twin: sums in 64 bits, and no more."""
    out = np.zeros((self.length, self.number), np.int64)
    np.add.at(out, (self.steps, self.cells), each)
    return out


# --- sums that do not fit in 64 bits ---------------------------------------------------------


def moved(of, low, size):
    """How far one more event of the largest value moves what is measured, in units of its range."""
    plan, found = plan_of(of, (low, LARGEST), max_events_per_step=1 << 22), []
    for events in (size - 1, size):
        meter = seen(plan)
        values = Values(np.full(events, LARGEST), None, None, 1, 1)
        meter.measure(values, (-low, LARGEST))
        found.append(meter._main.rows[0][0].astype(float))
    return float(np.abs(found[1] - found[0]).max()) / UNIT


@pytest.mark.slow
@pytest.mark.parametrize("of", ["sum", "mean"])
@pytest.mark.parametrize("low", [0, -LARGEST])
def test_no_event_moves_a_total_beyond_64_bits_by_more_than_it_adds(of, low):
    assert moved(of, low, MOST) <= 1


@pytest.mark.slow
def test_totals_that_wrap_are_caught(monkeypatch):
    monkeypatch.setattr(Values, "totals", wrapping)
    assert moved("sum", -LARGEST, MOST) > 1000


@pytest.mark.parametrize(("totals", "wraps"), [(Values.totals, False), (wrapping, True)])
def test_sums_stay_at_the_end_of_what_64_bits_hold(totals, wraps):
    each = np.full(MOST, LARGEST)
    given = Values(each, None, None, 1, 1)
    few, many = (int(totals(given.part(0, 1), each)[0, 0]) for each in (each - (1 << 38), each))
    assert few == (MOST * LARGEST >> 1)
    assert (few > many) == wraps


def means_near_the_end():
    """Noisy means of values that are all the largest; a sum beyond 64 bits must change nothing."""
    gauge = MeanGauge(
        views=[tg.Step()], bounds=(-LARGEST, LARGEST), guarantee=tg.ZCDP(5), unit="event",
        end=2, max_events_per_step=1 << 22,
    )  # fmt: skip
    values = np.full(2 * MOST - 1, LARGEST)
    steps = np.repeat([0, 1], [MOST - 1, MOST])
    return gauge.update_many(values, steps, 2)["step"].value / LARGEST


@pytest.mark.slow
def test_means_of_values_whose_sum_is_beyond_64_bits_are_right(monkeypatch):
    assert means_near_the_end() == pytest.approx([1, 1], abs=1e-3)
    monkeypatch.setattr(Values, "totals", wrapping)
    assert not means_near_the_end()[1] > 0.9


@given(st.lists(st.integers(-LARGEST, LARGEST), max_size=30), st.randoms(use_true_random=False))
def test_totals_are_exact_in_any_order(values, random):
    shuffled = random.sample(values, len(values))
    each = np.array(shuffled, np.int64)
    assert sum(values) == Values(each, None, None, 1, 1).totals(each)[0, 0]


@given(st.integers(-(1 << 63), (1 << 63) - 1), st.integers(1, 1 << 40), st.data())
def test_totals_of_any_size_have_units_that_an_event_moves_by_one(total, clip, data):
    more = min(max(total + data.draw(st.integers(-clip, clip)), -(1 << 63)), (1 << 63) - 1)
    before, after = (int(in_units(np.array([t], np.int64), clip)[0]) for t in (total, more))
    assert abs(after - before) <= UNIT
    assert abs(before) <= 1 << 62


# --- what waits ------------------------------------------------------------------------------


def after_waiting(plan, events, value):
    """A meter for whose first clip so many events of one value have waited."""
    meter = seen(plan)
    meter.measure(Values([value], None, None, 1, 1), None)
    for array in meter._waiting.values():  # one event more than 64 bits hold is seen, not made
        array[...] = np.minimum(array.astype(object) * (events - 1), 1 << 62).astype(np.int64)
    meter.measure(Values([value], None, None, 1, 1), None)
    return meter


@pytest.mark.parametrize("of", ["sum", "mean"])
@pytest.mark.parametrize("events", [1 << 22, (1 << 23) - 1, 1 << 23, MOST - 1, MOST, 1 << 32])
@pytest.mark.parametrize(("value", "low"), [(LARGEST, 0), (-LARGEST, -LARGEST), (1, -3)])
def test_an_event_more_that_waits_moves_what_is_counted_by_no_more_than_it_adds(
    of, events, value, low
):
    plan, found = plan_of(of, (low, LARGEST)), []
    for number in (events, events + 1):
        meter = after_waiting(plan, number, value)
        meter.measure(Values([], None, None, 1, 1), (-low, LARGEST))
        found.append(meter._main.once.astype(float))
        assert not any(array.any() for array in meter._waiting.values())
    change = np.abs(found[1] - found[0]) / UNIT
    assert change.max() <= 1
    if events < plan.most_waiting:
        assert change.max() > 0.99 or value == 1
        reach = LARGEST if of == "sum" else (LARGEST - low) / 2
        middle = 0 if of == "sum" else (LARGEST + low) / 2
        assert found[0][0] == pytest.approx(events * (value - middle) / reach * UNIT, rel=1e-9)


@pytest.mark.parametrize("of", ["sum", "mean"])
def test_what_waits_is_counted_whole_though_a_step_holds_fewer_events(of):
    plan = plan_of(of, (0, 5000), max_events_per_step=600)
    meter = seen(plan)
    for _ in range(24):
        meter.measure(Values(np.full(500, 30), None, None, 1, 1), None)
    meter.measure(Values(np.full(700, 30), None, None, 1, 1), (0, 60))
    if of == "sum":
        assert (meter._main.once[0], meter._main.rows[-1][0, 0]) == (6000 * UNIT, 350 * UNIT)
    else:
        assert (meter._main.once[1], meter._main.rows[-1][0, 1]) == (12_000 * UNIT, 600 * UNIT)
        assert meter._main.once[0] == meter._main.rows[-1][0, 0] == 0


@pytest.mark.parametrize("of", ["sum", "mean"])
@pytest.mark.parametrize(
    ("events", "per_step", "first"), [(12_000, 600, 25), (14_400_000, 1 << 20, 4)]
)
def test_intervals_cover_what_was_counted_after_much_waited(of, events, per_step, first):
    """Waiting sums beyond a step's most events: releases that were cut off would be false."""
    plan = plan_of(of, (0, 5000), max_events_per_step=per_step, cells=400, level=0.9)
    assert plan.most_waiting > 400_000_000
    meter = ClipMeter.__new__(ClipMeter)
    meter._start(plan, seeded_meter(1, plan.main), seeded_meter(2, plan.bins))
    reading = ClipReading(plan)
    reading._due = 1 << 30
    nothing = Values([], None, None, 1, 400)
    for _ in range(first - 1):
        reading.decode(*meter.measure(nothing, None), 1)
    for name, table in zip(("below", "above"), meter._tables, strict=True):
        meter._waiting[name][...] = np.minimum(table, 30)[:, None] * events * (name == "above")
    meter._waiting["counts"][...] = events
    reading._take((0, 60))
    decoded = reading.decode(*meter.measure(nothing, (0, 60)), 1)[0]
    steps = np.array([first])
    if of == "mean":
        _, lower, upper, _, _ = reading.means("running", steps, decoded)
        truth = 30.0
    else:
        half = reading.half_width("running", steps)[:, None]
        lower, upper, truth = decoded - half, decoded + half, 30.0 * events
    covered = float(((lower <= truth) & (truth <= upper)).mean())
    assert abs(covered - 0.9) < 4 * (0.09 / 400) ** 0.5


class OneStepsMost(ClipMeter):
    """Broken twin: what waited is clamped to what one step may have."""

    def _waited(self, clip):
        most = self._plan.main.max_per_step
        return np.clip(super()._waited(clip), -most, most)


def test_clamping_what_waited_to_a_steps_most_is_caught():
    plan = plan_of("sum", (0, 5000), max_events_per_step=600)
    meter = OneStepsMost.__new__(OneStepsMost)
    meter._start(plan, Seen(plan.main), Seen(plan.bins))
    meter.measure(Values(np.full(900, 60), None, None, 1, 1), None)
    meter.measure(Values([], None, None, 1, 1), (0, 60))
    assert meter._main.once[0] < 900 * UNIT


@pytest.mark.parametrize("horizon", [None, 20, 8760, 1 << 24])
@pytest.mark.parametrize("per_step", [1, 600, 1 << 20, 1 << 22])
@pytest.mark.parametrize("bound", [1, 5000, LARGEST])
def test_a_first_clip_comes_before_more_than_fits_can_wait(horizon, per_step, bound):
    plan = plan_of("sum", (0, bound), horizon=horizon, max_events_per_step=per_step)
    room = plan.most_waiting
    assert room >= min(1 << 32, (1 << 62) // bound)
    step = plan.next_epoch(1)
    while plan.waits(step):
        step = plan.next_epoch(step)
        assert (step - 1) * per_step <= room
    assert step == 2 or (step - 1) * per_step <= room


# --- the encoder's room ----------------------------------------------------------------------


@pytest.mark.parametrize("bits", [-8, 0, 9])
@given(data=st.data())
def test_what_is_added_once_is_encoded_to_the_bit(bits, data):
    """As if the filter held it in one total; coordinates of filters are reckoned in fractions."""
    gaps, weights = (1 << 55, 1 << 61), (1 << 53, 1 << 60)
    for strategy in (Blt(gaps, weights, bits, 100), *([Identity(bits)] if bits >= 0 else ())):
        most = min(1 << 40, strategy.largest_total)
        room = strategy.largest_once(most)
        totals = [data.draw(st.integers(-most, most)) for _ in range(4)]
        more = data.draw(st.integers(-room, room))
        unit = 1 << max(0, -bits)
        state, rows = strategy.init_encoder(1), []
        for step, total in enumerate(totals):
            row = strategy.encode(state, np.array([[total]], np.int64), step)
            if step == 1:
                row = row + strategy.add_once(state, np.array([more], np.int64))
            rows.append(int(row[0, 0]))
        totals[1] += more // unit * unit
        assert rows == _exactly(strategy, totals)


def _exactly(strategy, totals):
    lattice = Fraction(2) ** strategy.lattice_bits
    if isinstance(strategy, Identity):
        return [int(total * lattice) for total in totals]
    states, rows = [0] * len(strategy.gaps), []
    for total in totals:
        whole = total + Fraction(sum(states), 1 << 64)
        rows.append((whole * lattice).__floor__())
        states = [
            u - (gap * u >> 64) + weight * total
            for u, gap, weight in zip(states, strategy.gaps, strategy.weights, strict=True)
        ]
        assert all(abs(u) < 1 << 127 for u in states)
    assert all(abs(row) < 1 << 62 for row in rows)
    return rows


@pytest.mark.parametrize("sign", [-1, 1])
@pytest.mark.parametrize("horizon", [None, 1000])
def test_there_is_room_for_the_most_beside_the_most_of_every_step(sign, horizon):
    plan = plan_of("mean", horizon=horizon, max_events_per_step=1 << 20).main
    assert isinstance(plan.strategy, Blt)
    strategy, most = plan.strategy, plan.max_per_step
    room = strategy.largest_once(most)
    assert room >= EVENTS_ONCE * UNIT
    state, steps = strategy.init_encoder(1), 300
    before = strategy.encode(state, np.full((steps, 1), sign * most), 0)
    row = before[-1:] + strategy.add_once(state, np.array([sign * room]))
    after = strategy.encode(state, np.full((steps, 1), sign * most), steps)
    for rows in (row, after):
        assert (np.abs(rows) <= 1 << 62).all()
        assert (np.sign(rows) == sign).all()


# --- refused blocks --------------------------------------------------------------------------


def test_a_block_beyond_the_end_moves_neither_meter_and_nothing_waits():
    plan = plan_of(end=3)
    meter = ClipMeter(plan)
    meter.measure(Values([5, 6], None, None, 1, 1), None)
    before = meter._main.step, meter._bins.step
    kept = {name: array.copy() for name, array in meter._waiting.items()}
    for clip in (None, (0, 7)):
        with pytest.raises(tg.StreamEnded):
            meter.measure(Values([5, 6], [0, 2], None, 3, 1), clip)
        assert (meter._main.step, meter._bins.step) == before
        assert all(np.array_equal(array, meter._waiting[name]) for name, array in kept.items())
    meter.measure(Values([5, 6], [0, 1], None, 2, 1), (0, 7))
    assert (meter._main.step, meter._bins.step) == (3, plan.epochs_before(4))


# --- what releases say while values wait -----------------------------------------------------


@pytest.mark.parametrize("block", [True, False])
@pytest.mark.parametrize("cells", [None, 2])
@pytest.mark.parametrize("of", ["sum", "mean"])
def test_releases_say_that_there_is_no_clip_yet_and_know_no_noise(of, cells, block):
    """Of steps that waited when they were released, and when they are read after a first clip."""
    plan = plan_of(of, (0, 1000), cells=cells)
    gauge = tg.ClippedGauge.__new__(tg.ClippedGauge)
    gauge._names, gauge._scalar = None, cells is None
    meter = ClipMeter.__new__(ClipMeter)
    meter._start(plan, seeded_meter(1, plan.main), seeded_meter(2, plan.bins))
    gauge._start(plan, meter)
    values = np.tile([1, 2, 3], 20_000)
    places = np.arange(60_000) % (cells or 1)
    if block:
        steps = np.repeat(range(20), 3000)
        release = gauge.update_many(values, steps, 20, places)["running"]
        waits = np.arange(20) == 0
    else:
        release, waits = gauge.update(values, places)["running"], np.array(True)
    if cells:
        waits = np.repeat(waits[..., None], cells, axis=-1)
    std = release.noise_std if of == "sum" else release.count_std
    for array in (release.value, std):
        assert np.array_equal(np.isnan(array), waits)
    if of == "mean":
        assert {NO_CLIP} == set(release.reason[waits].tolist())
        assert NO_CLIP not in release.reason[~waits].tolist()
        assert (release.lower[waits] == 0).all()
        assert (release.upper[waits] == 1000).all()
        assert np.array_equal(np.isnan(release.count), waits)


@pytest.mark.parametrize("of", ["sum", "mean"])
def test_a_stream_of_one_step_has_no_clip(of):
    with pytest.raises(tg.UnsupportedCombination, match="two steps or more"):
        plan_of(of, (0, 1000), end=1)
    assert plan_of(of, (0, 1000), end=2).last_step == 2
