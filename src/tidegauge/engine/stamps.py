r"""Time stamps as microseconds since 1970 in UTC, each read from itself alone.

How a stamp is read:

* ISO 8601: ``2013-01-31T05:06:07.123456+01:00``; a blank for the ``T``, ``Z`` or ``UTC``, offsets
  of hours, seconds left out and a date alone are allowed; digits beyond microseconds are cut off.
* A stamp without a zone is local time of the declared time zone, and unreadable if none is
  declared. An hour that happens twice is read as its first occurrence; one that a change of clocks
  skips is unreadable.
* A leap second ``:60`` is the last microsecond of its minute, so that it stays in its hour and day.
* ``epoch_s`` and ``epoch_ms``: decimals; text is cut off at microseconds, floats are rounded to
  them.
* Whatever else is unreadable, and its row is dropped.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import polars as pl

    from tidegauge.planning.plan import TimeColumn

__all__ = ["stamps"]

Int64 = NDArray[np.int64]
Bool = NDArray[np.bool_]

_SECOND = 1_000_000
_DAY = 86_400 * _SECOND
_MOST_DAYS = 1 << 26  # in microseconds they fit int64
_UNITS = {"epoch_s": 1_000_000, "epoch_ms": 1_000}
_MOST_UNITS = 1 << 42  # seconds or milliseconds; a thousand times this in microseconds fits int64
_ZONED = 253_402_214_400 * _SECOND  # in year 9999, the last that zones reach
_BLANKS = " \t"
_ISO = (
    r"^[0-9]{4}-[0-9]{2}-[0-9]{2}"
    r"(?:[Tt ][0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:[.,][0-9]+)?)?"
    r"(?: ?(?:[Zz]|UTC|[+-][0-9]{2}(?::?[0-9]{2})?))?)?$"
)
_FRACTION = r"^:[0-9]{2}[.,]([0-9]{1,6})"
_ZONE = r"([Zz]|UTC|[+-][0-9:]+)$"
_DECIMAL = r"^([+-]?)([0-9]{1,13})(?:\.([0-9]*))?$"
_OFFSET = re.compile(r"([+-])([0-9]{2}):?([0-9]{2})?")
_DAYS = np.array([31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31])


def stamps(column: pl.Series, time: TimeColumn, around: tuple[int, int]) -> tuple[Int64, Bool]:
    """Return microseconds since 1970 in UTC, and which rows have a readable stamp.

    Args:
        column: Text, numbers or a temporal type.
        time: How stamps are written.
        around: First and last microsecond of interest; local times more than two days outside are
            left unread, for no time zone is known so far away.

    Returns:
        int64 of shape (rows,) and Booleans of the same shape.
    """
    import polars as pl

    kind = column.dtype
    if kind == pl.Null:
        return np.zeros(len(column), np.int64), np.zeros(len(column), np.bool_)
    if isinstance(kind, pl.Datetime | pl.Date):
        us, known = _temporal(column)
        if isinstance(kind, pl.Datetime) and kind.time_zone is not None:
            return us, known
        return _localized(us, known, time.timezone, around)
    if time.format != "iso":
        return _epoch(column, _UNITS[time.format])
    if kind != pl.String:
        column = column.cast(pl.String, strict=False)
    names = column.drop_nulls().unique()
    if len(names) * 4 > len(column):
        return _iso(column, time.timezone, around)
    codes = column.cast(pl.Enum(names)).to_physical().fill_null(len(names)).to_numpy()
    us, known = _iso(names, time.timezone, around)
    return np.append(us, 0)[codes], np.append(known, False)[codes]


def _temporal(column: pl.Series) -> tuple[Int64, Bool]:
    """Read dates and date-times of any unit as microseconds of their own clock."""
    import polars as pl

    ticks, known = _integers(column.to_physical().cast(pl.Int64))
    if column.dtype == pl.Date:
        fits = (ticks > -_MOST_DAYS) & (ticks < _MOST_DAYS)
        return np.where(fits, ticks, 0) * _DAY, known & fits
    unit = column.dtype.time_unit  # type: ignore[attr-defined]  # polars gives Datetime no type
    if unit == "us":
        return ticks, known
    if unit == "ns":
        return ticks // 1000, known
    fits = (ticks > -(1 << 52)) & (ticks < (1 << 52))
    return np.where(fits, ticks, 0) * 1000, known & fits


def _localized(
    us: Int64, known: Bool, timezone: str | None, around: tuple[int, int]
) -> tuple[Int64, Bool]:
    """Turn local times of a zone into UTC; without a zone there is none to turn."""
    import polars as pl

    if timezone is None:
        return us, np.zeros_like(known)
    if timezone == "UTC":
        return us, known
    near = known & (us >= around[0] - 2 * _DAY) & (us <= around[1] + 2 * _DAY)
    near &= (us > -_ZONED) & (us < _ZONED)
    local = pl.Series(np.where(near, us, 0)).cast(pl.Datetime("us"))
    utc = local.dt.replace_time_zone(timezone, ambiguous="earliest", non_existent="null")
    exact, there = _integers(utc.to_physical())
    return exact, near & there


def _epoch(column: pl.Series, unit: int) -> tuple[Int64, Bool]:
    """Read seconds or milliseconds since 1970; ``unit`` of them are microseconds."""
    import polars as pl

    kind = column.dtype
    if kind.is_integer() and kind not in (pl.Int128, pl.UInt128):
        whole, known = _integers(column)
        info = np.iinfo(whole.dtype)
        fits = whole <= min(_MOST_UNITS, int(info.max))
        fits &= whole >= max(-_MOST_UNITS, int(info.min))
        whole = np.where(fits, whole, 0).astype(np.int64)
        known = known & fits
        return whole * unit, known
    if kind.is_float():
        values = column.cast(pl.Float64).fill_null(np.nan).to_numpy()
        fits = np.abs(values) <= _MOST_UNITS
        values = np.where(fits, values, 0.0)
        low = np.floor(values)
        return low.astype(np.int64) * unit + np.rint((values - low) * unit).astype(np.int64), fits
    text = column.cast(pl.String, strict=False).str.strip_chars(_BLANKS)
    parts = text.str.extract_groups(_DECIMAL).struct.unnest()
    whole, known = _integers(parts.to_series(1).cast(pl.Int64))
    digits = len(str(unit)) - 1
    fraction = parts.to_series(2).fill_null("").str.slice(0, digits).str.pad_end(digits, "0")
    cut_off = parts.to_series(2).fill_null("").str.slice(digits).str.contains("[1-9]").to_numpy()
    part, _ = _integers(fraction.cast(pl.Int64))
    known &= whole <= _MOST_UNITS
    size = np.where(known, whole, 0) * unit + part
    negative = parts.to_series(0).fill_null("").to_numpy() == "-"
    return np.where(negative, -size - cut_off, size), known


def _iso(column: pl.Series, timezone: str | None, around: tuple[int, int]) -> tuple[Int64, Bool]:
    """Read ISO 8601 text."""
    import polars as pl

    text = column
    shaped = text.str.contains(_ISO).fill_null(False)
    if not shaped.all():
        text = column.str.strip_chars(_BLANKS)
        shaped = text.str.contains(_ISO).fill_null(False)
    known = shaped.to_numpy().copy()
    us = np.zeros(len(column), np.int64)
    if not known.any():
        return us, known
    if not known.all():
        text = text.filter(shaped)
    tail = text.str.slice(16)
    timed = text.str.len_bytes() > 10
    prefix = text.str.slice(0, 19)
    plain = tail.str.starts_with(":") & timed
    if not plain.all():
        minutes = pl.select(
            pl.when(plain)
            .then(prefix)
            .when(timed)
            .then(pl.concat_str(text.str.slice(0, 16), pl.lit(":00")))
            .otherwise(pl.concat_str(text.str.slice(0, 10), pl.lit("T00:00:00")))
        ).to_series()
        prefix = minutes
    written, valid = _calendar(prefix)
    if tail.str.contains_any([".", ","]).any():
        part, _ = _integers(tail.str.extract(_FRACTION).str.pad_end(6, "0").cast(pl.Int64))
        written += np.where(written % (60 * _SECOND) == 60 * _SECOND - 1, 0, part)
    offset, zoned = _offsets(tail)
    written -= offset
    if not zoned.all():
        local, readable = _localized(written, valid & ~zoned, timezone, around)
        written = np.where(zoned, written, local)
        valid = np.where(zoned, valid, readable)
    us[known] = written
    known[known] = valid & (offset != _NO_OFFSET)
    return us, known


_NO_OFFSET = 1 << 40  # microseconds; more than any offset


def _calendar(text: pl.Series) -> tuple[Int64, Bool]:
    """Read ``YYYY-MM-DDTHH:MM:SS`` as microseconds of its own clock, and which are real dates."""
    raw = text.str.join("").item().encode()
    digits = np.frombuffer(raw, np.uint8).reshape(-1, 19).astype(np.int64) - ord("0")

    def pair(at: int) -> Int64:
        result: Int64 = digits[:, at] * 10 + digits[:, at + 1]
        return result

    year = pair(0) * 100 + pair(2)
    month, day, hour, minute, second = (pair(at) for at in (5, 8, 11, 14, 17))
    leap = (year % 4 == 0) & ((year % 100 != 0) | (year % 400 == 0))
    valid = (year > 0) & (month > 0) & (month < 13)
    length = _DAYS[np.where(valid, month, 1) - 1] + (leap & (month == 2))
    valid &= (day > 0) & (day <= length) & (hour < 24) & (minute < 60) & (second <= 60)
    before = year - (month <= 2)  # years from March: the leap day is the last (Hinnant 2013)
    era_year = before % 400
    day_of_year = (153 * (month + np.where(month > 2, -3, 9)) + 2) // 5 + day - 1
    days = before // 400 * 146_097 + era_year * 365 + era_year // 4 - era_year // 100
    days += day_of_year - 719_468
    us = ((days * 24 + hour) * 60 + minute) * 60 * _SECOND + second * _SECOND
    return us - (second == 60), valid


def _offsets(tail: pl.Series) -> tuple[Int64, Bool]:
    """Return the offset from UTC in microseconds, and which stamps have one."""
    import polars as pl

    count = len(tail)
    if tail.str.ends_with("Z").all():
        return np.zeros(count, np.int64), np.ones(count, np.bool_)
    zone = tail.str.extract(_ZONE)
    names = zone.drop_nulls().unique().to_list()
    values = np.array([*map(_offset_of, names), 0], np.int64)
    codes = zone.cast(pl.Enum(names)).to_physical().cast(pl.Int64).fill_null(len(names)).to_numpy()
    return values[codes], zone.is_not_null().to_numpy()


def _offset_of(zone: str) -> int:
    match = _OFFSET.fullmatch(zone)
    if match is None:
        return 0  # Z, z and UTC
    hours, minutes = int(match[2]), int(match[3] or 0)
    if hours > 23 or minutes > 59:
        return _NO_OFFSET
    size = (hours * 60 + minutes) * 60 * _SECOND
    return -size if match[1] == "-" else size


def _integers(column: pl.Series) -> tuple[Int64, Bool]:
    """Return a column of integers as an array, and which rows have a value."""
    if column.null_count():
        known: Any = column.is_not_null().to_numpy()
        column = column.fill_null(0)
    else:
        known = np.ones(len(column), np.bool_)
    return column.to_numpy(), known
