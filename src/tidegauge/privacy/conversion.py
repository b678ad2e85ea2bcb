r"""Conversions between guarantees, each rounded to the safe side.

Searches keep a margin of 1e-10 (1 + ln 1/delta) in ln delta, far above that numerical error, and
take the safe end of their bracket: a mu that may be spent is rounded down, an epsilon that is
claimed is rounded up, to twelve digits.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache

from tidegauge.checks import exact
from tidegauge.privacy.curve import log_gaussian_delta, log_normal, mills_ratio
from tidegauge.privacy.guarantee import ZCDP, ApproxDP, GaussianDP, Number, PureDP
from tidegauge.privacy.rounding import (
    ceil_decimal,
    floor_decimal,
    largest,
    least,
    log_fraction,
    minimiser,
    sqrt_down,
)

__all__ = [
    "epsilon_from_mu",
    "epsilon_from_rho",
    "gaussian_delta",
    "mu_from_epsilon_delta",
    "mu_from_pure",
    "mu_from_rho",
    "odds_exceeded",
    "pure_from_mu",
    "rho_from_bounded_range",
    "rho_from_epsilon_delta",
    "rho_from_mu_squared",
    "rho_from_pure",
]

_MARGIN = 1e-10
_WHY_SPEND = "What spends nothing publishes nothing. Give what was spent."


def gaussian_delta(mu: Number, epsilon: Number) -> float:
    """Return delta of mu-GDP at epsilon; for reading, not for a claim (rounded to nearest).

    Examples:
        >>> round(gaussian_delta(1, 1), 6)
        0.126937
    """
    return math.exp(log_gaussian_delta(float(mu), float(epsilon)))


def mu_from_epsilon_delta(epsilon: Number, delta: Number) -> Fraction:
    r"""Return the largest mu for which mu-GDP implies (epsilon, delta)-DP, rounded down.

    Guarantee:
        The exact curve of the returned mu lies at or below delta at epsilon.

    Args:
        epsilon: Above 0.
        delta: Above 0 and below 1.

    Raises:
        InvalidParameter: A number is out of range.

    Examples:
        >>> float(mu_from_epsilon_delta(1, 1e-9))
        0.181974807283

    References:
        Balle and Wang (2018), Theorem 8: the exact curve of Gaussian noise; Dong, Roth and Su
        (2022), Corollary 2.13: it is that of mu-GDP.

    Cost: a bisection over the curve, a few milliseconds; asked again, nothing.
    """
    promise = ApproxDP(epsilon, delta)
    return _largest_mu(promise.epsilon, promise.delta)


@lru_cache(maxsize=1024)
def _largest_mu(epsilon: Fraction, delta: Fraction) -> Fraction:
    """The same of exact numbers; a plan and its documents ask for few, many times."""
    eps, goal = float(epsilon), log_fraction(delta)
    goal -= _MARGIN * (1 - goal)
    return floor_decimal(largest(lambda mu: log_gaussian_delta(mu, eps) <= goal))


def epsilon_from_mu(mu: Number, delta: Number) -> Fraction:
    """Return the least epsilon for which mu-GDP implies (epsilon, delta)-DP, rounded up.

    Args:
        mu: Above 0.
        delta: Above 0 and below 1.

    Returns:
        The epsilon; 0 if delta alone covers everything.

    Raises:
        InvalidParameter: A number is out of range.

    Examples:
        >>> float(epsilon_from_mu(1, 1e-9))
        6.17393504704

    References:
        The same curve as :func:`mu_from_epsilon_delta`, solved for epsilon.

    Cost: a bisection over the curve, a few milliseconds; asked again, nothing.
    """
    return _least_epsilon(GaussianDP(mu).mu, ApproxDP(1, delta).delta)


@lru_cache(maxsize=1024)
def _least_epsilon(mu: Fraction, delta: Fraction) -> Fraction:
    """The same of exact numbers."""
    loss, goal = float(mu), log_fraction(delta)
    goal -= _MARGIN * (1 - goal)
    if log_gaussian_delta(loss, 0.0) <= goal:
        return Fraction(0)
    return ceil_decimal(least(lambda eps: log_gaussian_delta(loss, eps) <= goal))


def odds_exceeded(mu: Number, epsilon: Number) -> Fraction:
    r"""Return how often mu-GDP may change odds by more than a factor of e^epsilon, rounded up.

    Let S be the outcomes that a reader finds more than :math:`e^\varepsilon` times as likely under
    P as under Q, p and q its probabilities. Then :math:`p \ge e^\varepsilon q`, while mu-GDP
    allows only :math:`\Phi^{-1}(p) - \Phi^{-1}(q) \le \mu`: p is largest where both are equal,
    :math:`\Phi(-a) = e^\varepsilon \Phi(-a - \mu)`. Odds that fall that far add at most
    :math:`q = e^{-\varepsilon} p`.

    Guarantee:
        It holds for whatever is computed from the releases. The tail of the privacy loss of the
        Gaussian mechanism itself is smaller and does not: rounding to one bit can exceed it.

    Args:
        mu: Above 0.
        epsilon: Above 0.

    Returns:
        The probability, over the noise; 1 if nothing better is known.

    Raises:
        InvalidParameter: A number is out of range.

    Examples:
        >>> round(float(odds_exceeded(mu_from_epsilon_delta(1, 1e-9), 1)), 8)
        1.2e-07
    """
    shift, eps = float(GaussianDP(mu).mu), float(PureDP(epsilon).epsilon)

    def log_tail(x: float) -> float:
        return log_normal(x) + math.log(mills_ratio(x))

    def below(x: float) -> bool:  # whether -5 + x lies below a, with a margin
        one, other = log_tail(x - 5), log_tail(x - 5 + shift)
        return one - other <= eps - _MARGIN * min(eps, 1.0) + 1e-14 * other

    if not below(1e-3):
        return Fraction(1)
    log_p = log_tail(largest(below) - 5)
    both = math.exp(log_p * (1 - 1e-13) + 1e-12) * (1 + math.exp(-eps))
    return min(Fraction(1), ceil_decimal(both or 5e-324))


def mu_from_rho(rho: Number) -> Fraction:
    """Return the mu of a composition of Gaussian mechanisms that is rho-zCDP, rounded down.

    Only for Gaussian mechanisms: rho-zCDP in general is not sqrt(2 rho)-GDP.

    Examples:
        >>> mu_from_rho(0.5)
        Fraction(1, 1)
    """
    return sqrt_down(2 * ZCDP(rho).rho)


def mu_from_pure(epsilon: Number) -> Fraction:
    r"""Return the mu for which every epsilon-DP mechanism is mu-GDP, rounded up.

    It is :math:`2 \Phi^{-1}(e^\varepsilon / (1 + e^\varepsilon))`, attained by randomised
    response (Dong, Roth and Su 2022, Appendix A); mu = epsilon would be too small.

    Examples:
        >>> float(mu_from_pure(1))
        1.23203538535
    """
    eps = float(PureDP(epsilon).epsilon)
    if eps < 2:
        middle = math.tanh(eps / 2) * (1 + 1e-13)
        return ceil_decimal(least(lambda mu: math.erf(mu / math.sqrt(8)) >= middle))
    tail = -(eps + math.log1p(math.exp(-eps))) * (1 + 1e-13)
    return ceil_decimal(
        least(lambda mu: log_normal(mu / 2) + math.log(mills_ratio(mu / 2)) <= tail)
    )


def pure_from_mu(mu: Number) -> Fraction:
    r"""Return the largest epsilon whose every mechanism is mu-GDP, rounded down.

    The inverse of :func:`mu_from_pure`: :math:`\ln \Phi(\mu/2) - \ln \Phi(-\mu/2)`.

    Examples:
        >>> float(pure_from_mu(1.2320604)) <= 1.0001
        True
    """
    half = float(GaussianDP(mu).mu) / 2
    tail = log_normal(half) + math.log(mills_ratio(half))  # ln Q(half)
    if half < 1:  # both logarithms are near ln 1/2; their difference is 2 artanh(erf)
        return floor_decimal(2 * math.atanh(math.erf(half / math.sqrt(2))) * (1 - 1e-12))
    return floor_decimal((math.log1p(-math.exp(tail)) - tail) * (1 - 1e-12))


def rho_from_mu_squared(mu_squared: Number) -> Fraction:
    """Return mu^2 / 2: a Gaussian mechanism that is mu-GDP is rho-zCDP, whatever follows it.

    Args:
        mu_squared: The square, which is exact where the root is not; above 0.

    Raises:
        InvalidParameter: It is not a finite number above 0.

    Examples:
        >>> rho_from_mu_squared(1)
        Fraction(1, 2)

    References:
        Bun and Steinke (2016), Proposition 1.6.
    """
    return exact("mu_squared", mu_squared, above=0, why=_WHY_SPEND) / 2


def rho_from_pure(epsilon: Number) -> Fraction:
    """Return epsilon^2 / 2: pure epsilon-DP is rho-zCDP.

    Args:
        epsilon: Above 0.

    Raises:
        InvalidParameter: It is not a finite number above 0.

    Examples:
        >>> rho_from_pure(1)
        Fraction(1, 2)

    References:
        Bun and Steinke (2016), Proposition 1.4.
    """
    return exact("epsilon", epsilon, above=0, why=_WHY_SPEND) ** 2 / 2


def rho_from_bounded_range(epsilon: Number) -> Fraction:
    """Return epsilon^2 / 8: an epsilon-bounded-range mechanism is rho-zCDP.

    Examples:
        >>> rho_from_bounded_range(1)
        Fraction(1, 8)

    References:
        Cesar and Rogers (2021), Lemma 3.4: the exponential mechanism and noisy maxima.
    """
    return PureDP(epsilon).epsilon ** 2 / 8


def epsilon_from_rho(rho: Number, delta: Number) -> Fraction:
    r"""Return an epsilon for which rho-zCDP implies (epsilon, delta)-DP, rounded up.

    .. math:: \min_{\alpha > 1} \alpha\rho + \frac{\ln(1/(\alpha\delta))}{\alpha - 1}
              + \ln(1 - 1/\alpha)

    Guarantee:
        Every alpha gives a valid epsilon, so an imprecise search costs accuracy, never privacy.

    Examples:
        >>> float(epsilon_from_rho(0.5, 1e-9))
        6.47407002074

    References:
        Canonne, Kamath and Steinke (2020), Proposition 12.
    """
    loss = float(ZCDP(rho).rho)
    log_delta = log_fraction(ApproxDP(1, delta).delta)

    def claim(u: float) -> float:
        gap = math.exp(u)  # alpha - 1
        return (1 + gap) * loss - (math.log1p(gap) + log_delta) / gap - math.log1p(1 / gap)

    best = claim(minimiser(claim, -30.0, 60.0))
    # Each term carries a relative error near 1e-15; none is larger than the sum of their sizes.
    return ceil_decimal(best + 1e-12 * (abs(best) + 1e-3)) if best > 0 else Fraction(0)


def rho_from_epsilon_delta(epsilon: Number, delta: Number) -> Fraction:
    """Return the largest rho for which rho-zCDP implies (epsilon, delta)-DP, rounded down.

    Examples:
        >>> float(rho_from_epsilon_delta(1, 1e-9))
        0.0149730576735
    """
    promise = ApproxDP(epsilon, delta)
    return floor_decimal(
        largest(lambda rho: epsilon_from_rho(rho, promise.delta) <= promise.epsilon)
    )
