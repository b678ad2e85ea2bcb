"""Sums of real values: the systems of Perrier, Asghar and Kaafar, 2019.

Private continual release of real-valued data streams, NDSS 2019. The corrections are listed in
``docs/errata.md`` and proved in ``docs/proofs/perrier.md``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidegauge.exports import exported

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
    "tidegauge.papers.perrier.budget": (
        "ErrorBudget",
        "error_budget",
        "first_needed",
        "light_tail_error",
        "light_tail_excess",
        "outlier_error",
        "quantile_risk",
        "tree_error",
    ),
    "tidegauge.papers.perrier.threshold": ("private_threshold", "smooth_sensitivity"),
    "tidegauge.papers.perrier.thresholded": ("ThresholdedSum",),
    "tidegauge.papers.perrier.tree": ("BinaryTree",),
}
__getattr__, __dir__ = exported(__name__, _HOMES)
