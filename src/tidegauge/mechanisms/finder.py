"""The finder: the private half of a gauge whose items nobody knows. It measures what it sees.

Theory of operation. Every item that occurred has a number, in order of first sight, and a state:
that of the encoder, that of the discovery view, and its exact history while it is hidden. A block
is worked in tiles of items and steps that fit the cache: each is measured, decoded by the discovery
view, and looked at by the threshold; of a tile nothing is kept but the measurement of items that
are visible. The noise of an item is a function of (key, number, step), so that it exists for all
steps: before the item's first event, when its state is caught up, and again when it becomes visible
and its past is measured as a whole. From a further release on, items that were not visible when it
began, seen or not, take all their noise, also that of earlier steps, from the keys since then.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, final

import numpy as np
from numpy.typing import NDArray

from tidegauge.compiled import lazy_module
from tidegauge.errors import InvalidParameter
from tidegauge.mechanisms.columns import joined, put, taken
from tidegauge.mechanisms.item_keys import ItemKeys
from tidegauge.mechanisms.measure import measure, private_state
from tidegauge.mechanisms.meter import warm_up
from tidegauge.mechanisms.name_threshold import not_below, window_of
from tidegauge.mechanisms.occurrences import Occurrences, checked_occurrences
from tidegauge.mechanisms.plan import GaugePlan
from tidegauge.mechanisms.turn import Turn, no_copies, refuse_beyond_end
from tidegauge.strategies.strategy import MOST_STEPS, Int64, State

if TYPE_CHECKING:
    from tidegauge.mechanisms import _kernels
else:
    _kernels = lazy_module("tidegauge.mechanisms._kernels")

__all__ = ["Finder", "Found"]

_LANES = 16_384  # coordinates measured together: their buffers fit the second-level cache
_FEWEST = 256  # items of a tile: loops over items are then long enough
_MOST = 2_048  # numbers that share keys: a tile of past steps spans no more
_HIDDEN = -1
_NOTHING = Occurrences(*[np.zeros(0, np.int64)] * 3)


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
        Everything in ``Found`` but the numbers and what was clamped is (epsilon, delta)-private,
        together with all else that the plan's guarantee pays for. Proof:
        ``docs/proofs/unknown_domain.md``.

    Args:
        plan: A plan with a discovery.
        keys: For each incarnation the step, from 0, at which it began, and its key; see
            :func:`~tidegauge.mechanisms.secret.noise_key`. The first begins at 0. A key has
            to be stored before it is used here: the noise of its steps is drawn from it for ever.
        gauge: Name of the gauge: two gauges under the same keys share no noise.
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

    Examples:
        >>> from tidegauge.mechanisms.design import design
        >>> from tidegauge.mechanisms.discovery import Discover
        >>> from tidegauge.mechanisms.request import request_of
        >>> from tidegauge.mechanisms.secret import noise_key
        >>> from tidegauge.strategies.decay import Window
        >>> plan = design(request_of(views=[Window(7)], unit="event", epsilon=1, delta=1e-6,
        ...                          discover=Discover()))
        >>> finder = Finder(plan, [(0, noise_key())], gauge="example")
        >>> one_step, one_each = np.zeros(2, np.int64), np.array([0, 1])
        >>> found = finder.measure(1, one_step, one_each, np.array([5000, 1]))
        >>> found.numbers.tolist(), found.measured.shape
        ([0], (1, 1))
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
        self._plan, self._step = plan, step
        self._views = [plan.discovery.decay]
        self._window = window_of(plan.discovery.decay) or MOST_STEPS + 1
        self._threshold = not_below(plan.discovery.threshold)
        _warm_up(plan)
        self._keys = ItemKeys(plan, keys, gauge, step)
        self._encoder, self._decoder = self._states(0)
        self._last = self._visible_from = self._since = np.zeros(0, np.int64)
        self._again = 0  # the step from which on the last further release measures
        self._history = _NOTHING
        if state is not None:
            self._restore(state)
        self._turn = Turn("finder", "start again from what was stored")

    @property
    def step(self) -> int:
        """How many steps have been measured."""
        return self._step

    @property
    def items(self) -> int:
        """How many items have been seen: private."""
        return len(self._last)

    @property
    def state(self) -> State:
        """Private: what has to be kept between blocks, plain arrays by name."""
        return {
            **{f"encoder.{name}": array for name, array in self._encoder.items()},
            **{f"decoder.{name}": array for name, array in self._decoder.items()},
            "last": self._last,
            "visible_from": self._visible_from,
            "since": self._since,
            "again": np.array([self._again]),
            "history.steps": self._history.steps,
            "history.items": self._history.items,
            "history.amounts": self._history.amounts,
        }

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
        with self._turn:
            events, clamped = checked_occurrences(
                self._plan, self.items, steps, when, items, amounts
            )
            refuse_beyond_end(self._plan.last_step, self._step + steps)
            self._take_in(int(events.items[-1]) + 1 if len(events.items) else 0)
            hidden = self._visible_from == _HIDDEN
            wide = max(_FEWEST, _LANES // max(1, steps))
            starts = range(0, self.items, wide)
            parts = [slice(at, min(at + wide, self.items)) for at in starts]
            rows = [self._tile(part, steps, events) for part in parts]
            numbers = np.flatnonzero(self._visible_from != _HIDDEN)
            new = hidden[numbers]
            past = self._past(numbers[new])
            still = self._visible_from == _HIDDEN
            history = self._history.only(still) if new.any() else self._history
            self._history = history.followed_by(events.only(still), self._step)
            self._step += steps
        measured = np.concatenate([np.empty((steps, 0), np.int64), *rows], axis=1)
        return Found(numbers, self._visible_from[numbers], measured, new, past, clamped)

    def begin_again(self) -> None:
        """Draw all noise of items that are not visible anew: a further release begins here.

        Another release may show what was drawn for them, or for another item that had the number.
        Whoever saw a row twice would know which were seen before. A new key begins at this step.
        """
        with self._turn:
            self._again = self._step
            hidden = np.flatnonzero(self._visible_from == _HIDDEN)
            self._since[hidden] = self._step
            for numbers, events in self._with_history(hidden):
                encoder, decoder = self._caught_up(numbers, events, self._step)
                put(self._encoder, numbers, encoder)
                put(self._decoder, numbers, decoder)

    def close(self) -> None:
        """Erase the keys here; the finder measures nothing more."""
        self._keys.close()

    def _tile(self, part: slice, steps: int, block: Occurrences) -> Int64:
        """Measure some items over the block; return the rows of those that are visible."""
        numbers = np.arange(part.start, part.stop)
        encoder, decoder = taken(self._encoder, part), taken(self._decoder, part)
        last, visible_from = self._last[part], self._visible_from[part]  # written in place
        events = block.of(numbers)
        kept = np.empty((steps, len(numbers)), np.int64)
        for start, stop in _chunks(steps, len(numbers)):
            first = self._step + start
            exact, seen = events.dense(start, stop, len(numbers))
            rows = kept[start:stop] = self._measured(encoder, exact, first, numbers)
            values = np.empty((1, *rows.shape))
            self._plan.strategy.decode(decoder, self._views, rows, first, values)
            _kernels.passes(
                values[0], seen, self._threshold, self._window, first, last, visible_from
            )
        put(self._encoder, part, encoder)
        put(self._decoder, part, decoder)
        return kept[:, visible_from != _HIDDEN]

    def _measured(
        self, encoder: State, exact: Int64, first: int, numbers: Int64, since: int = 0
    ) -> Int64:
        """Measure a tile, each step under its key."""
        plan, state = self._plan, {"encoder": encoder}
        parts = []
        for words, low, high in self._keys.of(first, first + len(exact), since):
            block = exact[low - first : high - first]
            parts.append(measure(plan.strategy, state, plan.law, words, block, low, numbers))
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def _take_in(self, seen: int) -> None:
        """Give new items the states that they would have had without an event so far."""
        known = self.items
        if seen <= known:
            return
        encoders, decoders = [self._encoder], [self._decoder]
        for start in range(known, seen, _MOST):
            numbers = np.arange(start, min(start + _MOST, seen))
            encoder, decoder = self._caught_up(numbers, _NOTHING, self._again)
            encoders.append(encoder)
            decoders.append(decoder)
        self._encoder, self._decoder = joined(encoders), joined(decoders)
        never = np.full(seen - known, _HIDDEN)
        self._last = np.concatenate([self._last, never])
        self._visible_from = np.concatenate([self._visible_from, never])
        self._since = np.concatenate([self._since, np.full(seen - known, self._again)])

    def _caught_up(self, numbers: Int64, events: Occurrences, since: int) -> tuple[State, State]:
        """The states of encoder and discovery view after all steps so far."""
        encoder, decoder = self._states(len(numbers))
        for low, rows in self._so_far(encoder, numbers, events, since):
            values = np.empty((1, *rows.shape))
            self._plan.strategy.decode(decoder, self._views, rows, low, values)
        return encoder, decoder

    def _past(self, new: Int64) -> Int64:
        """Measure all steps before the block of items that became visible in it."""
        past = np.empty((self._step, len(new)), np.int64)
        if not past.size:
            return past
        for numbers, events in self._with_history(new):
            encoder, _ = self._states(len(numbers))
            places, since = np.searchsorted(new, numbers), int(self._since[numbers[0]])
            for low, rows in self._so_far(encoder, numbers, events, since):
                past[low : low + len(rows), places] = rows
        return past

    def _so_far(
        self, encoder: State, numbers: Int64, events: Occurrences, since: int
    ) -> Iterator[tuple[int, Int64]]:
        """Measure items at all steps before the block, some steps at a time."""
        for low, high in _chunks(self._step, len(numbers)):
            exact, _ = events.dense(low, high, len(numbers))
            yield low, self._measured(encoder, exact, low, numbers, since)

    def _with_history(self, numbers: Int64) -> Iterator[tuple[Int64, Occurrences]]:
        """Some items, those together that share keys, with what occurred of them so far."""
        wanted = np.zeros(self.items, bool)
        wanted[numbers] = True
        mine = self._history.only(wanted)
        history = Occurrences.sorted(mine.steps, mine.items, mine.amounts)
        shared = np.stack([self._since[numbers], numbers // _MOST])
        for since, part in np.unique(shared, axis=1).T:
            together = numbers[(shared[0] == since) & (shared[1] == part)]
            yield together, history.of(together)

    def _states(self, items: int) -> tuple[State, State]:
        """The states of encoder and discovery view before the first step."""
        strategy = self._plan.strategy
        return private_state(strategy, items)["encoder"], strategy.init_decoder(self._views, items)

    def _restore(self, state: State) -> None:
        for name, mine in (("encoder", self._encoder), ("decoder", self._decoder)):
            for key in mine:
                mine[key] = state[f"{name}.{key}"]
        self._last, self._visible_from = state["last"], state["visible_from"]
        self._since = state.get("since", np.zeros_like(self._last))  # older stores have none
        self._again = int(state.get("again", np.zeros(1))[0])
        self._history = Occurrences(*(state[f"history.{part}"] for part in vars(_NOTHING)))

    __copy__ = __deepcopy__ = __reduce__ = __reduce_ex__ = __getstate__ = no_copies("finder")

    def __repr__(self) -> str:
        return f"Finder(step={self._step})"


def _chunks(steps: int, width: int) -> Iterator[tuple[int, int]]:
    """Ranges of steps whose coordinates fit the cache."""
    rows = max(1, _LANES // width)
    for start in range(0, steps, rows):
        yield start, min(start + rows, steps)


def _warm_up(plan: GaugePlan) -> None:
    """Compile what a block needs, as a meter does."""
    warm_up(plan)
    values, seen, never = np.zeros((1, 1)), np.zeros((1, 1), np.uint8), np.full(1, _HIDDEN)
    _kernels.passes(values, seen, 0.0, 1, 0, never, never.copy())
