"""What may stand beside ``top_k``: a count by known cells, of which the largest are published."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from tidegauge.planning import fields, form

__all__ = ["refuse_beside_top"]

_LEAST_MISS = Fraction(1, 10**9)  # of one interval: beyond it tails cannot be told apart


def refuse_beside_top(read: form.GaugeForm, cells: int, refuse: Callable[[str, str], None]) -> None:
    """Note what has no meaning beside ``top_k``.

    Args:
        read: One gauge, with a ``top_k``.
        cells: How many there are.
        refuse: Notes a problem: the field that it is with (empty: the gauge), and the message.
    """
    if not read.by:
        refuse(
            "",
            "Expected by beside top_k, got nothing of it. Cells are what is ranked. Write "
            "by: {shop: [north, south]}.",
        )
    if "other" in read.model_fields_set and read.other != "drop":
        refuse(
            "other",
            "Expected no other beside top_k, got one. The rest is no cell that could be ranked: "
            "it is left out. Remove it.",
        )
    if read.totals:
        refuse(
            "totals",
            "Expected no totals beside top_k, got some. The sum of all cells has no rank. Remove "
            "it, or count in a gauge of its own.",
        )
    for column in sorted(fields.RANKED.intersection(read.by)):
        refuse(
            "by",
            f"Expected a column that no ranked release has, got {column}. Both would stand side by "
            "side under one name. Rename it in the source.",
        )
    if (1 - Fraction(repr(read.level))) / cells < _LEAST_MISS:
        refuse(
            "level",
            "Expected a level that so many cells can have at once, got a larger one. So far out, "
            "double precision cannot tell tails apart. Write 0.95.",
        )
