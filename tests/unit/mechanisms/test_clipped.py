"""A clip that moves: what an event moves, that choices read only what is public, and the noise."""

import copy
import pickle
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tidegauge as tg
from tidegauge.mechanisms.clip_meter import ClipMeter, in_units
from tidegauge.mechanisms.clip_plan import UNIT, clip_plan
from tidegauge.mechanisms.clip_reading import ClipReading
from tidegauge.mechanisms.clipping import (
    bins_of,
    clips_up_to,
)
from tidegauge.mechanisms.mean import Bounds, Values
from tidegauge.strategies.blt import Blt
from tidegauge.strategies.identity import Identity
from tidegauge.strategies.rescaled import covariances
from tidegauge.testing import seeded_meter

ASKED = {"views": [tg.Running()], "unit": "event", "guarantee": tg.ZCDP(0.5), "horizon": 48}
STEPS = 48


def plan_of(of="sum", bounds=(0, 5000), **changes):
    return clip_plan(of=of, bounds=Bounds(*bounds), **(ASKED | changes))


class Silent:
    """In the place of a meter: encodes, keeps the exact totals, and adds no noise."""

    def __init__(self, plan):
        self.plan, self.seen, self.step = plan, [], 0
        self.state = {"encoder": plan.strategy.init_encoder(plan.neighbors.cells)}
        self.nothing = np.zeros((0, plan.neighbors.cells), np.int64)

    def measure(self, exact, once=None):
        exact = np.array(exact)
        if once is not None:
            exact[0] += once
        self.seen.append(exact)
        rows = self.plan.strategy.encode(self.state["encoder"], exact, self.step)
        self.step += len(exact)
        return rows


def silent(plan, kind=ClipMeter):
    meter = kind.__new__(kind)
    meter._start(plan, Silent(plan.main), Silent(plan.bins))
    return meter


def gauge_of(plan, meter, scalar=True, names=None):
    gauge = tg.ClippedGauge.__new__(tg.ClippedGauge)
    gauge._names, gauge._scalar = names, scalar
    gauge._start(plan, meter)
    return gauge


def seeded(seed, plan, **changes):
    meter = ClipMeter.__new__(ClipMeter)
    meter._start(plan, seeded_meter(seed, plan.main), seeded_meter(seed + 1000, plan.bins))
    return gauge_of(plan, meter, **changes)


# --- exact integers --------------------------------------------------------------------------


@given(st.integers(-(1 << 50), 1 << 50), st.integers(1, 1 << 39))
def test_units_are_rounded_exactly(total, clip):
    if abs(total) < clip << 40:
        exact = (2 * total * UNIT + clip) // (2 * clip)  # Python's integers: floor(x + 1/2)
        assert exact == int(in_units(np.array([total]), clip)[0])


@given(st.integers(-(1 << 45), 1 << 45), st.integers(1, 1 << 30), st.data())
def test_no_event_moves_a_rounded_total_by_more_than_a_unit(total, clip, data):
    moved = total + data.draw(st.integers(-clip, clip))
    before, after = (int(in_units(np.array([t]), clip)[0]) for t in (total, moved))
    assert abs(after - before) <= UNIT


def test_magnitudes_are_counted_in_octaves():
    values = np.r_[0, 2 ** np.arange(40), 2 ** np.arange(1, 40) - 1]
    assert [int(v).bit_length() for v in values] == bins_of(values).tolist()


@pytest.mark.parametrize("largest", [1, 2, 7, 100, 5000, 500_000, (1 << 39) - 1])
def test_clips_reach_from_zero_to_the_bound_in_small_steps(largest):
    clips = clips_up_to(largest)
    assert clips[0] == 0
    assert clips[-1] == largest
    assert (np.diff(clips) > 0).all()
    assert (clips[2:] <= np.maximum(clips[1:-1] * 1.13, clips[1:-1] + 1)).all()


# --- what one event moves --------------------------------------------------------------------


ENDED = 7  # steps after which every epoch of these plans that has begun is over


