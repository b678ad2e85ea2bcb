"""Pictures of releases: each value with its band, in small multiples, the guarantee below.

Needs the extra ``plots``; matplotlib is loaded by the first figure, without its global state.
"""

from __future__ import annotations

import textwrap
import warnings
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

import numpy as np
from numpy.typing import ArrayLike

from tidegauge.checks import one_line, shown
from tidegauge.errors import InvalidParameter, MissingExtra

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["OKABE_ITO", "Panel", "noise_figure", "releases_figure"]

OKABE_ITO = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
"""Colours that stay apart for colour-blind readers (Okabe and Ito 2008)."""

_INK, _FAINT, _GRID = "#222222", "#5f5f5f", "#dddddd"
_WIDTH = 8.0  # inches: 800 pixels at 100 dots an inch, where the smallest text has 12 pixels
_ROW, _LEFT, _RIGHT, _GAP = 1.45, 0.78, 0.22, 0.28
_LINE = 0.17  # inches a line of the caption
_LABEL, _LEAST_LABEL, _SMALL_LABEL = 9.5, 7.5, 6.5  # sizes: of one line, and of two lines
_CAPTION_COLUMNS = 112
_NOISE_KEY = (
    "Line: largest standard deviation of the noise in each part of the stream, known before any "
    "data is read. Band: down to the least. Scales differ."
)


@final
@dataclass(frozen=True)
class Panel:
    """One small picture: a view of a cell.

    Args:
        label: What it shows; written into the panel, in place of a legend.
        value: Published values, shape (steps,); NaN leaves a gap.
        lower: Lower end of the interval, shape (steps,).
        upper: Upper end of the interval, shape (steps,).
        colour: Which of ``OKABE_ITO``; the same for panels that belong together.
        joined: False where what lies between two values is in neither of them, such as one hour a
            day: each is a dot of its own.
    """

    label: str
    value: ArrayLike
    lower: ArrayLike
    upper: ArrayLike
    colour: int = 0
    joined: bool = True


def releases_figure(
    times: Sequence[Any],
    panels: Sequence[Panel],
    *,
    path: str | Path,
    title: str,
    value_label: str,
    time_label: str,
    caption: str,
    level: float,
    band: str = "pointwise",
    columns: int = 2,
    share_y: bool = True,
) -> None:
    """Draw releases with their bands and save the picture.

    Args:
        times: End of each step: datetimes, or step numbers; shape (steps,).
        panels: The small pictures, row by row.
        path: Where to write; ``.png`` (1600 pixels wide) or ``.svg``.
        title: One line above the panels.
        value_label: The quantity and its unit, at the left.
        time_label: What the times mean, with their zone or unit, at the bottom; of datetimes the
            first and last day are added.
        caption: The guarantee in words; it comes after a key to line and band.
        level: Probability of the intervals, such as 0.95.
        band: ``"pointwise"`` or ``"simultaneous"``: what has that probability.
        columns: Panels in a row.
        share_y: Whether all panels have the same scale, so that heights may be compared.

    Raises:
        MissingExtra: matplotlib is not installed.
        InvalidParameter: No panel, arrays that do not match ``times``, a level that is none, or an
            unknown file type.

    Examples:
        >>> releases_figure([1, 2], [Panel("UA", [3, 4], [2, 3], [4])], path="departures.png",
        ...                 title="", value_label="", time_label="", caption="", level=0.95)
        Traceback (most recent call last):
            ...
        tidegauge.errors.InvalidParameter: Expected upper of panel 'UA' to have shape (2,), got
        (1,). Values and times would not match. Give one value for each time.
    """
    target = Path(path)
    _check(times, panels, target, columns, level)
    with _style(), _any_letters():
        every = [times] * len(panels)
        figure = _figure(every, panels, columns, share_y, title, value_label, time_label)
        dots = any(not panel.joined for panel in panels)
        apart = not share_y and len(panels) > 1
        _write_caption(figure, _key(level, band, dots=dots, apart=apart), caption)
        _save(figure, target)


def noise_figure(
    times: Sequence[Sequence[Any]],
    panels: Sequence[Panel],
    *,
    path: str | Path,
    title: str,
    value_label: str,
    time_label: str,
    caption: str,
    columns: int = 2,
) -> None:
    """Draw how much noise views have over their steps and save the picture.

    Args:
        times: For each panel the end of each part of the stream: datetimes, or step numbers.
        panels: For each view the largest std in each part (``value`` and ``upper``) and the least
            (``lower``).
        path: Where to write; ``.png`` (1600 pixels wide) or ``.svg``.
        title: One line above the panels.
        value_label: The quantity, at the left.
        time_label: As for :func:`releases_figure`.
        caption: The guarantee.
        columns: Panels in a row.

    Raises:
        MissingExtra: matplotlib is not installed.
        InvalidParameter: No panel, arrays that do not match their times, or an unknown file type.
    """
    target = Path(path)
    for one, panel in zip(times, panels, strict=True):
        _check(one, [panel], target, columns, 0.5)
    with _style():
        figure = _figure(times, panels, columns, False, title, value_label, time_label)
        for axes in figure.axes:
            axes.set_ylim(bottom=0)
        _write_caption(figure, _NOISE_KEY, caption)
        _save(figure, target)


