"""The finder: the private half of a gauge whose items nobody knows. It measures what it sees.

Theory of operation. Every item that occurred has a number, in order of first sight, and a state:
that of the encoder, that of the discovery view, and its exact history while it is hidden. A block
is worked in tiles of items and steps that fit the cache: each is measured, decoded by the discovery
view, and looked at by the threshold; of a tile nothing is kept but the measurement of items that
are visible. The noise of an item is a function of (key, number, step), so that it exists for all
steps: before the item's first event, when its state is caught up, and again when it becomes visible
and its past is measured as a whole.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from threading import Lock
from typing import TYPE_CHECKING, Any, NoReturn, final

import numpy as np
from numpy.typing import NDArray

from tidegauge.compiled import lazy_module
from tidegauge.errors import InvalidInput, InvalidParameter, LiveState, StreamEnded
from tidegauge.mechanisms.columns import joined, put, taken
from tidegauge.mechanisms.measure import measure, private_state
from tidegauge.mechanisms.meter import warm_up
from tidegauge.mechanisms.plan import GaugePlan
from tidegauge.mechanisms.threshold import window_of
from tidegauge.noise.randomness import Words, stored_words
from tidegauge.strategies.strategy import MOST_STEPS, Float64, Int64, State

if TYPE_CHECKING:
    from tidegauge.mechanisms import _kernels
else:
    _kernels = lazy_module("tidegauge.mechanisms._kernels")

__all__ = ["Finder", "Found"]

_LANES = 16_384  # coordinates measured together: their buffers fit the second-level cache
_FEWEST = 256  # items of a tile: loops over items are then long enough
_KEY_ITEMS = 2048  # numbers that share keys, so that past steps of scattered items use few


@final
@dataclass(frozen=True, eq=False)
class Found:
    """What a block makes public: of items that are visible at its end, and of no others.

    The numbers are not public: a reader sees names, in the order of their bytes.

    Attributes:
        numbers: The visible items, increasing; shape (shown,).
        visible_from: The step, from 0, at which each became visible; shape (shown,).
        measured: The measurement of this block, lattice units; shape (steps, shown).
        new: Which of them became visible in this block; shape (shown,).
        past: The measurement of the new ones at all steps before the block; shape (before, new).
        clamped: How many amounts were clamped: for the operator, never for readers.
    """

    numbers: Int64
    visible_from: Int64
    measured: Int64
    new: NDArray[np.bool_]
    past: Int64
    clamped: int

    def __repr__(self) -> str:
        return f"Found({len(self.numbers)} visible items, {len(self.measured)} steps)"


@final
class Finder:
    """Measures a stream of items that nobody knows, and tells those that may be shown.

    Guarantee:
        Everything in ``Found`` but the numbers is (epsilon, delta)-differentially private together
        with what is measured elsewhere under the same plan. Proof:
        ``docs/proofs/unknown_domain.md``.

    Args:
        plan: A plan with a discovery.
        keys: For each incarnation the step, from 0, at which it began, and its key; see
            :func:`~tidegauge.mechanisms.secret.incarnation_key`. The first begins at 0. A key has
            to be stored before it is used here: the noise of its steps is drawn from it for ever.
        gauge: Name of the gauge: two gauges under the same keys never share noise.
        state: The private state at ``step``; None: before the first step. It is taken over, not
            copied.
        step: How many steps the state has seen.

    Raises:
        InvalidParameter: The plan discovers nothing, or the keys do not cover all steps.
        LiveState: In use: copied, forked, interrupted, or by two threads at once.

    Cost:
        About 30 ns an item and step. Memory: about 130 bytes an item that was seen, 24 an event of
        a hidden one, and the block's measurement of the visible ones. An item that is new, or that
        becomes visible, costs 20 ns for each step so far.
    """

    def __init__(
        self,
        plan: GaugePlan,
        keys: Sequence[tuple[int, bytes]],
        *,
        gauge: str,
        state: State | None = None,
        step: int = 0,
    ) -> None:
        if plan.discovery is None:
            raise InvalidParameter(
                "Expected a plan that discovers items, got one whose cells are known. There is no "
                "threshold for their names. Use a Meter."
            )
        firsts = [first for first, _ in keys]
        if firsts[:1] != [0] or any(b <= a for a, b in pairwise(firsts)) or firsts[-1] > step:
            raise InvalidParameter(
                "Expected keys that begin at step 0 and at increasing ones up to the present, got "
                "others. Noise of earlier steps would change. Give every key that was stored."
            )
        warm_up(plan)
        self._plan, self._discovery, self._step = plan, plan.discovery, step
        self._window = window_of(plan.discovery.decay) or MOST_STEPS + 1
        self._threshold = _not_below(plan)
        context = ("tidegauge items 1", gauge, plan.fingerprint, plan.law.scale)  # type: ignore[attr-defined]
        bits = plan.strategy.lattice_bits
        self._keys = [(first, stored_words(key, *context, bits)) for first, key in keys]
        self._views = [plan.discovery.decay]
        self._state = self._empty(0) if state is None else state
        self._owner = os.getpid()
        self._busy = Lock()  # never given back by an interrupted block
        warm = np.zeros((1, 1)), np.zeros((1, 1), np.uint8), np.zeros(1, np.int64) - 1
        _kernels.passes(*warm[:2], 0.0, 1, 0, warm[2], warm[2].copy())

    @property
    def step(self) -> int:
        """How many steps have been measured."""
        return self._step

    @property
    def items(self) -> int:
        """How many items have been seen: private."""
        return len(self._state["last"])

    @property
    def state(self) -> State:
        """Private: what has to be kept between blocks, plain arrays by name."""
        return self._state

    def measure(self, steps: int, when: Int64, items: Int64, amounts: Int64) -> Found:
        """Measure a block: what occurred, as triples in any order.

        Args:
            steps: How many steps the block has.
            when: The step of each triple, from 0 in this block; shape (n,), int64.
            items: The number of its item; new numbers follow the known ones without a gap.
            amounts: Its exact total in grains; may be 0. An item has one at most for each step.

        Raises:
            InvalidInput: Not such arrays; nothing was measured.
            StreamEnded: The block reaches beyond the last step; nothing was measured.
            LiveState: See the class.
        """
        raise NotImplementedError

    def close(self) -> None:
        """Erase the keys; the finder measures nothing more."""
        for _, words in self._keys:
            words.close()

    def _refuse_copy(self, *_: object) -> NoReturn:
        raise LiveState(
            "Expected one live finder, got an attempt to copy or pickle it. Two copies would draw "
            "the same noise for different data. Copy what it found, or make another one."
        )

    __copy__ = __deepcopy__ = __reduce__ = __reduce_ex__ = __getstate__ = _refuse_copy

    def __repr__(self) -> str:
        return f"Finder(step={self._step})"

    def _empty(self, items: int) -> State:
        strategy = self._plan.strategy
        return {}


def _not_below(plan: GaugePlan) -> float:
    """The threshold as a double, upwards."""
    assert plan.discovery is not None
    near = float(plan.discovery.threshold)
    return near if near >= plan.discovery.threshold else float(np.nextafter(near, np.inf))
