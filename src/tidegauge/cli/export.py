"""``tidegauge export``: any view from the public folder alone, also one thought of now."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from tidegauge.checks import one_line
from tidegauge.cli import completion
from tidegauge.cli.command import command
from tidegauge.cli.terminal import Column, Terminal, plain_table, short_name, shown_text
from tidegauge.cli.views import (
    from_public,
    only_gauge,
    opened_view,
    refuse_output,
    with_force,
    with_intervals,
)
from tidegauge.cli.words import significant

if TYPE_CHECKING:
    import polars as pl

    from tidegauge.engine.public import PublicFolder
    from tidegauge.engine.published_view import PublishedView

__all__ = ["export"]

_FORMATS: Final = ("csv", "jsonl", "parquet", "arrow", "table")
_BY_ENDING: Final = {
    ".csv": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".parquet": "parquet", ".arrow": "arrow",
    ".txt": "table",
}  # fmt: skip
_LATEST: Final = 40  # rows that a terminal is shown unasked
_NONNEGATIVE: Final = "value_nonnegative"


@command(
    "export",
    examples=(
        "tidegauge export public --gauge visits --view running -o running.csv",
        "tidegauge export public --gauge visits --view 14d --format jsonl",
    ),
)
@from_public
@click.option(
    "--view",
    required=True,
    shell_complete=completion.views,
    help="A published view by its name, or any other as a config writes it: 14d, running, "
    '"{half_life: 2d}", "{window: 7d, every: 7d}", "{difference: 7d, of: 7d}".',
)
@click.option(
    "-o", "--output", default="-", type=click.Path(path_type=Path, allow_dash=True),
    help="Where to write; default: standard output.",
)  # fmt: skip
@click.option(
    "--format",
    "form",
    type=click.Choice(_FORMATS),
    help="Default: by the ending; CSV on standard output, or a table of the latest on a terminal.",
)
@click.option("--totals", is_flag=True, help="Add the cell *, the sum of all; or as planned.")
@click.option(
    "--top",
    type=click.IntRange(min=1),
    help="Only the so many largest cells of each step, with their ranks; or as planned.",
)
@with_force
@with_intervals
@click.option(
    "--nonnegative",
    is_flag=True,
    help=f"Add the column {_NONNEGATIVE}: values below 0 as 0, which is not unbiased.",
)
def export(
    terminal: Terminal,
    public: Path,
    gauge: str | None,
    view: str,
    output: Path,
    force: bool,
    form: str | None,
    totals: bool,
    top: int | None,
    level: float | None,
    band: str | None,
    nonnegative: bool,
) -> None:
    """Write a view of a public folder as CSV, JSONL, Parquet, Arrow or a table.

    It needs neither the store nor the data, and costs no privacy. A view that nobody had planned is
    decoded from the measurement; its ratio is told, and what planning for it would have given.

    Cells of a CSV file are text: read them with keep_default_na=False (pandas) or use Parquet. A
    spreadsheet may execute a name that begins with "=".
    """
    from tidegauge.engine.public import PublicFolder

    chosen = form or _by_ending(output)
    if str(output) != "-":
        refuse_output(public, output, force)
    folder = PublicFolder(public)
    opened = opened_view(folder, only_gauge(folder, gauge), view, level, band)
    if totals and not opened.view.gauge.by:
        raise click.UsageError(
            f"Expected --totals for a gauge of cells, got it for {opened.view.gauge.name}, which "
            "has none. There is nothing to add up. Leave it out."
        )
    if top is not None:
        opened = _largest(opened, top, totals)
    table = _table(opened, totals)
    if nonnegative:
        import polars as pl

        more = pl.max_horizontal(pl.col("value"), 0.0).alias(_NONNEGATIVE)
        table = table.select(*table.columns, more)
    if terminal.as_json:
        chosen = "jsonl"
    if not opened.is_planned:
        _tell_ratio(terminal, opened)
    if chosen == "table" and form is None and str(output) == "-" and len(table) > _LATEST:
        terminal.say(f"The last {_LATEST} of {len(table):,} rows; -o FILE.csv writes all.")
        table = table.tail(_LATEST)
    _write(terminal, table, chosen, output, _about(folder, opened))
    if str(output) != "-":
        terminal.say(f"{output}: {len(table):,} releases of {opened.name}, {chosen}")


def _largest(opened: PublishedView, top: int, totals: bool) -> PublishedView:
    """The largest cells of each step alone; the sum of all cells has no rank."""
    from tidegauge.errors import InvalidParameter

    if totals:
        raise click.UsageError(
            "Expected --top or --totals, got both. The sum of all cells has no rank. Leave one out."
        )
    try:
        return opened.largest(top)
    except InvalidParameter as problem:
        raise click.UsageError(str(problem)) from None


def _table(opened: PublishedView, totals: bool) -> pl.DataFrame:
    """The releases, with the sum of all cells if it is asked for or planned."""
    from tidegauge.errors import InvalidParameter

    try:
        return opened.table(totals=totals or None)
    except InvalidParameter as problem:
        raise click.UsageError(str(problem)) from None


def _by_ending(output: Path) -> str:
    if str(output) == "-":
        return "table" if sys.stdout.isatty() else "csv"
    found = _BY_ENDING.get(output.suffix)
    if found is None:
        raise click.UsageError(
            f"Expected --output to end in one of {' '.join(_BY_ENDING)}, got {output.name}. The "
            "format follows from it. Rename it, or give --format."
        )
    return found


def _tell_ratio(terminal: Terminal, opened: PublishedView) -> None:
    """Say how good a view is that was not planned for."""
    gauge = opened.view.gauge
    if gauge.kind == "mean" or gauge.clip is not None:
        what = "means" if gauge.kind == "mean" else "clips that are found"
        terminal.say(
            f"{opened.name} was not planned. No lower bound is known for {what}; the intervals say "
            "how far each may be off."
        )
        return
    widths = opened.half_width
    level = 100 * opened.view.gauge.mechanism.level
    most = (
        f" Its {level:.10g} % intervals are at most ± {significant(widths.max())}."
        if len(widths)
        else ""
    )
    terminal.say(
        f"{opened.name} was not planned.{most} The ratio of its noise to the lower bound of any "
        f"factorization mechanism is {opened.ratio():.2f}; planning for this view alone would have "
        f"given {opened.ratio_if_planned():.2f}."
    )


def _about(folder: PublicFolder, opened: PublishedView) -> dict[str, str]:
    """Metadata of a Parquet file, as in the files that a run publishes."""
    from importlib.metadata import version

    from tidegauge.engine.documents import unit_sentence

    return {
        "fingerprint": folder.plan.fingerprint,
        "unit": unit_sentence(folder.plan),
        "version": version("tidegauge"),
        "level": str(opened.view.gauge.mechanism.level),
        "band": opened.view.gauge.mechanism.band,
        "gauge": opened.view.gauge.name,
        "view": opened.name,
    }


def _write(
    terminal: Terminal, table: pl.DataFrame, form: str, output: Path, about: dict[str, str]
) -> None:
    """Write the table, a file whole or not at all."""
    from tidegauge.engine.files import put_by

    to_terminal = str(output) == "-"
    if form == "table":
        title, columns, texts = _texts(table)
        if to_terminal:
            terminal.table(title, columns, [[*map(short_name, row)] for row in texts])
            return
        lines = "\n".join(plain_table(title, columns, texts)) + "\n"
        put_by(output, lambda part: part.write_text(lines, encoding="utf-8"))
    elif to_terminal:
        drawn = sys.stdout.isatty()  # names may hold anything
        if drawn and form == "csv":
            table = _without_breaks(table)
        held = io.BytesIO()  # polars' own errors do not tell a closed pipe from a full disk
        _into(table, form, held, about)
        data = held.getvalue()
        if form in ("csv", "jsonl") and drawn:
            data = shown_text(data.decode()).encode()
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
    else:
        put_by(output, lambda part: _into(table, form, part, about))


def _without_breaks(table: pl.DataFrame) -> pl.DataFrame:
    """The table with each text in one line: a row of CSV is one row of a terminal."""
    import polars as pl

    return table.with_columns(pl.col(pl.String).map_elements(one_line, return_dtype=pl.String))


def _into(table: pl.DataFrame, form: str, target: Any, about: dict[str, str]) -> None:
    """Write the bytes of one format; times are ISO 8601 in UTC, values have all their digits."""
    from tidegauge.engine.sinks import as_text

    match form:
        case "csv":
            as_text(table).write_csv(target)
        case "jsonl":
            as_text(table).write_ndjson(target)
        case "parquet":
            table.write_parquet(target, metadata=about)
        case _:
            table.write_ipc(target)


def _texts(table: pl.DataFrame) -> tuple[str, list[Column], list[list[str]]]:
    """Title, columns and cells of a table for people."""
    from tidegauge.engine.sinks import as_text

    names = [
        name for name in table.columns if name not in ("gauge", "view", "level", "band", "reason")
    ]
    columns = [Column(name, right=table[name].dtype.is_numeric()) for name in names]
    title = f"{table['gauge'][0]}, {table['view'][0]}" if len(table) else ""
    rows = as_text(table.select(names)).iter_rows()
    return title, columns, [[_text(value) for value in row] for row in rows]


def _text(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:z,.1f}" if isinstance(value, float) else str(value)
