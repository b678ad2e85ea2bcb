"""Whole plans against a truth found another way: does the noise pay for what is promised?

The encoder's matrix comes from the running strategy, the worst change from enumeration, mu from
mpmath; nothing of the planner's own sensitivity, conversion or rounding is used.
"""

import itertools

import mpmath
import numpy as np
import pytest

import tidegauge as tg
from tidegauge.mechanisms.design import design
from tidegauge.mechanisms.request import request_of
from tidegauge.noise.gaussian import RoundedGaussian

STEPS = 30
VIEWS = {"steps": [tg.Step()], "sums": [tg.Running(), tg.Window(7)]}
UNITS = {
    "event": "event",
    "five events": tg.Contributions(5),
    "five apart": tg.Contributions(5, 3),
}
GUARANTEES = {
    "pure": {"epsilon": 1.0},
    "approximate": {"epsilon": 0.3, "delta": 1e-8},
    "zcdp": {"guarantee": tg.ZCDP(0.3)},
    "gdp": {"guarantee": tg.GaussianDP(0.7)},
}


def largest_mu(name):
    """The largest mu that the guarantee allows."""
    with mpmath.workdps(40):
        if name == "zcdp":
            return mpmath.sqrt(mpmath.mpf("0.6"))
        if name == "gdp":
            return mpmath.mpf("0.7")

        eps, delta = mpmath.mpf("0.3"), mpmath.mpf("1e-8")
        low, high = mpmath.mpf("0.001"), mpmath.mpf(1)
        for _ in range(120):
            mu = (low + high) / 2
            tails = mpmath.ncdf(-eps / mu + mu / 2), mpmath.ncdf(-eps / mu - mu / 2)
            low, high = (mu, high) if tails[0] - mpmath.exp(eps) * tails[1] < delta else (low, mu)
        return low


def event_changes(relation, low, high, touched, cells):
    """Every extreme change of one event's step of the stream, as a vector over the cells."""
    largest = max(-low, high)
    if relation == "add_or_remove_one":
        return [np.full(touched, largest)]
    changes = []
    for kept in range(touched + 1):
        moved = 2 * (touched - kept)
        if kept + moved <= cells:
            changes.append(np.array([high - low] * kept + [largest] * moved))
    return changes


def unit_change(matrix, unit, norm, separation):
    """The worst norm of C times a pattern of events, all of one sign or not."""
    events = 1 if unit == "event" else unit.max_events
    apart = 1 if separation == 0 else separation
    starts = range(STEPS - apart * (events - 1)) if separation else range(STEPS)
    worst = 0.0
    for start in starts:
        pattern = np.zeros(STEPS)
        if separation == 0:
            pattern[start] = events
        else:
            pattern[start : start + apart * events : apart] = 1
        worst = max(worst, float(np.linalg.norm(matrix @ pattern, norm)))
    return worst


GRID = list(
    itertools.product(
        VIEWS, UNITS, ("add_or_remove_one", "replace_one"), (1, 7, (-3, 5), (-4, 0)),
        ((1, 1), (2, 3), (3, 10)),
    )
)  # fmt: skip


@pytest.mark.parametrize("promise", GUARANTEES)
@pytest.mark.parametrize("part", range(6))
def test_the_noise_pays_for_the_promise_and_not_for_much_more(promise, part):
    allowed = largest_mu(promise) if promise != "pure" else None
    for views, unit_name, relation, change, (touched, cells) in GRID[part::6]:
        unit = UNITS[unit_name]
        plan = design(
            request_of(
                views=VIEWS[views], unit=unit, neighboring_relation=relation, max_change=change,
                max_cells=touched, cells=cells, horizon=STEPS, end=STEPS, **GUARANTEES[promise],
            )
        )  # fmt: skip
        low, high = (0, change) if isinstance(change, int) else change
        changes = event_changes(relation, low, high, touched, cells)
        separation = 0 if unit == "event" else unit.min_separation
        matrix, _ = plan.strategy.matrices(STEPS)
        unit_lattice = 2.0**plan.strategy.lattice_bits
        scale = plan.law.scale
        if isinstance(plan.law, RoundedGaussian):
            event = max(float(np.linalg.norm(change)) for change in changes)
            moved = unit_change(matrix, unit, 2, separation) * event * unit_lattice
            least = moved / allowed
        else:
            event = max(float(np.abs(change).sum()) for change in changes)
            moved = unit_change(matrix, unit, 1, separation) * event * unit_lattice
            least = moved / mpmath.mpf(str(GUARANTEES[promise]["epsilon"]))
        actual = mpmath.mpf(scale.numerator) / scale.denominator
        case = (views, unit_name, relation, change, touched, cells, type(plan.strategy).__name__)
        assert actual >= least * (1 - 1e-9), case
        assert actual <= least * 1.03, case  # paid for ever, not for 30 steps alone


def test_scales_are_rounded_up_and_never_to_the_nearest():
    for epsilon in (0.3, 0.7, 1.1, 1.3):
        plan = design(request_of(views=[tg.Step()], unit="event", epsilon=epsilon))
        exact = 1 / mpmath.mpf(str(epsilon))
        assert mpmath.mpf(plan.law.scale.numerator) / plan.law.scale.denominator >= exact
