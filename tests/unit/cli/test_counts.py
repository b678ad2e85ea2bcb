"""The operator's counts in plain words."""

from tidegauge.cli.counts import LEFT_OUT, OF_GAUGES, OPERATOR, OTHERS, meaning, told
from tidegauge.cli.manual import manual

COUNTS = {
    "records": 1000, "no_time": 3, "outside": 0, "step_published": 20, "clamped": 1,
    "visits: other": 7,
}  # fmt: skip


def test_every_line_says_whose_it_is_and_every_count_is_told():
    lines = told(COUNTS)
    assert all(line.startswith(OPERATOR) and line.endswith(".") for line in lines)
    text = "\n".join(lines)
    assert "1,000 rows read, 23 of them left out of all gauges." in text
    assert "3 have no time stamp that can be read" in text
    assert "20 are of steps published before (counted then, or too late) (step_published)." in text
    assert "1 totals of a cell and step that were cut off" in text
    assert "7 rows whose value is not among the declared ones" in text
    assert "outside" not in text
    assert "Warning" not in text


def test_a_run_that_counted_nothing_is_warned_of():
    assert "no row was counted" in told({"records": 5, "no_time": 2, "no_id": 3})[-1]
    assert "Warning" not in " ".join(told({"records": 0}))


def test_every_count_of_the_engine_has_a_meaning():
    for name in (*LEFT_OUT, *OTHERS, *(f"a: b: {name}" for name in OF_GAUGES)):
        assert meaning(name)
    assert not meaning("of nothing")


def test_the_manual_tells_every_count():
    text = manual()
    for name in (*LEFT_OUT, *OTHERS, *(f"GAUGE: {name}" for name in OF_GAUGES)):
        assert f"| `{name}` | {meaning(name)} |" in text