def _save(figure: Figure, target: Path) -> None:
    metadata = {"Date": None} if target.suffix == ".svg" else None  # the same file every time
    figure.savefig(target, dpi=200, facecolor="white", metadata=metadata)


def _style() -> AbstractContextManager[None]:
    """The settings of all pictures, for a while; a fixed salt gives the same file every time."""
    try:
        from matplotlib import rc_context
    except ImportError as missing:
        raise MissingExtra(
            "Expected matplotlib to be installed, found none. No picture can be drawn. "
            'Run: pip install "tidegauge[plots]"'
        ) from missing
    return rc_context({"font.size": 9.0, "font.family": "DejaVu Sans", "svg.hashsalt": "tidegauge"})


@contextmanager
def _any_letters() -> Iterator[None]:
    """Letters that the font lacks are drawn as boxes, and nobody is told of each."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing")
        yield


def _key(level: float, band: str, *, dots: bool, apart: bool) -> str:
    """What line and band are, and a warning where heights may not be compared."""
    kind = "interval" if band == "pointwise" else f"{band} band"
    key = f"Line: published value. Band: {100 * level:.10g} % {kind} of the noise."
    if dots:
        key += " Dots: what lies between two of them is in neither."
    return f"{key} Scales differ and do not start at 0." if apart else key


def _check(
    times: Sequence[Any], panels: Sequence[Panel], path: Path, columns: int, level: float
) -> None:
    """Refuse what cannot be drawn, before anything is loaded."""
    if not panels:
        raise InvalidParameter(
            "Expected at least one panel, got none. There is nothing to draw. Give one Panel for "
            "each view and cell."
        )
    if columns < 1:
        raise InvalidParameter(
            f"Expected columns >= 1, got columns={shown(columns)}. No panel would have a place. "
            "Leave it out for 2."
        )
    if not 0 < level < 1:
        raise InvalidParameter(
            f"Expected level in (0, 1), got level={shown(level)}. The key would misname the band. "
            "Give the probability of the intervals, such as 0.95."
        )
    if path.suffix not in (".png", ".svg"):
        raise InvalidParameter(
            f"Expected path to end in .png or .svg, got {shown(path.name)}. The type of the "
            "picture follows from it. Rename it."
        )
    for panel in panels:
        for name in ("value", "lower", "upper"):
            shape = np.shape(getattr(panel, name))
            if shape != (len(times),):
                raise InvalidParameter(
                    f"Expected {name} of panel {shown(panel.label)} to have shape "
                    f"({len(times)},), got {shape}. Values and times would not match. Give one "
                    "value for each time."
                )


def _figure(
    times: Sequence[Sequence[Any]],
    panels: Sequence[Panel],
    columns: int,
    share_y: bool,
    title: str,
    value_label: str,
    time_label: str,
) -> Figure:
    """All panels with their axes; room below for the caption is added when that is known."""
    from matplotlib.figure import Figure

    columns = min(columns, len(panels))
    rows = -(-len(panels) // columns)
    top, bottom = 0.6, 0.7
    height = top + rows * _ROW + (rows - 1) * _GAP + bottom
    figure = Figure(figsize=(_WIDTH, height))
    between = _GAP if share_y else 3 * _GAP  # room for the numbers of a scale of its own
    width = (_WIDTH - _LEFT - _RIGHT - (columns - 1) * between) / columns
    step = (_WIDTH - _LEFT - _RIGHT - width) / max(columns - 1, 1)
    first: Axes | None = None
    for i, panel in enumerate(panels):
        row, column = divmod(i, columns)
        left = _LEFT + column * step
        low = height - top - _ROW - row * (_ROW + _GAP)
        place = (left / _WIDTH, low / height, width / _WIDTH, _ROW / height)
        axes = figure.add_axes(place, sharex=first, sharey=first if share_y else None)
        first = first or axes
        lowest = i + columns >= len(panels)
        _draw(axes, times[i], panel, lowest, labelled=column == 0 or not share_y)
    time_label += _scale(figure, panels, times)
    figure.text(
        (_LEFT - 0.6) / _WIDTH, 1 - 0.13 / height, title,
        ha="left", va="top", fontsize=11, fontweight="bold", color=_INK,
    )  # fmt: skip
    middle = bottom / height + (1 - (top + bottom) / height) / 2
    figure.text(0.12 / _WIDTH, middle, value_label, rotation=90, ha="left", va="center", color=_INK)
    figure.text(
        (_LEFT + (_WIDTH - _LEFT - _RIGHT) / 2) / _WIDTH, (bottom - 0.42) / height, time_label,
        ha="center", va="top", color=_INK,
    )  # fmt: skip
    return figure


def _draw(axes: Axes, times: Sequence[Any], panel: Panel, lowest: bool, labelled: bool) -> None:
    """One panel: band, line, label, and no more lines than are needed to read them."""
    colour = OKABE_ITO[panel.colour % len(OKABE_ITO)]
    value, lower, upper = (np.asarray(a, float) for a in (panel.value, panel.lower, panel.upper))
    thin = len(value) > 1000  # so that the band stays in sight beside a crowded line
    if panel.joined:
        axes.fill_between(times, lower, upper, color=colour, alpha=0.32, linewidth=0, zorder=2)
        axes.plot(times, value, color=colour, linewidth=0.45 if thin else 0.9, zorder=3)
    else:
        axes.vlines(times, lower, upper, color=colour, alpha=0.32, linewidth=0.9, zorder=2)
        axes.plot(times, value, color=colour, linestyle="none", marker=".", markersize=2, zorder=3)
    width = 0.95 * axes.get_position().width * _WIDTH  # letters on whole pixels are wider
    label, size = _fitted(one_line(panel.label), width)  # names may hold anything
    axes.set_title(
        label, loc="left", fontsize=size, fontweight="bold", color=colour, pad=3, parse_math=False
    )
    axes.grid(axis="y", color=_GRID, linewidth=0.6, zorder=0)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.spines["bottom"].set_color(_FAINT)
    axes.tick_params(axis="x", color=_FAINT, labelcolor=_INK, labelbottom=lowest, length=3)
    axes.tick_params(axis="y", length=0, labelcolor=_INK, labelleft=labelled)
    axes.margins(x=0.01)


def _cut(line: str, width: float) -> str:
    """The beginning of a line that fits, at size 1, with dots for the rest."""
    while len(line) > 4 and _inches(line) > width:
        line = f"{line.removesuffix('...')[:-1].rstrip()}..."
    return line


def _inches(text: str) -> float:
    """The width of bold letters of size 1."""
    return sum(map(_advance, text)) / 72


@lru_cache(maxsize=4096)
def _advance(letter: str) -> float:
    """How far a bold letter of size 1 moves the pen, in points."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    bold = FontProperties(family="DejaVu Sans", weight="bold", size=100)
    width, _, _ = text_to_path.get_text_width_height_descent(letter, bold, ismath=False)
    return float(width) / 100


