"""Plans: made without data, written in one form, read back without a fit, and not believed."""

import dataclasses
import json
import re
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from unit.planning.configs import ALL, BASKETS, FLIGHTS, RECORDS, SMALL

from tidegauge.errors import BudgetExceeded, InvalidParameter, UnsupportedCombination
from tidegauge.mechanisms.plain_data import fraction_text
from tidegauge.planning.config import config_of
from tidegauge.planning.plan import canonical_bytes
from tidegauge.planning.planner import plan_of
from tidegauge.planning.verified import plan_from_bytes, verify_plan
from tidegauge.privacy.costs import GaussianCost, PureCost
from tidegauge.privacy.guarantee import GaussianDP, PureDP
from tidegauge.strategies.decay import Step, Window

GOLDEN = Path(__file__).parent / "golden"


def config(tmp_path, text):
    (tmp_path / "c.yaml").write_text(text)
    return config_of(tmp_path / "c.yaml")


@pytest.fixture
def planned(tmp_path):
    return lambda text: plan_of(config(tmp_path, text))


@pytest.fixture(scope="module")
def plans(tmp_path_factory):
    folder = tmp_path_factory.mktemp("plans")
    return {name: plan_of(config(folder, text)) for name, text in ALL.items()}


# --- making plans


def test_how_rows_are_cut_is_part_of_what_is_signed(planned):
    plain = planned(RECORDS)
    whole = planned(RECORDS + "csv: {multiline: true}\n")
    assert (False, True) == (plain.multiline, whole.multiline)
    assert plain == planned(RECORDS + "csv: {multiline: false}\n")
    assert whole == plan_from_bytes(whole.canonical())
    for hashed in ("sha256", "fingerprint", "declaration"):
        assert getattr(plain, hashed) != getattr(whole, hashed)
    data = json.loads(whole.canonical())
    for wrong in ({"multiline": False}, {"multiline": 1}, {}, {"multiline": True, "quote": "'"}):
        with pytest.raises(InvalidParameter):
            plan_from_bytes(json.dumps(data | {"csv": wrong}).encode())


def test_a_plan_says_what_the_config_declares(plans):
    plan = plans["baskets"]
    baskets, money = plan.gauges
    assert baskets.cells == (
        ("GROCERY", "01"), ("GROCERY", "02"), ("NO", "01"), ("NO", "02"),
    )  # fmt: skip
    assert money.cells == ((),)
    assert plans["flights"].gauges[0].cells[-1] == ("other",)
    assert (money.low, money.high, money.round_to) == (-1000, 9999, Fraction(1, 100))
    assert money.mechanism.neighbors.event_l1 == 10999
    assert money.every_of("sundays") == 7
    assert money.every_of("week") == 1
    assert plan.columns == ("at", "department", "household", "sales_value", "store")
    assert plans["records"].columns == ("clicked",)
    assert plans["flights"].gauge("departures").mechanism.end == 8760


def test_gauges_share_the_whole_budget_by_weight(plans):
    baskets, money = plans["baskets"].gauges
    assert isinstance(money.mechanism.cost, GaussianCost)
    assert money.mechanism.cost.mu_squared == 3 * baskets.mechanism.cost.mu_squared
    assert plans["baskets"].charged().left == 0
    assert plans["baskets"].charged().total() == GaussianDP(1)


def test_short_memory_takes_laplace_noise_for_all_gauges_even_where_delta_is_given(planned):
    plan = planned(
        SMALL.replace("epsilon: 1,", "epsilon: 5,").replace(
            "{departures: count}", "{a: {count: , views: [step]}, b: {count: , views: [step, 3h]}}"
        )
    )
    assert plan.charged().total() == PureDP(5)
    assert [gauge.mechanism.cost for gauge in plan.gauges] == [PureCost(Fraction(5, 2))] * 2


def test_one_plan_never_mixes_kinds_of_noise(planned):
    plan = planned(
        SMALL.replace("{departures: count}", "{a: {count: , views: [step]}, b: {count: }}")
    )
    assert {type(gauge.mechanism.cost) for gauge in plan.gauges} == {GaussianCost}


