from fractions import Fraction

import numpy as np
import pytest
from twins.cases import ADD, ONE

from tidegauge.errors import InvalidInput, InvalidParameter, StreamEnded, UnsupportedCombination
from tidegauge.privacy.unit import Contributions, Neighbors
from tidegauge.strategies.blocks import Blocks, OpenBlocks
from tidegauge.strategies.decay import Exponential, Running, Step, Window
from tidegauge.strategies.strategy import Int64, Norm


def test_the_binary_mechanism_of_seven_steps_by_hand() -> None:
    tree = Blocks.base(2, 7)
    x = np.array([[1], [2], [3], [4], [5], [6], [7]])
    rows = tree.encode(tree.init_encoder(1), x, 0)
    assert rows.ravel().tolist() == [1, 2, 3, 3, 4, 7, 10, 5, 6, 11, 7]
    numbers = [
        step * 64 + level
        for step, level in [
            (0, 0),
            (1, 0),
            (1, 1),
            (2, 0),
            (3, 0),
            (3, 1),
            (3, 2),
            (4, 0),
            (5, 0),
            (5, 1),
            (6, 0),
        ]
    ]
    assert numbers == tree.coordinates(0, 7).tolist()
    assert tree.variance_gain(Running(), np.arange(1, 8)).tolist() == [1, 1, 2, 1, 2, 2, 3]
    assert tree.sensitivity(Norm.L1, ONE) == 3


@pytest.mark.parametrize(
    ("base", "horizon", "levels"),
    [
        (2, 1, 1),
        (2, 2, 2),
        (2, 1 << 20, 21),
        (10, 999, 3),
        (10, 1000, 4),
        (10, 1001, 4),
        (5, 125, 4),
    ],
)
def test_levels_are_counted_in_integers(base: int, horizon: int, levels: int) -> None:
    assert levels == len(Blocks.base(base, horizon).levels)


def test_subtraction_never_takes_more_blocks() -> None:
    steps = np.arange(1, 3000)
    for view in (Running(), Window(100), Window(700)):
        signed = Blocks((1, 12, 144)).variance_gain(view, steps)
        unsigned = Blocks((1, 12, 144), signed=False).variance_gain(view, steps)
        opened = OpenBlocks((1, 12, 144), (view,)).variance_gain(view, steps)
        assert (signed <= unsigned).all()
        assert (opened <= signed).all()


def test_events_far_apart_share_only_large_blocks() -> None:
    unit = Contributions(3, min_separation=4)
    apart = Neighbors(unit, ADD, 0, 1, 1, 1)
    # single steps: 1 + 1 + 1; blocks of 5: 2^2 + 1; blocks of 10: 3^2
    assert float(Blocks((1, 5, 10)).sensitivity(Norm.L2, apart)) == (3 + 5 + 9) ** 0.5
    assert Blocks((1, 5, 10)).sensitivity(Norm.L1, apart) == 9


def test_roots_are_rounded_up() -> None:
    root = Blocks((1, 2), lattice_bits=30).sensitivity(Norm.L2, ONE) / 2**30
    assert 2 < root**2 < 2 + Fraction(1, 1 << 60)
    assert Blocks((1, 2, 4, 8)).sensitivity(Norm.L2, ONE) == 2


@pytest.mark.parametrize(
    "levels",
    [
        (),
        [],
        "1, 2",
        (2, 4),
        (1, 1),
        (1, 4, 6),
        (1, 4, 2),
        (1, 0),
        (1, 2.0),
        (1, True),
        1,
        tuple(2**n for n in range(65)),
        (1, 2**39),
    ],
)
def test_sizes_that_do_not_nest_are_refused(levels: object) -> None:
    with pytest.raises(InvalidParameter, match="Expected"):
        Blocks(levels)  # type: ignore[arg-type]  # refused at run time
    with pytest.raises(InvalidParameter, match="Expected"):
        OpenBlocks(levels, (Running(),))  # type: ignore[arg-type]  # refused at run time


def test_lattices_that_leave_int64_are_refused() -> None:
    for bits in (-1, 41, True, 1.0):
        with pytest.raises(InvalidParameter, match="lattice_bits"):
            Blocks((1,), lattice_bits=bits)  # type: ignore[arg-type]  # refused at run time
    with pytest.raises(InvalidParameter, match="coarser lattice"):
        Blocks((1, 1 << 30), lattice_bits=40)


@pytest.mark.parametrize(
    "views",
    [
        (),
        (Running(), Running()),
        (Step(),),
        (Exponential(half_life=2),),
        tuple(Window(n) for n in range(2, 70)),
    ],
)
def test_only_sums_are_planned_each_once(views: tuple[Running, ...]) -> None:
    with pytest.raises(InvalidParameter, match="Expected"):
        OpenBlocks((1, 4), views)


