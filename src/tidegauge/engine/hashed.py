"""Texts as keyed hashes: what the store keeps of ids and of counted values."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tidegauge.errors import InvalidParameter

if TYPE_CHECKING:
    import polars as pl

__all__ = ["Hashed", "checked_key", "id_texts"]

Int64 = NDArray[np.int64]

_FLOAT = r"^[+-]?[0-9]+(?:\.0*|(?:\.[0-9]+[eE]\+?|[eE]\+)[0-9]+)$"  # spells a whole number


def checked_key(key: bytes | None) -> bytes:
    """Return a key that is long enough to hide what is hashed under it.

    Raises:
        InvalidParameter: There is none, or it is too short.
    """
    if key is None or len(key) < 16:
        raise InvalidParameter(
            "Expected unit_key to be at least 16 secret bytes, got fewer. Ids and values are kept "
            "only as hashes under it. Give the store's key."
        )
    return key


def id_texts(ids: pl.Series) -> pl.Series:
    """Return a column of ids as text, null where a row has none.

    Null and empty are none, and so is a whole number spelled as a float: some writers spell an
    integer so once a neighbor is null, and one id would be two.
    """
    import polars as pl

    if ids.dtype.is_float():  # of sources that tell no types; others are refused
        ids = pl.Series(ids.name, [None] * len(ids), dtype=pl.String)
    text = ids if ids.dtype == pl.String else ids.cast(pl.String, strict=False)
    return text.set((text == "") | text.str.contains(_FLOAT), None)


class Hashed:
    """Turns texts into 128-bit BLAKE2b hashes under a key of one purpose.

    Args:
        key: Secret bytes; the same over the life of a store.
        purpose: At most 16 bytes; the hashes of one purpose say nothing to those of another.
    """

    def __init__(self, key: bytes, purpose: bytes) -> None:
        own = hashlib.blake2b(key, digest_size=32, person=purpose).digest()
        self._hash = hashlib.blake2b(digest_size=16, key=own)

    def halves(self, text: pl.Series) -> tuple[Int64, Int64, NDArray[np.bool_]]:
        """Return both halves of the hash of each text, and which rows have one: all but nulls."""
        import polars as pl

        names = text.drop_nulls().unique()
        codes = text.cast(pl.Enum(names)).to_physical().cast(pl.Int64).fill_null(-1).to_numpy()
        digests = b"".join(map(self._digest, names.to_list()))
        halves = np.frombuffer(digests + bytes(16), "<i8").reshape(-1, 2)
        return halves[codes, 0], halves[codes, 1], codes >= 0

    def _digest(self, name: str) -> bytes:
        digest = self._hash.copy()
        digest.update(name.encode())
        return digest.digest()
