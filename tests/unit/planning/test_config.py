"""A config is read whole: what it means, and every mistake at once with its place."""

import json
from datetime import UTC, datetime, timedelta
from fractions import Fraction

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from unit.planning.configs import ALL, BASKETS, FLIGHTS, RECORDS, SMALL

from tidegauge.planning.config import config_of
from tidegauge.planning.durations import UNITS, microseconds_of
from tidegauge.planning.fields import RESERVED
from tidegauge.planning.plan import Clock, IdUnit, TimeColumn
from tidegauge.planning.problems import ConfigError, Problem, did_you_mean
from tidegauge.planning.settings import Settings, Sink
from tidegauge.planning.view_form import View
from tidegauge.privacy.guarantee import ZCDP, ApproxDP, GaussianDP, PureDP
from tidegauge.privacy.unit import NeighboringRelation
from tidegauge.strategies.decay import Exponential, Polynomial, Running, Step, Window


@pytest.fixture
def read(tmp_path, monkeypatch):
    """Read a config from a file in an empty folder, which is the working folder."""
    monkeypatch.chdir(tmp_path)

    def read(text, name="c.yaml"):
        (tmp_path / name).write_bytes(text if isinstance(text, bytes) else text.encode())
        return config_of(name)

    return read


def problems(read, text):
    with pytest.raises(ConfigError) as caught:
        read(text)
    return caught.value.problems


# --- what a config means


def test_the_config_of_the_design_is_read(read):
    config = read(FLIGHTS)
    assert config.clock == Clock(1357016400_000000, UNITS["h"], 8760)
    assert config.time == TimeColumn("time_hour", None, "iso")
    assert config.unit is None
    assert config.relation is NeighboringRelation.ADD_OR_REMOVE_ONE
    assert config.guarantee == ApproxDP(1, Fraction(1, 10**9))
    assert config.horizon == 8760
    (gauge,) = config.gauges
    assert gauge.where == '(NOT ("dep_delay" IS NULL))'
    assert gauge.by == (("carrier", ("UA", "B6", "EV", "DL", "AA", "MQ")),)
    assert gauge.other == "other"
    assert gauge.views == (
        View("step", Step()),
        View("running", Running()),
        View("window_7d", Window(168)),
        View("window_1d_every_1d", Window(24), 24),
        View("half_life_1d", Exponential(half_life=24)),
    )
    assert [view.decay for view in gauge.anticipate] == [Window(720)]
    assert gauge.max_per_step == 1 << 20
    assert config.settings == Settings(
        base=".",
        sources=("flights.parquet",),
        store="flights.tidegauge",
        public="public/",
        mark=None,
        sinks=(Sink("parquet", "releases.parquet", ("window_7d",)),),
    )
    assert config.about == (
        ("purpose", "To see when planes leave"),
        ("title", "Departures from New York"),
    )


def test_the_smallest_config_is_read(read):
    config = read(SMALL)
    (gauge,) = config.gauges
    assert gauge.kind == "count"
    assert gauge.where is None
    assert gauge.by == ()
    assert gauge.other is None
    assert [view.name for view in gauge.views] == ["step", "running"]
    assert config.clock.end is None
    assert config.horizon is None
    assert config.settings.store == "c.tidegauge"
    assert config.settings.public == "public/"


def test_sums_ids_crossed_columns_and_named_views_are_read(read):
    config = read(BASKETS)
    assert config.unit == IdUnit("household", 20, 7)
    assert config.relation is NeighboringRelation.REPLACE_ONE
    assert config.guarantee == ZCDP(Fraction(1, 2))
    assert config.time == TimeColumn("at", "America/New_York", "iso")
    baskets, money = config.gauges
    assert baskets.by == (("department", ("GROCERY", "NO")), ("store", ("01", "02")))
    assert baskets.other is None
    assert (money.low, money.high, money.round_to) == (-1000, 9999, Fraction(1, 100))
    assert money.max_per_step == 10_000_000
    assert money.column == "sales_value"
    assert money.where == "(\"store\" = '01')"
    assert money.budget_weight == 3
    assert money.views == (
        View("week", Window(7)),
        View("sundays", Window(7), 7),
        View("smooth", Polynomial(1.5, 365)),
        View("fast", Exponential(factor=0.5)),
    )


