"""What a guarantee for one event means for several of one person: group privacy.

Every conversion is rounded to the safe side, as in :mod:`tidegauge.privacy.conversion`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from statistics import NormalDist
from typing import final

from tidegauge.checks import integer
from tidegauge.privacy.conversion import epsilon_from_mu, epsilon_from_rho
from tidegauge.privacy.guarantee import ZCDP, ApproxDP, GaussianDP, Guarantee, Number, PureDP
from tidegauge.privacy.rounding import ceil_decimal, log_fraction

__all__ = ["K_EVENTS", "KEvents", "k_event_table"]

K_EVENTS = (2, 5, 10, 20, 50)
"""For how many events the table of a statement has rows."""

_SLACK = 1e-6  # of a step: quantiles of the normal law are right to far less
_WHY_KS = "A row is for that many events of one person. Give whole numbers such as (2, 5, 10)."


@final
@dataclass(frozen=True)
class KEvents:
    """What a guarantee for one event means for somebody with ``events`` events.

    Args:
        events: How many events differ.
        epsilon: The epsilon that holds for all of them together, rounded up.
        delta: The delta beside it; 0 for pure epsilon-DP.
    """

    events: int
    epsilon: Fraction
    delta: Fraction


def k_event_table(
    guarantee: Guarantee,
    delta: Number,
    ks: Sequence[int] = K_EVENTS,
    names: Fraction = Fraction(0),
    thresholds: ApproxDP | None = None,
) -> tuple[KEvents, ...]:
    r"""Return what a guarantee for one event means for k events of the same person.

    Gaussian: k mu, by the exact curve. Pure: k epsilon. zCDP: k^2 rho. (epsilon, delta): k epsilon
    and delta (e^(k eps) - 1) / (e^eps - 1), which soon promises nothing: give the Gaussian spend
    behind it if there is one.

    Names of items that nobody knew before come on top of noise: for one unit they add d to every
    probability, so a result of probability p gets at most :math:`T(p) = G(p) + d`, with
    :math:`G(p) = \Phi(\Phi^{-1}(p) + \mu)`. G is concave and 0 at 0, so
    :math:`G(p + q) \le G(p) + G(q)`, and k units get at most :math:`G^k(p) + d_k` with
    :math:`d_1 = d, d_k = G(d_{k-1}) + d`: delta grows by d_k.

    So do private thresholds: k of one's events under them are (epsilon, delta) with group privacy
    of its own, and both parameters add up, for one unit and for k.

    Args:
        guarantee: What was promised, or better what was spent, for one event.
        delta: At which delta a Gaussian or zCDP spend is read.
        ks: Numbers of events.
        names: What names may add to delta for one unit; beside a Gaussian spend only.
        thresholds: What private thresholds spend for one unit, all together; not beside names.

    Raises:
        InvalidParameter: A number is out of range.

    Examples:
        >>> [(row.events, float(row.epsilon)) for row in k_event_table(PureDP(0.5), 1e-9, (2, 10))]
        [(2, 1.0), (10, 5.0)]

    References:
        Group privacy: Dong, Roth and Su (2022), Theorem 2.14 (mu); Bun and Steinke (2016),
        Proposition 1.9 (rho); Dwork and Roth (2014), Theorem 2.2 (epsilon).

    Cost: one conversion a row, a few milliseconds each.
    """
    for k in ks:
        integer("ks", k, low=1, high=1 << 40, why=_WHY_KS)
    delta = ApproxDP(1, delta).delta
    rows = (_k_events(guarantee, delta, k) for k in ks)
    if thresholds is not None:
        more = (_k_events(thresholds, thresholds.delta, k) for k in ks)
        pairs = zip(rows, more, strict=True)
        return tuple(
            KEvents(a.events, a.epsilon + b.epsilon, min(Fraction(1), a.delta + b.delta))
            for a, b in pairs
        )
    if not names:
        return tuple(rows)
    assert isinstance(guarantee, GaussianDP)  # of one kind of noise where names are found
    mu = float(guarantee.mu)
    return tuple(
        KEvents(
            row.events, row.epsilon, min(Fraction(1), row.delta + _names(names, mu, row.events))
        )
        for row in rows
    )


def _names(names: Fraction, mu: float, k: int) -> Fraction:
    """What names add to delta for k units; rounded up."""
    normal, found = NormalDist(), float(names)
    for _ in range(k - 1):
        if found >= 1:
            return Fraction(1)
        found = (normal.cdf(normal.inv_cdf(found) + mu) + float(names)) * (1 + _SLACK)
    return names if k == 1 else ceil_decimal(min(1.0, found * (1 + _SLACK)))


def _k_events(guarantee: Guarantee, delta: Fraction, k: int) -> KEvents:
    """One row of the table; the parameters may leave the range that one guarantee may have."""
    if isinstance(guarantee, PureDP):
        return KEvents(k, k * guarantee.epsilon, Fraction(0))
    if isinstance(guarantee, GaussianDP):
        return KEvents(k, epsilon_from_mu(k * guarantee.mu, delta), delta)
    if isinstance(guarantee, ZCDP):
        return KEvents(k, epsilon_from_rho(k**2 * guarantee.rho, delta), delta)
    if k == 1:
        return KEvents(k, guarantee.epsilon, guarantee.delta)
    one = float(guarantee.epsilon)
    log_sum = (k - 1) * one + math.log(-math.expm1(-k * one) / -math.expm1(-one))
    log_delta = min(0.0, log_fraction(guarantee.delta) + log_sum + 1e-9)
    return KEvents(k, k * guarantee.epsilon, min(Fraction(1), ceil_decimal(math.exp(log_delta))))
