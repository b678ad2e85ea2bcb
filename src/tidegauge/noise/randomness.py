r"""The one door to randomness: 128-bit words as a function of (cell, coordinate, attempt, block).

A word is AES-256 of its number under a key that came from the operating system a moment ago and is
erased when the words are closed. So each draw is a pure function of (key, cell, coordinate,
attempt, block): independent of block sizes, of the order of calls and of the other draws.

    number (128 bits) = cell 64 | coordinate 44 | attempt 16 | block 4

AES is a permutation: distinct numbers under one key never give equal words, which true random words
would with probability about :math:`q^2 / 2^{129}`. A key of its own therefore serves each range of
2^11 cells and 2^18 coordinates: 2^29 pairs, at most 2 blocks an attempt and few retries, so below
2^32 words under one key, a distance below 2^-65.
"""

from __future__ import annotations

import os
import secrets
from abc import ABC, abstractmethod
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NoReturn, final

import numpy as np
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.ciphers import Cipher, CipherContext, algorithms, modes
from cryptography.hazmat.primitives.kdf.hkdf import HKDF, HKDFExpand
from numpy.typing import NDArray

from tidegauge.checks import shown
from tidegauge.compiled import lazy_module
from tidegauge.errors import InvalidParameter, LiveState

if TYPE_CHECKING:
    from tidegauge.noise import _kernels
else:
    _kernels = lazy_module("tidegauge.noise._kernels")

__all__ = ["AesWords", "Context", "Words", "fresh_key", "open_words", "secret", "stored_words"]

Context = str | bytes | int | Fraction
UInt64 = NDArray[np.uint64]

_LABEL = b"tidegauge noise words 1"
_CELL_BITS = 11
_COORDINATE_BITS = 18
_MOST_KEYS = 1024
_WHOLE_NUMBERS = 1 << 60  # beyond every range of cells, which end below 2^53
_forks = 0


def _note_fork() -> None:
    global _forks  # noqa: PLW0603  # the only way to tell a child, whatever its process number
    _forks += 1


if hasattr(os, "register_at_fork"):  # pragma: no branch  # absent where nothing can fork
    os.register_at_fork(after_in_child=_note_fork)


class Words(ABC):
    """A source of 128-bit words, for one thread at a time.

    It is live: it cannot be copied, pickled or carried into a child process.
    """

    @abstractmethod
    def fill(self, inputs: UInt64, outputs: UInt64) -> None:
        """Write the word of each input number.

        Args:
            inputs: Numbers, shape (n, 2): the cell, and coordinate << 20 | attempt << 4 | block.
            outputs: Where the words go, C-contiguous, shape (n + 1, 2); the last row is scratch.

        Raises:
            LiveState: The words were closed, or belong to the process that this one was forked of.
        """

    @abstractmethod
    def close(self) -> None:
        """Erase the key; every later use raises ``LiveState``. Closing twice is harmless."""

    @abstractmethod
    def check_live(self) -> None:
        """Refuse words that were closed or belong to another process, before anything is drawn.

        Raises:
            LiveState: They can draw nothing here.
        """

    @abstractmethod
    def scratch(self, count: int) -> tuple[UInt64, UInt64, NDArray[np.int64]]:
        """Return reused arrays: inputs (count, 2), outputs (count + 1, 2), lanes (count,)."""

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        """Refuse to be copied or pickled: a copy would draw the same noise for other data."""
        raise LiveState(
            "Expected the source of noise to stay where it is, got a copy or a pickle of it. "
            "The copy would draw the same noise again, and the difference of two releases would "
            "show the data. Open a gauge of its own where you need one."
        )