def test_records_as_steps_are_read(read):
    config = read(RECORDS)
    assert config.clock == Clock(0, None, 1000)
    assert config.time is None
    assert config.guarantee == PureDP(0.5)
    assert config.gauges[0].views == (
        View("running", Running()),
        View("window_100", Window(100)),
        View("half_life_12.5", Exponential(half_life=12.5)),
    )


def test_mu_is_a_budget(read):
    assert read(SMALL.replace("epsilon: 1, delta: 1e-9", "mu: .5")).guarantee == GaussianDP(0.5)


def test_a_byte_order_mark_and_windows_lines_change_nothing(read):
    assert read(b"\xef\xbb\xbf" + SMALL.replace("\n", "\r\n").encode()) == read(SMALL)


@pytest.mark.parametrize("text", ALL.values(), ids=ALL)
def test_reading_a_config_opens_no_source(read, text, monkeypatch):
    from pathlib import Path

    opened = []
    real = Path.open

    def spied(self, *arguments, **options):
        opened.append(self.name)
        return real(self, *arguments, **options)

    monkeypatch.setattr(Path, "open", spied)
    read(text)
    assert opened == ["c.yaml", "c.yaml"]  # written by the test, read by us


def test_known_values_come_from_a_file_beside_the_config(read, tmp_path):
    (tmp_path / "carriers.txt").write_bytes(b"UA\r\nNO\n01\n")
    (tmp_path / "airports.csv").write_text('code,name\nEWR,"Newark, NJ"\nJFK,Kennedy\n')
    config = read(
        FLIGHTS.replace(
            "{carrier: [UA, B6, EV, DL, AA, MQ]}",
            "{carrier: {file: carriers.txt}, origin: {file: airports.csv, column: code}}",
        )
    )
    assert config.gauges[0].by == (("carrier", ("UA", "NO", "01")), ("origin", ("EWR", "JFK")))


def test_twins_of_unicode_are_two_cells_and_a_warning(read):
    config = read(FLIGHTS.replace("[UA, B6,", "[caf\u00e9, cafe\u0301,"))
    assert config.gauges[0].by[0][1][:2] == ("caf\u00e9", "cafe\u0301")
    (warning,) = config.warnings
    assert (warning.line, warning.column) == (14, 26)
    assert "two ways of Unicode" in warning.message


def test_views_say_how_much_their_noise_matters(read):
    views = "[{view: running, importance: 0.5}, {window: 7d, every: 1d, importance: 2}, 30d]"
    (gauge,) = read(SMALL.replace("departures: count", f"d: {{count: , views: {views}}}")).gauges
    assert gauge.views == (
        View("running", Running(), 1, 0.5),
        View("window_7d_every_1d", Window(168), 24, 2.0),
        View("window_30d", Window(720)),
    )
    named = "{all: {view: running, every: 1d}, week: {view: 7d, importance: 1}}"
    (gauge,) = read(SMALL.replace("departures: count", f"d: {{count: , views: {named}}}")).gauges
    assert gauge.views == (View("all", Running(), 24), View("week", Window(168)))


# --- every config comes back as it was meant

LETTERS = st.characters(categories=["L", "Nd", "P", "S", "Zs"])
VALUES = st.lists(
    st.text(LETTERS, min_size=1, max_size=6).filter(str.strip), min_size=1, max_size=4, unique=True
)
NAMES = st.from_regex(r"[a-z][a-z0-9_]{0,8}", fullmatch=True)
DECIMALS = st.decimals("0.000001", 100, places=6).map(Fraction)