def moved_by_an_event(kind=ClipMeter, of="sum", bounds=(0, 5000), clips=(None, (0, 7), (0, 300)),
                      **changes):  # fmt: skip
    """The largest L2 norm by which an event moves what is measured, over all paths of clips."""
    plan, worst, bins = plan_of(of, bounds, **changes), 0.0, 0.0
    clips = (*clips, *[clips[-1]] * (ENDED - len(clips)))
    others = np.array([3, 50, 0, 4])
    for value in (bounds[0] - 9, bounds[0], -1, 0, 1, 5, 299, bounds[1], bounds[1] + 99):
        for at in range(len(clips)):
            seen = []
            for there in (False, True):
                meter, when = silent(plan, kind), []
                for step, clip in enumerate(clips):
                    values = np.append(others, value) if there and step == at else others
                    meter.measure(Values(values, None, None, 1, 1), clip)
                    when.append(len(meter._bins.seen))
                rows = [np.concatenate([*m.seen, m.nothing]) for m in (meter._main, meter._bins)]
                seen.append([*rows, when])
            (main, counts, when), (other, others_counts, others_when) = seen
            worst = max(worst, float(np.sqrt(((main - other) ** 2).sum())))
            if when != others_when:
                return worst, np.inf  # when counts are published tells of the event
            bins = max(bins, float(np.sqrt(((counts - others_counts) ** 2).sum())))
    return worst / np.sqrt(plan.main.neighbors.event_l2_squared), bins


CLIPS = {
    (0, 5000): (None, (0, 7), (0, 300)),
    (-400, 5000): (None, None, (8, 8), (400, 2), (0, 5000)),
    (-400, 0): (None, (3, 0), (400, 0)),
}


@pytest.mark.parametrize("of", ["sum", "mean"])
@pytest.mark.parametrize("bounds", CLIPS)
def test_an_event_moves_no_more_than_is_charged_whatever_the_clips_are(of, bounds):
    main, bins = moved_by_an_event(ClipMeter, of, bounds, CLIPS[bounds])
    assert 0.99 < main <= 1
    assert bins == 1


@pytest.mark.parametrize("of", ["sum", "mean"])
@pytest.mark.parametrize("bounds", CLIPS)
def test_a_replaced_event_moves_no_more_than_is_charged(of, bounds):
    plan = plan_of(of, bounds, cells=2, neighboring_relation="replace_one")
    others, clips, worst = np.array([3, 50, 0, 4]), CLIPS[bounds], 0.0
    events = [(value, cell) for value in (*bounds, -2, 6) for cell in (0, 1)]
    for at in range(len(clips)):
        seen = []
        for value, cell in events:
            meter = silent(plan)
            for step, clip in enumerate(clips):
                values, cells = others, np.zeros(4, int)
                if step == at:
                    values, cells = np.append(others, value), np.append(cells, cell)
                meter.measure(Values(values, None, cells, 1, 2), clip)
            seen.append(np.concatenate(meter._main.seen))
        moves = [((one - other) ** 2).sum() for one in seen for other in seen]
        worst = max(worst, float(max(moves)))
    assert 0.98 < worst / plan.main.neighbors.event_l2_squared <= 1


class OfTheValuesThemselves(ClipMeter):
    """Broken twin: the clip is the largest value of the step that is measured."""

    def measure(self, given, clip):
        table = self._tables[1]
        largest = min(int(given.values.max()), int(table[-1]))
        return super().measure(given, clip and (0, int(table[np.searchsorted(table, largest)])))


class InGrains(ClipMeter):
    """Broken twin: the range of the integers is the clip, not a constant."""

    def _clipped(self, given, values, clip):
        found = super()._clipped(given, values, clip)
        return found if clip is None else found * max(clip) // 8


class CountsTwice(ClipMeter):
    """Broken twin: what waited is counted at every step."""

    def _forget(self):
        pass


@pytest.mark.parametrize("twin", [OfTheValuesThemselves, InGrains, CountsTwice])
def test_broken_meters_are_caught(twin):
    assert moved_by_an_event(twin)[0] > 1.01


def test_clamped_counts_move_no_more_than_others():
    assert 1 == moved_by_an_event(max_events_per_step=1)[1]
    few = plan_of()
    few = replace(few, magnitudes=replace(few.bins, max_per_step=5))
    for more in (0, 1):
        meter = silent(few)
        for step in range(ENDED):
            values = [9] * (step + (step == 4) * more)
            meter.measure(Values(values, None, None, 1, 1), (0, 7))
        assert [0, 3, 5] == [int(counts[0, 4]) for counts in meter._bins.seen]


class CountsOn(ClipMeter):
    """Broken twin: what was counted in an epoch is counted in the next one, too."""

    def _magnitudes(self, counts, steps):
        kept = self._epoch["counts"] + counts
        rows = super()._magnitudes(counts, steps)
        self._epoch["counts"][...] = kept
        return rows


