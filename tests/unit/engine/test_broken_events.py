"""Readers of sets that break the bound, as many do, and the tests that see it."""

import numpy as np
import pytest
from plans import gauge
from test_events import EXACT, arrays, equal, read, slow, summed, within
from test_totals import at

from tidegauge.engine import events
from tidegauge.planning.plan import IdUnit

ONE = IdUnit("carrier", 5, "lifetime")


def sum_over(rows, column, **options):
    """T3 for sets: totals are the sum over events, or ids, each within its bound."""
    members = sorted({row[column] for row in rows if row[column]})
    each = [arrays([r for r in rows if r[column] == one], **options) for one in members]
    for found in each if column == 1 else []:
        for one in options["gauges"]:
            within(found[one.name], one)
    assert equal(arrays(rows, **options), summed(each))


class LatestRow(events.Events):
    """Takes the step of an event's latest row: while an event may go on, no step is over."""

    def add(self, hashes, stamps, parts, ids=None):
        super().add(hashes, -stamps, parts, ids)

    def result(self, first, last):
        self._merge()
        self._events[events._STAMP] *= -1
        return super().result(first, last)


class SharedCap(events._Items):
    """A cap on rows that events share: ten of all are kept."""

    def add(self, hashes, cells, amounts):
        room = max(0, 10 - self._kept.shape[1] - self._waiting)
        taken = np.cumsum(cells >= 0) <= room
        super().add(hashes, np.where(taken, cells, -1), amounts)


class FileOrder(events._Items):
    """Keeps the cells that come first in the file."""

    def __init__(self, gauge, contributor):
        super().__init__(gauge, contributor)
        self._seen = {}

    def add(self, hashes, cells, amounts):
        kept = cells.copy()
        for row, event in enumerate(zip(*hashes, strict=True)):
            mine = self._seen.setdefault(event, set())
            if cells[row] not in mine and len(mine) == self._most:
                kept[row] = -1
            elif cells[row] >= 0:
                mine.add(cells[row])
        super().add(hashes, kept, amounts)


class EventIdAlone(events.EventIds):
    """Forgets that two ids may stand under one event id."""

    def __init__(self, key, event, unit):
        super().__init__(key, event, None)


class Forgets(events.Events):
    """Forgets which events began in earlier runs."""

    def __init__(self, gauges, clock, state=None, bounding=None, *, every_event=False):
        super().__init__(gauges, clock, None, bounding, every_event=every_event)


class TooMany(events._Items):
    """Keeps every cell of an event."""

    def __init__(self, gauge, contributor):
        super().__init__(gauge, contributor)
        self._most = 1 << 40


BASKETS = [
    (at(hour, minute), event, carrier, value)
    for event, carrier, hour in (("u", "UA", 1), ("v", "B6", 2), ("w", "UA", 4), ("u", "B6", 3))
    for minute, value in enumerate(("2", "B", "1", "1"))
]
SPLIT = [(at(1), "u", "UA", "1"), (at(4), "u", "UA", "1")]


def test_the_step_of_the_latest_row_is_caught(monkeypatch):
    """A row that comes later would move what its event added to a step that is published."""

    def first_steps(rows):
        return arrays(rows, gauges=EXACT)["sets"][:3]

    assert (first_steps(SPLIT[:1]) == first_steps(SPLIT)).all()
    assert equal(slow(SPLIT), arrays(SPLIT, gauges=EXACT))
    monkeypatch.setattr("tidegauge.engine.totals.Events", LatestRow)
    assert (first_steps(SPLIT[:1]) != first_steps(SPLIT)).any()
    assert not equal(slow(SPLIT), arrays(SPLIT, gauges=EXACT))


@pytest.mark.parametrize("column", [1, 2])
def test_a_cap_on_rows_that_events_share_is_caught(monkeypatch, column):
    options = {"gauges": EXACT, "unit": ONE if column == 2 else None}
    sum_over(BASKETS, column, **options)
    monkeypatch.setattr(events, "_Items", SharedCap)
    with pytest.raises(AssertionError):
        sum_over(BASKETS, column, **options)


def test_a_missing_cap_is_caught(monkeypatch):
    sum_over(BASKETS, 1, gauges=EXACT)
    monkeypatch.setattr(events, "_Items", TooMany)
    with pytest.raises(AssertionError):
        sum_over(BASKETS, 1, gauges=EXACT)


def test_cells_kept_by_their_order_in_the_file_are_caught(monkeypatch):
    expected = arrays(BASKETS, gauges=EXACT)
    assert equal(expected, arrays(BASKETS[::-1], gauges=EXACT))
    monkeypatch.setattr(events, "_Items", FileOrder)
    assert not equal(arrays(BASKETS, gauges=EXACT), arrays(BASKETS[::-1], gauges=EXACT))


def test_two_ids_under_one_event_are_caught(monkeypatch):
    one = (gauge("sets", by=(("v", ("1", "2")),), max_items=1),)
    rows = [(at(1), "u", "UA", "1"), (at(4), "u", "B6", "2")]
    sum_over(rows, 2, gauges=one, unit=ONE)
    monkeypatch.setattr("tidegauge.engine.totals.EventIds", EventIdAlone)
    with pytest.raises(AssertionError):
        sum_over(rows, 2, gauges=one, unit=ONE)


def test_events_that_are_forgotten_between_runs_are_caught(monkeypatch):
    def counted():
        begun = read(SPLIT, last=3)
        state, seen = begun.unit_state_at(3), begun.seen_at(3)
        rotated = read(SPLIT[1:], first=3, state=state, seen=seen)
        return int(begun.arrays["sets"].sum() + rotated.arrays["sets"].sum())

    assert 1 == counted()
    monkeypatch.setattr("tidegauge.engine.totals.Events", Forgets)
    assert 2 == counted()
