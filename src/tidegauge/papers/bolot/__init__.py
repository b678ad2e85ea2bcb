"""Decayed sums over streams: the systems of Bolot, Fawaz, Muthukrishnan, Nikolov and Taft, 2013.

Private decayed predicate sums on streams, ICDT 2013. Each system has its own file; the corrections
are listed in ``docs/errata.md`` and proved in ``docs/proofs/bolot.md``.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tidegauge.papers.bolot.distinct import DistinctCount
    from tidegauge.papers.bolot.exponential import ExponentialSum
    from tidegauge.papers.bolot.response import RandomizedResponse

__all__ = ["DistinctCount", "ExponentialSum", "RandomizedResponse"]

_HOMES = {
    "distinct": ("DistinctCount",),
    "exponential": ("ExponentialSum",),
    "response": ("RandomizedResponse",),
}


def __getattr__(name: str) -> Any:
    for home, names in _HOMES.items():
        if name in names:
            value = getattr(import_module(f"{__name__}.{home}"), name)
            globals()[name] = value  # found at once from here on
            return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return list(__all__)
