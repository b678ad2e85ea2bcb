"""Measured steps of one gauge whose cells are known, and how the files of a block are called."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tidegauge.strategies.strategy import Int64

__all__ = ["Block", "block_name", "is_block_name"]

_BLOCK = re.compile(r"[0-9]{12}\.parquet")


@dataclass(frozen=True)
class Block:
    """Measured steps of one gauge, as they were committed.

    Attributes:
        first: The first step, from 0.
        steps: How many.
        measured: int64 of shape (rows, cells), in lattice units: public.
    """

    first: int
    steps: int
    measured: Int64

    @cached_property
    def sum(self) -> str:
        """The SHA-256 of the rows as published: little-endian int64, row by row."""
        rows = np.ascontiguousarray(self.measured, "<i8").reshape(-1)
        return hashlib.sha256(rows.data).hexdigest()


def block_name(first: int) -> str:
    """Return the name of a block's files: its first step, counted from 1, in 12 digits.

    Examples:
        >>> block_name(0)
        '000000000001.parquet'
    """
    return f"{first + 1:012d}.parquet"


def is_block_name(name: str) -> bool:
    """Return whether a file is named as a block's files are; others are nobody's steps."""
    return _BLOCK.fullmatch(name) is not None