def test_what_is_anticipated_is_designed_for_and_not_published(planned):
    text = SMALL.replace("{departures: count}", "{departures: {count: , views: [step]%s}}")
    alone = planned(text % "").gauges[0]
    prepared = planned(text % ", anticipate: [30d]").gauges[0]
    assert prepared.views == alone.views == (("step", Step()),)
    assert prepared.anticipate == (Window(720),)
    far = [100_000]
    assert prepared.mechanism.noise_std(Window(720), far) < 0.6 * alone.mechanism.noise_std(
        Window(720), far
    )


def test_sums_that_could_overflow_are_refused_with_the_name_of_the_gauge(planned):
    text = BASKETS.replace("max_per_step: 100000", "max_per_step: 40000000000000000")
    with pytest.raises(UnsupportedCombination, match=r"Gauge money: .*overflow"):
        planned(text)


@pytest.mark.parametrize("text", ALL.values(), ids=ALL)
def test_planning_opens_no_file(tmp_path, text, monkeypatch):
    import polars

    made = config(tmp_path, text)
    opened = []
    real = open

    def spied(self, *arguments, **options):
        opened.append(self)
        return real(self, *arguments, **options)

    monkeypatch.setattr(Path, "open", spied)
    monkeypatch.setattr("builtins.open", None)
    for name in ("read_csv", "scan_csv", "read_parquet", "scan_parquet", "read_ndjson"):
        monkeypatch.setattr(polars, name, None)
    plan_of(made)
    assert {path.name for path in opened} <= {"METADATA"}  # where the library's version stands


# --- one form, both ways


@pytest.mark.parametrize("name", ALL)
def test_a_plan_comes_back_byte_for_byte(plans, name):
    plan = plans[name]
    again = plan_from_bytes(plan.canonical())
    assert again == plan
    assert again.canonical() == plan.canonical()
    assert (again.sha256, again.fingerprint) == (plan.sha256, plan.fingerprint)


@pytest.mark.parametrize("name", ALL)
def test_canonical_bytes_hold_no_float(plans, name):
    def refuse(text):
        raise AssertionError(text)

    json.loads(plans[name].canonical(), parse_float=refuse, parse_constant=refuse)


@pytest.mark.parametrize("name", ["flights", "baskets", "combed", "records"])
def test_an_accepted_plan_is_read_as_it_was_written(name):
    stored = (GOLDEN / f"{name}.plan.json").read_bytes()
    plan = plan_from_bytes(stored)
    assert plan.canonical() == stored
    assert plan.sha256 == (GOLDEN / f"{name}.sha256").read_text().strip()


@pytest.mark.parametrize("name", ALL)
def test_reading_a_plan_fits_nothing(plans, name, monkeypatch):
    from tidegauge.mechanisms import candidates, design
    from tidegauge.strategies import blt

    stored = plans[name].canonical()
    monkeypatch.setattr(blt, "fit", None)
    monkeypatch.setattr(candidates, "fit", None)
    monkeypatch.setattr(design, "design", None)
    assert plan_from_bytes(stored) == plans[name]


def test_a_plan_file_holds_the_plan_and_nothing_else(plans):
    plan = plans["flights"]
    data = json.loads(plan.canonical())
    assert plan_from_bytes(json.dumps(data, indent=3).encode()) == plan
    with pytest.raises(InvalidParameter):
        plan_from_bytes(canonical_bytes(data | {"settings": {"store": "elsewhere"}}))


# --- what belongs to a plan


def test_the_hash_covers_everything_and_the_fingerprint_all_but_what_is_published(plans):
    plan = plans["flights"]
    gauge = plan.gauges[0]
    views = gauge.views[:1]
    fewer = dataclasses.replace(
        plan,
        gauges=(
            dataclasses.replace(
                gauge,
                views=views,
                every=(),
                mechanism=dataclasses.replace(gauge.mechanism, views=views),
            ),
        ),
    )
    other = dataclasses.replace(plan, about=(("title", "Other"),))
    for changed in (fewer, other):
        assert changed.sha256 != plan.sha256
        assert changed.fingerprint == plan.fingerprint
        assert changed.declaration == plan.declaration
    for changed in (
        dataclasses.replace(plan, clock=dataclasses.replace(plan.clock, start_us=0)),
        dataclasses.replace(plan, time=dataclasses.replace(plan.time, timezone="UTC")),
        dataclasses.replace(plan, gauges=(dataclasses.replace(gauge, where=None),)),
        dataclasses.replace(plan, gauges=(dataclasses.replace(gauge, other=None),)),
        dataclasses.replace(plan, gauges=(dataclasses.replace(gauge, name="x"),)),
    ):
        assert len({changed.sha256, plan.sha256}) == 2
        assert changed.fingerprint != plan.fingerprint
        assert changed.declaration != plan.declaration


