"""The parts of a plan as plain data, and back; what was changed on the way is refused."""

from __future__ import annotations

from datetime import UTC, datetime
from fractions import Fraction
from typing import Any

from tidegauge.checks import integer, shown
from tidegauge.errors import InvalidParameter
from tidegauge.mechanisms.discovery import Discover
from tidegauge.mechanisms.first_values import Threshold
from tidegauge.mechanisms.mean import refuse_without_mean
from tidegauge.mechanisms.plain_data import Reader, fraction_text
from tidegauge.mechanisms.restoring import restore_gauge, views_read
from tidegauge.mechanisms.selection import Select
from tidegauge.mechanisms.stored import plain, read_as
from tidegauge.planning.averages import MOST_REACH
from tidegauge.planning.drawn import threshold_data, threshold_read
from tidegauge.planning.durations import microseconds_of
from tidegauge.planning.fields import (
    AVERAGED,
    CLIPPED,
    DISCOVER,
    MEASURED,
    RANKED,
    RESERVED,
    is_line,
)
from tidegauge.planning.fields import name as folder_name
from tidegauge.planning.fields import zone as known_zone
from tidegauge.planning.parts import (
    ALL_CELLS,
    MOST_CELLS,
    UNKNOWN_CELLS,
    Clip,
    Clock,
    IdUnit,
    Kind,
    PlannedGauge,
    TimeColumn,
    count_cells,
)
from tidegauge.privacy.unit import PrivacyUnit
from tidegauge.strategies.decay import Decay, Running, Window
from tidegauge.strategies.rescaled import refuse_rescaled

__all__ = [
    "changed",
    "clock_of",
    "gauge_data",
    "gauge_of",
    "line",
    "texts_of",
    "time_of",
    "unit_of",
]

_FORMATS = ("iso", "epoch_s", "epoch_ms")
_KINDS: dict[str, Kind] = {
    "count": "count",
    "sum": "sum",
    "mean": "mean",
    "count_distinct": "count_distinct",
}
_LONGEST = 1 << 62
_EARLIEST = microseconds_of(datetime.min.replace(tzinfo=UTC))
_LATEST = microseconds_of(datetime.max.replace(tzinfo=UTC))
_LIFETIME = "lifetime"


def gauge_data(gauge: PlannedGauge) -> dict[str, Any]:
    """Return a gauge as plain data; of totals and sets of cells it speaks only where there are."""
    data: dict[str, Any] = {
        "name": gauge.name,
        "kind": gauge.kind,
        "column": gauge.column,
        "low": gauge.low,
        "high": gauge.high,
        "round_to": fraction_text(gauge.round_to),
        "where": gauge.where,
        "by": [[column, list(values) or DISCOVER] for column, values in gauge.by],
        "other": gauge.other,
        "views": [[name, plain(decay)] for name, decay in gauge.views],
        "every": dict(gauge.every),
        "anticipate": [plain(decay) for decay in gauge.anticipate],
        "budget_weight": fraction_text(gauge.budget_weight),
        "mechanism": gauge.mechanism.stored(),
    }
    if gauge.clip is not None:
        data["clip"] = _clip_data(gauge.clip)
    if gauge.discover is not None:
        data["discover"] = _discover_data(gauge.discover)
    if gauge.totals:
        data["totals"] = True
    if gauge.max_items != 1:
        data["max_items"] = gauge.max_items
    if gauge.top is not None:
        data["top"] = gauge.top
    if gauge.select is not None:
        data["select"] = _select_data(gauge.select)
    return data


def _discover_data(discover: Discover) -> dict[str, Any]:
    return {
        "view": None if discover.view is None else plain(discover.view),
        "delta_share": fraction_text(discover.delta_share),
        "expected_items": discover.expected_items,
    }


def _clip_data(clip: Clip | Threshold) -> dict[str, Any]:
    if isinstance(clip, Threshold):
        return threshold_data(clip)
    return {"share": fraction_text(clip.share), "mechanism": clip.mechanism.stored()}


