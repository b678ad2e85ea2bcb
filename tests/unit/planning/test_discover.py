"""Cells that are discovered, before any data: configs, plan files, statements, the ledger."""

import json
import re
from fractions import Fraction
from pathlib import Path
from statistics import NormalDist

import jsonschema
import pytest
from ruamel.yaml import YAML

from tidegauge.engine.documents import documents, spend_of
from tidegauge.errors import BudgetExceeded, InvalidParameter
from tidegauge.mechanisms.discovery import Discover
from tidegauge.planning.config import config_of
from tidegauge.planning.described import described
from tidegauge.planning.planner import plan_of
from tidegauge.planning.problems import ConfigError
from tidegauge.planning.promise import odds
from tidegauge.planning.schema import config_schema
from tidegauge.planning.spending import k_events
from tidegauge.planning.statement import Further, first_page, privacy_data, privacy_text
from tidegauge.planning.verified import plan_from_bytes
from tidegauge.privacy.guarantee import ApproxDP, GaussianDP
from tidegauge.privacy.k_events import k_event_table
from tidegauge.strategies.blt import Comb
from tidegauge.strategies.decay import Running, Window

GOLDEN = Path(__file__).parent / "golden"
CONFIG = """\
sources: [flights.parquet]
event_time: at
step: 1h
start: 2013-01-01T00:00:00Z
end: 2013-02-01T00:00:00Z
privacy: {unit: event, epsilon: 1, delta: 1e-6}
gauges:
  to:
    count:
    by: {dest: discover}
    views: [running, 7d]
    discover: {view: running, delta_share: 0.25, expected_items: 300}
"""
CROSSED = CONFIG.replace("{dest: discover}", "{dest: discover, carrier: [UA, DL]}")
TWO = CONFIG + (
    "  miles: {sum: {column: miles, bounds: [0, 5000]}, by: {dest: discover}, views: [running]}\n"
)


@pytest.fixture
def read(tmp_path):
    def read(text):
        (tmp_path / "c.yaml").write_text(text)
        return config_of(tmp_path / "c.yaml")

    return read


@pytest.fixture
def planned(read):
    return lambda text=CONFIG: plan_of(read(text))


def test_what_is_asked_is_read(read):
    (gauge,) = read(CONFIG).gauges
    assert gauge.discover == Discover(Running(), Fraction(1, 4), 300)
    assert (gauge.by, gauge.other) == ((("dest", ()),), None)
    (gauge,) = read(CROSSED.replace("view: running", "view: 7d")).gauges
    assert gauge.discover.view == Window(168)
    assert (gauge.by, gauge.other) == ((("dest", ()), ("carrier", ("UA", "DL"))), "other")
    (gauge,) = read(re.sub(r" *discover: \{view.*\n", "", CONFIG)).gauges
    assert gauge.discover == Discover(None, Fraction(1, 2), 100_000)


def test_the_schema_takes_what_we_take():
    schema = config_schema()
    form = schema["$defs"]["DiscoverForm"]["properties"]
    assert (0.5, 100_000) == (form["delta_share"]["default"], form["expected_items"]["default"])
    read, moments = YAML(typ="safe").load, {"start": "x", "end": "y"}  # which YAML would read
    for text in (CONFIG, CROSSED, TWO):
        jsonschema.validate({**read(text), **moments}, schema)
    wrong = CONFIG.replace("dest: discover", "dest: discovery")
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**read(wrong), **moments}, schema)