def test_a_view_thought_of_later_is_read_with_the_accepted_numbers(plans, planned):
    plan = plans["flights"]
    later = planned(FLIGHTS.replace("[step, running,", "[14d, {window: 2d, every: 2d}, running,"))
    assert later.gauges[0].mechanism.strategy != plan.gauges[0].mechanism.strategy
    assert later.declaration == plan.declaration
    read = plan.reading(later)
    verify_plan(read)
    assert read.fingerprint == plan.fingerprint
    assert read.gauges[0].views == later.gauges[0].views
    assert read.gauges[0].every == later.gauges[0].every
    assert read.gauges[0].mechanism.law == plan.gauges[0].mechanism.law
    assert plan_from_bytes(read.canonical()) == read


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("epsilon: 1.0", "epsilon: 1.1"),
        ("UA, B6", "B6, UA"),
        ("other: other", "other: drop"),
        ("step: 1h", "step: 30m"),
        ("budget_weight: 1", "max_per_step: 99"),
        ("end: 2014", "end: 2015"),
        ("unit: event", "unit: {id: tailnum, max_contributions: 2, per: lifetime}"),
    ],
)
def test_a_plan_that_declares_something_else_is_not_read_as_this_one(plans, planned, old, new):
    with pytest.raises(InvalidParameter, match="second release"):
        plans["flights"].reading(planned(FLIGHTS.replace(old, new)))


def test_the_noise_of_an_important_view_is_less_and_that_of_others_more(planned):
    plain = planned(FLIGHTS).gauges[0].mechanism
    same = planned(FLIGHTS.replace(" 7d,", " {window: 7d, importance: 1},")).gauges[0].mechanism
    leaning = planned(FLIGHTS.replace(" 7d,", " {window: 7d, importance: 1.1},"))
    assert same == plain
    moved = leaning.gauges[0].mechanism
    steps = np.array([1, 168, 8760])
    for name, less in (("window_7d", True), ("step", False), ("running", False)):
        before, after = (max(made.noise_std(name, steps)) for made in (plain, moved))
        assert bool(after < before) is less, name
    assert moved.cost == plain.cost
    assert planned(FLIGHTS).declaration == leaning.declaration
    assert planned(FLIGHTS).fingerprint != leaning.fingerprint


def test_a_view_thought_of_later_has_no_importance():
    from tidegauge.planning.viewing import view_of

    assert view_of("{view: running, every: 1d}", 3_600_000_000).every == 24
    with pytest.raises(InvalidParameter, match="without importance"):
        view_of("{window: 7d, importance: 2}", 3_600_000_000)


# --- nothing is believed


def numbers(value, path=()):
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from numbers(inner, (*path, key))
    elif isinstance(value, list):
        for i, inner in enumerate(value):
            yield from numbers(inner, (*path, i))
    elif isinstance(value, bool) or value is None:
        return
    elif isinstance(value, int):
        yield path, value
    elif isinstance(value, str) and re.fullmatch("-?[0-9]+/[0-9]+", value):
        yield path, Fraction(value)


def changed(data, path, value):
    copy = json.loads(json.dumps(data))
    place = copy
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = fraction_text(value) if isinstance(value, Fraction) else value
    return canonical_bytes(copy)


@pytest.mark.parametrize("name", ["flights", "baskets", "records"])
def test_no_single_changed_number_is_read_as_a_weaker_promise(plans, name):
    from tidegauge.strategies.strategy import Norm

    data = json.loads(plans[name].canonical())
    for path, value in numbers(data):
        for other in (value * 2, value + 1, -value):
            if other == value:
                continue
            try:
                plan = plan_from_bytes(changed(data, path, other))
            except (InvalidParameter, BudgetExceeded):
                continue
            assert plan.charged().left >= 0
            assert plan.sha256 != plans[name].sha256
            for gauge in plan.gauges:
                mechanism, cost = gauge.mechanism, gauge.mechanism.cost
                norm = Norm.L2 if isinstance(cost, GaussianCost) else Norm.L1
                amount = cost.mu if norm is Norm.L2 else cost.epsilon
                needed = mechanism.strategy.sensitivity(
                    norm, plan.neighbors(gauge.low, gauge.high, len(gauge.cells))
                )
                assert mechanism.law.scale * amount >= needed, path