def _clip_of(reader: Reader, unit: PrivacyUnit) -> Clip | Threshold:
    """Read how a clip is found."""
    if "first" in reader.names:
        return threshold_read(reader, unit)
    found = Clip(reader.fraction("share"), restore_gauge(reader.take("mechanism")))
    reader.done()
    return found


def _discover_of(reader: Reader) -> Discover:
    """Read how cells are discovered."""
    view = reader.take("view")
    decay = None if view is None else read_as(view, Running, Window)
    share, items = reader.fraction("delta_share"), reader.integer("expected_items")
    found = Discover(decay, share, items)
    reader.done()
    return found


def _select_data(select: Select) -> dict[str, Any]:
    return {"k": select.k, "switches": select.switches, "margin": select.margin}


def _select_of(reader: Reader) -> Select:
    """Read how cells are chosen."""
    k, switches = reader.integer("k"), reader.integer("switches")
    select = Select(k, switches, reader.optional_integer("margin"))
    reader.done()
    return select


def clock_of(reader: Reader) -> Clock:
    """Read the clock that was stored."""
    clock = Clock(
        integer("start_us", reader.integer("start_us"), low=_EARLIEST, high=_LATEST),
        reader.optional_integer("step_us"),
        reader.optional_integer("end"),
    )
    reader.done()
    if clock.step_us is not None:
        integer("step_us", clock.step_us, low=1, high=_LONGEST)
    return clock


def time_of(reader: Reader) -> TimeColumn:
    """Read the time column that was stored."""
    column, zone = line(reader.text("column")), reader.optional_text("timezone")
    written = reader.text("format")
    reader.done()
    if zone is not None:
        if written != "iso":
            raise changed("a time zone with iso times alone", "one with an epoch")
        known_zone(zone)
    for known in _FORMATS:
        if written == known:
            return TimeColumn(column, zone, known)  # type: ignore[arg-type]  # one of the literals
    raise changed(f"a time format of {_FORMATS}", shown(written))


def unit_of(reader: Reader) -> IdUnit:
    """Read the id unit that was stored."""
    column = line(reader.text("id"))
    most = integer("max_contributions", reader.integer("max_contributions"), low=1, high=1 << 40)
    per = reader.take("per")
    reader.done()
    if per != _LIFETIME:
        per = integer("per", per, low=1, high=_LONGEST)
    return IdUnit(column, most, per)


def gauge_of(reader: Reader) -> PlannedGauge:
    """Read a gauge that was stored."""
    kind = reader.text("kind")
    if kind not in _KINDS:
        raise changed(f"a gauge of {tuple(_KINDS)}", shown(kind))
    every = Reader(reader.take("every"), "every")
    views = views_read(reader.items("views"))
    names = [name for name, _ in views if name in every.names]
    mechanism = restore_gauge(reader.take("mechanism"))
    gauge = PlannedGauge(
        name=folder_name(reader.text("name")),
        kind=_KINDS[kind],
        column=reader.optional_text("column"),
        low=reader.integer("low"),
        high=reader.integer("high"),
        round_to=reader.fraction("round_to"),
        where=_where(reader.optional_text("where")),
        by=tuple(_by(item) for item in reader.items("by")),
        other=reader.optional_text("other"),
        views=views,
        every=tuple(
            (name, integer("every", every.integer(name), low=1, high=_LONGEST)) for name in names
        ),
        anticipate=_anticipated(reader.items("anticipate")),
        budget_weight=reader.fraction("budget_weight"),
        mechanism=mechanism,
        totals="totals" in reader.names and reader.flag("totals"),
        max_items=reader.integer("max_items") if "max_items" in reader.names else 1,
        top=reader.integer("top") if "top" in reader.names else None,
        discover=_discover_of(Reader(reader.take("discover"), "discover"))
        if "discover" in reader.names
        else None,
        clip=_clip_of(Reader(reader.take("clip"), "clip"), mechanism.neighbors.unit)
        if "clip" in reader.names
        else None,
        select=_select_of(Reader(reader.take("select"), "select"))
        if "select" in reader.names
        else None,
    )
    reader.done()
    every.done()
    _check_gauge(gauge)
    return gauge