MISTAKES = {
    "pure": (", delta: 1e-6", "", "10:16", "that chance is a delta"),
    "rho": ("epsilon: 1, delta: 1e-6", "rho: 0.1", "10:16", "got rho alone"),
    "mu": ("epsilon: 1, delta: 1e-6", "mu: 0.5", "10:16", "got mu alone"),
    "a share of nothing": ("0.25", "0", "12:44", "between 0 and 1"),
    "a share of all": ("0.25", "1", "12:44", "between 0 and 1"),
    "no items": ("300", "0", "12:66", "from 1 to 2147483648"),
    "items beyond counting": ("300", "3000000000", "12:66", "from 1 to 2147483648"),
    "in brackets": ("dest: discover", "dest: [discover]", "10:16", "without brackets"),
    "among known ones": ("dest: discover", "dest: [JFK, discover]", "10:16", "or quote it"),
    "half an item": ("300", "0.5", "12:66", "whole number"),
    "another view": ("view: running", "view: half_life", "12:22", "duration"),
    "a field beside": ("expected_items", "expected_item", "12:50", "expected_items"),
    "other": ("    count:\n", "    count:\n    other: rest\n", "10:5", "Nothing is left over"),
    "totals": ("    count:\n", "    count:\n    totals: true\n", "10:5", "no totals beside"),
    "no column": ("{dest: discover}", "{dest: [JFK]}", "12:5", "beside a by column"),
    "a column of a measurement": ("{dest:", "{measured:", "10:10", "no measurement has"),
    "different values": ("count:\n", "count_distinct: {column: tail, window: 1d}\n", "10:16",
                         "counts and sums alone"),
    "nearly the word": ("dest: discover", "dest: discovery", "10:16", "or discover"),
}  # fmt: skip


@pytest.mark.parametrize(("old", "new", "place", "message"), MISTAKES.values(), ids=MISTAKES)
def test_each_mistake_has_its_place_and_its_remedy(read, old, new, place, message):
    assert old in CONFIG
    with pytest.raises(ConfigError) as caught:
        read(CONFIG.replace(old, new))
    found = caught.value.problems
    assert any(f"{p.line}:{p.column}" == place and message in p.message for p in found), [
        f"{p.line}:{p.column} {p.message}" for p in found
    ]
    assert all(p.message.startswith("Expected ") for p in found)


def test_quoted_it_is_a_value(read):
    text = re.sub(r" *discover: \{view.*\n", "", CONFIG)
    (gauge,) = read(text.replace("dest: discover", "dest: ['discover']")).gauges
    assert (gauge.by, gauge.discover) == ((("dest", ("discover",)),), None)


def test_running_names_need_an_end(read):
    endless = CONFIG.replace("end: 2013-02-01T00:00:00Z\n", "")
    with pytest.raises(ConfigError) as caught:
        read(endless)
    (problem,) = caught.value.problems
    assert (11, 5) == (problem.line, problem.column)
    assert "Expected a stream with an end" in problem.message
    assert plan_of(read(endless.replace("view: running", "view: 7d"))).delta_for_names == Fraction(
        1, 4000000
    )


@pytest.mark.parametrize("text", [CONFIG, CROSSED, TWO], ids=["one", "crossed", "two"])
def test_a_plan_file_says_it_and_is_read_back(planned, text):
    plan = planned(text)
    again = plan_from_bytes(plan.canonical())
    assert plan == again
    assert plan.canonical() == again.canonical()
    gauge = json.loads(plan.canonical())["gauges"][0]
    assert ["dest", "discover"] == gauge["by"][0]
    assert {"view", "delta_share", "expected_items"} == set(gauge["discover"])


def test_delta_is_split_between_names_and_noise(planned):
    plan = planned(TWO)
    to, miles = (gauge.mechanism.discovery.delta for gauge in plan.gauges)
    assert (Fraction(1, 8 * 10**6), Fraction(1, 4 * 10**6)) == (to, miles)
    assert plan.delta_for_names == to + miles
    assert plan.charged().guarantee == plan.guarantee == ApproxDP(1, Fraction(1, 10**6))


def changed(plan, path, value):
    data = json.loads(plan.canonical())
    inner = data
    for step in path[:-1]:
        inner = inner[step]
    assert path[-1] in inner if isinstance(inner, dict) else True
    inner[path[-1]] = value
    return json.dumps(data).encode()


