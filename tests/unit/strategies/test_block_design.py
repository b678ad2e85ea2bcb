import math

import numpy as np
import pytest

from tidegauge.errors import InvalidParameter
from tidegauge.strategies.blocks import Blocks, OpenBlocks, best_levels, best_shares
from tidegauge.strategies.decay import Decay, Exponential, Running, Step, Window
from tidegauge.strategies.strategy import Norm


def laplace_std(levels: int) -> float:
    """Std of discrete Laplace noise of scale ``levels``: epsilon = 1."""
    q = math.exp(-1 / levels)
    return math.sqrt(2 * q) / (1 - q)


def worst_std(strategy: Blocks | OpenBlocks, view: Decay, horizon: int) -> float:
    gain = strategy.variance_gain(view, np.arange(1, horizon + 1)).max()
    return laplace_std(len(strategy.levels)) * math.sqrt(gain)


@pytest.mark.parametrize(
    ("view", "horizon", "opened", "promised"),
    [
        (Running(), 1 << 8, True, 13.4),
        (Running(), 1 << 12, True, 23.0),
        (Running(), 1 << 16, True, 34.5),
        (Window(256), 1 << 12, True, 14.0),
        (Window(1024), 1 << 14, True, 21.0),
        (Window(256), 1 << 12, False, 15.75),
        (Window(1024), 1 << 14, False, 24.0),
        (Window(32), 1 << 10, True, 8.0),
    ],
)
def test_the_noise_at_epsilon_1_is_as_small_as_promised(
    view: Decay, horizon: int, opened: bool, promised: float
) -> None:
    strategy = best_levels([view], [1.0], horizon, opened=opened)
    assert 0.85 * promised < worst_std(strategy, view, horizon) <= promised


@pytest.mark.parametrize(
    ("levels", "view", "horizon", "blocks"),
    [
        ((1, 23), Running(), 256, 22),
        ((1, 21, 441, 9261), Running(), 65536, 37),
        ((1, 19), Window(256), 4096, 24),
        ((1, 9, 81), Window(1024), 4096, 24),
    ],
)
def test_published_levels_take_the_published_number_of_blocks(
    levels: tuple[int, ...], view: Running | Window, horizon: int, blocks: int
) -> None:
    strategy = OpenBlocks(levels, (view,))
    assert blocks == strategy.variance_gain(view, np.arange(1, horizon + 1)).max()


def test_a_design_is_no_worse_than_equal_ratios() -> None:
    views, bounds, horizon = [Running(), Window(24), Window(100)], [4.0, 2.3, 2.9], 3000
    best = best_levels(views, bounds, horizon)

    def ratio(strategy: Blocks | OpenBlocks) -> float:
        steps = np.arange(1, horizon + 1)
        return len(strategy.levels) * max(
            math.sqrt(strategy.variance_gain(view, steps).max()) / bound
            for view, bound in zip(views, bounds, strict=True)
        )

    planned = (Running(), Window(24), Window(100))
    others = [(1, a) for a in range(2, 34)] + [(1, a, a * a) for a in range(2, 34)]
    assert all(ratio(best) <= ratio(OpenBlocks(levels, planned)) for levels in others)


def test_open_blocks_are_planned_only_where_they_help() -> None:
    short = best_levels([Window(8), Step()], [1.0, 1.0], 1 << 20)
    assert short == Blocks((1,))
    mixed = best_levels(
        [Running(), Step(), Exponential(half_life=9), Running()], [9, 9, 9, 9], 5000
    )
    assert isinstance(mixed, OpenBlocks)
    assert mixed.views == (Running(),)
    assert isinstance(best_levels([Running()], [1.0], 5000, opened=False), Blocks)


def test_a_hundred_views_are_designed_without_open_blocks() -> None:
    views = [Window(n) for n in range(2, 102)]
    assert isinstance(best_levels(views, [1.0] * 100, 500), Blocks)
    most = best_levels(views[-62:], [1.0] * 62, 500)
    assert isinstance(most, OpenBlocks)
    assert len(most.levels) + len(most.views) == 64


def test_a_design_is_the_same_every_time_and_whatever_the_order() -> None:
    views: list[Decay] = [Running(), Window(24), Window(1440), Exponential(half_life=24)]
    bounds = [4.4, 2.4, 3.9, 2.2]
    first = best_levels(views, bounds, 1 << 14)
    assert first == best_levels(views, bounds, 1 << 14)
    assert first.levels == best_levels(views[::-1], bounds[::-1], 1 << 14).levels


@pytest.mark.parametrize("bounds", [[], [1.0, 1.0], [0.0], [-1.0], [math.inf], [math.nan]])
def test_bounds_that_judge_nothing_are_refused(bounds: list[float]) -> None:
    with pytest.raises(InvalidParameter, match="Expected a positive bound for each"):
        best_levels([Running()], bounds, 100)


@pytest.mark.parametrize("horizon", [0, -1, 2.5, (1 << 38) + 1])
def test_horizons_that_no_stream_has_are_refused(horizon: int) -> None:
    with pytest.raises(InvalidParameter, match=r"Expected horizon .* Give the length"):
        best_levels([Running()], [1.0], horizon)


def test_one_design_serves_every_length_nearly_as_well_as_one_for_that_length() -> None:
    horizons = (1 << 10, 1 << 14, 1 << 17, 1 << 20, 1 << 24)
    any_length = best_shares([Running()], [(Running(), h, math.log(h) ** 1.5) for h in horizons])
    worst = {}
    for name, fixed in (("any", any_length), ("2^20", best_levels([Running()], [1.0], 1 << 20))):
        ratios = [_std(fixed, h) / _std(best_levels([Running()], [1.0], h), h) for h in horizons]
        worst[name] = max(ratios)
    assert worst["any"] < 1.46
    assert worst["2^20"] > 1.75


def _std(strategy: Blocks | OpenBlocks, horizon: int) -> float:
    return strategy._unit_std(Norm.L1) * strategy.worst_variance_gain(Running(), horizon) ** 0.5


def test_shares_leave_room_for_the_declared_totals() -> None:
    found = best_shares([Running()], [(Running(), 1 << 24, 1.0)])
    assert found.largest_total >= 1 << 20
    assert found.weights == tuple(sorted(found.weights, reverse=True))
