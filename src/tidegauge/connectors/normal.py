"""The one form in which columns of a typed source are read, whatever way its bytes are decoded.

Text, categories and bytes become text; date-times become microseconds, in UTC if they carry a zone;
dates, truth values, integers and floats stay. Other types are refused. Dates and date-times outside
the years 1 to 9999 are null: polars cannot write all of them as text. A Parquet file has two ways
of being read (see :mod:`~tidegauge.connectors.parquet`), one bad row decides which, and both end
here: so a row means the same on either. A file that says that its rows are sorted is not believed:
where polars searches a sorted column, one row out of order would change what is found of others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import polars as pl

__all__ = ["normal_type", "normalized", "reads_alike"]

_FIRST_DAY, _LAST_DAY = -719_162, 2_932_896  # 0001-01-01 and 9999-12-31
_DAY_US = 86_400_000_000


def normal_type(kind: pl.DataType) -> pl.DataType | None:
    """Return the type that a column is read as; None: it is refused.

    Examples:
        >>> import polars as pl
        >>> normal_type(pl.Categorical()), normal_type(pl.Datetime("ns", "Europe/Berlin"))
        (String, Datetime(time_unit='us', time_zone='UTC'))
        >>> normal_type(pl.Duration("us")) is None
        True
    """
    import polars as pl

    if isinstance(kind, pl.Datetime):
        return pl.Datetime("us", None if kind.time_zone is None else "UTC")
    if kind in (pl.String, pl.Categorical, pl.Enum, pl.Binary, pl.Null):
        return pl.String()
    kept = (
        pl.Date, pl.Boolean, pl.Float32, pl.Float64,
        pl.Int8, pl.Int16, pl.Int32, pl.Int64, pl.UInt8, pl.UInt16, pl.UInt32, pl.UInt64,
    )  # fmt: skip
    return kind if kind in kept else None


def reads_alike(declared: pl.DataType, plain: pl.DataType) -> bool:
    """Whether a column means the same in both ways: with the writer's types, and without."""
    import polars as pl

    if declared == pl.Null:
        return True
    if isinstance(declared, pl.Datetime):
        return isinstance(plain, pl.Datetime)
    return normal_type(declared) == normal_type(plain)


def normalized(column: pl.Series, declared: pl.DataType) -> pl.Series:
    """Return a column in its normal form.

    Args:
        column: As it was decoded, in either way.
        declared: The writer's type of the column; one that :func:`normal_type` has a form for.
    """
    import polars as pl

    normal = normal_type(declared)
    if declared == pl.Null:
        return pl.Series(column.name, [None] * len(column), dtype=pl.String)
    if any(column.flags.values()):  # taken over from the file
        column = column.gather(pl.int_range(len(column), eager=True))
    if isinstance(normal, pl.Datetime):
        return _microseconds(column).cast(normal)
    if normal == pl.Date:
        return _within(column.to_physical(), _FIRST_DAY, _LAST_DAY).cast(pl.Date)
    if column.dtype == pl.Binary:
        return _text(column)
    return column.cast(pl.String) if normal == pl.String else column


def _microseconds(column: pl.Series) -> pl.Series:
    """Return the ticks of date-times: nanoseconds cut off, other years than 1 to 9999 null."""
    ticks = column.to_physical()
    first, last = _FIRST_DAY * _DAY_US, (_LAST_DAY + 1) * _DAY_US - 1
    match column.dtype.time_unit:  # type: ignore[attr-defined]  # polars gives Datetime no type
        case "ns":
            return ticks // 1000
        case "ms":
            return _within(ticks, first // 1000, last // 1000) * 1000
        case _:
            return _within(ticks, first, last)


def _within(column: pl.Series, first: int, last: int) -> pl.Series:
    """Return integers, null outside a range."""
    fits = (column >= first) & (column <= last)
    return column if fits.all() else column.set(~fits, None)


def _text(column: pl.Series) -> pl.Series:
    """Read bytes as UTF-8; what is none is null."""
    import polars as pl

    try:
        return column.cast(pl.String)
    except pl.exceptions.PolarsError:
        values = [None if value is None else _utf8(value) for value in column.to_list()]
        return pl.Series(column.name, values, dtype=pl.String)


def _utf8(value: bytes) -> str | None:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return None
