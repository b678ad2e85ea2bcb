"""Live statistics from sensitive event streams under one differential-privacy guarantee.

A gauge measures a stream once; a view is a decay applied to that measurement, free and addable
after the fact. The names below are imported when they are first used, so that ``import tidegauge``
costs nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidegauge.exports import exported

if TYPE_CHECKING:
    from tidegauge.engine.opening import open  # noqa: A004 (read as tg.open)
    from tidegauge.errors import (
        BudgetExceeded,
        InvalidInput,
        InvalidParameter,
        LiveState,
        Locked,
        MissingExtra,
        SourceUnavailable,
        StoreBehind,
        StoreMismatch,
        StreamEnded,
        TidegaugeError,
        UnsupportedCombination,
        WriteFailed,
    )
    from tidegauge.mechanisms.clipped import ClippedGauge, SumRelease
    from tidegauge.mechanisms.design import plan
    from tidegauge.mechanisms.discovery import Discover
    from tidegauge.mechanisms.discovery_gauge import DiscoveryGauge
    from tidegauge.mechanisms.gauge import Gauge
    from tidegauge.mechanisms.mean_gauge import MeanGauge
    from tidegauge.mechanisms.mean_release import MeanRelease
    from tidegauge.mechanisms.release import PlannedRelease, Release
    from tidegauge.privacy.guarantee import ZCDP, ApproxDP, GaussianDP, PureDP
    from tidegauge.privacy.unit import Contributions
    from tidegauge.strategies.custom import Custom
    from tidegauge.strategies.decay import Difference, Exponential, Running, Step, Window
    from tidegauge.strategies.polynomial import Polynomial

__version__ = "0.1.0"

__all__ = [
    "ZCDP",
    "ApproxDP",
    "BudgetExceeded",
    "ClippedGauge",
    "Contributions",
    "Custom",
    "Difference",
    "Discover",
    "DiscoveryGauge",
    "Exponential",
    "Gauge",
    "GaussianDP",
    "InvalidInput",
    "InvalidParameter",
    "LiveState",
    "Locked",
    "MeanGauge",
    "MeanRelease",
    "MissingExtra",
    "PlannedRelease",
    "Polynomial",
    "PureDP",
    "Release",
    "Running",
    "SourceUnavailable",
    "Step",
    "StoreBehind",
    "StoreMismatch",
    "StreamEnded",
    "SumRelease",
    "TidegaugeError",
    "UnsupportedCombination",
    "Window",
    "WriteFailed",
    "__version__",
    "open",
    "plan",
]

_HOMES = {
    "tidegauge.engine.opening": ("open",),
    "tidegauge.errors": (
        "BudgetExceeded", "InvalidInput", "InvalidParameter", "LiveState", "Locked",
        "MissingExtra", "SourceUnavailable", "StoreBehind", "StoreMismatch", "StreamEnded",
        "TidegaugeError", "UnsupportedCombination", "WriteFailed",
    ),
    "tidegauge.mechanisms.clipped": ("ClippedGauge", "SumRelease"),
    "tidegauge.mechanisms.design": ("plan",),
    "tidegauge.mechanisms.discovery": ("Discover",),
    "tidegauge.mechanisms.discovery_gauge": ("DiscoveryGauge",),
    "tidegauge.mechanisms.gauge": ("Gauge",),
    "tidegauge.mechanisms.mean_gauge": ("MeanGauge",),
    "tidegauge.mechanisms.mean_release": ("MeanRelease",),
    "tidegauge.mechanisms.release": ("PlannedRelease", "Release"),
    "tidegauge.privacy.guarantee": ("ApproxDP", "GaussianDP", "PureDP", "ZCDP"),
    "tidegauge.privacy.unit": ("Contributions",),
    "tidegauge.strategies.custom": ("Custom",),
    "tidegauge.strategies.decay": ("Difference", "Exponential", "Running", "Step", "Window"),
    "tidegauge.strategies.polynomial": ("Polynomial",),
}  # fmt: skip
__getattr__, __dir__ = exported(__name__, _HOMES)
