"""Pictures: what they contain, read back from the saved file."""

import builtins
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from xml.etree import ElementTree

import numpy as np
import pytest

from tidegauge.errors import InvalidParameter, MissingExtra
from tidegauge.plots import OKABE_ITO, Panel, noise_figure, releases_figure

WORDS = {
    "title": "Departures in the last 7 days",
    "value_label": "departures in 7 days",
    "time_label": "end of the 7 days (UTC)",
    "level": 0.95,
    "caption": "Whatever else a reader knows, the odds change by at most a factor of 2.72.",
}


def panels_of(cells, steps):
    value = np.linspace(-5, 100, steps)
    return [Panel(cell, value + i, value + i - 3, value + i + 3) for i, cell in enumerate(cells)]


def hours(steps):
    return [datetime(2013, 1, 1, 5, tzinfo=UTC) + timedelta(hours=i) for i in range(steps)]


def drawn(path):
    """All elements of an SVG and all its words (matplotlib writes them as comments)."""
    text = path.read_text()
    words = {part.split("-->")[0].strip() for part in text.split("<!--")[1:]}
    return list(ElementTree.fromstring(text).iter()), words


def test_a_picture_says_what_it_shows_where_its_units_are_and_what_is_promised(tmp_path):
    path = tmp_path / "releases.svg"
    releases_figure(hours(200), panels_of(["UA", "B6", "other"], 200), path=path, **WORDS)
    elements, words = drawn(path)
    written = {WORDS[name] for name in ("title", "value_label", "caption")}
    assert {"UA", "B6", "other", *written} <= words
    assert "end of the 7 days (UTC), 2013-01-01 to 2013-01-09" in words
    assert "Line: published value. Band: 95 % interval of the noise." in words
    ids = [element.get("id", "") for element in elements]
    assert sum(name.startswith("FillBetween") for name in ids) == 3  # one band a panel
    assert sum(name.startswith("axes") for name in ids) == 3


def test_the_key_has_the_level_of_the_intervals_and_warns_of_scales_that_differ(tmp_path):
    def words_of(cells, **change):
        path = tmp_path / "x.svg"
        releases_figure([1, 2, 3], panels_of(cells, 3), path=path, **(WORDS | change))
        return drawn(path)[1]

    key = "Line: published value. Band: 99.5 % interval of the noise."
    apart = "Scales differ and do not start at 0."
    assert f"{key} {apart}" in words_of(["a", "b"], level=0.995, share_y=False)
    assert key in words_of(["a", "b"], level=0.995)
    assert key in words_of(["a"], level=0.995, share_y=False)
    assert "end of the 7 days (UTC)" in words_of(["a"])  # step numbers are no days


@pytest.mark.parametrize("steps", [10, 400, 8760])
def test_the_year_is_in_every_picture_of_dates_and_never_that_of_the_last_tick_alone(
    tmp_path, steps
):
    path = tmp_path / "x.svg"
    times = hours(steps)
    releases_figure(times, panels_of(["a"], steps), path=path, **WORDS)
    days = [f"{times[0]:%Y-%m-%d}", f"{times[-1]:%Y-%m-%d}"]
    shown = f"{WORDS['time_label']}, {' to '.join(dict.fromkeys(days))}"
    _, words = drawn(path)
    assert shown in words
    assert not {word for word in words if word.startswith(("2013-", "2014-"))}


def test_the_same_releases_give_the_same_file(tmp_path):
    for name in ("a.svg", "b.svg"):
        releases_figure([1, 2, 3], panels_of(["one"], 3), path=tmp_path / name, **WORDS)
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()


@pytest.mark.parametrize(("cells", "columns"), [(1, 2), (2, 2), (7, 2), (7, 3), (5, 9)])
@pytest.mark.parametrize("share_y", [True, False])
def test_panels_stay_inside_the_picture_and_apart(tmp_path, cells, columns, share_y, monkeypatch):
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figures = []
    save = Figure.savefig
    monkeypatch.setattr(
        Figure, "savefig", lambda self, *a, **k: (figures.append(self), save(self, *a, **k))
    )
    releases_figure(
        hours(50), panels_of([str(i) for i in range(cells)], 50), path=tmp_path / "x.png",
        columns=columns, share_y=share_y, **WORDS,
    )  # fmt: skip
    (figure,) = figures
    renderer = FigureCanvasAgg(figure).get_renderer()
    boxes = [axes.get_tightbbox(renderer) for axes in figure.axes]
    boxes += [text.get_window_extent(renderer) for text in figure.texts]
    width, height = figure.bbox.size
    for i, box in enumerate(boxes):
        assert -1 <= box.x0 < box.x1 <= width + 1
        assert -1 <= box.y0 < box.y1 <= height + 1
        for other in boxes[:i]:
            inside_x = min(box.x1, other.x1) - max(box.x0, other.x0)
            inside_y = min(box.y1, other.y1) - max(box.y0, other.y0)
            assert min(inside_x, inside_y) <= 1, "two texts or panels overlap"