@st.composite
def declared_gauges(draw):
    low, high = sorted(draw(st.lists(st.integers(1, 10**6), min_size=2, max_size=2, unique=True)))
    gauge = draw(
        st.sampled_from(
            [{"count": None}, {"sum": {"column": "x", "bounds": [-low, high], "round_to": 0.5}}]
        )
    )
    columns = st.text(LETTERS, min_size=1, max_size=6).filter(
        lambda name: name.strip() and name not in RESERVED
    )
    by = draw(st.dictionaries(columns, VALUES, max_size=2))
    windows = draw(st.lists(st.integers(1, 10**4), max_size=3, unique=True))
    views = {f"w{n}": {"window": f"{n * 30}m", "every": f"{n * 90}m"} for n in windows}
    return {**gauge, **({"by": by} if by else {}), "views": {"now": "step", **views}}


@settings(max_examples=60)
@given(
    gauges=st.dictionaries(NAMES, declared_gauges(), min_size=1, max_size=3),
    epsilon=DECIMALS,
    steps=st.integers(1, 10**6),
    start=st.datetimes(min_value=datetime(1900, 1, 1), max_value=datetime(2100, 1, 1)),
)
def test_every_config_means_what_was_written(tmp_path_factory, gauges, epsilon, steps, start):
    start = start.replace(tzinfo=UTC)
    written = {
        "sources": ["a.csv"],
        "event_time": "t",
        "step": "30m",
        "start": start.isoformat(),
        "end": (start + timedelta(minutes=30 * steps)).isoformat(),
        "privacy": {"unit": "event", "epsilon": float(epsilon)},
        "gauges": gauges,
    }
    path = tmp_path_factory.mktemp("configs") / "c.yaml"
    path.write_text(json.dumps(written, ensure_ascii=False))
    assume(
        "other" not in {v for g in gauges.values() for vs in g.get("by", {}).values() for v in vs}
    )
    config = config_of(path)
    assert config.clock == Clock(microseconds_of(start), 30 * UNITS["m"], steps)
    assert config.guarantee == PureDP(epsilon)
    assert [gauge.name for gauge in config.gauges] == list(gauges)
    for gauge, given_gauge in zip(config.gauges, gauges.values(), strict=True):
        assert [(c, list(v)) for c, v in gauge.by] == list(given_gauge.get("by", {}).items())
        if "sum" in given_gauge:
            assert [gauge.low / 2, gauge.high / 2] == given_gauge["sum"]["bounds"]
        for view in gauge.views[1:]:
            assert view == View(view.name, Window(int(view.name[1:])), 3 * int(view.name[1:]))
    assert config_of(path) == config


# --- every mistake at once

MANY = """\
sources: flights.txt
time: time_hour
step: 1h
start: 2013-01-01
privacy:
  unit: evnt
  eps: 1
gauges:
  departures:
    count: {where: "dep_delay > 1 AND now() > x"}
    by: {carrier: [UA, NO, 01, UA, true, 2013-01-01, ~]}
    views: [step, runing, {window: 90m}, {halflife: 1d}]
    share: 3
  b: {late: {column: x}}
  c: {sum: {column: x, bounds: [1], grain: 3}}
"""