class EndsEarly(ClipMeter):
    """Broken twin: counts of an epoch that is not over are measured, and measured again."""

    def _magnitudes(self, counts, steps):
        kept = self._epoch["counts"] + counts
        rows = super()._magnitudes(counts, steps)
        if self._epoch["counts"].any():
            rows[-1:] = self._bins.measure(kept[None])
        return rows


class EndsWhenFull(ClipMeter):
    """Broken twin: an epoch is over when it has so many events."""

    def _magnitudes(self, counts, steps):
        kept = self._epoch["counts"]
        rows = np.zeros((steps, len(kept)), np.int64)
        kept += counts
        if steps and kept.sum() > 8:
            rows[-1:] = self._bins.measure(kept[None])
            kept[...] = 0
        return rows


@pytest.mark.parametrize("twin", [CountsOn, EndsEarly, EndsWhenFull])
def test_broken_epochs_are_caught(twin):
    assert moved_by_an_event(twin)[1] > 1.01


@pytest.mark.parametrize("horizon", [1, 2, 48, 52, 8760, None])
def test_every_step_lies_in_one_epoch_and_few_are_needed(horizon):
    plan = plan_of(horizon=horizon)
    firsts = [1]
    while firsts[-1] < 20_000:
        firsts.append(plan.next_epoch(firsts[-1]))
    assert firsts[1] == 2, "a clip may be chosen as soon as something was published"
    assert plan.lag is None or plan.lag in firsts
    assert len(firsts) < 20
    for step in range(1, 20_000, 7):
        after = firsts[int(np.searchsorted(firsts, step, side="right"))]
        assert plan.next_epoch(step) == after
        assert plan.epochs_before(step) == sum(first <= step for first in firsts[1:])


def test_a_clip_depends_on_published_counts_alone():
    """The same rows and other data: the same clips. And only rows of earlier steps are read."""
    plan = plan_of(views=[tg.Running(), tg.Window(3)])
    size = plan.bins.neighbors.cells
    encoder = plan.bins.strategy.init_encoder(size)
    larger = np.arange(size) < 4 + np.arange(STEPS)[:, None] // 4
    rows = plan.bins.strategy.encode(encoder, np.where(larger, 90_000, 0), 0)
    zeros, found, changes = np.zeros((1, 1), np.int64), [], (None, 7, 10, 30)
    for changed in changes:
        reading, clips = ClipReading(plan), []
        for step in range(STEPS):
            clips.append(reading.clip)
            row = rows[step : step + 1] if changed is None or step < changed else rows[:1] * 0
            reading.decode(zeros + step, np.ascontiguousarray(row), 1)
        found.append(clips)
    assert len(set(found[0])) > 2
    for clips, changed in zip(found[1:], changes[1:], strict=True):
        assert found[0][: changed + 1] == clips[: changed + 1]
    assert found[0] != found[1], "what is published where an epoch ends is read"
    assert found[0][16] != found[1][16]


# --- without noise ---------------------------------------------------------------------------


def stream(seed=2, scale=40, events=6000):
    rng = np.random.default_rng(seed)
    values = np.rint(rng.exponential(scale, events)).astype(int)
    return values, np.sort(rng.integers(0, STEPS, events))


@pytest.mark.parametrize("of", ["sum", "mean"])
@pytest.mark.parametrize(
    "view", [tg.Running(), tg.Window(7), tg.Exponential(half_life=3), tg.Step()]
)
def test_without_noise_every_view_is_that_of_clipped_values(of, view):
    plan = plan_of(of, (-200, 5000), views=[view], guarantee=tg.ZCDP(20))
    gauge = gauge_of(plan, silent(plan))
    values, steps = stream()
    values[::7] *= -1
    release = gauge.update_many(values, steps, STEPS)[view.name]
    low, high = release.clip
    waits = (low == 0) & (high == 0)
    start = int(np.flatnonzero(~waits)[0])
    late = np.maximum(steps, start)  # what waited counts at the first step with a clip
    clipped = np.clip(values, low[late], high[late])
    weights = view.weights(STEPS)
    for step in range(start, STEPS):
        each = weights[step - np.minimum(late, step)] * (late <= step)
        exact = each @ clipped if of == "sum" else each @ clipped / each.sum()
        assert release.value[step] == pytest.approx(exact, rel=1e-5, abs=0.2)
    assert np.isnan(release.value[:start]).all()
    assert len(gauge.choices) > 1, "the clip was meant to move"


