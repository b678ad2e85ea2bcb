"""WindowSum and AllWindowSum: oracle numbers of the paper's formulas, exact values, bad input."""

from fractions import Fraction

import numpy as np
import pytest

from tidegauge.errors import InvalidParameter, StreamEnded, UnsupportedCombination
from tidegauge.papers.system import GRAINS, System
from tidegauge.papers.windows import AllWindowSum, WindowSum
from tidegauge.privacy.guarantee import GaussianDP
from tidegauge.strategies.decay import Window
from tidegauge.strategies.identity import Identity
from tidegauge.strategies.named import by_name
from tidegauge.strategies.strategy import Float64, Norm
from tidegauge.strategies.trees import DECODINGS, all_window_sum, window_sum
from tidegauge.testing import seeded_system

ZETA = {1.5: 2.612375348685488, 2.0: np.pi**2 / 6}


def windows(x: Float64, length: int) -> Float64:
    totals = np.concatenate((np.zeros(1), np.cumsum(x)))
    ends = np.arange(1, len(x) + 1)
    return np.asarray(totals[ends] - totals[np.maximum(ends - length, 0)])


@pytest.mark.parametrize(
    ("decode", "nodes"),
    [("paper", [3, 3, 5, 3, 5, 5, 7, 1]), ("direct", [4, 3, 4, 2, 4, 3, 4, 1])],
)
def test_nodes_of_a_window_of_eight(decode: str, nodes: list[int]) -> None:
    tree = window_sum(8, decode)
    assert nodes == tree.variance_gain(Window(8), np.arange(9, 17)).tolist()
    assert 4 == float(WindowSum(8, 1.0, decode).sensitivity)


def test_mean_nodes_over_a_cycle() -> None:
    cycle = np.arange(257, 513)
    assert 9.0 == window_sum(256, "paper").variance_gain(Window(256), cycle).mean()
    assert 8.0039 == round(window_sum(256, "direct").variance_gain(Window(256), cycle).mean(), 4)


@pytest.mark.parametrize(
    ("window", "paper", "direct", "root_drop"),
    [
        (256, 52.479, 38.184, 33.941),
        (1024, 71.288, 51.595, 46.904),
        (2048, 81.388, 58.788, 53.889),
    ],
)
def test_worst_std_of_windows(window: int, paper: float, direct: float, root_drop: float) -> None:
    expected = {"paper": paper, "direct": direct, "root-drop": root_drop}
    for decode, std in expected.items():
        tree, steps = window_sum(window, decode), 4 * window
        assert std == round(tree.max_error(Window(window), steps, Norm.L1), 3)
        assert tree.worst_variance_gain(Window(window), 1 << 20) == pytest.approx(
            (std / 2**0.5 / len(tree.levels)) ** 2, rel=1e-3
        )


@pytest.mark.parametrize(("window", "std"), [(2, 2.0), (4, 4.899), (8, 8.485), (32, 17.321)])
def test_worst_std_without_roots(window: int, std: float) -> None:
    assert std == round(window_sum(window).max_error(Window(window), 8 * window, Norm.L1), 3)


def test_the_implemented_noise_is_the_predicted_one_with_a_finer_grain_than_the_noise() -> None:
    worst = max(WindowSum(256, 1.0).noise_std(step) for step in range(257, 513, 3))
    np.testing.assert_allclose(worst, 33.941, rtol=1e-5)


def test_a_tree_beats_the_noisy_stream_from_2048_on() -> None:
    for window, better in ((1024, False), (2048, True)):
        tree = window_sum(window).max_error(Window(window), 4 * window, Norm.L1)
        assert better == (tree < (2 * window) ** 0.5)
    for window, better in ((16, False), (32, True)):
        tree = window_sum(window).max_error(Window(window), 4 * window, Norm.L2)
        assert better == (tree < window**0.5)


@pytest.mark.parametrize(
    ("window", "noisy_stream"), [(256, 22.627), (1024, 45.255), (2048, 64.0), (4096, 90.5)]
)
def test_worst_std_of_the_noisy_stream(window: int, noisy_stream: float) -> None:
    digits = 3 if window < 4096 else 1
    worst = Identity(0).max_error(Window(window), 4 * window, Norm.L1)
    assert noisy_stream == round(worst, digits)