def _fitted(label: str, width: float) -> tuple[str, float]:
    """A label and its size, so that it is no wider than its panel, in inches; two lines at most."""
    wide = _inches(label)
    if wide * _LEAST_LABEL <= width:
        return label, min(_LABEL, width / wide if wide else _LABEL)
    words, lines = label.split(" "), [""]
    for word in words:
        longer = f"{lines[-1]} {word}".strip()
        if not lines[-1] or _inches(longer) * _SMALL_LABEL <= width:
            lines[-1] = longer
        else:
            lines.append(word)
    if len(lines) > 2:
        lines = [lines[0], f"{' '.join(lines[1:])} ..."]
    return "\n".join(_cut(line, width / _SMALL_LABEL) for line in lines), _SMALL_LABEL


def _scale(figure: Figure, panels: Sequence[Panel], times: Sequence[Sequence[Any]]) -> str:
    """Ticks at round numbers and short dates, a line at 0 inside a panel; return the days shown."""
    from importlib import import_module

    from matplotlib.ticker import MaxNLocator, StrMethodFormatter

    dates: Any = import_module("matplotlib.dates")  # its classes have no types
    days = ""
    for axes, panel in zip(figure.axes, panels, strict=True):
        axes.yaxis.set_major_locator(MaxNLocator(nbins=4, integer=False))
        axes.yaxis.set_major_formatter(StrMethodFormatter("{x:,.10g}"))
        lower = np.asarray(panel.lower, float)
        if (lower[np.isfinite(lower)] < 0).any():  # a panel may have no complete window yet
            axes.axhline(0, color=_FAINT, linewidth=0.6, zorder=1)
        if isinstance(axes.xaxis.get_major_locator(), dates.AutoDateLocator):
            locator = dates.AutoDateLocator(minticks=3, maxticks=7)
            axes.xaxis.set_major_locator(locator)
            axes.xaxis.set_major_formatter(dates.ConciseDateFormatter(locator, show_offset=False))
            ends = min(one[0] for one in times), max(one[-1] for one in times)
            first, last = (f"{dates.num2date(dates.date2num(end)):%Y-%m-%d}" for end in ends)
            days = f", {first}" if first == last else f", {first} to {last}"
    return days


def _write_caption(figure: Figure, key: str, caption: str) -> None:
    """Write key and guarantee below the panels, in a figure made taller for them."""
    lines = [line for text in (key, caption) for line in textwrap.wrap(text, _CAPTION_COLUMNS)]
    extra = len(lines) * _LINE + 0.1
    width, height = figure.get_size_inches()
    taller = height + extra
    for axes in figure.axes:
        box = axes.get_position()
        axes.set_position(
            (box.x0, (box.y0 * height + extra) / taller, box.width, box.height * height / taller)
        )
    for text in figure.texts:
        x, y = text.get_position()
        text.set_position((x, (y * height + extra) / taller))
    figure.set_size_inches(width, taller)
    figure.text(
        0.18 / width, (extra - 0.02) / taller, "\n".join(lines),
        ha="left", va="top", fontsize=8.6, color=_FAINT, linespacing=1.3,
    )  # fmt: skip