GAUGE = ("gauges", 0)
FOUND = (*GAUGE, "mechanism", "discovery")


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ((*FOUND, "threshold"), "20/1"),
        ((*FOUND, "delta"), "1/3000000"),
        ((*FOUND, "adaptive"), False),
        ((*FOUND, "expected_items"), 299),
        ((*FOUND, "decay"), {"kind": "Step"}),
        ((*GAUGE, "discover", "delta_share"), "1/2"),
        ((*GAUGE, "discover", "delta_share"), "1/1"),
        ((*GAUGE, "discover", "expected_items"), 0),
        ((*GAUGE, "discover", "view"), None),
        ((*GAUGE, "other"), "rest"),
        ((*GAUGE, "by"), [["dest", ["JFK"]]]),
        ((*GAUGE, "by"), [["dest", []]]),
        ((*GAUGE, "by"), [["measured", "discover"]]),
        ((*GAUGE, "mechanism", "neighbors", "cells"), 7),
    ],
)
def test_a_plan_file_that_was_changed_is_refused(planned, path, value):
    plan = planned()
    if path[-1] == "view":  # what was asked may be left open: then any view that pays may stand
        assert plan_from_bytes(changed(plan, path, value)).fingerprint != plan.fingerprint
        return
    with pytest.raises((InvalidParameter, BudgetExceeded)):
        plan_from_bytes(changed(plan, path, value))


def test_other_views_are_read_later_and_another_discovery_is_another_plan(planned):
    plan = planned()
    more = planned(CONFIG.replace("[running, 7d]", "[running, 7d, 1d]"))
    read = plan.reading(more)
    assert ("running", "window_7d", "window_1d") == tuple(name for name, _ in read.gauges[0].views)
    assert read.fingerprint == plan.fingerprint
    assert read.gauges[0].mechanism.discovery == plan.gauges[0].mechanism.discovery
    for old, new in (("view: running", "view: 7d"), ("0.25", "0.5"), ("300", "301")):
        with pytest.raises(InvalidParameter, match="another"):
            plan.reading(planned(CONFIG.replace(old, new)))


def test_the_statement_says_when_a_name_is_shown_and_how_delta_is_spent(planned):
    text = privacy_text(planned())
    threshold = planned().gauges[0].mechanism.discovery.threshold
    assert f"passes {-(-threshold.numerator // threshold.denominator)}" in text
    assert "A value of dest is named once its noisy count since the start passes" in text
    assert "shown with a chance of at most 2.5e-7" in text
    assert "Of delta = 1e-6: 7.5e-7 for noise; names: to 2.5e-7." in text
    page = first_page(text)
    assert "passes 84; it is published as it is written, and until then nothing of it is" in page
    assert "A value of dest that one person brings in many events can be named." in page
    assert "No value of dest is itself private text" in page
    assert "after reading what was published" in text
    assert "room" in text
    assert "keys of its noise" in text
    assert "values of dest: discovered" in text
    assert "expected items: 300" in text
    window = privacy_text(planned(CONFIG.replace("view: running", "view: 7d")))
    assert "streams fixed in advance" in window
    assert "in 7 days passes" in window
    data = privacy_data(planned())
    assert data["guarantee"]["delta"] == "1e-6"
    assert "named once" in data["gauges"]["to"]


def test_a_plan_of_known_cells_says_nothing_of_names(planned):
    text = privacy_text(planned(CONFIG.replace("discover}", "[JFK]}").split("    discover:")[0]))
    assert "named" not in text
    assert "discovered" not in text


def test_a_window_behind_a_comb_is_not_adaptive(planned):
    plan = planned(CONFIG.replace("view: running", "view: 7d"))
    discovery = plan.gauges[0].mechanism.discovery
    assert not discovery.adaptive
    running = planned().gauges[0].mechanism
    assert running.discovery.adaptive
    assert not isinstance(running.strategy, Comb)


