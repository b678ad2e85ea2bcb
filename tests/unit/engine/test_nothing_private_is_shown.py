"""The text of an object, as it stands in tracebacks and logs, has no value of the data in it."""

import numpy as np
import polars as pl
import pytest

from tidegauge.engine.measuring import MeasuredBlocks
from tidegauge.engine.sparse import SparseTotals
from tidegauge.engine.totals import Totals
from tidegauge.mechanisms.occurrences import Occurrences

SECRET = 777777
NUMBERS = np.array([SECRET])
ITEMS = pl.DataFrame({"name": [str(SECRET)], "number": [SECRET]})
SPARSE = SparseTotals(ITEMS, NUMBERS, NUMBERS, NUMBERS, SECRET)
PRIVATE = [
    Occurrences(NUMBERS, NUMBERS, NUMBERS),
    SPARSE,
    MeasuredBlocks({}, {"visits": {"seen": {"a": NUMBERS}}}, {"visits": ITEMS}),
    Totals({"visits": NUMBERS}, 0, 1, SECRET, {"outside": SECRET}, {"found": SPARSE}),
]


@pytest.mark.parametrize("made", PRIVATE, ids=lambda made: type(made).__name__)
def test_nothing_private_is_shown(made):
    assert str(SECRET) not in repr(made)
    assert type(made).__name__ in repr(made)
