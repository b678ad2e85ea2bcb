"""Decayed sums over streams: the systems of Bolot, Fawaz, Muthukrishnan, Nikolov and Taft, 2013.

Private decayed predicate sums on streams, ICDT 2013. Each system has its own file; the corrections
are listed in ``docs/errata.md`` and proved in ``docs/proofs/bolot.md``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidegauge.exports import exported

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
    "tidegauge.papers.bolot.bounds": ("lower_bound", "std_bound"),
    "tidegauge.papers.bolot.distinct": ("DistinctCount",),
    "tidegauge.papers.bolot.exponential": ("ExponentialSum",),
    "tidegauge.papers.bolot.histogram": ("DecayedHistogram",),
    "tidegauge.papers.bolot.history": ("History",),
    "tidegauge.papers.bolot.holistic": ("HolisticPredicateSum", "changed_values"),
    "tidegauge.papers.bolot.perturbation": ("InputPerturbation",),
    "tidegauge.papers.bolot.predicate": ("PredicateSum",),
    "tidegauge.papers.bolot.response": ("RandomizedResponse",),
    "tidegauge.papers.polynomial_sum": ("PolynomialSum",),
    "tidegauge.papers.windows": ("AllWindowSum", "WindowSum"),
}
__getattr__, __dir__ = exported(__name__, _HOMES)