def _check_cells(gauge: PlannedGauge) -> None:
    for i, (column, values) in enumerate(gauge.by):
        rest = () if gauge.other is None else (gauge.other,)
        repeated = len(set(values + rest)) < len(values + rest)
        if repeated or column in dict(gauge.by[:i]):
            raise changed("by columns and values, each once", "one twice")
    unknown = [column for column, values in gauge.by if not values]
    if bool(unknown) != (gauge.discover is not None):
        raise changed("columns to discover, and how; or neither", "one alone")
    if unknown and (gauge.kind in ("count_distinct", "mean") or gauge.totals):
        raise changed("counts or sums of discovered cells, without totals", "others")
    if unknown and not MEASURED.isdisjoint(dict(gauge.by)):
        raise changed("by columns that no measurement has", "one that it has")
    if unknown and len(unknown) == len(gauge.by) and gauge.other is not None:
        raise changed("no cell for the rest where nothing is left over", "one")


def _check_gauge(gauge: PlannedGauge) -> None:
    """What a gauge's own fields have to agree on."""
    if (gauge.kind == "count") != (gauge.column is None):
        raise changed("a column for a sum or different values and none for a count", "another")
    if gauge.kind == "count_distinct":
        _check_distinct(gauge)
    elif gauge.kind == "mean":
        _check_mean(gauge)
    _check_contribution(gauge)
    _check_clip(gauge, gauge.clip)
    if gauge.top is not None:
        _check_top(gauge, gauge.top)
    _check_select(gauge)
    if gauge.low > gauge.high or gauge.round_to <= 0 or gauge.budget_weight <= 0:
        raise changed("ordered bounds, and numbers above 0", "others")
    _check_cells(gauge)
    if gauge.totals and (not gauge.by or any(ALL_CELLS in cell for cell in gauge.cells)):
        raise changed("totals over cells that have other names", "no cells, or one named *")
    count_cells(gauge.by, gauge.other)
    texts = [gauge.column, gauge.where, gauge.other]
    texts += [text for pair in gauge.by for text in (pair[0], *filter(None, pair[1]))]
    for text in [*(text for text in texts if text is not None), *(name for name, _ in gauge.views)]:
        line(text)
    if not RESERVED.isdisjoint(dict(gauge.by)):
        raise changed("by columns that no release has", "one that it has")
    if gauge.mechanism.cells is not None or gauge.mechanism.scalar:
        raise changed("a mechanism whose cells are those of the gauge", "one with its own")


def _check_contribution(gauge: PlannedGauge) -> None:
    distinct = gauge.kind == "count_distinct"
    if gauge.kind not in ("sum", "mean") and (gauge.low, gauge.round_to) != (0, Fraction(1)):
        raise changed("a count to go up by whole numbers", "another contribution")
    cells = gauge.number_of_cells or UNKNOWN_CELLS
    if not 1 <= gauge.max_items <= (1 if distinct else cells):
        raise changed("an event to touch no more cells than there are", "more, or none")
    if distinct and gauge.by and gauge.high != 1:
        raise changed("one value of an event where they are counted by cells", "several")


def _check_distinct(gauge: PlannedGauge) -> None:
    more = len(gauge.views) != 1 or gauge.every or gauge.anticipate or gauge.totals
    if more or not isinstance(gauge.views[0][1], Running | Window):
        raise changed("one window of different values", "another view of them")