def test_all_mistakes_are_told_at_once_with_their_places(read):
    found = [(p.line, p.column, p.message.split(". ")[0]) for p in problems(read, MANY)]
    assert found == [
        (1, 10, "Expected the name of a .csv, .jsonl or .parquet file, got 'flights.txt'"),
        (2, 1, "Expected a known field, got 'time'"),
        (4, 8, "Expected a time with its zone, got '2013-01-01'"),
        (6, 9, "Expected event or a mapping with an id, got 'evnt'"),
        (7, 3, "Expected a known field, got 'eps'"),
        (10, 39, "Expected a condition over one row, got NOW"),
        (11, 24, "Expected text in quotes, got 'NO'"),
        (11, 28, "Expected text in quotes, got '01'"),
        (11, 32, "Expected each value once, got 'UA' again"),
        (11, 36, "Expected text in quotes, got 'true'"),
        (11, 42, "Expected text in quotes, got '2013-01-01'"),
        (11, 54, "Expected text in quotes, got nothing"),
        (12, 19, "Expected a view, got 'runing'"),
        (12, 27, "Expected a whole number of steps of 1h, got 90m = 1.5 steps"),
        (12, 43, "Expected a known field, got 'halflife'"),
        (13, 5, "Expected a known field, got 'share'"),
        (14, 7, "Expected count, sum, mean, count_distinct or top_k, got late"),
        (15, 32, "Expected two bounds, [lowest, highest], got another number of them"),
        (15, 37, "Expected a known field, got 'grain'"),
    ]


def test_a_problem_is_shown_with_its_line_and_a_caret(read):
    problem = problems(read, FLIGHTS.replace("half_life", "halflife"))[0]
    assert str(problem).split("\n") == [
        "c.yaml:16:58: Expected a known field, got 'halflife'. Did you mean 'half_life'?",
        "        views: [step, running, 7d, {window: 1d, every: 1d}, {halflife: 1d}]",
        " " * 61 + "^",
    ]


def replaced(old, new, text=FLIGHTS):
    assert old in text
    return text.replace(old, new)


