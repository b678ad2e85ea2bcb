r"""PolynomialSum: a polynomial decay in steps, one windowed sum for each step of its weight.

Bolot, Fawaz, Muthukrishnan, Nikolov and Taft, "Private decayed predicate sums on streams" (ICDT
2013), Algorithm 4. The weights g(i) = (i + 1)^-c are rounded down to powers of 1 - beta: ages of
one power form a window, and each window is summed by binary trees of its own over the stream
delayed by the window's begin.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, final

import numpy as np
from numpy.typing import NDArray

from tidegauge.checks import exact, integer, shown
from tidegauge.compiled import lazy_module
from tidegauge.errors import InvalidParameter, StreamEnded, UnsupportedCombination
from tidegauge.privacy.unit import Neighbors
from tidegauge.strategies import filters, study
from tidegauge.strategies.asked import Asked
from tidegauge.strategies.blocks.combinations import Paths, Way
from tidegauge.strategies.blocks.levels import check_totals, largest_total
from tidegauge.strategies.blocks.rings import ring_layout
from tidegauge.strategies.decay import Custom, Decay
from tidegauge.strategies.strategy import (
    COORDINATES_PER_STEP,
    MOST_STEPS,
    Float64,
    Int64,
    Norm,
    State,
    Strategy,
)

if TYPE_CHECKING:
    from tidegauge.strategies.stepped import _kernels
else:
    _kernels = lazy_module("tidegauge.strategies.stepped._kernels")

__all__ = [
    "PolynomialSum",
    "build_polynomial_sum",
    "polynomial_sum",
    "polynomial_sum_of",
    "stepped_windows",
]

_NONE = np.empty(0)
_LONGEST_REACH = 1 << 16
_MOST_WINDOWS = 1 << 10
_LARGEST_WEIGHT = 1 << 20
_LARGEST_POWER = 1 << 20
_DEEPEST = 690.0  # -log of the least weight: floats end at 1e-308


def stepped_windows(
    c: Fraction, beta: Fraction, reach: int, *, printed: bool = False
) -> tuple[tuple[int, int], ...]:
    r"""Return the power of 1 - beta and the end (an age, exclusive) of each window that has ages.

    Weight 1 on age 0, and (1 - beta)^j on the ages i with (1 - beta)^j <= g(i) < (1 - beta)^(j-1):
    then g(i) (1 - beta) < weight <= g(i). As printed, the ages b(j - 1) <= i < b(j), b(j) the last
    age with g >= (1 - beta)^j, have the weight (1 - beta)^(j - 1): too large for most, and 1 for
    none where the first windows are empty.

    Examples:
        >>> stepped_windows(Fraction(1), Fraction(1, 2), 8)
        ((0, 1), (1, 2), (2, 4), (3, 8))
        >>> stepped_windows(Fraction(1), Fraction(1, 2), 8, printed=True)
        ((0, 1), (1, 3), (2, 7), (3, 8))
    """
    power, end, found = 0, 0, list[tuple[int, int]]()
    fall = -math.log1p(-float(beta))
    while end < reach and len(found) <= _MOST_WINDOWS:
        last = _last_age(c, 1 - beta, power + printed, reach)  # g >= (1 - beta)^power
        until = min(last + (not printed), reach)
        if until > end:
            found.append((power, until))
            end = until
        next_one = int(float(c) * math.log(end + 1) / fall)  # whose window is not empty
        power = max(power + 1, next_one - 1)
    return tuple(found)


def _last_age(c: Fraction, base: Fraction, power: int, reach: int) -> int:
    """The last age i with (i + 1)^-c >= base^power; floats decide, ties within 1e-12 count in.

    Of those up to the reach: for a small c the last may be beyond all floats.
    """
    if -power * math.log(base) > float(c) * math.log(2 * reach + 2):
        return reach
    edge = float(base) ** (-power / float(c))
    return int(edge * (1 + 1e-12)) - 1


@final
@dataclass(frozen=True)
class PolynomialSum(Strategy):
    r"""Windows of falling weight, each measured by binary trees of its own; Laplace noise only.

    Window k sees the stream ``delay`` steps late and is summed as by ``WindowSum`` without roots:
    L_k levels, every row times ``weights[k]``. An event lies in one block of each level of each
    window, so its L1 sensitivity is the sum of L_k ``weights[k]``, for ever. The view
    :attr:`decay` adds the windows up; every other view filters the rows of single steps.

    A baseline: noise on each step has less error for every c > 1/2. Proof:
    docs/proofs/bolot_windows.md.

    Args:
        beta: The weights are powers of 1 - beta; strictly between 0 and 1.
        powers: Of each window; rising.
        ends: Of each window, the first age beyond it; rising, at most 65536.
        weights: Of the rows of each window: integers from 1 to 2^20.
        printed: Roots are kept, and windows summed by the printed formula.

    Raises:
        InvalidParameter: The numbers do not fit together.

    Cost: about two rows a step and window, O(1) time each in a block of steps on average, and
    O(log window) in a step alone; memory O(last end).

    Examples:
        >>> small = PolynomialSum(Fraction(1, 2), (0, 1, 2), (1, 2, 4), (4, 2, 1))
        >>> small.decay.weights(5)
        array([1.  , 0.5 , 0.25, 0.25, 0.  ])
    """

    beta: Fraction
    powers: tuple[int, ...]
    ends: tuple[int, ...]
    weights: tuple[int, ...]
    printed: bool = False

    def __post_init__(self) -> None:
        why = "Weights fall by the factor 1 - beta. Use a number such as 0.25."
        object.__setattr__(self, "beta", exact("beta", self.beta, above=0, below=1, why=why))
        count = len(self.ends)
        fit = len(self.powers) == len(self.weights) == count
        if not (fit and 1 <= count <= _MOST_WINDOWS):
            raise InvalidParameter(
                f"Expected a power, an end and a weight for each of 1 to {_MOST_WINDOWS} windows, "
                f"got {len(self.powers)}, {count} and {len(self.weights)}. A window would be "
                "measured and not charged. Use a larger beta."
            )
        for name, low, high in (
            ("powers", 0, _LARGEST_POWER),
            ("ends", 1, _LONGEST_REACH),
            ("weights", 1, _LARGEST_WEIGHT),
        ):
            why = "It would be measured wrongly. Use polynomial_sum()."
            given = getattr(self, name)
            whole = tuple(integer(name, value, low=low, high=high, why=why) for value in given)
            object.__setattr__(self, name, whole)
        if list(self.powers) != sorted(set(self.powers)) or list(self.ends) != sorted(
            set(self.ends)
        ):
            raise InvalidParameter(
                f"Expected rising powers and ends, got {shown(self.powers)} and "
                f"{shown(self.ends)}. Windows would overlap. Use polynomial_sum()."
            )

    @property
    def lattice_bits(self) -> int:  # type: ignore[override]  # one lattice: whole grains
        """0: rows are whole grains."""
        return 0

    @cached_property
    def _delays(self) -> Int64:
        return np.array((0, *self.ends[:-1]), np.int64)

    @cached_property
    def _lengths(self) -> Int64:
        return np.array(self.ends, np.int64) - self._delays

    @cached_property
    def _heights(self) -> Int64:
        """Levels of each window."""
        heights = [(int(length) - 1).bit_length() + self.printed for length in self._lengths]
        return np.array([max(1, height) for height in heights], np.int64)

    @cached_property
    def _factors(self) -> Float64:
        """The weight of each window."""
        return np.array([float((1 - self.beta) ** power) for power in self.powers])

    @cached_property
    def _scales(self) -> Float64:
        """What a window's rows are multiplied by."""
        scales: Float64 = self._factors / np.array(self.weights)
        return scales

    @cached_property
    def _rows(self) -> tuple[Int64, int]:
        """What totals are multiplied by, and the largest total of a step."""
        return np.array(self.weights, np.int64), self.largest_total

    @property
    def _way(self) -> int:
        return int(Way.PRINTED if self.printed else Way.SIGNED)

    @cached_property
    def _moves(self) -> tuple[Int64, NDArray[np.int32]]:
        """What each window reads, for each place of its end: computed once, some MB at most."""
        sizes = 1 << (self._heights - 1)
        starts = np.empty(int(sizes.sum()) + 1, np.int64)
        moves = np.empty((2 * int((sizes * self._heights).sum()), 3), np.int32)
        found = _kernels.find_moves(self._lengths, self._heights, self._way, starts, moves)
        return starts, moves[:found].copy()

    @cached_property
    def _far(self) -> tuple[Int64, Int64, Int64, NDArray[np.int32]]:
        """The moves without what a counter adds up, and how many of them stay from the last."""
        starts, moves = self._moves
        begins, kept = np.empty(len(starts), np.int64), np.empty(len(starts) - 1, np.int64)
        larger = np.empty_like(kept)
        far = np.empty((len(moves) + int((self._heights << self._heights).sum()), 3), np.int32)
        found = _kernels.find_far(starts, moves, self._heights, begins, kept, larger, far)
        return begins, kept, larger, far[:found].copy()

    @cached_property
    def decay(self) -> Custom:
        """The weights that are released, for good."""
        return _decay_of(tuple(self._factors.tolist()), tuple(self._lengths.tolist()))

    @property
    def norms(self) -> frozenset[Norm]:
        """L1 only."""
        return frozenset({Norm.L1})

    @property
    def coordinates_per_step(self) -> int:
        """64, or one for each level of each window if they are more."""
        return max(COORDINATES_PER_STEP, int(self._heights.sum()))

    @property
    def hard_end(self) -> int | None:
        """Where numbers of coordinates would pass 2^44; None with at most 64 a step."""
        if self.coordinates_per_step == COORDINATES_PER_STEP:
            return None
        return MOST_STEPS * COORDINATES_PER_STEP // self.coordinates_per_step

    @property
    def absolute_gain(self) -> Fraction:
        """The longest row times its weight."""
        rows = np.array(self.weights) << (self._heights - 1)
        return Fraction(int(rows.max()))

    @property
    def largest_total(self) -> int:
        """2^62 over the longest row, rounded down to a power of two."""
        return largest_total(int(self.absolute_gain), 0)

    def sensitivity(self, norm: Norm, neighbors: Neighbors) -> Fraction:
        """How far the rows can move, in grains: exact.

        Raises:
            UnsupportedCombination: ``norm`` is L2.
        """
        if norm is not Norm.L1:
            raise UnsupportedCombination(
                f"Expected Norm.L1 for PolynomialSum, got {norm}. Its budgets are computed for "
                "Laplace noise. Use a guarantee of pure epsilon, or another strategy."
            )
        charged = int((self._heights * np.array(self.weights)).sum())
        return Fraction(neighbors.unit.max_events * charged * neighbors.event_l1)

    def init_encoder(self, cells: int) -> State:
        """Running sums as far back as the last window."""
        slots = 1 << self.ends[-1].bit_length()
        return {"history": np.zeros((slots, cells), np.int64)}

    def encode(self, state: State, x: Int64, first: int) -> Int64:
        """Exact rows: window after window, the blocks that complete, smallest first.

        Raises:
            InvalidInput: ``x`` is not int64 of shape (steps, cells); the state is as it was.
            StreamEnded: Beyond the hard end; the state is as it was.
        """
        check_totals(x, state["history"].shape[1])
        self._check_end(first + len(x))
        out = np.empty((self._row_count(first, len(x)), x.shape[1]), np.int64)
        weights, largest = self._rows
        _kernels.encode(
            state["history"], x, first, self._delays, self._heights, weights, largest, out
        )
        return out

    def coordinates(self, first: int, steps: int) -> Int64:
        """One place for each level of each window: ``step * coordinates_per_step + place``.

        Raises:
            StreamEnded: Beyond the hard end.
        """
        self._check_end(first + steps)
        numbers = np.empty(self._row_count(first, steps), np.int64)
        each = self.coordinates_per_step
        _kernels.number_rows(first, steps, self._delays, self._heights, each, numbers)
        return numbers

    def _check_end(self, last: int) -> None:
        end = self.hard_end or MOST_STEPS
        if last > end:
            raise StreamEnded(
                f"Expected at most {end} steps, got step {last}. Noise would be used twice. Start "
                "a new gauge."
            )

    def _row_count(self, first: int, steps: int) -> int:
        """How many blocks the steps complete."""
        delays, sizes = self._places
        before, after = (np.maximum(at - delays, 0) // sizes for at in (first, first + steps))
        return int((after - before).sum())

    @cached_property
    def _places(self) -> tuple[Int64, Int64]:
        """The delay and the block's size of each place."""
        sizes = np.concatenate([1 << np.arange(height) for height in self._heights])
        return np.repeat(self._delays, self._heights), sizes

    @property
    def drawn_places(self) -> int:
        """Every row."""
        return int(self._heights.sum())

    def init_decoder(self, views: Sequence[Decay], cells: int) -> State:
        """For each window, running sums of its blocks; and the states of the filters."""
        others = [view for view in views if view != self.decay]
        state = filters.init_decoder(others, cells, 0)
        if len(others) < len(views):
            layouts, slots = [], 0
            for length, height in zip(self._lengths, self._heights, strict=True):
                levels = tuple(1 << level for level in range(int(height)))
                layout = ring_layout(levels, int(length))
                layouts.append(layout + np.array([[slots, 0]]))
                slots += int(layout[-1].sum())
            state["layout"] = np.concatenate(layouts)
            state["ring"] = np.zeros((slots, cells), np.int64)
        return state

    def decode(
        self, state: State, views: Sequence[Decay], measured: Int64, first: int, out: Float64
    ) -> None:
        """Write every view of a block into ``out``, shape (views, steps, cells), in grains."""
        steps = out.shape[1]
        mine = [place for place, view in enumerate(views) if view == self.decay]
        if mine:
            _kernels.decode(
                state["ring"],
                state["layout"],
                measured,
                first,
                self._delays,
                self._lengths,
                self._heights,
                self._scales,
                *self._far,
                out[mine[0]],
            )
            for place in mine[1:]:
                out[place] = out[mine[0]]
        others = [place for place, view in enumerate(views) if view != self.decay]
        if others and steps:
            single = self.coordinates(first, steps) % self.coordinates_per_step == 0
            filtered = np.empty((len(others), steps, out.shape[2]))
            filters.decode_views(
                state,
                [views[place] for place in others],
                measured[single],
                first,
                filtered,
                gaps=_NONE,
                weights=_NONE,
                unit=1 / self.weights[0],
            )
            out[others] = filtered

    def variance_gain(self, view: Decay, steps: Int64) -> Float64:
        """For the own view, blocks of each window times its weight squared over its rows'."""
        if view != self.decay:
            return study.energy(view, steps) / float(self.weights[0]) ** 2
        gain = np.zeros(len(steps))
        for paths, length, delay, scale in self._windows():
            seen = np.asarray(steps) - delay
            there = seen > 0
            gain[there] += scale**2 * paths.prices_of_sums(length, seen[there])
        return gain

    def worst_variance_gain(self, view: Decay, horizon: int) -> float:
        """The largest up to the horizon: once all windows are full, blocks come round again."""
        if view != self.decay:
            return study.worst_energy(view, horizon) / float(self.weights[0]) ** 2
        last = min(horizon, self.ends[-1] + (1 << int(self._heights.max())))
        return float(self.variance_gain(view, np.arange(1, last + 1)).max())

    def noise_terms(self, view: Decay, step: int) -> tuple[Float64, Int64]:
        """One weight for each window that has begun, as often as it has blocks."""
        if view != self.decay:
            weights, counts = study.noise_terms(view, step)
            return weights / float(self.weights[0]), counts
        terms = [
            (scale, int(paths.prices_of_sums(length, np.array([step - delay]))[0]))
            for paths, length, delay, scale in self._windows()
            if step > delay
        ]
        return np.array([scale for scale, _ in terms]), np.array([n for _, n in terms], np.int64)

    def gain_tells_terms(self, view: Decay) -> bool:
        """Not of the own view: blocks of different windows come and go."""
        return view != self.decay

    def _windows(self) -> Iterator[tuple[Paths, int, int, float]]:
        way = Way.PRINTED if self.printed else Way.SIGNED
        for length, delay, height, scale in zip(
            self._lengths.tolist(),
            self._delays.tolist(),
            self._heights.tolist(),
            self._scales.tolist(),
            strict=True,
        ):
            yield Paths(tuple(1 << level for level in range(height)), way), length, delay, scale


@lru_cache(maxsize=64)
def _decay_of(factors: tuple[float, ...], lengths: tuple[int, ...]) -> Custom:
    """The one decay of equal strategies: every block compares it with its views."""
    return Custom(tuple(np.repeat(factors, lengths).tolist()))


def polynomial_sum(
    c: float | Fraction, beta: float | Fraction, reach: int = 4096, *, printed: bool = False
) -> PolynomialSum:
    r"""Return PolynomialSum with the budget shared so that the variance is least.

    Window k of weight a_k, L_k levels and at most n_k blocks, its rows times r_k, has the variance
    ``n_k (a_k b / r_k)^2`` under noise of scale b = sum L_k r_k / epsilon; the sum of variances is
    least for r_k in proportion to ``a_k^(2/3) (n_k / L_k)^(1/3)``. As printed all windows have
    noise of one scale under their weighted rows: r_k in proportion to a_k, and a variance that
    grows with the reach as the square of its logarithm.

    Args:
        c: The decay's exponent, above 0.
        beta: How far below the decay the steps may fall, strictly between 0 and 1.
        reach: Ages from here on weigh nothing; at most 65536.
        printed: Windows, roots and noise as the paper has them; but empty windows are passed over,
            at which the printed algorithm stops for good.

    Raises:
        InvalidParameter: A parameter is out of range.

    Examples:
        >>> polynomial_sum(1, 0.5, 8).ends
        (1, 2, 4, 8)
    """
    slow = "A decay has a positive exponent. Use 1.5, or Running() for no decay at all."
    exponent = exact("c", c, above=0, below=100, why=slow)
    why = "Weights fall by the factor 1 - beta. Use a number such as 0.25."
    share = exact("beta", beta, above=0, below=1, why=why)
    why = "So many ages are kept. Ages beyond 65536 are not available."
    integer("reach", reach, low=1, high=_LONGEST_REACH, why=why)
    found = stepped_windows(exponent, share, reach, printed=printed)
    if found[-1][0] > _LARGEST_POWER:
        raise InvalidParameter(
            f"Expected c and beta with powers of 1 - beta up to {_LARGEST_POWER}, got "
            f"c={float(c):g} and beta={float(beta):g}, which need more. Windows would be told "
            "apart by roundings. Use a larger beta, such as 0.25, or a smaller c."
        )
    if len(found) > _MOST_WINDOWS:
        raise InvalidParameter(
            f"Expected c, beta and reach for at most {_MOST_WINDOWS} windows, got c={float(c):g}, "
            f"beta={float(beta):g} and reach={reach}, which make more. Each is measured by trees "
            "of its own. Use a larger beta, a smaller reach or a smaller c."
        )
    if float(exponent) * math.log(reach) > _DEEPEST:
        raise InvalidParameter(
            f"Expected c and reach with weights of at least 1e-300, got c={float(c):g} and "
            f"reach={reach}. Smaller ones are 0 in floating point. Use a smaller c or reach."
        )
    powers, ends = tuple(power for power, _ in found), tuple(end for _, end in found)
    plain = PolynomialSum(share, powers, ends, (1,) * len(ends), printed)
    shares = []
    for (paths, length, _, factor), levels in zip(
        plain._windows(), plain._heights.tolist(), strict=True
    ):
        worst = paths.worst_price(length, 1 << 38)
        shares.append(factor if printed else factor ** (2 / 3) * (worst / levels) ** (1 / 3))
    unit = _LARGEST_WEIGHT / max(shares)
    weights = tuple(max(1, int(unit * part)) for part in shares)
    return PolynomialSum(share, powers, ends, weights, printed)


def build_polynomial_sum(
    asked: Asked, *, printed: bool = False, **options: Fraction
) -> PolynomialSum:
    """The builder of :func:`polynomial_sum` for a gauge whose one view is its decay.

    Raises:
        UnsupportedCombination: The view is another one, or the noise is not Laplace.
        InvalidParameter: An option is missing or out of range.
    """
    if asked.norm is not Norm.L1:
        raise UnsupportedCombination(
            "Expected a guarantee of pure epsilon for PolynomialSum, got one under Gaussian noise. "
            "Its budgets are computed for Laplace noise. Use epsilon alone."
        )
    made = polynomial_sum_of(printed=printed, **options)
    if asked.views != (made.decay,):
        raise UnsupportedCombination(
            "Expected the one view that PolynomialSum releases, got others. Its weights are a "
            "polynomial's rounded down. Leave the views out of the config."
        )
    return made


def polynomial_sum_of(
    *,
    c: Fraction | None = None,
    beta: Fraction = Fraction(1, 4),
    reach: Fraction = Fraction(4096),
    printed: bool = False,
) -> PolynomialSum:
    """Return :func:`polynomial_sum` of the options that a config gives.

    Raises:
        InvalidParameter: An option is missing or out of range.
    """
    if c is None or reach.denominator > 1:
        raise InvalidParameter(
            f"Expected options c, a number, and reach, a whole one, got c={shown(c)} and "
            f"reach={shown(reach)}. The weights follow from them. Name both."
        )
    return polynomial_sum(c, beta, int(reach), printed=printed)