@final
class AesWords(Words):
    """Words under one 256-bit key.

    ``close`` overwrites the key kept here and drops the ciphers, which OpenSSL clears. Copies that
    the interpreter made of the key's bytes on the way cannot be overwritten from Python.

    Args:
        key: 32 secret bytes, used for nothing else.
    """

    def __init__(self, key: bytes | bytearray) -> None:
        self._key = bytearray(key)
        self._ciphers: dict[tuple[int, int], CipherContext] = {}
        self._home = (os.getpid(), _forks)
        self._open = True
        self._inputs = np.empty((0, 2), dtype=np.uint64)
        self._outputs = np.empty((1, 2), dtype=np.uint64)
        self._lanes = np.empty(0, dtype=np.int64)

    def __repr__(self) -> str:
        return f"AesWords({'open' if self._open else 'closed'})"

    def scratch(self, count: int) -> tuple[UInt64, UInt64, NDArray[np.int64]]:
        """Return the arrays, grown when needed: no new pages are touched each call."""
        if len(self._inputs) < count:
            self._inputs = np.empty((count, 2), dtype=np.uint64)
            self._outputs = np.empty((count + 1, 2), dtype=np.uint64)
            self._lanes = np.empty(count, dtype=np.int64)
        if len(self._inputs) == count:
            return self._inputs, self._outputs, self._lanes
        return self._inputs[:count], self._outputs[: count + 1], self._lanes[:count]

    def fill(self, inputs: UInt64, outputs: UInt64) -> None:
        """Encrypt the numbers, each range of cells and coordinates under its own key."""
        self.check_live()
        start, stop = 0, len(inputs)
        while start < stop:
            end = _kernels.same_key_until(inputs, start, _CELL_BITS, _COORDINATE_BITS)
            cell, high = inputs[start].tolist()
            cipher = self._cipher(cell >> _CELL_BITS, high >> (_COORDINATE_BITS + 20))
            source, target = inputs, outputs
            if end - start < len(inputs):
                source, target = inputs[start:end], outputs[start : end + 1]
            cipher.update_into(source.data.cast("B"), target.data.cast("B"))
            start = end

    def encrypt(self, coordinates: int, numbers: UInt64, outputs: UInt64) -> None:
        """Write the words of whole 128-bit numbers under the key of a range of coordinates.

        Args:
            coordinates: The range; its key serves nothing else.
            numbers: Distinct, C-contiguous, shape (n, 2).
            outputs: As in :meth:`fill`.
        """
        self.check_live()
        cipher = self._cipher(_WHOLE_NUMBERS, coordinates)
        cipher.update_into(numbers.data.cast("B"), outputs.data.cast("B"))

    def close(self) -> None:
        """Erase the key and every cipher made from it."""
        self._open = False
        self._key[:] = bytes(len(self._key))
        self._ciphers.clear()
        self._outputs[:] = 0

    def check_live(self) -> None:
        """Refuse closed words, and those of a fork."""
        if not self._open:
            raise LiveState(
                "Expected open words, got closed ones. Their key is erased, and noise drawn "
                "anew for a coordinate would average out. Open a new gauge."
            )
        if self._home != (os.getpid(), _forks):
            raise LiveState(
                "Expected the process that opened this gauge, got a fork of it. Both would draw "
                "the same noise, for different data. Open a gauge in the child."
            )

    def _cipher(self, cells: int, coordinates: int) -> CipherContext:
        """Return the cipher of a range of cells and coordinates."""
        cipher = self._ciphers.get((cells, coordinates))
        if cipher is None:
            if len(self._ciphers) >= _MOST_KEYS:
                self._ciphers.clear()
            info = b"range" + cells.to_bytes(8, "big") + coordinates.to_bytes(8, "big")
            key = HKDFExpand(hashes.SHA256(), 32, info).derive(bytes(self._key))
            # ECB of distinct numbers is the function wanted here; nothing is being encrypted
            cipher = Cipher(algorithms.AES(key), modes.ECB()).encryptor()  # noqa: S305  # see above
            self._ciphers[cells, coordinates] = cipher
        return cipher


def open_words(*context: Context) -> Words:
    """Return words under a key fresh from the operating system.

    The context (gauge, law, exact scale, purpose, ..) enters the key by HKDF-SHA256 (RFC 5869),
    each part with its type and length, so that no two different contexts can share words even if
    the operating system repeated itself.

    Args:
        context: What the words are for: text, bytes, integers or fractions; at least one.

    Raises:
        InvalidParameter: There is no context, or a part has another type.

    Examples:
        >>> words = open_words("departures", "rounded gaussian", Fraction(5, 2))
        >>> words
        AesWords(open)
        >>> words.close()
    """
    return AesWords(derive(fresh_key(), *context))


def fresh_key() -> bytes:
    """Return a key, 32 bytes fresh from the operating system: of an incarnation, to be stored.

    Only :func:`stored_words` makes noise of a stored one. Whoever has it can take the noise off
    again: it is as private as the data.
    """
    return secrets.token_bytes(32)


def stored_words(key: bytes, *context: Context) -> Words:
    """Return words under a stored key: the same for the same key and context, for ever.

    For cells that are not measured before they are known: their noise of earlier steps is drawn
    later, and has to be what it was. The context enters as in :func:`open_words`, so that one key
    gives different gauges, laws, scales and lattices words that have nothing in common.

    Args:
        key: Of :func:`fresh_key`, 32 bytes.
        context: What the words are for; at least one part.

    Raises:
        InvalidParameter: Not a key, or no context.

    Examples:
        >>> key = fresh_key()
        >>> stored_words(key, "visits", 1)
        AesWords(open)
    """
    if not isinstance(key, bytes) or len(key) != 32:
        raise InvalidParameter(
            "Expected the key of an incarnation, 32 bytes, got something else. Noise of it could "
            "be guessed. Use one that fresh_key returned."
        )
    return AesWords(derive(key, *context))


def secret(*context: Context) -> bytes:
    """Return 32 bytes fresh from the operating system, for a purpose other than noise.

    Args:
        context: What they are for; see :func:`open_words`.
    """
    return derive(secrets.token_bytes(32), "not noise", *context)


def derive(secret: bytes, *context: Context) -> bytes:
    """Return the 32-byte key of a context under a secret."""
    if not context:
        raise InvalidParameter(
            "Expected a context of at least one part, got none. Two purposes could share noise. "
            "Name the gauge, the law and its scale."
        )
    info = b"".join(_part(one) for one in context)
    return HKDF(hashes.SHA256(), 32, salt=_LABEL, info=info).derive(secret)


def _part(part: Any) -> bytes:
    """Return type, length and bytes of one part: no two sequences of parts read alike."""
    if isinstance(part, str):
        tag, body = b"s", part.encode()
    elif isinstance(part, bytes):
        tag, body = b"b", part
    elif isinstance(part, int) and not isinstance(part, bool):
        tag, body = b"i", str(part).encode()
    elif isinstance(part, Fraction):
        tag, body = b"f", f"{part.numerator}/{part.denominator}".encode()
    else:
        raise InvalidParameter(
            f"Expected a context of str, bytes, int and Fraction, got {shown(part)}. It has no "
            "exact form to derive a key from. Convert it."
        )
    return tag + len(body).to_bytes(8, "big") + body