def test_open_blocks_under_gaussian_noise_are_refused() -> None:
    strategy = OpenBlocks((1, 4), (Running(),))
    assert frozenset({Norm.L1}) == strategy.norms
    with pytest.raises(UnsupportedCombination, match=r"Expected Norm.L1 .* Use Blocks"):
        strategy.sensitivity(Norm.L2, ONE)
    assert frozenset(Norm) == Blocks((1, 4)).norms


def test_the_guarantee_has_no_end() -> None:
    assert Blocks((1, 4)).hard_end is None
    assert OpenBlocks((1, 4), (Running(),)).hard_end is None


def test_rows_may_grow_as_far_as_the_longest_sum() -> None:
    assert Blocks((1, 4, 12)).absolute_gain == 12
    assert OpenBlocks((1, 4, 12), (Window(30),)).absolute_gain == 30
    assert OpenBlocks((1, 4, 12), (Window(3),)).absolute_gain == 12
    assert OpenBlocks((1, 4), (Running(), Window(3))).absolute_gain == 1 << 31
    assert Blocks((1, 4, 12)).largest_total == 1 << 58
    assert OpenBlocks((1, 4), (Running(),)).largest_total == 1 << 31


def test_a_window_longer_than_any_stream_takes_no_memory_ahead() -> None:
    views = [Window(1 << 40)]
    strategy = OpenBlocks((1, 4), (Window(1 << 30),))
    states = [
        Blocks((1, 4)).init_decoder(views, 1000),
        strategy.init_noise(1000),
        strategy.init_encoder(1000),
    ]
    assert all(array.nbytes < 10**7 for state in states for array in state.values())
    assert Blocks((1, 4)).variance_gain(views[0], np.array([6, 9])).tolist() == [3, 3]


@pytest.mark.parametrize("strategy", [Blocks((1, 4)), OpenBlocks((1, 4), (Running(),))])
@pytest.mark.parametrize(
    "x",
    [
        np.zeros((3, 2)),
        np.zeros((3, 2), np.int32),
        np.zeros((3, 1), np.int64),
        np.zeros(2, np.int64),
        np.zeros((3, 2), object),
    ],
)
def test_totals_of_another_form_are_refused(strategy: Blocks | OpenBlocks, x: Int64) -> None:
    state = strategy.init_encoder(2)
    strategy.encode(state, np.ones((1, 2), np.int64), 0)
    before = {name: array.tobytes() for name, array in state.items()}
    with pytest.raises(InvalidInput, match="Expected totals of dtype int64"):
        strategy.encode(state, x, 1)
    assert before == {name: array.tobytes() for name, array in state.items()}


def test_draws_for_other_blocks_are_refused() -> None:
    strategy = OpenBlocks((1, 4), (Running(),))
    state = strategy.init_noise(2)
    for fresh in (np.zeros((4, 2), np.int64), np.zeros((5, 2)), np.zeros((5, 1), np.int64)):
        with pytest.raises(InvalidInput, match="go without noise"):
            strategy.mix(state, fresh, 0, 1)
    assert strategy.mix(state, np.ones((5, 2), np.int64), 0, 1).tolist() == [[1, 1], [1, 1]]


@pytest.mark.parametrize("strategy", [Blocks((1, 3)), OpenBlocks((1, 3), (Running(),))])
def test_steps_without_numbers_are_refused(strategy: Blocks | OpenBlocks) -> None:
    last = (1 << 38) // 3 * 3
    assert (strategy.coordinates(last - 2, 2) < 1 << 44).all()
    x = np.ones((2, 1), np.int64)
    with pytest.raises(StreamEnded, match="used twice"):
        strategy.coordinates(last - 1, 2)
    with pytest.raises(StreamEnded, match="used twice"):
        strategy.encode(strategy.init_encoder(1), x, last - 1)
    if isinstance(strategy, OpenBlocks):
        assert (strategy.noise_coordinates(last - 3, 3) < 1 << 44).all()
        with pytest.raises(StreamEnded, match="used twice"):
            strategy.noise_coordinates(last, 1)


def test_errors_at_one_grain_and_epsilon_1() -> None:
    strategy = OpenBlocks((1, 19), (Window(256),))
    assert strategy.max_error(Window(256), 1000) == pytest.approx(2 * 48**0.5)
    assert strategy.mean_squared_error(Window(256), 2) == pytest.approx(12)
    binary = Blocks.base(2, 7)
    assert binary.max_error(Running(), 7, Norm.L1) == pytest.approx(3 * 6**0.5)
    assert binary.mean_squared_error(Running(), 7) == pytest.approx(3 * 12 / 7)
