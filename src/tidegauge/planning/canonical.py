"""The one form of a plan that is hashed, signed and published."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from tidegauge.checks import shown
from tidegauge.errors import InvalidParameter

__all__ = ["canonical_bytes", "digest", "parsed_json"]

_MOST_BYTES = 1 << 28


def canonical_bytes(data: Any) -> bytes:
    r"""Return JSON in the one form that is hashed: sorted keys, no spaces, UTF-8, a final newline.

    Examples:
        >>> canonical_bytes({"b": 1, "a": "é"})
        b'{"a":"\xc3\xa9","b":1}\n'
    """
    text = json.dumps(
        data, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
    )
    return text.encode() + b"\n"


def parsed_json(data: bytes) -> Any:
    """Return JSON that has no float, no key twice and no more than 256 MiB.

    Raises:
        InvalidParameter: It is not of that kind.
    """
    if len(data) > _MOST_BYTES:
        raise _not_a_plan("more than 256 MiB")
    try:
        return json.loads(
            data.decode(),
            object_pairs_hook=_once,
            parse_float=_refuse_float,
            parse_constant=_refuse_float,
        )
    except (UnicodeDecodeError, json.JSONDecodeError, RecursionError) as error:
        raise _not_a_plan(f"something else ({type(error).__name__})") from None
    except ValueError as error:
        if isinstance(error, InvalidParameter):
            raise
        raise _not_a_plan("a number of too many digits") from None


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) < len(pairs):
        raise _not_a_plan("a field twice")
    return result


def _refuse_float(text: str) -> Any:
    raise _not_a_plan(f"the float {shown(text)}")


def digest(data: bytes) -> str:
    """Return the SHA-256 of bytes as ``"sha256:..."``."""
    return "sha256:" + hashlib.sha256(data).hexdigest()


def _not_a_plan(got: str) -> InvalidParameter:
    return InvalidParameter(
        f"Expected a plan file, got {got}. Nothing can be told from it. Use the plan as it was "
        'written by "tidegauge plan CONFIG -o plan.json" or by a run.'
    )
