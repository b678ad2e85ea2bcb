"""Decayed sums over streams: the systems of Bolot, Fawaz, Muthukrishnan, Nikolov and Taft, 2013.

Private decayed predicate sums on streams, ICDT 2013. Each system has its own file; the corrections
are listed in ``docs/errata.md`` and proved in ``docs/proofs/bolot.md``.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tidegauge.papers.bolot.bounds import lower_bound, std_bound
    from tidegauge.papers.bolot.distinct import DistinctCount
    from tidegauge.papers.bolot.exponential import ExponentialSum
    from tidegauge.papers.bolot.histogram import DecayedHistogram
    from tidegauge.papers.bolot.history import History
    from tidegauge.papers.bolot.holistic import HolisticPredicateSum, changed_values
    from tidegauge.papers.bolot.perturbation import InputPerturbation
    from tidegauge.papers.bolot.predicate import PredicateSum
    from tidegauge.papers.bolot.response import RandomizedResponse
    from tidegauge.papers.polynomial_sum import PolynomialSum
    from tidegauge.papers.windows import AllWindowSum, WindowSum

__all__ = [
    "AllWindowSum",
    "DecayedHistogram",
    "DistinctCount",
    "ExponentialSum",
    "History",
    "HolisticPredicateSum",
    "InputPerturbation",
    "PolynomialSum",
    "PredicateSum",
    "RandomizedResponse",
    "WindowSum",
    "changed_values",
    "lower_bound",
    "std_bound",
]

_HOMES = {
    "bolot.bounds": ("lower_bound", "std_bound"),
    "bolot.distinct": ("DistinctCount",),
    "bolot.exponential": ("ExponentialSum",),
    "bolot.histogram": ("DecayedHistogram",),
    "bolot.history": ("History",),
    "bolot.holistic": ("HolisticPredicateSum", "changed_values"),
    "bolot.perturbation": ("InputPerturbation",),
    "bolot.predicate": ("PredicateSum",),
    "bolot.response": ("RandomizedResponse",),
    "polynomial_sum": ("PolynomialSum",),
    "windows": ("AllWindowSum", "WindowSum"),
}


def __getattr__(name: str) -> Any:
    for home, names in _HOMES.items():
        if name in names:
            value = getattr(import_module(f"tidegauge.papers.{home}"), name)
            globals()[name] = value  # found at once from here on
            return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return list(__all__)
