"""Events that are sets of items nobody knows: the totals are those of the same cells, listed."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from plans import gauge, plan
from test_items import counted
from test_totals import KEY, Frames, at

from tidegauge.engine.totals import totals
from tidegauge.mechanisms.discovery import Discover
from tidegauge.planning.plan import IdUnit

ITEMS = ["b", "a", "Z", "e\u0301", "\u00e9", "10", "9"]
ROWS = st.lists(
    st.tuples(
        st.integers(0, 4), st.sampled_from("uvw"), st.sampled_from(ITEMS), st.integers(-3, 9),
        st.sampled_from("xy"),
    ),
    max_size=30,
)  # fmt: skip
DECLARED = {
    "a set": {"max_items": 2},
    "with repeats": {"max_items": 1, "high": 3},
    "a sum": {"kind": "sum", "column": "v", "low": -4, "high": 6, "max_items": 3},
}


@pytest.mark.parametrize("unit", [None, IdUnit("id", 1, "lifetime")], ids=["event", "id"])
@pytest.mark.parametrize("declared", DECLARED.values(), ids=DECLARED)
@settings(max_examples=25, deadline=None)
@given(rows=ROWS, cut=st.integers(0, 30))
def test_totals_are_those_of_listed_cells(declared, unit, rows, cut):
    known = gauge(by=(("dest", tuple(ITEMS)),), **declared)
    unknown = gauge(by=(("dest", ()),), discover=Discover(), **declared)
    frame = pl.DataFrame(
        {"time": [at(t) for t, *_ in rows], "event": [e for _, e, *_ in rows],
         "dest": [d for _, _, d, *_ in rows], "v": [v for *_, v, _ in rows],
         "id": [i for *_, i in rows]},
        schema={"time": pl.String, "event": pl.String, "dest": pl.String, "v": pl.Int64,
                "id": pl.String},
    )  # fmt: skip
    found = []
    for one in (known, unknown):
        source = Frames(frame[cut:], frame[:cut])
        reading = plan(one, event="event", unit=unit)
        found.append(totals(reading, source, 0, 5, unit_key=KEY))
    array, sparse = found[0].arrays["departures"], counted(found[1].sparse["departures"])
    dense = np.zeros_like(array)
    for (item, step), amount in sparse.items():
        dense[step, ITEMS.index(item)] = amount
    assert np.array_equal(array, dense)