def test_blocks_of_any_length_give_the_same_releases():
    values, steps = stream()
    whole = seeded(5, plan_of("mean"))
    once = whole.update_many(values, steps, STEPS)["running"]
    gauge, parts = seeded(5, plan_of("mean")), []
    for start, stop in [(0, 1), (1, 2), (2, 11), (11, 11), (11, 40), (40, STEPS)]:
        inside = (start <= steps) & (steps < stop)
        block = gauge.update_many(values[inside], steps[inside] - start, stop - start)
        parts.append(block["running"].value)
    assert np.array_equal(np.concatenate(parts), once.value, equal_nan=True)
    assert (gauge.choices == whole.choices).all()


def test_both_halves_go_on_from_what_was_stored():
    plan, (values, steps) = plan_of("mean", guarantee=tg.ZCDP(5)), stream()
    meter, reading = silent(plan), ClipReading(plan)

    def advance(meter, reading, first, last):
        out = []
        for step in range(first, last):
            rows = meter.measure(Values(values[steps == step], None, None, 1, 1), reading.clip)
            out.append(reading.decode(*rows, 1))
        return out

    advance(meter, reading, 0, 20)
    kept = {name: {key: np.array(array) for key, array in meter.state[name].items()}
            for name in ("waiting", "epoch")}  # fmt: skip
    again = silent(plan)
    again._start(plan, meter._main, meter._bins, kept)
    resumed = ClipReading(plan, state=reading.state, step=20)
    straight = silent(plan)
    whole = advance(straight, ClipReading(plan), 0, STEPS)
    assert np.array_equal(whole[20:], advance(again, resumed, 20, STEPS))


def test_a_meter_goes_on_from_its_state_under_fresh_keys():
    plan = plan_of("mean", (-50, 5000))
    meter = ClipMeter(plan)
    meter.measure(Values([5, -3, 900], None, None, 1, 1), None)
    again = ClipMeter(plan, state=meter.state, step=1)
    assert again.state.keys() == meter.state.keys() == {
        "waiting", "epoch", "main.encoder", "bins.encoder"
    }  # fmt: skip
    assert 3 == again._waiting["counts"][0]
    rows, magnitudes = again.measure(Values([4], None, None, 1, 1), (3, 300))
    assert (1, 2) == rows.shape
    assert (1, plan.bins.neighbors.cells) == magnitudes.shape
    assert not again._waiting["counts"].any()


@pytest.mark.parametrize("make", [lambda: ClipMeter(plan_of()), lambda: seeded(1, plan_of())])
def test_what_measures_is_neither_copied_nor_used_after_an_interruption(make, monkeypatch):
    live = make()
    for refused in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(tg.LiveState, match="copy"):
            refused(live)

    def interrupt(*_):
        raise KeyboardInterrupt

    def block():
        if isinstance(live, ClipMeter):
            live.measure(Values([1], None, None, 1, 1), None)
        else:
            live.update([1])

    with monkeypatch.context() as patch:
        patch.setattr(ClipMeter, "_clipped", interrupt)  # after the magnitudes were measured
        with pytest.raises(KeyboardInterrupt):
            block()
    with pytest.raises(tg.LiveState, match="interrupted"):
        block()


# --- noise -----------------------------------------------------------------------------------

VIEWS = [tg.Step(), tg.Running(), tg.Window(1), tg.Window(7), tg.Window(30),
         tg.Exponential(half_life=3), tg.Exponential(half_life=5, average=True)]  # fmt: skip
CHANGES = np.array([3, 4, 10, 25, 40])


@pytest.mark.parametrize("view", VIEWS, ids=lambda view: view.name)
@pytest.mark.parametrize("buffers", [0, 3])
def test_noise_under_factors_that_move_is_that_of_the_matrix(view, buffers):
    strategy = plan_of().main.strategy if buffers else Identity(2)
    assert isinstance(strategy, Blt | Identity)
    rng, steps = np.random.default_rng(1), 60
    factors = rng.uniform(0, 5, (3, len(CHANGES) + 1))
    factors[2, 0] = 0
    each = factors[:, np.searchsorted(CHANGES, np.arange(1, steps + 1))]
    weights = view.weights(steps)
    lags = np.subtract.outer(np.arange(steps), np.arange(steps))
    filtered = np.where(lags >= 0, weights[np.maximum(lags, 0)], 0.0)
    decoder = strategy.decoder_matrix(tg.Step(), steps)
    rows = np.stack([(filtered * factor) @ decoder for factor in each])
    expected = np.einsum("atj,btj->tab", rows, rows) * 4.0**-strategy.lattice_bits
    found = covariances(strategy, view, np.arange(1, steps + 1), CHANGES, factors)
    assert np.allclose(found, expected, rtol=1e-9, atol=1e-12 * expected.max())


