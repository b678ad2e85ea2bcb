"""Which files can be a source: told by their names, wherever a source is named."""

from __future__ import annotations

from tidegauge.checks import shown

__all__ = ["KINDS", "kind_of", "unknown_kind"]

KINDS = ("csv", "jsonl", "parquet")
_COMPRESSED = (".gz", ".bz2", ".xz", ".zst")


def kind_of(name: str) -> str | None:
    """Return ``"csv"``, ``"jsonl"`` or ``"parquet"`` by the end of a file's name, else None.

    Examples:
        >>> kind_of("2013/flights.csv.gz"), kind_of("flights.xlsx")
        ('csv', None)
    """
    name = name.lower()
    packed = name.endswith(_COMPRESSED)
    if packed:
        name = name.rpartition(".")[0]
    kind = name.rpartition(".")[2].replace("ndjson", "jsonl")
    known = "." in name and kind in KINDS and not (packed and kind == "parquet")
    return kind if known else None


def unknown_kind(name: str) -> str:
    """Return what to say of a name that :func:`kind_of` does not know."""
    return (
        f"Expected the name of a .csv, .jsonl or .parquet file, got {shown(name)}. How to read "
        "others is unknown. Convert it; .csv and .jsonl may be packed (.gz, .bz2, .xz, .zst)."
    )