def test_the_printed_tree_beats_the_noisy_stream_from_8192_on() -> None:
    for window, better in ((4096, False), (8192, True)):
        tree = window_sum(window, "paper").max_error(Window(window), 4 * window, Norm.L1)
        plain = Identity(0).max_error(Window(window), 4 * window, Norm.L1)
        assert better == (tree < plain)
        if window == 4096:
            assert (91.9, 90.5) == (round(tree, 1), round(plain, 1))


@pytest.mark.parametrize(("window", "tree", "plain"), [(32, 5.477, 5.657), (16, 4.472, 4.0)])
def test_worst_std_of_windows_under_gaussian_noise(window: int, tree: float, plain: float) -> None:
    found = [
        s.max_error(Window(window), 8 * window, Norm.L2) for s in (window_sum(window), Identity(0))
    ]
    assert [tree, plain] == [round(std, 3) for std in found]


@pytest.mark.parametrize("decode", DECODINGS)
@pytest.mark.parametrize("window", [1, 2, 3, 5, 7, 8, 100])
def test_windows_of_any_length_are_exact(window: int, decode: str) -> None:
    x = np.random.Generator(np.random.PCG64(1)).integers(0, 5, (400, 1))
    tree = window_sum(window, decode)
    rows = tree.encode(tree.init_encoder(1), x, 0)
    out = np.empty((1, 400, 1))
    tree.decode(tree.init_decoder([Window(window)], 1), [Window(window)], rows, 0, out)
    assert windows(x[:, 0].astype(float), window).tolist() == out[0, :, 0].tolist()


def test_a_stream_starts_without_the_noise_of_a_tree_that_does_not_exist() -> None:
    for decode in DECODINGS:
        tree = window_sum(8, decode)
        nodes = tree.variance_gain(Window(8), np.arange(1, 8)).tolist()
        assert [1, 1, 2, 1, 2, 2, 3] == nodes  # binary digits of the step: prefixes alone


def test_the_printed_formula_for_all_windows_fails_where_a_window_lies_in_one_tree() -> None:
    """W = 5 at step 14: trees of 8, and the window begins within the tree that it ends in."""
    tree, span, step, size = all_window_sum(1.5, printed=True), 5, 14, 8
    x = np.arange(1, step + 1)
    totals = np.concatenate((np.zeros(1), np.cumsum(x)))
    tree_of_end = (step - 1) // size * size
    # root of the tree before, less its prefix up to the window's begin, plus this tree's prefix
    as_written = totals[tree_of_end] - totals[min(step - span, tree_of_end)]
    as_written += totals[step] - totals[tree_of_end]
    exact = totals[step] - totals[step - span]
    assert as_written != exact
    rows = tree.encode(tree.init_encoder(1), x[:, None], 0)
    out = np.empty((1, step, 1))
    tree.decode(tree.init_decoder([Window(span)], 1), [Window(span)], rows, 0, out)
    assert exact == pytest.approx(out[0, -1, 0], abs=1e-9)


@pytest.mark.parametrize(
    ("beta", "printed", "std"),
    [(1.5, True, 212.9), (1.5, False, 134.4), (2.0, True, 361.2), (2.0, False, 221.8)],
)
def test_worst_std_of_all_windows(beta: float, printed: bool, std: float) -> None:
    tree = all_window_sum(beta, printed=printed)
    ours = tree.max_error(Window(256), 4096, Norm.L1)
    shares = np.arange(1, len(tree.levels) + 1) ** -beta
    assert ours < std  # 38 levels have a smaller sum than endlessly many
    np.testing.assert_allclose(ours * ZETA[beta] / shares.sum(), std, rtol=1e-3)


@pytest.mark.parametrize(("printed", "std"), [(True, 114.7), (False, 74.8)])
def test_worst_std_of_all_windows_of_a_known_length(printed: bool, std: float) -> None:
    tree = all_window_sum(1.01, 1 << 20, printed=printed)
    np.testing.assert_allclose(tree.max_error(Window(256), 4096, Norm.L1), std, rtol=1e-3)
    assert 21 == len(tree.levels)