MISTAKES = {
    "unknown field": (replaced("about:", "abuot:"), "19:1", "'about'"),
    "old name": (replaced("neighboring_relation:", "neighbours:"), "8:3", "neighboring_relation"),
    "foreign name": (replaced("budget_weight", "weight"), "18:5", "'budget_weight'"),
    "exponential's alpha": (replaced("half_life", "alpha"), "16:58", "'half_life'"),
    "range": (replaced("bounds", "range", BASKETS), "14:5", "Expected bounds, got nothing"),
    "no unit": (replaced("  unit: event\n", ""), "6:1", "there is no default"),
    "no privacy": (SMALL.replace("privacy: {unit: event, epsilon: 1, delta: 1e-9}\n", ""),
                   "1:1", "Write privacy: {unit: event"),
    "no gauges": (SMALL.replace("gauges: {departures: count}\n", ""), "1:1", "Write gauges"),
    "no gauge": (replaced("{departures: count}", "{}", SMALL), "6:9", "at least one gauge"),
    "no start": (replaced("start: 2013-01-01T05:00:00Z\n", ""), "1:1", "Write start"),
    "no event_time": (replaced("event_time: time_hour\n", ""), "1:1", "Write event_time"),
    "no budget": (replaced("epsilon: 1.0", "mu: 1"), "10:3", "delta beside epsilon only"),
    "two budgets": (replaced("delta: 1.0e-9", "rho: 1"), "6:1", "got epsilon and rho"),
    "budget zero": (replaced("epsilon: 1.0", "epsilon: 0"), "9:12", "got epsilon=0[.]"),
    "delta one": (replaced("1.0e-9", "1"), "10:10", "delta < 1"),
    "quoted number": (replaced("1.0e-9", "'1e-9'"), "10:10", "Remove them"),
    "number with _": (replaced("1.0e-9", "1_0"), "10:10", "without _"),
    "hexadecimal": (replaced("1.0\n", "0x1\n"), "9:12", "Expected a number"),
    "leading zero": (replaced("1.0\n", "01\n"), "9:12", "leading zero"),
    "infinite": (replaced("1.0\n", ".inf\n"), "9:12", "Expected a number"),
    "nan": (replaced("1.0\n", ".nan\n"), "9:12", "Expected a number"),
    "bomb of digits": (replaced("1.0e-9", "1e-9999999999"), "10:10", "Expected a number"),
    "boolean": (replaced("epsilon: 1.0", "epsilon: true"), "9:12", "Expected a number"),
    "null": (replaced("epsilon: 1.0", "epsilon:"), "9:3", "Expected a number, got nothing"),
    "step of a month": (replaced("step: 1h", "step: 1mo"), "3:7", "fixed length"),
    "step without unit": (replaced("step: 1h", "step: 60"), "3:7", "such as 30m"),
    "step of zero": (replaced("step: 1h", "step: 0h"), "3:7", "above 0"),
    "start without zone": (replaced("05:00:00Z\nend", "05:00:00\nend"), "4:8",
                           "Write 2013-01-01T05:00:00Z"),
    "day that is none": (replaced("start: 2013-01-01", "start: 2013-02-30"), "4:8", "exists"),
    "leap second": (replaced("start: 2013-01-01T05:00:00", "start: 2013-01-01T05:00:60"), "4:8",
                    "exists"),
    "end before start": (replaced("end: 2014", "end: 2012"), "5:6", "end after start"),
    "end within a step": (replaced("end: 2014-01-01T05:00", "end: 2014-01-01T05:30"), "5:6",
                          "Write 2014-01-01T06:00:00Z"),
    "window of parts": (replaced("7d", "90m"), "16:28", "90m = 1.5 steps"),
    "every of parts": (replaced("every: 1d", "every: 90m"), "16:52", "whole number of steps"),
    "window without unit": (replaced("7d", "168"), "16:28", "with its unit"),
    "two decays": (replaced("{half_life: 1d}", "{half_life: 1d, window: 1d}"), "16:57",
                   "Expected one of window"),
    "no decay": (replaced("{half_life: 1d}", "{every: 1d}"), "16:57", "Expected one of window"),
    "view twice": (replaced("running, 7d", "running, running"), "16:28", "each view once"),
    "factor of one": (replaced("half_life: 1d", "factor: 1"), "16:57", "factor < 1"),
    "every in anticipate": (replaced("[30d]", "[{window: 30d, every: 1d}]"), "17:18", "no every"),
    "importance of nothing": (replaced("{half_life: 1d}", "{half_life: 1d, importance: 0}"),
                              "16:85", "importance > 0"),
    "importance too large": (replaced("{half_life: 1d}", "{half_life: 1d, importance: 101}"),
                             "16:85", r"[0.01, 100]"),
    "importance in words": (replaced("{half_life: 1d}", "{half_life: 1d, importance: high}"),
                            "16:85", "a number"),
    "importance alone": (replaced("{half_life: 1d}", "{importance: 2}"), "16:57",
                         "Expected one of window"),
    "importance in anticipate": (replaced("[30d]", "[{window: 30d, importance: 2}]"), "17:18",
                                 "no importance"),
    "importance inside of": (
        replaced("{half_life: 1d}", "{difference: 1d, of: {window: 1d, importance: 2}}"), "16:57",
        "beside difference"),
    "view of two words": (replaced("{half_life: 1d}", "{view: runing, importance: 2}"), "16:57",
                          "mean 'running'"),
    "zone that is none": (replaced("America/New_York", "Mars", BASKETS), "3:11", "time zone"),
    "zone with epoch": (replaced("timezone: America/New_York",
                                 "timezone: UTC\ntime_format: epoch_s", BASKETS), "3:1", "epoch"),
    "wrong format": (replaced("step: 1h", "step: 1h\ntime_format: unix"), "4:14", "epoch_s"),
    "unit that is none": (replaced("unit: event", "unit: user"), "7:9", "who is protected"),
    "id without per": (replaced(", per: 1w", "", BASKETS), "8:3", "per: lifetime"),
    "id with zero": (replaced("max_contributions: 20", "max_contributions: 0", BASKETS), "8:44",
                     "whole number from 1"),
    "relation that is none": (replaced("add_or_remove_one", "swap"), "8:25", "replace_one"),
    "where of many rows": (replaced("dep_delay IS NOT NULL", "dep_delay > avg(dep_delay)"),
                           "13:33", "aggregate"),
    "where broken": (replaced("dep_delay IS NOT NULL", "dep_delay IS NOT"), "13:36",
                     "Expected a condition in SQL"),
    "by of numbers": (replaced("[UA, B6,", "[1, 1e3,"), "14:20", 'Write "1"'),
    "by twice": (replaced("[UA, B6,", "[UA, UA,"), "14:24", "each value once"),
    "by empty": (replaced("[UA, B6, EV, DL, AA, MQ]", "[]"), "14:19", "at least one known value"),
    "by of text": (replaced("[UA, B6, EV, DL, AA, MQ]", "UA"), "14:19", "a list of known values"),
    "by of lists": (replaced("[UA, B6,", "[[UA], B6,"), "14:20", "flat list"),
    "by to guess": (replaced("[UA, B6, EV, DL, AA, MQ]", "discovered"), "14:19", "or discover"),
    "by under a reserved name": (replaced("carrier:", "value:"), "14:10", "Rename it"),
    "by of a missing file": (replaced("[UA, B6, EV, DL, AA, MQ]", "{file: no.csv}"), "14:26",
                             "no file of this name"),
    "too many cells": (replaced("[UA, B6, EV, DL, AA, MQ]}", "[" + ",".join(
        f"a{i}" for i in range(1200)) + "], b: [" + ",".join(f"b{i}" for i in range(1200)) + "]}"),
        "14:5", "Cross fewer columns"),
    "other that is a value": (replaced("other: other", "other: UA"), "15:12", "Two cells"),
    "other without by": (replaced("    by: {carrier: [UA, B6, EV, DL, AA, MQ]}\n", ""), "14:5",
                         "left over"),
    "count and sum": (replaced("count: {", "sum: {column: x, bounds: [0, 1]}\n    count: {"),
                      "12:3", "got both"),
    "neither": (replaced('    count: {where: "dep_delay IS NOT NULL"}\n', ""), "12:3",
                "none of them"),
    "kind of later": (replaced("count: {where: ", "late: {column: "),
                      "13:5", "not available in this version"),
    "gauge of one word": (replaced("{departures: count}", "{departures: counts}", SMALL), "6:22",
                          "a mapping of fields"),
    "a number of ranks": (replaced("{departures: count}", "{top: {top_k: 10}}", SMALL), "6:23",
                          "Write top_k: {k: 10}"),
    "gauge called by": (replaced("{departures: count}", "{by: counts}", SMALL), "6:14",
                        "Correct it"),
    "gauges alike but for case": (replaced("{departures: count}", "{a: count, A: count}", SMALL),
                                  "6:20", "differ in more than case"),
    "gauge of a bad name": (replaced("departures:", "../x:"), "12:3", "name of letters"),
    "bounds swapped": (replaced("[-10, 99.99]", "[99, -10]", BASKETS), "14:40", "Swap"),
    "bounds between grains": (replaced("99.99", "99.999", BASKETS), "14:40", "multiples of"),
    "bounds beyond": (replaced("99.99", "1e30", BASKETS), "14:40", "overflow"),
    "round_to zero": (replaced("round_to: 0.01", "round_to: 0", BASKETS), "14:64", "above 0"),
    "weight zero": (replaced("budget_weight: 3", "budget_weight: 0", BASKETS), "20:20", "above 0"),
    "level of 1": (replaced("budget_weight: 3", "level: 1", BASKETS), "20:12", "level < 1"),
    "level in per cent": (replaced("budget_weight: 3", "level: 95", BASKETS), "20:12", "0.95"),
    "band of another name": (replaced("budget_weight: 3", "band: both", BASKETS), "20:11",
                             "pointwise or simultaneous"),
    "cap between grains": (replaced("100000", "0.001", BASKETS), "21:19", "multiple of 0.01"),
    "source of unknown form": (replaced("flights.parquet", "flights.xlsx"), "1:11", ".parquet"),
    "standard input beside": (replaced("[flights.parquet]", "['-', a.csv]"), "1:11", "alone"),
    "no source": (replaced("[flights.parquet]", "[]"), "1:10", "at least one source"),
    "store in public": (replaced("store: flights", "store: public/flights"), "20:8", "outside"),
    "sink of two kinds": (replaced("[{parquet: {path: releases.parquet, views: [window_7d]}}]",
                                   "[{csv: {path: a}, jsonl: {path: b}}]"), "22:9", "one of"),
    "sink of no view": (replaced("views: [window_7d]}}", "views: [window_7]}}"), "22:52",
                        "Did you mean 'window_7d'"),
    "record with a start": (replaced("end: 1000", "end: 9\nstart: 2013-01-01T00:00:00Z", RECORDS),
                            "4:1", "no start with step: record"),
    "record with durations": (replaced("running, 100", "running, 7d", RECORDS), "6:54",
                              "number of records"),
    "duplicate key": (replaced("store: flights.tidegauge", "step: 2h"), "20:1", "first in line 3"),
    "alias": (replaced("anticipate: [30d]", "anticipate: *x"), "17:17", "an alias"),
    "anchor": (replaced("[step,", "&x [step,"), "16:12", "an anchor"),
    "merge key": (replaced("about: {", "about: {<<: {}, "), "19:9", "merge key"),
    "tag": (replaced("title: Dep", "title: !!str Dep"), "19:16", "tag"),
    "tab": (replaced("  unit: event", "\tunit: event"), "7:1", "got a tab"),
    "two documents": (FLIGHTS + "---\na: 1\n", "23:1", "one document"),
    "unbalanced": (replaced("[30d]", "[30d"), "18:18", "Expected"),
    "colon in a text": (replaced("To see when", "To: see when"), None, "."),
    "control character": (replaced("To see", "To\x07see"), "19:53", "printable"),
    "hidden in an escape": (replaced("To see when planes leave", '"a\\u0007"'), "19:51", "control"),
    "lone surrogate": (replaced("To see when planes leave", '"a\\ud800"'), None, "character"),
    "empty": ("", "1:1", "an empty file"),
    "only a comment": ("# nothing\n", "1:1", "an empty file"),
    "a list": ("- a\n", "1:1", "Expected fields"),
    "a word": ("hello\n", "1:1", "Expected fields"),
    "deep": ("a: " + "[" * 5000, "1:23", "levels"),
    "collection as a key": ("{[a]: b}\n", "1:2", "name of a field"),
    "not UTF-8": (FLIGHTS.encode().replace(b"To see", b"T\xf6 see"), "19:52", "0xf6"),
    "quoted truth": (SMALL + "csv: {multiline: 'true'}\n", "7:18", "Expected true or false"),
    "yes": (SMALL + "csv: {multiline: yes}\n", "7:18", "Expected true or false, got 'yes'"),
    "value of two lines": (
        SMALL.replace("count}", '{by: {a: ["x\\n- y"]}, count: {}}}'), None, "one line",
    ),
    "cells by two lines": (
        SMALL.replace("count}", '{by: {"a\\nb": ["x"]}, count: {}}}'), None, "one line",
    ),
    "condition of two lines": (
        SMALL.replace("count}", '{count: {where: "a = \'x\\ny\'"}}}'), None, "one line",
    ),
    "time column of two lines": (
        SMALL.replace("time_hour", '"a\\nb"'), "2:13", "one line",
    ),
    "number beyond all": (
        SMALL.replace("count}", "{count: {}, views: [{polynomial: 1e400}]}}"), None, "below 1e300",
    ),
    "UTF-16": (FLIGHTS.encode("utf-16"), "1:1", "UTF-8"),
}  # fmt: skip


