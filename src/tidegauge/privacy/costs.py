"""What one gauge spends, and what that takes from an account in each currency.

=================  ===========================  ==========================================
currency           a Gaussian gauge costs       a pure gauge costs
=================  ===========================  ==========================================
``epsilon``        refused                      epsilon
``rho`` (zCDP)     mu^2 / 2                     epsilon^2 / 2
``mu^2`` (GDP)     mu^2                         (2 Phi^-1(e^eps / (1 + e^eps)))^2
=================  ===========================  ==========================================

Choices of items are neither: they cost rho, and are refused in the other two currencies. Private
thresholds cost no currency: their epsilon and delta are set apart before the rest is counted.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from typing import Any, final

from tidegauge.checks import exact
from tidegauge.privacy.conversion import (
    mu_from_pure,
    pure_from_mu,
    rho_from_mu_squared,
    rho_from_pure,
)
from tidegauge.privacy.guarantee import Number
from tidegauge.privacy.rounding import sqrt_down

__all__ = [
    "AnyCost",
    "Cost",
    "Currency",
    "GaussianCost",
    "PureCost",
    "ThresholdCost",
    "ZCDPCost",
    "dp_event",
    "price",
    "share",
]


_WHY = (
    "A gauge that spends nothing would need noise without end. Give it a share of the guarantee "
    "(Ledger.split)."
)


class Currency(Enum):
    """What a ledger counts in."""

    EPSILON = "epsilon"
    RHO = "rho"
    MU_SQUARED = "mu^2"


@final
@dataclass(frozen=True, init=False)
class GaussianCost:
    r"""What one gauge with rounded Gaussian noise spends: it is mu-GDP.

    Args:
        mu_squared: The square of mu; above 0. The square is kept because squares add exactly.

    Raises:
        InvalidParameter: Not a finite number above 0.

    Examples:
        >>> GaussianCost(Fraction(1, 4)).mu
        Fraction(1, 2)
    """

    mu_squared: Fraction

    def __init__(self, mu_squared: Number) -> None:
        object.__setattr__(self, "mu_squared", exact("mu_squared", mu_squared, above=0, why=_WHY))

    @property
    def mu(self) -> Fraction:
        """The root, rounded down: noise of scale sensitivity / mu (rounded up) is enough."""
        return sqrt_down(self.mu_squared)

    def event(self) -> dict[str, Any]:
        """The cost as a ``GaussianDpEvent``: noise scale over L2 sensitivity, rounded down."""
        multiplier = math.nextafter(float(sqrt_down(1 / self.mu_squared)), 0)
        return dp_event("GaussianDpEvent", noise_multiplier=multiplier)


@final
@dataclass(frozen=True, init=False)
class PureCost:
    r"""What one gauge with discrete Laplace noise spends: it is epsilon-DP.

    Args:
        epsilon: Above 0.

    Raises:
        InvalidParameter: Not a finite number above 0.

    Examples:
        >>> price(PureCost(0.5), Currency.RHO), price(PureCost(0.5), Currency.EPSILON)
        (Fraction(1, 8), Fraction(1, 2))
    """

    epsilon: Fraction

    def __init__(self, epsilon: Number) -> None:
        object.__setattr__(self, "epsilon", exact("epsilon", epsilon, above=0, why=_WHY))

    def event(self) -> dict[str, Any]:
        """The cost as a ``DiscreteLaplaceDpEvent`` at a shift by one unit.

        Its privacy loss is +-epsilon, as in randomised response: the worst of all epsilon-DP
        mechanisms. Not a ``LaplaceDpEvent``: continuous noise of the same epsilon tells less (at
        epsilon 1 a total variation of 0.393 against 0.462), and an accountant of privacy losses
        would claim too much.
        """
        parameter = math.nextafter(float(self.epsilon), math.inf)
        return dp_event("DiscreteLaplaceDpEvent", noise_parameter=parameter, sensitivity=1)


@final
@dataclass(frozen=True, init=False)
class ZCDPCost:
    r"""What choices of items spend: picks by Gumbel noise and runs of tests, rho-zCDP together.

    Args:
        rho: Above 0.

    Raises:
        InvalidParameter: Not a finite number above 0.

    Examples:
        >>> price(ZCDPCost(0.05), Currency.RHO)
        Fraction(1, 20)
    """

    rho: Fraction

    def __init__(self, rho: Number) -> None:
        object.__setattr__(self, "rho", exact("rho", rho, above=0, why=_WHY))

    def event(self) -> dict[str, Any]:
        """The cost as a ``ZCDpEvent``, rounded up."""
        return dp_event("ZCDpEvent", rho=math.nextafter(float(self.rho), math.inf), xi=0)


Cost = GaussianCost | PureCost
"""Of noise that all of a stream's numbers carry."""


@final
@dataclass(frozen=True, init=False)
class ThresholdCost:
    r"""What a private threshold spends: it is drawn once, and (epsilon, delta)-DP.

    Args:
        epsilon: Above 0.
        delta: Above 0, below 1.

    Raises:
        InvalidParameter: A number is out of range.

    Examples:
        >>> ThresholdCost(0.5, 1e-9).event()["class_name"]
        'DiscreteLaplaceDpEvent'
    """

    epsilon: Fraction
    delta: Fraction

    def __init__(self, epsilon: Number, delta: Number) -> None:
        object.__setattr__(self, "epsilon", exact("epsilon", epsilon, above=0, why=_WHY))
        object.__setattr__(self, "delta", exact("delta", delta, above=0, below=1, why=_WHY))

    def event(self) -> dict[str, Any]:
        """The cost but for its delta as an event, that of any epsilon-DP mechanism.

        Up to a chance of delta the threshold is epsilon-DP (``docs/proofs/ledger.md``); no event
        of dp_accounting adds to delta alone.
        """
        return PureCost(self.epsilon).event()


AnyCost = Cost | ZCDPCost | ThresholdCost


def dp_event(class_name: str, **fields: Any) -> dict[str, Any]:
    """The fields of a dp_accounting event's named tuple."""
    return {"module_name": "dp_accounting.dp_event", "class_name": class_name, **fields}


def price(cost: AnyCost, currency: Currency) -> Fraction:
    """What a cost takes from an account, never below the truth; choices have a price in rho.

    Thresholds take nothing of it: what they spend was set apart.
    """
    if isinstance(cost, ThresholdCost):
        return Fraction(0)
    if isinstance(cost, ZCDPCost):
        assert currency is Currency.RHO, "a ledger refuses it in every other"
        return cost.rho
    if isinstance(cost, GaussianCost):
        squared = cost.mu_squared
        return rho_from_mu_squared(squared) if currency is Currency.RHO else squared
    if currency is Currency.EPSILON:
        return cost.epsilon
    if currency is Currency.RHO:
        return rho_from_pure(cost.epsilon)
    return mu_from_pure(cost.epsilon) ** 2


def share(amount: Fraction, kind: type[AnyCost], currency: Currency) -> Fraction:
    """The parameter of a cost that takes at most ``amount`` from an account."""
    if kind is ZCDPCost:
        return amount
    if kind is GaussianCost:
        return 2 * amount if currency is Currency.RHO else amount
    if currency is Currency.EPSILON:
        return amount
    if currency is Currency.RHO:
        return sqrt_down(2 * amount)
    epsilon = pure_from_mu(sqrt_down(amount))
    while mu_from_pure(epsilon) ** 2 > amount:  # both are rounded in their last digits
        epsilon *= 1 - Fraction(1, 10**11)
    return epsilon
