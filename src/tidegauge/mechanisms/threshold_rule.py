r"""The rule of a private threshold: an upper quantile of some values, by smooth sensitivity.

With a = epsilon/2, b = epsilon / (2 ln(2/delta)), G = ln(1 / (2 beta_lt)), SS a b-smooth bound of
the quantile's sensitivity and :math:`\kappa = 1 / (1 - (e^b - 1) G / a)`,

.. math:: \tau = s_P + \kappa \frac{SS}{a} (G + Z), \qquad Z \sim \text{Laplace}(1).

kappa pays for the part of the center that moves with SS. All numbers of a rule are public and
rounded towards more noise; SS, and with it the scale of the noise, is private.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import ceil, floor
from typing import final

from tidegauge.checks import exact, shown
from tidegauge.errors import InvalidParameter, UnsupportedCombination
from tidegauge.mechanisms.smooth import LEAST_B
from tidegauge.noise.intervals import exp_bracket
from tidegauge.privacy.rounding import log_fraction

__all__ = ["MOST_GRAINS", "ThresholdRule"]

MOST_GRAINS = 1 << 40
"""Of a threshold: values above it are no exact floats times a weight."""

_UNIT = 1 << 80  # constants are rounded to its fractions
_BITS = 200


@final
@dataclass(frozen=True)
class ThresholdRule:
    r"""How a threshold is chosen from values; everything but the values.

    Guarantee:
        The threshold is (epsilon, delta)-DP when one value is replaced by any other in its range.
        Proof: ``docs/proofs/perrier.md``.

    Args:
        epsilon: Above 0.
        delta: In (0, 1).
        quantile: The share of values that should lie above, in (0, 1): the paper's lambda p.
        beta_lt: How often the threshold may lie below that quantile, in (0, 1/2).

    Raises:
        InvalidParameter: A number is out of range.
        UnsupportedCombination: epsilon is too large or too small for delta, or beta_lt is so small
            for delta that there is no kappa.

    Examples:
        >>> rule = ThresholdRule(1, 1e-6, 0.00425, 0.006)
        >>> round(float(rule.b), 10), round(float(rule.shift), 7), round(float(rule.kappa), 10)
        (0.0344621818, 4.4228486, 1.449602366)
        >>> rule.rank(60_000)  # 0.85 * 0.005 * 60,000 is a little above 255 in floats
        59746

    References:
        Perrier, Asghar and Kaafar 2019, section "Private quantile"; Nissim, Raskhodnikova and
        Smith 2007, Lemmas 2.5 and 2.7.
    """

    epsilon: Fraction
    delta: Fraction
    quantile: Fraction
    beta_lt: Fraction

    def __post_init__(self) -> None:
        why = "All of it is spent on the threshold. Give a part of the whole, such as 0.5."
        self._set("epsilon", exact("epsilon", self.epsilon, above=0, below=1000, why=why))
        why = "It bounds how often the noise may fail to hide a value. Use 1e-9."
        self._set("delta", exact("delta", self.delta, above=0, below=1, why=why))
        why = "It is the share of values above the threshold. Use 0.005."
        self._set("quantile", exact("quantile", self.quantile, above=0, below=1, why=why))
        why = "It is how often the threshold may lie below the quantile. Use 0.006."
        beta_lt = exact("beta_lt", self.beta_lt, above=0, why=why)
        if 2 * beta_lt >= 1:
            raise InvalidParameter(
                f"Expected beta_lt < 1/2, got beta_lt={shown(self.beta_lt)}. From there on the "
                f"threshold needs no upward shift. {why}"
            )
        self._set("beta_lt", beta_lt)
        self._check()

    def _set(self, name: str, value: Fraction) -> None:
        object.__setattr__(self, name, value)

    def _check(self) -> None:
        """Refuse what the proof does not cover."""
        if self.b < LEAST_B:
            raise UnsupportedCombination(
                f"Expected epsilon / (2 ln(2/delta)) of at least 2^-30, got epsilon={self._epsilon}"
                ". Noise would swamp every value. Use a larger epsilon."
            )
        if self.b > self.a or self.a + self.b < self._growth * _log_up(1 / self.delta):
            raise UnsupportedCombination(
                f"Expected an epsilon that smooth sensitivity serves, got epsilon={self._epsilon} "
                f"with delta={float(self.delta):.3g}. Noise as wide on one side as on the other "
                "would fail more often than delta. Use epsilon of at most 5, or a smaller delta."
            )
        if self._growth * self.shift >= self.a:
            raise UnsupportedCombination(
                f"Expected beta_lt above about delta / 4, got beta_lt={float(self.beta_lt):.3g} "
                f"with delta={float(self.delta):.3g}. The shift against it would move more than "
                "the noise can hide. Use a larger beta_lt or a smaller delta."
            )

    @property
    def _epsilon(self) -> str:
        return f"{float(self.epsilon):.3g}"

    @cached_property
    def a(self) -> Fraction:
        """What a shift of the center may cost: epsilon / 2."""
        return self.epsilon / 2

    @cached_property
    def b(self) -> Fraction:
        """How smooth the bound is: epsilon / (2 ln(2/delta)), rounded down."""
        return Fraction(floor(self.a / _log_up(2 / self.delta) * _UNIT), _UNIT)

    @cached_property
    def shift(self) -> Fraction:
        """G = ln(1 / (2 beta_lt)), rounded up: Laplace noise is above -G but with beta_lt."""
        return _log_up(1 / (2 * self.beta_lt))

    @cached_property
    def kappa(self) -> Fraction:
        """1 / (1 - (e^b - 1) G / a), rounded up."""
        exactly = 1 / (1 - self._growth * self.shift / self.a)
        return Fraction(ceil(exactly * _UNIT), _UNIT)

    @cached_property
    def _growth(self) -> Fraction:
        """e^b - 1, rounded up."""
        return Fraction(1 << _BITS, exp_bracket(self.b, _BITS)[0]) - 1

    def rank(self, count: int) -> int:
        """The quantile's rank among ``count`` values, from the smallest, by exact fractions."""
        return count - ceil(self.quantile * count) + 1


def _log_up(x: Fraction) -> Fraction:
    """The natural logarithm of x > 1, rounded up; checked by certified brackets."""
    found = Fraction(ceil(Fraction(log_fraction(x)) * (1 + Fraction(1, 1 << 44)) * _UNIT), _UNIT)
    bits = x.numerator.bit_length() + _BITS
    assert exp_bracket(found, bits)[1] * x <= 1 << bits
    return found
