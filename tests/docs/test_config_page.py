"""The page of the config has every field, its example runs, and a stranger checks the ledger."""

import json
import re
from pathlib import Path

import pytest
from terminals import in_process as tidegauge
from visits import rows_of_visits

from tidegauge.planning.schema import config_schema

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGE = (DOCS / "config.md").read_text()
SECTIONS = {
    "ConfigForm": "The file", "CsvForm": "csv", "PrivacyForm": "privacy", "IdForm": "privacy.unit",
    "GaugeForm": "gauges", "CountForm": "gauges: count", "SumForm": "gauges: sum",
    "MeanForm": "gauges: mean", "ClipForm": "gauges: clip", "AutoForm": "gauges: clip: auto",
    "PerrierForm": "gauges: clip: perrier",
    "DistinctForm": "gauges: count_distinct", "TopForm": "gauges: top_k",
    "FileForm": "gauges: by", "DiscoverForm": "gauges: discover",
    "ViewForm": "gauges: views", "AboutForm": "about",
    "SinkForm": "sinks", "SinkFileForm": "sinks: file",
}  # fmt: skip


def documented():
    """Section and fields of its table."""
    parts = re.split(r"^## (.+)\n", PAGE, flags=re.M)[1:]
    fields = (re.findall(r"^\| `(\w+)` \|", text, re.M) for text in parts[1::2])
    return dict(zip(parts[::2], fields, strict=True))


def test_every_field_of_the_schema_stands_on_the_page_and_no_other():
    schema = config_schema()
    forms = {**schema["$defs"], "ConfigForm": schema}
    expected = {SECTIONS[name]: sorted(form["properties"]) for name, form in forms.items()}
    assert expected == {name: sorted(fields) for name, fields in documented().items()}


@pytest.fixture(scope="module")
def published(tmp_path_factory):
    """The folder in which the example of the page was run."""
    folder = tmp_path_factory.mktemp("config")
    (config,) = re.findall(r"```yaml\n(.*?)```", PAGE, re.S)
    (folder / "visits.yaml").write_text(config + "mark: mark/visits\n")  # no home is touched
    rows = [f"{row},c{i % 90},{i % 31}" for i, row in enumerate(rows_of_visits())]
    (folder / "visits.csv").write_text("\n".join(["time,shop,customer,amount", *rows]) + "\n")
    code, _, err = tidegauge("run", "visits.yaml", cwd=folder)
    assert 0 == code, err
    return folder


def test_the_example_of_the_page_runs(published):
    views = {path.name for path in (published / "public" / "releases").glob("*/*")}
    change = "difference_1d_of_window_1d"
    assert {"step", "running", "window_2d", "window_1d_every_1d", change, "recent"} == views
    folder = published / "public" / "releases" / "visits"
    assert all(any((view / "totals").glob("*.parquet")) for view in folder.iterdir())
    assert (published / "all.csv").stat().st_size > 0


def test_a_stranger_recomputes_epsilon_as_the_page_says(published, monkeypatch, capsys):
    monkeypatch.chdir(published)
    (block,) = re.findall(r"```py\n(.*?)```", (DOCS / "recompute.md").read_text(), re.S)
    names = {}
    exec(compile(block, "recompute.md", "exec"), names)
    claimed = json.loads(Path("public/ledger.json").read_text())["epsilon"]
    assert float(claimed) == pytest.approx(names["epsilon"], rel=1e-3)
    assert f"claimed {claimed}" in capsys.readouterr().out