@pytest.mark.parametrize(
    "label",
    [
        "UA, count since the start",
        "UA, number of different values of tailnum in 7 days",
        "a value without any end at all, " * 5,
        "x" * 200,
    ],
)
@pytest.mark.parametrize("columns", [2, 3])
def test_a_label_is_no_wider_than_its_panel_and_keeps_clear_of_the_others(
    tmp_path, monkeypatch, label, columns
):
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figures = []
    monkeypatch.setattr(Figure, "savefig", lambda self, *_, **__: figures.append(self))
    panels = [replace(panel, label=label) for panel in panels_of("abcdef", 50)]
    path = tmp_path / "x.png"
    releases_figure(hours(50), panels, path=path, columns=columns, share_y=False, **WORDS)
    (figure,) = figures
    renderer = FigureCanvasAgg(figure).get_renderer()
    for axes in figure.axes:
        title, panel = axes._left_title.get_window_extent(renderer), axes.bbox
        assert panel.x0 - 1 <= title.x0 < title.x1 <= panel.x1 + 0.02 * panel.width
        for other in figure.axes:
            assert not (title.overlaps(other.bbox) and other is not axes)


def test_readings_that_leave_something_out_are_dots(tmp_path):
    (one,) = panels_of("a", 50)
    for joined, bands in ((True, 1), (False, 0)):
        path = tmp_path / f"{joined}.svg"
        releases_figure(hours(50), [replace(one, joined=joined)], path=path, **WORDS)
        elements, words = drawn(path)
        ids = [element.get("id", "") for element in elements]
        assert bands == sum(name.startswith("FillBetween") for name in ids)
        told = any("Dots: what lies between two of them is in neither." in word for word in words)
        assert told is not joined


def test_a_png_is_twice_800_pixels_wide(tmp_path):
    path = tmp_path / "releases.png"
    releases_figure([1, 2], panels_of(["one"], 2), path=path, **WORDS)
    header = path.read_bytes()[:24]
    assert header[:8] == b"\x89PNG\r\n\x1a\n"
    assert int.from_bytes(header[16:20]) == 1600


def test_bands_and_lines_have_the_heights_of_the_releases(tmp_path, monkeypatch):
    from matplotlib.axes import Axes

    seen = {}
    for name in ("fill_between", "plot"):
        real = getattr(Axes, name)

        def spy(self, *a, real=real, name=name, **k):
            seen[name] = (a, k["color"])
            return real(self, *a, **k)

        monkeypatch.setattr(Axes, name, spy)
    panel = Panel("one", [1, np.nan, 3], [0, np.nan, 2], [2, np.nan, 4.5], colour=1)
    releases_figure([1, 2, 3], [panel], path=tmp_path / "x.svg", **WORDS)
    (_, lower, upper), colour = seen["fill_between"]
    assert (OKABE_ITO[1], OKABE_ITO[1]) == (colour, seen["plot"][1])
    np.testing.assert_array_equal([0, np.nan, 2], lower)
    np.testing.assert_array_equal([2, np.nan, 4.5], upper)
    np.testing.assert_array_equal([1, np.nan, 3], seen["plot"][0][1])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"panels": []}, "at least one panel"),
        ({"path": "picture.gif"}, r"\.png or \.svg"),
        ({"path": "picture"}, r"\.png or \.svg"),
        ({"columns": 0}, "columns"),
        ({"level": 95}, "level"),
        ({"level": float("nan")}, "level"),
        ({"panels": [Panel("one", [1, 2], [0, 1], [2, 3])]}, "value of panel 'one'"),
        ({"panels": [Panel("one", [1, 2, 3], [0], [2, 3, 4])]}, "lower of panel 'one'"),
        ({"panels": [Panel("one", [1, 2, 3], [0, 1, 2], 3.0)]}, "upper of panel 'one'"),
    ],
)
def test_what_cannot_be_drawn_is_refused_and_nothing_is_written(tmp_path, change, message):
    call = {**WORDS, "panels": panels_of(["one"], 3), "path": "picture.png"} | change
    call["path"] = tmp_path / call["path"]
    with pytest.raises(InvalidParameter, match=message):
        releases_figure([1, 2, 3], call.pop("panels"), **call)
    assert list(tmp_path.iterdir()) == []


def test_without_matplotlib_the_line_to_type_is_given(tmp_path, monkeypatch):
    real = builtins.__import__

    def without(name, *rest):
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(MissingExtra, match=r'pip install "tidegauge\[plots\]"'):
        releases_figure([1, 2], panels_of(["one"], 2), path=tmp_path / "x.png", **WORDS)


def test_a_picture_of_noise_starts_at_zero_and_has_a_line_a_view(tmp_path):
    path = tmp_path / "noise.svg"
    most = np.array([2.0, 3.0, 3.0])
    panels = [Panel("step", most, most - 1, most), Panel("week", most[:2], most[:2] - 1, most[:2])]
    noise_figure(
        [hours(3), hours(2)], panels, path=path, title="Noise", value_label="standard deviation",
        time_label="end of the step (UTC)", caption="GaussianDP(mu=1)",
    )  # fmt: skip
    _, words = drawn(path)
    assert {"step", "week", "Noise", "standard deviation", "GaussianDP(mu=1)", "0"} <= words
    assert "end of the step (UTC), 2013-01-01" in words
    assert any(text.startswith("Line: largest standard deviation of the noise") for text in words)


def test_a_picture_of_noise_refuses_what_does_not_match(tmp_path):
    words = {"title": "", "value_label": "", "time_label": "", "caption": ""}
    panel = Panel("step", [1.0], [1.0], [1.0])
    with pytest.raises(InvalidParameter, match="shape"):
        noise_figure([[1, 2]], [panel], path=tmp_path / "x.svg", **words)
    with pytest.raises(InvalidParameter, match=r"\.png or \.svg"):
        noise_figure([[1]], [panel], path=tmp_path / "x.gif", **words)
