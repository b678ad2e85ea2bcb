"""Pointwise and simultaneous intervals: shares of the tail, and coverage of whole curves."""

from statistics import NormalDist

import numpy as np
import pytest

import tidegauge as tg
from tidegauge.errors import InvalidParameter
from tidegauge.mechanisms.design import design
from tidegauge.mechanisms.intervals import band_of, tails
from tidegauge.mechanisms.request import request_of
from tidegauge.mechanisms.restoring import restore_gauge
from tidegauge.strategies.blt import Blt, Comb
from tidegauge.testing import seeded_gauge

LEVEL = 0.9
GUARANTEES = [tg.GaussianDP(1), tg.PureDP(1)]


def plan(**changes):
    given = {"views": [tg.Running(), tg.Window(5)], "guarantee": GUARANTEES[0], "unit": "event"}
    return design(request_of(**(given | changes)))


def test_the_shares_of_a_stream_with_an_end_add_up_to_the_miss():
    steps = np.arange(1, 778)
    assert tails(LEVEL, "simultaneous", steps, 777).sum() == pytest.approx(1 - LEVEL)


def test_the_shares_of_a_stream_without_an_end_never_add_up_to_more_than_the_miss():
    shares = tails(LEVEL, "simultaneous", np.arange(1, 1 << 18), None)
    assert shares.sum() == pytest.approx((1 - LEVEL) * (1 - 1 / 19))  # 18 epochs: 1 - 1/(18 + 1)
    assert (np.diff(shares) <= 0).all()
    far = tails(LEVEL, "simultaneous", np.array([(1 << 38) - 1, 1 << 37]), None)
    assert far[0] == far[1] > 0


@pytest.mark.parametrize("guarantee", GUARANTEES)
@pytest.mark.parametrize("end", [None, 600])
def test_a_simultaneous_band_is_wider_at_every_step(guarantee, end):
    made = plan(guarantee=guarantee, end=end, horizon=600)
    steps = np.arange(1, 601)
    pointwise = made.half_width("running", steps)
    whole = made.with_intervals(band="simultaneous").half_width("running", steps)
    assert (whole > pointwise).all()


def test_a_band_without_an_end_follows_the_doublings_though_integers_end_somewhere():
    made = plan(horizon=600, level=LEVEL, band="simultaneous")
    assert isinstance(made.strategy, Blt | Comb)
    assert made.last_step == 1 << 38
    steps = np.array([1, 2, 3, 10, 1000, 1 << 20])
    widths = made.half_width("running", steps) / made.noise_std("running", steps)
    shares = tails(LEVEL, "simultaneous", steps, None)
    assert widths == pytest.approx(
        [NormalDist().inv_cdf(1 - share / 2) for share in shares], rel=1e-3
    )


@pytest.mark.parametrize("guarantee", GUARANTEES)
@pytest.mark.parametrize("end", [None, 64])
def test_whole_curves_are_covered_with_the_probability_of_the_level(guarantee, end):
    cells, steps = 2000, 64
    gauge = seeded_gauge(
        seed=11, views=[tg.Running(), tg.Window(5), tg.Step()], guarantee=guarantee,
        unit="event", cells=cells, end=end, horizon=steps, level=LEVEL, band="simultaneous",
    )  # fmt: skip
    releases = gauge.update_many(np.full((steps, cells), 7))
    truths = {
        "running": 7 * np.arange(1, steps + 1),
        "window_5": 7 * np.minimum(5, np.arange(1, steps + 1)),
        "step": np.full(steps, 7),
    }
    error = 4 * np.sqrt(LEVEL * (1 - LEVEL) / cells)
    for name, truth in truths.items():
        release = releases[name]
        inside = (release.lower <= truth[:, None]) & (truth[:, None] <= release.upper)
        whole = inside.all(axis=0).mean()
        assert whole >= LEVEL - error, name
        if end is not None:  # Boole's inequality wastes little on so many looks
            assert whole <= 0.995
        pointwise = gauge.plan.with_intervals(band="pointwise")
        half = pointwise.half_width(name, np.arange(1, steps + 1))[:, None]
        narrow = (np.abs(release.value - truth[:, None]) <= half).all(axis=0).mean()
        assert narrow < LEVEL - error, name  # the test can tell the two apart


def test_the_band_is_stored_and_is_no_part_of_what_is_measured():
    one, other = plan(), plan(band="simultaneous", level=0.5)
    assert restore_gauge(other.stored()) == other
    assert one.fingerprint == other.fingerprint
    assert "simultaneous" in other.statement()


def test_releases_say_which_band_they_have():
    gauge = tg.Gauge(views=[tg.Step()], epsilon=1, unit="event", band="simultaneous", end=10)
    release = gauge.update(3)["step"]
    assert release.band == "simultaneous"
    assert float(release.upper - release.value) == float(gauge.plan.half_width("step", [1])[0])


@pytest.mark.parametrize("band", ["both", None, "", 1, "Pointwise"])
def test_bands_of_other_names_are_refused(band):
    with pytest.raises(InvalidParameter, match=r"Expected band.*got.*Write 'pointwise'"):
        band_of(band)
    with pytest.raises(InvalidParameter, match="Expected band"):
        plan(band=band)