def test_shares_of_levels_are_those_of_the_paper() -> None:
    tree = all_window_sum(Fraction(3, 2))
    weights = np.array(tree.weights, float)
    shares = np.arange(1, 39) ** -1.5
    np.testing.assert_allclose(weights / weights.sum(), shares / shares.sum(), rtol=0.02)
    assert tree.largest_total >= GRAINS


def test_every_window_is_read_at_every_step_with_the_predicted_noise() -> None:
    system = seeded_system(5, AllWindowSum(9e5))
    readings = np.random.Generator(np.random.PCG64(2)).random(300)
    for step, reading in enumerate(readings, 1):
        system.update(reading)
        for length in (1, 5, 14, 100, 299, 300, 1 << 20):
            exact = readings[max(0, step - length) : step].sum()
            assert exact == pytest.approx(float(system.window(length)), abs=1e-3)
    assert system.noise_std(300) == system.noise_std(300, window=300)
    assert system.noise_std(300, window=10) < system.noise_std(300)


def test_the_noise_of_a_window_hardly_depends_on_the_streams_length() -> None:
    system = AllWindowSum(1.0)
    near = max(system.noise_std(step, 16) for step in range(64, 96))
    far = max(system.noise_std(step, 16) for step in range(1 << 30, (1 << 30) + 32))
    assert near == far


def test_reads_of_several_cells_have_their_shape() -> None:
    system = AllWindowSum(1.0, cells=3, longest=50)
    assert (4, 3) == system.update_many(np.zeros((4, 3))).shape
    assert (3,) == system.window(50).shape
    with pytest.raises(InvalidParameter, match="window in"):
        system.window(51)


@pytest.mark.parametrize("make", [WindowSum, AllWindowSum])
def test_gaussian_noise_serves_as_well(make: type[System]) -> None:
    options = {"window": 64} if make is WindowSum else {}
    system = make(guarantee=GaussianDP(Fraction(1)), **options)  # type: ignore[call-arg]  # both
    assert system.noise_std(64) < make(epsilon=1.0, **options).noise_std(64)  # type: ignore[call-arg]


def test_a_known_length_is_the_end() -> None:
    system = AllWindowSum(1.0, beta=1.01, steps=64)
    assert system.noise_std(64, 16) < AllWindowSum(1.0, beta=1.01).noise_std(64, 16)
    with pytest.raises(StreamEnded):
        system.update_many(np.zeros(65))


@pytest.mark.parametrize("window", [0, -1, 1.5, True, 1 << 38, "8"])
def test_impossible_windows_are_refused(window: object) -> None:
    with pytest.raises(InvalidParameter, match="Expected window"):
        WindowSum(window, 1.0)  # type: ignore[arg-type]  # refused


@pytest.mark.parametrize("beta", [1, 0.5, -1, float("nan"), float("inf"), "2", 4])
def test_impossible_betas_are_refused(beta: object) -> None:
    with pytest.raises(InvalidParameter, match="beta"):
        AllWindowSum(1.0, beta)  # type: ignore[arg-type]  # refused


def test_odd_ways_are_refused() -> None:
    with pytest.raises(InvalidParameter, match="decode"):
        WindowSum(8, 1.0, "best")
    with pytest.raises(InvalidParameter, match="as_printed"):
        WindowSum(8, 1.0, "direct", as_printed=True)
    printed = WindowSum(8, 1.0, as_printed=True)
    assert printed.plan.strategy == WindowSum(8, 1.0, "paper").plan.strategy


def test_a_gauge_may_ask_for_a_tree_by_name() -> None:
    import tidegauge as tg

    named = tg.plan(views=[tg.Window(64)], epsilon=1, unit="event", strategy=by_name("WindowSum"))
    assert (1, 2, 4, 8, 16, 32) == named.plan.strategy.levels
    beta = by_name("AllWindowSum", {"beta": 2})
    everything = tg.plan(views=[tg.Running(), tg.Window(9)], epsilon=1, unit="event", strategy=beta)
    assert 38 == len(everything.plan.strategy.levels)
    with pytest.raises(UnsupportedCombination, match="Expected views that are windows"):
        tg.plan(views=[tg.Running()], epsilon=1, unit="event", strategy=by_name("WindowSum"))