def _check_clip(gauge: PlannedGauge, clip: Clip | Threshold | None) -> None:
    if clip is None:
        return
    other = gauge.totals or gauge.discover is not None or gauge.max_items != 1
    if gauge.kind not in ("sum", "mean") or other or not gauge.low <= 0 <= gauge.high:
        raise changed("a clip of a sum or a mean around 0", "one of something else")
    if gauge.low >= gauge.high or max(-gauge.low, gauge.high) > MOST_REACH:
        raise changed("values between two bounds", "others")
    if isinstance(clip, Threshold) and gauge.low != 0:
        raise changed("a clip of first values from 0 on", "one of values on both sides")
    share = clip.share if isinstance(clip, Clip) else clip.asked.share
    if not 0 < share < 1 or not CLIPPED.isdisjoint(dict(gauge.by)):
        raise changed("a share, and by columns that no clipped release has", "others")
    for name, decay in gauge.views:
        refuse_rescaled(name, decay)


def _check_mean(gauge: PlannedGauge) -> None:
    if gauge.low >= gauge.high or max(-gauge.low, gauge.high) > MOST_REACH:
        raise changed("values between two bounds", "others")
    if not AVERAGED.isdisjoint(dict(gauge.by)):
        raise changed("by columns that no release of means has", "one that it has")
    for name, decay in gauge.views:
        refuse_without_mean(name, decay)


def _check_top(gauge: PlannedGauge, top: int) -> None:
    whole = gauge.kind != "count" or gauge.totals or gauge.other is not None or not gauge.by
    if whole or not 1 <= top <= MOST_CELLS:
        raise changed("the largest of cells that are counted", "those of another gauge")
    if not RANKED.isdisjoint(dict(gauge.by)):
        raise changed("by columns that no ranked release has", "one that it has")


def _check_select(gauge: PlannedGauge) -> None:
    asked, planned = gauge.select, gauge.mechanism.selection
    if (asked is None) != (planned is None):
        raise changed("a mechanism that chooses cells where it is asked to", "another")
    if asked is None or planned is None:
        return
    margin = planned.margin if asked.margin is None else asked.margin
    if (asked.k, asked.switches, margin) != (planned.k, planned.switches, planned.margin):
        raise changed("cells that are chosen as it was asked for", "others")
    if gauge.top != asked.k or gauge.max_items != len(gauge.cells):
        raise changed("all chosen cells shown, of events in any number of cells", "others")


def line(text: str) -> str:
    """A name that stands in published documents: another line could say what was not signed."""
    if not text.strip() or not is_line(text):
        raise changed("one line of printable text in each name", "another")
    return text


def _where(text: str | None) -> str | None:
    """The predicate, which has to be in the form that was written."""
    if text is not None:
        from tidegauge.planning.where import checked

        if checked(text) != text:
            raise changed("a predicate in canonical form", "another")
    return text


def _by(item: Any) -> tuple[str, tuple[str, ...]]:
    if isinstance(item, list) and len(item) == 2 and isinstance(item[0], str):
        values = item[1]
        if values == DISCOVER:
            return item[0], ()
        if isinstance(values, list) and values and all(isinstance(value, str) for value in values):
            return item[0], tuple(values)
    raise changed("each by column with a list of values", shown(item))


def _anticipated(items: tuple[Any, ...]) -> tuple[Decay, ...]:
    named = [[str(i), item] for i, item in enumerate(items)]
    return tuple(decay for _, decay in views_read(tuple(named))) if named else ()


def texts_of(data: Any, what: str) -> tuple[tuple[str, str], ...]:
    """Read a mapping of texts of one line, sorted by their names."""
    reader = Reader(data, what)
    pairs = tuple((line(name), reader.text(name)) for name in sorted(reader.names))
    reader.done()
    if not all(is_line(text) for _, text in pairs):
        raise changed(f"one line of printable text in each field of {what}", "another")
    return pairs


def changed(expected: str, got: str) -> InvalidParameter:
    """The refusal of a plan whose parts contradict one another."""
    return InvalidParameter(
        f"Expected {expected}, got {got}. The plan was changed after it was written, and would not "
        "keep what it says. Use the plan as it was written."
    )