@pytest.mark.parametrize(("text", "place", "message"), MISTAKES.values(), ids=MISTAKES)
def test_each_mistake_has_its_place_and_its_remedy(read, text, place, message):
    import re

    found = problems(read, text)
    places = [f"{p.line}:{p.column}" for p in found if re.search(message, p.message)]
    if place is None:
        assert places
    else:
        assert places == [place], [str(p) for p in found]
    for problem in found:
        assert problem.message.startswith("Expected ")
        assert problem.message.rstrip()[-1] in ".?"
        assert len(str(problem).split("\n")) <= 3


@pytest.mark.parametrize("name", ["folder", "absent.yaml", "nul\0l"])
def test_what_is_no_file_is_refused(tmp_path, name):
    (tmp_path / "folder").mkdir()
    with pytest.raises(ConfigError, match="Expected a file to read") as caught:
        config_of(tmp_path / name)
    assert caught.value.problems[0].line == 0


def test_a_huge_file_is_refused(tmp_path):
    (tmp_path / "c.yaml").write_bytes(b"#" * (2 << 20))
    with pytest.raises(ConfigError, match="more than 1 MiB"):
        config_of(tmp_path / "c.yaml")


def test_problems_of_a_values_file_have_its_lines(read, tmp_path):
    (tmp_path / "v.txt").write_text("UA\n\nUA\n")
    found = problems(read, FLIGHTS.replace("[UA, B6, EV, DL, AA, MQ]", "{file: v.txt}"))
    assert [p.place for p in found] == ["v.txt:2:1", "v.txt:3:1"]