def test_without_the_check_a_weaker_plan_would_be_read(plans, monkeypatch):
    from tidegauge.mechanisms import restoring
    from tidegauge.planning import verified

    data = json.loads(plans["flights"].canonical())
    path = ("gauges", 0, "mechanism", "law", "scale")
    weaker = changed(data, path, plans["flights"].gauges[0].mechanism.law.scale / 2)
    with pytest.raises(InvalidParameter, match="noise scale"):
        plan_from_bytes(weaker)
    for module in (restoring, verified):
        monkeypatch.setattr(module, "verify_gauge", lambda plan: None)
    assert plan_from_bytes(weaker).gauges[0].mechanism.law.scale < (
        plans["flights"].gauges[0].mechanism.law.scale
    )


def edited(plan, edit):
    data = json.loads(plan.canonical())
    edit(data)
    return canonical_bytes(data)


EDITS = {
    "another version": (lambda d: d.update(tidegauge_plan=2), "version 2"),
    "another strategy": (
        lambda d: d["gauges"][0]["mechanism"]["strategy"].update({"is": "Magic"}),
        "Magic",
    ),
    "a field more": (lambda d: d.update(extra=1), "known fields only"),
    "a field less": (lambda d: d.pop("unit"), "'unit'"),
    "no gauge": (lambda d: d.update(gauges=[]), "gauges, each once"),
    "a gauge twice": (lambda d: d.update(gauges=d["gauges"] * 2), "gauges, each once"),
    "a cell more": (lambda d: d["gauges"][0]["by"][0][1].append("XX"), "range and cells"),
    "a cell twice": (lambda d: d["gauges"][0]["by"][0][1].append("UA"), "each once"),
    "a value that is other": (lambda d: d["gauges"][0].update(other="UA"), "each once"),
    "another unit": (
        lambda d: d.update(unit={"id": "a", "max_contributions": 2, "per": "lifetime"}),
        "for this unit",
    ),
    "another relation": (lambda d: d.update(neighboring_relation="replace_one"), "for this unit"),
    "another end": (lambda d: d["clock"].update(end=9), "steps and views"),
    "other views": (lambda d: d["gauges"][0]["views"].pop(), "steps and views"),
    "a larger event": (lambda d: d["gauges"][0].update(high=2), "count once, in one cell"),
    "a wild predicate": (lambda d: d["gauges"][0].update(where="sum(x) > 1"), "aggregate"),
    "a plain predicate": (lambda d: d["gauges"][0].update(where="x > 1"), "canonical form"),
    "no time": (lambda d: d.update(time=None), "time column"),
    "a wrong time": (lambda d: d["time"].update(format="unix"), "time format"),
    "a column for a count": (lambda d: d["gauges"][0].update(column="x"), "none for a count"),
    "every of no view": (lambda d: d["gauges"][0].update(every={"x": 2}), "known fields only"),
    "every of zero": (lambda d: d["gauges"][0].update(every={"step": 0}), "every"),
    "text as a number": (lambda d: d["clock"].update(start_us="0"), "integer"),
    "a step of zero": (lambda d: d["clock"].update(step_us=0), "step_us"),
    "a start before the calendar": (lambda d: d["clock"].update(start_us=-(2**61)), "start_us"),
    "a start behind the calendar": (lambda d: d["clock"].update(start_us=2**61), "start_us"),
    "no such zone": (lambda d: d["time"].update(timezone="No/Where"), "name of a time zone"),
    "a zone of an epoch": (
        lambda d: d["time"].update(format="epoch_s", timezone="UTC"),
        "iso times alone",
    ),
    "a time column of two lines": (lambda d: d["time"].update(column="a\n- b"), "one line"),
    "a version of two lines": (lambda d: d["versions"].update(tidegauge="1\n2"), "one line"),
    "a version's name of two lines": (lambda d: d["versions"].update({"a\nb": "1"}), "one line"),
    "an empty name in about": (lambda d: d["about"].update({"": "1"}), "one line"),
    "a time column of nothing": (lambda d: d["time"].update(column=""), "one line"),
    "an id of two lines": (
        lambda d: d.update(unit={"id": "a\nb", "max_contributions": 2, "per": "lifetime"}),
        "one line",
    ),
    "a gauge of two lines": (lambda d: d["gauges"][0].update(name="a\n- b"), "a name of letters"),
    "a gauge of no name": (lambda d: d["gauges"][0].update(name=""), "a name of letters"),
    "a by column of a control sign": (
        lambda d: d["gauges"][0]["by"][0].__setitem__(0, "\0"),
        "one line",
    ),
    "a by column of releases": (
        lambda d: d["gauges"][0]["by"][0].__setitem__(0, "value"),
        "no release has",
    ),
    "a value of two lines": (
        lambda d: d["gauges"][0]["by"][0][1].__setitem__(0, "UA\n\n**Nothing is protected**"),
        "one line",
    ),
    "a rest of two lines": (lambda d: d["gauges"][0].update(other="a\nb"), "one line"),
    "a predicate of two lines": (
        lambda d: d["gauges"][0].update(where="(\"x\" = 'a\nb')"),
        "one line",
    ),
    "a mechanism's own cells": (
        lambda d: d["gauges"][0]["mechanism"].update(
            cells=[str(i) for i in range(d["gauges"][0]["mechanism"]["neighbors"]["cells"])]
        ),
        "those of the gauge",
    ),
    "a grain beyond doubles": (
        lambda d: d["gauges"][0].update(round_to=f"{10**400}/1"),
        "fraction",
    ),
}