def test_factors_of_one_are_the_noise_that_the_plan_tells():
    strategy, steps = plan_of().main.strategy, np.array([1, 5, 100, 10_000, 1_000_000])
    for view in VIEWS:
        found = covariances(strategy, view, steps, CHANGES, np.ones((1, len(CHANGES) + 1)))
        assert np.allclose(found[:, 0, 0], strategy.variance_gain(view, steps), rtol=1e-6)


class Forgetful(ClipReading):
    """Broken twin: noise as if the clip in force had been in force for ever."""

    def _factors(self):
        return np.repeat(super()._factors()[:, -1:], len(self._choices), axis=1)


def coverage(of, kind=ClipReading, cells=1500):
    """How often intervals cover sums, or means, of what was clipped; a path of three clips."""
    views = [tg.Running(), tg.Window(4)]
    plan = plan_of(of, cells=cells, views=views, horizon=20)
    meter = ClipMeter.__new__(ClipMeter)
    meter._start(plan, seeded_meter(7, plan.main), Silent(plan.bins))
    reading = kind(plan)
    rng, exact = np.random.default_rng(8), []
    clips = [(0, 900), (0, 60), (0, 200)]
    found = []
    for step in range(12):
        clip = clips[step // 4]
        if step % 4 == 0:
            row = np.array([[step + 1, *clip]], np.int64)
            reading._choices = np.concatenate([reading._choices, row])
        reading._due = 1000
        events = 60
        values = rng.integers(0, 400, cells * events)
        places = np.repeat(np.arange(cells), events)
        rows = meter.measure(Values(values, None, places, 1, cells), clip)
        clipped = np.minimum(values, clip[1]).reshape(cells, events).sum(axis=1)
        exact.append(np.stack([clipped, np.full(cells, events)]))
        found.append(reading.decode(*rows, 1))
    decoded, exact = np.concatenate(found, axis=1), np.array(exact)
    covered, at = {}, np.array([12])
    true = {"running": exact.sum(axis=0), "window_4": exact[-4:].sum(axis=0)}
    for name, values in zip(true, decoded, strict=True):
        if of == "mean":
            _, lower, upper, *_ = reading.means(name, at, values[-1:])
            truth = true[name][0] / true[name][1]
        else:
            half = reading.half_width(name, at)
            lower, upper, truth = values[-1:] - half, values[-1:] + half, true[name][0]
        covered[name] = float(((lower <= truth) & (truth <= upper)).mean())
    return covered


@pytest.mark.statistical
@pytest.mark.parametrize("of", ["sum", "mean"])
def test_intervals_cover_sums_and_means_of_clipped_values(of):
    # 1500 cells: 0.95 is told from 0.93 and 0.97 at three and a half standard deviations
    assert all(0.93 < share < 0.97 for share in coverage(of).values())


@pytest.mark.statistical
def test_noise_that_forgets_earlier_clips_is_caught():
    assert coverage("sum", Forgetful)["running"] < 0.9


@pytest.mark.statistical
@pytest.mark.parametrize("of", ["sum", "mean"])
def test_noise_from_before_the_first_clip_is_counted(of):
    """Ten steps of waiting, then a clip: their noise is in what is told, and in what comes."""
    cells, views = 3000, [tg.Running(), tg.Window(6), tg.Exponential(half_life=4)]
    plan = plan_of(of, cells=cells, views=views, horizon=20)
    meter = ClipMeter.__new__(ClipMeter)
    meter._start(plan, seeded_meter(11, plan.main), Silent(plan.bins))
    reading, out = ClipReading(plan), []
    for step in range(14):
        reading._due = 1000 if step != 10 else step + 1
        if step == 10:
            reading._epochs = np.full((1, plan.bins.neighbors.cells), 1e6)
        given = Values([], [], [], 1, cells)
        out.append(reading.decode(*meter.measure(given, reading.clip), 1))
    assert np.isnan(np.concatenate(out[:10])).all()
    for index, (view, _) in enumerate(plan.main.views):
        for step in (11, 14):
            noise = out[step - 1][index, 0, :cells]
            told = reading.noise_std(view, np.array([step]))[0]
            assert noise.std() == pytest.approx(told, rel=5 / np.sqrt(2 * cells))
