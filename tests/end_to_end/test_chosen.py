"""The top k of baskets of any size, from file to release: over two runs, and what is refused."""

import json
import random
from datetime import timedelta

import numpy as np
import polars as pl
import pytest
from terminals import in_process as tidegauge
from visits import START

from tidegauge.engine.public import PublicFolder
from tidegauge.engine.store import Store
from tidegauge.errors import InvalidInput, InvalidParameter
from tidegauge.planning.verified import plan_from_bytes
from tidegauge.strategies.decay import Window

KINDS = [f"kind {number}" for number in range(12)]
CONFIG = f"""\
sources: [baskets.csv]
event_time: time
event: basket
step: 1h
start: 2025-01-06T00:00:00Z
end: 2025-01-10T00:00:00Z
privacy: {{unit: event, rho: 10}}
gauges:
  kinds:
    top_k: {{k: 3, method: sparse_gumb, switches: 4, margin: 20}}
    by: {{kind: {KINDS}}}
    views: [{{view: running, every: 6h}}]
  baskets: count
store: baskets.tidegauge
public: public
mark: baskets.mark
"""


def rows_of_baskets(seed=0, hours=96, of_all=40):
    """Rows of baskets: most have few kinds, some have all; later the last kinds lead."""
    made, rows = random.Random(seed), []
    for basket in range(20 * hours):
        hour = made.randrange(hours)
        moment = START + timedelta(hours=hour, seconds=made.randrange(3000))
        ahead = KINDS[:3] if hour < hours // 4 else KINDS[-3:]
        kinds = KINDS if basket % of_all == 0 else made.choices(KINDS + 6 * ahead, k=3)
        for late, kind in enumerate(kinds):  # rows of one basket may lie in two steps
            stamp = moment + timedelta(seconds=60 * late)
            rows.append((f"{stamp:%Y-%m-%dT%H:%M:%SZ},{basket},{kind}", hour, basket, kind))
    made.shuffle(rows)
    return rows


ROWS = rows_of_baskets()


def write(folder, rows=ROWS, config=CONFIG):
    folder.mkdir(parents=True, exist_ok=True)
    lines = ["time,basket,kind", *(row[0] for row in rows)]
    (folder / "baskets.csv").write_text("\n".join(lines) + "\n")
    (folder / "baskets.yaml").write_text(config)
    return folder


@pytest.fixture(scope="module")
def published(tmp_path_factory):
    shop = write(tmp_path_factory.mktemp("chosen"))
    until = "2025-01-07T12:00:00Z"
    code, _, err = tidegauge("run", "baskets.yaml", "--until", until, cwd=shop)
    assert 0 == code, err
    plan = plan_from_bytes((shop / "public" / "plan.json").read_bytes())
    names = [gauge.name for gauge in plan.gauges]
    with Store(
        shop / "baskets.tidegauge", fingerprint=plan.fingerprint, canonical=plan.canonical(),
        gauges=names,
    ) as store:  # fmt: skip
        before = store.states()["kinds"]["choice"]
    code, out, err = tidegauge("run", "baskets.yaml", cwd=shop)
    assert 0 == code, err
    return shop, out, before


def releases(shop):
    files = sorted((shop / "public" / "releases" / "kinds" / "running_every_6h").glob("*.parquet"))
    return pl.concat([pl.read_parquet(file) for file in files])


def exact(step):
    """The true counts of the kinds at a step, from 1."""
    pairs = {(basket, kind) for _, hour, basket, kind in ROWS if hour < step}
    return {kind: sum(1 for _, one in pairs if one == kind) for kind in KINDS}


def test_the_largest_are_shown_with_their_counts_and_change_with_them(published):
    shop, out, before = published
    table = releases(shop)
    assert [1, 2, 3] * 16 == table["rank"].to_list()
    last = table.filter(pl.col("step") == 96)
    assert set(KINDS[-3:]) == set(last["kind"])
    assert set(KINDS[:3]) == set(table.filter(pl.col("step") == 24)["kind"])
    left = table["switches_left"].to_list()
    assert sorted(left, reverse=True) == left
    assert 0 <= left[-1] < 4
    for row in table.to_dicts():
        assert abs(row["value"] - exact(row["step"])[row["kind"]]) < 5 * row["noise_std"]
    assert "intervals of all shown cells at once" in out
    assert f"{left[-1]} of 4 switches are left" in out
    assert 4 > int(before["used"][0]) >= 0
    assert before["counts"].sum() == sum(exact(36).values())


def test_the_folder_alone_gives_the_same_and_no_other_view(published):
    shop, _, _ = published
    folder = PublicFolder(shop / "public")
    view = folder.view("kinds", "running_every_6h")
    assert releases(shop).equals(view.table().cast(dict(releases(shop).schema)))
    assert 3 * 16 == np.isfinite(view.value).sum()
    assert 3 == len(view.last())
    assert 16 == len(view.largest(1).table())
    assert 96 * 3 == len(folder.view("kinds", "running_every_6h", every=1).table())
    for refused in (lambda: folder.view("kinds", Window(7)), view.total):
        with pytest.raises(InvalidParameter):
            refused()
    code, _, err = tidegauge("export", "public", "--gauge", "kinds", "--view", "1d", cwd=shop)
    assert 0 != code
    assert "nothing is published while it is hidden" in err
    options = ("--gauge", "kinds", "--view", "running_every_6h")
    code, _, err = tidegauge("export", "public", *options, "--totals", cwd=shop)
    assert 2 == code
    assert "none of all" in err
    code, _, err = tidegauge("plot", "public", *options, "-o", "a.svg", cwd=shop)
    assert 0 == code, err


