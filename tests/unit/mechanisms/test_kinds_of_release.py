"""Every release, of whatever it is, has cells, steps, an interval and columns."""

import numpy as np
import pytest

import tidegauge as tg
from tidegauge.errors import InvalidParameter

ASKED = {"views": [tg.Window(3)], "unit": "event", "guarantee": tg.GaussianDP(1)}
NAMES = ["north", "south"]


def clipped(of):
    gauge = tg.ClippedGauge(of, bounds=(-1000, 1000), cells=NAMES, horizon=10, **ASKED)
    values, steps = np.tile([1, -2, 30, 40], 5000), np.repeat(range(10), 2000)
    return gauge.update_many(values, steps, 10, cells=np.tile([0, 1], 10_000))


def released(kind):
    match kind:
        case "counts":
            return tg.Gauge(cells=NAMES, **ASKED).update_many(np.ones((10, 2), int))
        case "means":
            gauge = tg.MeanGauge(bounds=(0, 9), cells=NAMES, **ASKED)
            return gauge.update_many([1, 2, 3], [0, 4, 9], 10, cells=[0, 1, 1])
        case "items":
            asked = ASKED | {"guarantee": tg.ApproxDP(1, 1e-6)}
            return tg.DiscoveryGauge(**asked).update_many([{"north": 9**6, "south": 9**6}] * 10)
        case _:
            return clipped(kind)


@pytest.mark.parametrize("kind", ["counts", "means", "items", "sum", "mean"])
def test_every_release_has_cells_steps_an_interval_and_columns(kind):
    (release,) = released(kind).values()
    assert isinstance(release, tg.Release)
    assert list(range(1, 11)) == release.steps.tolist()
    assert [False, False] + 8 * [True] == release.complete.tolist()
    assert (0.95, "pointwise", 10) == (release.level, release.band, len(release))
    columns = release.columns()
    assert {"step", "cell", "value", "lower", "upper"} <= columns.keys()
    assert {20} == {len(column) for column in columns.values()}
    for place, name in enumerate(NAMES):
        one = release.cell(name)
        assert one.names is None
        assert type(one) is type(release)
        for field in columns.keys() - {"step", "cell"}:
            wanted = getattr(release, field)[:, place]
            assert np.array_equal(wanted, getattr(one, field), equal_nan=True)
        assert (10,) == one.columns()["lower"].shape
    with pytest.raises(InvalidParameter, match="Expected a cell"):
        release.cell("east")
    assert "window_3 from step 1" in str(release)
