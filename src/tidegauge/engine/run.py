r"""A run: from a source to the public folder, as far as the public clock goes; then it stops.

Theory of operation. Which steps are measured follows from the plan, ``until`` and the wall clock
alone. A finite source is binned completely before its first release. Then, block by block, of a
size that follows from the plan: measure, commit, write the mark, publish what was committed; the
last files of a block are made while the next one is measured. A crash between any two of these
loses nothing and doubles nothing: what is committed is published by the next run, what is not was
seen by nobody and is measured anew. Nothing that a reader can see (files, names, order, messages,
the end) depends on a row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from tidegauge.engine.contributions import check_types
from tidegauge.engine.documents import spend_of
from tidegauge.engine.interruptions import Interruptions
from tidegauge.engine.mark import Mark, MarkFile
from tidegauge.engine.measuring import Measuring, known_items, seen_values
from tidegauge.engine.publisher import Publisher
from tidegauge.engine.schema import damaged
from tidegauge.engine.sinks import Sinks
from tidegauge.engine.source import Source
from tidegauge.engine.store import Store
from tidegauge.engine.totals import totals
from tidegauge.errors import InvalidParameter, StoreBehind
from tidegauge.planning.plan import Plan

if TYPE_CHECKING:
    from tidegauge.planning.settings import Settings

__all__ = ["Outcome", "last_step", "run"]

Progress = Callable[[int, int], None]

_HIDDEN = 8  # cells of which few are shown take so many times less room where they are published
_LANES = 1 << 17  # steps times cells of a block: 1 MB of measurement, some 15 MB of releases
_FOUND_LANES = 1 << 24  # the same of cells that are discovered: most of them are never visible


@dataclass(frozen=True)
class Outcome:
    """What a run did. Public, but for the counters.

    Attributes:
        first: The first step that was measured, from 0.
        last: The step after the last one: where the stream stands.
        published: How many blocks were published, those that an earlier run left included.
        releases: How many releases of this stream were charged.
        warnings: What the operator should know.
        counters: How many rows were dropped and totals clamped: the operator's alone.
    """

    first: int
    last: int
    published: int
    releases: int
    warnings: tuple[str, ...]
    counters: Mapping[str, int]


def last_step(plan: Plan, until: datetime | None, now: datetime) -> int | None:
    """Return how many steps are over: by the end, by ``until`` and by the wall clock.

    None where each record is a step: the number of records is public, and says it.

    Args:
        plan: Its clock is public.
        until: No step that ends later is measured; None: the plan's end.
        now: The wall clock.

    Raises:
        InvalidParameter: There is neither an end nor ``until``.
    """
    clock = plan.clock
    if until is not None and until.tzinfo is None:
        raise InvalidParameter(
            f"Expected until to have a time zone, got {until.isoformat()}. Which steps are over "
            "would depend on the machine. Add an offset, such as Z."
        )
    if clock.step_us is None:
        if until is not None:
            raise InvalidParameter(
                "Expected no --until where each record is a step, got one. Records have no time "
                "to compare it with. Leave it out; `end` is a number of records."
            )
        return None
    if clock.end is None and until is None:
        raise InvalidParameter(
            "Expected a last step, got a plan without an end and no --until. A file that ends must "
            "not decide where the releases end: one more row would be seen. Give `end`, or --until."
        )
    ends = [end for end in (clock.end, *(g.mechanism.last_step for g in plan.gauges)) if end]
    ends += [_over(moment, clock.start_us, clock.step_us) for moment in (until, now) if moment]
    return max(0, min(ends))


def run(
    plan: Plan,
    source: Source,
    settings: Settings,
    *,
    until: datetime | None = None,
    accept_second_release: bool = False,
    progress: Progress | None = None,
) -> Outcome:
    """Measure and publish every step that is over and not yet committed.

    Guarantee:
        Everything that is ever published from the store satisfies the plan's guarantee, times the
        number of releases in its ledger, which is 1 unless a second one was accepted.

    Args:
        plan: The accepted plan.
        source: Read once, completely, if there is anything to measure.
        settings: Where the store, the public folder, the mark and the sinks are.
        until: No step that ends later is measured.
        accept_second_release: If the store is behind what was published: go on nevertheless, and
            charge everything once more.
        progress: Called with the steps that are committed and all that will be: public numbers.

    Raises:
        Locked: Another process writes the store, or publishes into the folder.
        StoreMismatch: The store or the public folder belongs to another plan, or another view is
            published under a name.
        StoreBehind: The store is older than what was published, copied or damaged.
        WriteFailed: The disk does not take it; everything stands as it was, and a run resumes.
        KeyboardInterrupt: Ctrl-C or SIGTERM, between two blocks.

    Cost: one pass over the source, then one over the steps. Memory: 8 bytes a cell and step for
    the exact totals of all steps that are measured, and what :class:`Bounding` keeps of ids. Of
    cells that are discovered: 24 bytes for each step at which one occurs, what a finder keeps of
    each, and 8 bytes a step of a block for each that is visible.
    """
    last = last_step(plan, until, datetime.now(UTC))
    names = [gauge.name for gauge in plan.gauges]
    place = settings.path(settings.store)
    mark_file = MarkFile(None if settings.mark is None else settings.path(settings.mark), place)
    if not place.exists():
        # neither a misspelt column nor a lost store must leave a new store behind
        check_types(plan, source.types(plan.columns))
        if not accept_second_release:
            mark_file.refuse_lost()
    sinks = Sinks(settings)
    publisher = Publisher(
        settings.path(settings.public),
        plan,
        version=version("tidegauge"),
        emit=sinks.emit,
    )
    publisher.refuse_other_views()  # before the store takes the plan
    with (
        Interruptions() as interruptions,
        publisher,
        Store(
            place,
            fingerprint=plan.fingerprint,
            canonical=plan.canonical(),
            gauges=names,
        ) as store,
        publisher.claim.held(),  # before the first look at it
    ):
        mark_file.sweep()
        mark = _opened(plan, store, mark_file, publisher, accept_second_release)
        publisher.prepare(mark.spends)
        published = publisher.resume(store)
        first = store.step
        if first != plan.clock.end and (last is None or first < last):
            work = _Work(plan, store, mark_file, mark, publisher, interruptions, progress)
            published += work.measure(source, last)
        sinks.finish(publisher.path, plan)
        return Outcome(
            first=first,
            last=store.step,
            published=published,
            releases=len(mark.spends),
            warnings=tuple(text for text in (mark_file.warning,) if text),
            counters=store.counters(),
        )


@dataclass(frozen=True)
class _Work:
    """What the loop over blocks needs."""

    plan: Plan
    store: Store
    mark_file: MarkFile
    mark: Mark
    publisher: Publisher
    interruptions: Interruptions
    progress: Progress | None

    def measure(self, source: Source, last: int | None) -> int:
        """Bin the source, then measure, commit and publish up to ``last``; return the blocks."""
        store, first = self.store, self.store.step
        found = totals(
            self.plan,
            source,
            first,
            last,
            **{**self._unit(), **self._seen()},
            items=known_items(self.plan, store),
        )
        measuring = Measuring(self.plan, store)
        blocks = 0
        try:
            for start, steps in _blocks(self.plan, first, found.last):
                with self.interruptions.held():
                    measured = measuring.measure(found, start, steps)
                    store.commit(
                        start,
                        steps,
                        measured.blocks,
                        measured.states,
                        items=measured.items,
                        readings=self.publisher.checkpoints(),
                        bounding=found.unit_state_at(start + steps),
                        counters={
                            **found.counters,
                            **found.items_seen(start + steps),
                            "clamped": measuring.clamped,
                        },
                        ended=start + steps == self.plan.clock.end,
                    )
                    self._publish(start, steps)
                blocks += 1
                if self.progress is not None:
                    self.progress(start + steps, found.last)
            with self.interruptions.held():
                self.publisher.settle()
        except KeyboardInterrupt:  # between two blocks: the last one is published whole
            self.publisher.settle()
            raise
        finally:
            measuring.close()
        return blocks

    def _publish(self, start: int, steps: int) -> None:
        """Write the mark, then publish the block as the store has it."""
        self.mark_file.write(replace(self.mark, step=self.store.step))
        committed = {gauge.name: self.store.block(gauge.name, start) for gauge in self.plan.gauges}
        self.publisher.publish(start, steps, committed)

    def _unit(self) -> dict[str, Any]:
        """The key of ids, what they have used up, and which events began: else both begin anew."""
        store, plan = self.store, self.plan
        if plan.unit is None and plan.event is None:
            return {}
        key, used = store.unit_key, store.bounding()
        parts = {"counts"} if plan.unit is not None else set()
        parts |= {"events"} if plan.event is not None else set()
        if not key or (store.step and not parts <= set(used or ())):
            raise damaged(store.path)
        return {"unit_key": key, "unit_state": used}

    def _seen(self) -> dict[str, Any]:
        """The values that were counted, and the key of their hashes; else all would be new."""
        counting = [gauge.name for gauge in self.plan.gauges if gauge.distinct is not None]
        if not counting:
            return {}
        store = self.store
        key, seen = store.unit_key, seen_values(store.states())
        if not key or (store.step and set(seen) != set(counting)):
            raise damaged(store.path)
        return {"unit_key": key, "seen": seen}


def _over(moment: datetime, start_us: int, step_us: int) -> int:
    """How many steps have ended at a moment, in exact integers."""
    since = (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
    return (since - start_us) // step_us


def _blocks(plan: Plan, first: int, last: int) -> Iterator[tuple[int, int]]:
    """First step and length of each block: from public numbers alone."""
    known = sum(
        len(gauge.cells) if gauge.select is None else max(1, len(gauge.cells) // _HIDDEN)
        for gauge in plan.gauges
    )
    unknown = sum(gauge.discover.expected_items for gauge in plan.gauges if gauge.discover)
    length = max(1, min(_LANES // max(1, known), _FOUND_LANES // max(1, unknown)))
    for start in range(first, last, length):
        yield start, min(length, last - start)


def _opened(
    plan: Plan, store: Store, mark_file: MarkFile, publisher: Publisher, accept: bool
) -> Mark:
    """Compare the store with its marks and with the public folder; return the mark, as written.

    What any of them has charged and the store does not know is charged again with what is
    accepted, so no release is ever forgotten. The mark is there, durably, before the store's first
    measurement is committed.
    """
    marks = mark_file.read(store.name)
    day = datetime.now(UTC).date().isoformat()
    spends = store.spends()
    try:
        mark_file.check(marks, store.name, store.step, spends)
        publisher.claim.check(store.step, spends)
    except StoreBehind:
        if not accept:
            raise
        seen = [*(spend for mark in marks for spend in mark.spends), *publisher.claim.spends()]
        charged = {spend.id for spend in spends}
        forgotten = {spend.id: spend for spend in seen if spend.id not in charged}
        store.charge([*forgotten.values(), spend_of(plan, store.name, store.step, day)])
    else:
        if not spends:
            store.charge([spend_of(plan, store.name, 0, day)])
    mark = Mark(
        store=store.name,
        path=str(store.path),
        fingerprint=plan.fingerprint,
        step=store.step,
        spends=tuple(store.spends()),
    )
    mark_file.write(mark)
    return mark
