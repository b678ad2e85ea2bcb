"""Live statistics from sensitive event streams under one differential-privacy guarantee.

A gauge measures a stream once; a view is a decay applied to that measurement, free and addable
after the fact. The names below are imported when they are first used, so that ``import tidegauge``
costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

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
    "engine.opening": ("open",),
    "errors": (
        "BudgetExceeded", "InvalidInput", "InvalidParameter", "LiveState", "Locked",
        "MissingExtra", "SourceUnavailable", "StoreBehind", "StoreMismatch", "StreamEnded",
        "TidegaugeError", "UnsupportedCombination", "WriteFailed",
    ),
    "mechanisms.clipped": ("ClippedGauge", "SumRelease"),
    "mechanisms.design": ("plan",),
    "mechanisms.discovery": ("Discover",),
    "mechanisms.discovery_gauge": ("DiscoveryGauge",),
    "mechanisms.gauge": ("Gauge",),
    "mechanisms.mean_gauge": ("MeanGauge",),
    "mechanisms.mean_release": ("MeanRelease",),
    "mechanisms.release": ("PlannedRelease", "Release"),
    "privacy.guarantee": ("ApproxDP", "GaussianDP", "PureDP", "ZCDP"),
    "privacy.unit": ("Contributions",),
    "strategies.custom": ("Custom",),
    "strategies.decay": ("Difference", "Exponential", "Running", "Step", "Window"),
    "strategies.polynomial": ("Polynomial",),
}  # fmt: skip


def __getattr__(name: str) -> Any:
    for home, names in _HOMES.items():
        if name in names:
            value = getattr(import_module(f"tidegauge.{home}"), name)
            globals()[name] = value  # found at once from here on
            return value
    raise AttributeError(f"module 'tidegauge' has no attribute {name!r}")


def __dir__() -> list[str]:
    return list(__all__)
