"""Sums of real values: the systems of Perrier, Asghar and Kaafar, 2019.

Private continual release of real-valued data streams, NDSS 2019. The corrections are listed in
``docs/errata.md`` and proved in ``docs/proofs/perrier.md``.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tidegauge.papers.perrier.budget import (
        ErrorBudget,
        error_budget,
        first_needed,
        light_tail_error,
        light_tail_excess,
        outlier_error,
        quantile_risk,
        tree_error,
    )
    from tidegauge.papers.perrier.threshold import private_threshold, smooth_sensitivity
    from tidegauge.papers.perrier.thresholded import ThresholdedSum
    from tidegauge.papers.perrier.tree import BinaryTree

__all__ = [
    "BinaryTree",
    "ErrorBudget",
    "ThresholdedSum",
    "error_budget",
    "first_needed",
    "light_tail_error",
    "light_tail_excess",
    "outlier_error",
    "private_threshold",
    "quantile_risk",
    "smooth_sensitivity",
    "tree_error",
]

_HOMES = {
    "budget": (
        "ErrorBudget",
        "error_budget",
        "first_needed",
        "light_tail_error",
        "light_tail_excess",
        "outlier_error",
        "quantile_risk",
        "tree_error",
    ),
    "threshold": ("private_threshold", "smooth_sensitivity"),
    "thresholded": ("ThresholdedSum",),
    "tree": ("BinaryTree",),
}


def __getattr__(name: str) -> Any:
    for home, names in _HOMES.items():
        if name in names:
            value = getattr(import_module(f"tidegauge.papers.perrier.{home}"), name)
            globals()[name] = value  # found at once from here on
            return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return list(__all__)