def test_what_is_charged_and_said(published):
    shop, _, _ = published
    ledger = json.loads((shop / "public" / "ledger.json").read_text())
    assert ["baskets", "kinds", "kinds, choices"] == sorted(c["gauge"] for c in ledger["charges"])
    assert "rho" == ledger["currency"]
    said = " ".join((shop / "public" / "PRIVACY.md").read_text().split())
    for part in (
        "3 of 12 cells are shown; they are chosen anew, at most 4 times",
        "At most 12 cells are ever shown",
        "any number of cells; once in each",
        "the noisy threshold of the tests that are on",
        "rho = 10 (zCDP)",
    ):
        assert part in said
    code, out, _ = tidegauge("plan", "baskets.yaml", "--json", cwd=shop)
    assert 0 == code
    found = json.loads(out)["gauges"][0]["choices"]
    assert (3, 4, 20, 12) == tuple(found[name] for name in ("k", "switches", "margin", "ever"))
    assert found["noticed"] > found["margin"]
    code, out, _ = tidegauge("plan", "baskets.yaml", cwd=shop)
    assert "kinds: 3 of 12 cells are shown" in out
    code, out, _ = tidegauge("status", "baskets.tidegauge", cwd=shop)
    assert "kinds, choices" in out


def test_a_changed_measurement_is_refused(published, tmp_path):
    import shutil

    shop, _, _ = published
    copy = tmp_path / "public"
    shutil.copytree(shop / "public", copy)
    path = sorted((copy / "measurements" / "kinds").glob("*.parquet"))[0]
    about, table = pl.read_parquet_metadata(path), pl.read_parquet(path)
    about.pop("ARROW:schema", None)
    for broken in (
        table.with_columns(pl.col("switches") + 1),
        table.with_columns(pl.col("step") + 1),
        table.with_columns(pl.col("cells").arr.reverse()),
        table.drop("measured"),
        table.head(0),
    ):
        broken.write_parquet(path, metadata=about)
        with pytest.raises(InvalidInput, match="cannot be trusted"):
            PublicFolder(copy).view("kinds", "running_every_6h")


def test_an_empty_stream_publishes_as_much_as_any_other(published, tmp_path):
    shop, _, _ = published
    empty = write(tmp_path / "empty", [])
    assert 0 == tidegauge("run", "baskets.yaml", cwd=empty)[0]
    assert releases(shop).select("step", "rank").equals(releases(empty).select("step", "rank"))
    files = sorted(path.name for path in (empty / "public").rglob("*.parquet"))
    assert len(files) == len(list((empty / "public").rglob("*.parquet")))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("k: 3,", "k: 12,", "Expected fewer cells to be shown than the 12"),
        ("k: 3,", "k: 0,", "Expected a whole number from 1"),
        ("switches: 4,", "", "Expected switches beside method"),
        ("switches: 4", "switches: 0", "Expected a whole number from 1"),
        ("margin: 20", "margin: -1", "Expected a whole number from 0"),
        ("method: sparse_gumb, ", "", "Expected switches beside method, got it alone"),
        ("sparse_gumb", "sparse", "sparse_gumb, got 'sparse'"),
        ("event: basket\n", "", "Expected event beside method"),
        ("rho: 10", "mu: 1", "Expected rho, or epsilon and delta"),
        ("rho: 10", "epsilon: 1", "Expected rho, or epsilon and delta"),
        ("views: [{view: running, every: 6h}]", "views: [1d]", "the one view running"),
        ("views: [{view: running, every: 6h}]", "views: [running, 1d]", "the one view running"),
        ("    views:", "    anticipate: [1d]\n    views:", "no anticipate"),
        ("    views:", "    max_items: 5\n    views:", "Expected no max_items beside method"),
        ("    views:", "    totals: true\n    views:", "Expected no totals beside top_k"),
        ("by: {kind:", "by: {switches_left:", "no ranked release has"),
    ],
)
def test_mistakes_are_told_with_their_remedy(tmp_path, old, new, message):
    assert old in CONFIG
    shop = write(tmp_path, [], CONFIG.replace(old, new))
    code, _, err = tidegauge("plan", "baskets.yaml", cwd=shop)
    assert 0 != code
    assert message in " ".join(err.split())


def test_no_margin_needs_an_end(tmp_path):
    config = CONFIG.replace(", margin: 20", "").replace("end: 2025-01-10T00:00:00Z\n", "")
    code, _, err = tidegauge("plan", "baskets.yaml", cwd=write(tmp_path, [], config))
    assert 0 != code
    assert "Expected end, or a margin" in " ".join(err.split())


def test_a_plan_file_that_was_changed_is_refused(published):
    shop, _, _ = published
    text = (shop / "public" / "plan.json").read_text()
    for old, new in (
        ('"select":{"k":3,"margin":20,"switches":4}', '"select":{"k":3,"margin":20,"switches":3}'),
        ('"select":{"k":3,"margin":20,"switches":4},', ""),
        ('"top":3,', '"top":2,'),
        ('"max_items":12', '"max_items":3'),
    ):
        assert old in text, old
        with pytest.raises(InvalidParameter):
            plan_from_bytes(text.replace(old, new).encode())
