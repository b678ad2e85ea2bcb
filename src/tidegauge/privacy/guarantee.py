"""Guarantees: what is promised about everything that is ever published.

Parameters are kept as exact fractions, so that shares of a guarantee add up to the whole. A float
is read as the decimal that its author wrote.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from statistics import NormalDist
from typing import final

from tidegauge.checks import exact
from tidegauge.errors import InvalidParameter

__all__ = [
    "ZCDP",
    "ApproxDP",
    "GaussianDP",
    "Guarantee",
    "Number",
    "PureDP",
    "factor",
    "guarantee_of",
    "rounded_up",
]

Number = int | float | Fraction | Decimal

_MOST = 1_000_000
_EPSILON = "epsilon"
_WHY_LOSS = (
    "At 0 nothing about the data could be published, and far above 10 nearly nothing is "
    "promised. Choose a number such as 1."
)
_WHY_DELTA = (
    "Any result may become likelier by delta beyond the factor e^epsilon: at 0 it is pure "
    "epsilon-DP, at 1 nothing is promised. Choose far below 1 over the number of people, such as "
    "1e-9, or leave it out."
)


@final
@dataclass(frozen=True, init=False)
class PureDP:
    r"""Pure epsilon-DP: :math:`P[M(x) \in S] \le e^\varepsilon P[M(x') \in S]` for all S.

    Args:
        epsilon: Largest logarithm of a change of odds; above 0.

    Raises:
        InvalidParameter: epsilon is not a finite number above 0.

    Examples:
        >>> PureDP(0.1)
        PureDP(epsilon=0.1)
        >>> PureDP(0.1).epsilon
        Fraction(1, 10)
    """

    epsilon: Fraction

    def __init__(self, epsilon: Number) -> None:
        object.__setattr__(
            self, _EPSILON, exact(_EPSILON, epsilon, above=0, below=_MOST, why=_WHY_LOSS)
        )

    def __repr__(self) -> str:
        return f"PureDP(epsilon={rounded_up(self.epsilon)})"

    def in_words(self, question: str) -> str:
        """The promise as a sentence on the odds of a question that begins with "whether"."""
        return (
            f"Whatever else a reader knows, all releases together change the odds on {question} "
            f"by at most a factor of {factor(self.epsilon)}."
        )


@final
@dataclass(frozen=True, init=False)
class ZCDP:
    r"""Zero-concentrated DP: every Rényi divergence of order alpha is at most alpha * rho.

    Args:
        rho: The bound; above 0.

    Raises:
        InvalidParameter: rho is not a finite number above 0.

    Examples:
        >>> ZCDP(0.5).in_words("whether it rained").split(", ")[-1]  # e^0.5, rounded up
        'the odds change by at most a factor of 1.65 (geometric mean).'

    References:
        Bun and Steinke (2016), Definition 1.1.
    """

    rho: Fraction

    def __init__(self, rho: Number) -> None:
        object.__setattr__(self, "rho", exact("rho", rho, above=0, below=_MOST, why=_WHY_LOSS))

    def __repr__(self) -> str:
        return f"ZCDP(rho={rounded_up(self.rho)})"

    def in_words(self, question: str) -> str:
        """The promise as a sentence on divergences and on odds on average."""
        return (
            f"Ask {question}: between what would be published if it were so and if it were not, "
            f"the Rényi divergence of order alpha is at most {rounded_up(self.rho)} * alpha, for "
            f"every alpha above 1. On average over what is published, the odds change by at most "
            f"a factor of {factor(self.rho)} (geometric mean)."
        )


@final
@dataclass(frozen=True, init=False)
class GaussianDP:
    r"""Gaussian DP: no easier than telling N(0, 1) from N(mu, 1) by one draw.

    Args:
        mu: Distance of the two normal laws in standard deviations; above 0.

    Raises:
        InvalidParameter: mu is not a finite number above 0.

    Examples:
        >>> GaussianDP(1).in_words("whether it rained").split("cases ")[-1]
        'finds the truth in at most 26 % of cases.'

    References:
        Dong, Roth and Su (2022), Definition 2.6.
    """

    mu: Fraction

    def __init__(self, mu: Number) -> None:
        object.__setattr__(self, "mu", exact("mu", mu, above=0, below=_MOST, why=_WHY_LOSS))

    def __repr__(self) -> str:
        return f"GaussianDP(mu={rounded_up(self.mu)})"

    def in_words(self, question: str) -> str:
        """The promise as the exact trade-off between false alarms and finds."""
        normal = NormalDist()
        found = 100 * normal.cdf(normal.inv_cdf(0.05) + float(self.mu))
        return (
            f"To find out {question} is at least as hard as to tell from a single draw whether a "
            f"normal law of standard deviation 1 has mean 0 or {rounded_up(self.mu)}: a test that "
            f"raises a false alarm in 5 % of cases finds the truth in at most "
            f"{rounded_up(found)} % of cases."
        )


@final
@dataclass(frozen=True, init=False)
class ApproxDP:
    r"""(epsilon, delta)-DP: :math:`P[M(x) \in S] \le e^\varepsilon P[M(x') \in S] + \delta`.

    delta is added to probabilities; it is not the probability that odds change by more than
    e^epsilon. Gaussian noise that is (1, 1e-9)-DP changes them by more than e in up to 1.2e-7 of
    all cases (:func:`tidegauge.privacy.conversion.odds_exceeded`).

    Args:
        epsilon: Logarithm of the factor by which a result may become likelier; above 0.
        delta: What may come on top of the factor; above 0 and below 1.

    Raises:
        InvalidParameter: epsilon is not a finite number above 0, or delta not between 0 and 1.

    Examples:
        >>> ApproxDP(1, 1e-9)
        ApproxDP(epsilon=1, delta=1e-9)
    """

    epsilon: Fraction
    delta: Fraction

    def __init__(self, epsilon: Number, delta: Number) -> None:
        object.__setattr__(
            self, _EPSILON, exact(_EPSILON, epsilon, above=0, below=_MOST, why=_WHY_LOSS)
        )
        object.__setattr__(self, "delta", exact("delta", delta, above=0, below=1, why=_WHY_DELTA))

    def __repr__(self) -> str:
        return f"ApproxDP(epsilon={rounded_up(self.epsilon)}, delta={rounded_up(self.delta)})"

    def in_words(self, question: str) -> str:
        """The promise as a sentence on likelihoods under both answers to a question."""
        return (
            f"Whatever a reader looks for in all releases together: {question} makes no result "
            f"more than {factor(self.epsilon)} times as likely, plus {rounded_up(self.delta)}, one "
            "way or the other."
        )


Guarantee = PureDP | ZCDP | GaussianDP | ApproxDP


def guarantee_of(
    epsilon: Number | None = None,
    delta: Number | None = None,
    guarantee: Guarantee | None = None,
) -> Guarantee:
    """Return the guarantee that a user asked for in one of three ways.

    Args:
        epsilon: Alone: pure epsilon-DP.
        delta: With epsilon: (epsilon, delta)-DP.
        guarantee: A guarantee, in place of the two numbers.

    Raises:
        InvalidParameter: None of them, both ways at once, delta alone, or a number out of range.

    Examples:
        >>> guarantee_of(epsilon=1, delta=1e-9)
        ApproxDP(epsilon=1, delta=1e-9)
    """
    if guarantee is not None:
        if epsilon is not None or delta is not None:
            raise InvalidParameter(
                "Expected either guarantee or epsilon and delta, got both. They could disagree. "
                "Leave one of the two out."
            )
        if not isinstance(guarantee, Guarantee):
            raise InvalidParameter(
                f"Expected guarantee to be a guarantee, got a {type(guarantee).__name__}. "
                "Nothing could be promised. Write PureDP(1), ZCDP(0.5), GaussianDP(1) or "
                "ApproxDP(1, 1e-9)."
            )
        return guarantee
    if epsilon is None:
        raise InvalidParameter(
            "Expected a guarantee, got none. There is no default: how much may be learned about "
            "one person is a decision. Write epsilon=1, delta=1e-9, or guarantee=GaussianDP(1)."
        )
    return PureDP(epsilon) if delta is None else ApproxDP(epsilon, delta)


def rounded_up(value: Fraction | float, digits: int = 3) -> str:
    """Return a positive number for reading: exact if short, else rounded up.

    Examples:
        >>> rounded_up(Fraction(1, 3)), rounded_up(Fraction(1, 8)), rounded_up(Fraction(1, 10**9))
        ('0.334', '0.125', '1e-9')
    """
    value = Fraction(value)
    context = Context(prec=digits, rounding=ROUND_CEILING)
    number = context.divide(Decimal(value.numerator), Decimal(value.denominator)).normalize(context)
    if Fraction(number) != value and (short := _short_decimal(value)) is not None:
        number = short
    exponent = number.adjusted()
    if -4 < exponent < 6:
        return f"{number:f}"
    mantissa = f"{number.scaleb(-exponent):f}"
    return f"{mantissa}e{exponent}"


def _short_decimal(value: Fraction) -> Decimal | None:
    """The exact decimal of a fraction, if it has at most six digits."""
    context = Context(prec=6)
    number = context.divide(Decimal(value.numerator), Decimal(value.denominator))
    return number.normalize(context) if Fraction(number) == value else None


def factor(exponent: Fraction) -> str:
    """Return the factor e^exponent for reading, rounded up while it can be written.

    Examples:
        >>> factor(Fraction(1)), factor(Fraction(50))
        ('2.72', 'e^50')
    """
    if exponent > 40:
        return f"e^{rounded_up(exponent)}"
    return rounded_up(math.exp(exponent) * (1 + 1e-14))