def first_of(kind):
    """Change the first decay of a kind, in the gauge and in its mechanism."""

    def change(data, **fields):
        for gauge in data["gauges"]:
            for views in (gauge["views"], gauge["mechanism"]["views"]):
                for _, decay in views:
                    if decay["is"] == kind:
                        decay.update(fields)

    return change


@pytest.mark.parametrize(
    ("kind", "fields"),
    [
        ("Exponential", {"factor": f"{10**400}/1"}),
        ("Polynomial", {"c": f"{10**400}/1"}),
        ("Window", {"steps": 10**400}),
    ],
)
def test_numbers_beyond_doubles_are_refused(plans, kind, fields):
    with pytest.raises(InvalidParameter):
        plan_from_bytes(edited(plans["baskets"], lambda d: first_of(kind)(d, **fields)))


def test_noise_of_two_kinds_is_refused_when_a_plan_is_read(planned):
    text = SMALL.replace("epsilon: 1,", "epsilon: 5,")
    short = planned(text.replace("{departures: count}", "{a: {count: , views: [step]}}"))
    long = planned(text.replace("{departures: count}", "{b: {count: , views: [running]}}"))
    assert {PureCost, GaussianCost} == {type(p.gauges[0].mechanism.cost) for p in (short, long)}
    data = json.loads(long.canonical())
    data["gauges"] += json.loads(short.canonical())["gauges"]
    with pytest.raises((InvalidParameter, BudgetExceeded), match="one kind of noise"):
        plan_from_bytes(canonical_bytes(data))


@pytest.mark.parametrize(("edit", "message"), EDITS.values(), ids=EDITS)
def test_an_edited_plan_is_refused(plans, edit, message):
    with pytest.raises(InvalidParameter, match=message):
        plan_from_bytes(edited(plans["flights"], edit))


def test_gauges_that_exceed_the_guarantee_together_are_refused(plans):
    def twice(data):
        first = data["gauges"][1]
        data["gauges"].append({**first, "name": "again"})

    with pytest.raises(BudgetExceeded):
        plan_from_bytes(edited(plans["baskets"], twice))


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{",
        b"[]",
        b"1",
        b"null",
        b"\xff",
        b'{"a": 1.5}',
        b'{"a": NaN}',
        b'{"a": 1, "a": 1}',
        b"[" * 100_000,
        b'{"tidegauge_plan": ' + b"9" * 5000 + b"}",
    ],
)
def test_what_is_no_plan_is_refused(data):
    with pytest.raises(InvalidParameter, match="Expected a plan"):
        plan_from_bytes(data)


def test_there_is_no_gauge_of_another_name(plans):
    with pytest.raises(InvalidParameter, match="Expected the name of a gauge"):
        plans["flights"].gauge("arrivals")


def test_reprs_hold_no_more_than_the_plan(plans):
    assert "RECORDS" not in repr(plans["records"])
    assert RECORDS not in repr(plans["records"])
