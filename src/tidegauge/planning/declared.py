"""A config as declared: every field checked, lengths in steps, contributions in grains."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction

from tidegauge.mechanisms.discovery import Discover
from tidegauge.mechanisms.first_values import FirstValues
from tidegauge.mechanisms.intervals import Band
from tidegauge.mechanisms.selection import Select
from tidegauge.planning.parts import Clock, DeclaredGauge, IdUnit, TimeColumn
from tidegauge.planning.problems import Problem
from tidegauge.planning.settings import Settings
from tidegauge.planning.view_form import View
from tidegauge.privacy.guarantee import Guarantee
from tidegauge.privacy.unit import NeighboringRelation
from tidegauge.strategies.named import ByName

__all__ = ["Config", "GaugeConfig"]


@dataclass(frozen=True)
class GaugeConfig(DeclaredGauge):
    """One gauge as declared; contributions in grains, lengths in steps.

    The other fields mean what they do in :class:`~tidegauge.planning.parts.PlannedGauge`.
    """

    views: tuple[View, ...]
    anticipate: tuple[View, ...]
    budget_weight: Fraction
    max_per_step: int
    totals: bool
    max_items: int
    top: int | None
    select: Select | None
    level: float
    band: Band
    strategy: ByName | None
    discover: Discover | None = None
    clip: Fraction | FirstValues | None = None

    @property
    def clip_share(self) -> Fraction:
        """The part of the budget that finding a clip costs; 0: there is none to be found."""
        if self.clip is None:
            return Fraction(0)
        return self.clip if isinstance(self.clip, Fraction) else self.clip.share


@dataclass(frozen=True)
class Config:
    """A config whose every field is checked.

    Attributes:
        file: As it was named.
        horizon: Steps that accuracy is designed for; None: unknown.
        multiline: Whether newlines within quotes belong to a field of a CSV source.
        event: Column whose rows of one value are one event; None: each row is one.
        settings: What cannot affect a release's distribution.
        warnings: What is allowed and probably not meant.
    """

    file: str
    clock: Clock
    time: TimeColumn | None
    unit: IdUnit | None
    relation: NeighboringRelation
    guarantee: Guarantee
    gauges: tuple[GaugeConfig, ...]
    horizon: int | None
    about: tuple[tuple[str, str], ...]
    multiline: bool
    event: str | None
    settings: Settings = field(compare=False)
    warnings: tuple[Problem, ...] = field(default=(), compare=False)