@given(st.binary(max_size=200))
@example(b"a: &a [*a]")
@example(b"? a\n: b")
@example(b"%YAML 9.9\n---\na: b")
@example(b"{" * 50)
def test_no_bytes_break_the_reading(tmp_path_factory, data):
    path = tmp_path_factory.mktemp("bytes") / "c.yaml"
    path.write_bytes(data)
    with pytest.raises(ConfigError) as caught:
        config_of(path)
    assert all(str(problem) for problem in caught.value.problems)


@given(st.data())
def test_no_cut_and_no_changed_sign_breaks_the_reading(tmp_path_factory, data):
    text = data.draw(st.sampled_from(sorted(ALL.values())))
    place = data.draw(st.integers(0, len(text) - 1))
    sign = data.draw(st.sampled_from([*"{}[],:\"'#&*!|>%@`~-0 \n\té", ""]))
    path = tmp_path_factory.mktemp("signs") / "c.yaml"
    path.write_text(text[:place] + sign + text[place + data.draw(st.integers(0, 9)) :])
    found = []
    try:
        config_of(path)
    except ConfigError as error:
        found = error.problems
    assert found == sorted(found, key=lambda p: (p.line, p.column))
    assert all(p.line >= 0 for p in found)


def test_a_problem_never_shows_more_than_a_screen_line():
    problem = Problem("f", 1, 5000, "m", "x" * 9999)
    assert max(map(len, str(problem).split("\n"))) < 200


def test_a_foreign_name_is_only_proposed_where_there_is_such_a_field():
    assert did_you_mean("share", ["budget_weight"]) == "Did you mean 'budget_weight'?"
    assert did_you_mean("share", ["window"]) == "The fields here are window."


@pytest.mark.parametrize("title", ["a\\nb", "a\\tb", "a\\x1b[2J", "a\\u2028b", "a\\x85b"])
def test_about_is_one_line_without_control_characters(read, title):
    found = problems(read, replaced("Departures from New York", f'"{title}"'))
    assert {19} == {problem.line for problem in found}


def test_a_value_with_something_unseen_is_warned_of(read):
    text = replaced("[UA, B6, EV, DL, AA, MQ]", '[UA, "U\\u200bA", ""]')
    warned = [(p.line, p.message) for p in read(text).warnings]
    assert [14, 14] == [line for line, _ in warned]
    assert warned[0][1].startswith("'U\\u200bA' holds a character that is not seen.")
    assert "empty" in warned[1][1]
    assert () == read(FLIGHTS).warnings