def test_what_is_told_of_a_plan(planned):
    (told,) = described(planned())["gauges"]
    assert told["cells"] is None
    discovery = told["discovery"]
    assert ["dest"] == discovery["columns"]
    assert (2.5e-7, 7.5e-7) == (discovery["delta"], discovery["noise_delta"])
    assert discovery["threshold"] <= float(discovery["named"].split()[-1])


def test_names_add_to_the_odds_and_to_every_delta(planned):
    plan = planned(CONFIG.replace("1e-6", "0.01"))
    mu = plan.spent_on_noise().mu
    normal = NormalDist()
    found = 100 * (normal.cdf(normal.inv_cdf(0.05) + float(mu)) + float(plan.delta_for_names))
    (percent,) = re.findall(r"at most ([\d.]+) times", odds(plan))
    assert found <= float(percent) <= found + 0.11
    rows = k_events(plan)
    noise = k_event_table(plan.spent_on_noise(), Fraction(3, 400), [row.events for row in rows])
    for row, alone in zip(rows, noise, strict=True):
        assert row.epsilon == alone.epsilon
        assert row.delta >= min(1, alone.delta + row.events * plan.delta_for_names) * (1 - 1e-9)


def test_deltas_of_several_units_are_those_of_one_after_the_other():
    """A chain of k worlds: each step moves a probability by at most T(p) = G(p) + d."""
    normal, d, mu = NormalDist(), Fraction(1, 1000), 0.4

    def next_world(p):
        if p >= 1:
            return 1.0
        return min(1.0, normal.cdf(normal.inv_cdf(p) + mu) + float(d))

    for k in (1, 2, 5, 9):
        (row,) = k_event_table(GaussianDP(Fraction(2, 5)), Fraction(1, 100), (k,), d)
        for p in (1e-9, 1e-4, 0.01, 0.2, 0.7):
            reached = p
            for _ in range(k):
                reached = next_world(reached)
            allowed = min(1.0, 2.718281828459045 ** float(row.epsilon) * p + float(row.delta))
            assert reached <= allowed * (1 + 1e-9)


def test_a_further_release_pays_for_names_again(planned):
    plan = planned()
    further = [Further("2026-01-01", 5)]
    spends = [spend_of(plan, "store", 0, "2026-01-01")] * 2
    ledger = json.loads(documents(plan, spends)["ledger.json"])
    assert ("1.25e-6", "5e-7") == (ledger["delta"], ledger["names"])
    assert "(epsilon, delta)" in privacy_text(plan, further)
    assert privacy_data(plan, further)["guarantee"]["delta"] == "1.25e-6"
    one = json.loads(documents(plan, spends[:1])["ledger.json"])
    assert ("1e-6", "2.5e-7", "1") == (one["delta"], one["names"], one["epsilon"])
    assert ["GaussianDpEvent"] == [event["class_name"] for event in one["events"]["events"]]


def test_a_stranger_recomputes_epsilon_at_what_is_left_of_delta(planned):
    accounting = pytest.importorskip("dp_accounting")
    from dp_accounting.pld import PLDAccountant

    plan = planned()
    ledger = json.loads(documents(plan, [spend_of(plan, "s", 0, "2026-01-01")])["ledger.json"])
    (event,) = ledger["events"]["events"]
    accountant = PLDAccountant(accounting.NeighboringRelation[ledger["accountant_relation"]])
    accountant.compose(accounting.dp_event.GaussianDpEvent(event["noise_multiplier"]))
    delta = float(ledger["delta"]) - float(ledger["names"])
    assert accountant.get_epsilon(delta) == pytest.approx(float(ledger["epsilon"]), rel=1e-3)


def test_the_statement_of_a_stored_plan_is_as_it_was_signed():
    """Change the golden files only with a changelog entry."""
    data = (GOLDEN / "discovered.plan.json").read_bytes()
    plan = plan_from_bytes(data)
    assert data == plan.canonical()
    assert plan.sha256 == (GOLDEN / "discovered.sha256").read_text().strip()
    assert privacy_text(plan) == (GOLDEN / "discovered.PRIVACY.md").read_text()
