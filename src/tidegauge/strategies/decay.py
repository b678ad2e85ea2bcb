"""Decays: the weight g(k) that a view gives to what happened k steps ago."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Custom", "Decay", "Exponential", "Polynomial", "Running", "Step", "Window"]


@dataclass(frozen=True)
class Step:
    """Each step alone: g(0) = 1."""


@dataclass(frozen=True)
class Running:
    """The sum of everything so far: g(k) = 1."""


@dataclass(frozen=True)
class Window:
    """The sum of the last ``steps`` steps."""

    steps: int


@dataclass(frozen=True, kw_only=True)
class Exponential:
    """g(k) = a^k, a = 1 - gap."""

    half_life: float | None = None
    factor: float | None = None


@dataclass(frozen=True)
class Polynomial:
    """g(k) = (k + 1)^-c, implemented as a sum of exponentials."""

    c: float


@dataclass(frozen=True)
class Custom:
    """Finite weights g(0), g(1), ..., g(n-1)."""

    weights: tuple[float, ...]


Decay = Step | Running | Window | Exponential | Polynomial | Custom
