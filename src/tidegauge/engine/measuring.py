"""What measures: a meter, a selector where few cells are shown, a finder where none is known."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, final

from tidegauge.engine.blocks import Block
from tidegauge.engine.clipped import ClippedSteps, DrawnSteps
from tidegauge.engine.found import FoundBlock, block_of
from tidegauge.engine.schema import damaged
from tidegauge.engine.store import Store
from tidegauge.engine.totals import Totals
from tidegauge.mechanisms.finder import Finder
from tidegauge.mechanisms.first_values import Threshold
from tidegauge.mechanisms.meter import Meter
from tidegauge.mechanisms.secret import noise_key
from tidegauge.mechanisms.selector import Chosen, Selector
from tidegauge.planning.plan import Plan, PlannedGauge
from tidegauge.strategies.strategy import Int64, State

if TYPE_CHECKING:
    import polars as pl

__all__ = ["MeasuredBlocks", "Measuring", "known_items", "seen_values"]

_SEEN = "seen"  # part of a gauge's private state: the values that it has counted
_FINDER = "finder"  # the private state of a finder, whole


@final
@dataclass(frozen=True)
class MeasuredBlocks:
    """A block of all gauges, and what has to be stored with it.

    Attributes:
        blocks: The measurement of each gauge: public.
        states: The private state of each gauge after it.
        items: Of gauges that discover their cells, those seen for the first time: private.
    """

    blocks: Mapping[str, Int64 | FoundBlock]
    states: Mapping[str, Mapping[str, State]] = field(repr=False)
    items: Mapping[str, pl.DataFrame] = field(repr=False)


@final
class Measuring:
    """Measures all gauges of a plan from a store's committed step on.

    If one of them discovers its cells, the key of its noise is in the store before the first draw.

    Args:
        plan: What is measured.
        store: Whose private states are continued.

    Raises:
        StoreBehind: A state is missing: the store is damaged.
    """

    def __init__(self, plan: Plan, store: Store) -> None:
        states, step = store.states(), store.step
        if step and set(states) != {gauge.name for gauge in plan.gauges}:
            raise damaged(store.path)
        finding = [gauge for gauge in plan.gauges if gauge.discover is not None]
        keys = _keys(store) if finding else []
        self._clamped = store.counters().get("clamped", 0)
        self._found_clamped = 0
        self._finders = {
            gauge.name: Finder(
                gauge.mechanism,
                keys,
                gauge=gauge.name,
                state=states[gauge.name][_FINDER] if step else None,
                step=step,
            )
            for gauge in finding
        }
        for name, finder in self._finders.items():
            table = store.items(name)
            if finder.items != (0 if table is None else table.height):
                raise damaged(store.path)  # another item would get the noise of a lost one
        self._meters: dict[str, Meter | Selector] = {}
        for gauge in plan.gauges:
            if gauge.discover is None and gauge.clip is None:
                state = _own_state(states, gauge.name)
                kind = Meter if gauge.select is None else Selector
                self._meters[gauge.name] = kind(gauge.mechanism, state=state, step=step)
        if _again(store):
            for one in (*self._meters.values(), *self._finders.values()):
                one.begin_again()
        self._clipped = {
            gauge.name: _clipped_steps(gauge, store, _own_state(states, gauge.name))
            for gauge in plan.gauges
            if gauge.clip is not None
        }

    @property
    def clamped(self) -> int:
        """How many totals were clamped so far: for the operator, never for readers."""
        own = sum(meter.clamped for meter in self._meters.values())
        own += sum(steps.clamped for steps in self._clipped.values())
        return self._clamped + self._found_clamped + own

    def measure(self, totals: Totals, start: int, steps: int) -> MeasuredBlocks:
        """Measure a block of steps of all gauges."""
        blocks: dict[str, Int64 | FoundBlock] = {}
        states: dict[str, dict[str, State]] = {}
        items = {}
        part = slice(start - totals.first, start - totals.first + steps)
        for name, meter in self._meters.items():
            measured = meter.measure(totals.arrays[name][part])
            blocks[name] = measured.packed if isinstance(measured, Chosen) else measured
            states[name] = dict(meter.state)
        for name, clipped in self._clipped.items():
            blocks[name] = clipped.measure(totals.values[name].block(start, steps))
            states[name] = dict(clipped.state)
        for name, finder in self._finders.items():
            sparse = totals.sparse[name]
            before = finder.items
            found = finder.measure(steps, *sparse.block(start, steps))
            self._found_clamped += found.clamped
            blocks[name] = block_of(start, steps, sparse.items, found)
            states[name] = {_FINDER: finder.state}
            items[name] = sparse.items[before : finder.items]
        for name, values in totals.seen_at(start + steps).items():
            states[name][_SEEN] = values
        return MeasuredBlocks(blocks, states, items)

    def close(self) -> None:
        """Erase the keys from memory; nothing more is measured."""
        for meter in self._meters.values():
            meter.close()
        for clipped in self._clipped.values():
            clipped.close()
        for finder in self._finders.values():
            finder.close()


def seen_values(states: Mapping[str, Mapping[str, State]]) -> dict[str, State]:
    """Return the values that gauges have counted, of stored states."""
    return {name: state[_SEEN] for name, state in states.items() if _SEEN in state}


def known_items(plan: Plan, store: Store) -> dict[str, pl.DataFrame]:
    """Return what the gauges of a plan have discovered, shown or not: private."""
    names = [gauge.name for gauge in plan.gauges if gauge.discover is not None]
    tables = {name: store.items(name) for name in names}
    return {name: table for name, table in tables.items() if table is not None}


def _again(store: Store) -> bool:
    """Whether a further release of the stream begins at the store's step."""
    spends = store.spends()
    return len(spends) > 1 and spends[-1].step == store.step


def _keys(store: Store) -> list[tuple[int, bytes]]:
    """The key of every opening, a new one for this one, durably stored."""
    keys = store.noise_keys()
    if store.step and (not keys or keys[0][0] != 0):
        raise damaged(store.path)
    store.begin_noise(noise_key())
    return store.noise_keys()


def _clipped_steps(
    gauge: PlannedGauge, store: Store, state: dict[str, State] | None
) -> ClippedSteps | DrawnSteps:
    """What measures a gauge whose clip is found, from the committed step on."""
    if isinstance(gauge.clip, Threshold):
        return DrawnSteps(gauge, state, store.step)
    rows = (_measured(store, gauge.name, first) for first, _ in store.spans())
    return ClippedSteps(gauge, rows, state)


def _measured(store: Store, gauge: str, first: int) -> Int64:
    """What was measured of a gauge of known cells in a committed block."""
    block = store.block(gauge, first)
    assert isinstance(block, Block)
    return block.measured


def _own_state(states: Mapping[str, Mapping[str, State]], name: str) -> dict[str, State] | None:
    """The stored state of a gauge's meter; None: there is none yet."""
    if name not in states:
        return None
    return {part: state for part, state in states[name].items() if part != _SEEN}
