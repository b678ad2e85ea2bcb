"""A clip that is drawn once, from the values of the first steps: what is asked, and what it costs.

The clip is the private threshold of Perrier, Asghar and Kaafar 2019. Their budgets of disjoint
readings do not add up; ours do, for a person may have events on both sides. So epsilon and delta
of the threshold are set apart first, and all noise is made for the rest. Proof:
``docs/proofs/perrier.md``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, log
from typing import final

from tidegauge.checks import exact, integer, shown
from tidegauge.errors import InvalidParameter, UnsupportedCombination
from tidegauge.mechanisms.threshold_rule import ThresholdRule
from tidegauge.noise.intervals import exp_bracket
from tidegauge.privacy.costs import ThresholdCost
from tidegauge.privacy.guarantee import ApproxDP, Guarantee, rounded_up
from tidegauge.privacy.unit import Contributions, PrivacyUnit
from tidegauge.strategies.strategy import MOST_STEPS

__all__ = ["FirstValues", "Threshold", "set_apart", "spends", "threshold_of"]

_BITS = 200
_CLOSE = 10_000  # a bound moves a threshold of enough values by a ten-thousandth of itself


@final
@dataclass(frozen=True)
class FirstValues:
    """What is asked of a clip that is drawn from the first values; public.

    Args:
        first: The number of steps whose values it is drawn from, at least 1: the time lag.
        quantile: The share of values that should lie above, in (0, 1): the paper's lambda p.
        beta_lt: How often the clip may lie below that quantile, in (0, 1/2).
        share: The part of the gauge's epsilon that the clip spends, in (0, 1).
        delta_share: The part of the gauge's delta that it spends, in (0, 1).

    Raises:
        InvalidParameter: A number is out of range.

    Examples:
        >>> FirstValues(24).share
        Fraction(1, 2)
    """

    first: int
    quantile: Fraction = Fraction(17, 4000)
    beta_lt: Fraction = Fraction(6, 1000)
    share: Fraction = Fraction(1, 2)
    delta_share: Fraction = Fraction(1, 2)

    def __post_init__(self) -> None:
        why = "Their values wait, and the clip is drawn from them. Give a number of steps."
        self._set("first", integer("first", self.first, low=1, high=MOST_STEPS, why=why))
        why = "It is the share of values above the clip. Write 0.005."
        self._set("quantile", exact("quantile", self.quantile, above=0, below=1, why=why))
        why = "It is how often the clip may lie below the quantile. Write 0.006."
        beta_lt = exact("beta_lt", self.beta_lt, above=0, why=why)
        if 2 * beta_lt >= 1:
            raise InvalidParameter(
                f"Expected beta_lt below 1/2, got beta_lt={shown(self.beta_lt)}. {why}"
            )
        self._set("beta_lt", beta_lt)
        why = "The noise of the values has the rest of it. Write 0.5."
        for name in ("share", "delta_share"):
            self._set(name, exact(name, getattr(self, name), above=0, below=1, why=why))

    def _set(self, name: str, value: Fraction | int) -> None:
        object.__setattr__(self, name, value)


@final
@dataclass(frozen=True)
class Threshold:
    """How the clip of one gauge is drawn, and at what cost: a part of a plan.

    Attributes:
        asked: What was asked.
        cost: What it spends for one protected unit.
        rule: Of one event: an id with k events has k times its epsilon, by group privacy.
    """

    asked: FirstValues
    cost: ThresholdCost
    rule: ThresholdRule

    @property
    def needed(self) -> int:
        """From about how many values on the clip is a quantile of them.

        The smooth sensitivity holds what lies between the quantile and the declared bound, less a
        factor e^-b for each value between. From here on it moves the clip by a ten-thousandth of
        the bound; with a quarter as many, by all of it: then the clip is likely to be the bound.
        """
        rule = self.rule
        moved = _CLOSE * float(rule.kappa * (1 + rule.shift) / rule.a)
        return ceil(log(moved) / float(rule.b * rule.quantile))

    def in_words(self) -> str:
        """Return how the clip comes to be, and what it costs, in sentences."""
        asked, cost = self.asked, self.cost
        span = "step" if asked.first == 1 else f"{asked.first:,} steps"
        return (
            f"The clip is drawn once, from the values of the first {span}, as a private upper "
            f"quantile of them (Perrier, Asghar and Kaafar 2019): at most about "
            f"{_percent(asked.quantile)} of them lie beyond it. Until then values wait, and they "
            f"count at the next step. That takes about {self.needed:,} values in the first "
            f"{span}: with much fewer, the clip is likely to be the declared bound. It costs "
            f"epsilon = {rounded_up(cost.epsilon)} and delta = {rounded_up(cost.delta)}, "
            f"{_percent(asked.share)} and {_percent(asked.delta_share)} of the gauge's part; "
            "noise is made for the rest. Each release names it."
        )


def threshold_of(asked: FirstValues, cost: ThresholdCost, unit: PrivacyUnit) -> Threshold:
    r"""Return how a clip is drawn, for that cost to one protected unit.

    An id with k events changes k values, one after the other: with :math:`\varepsilon' =
    \varepsilon / k` and :math:`\delta' = \delta e^{-(k-1) \varepsilon'} / k` for each of them, it
    spends epsilon and :math:`\delta' \sum_{j < k} e^{j \varepsilon'} \le \delta`.

    Raises:
        UnsupportedCombination: epsilon or beta_lt do not go together with delta, or are out of
            range; see :class:`~.threshold_rule.ThresholdRule`.

    Examples:
        >>> found = threshold_of(FirstValues(24), ThresholdCost(0.5, 1e-9), Contributions(5))
        >>> found.rule.epsilon
        Fraction(1, 10)
    """
    events = unit.max_events if isinstance(unit, Contributions) else 1
    epsilon = cost.epsilon / events
    least, _ = exp_bracket((events - 1) * epsilon, _BITS)
    delta = cost.delta / events * Fraction(least, 1 << _BITS)
    try:
        rule = ThresholdRule(epsilon, delta, asked.quantile, asked.beta_lt)
    except (InvalidParameter, UnsupportedCombination) as problem:
        raise UnsupportedCombination(f"No clip can be drawn from first values: {problem}") from None
    return Threshold(asked, cost, rule)


def spends(
    guarantee: Guarantee, asked: Sequence[FirstValues | None], weights: Sequence[Fraction]
) -> tuple[ThresholdCost | None, ...]:
    """Return what the clip of each gauge spends: its share of the gauge's part of the guarantee.

    Args:
        guarantee: What all gauges may spend.
        asked: Of each gauge; None: its clip is not drawn from first values.
        weights: The part of each gauge in the split of the budget.

    Raises:
        UnsupportedCombination: A clip is drawn under a guarantee without epsilon and delta.

    Examples:
        >>> spends(ApproxDP(1, 1e-9), [FirstValues(24), None], [Fraction(3), Fraction(1)])
        (ThresholdCost(epsilon=Fraction(3, 8), delta=Fraction(3, 8000000000)), None)
    """
    if not any(asked):
        return (None,) * len(asked)
    if not isinstance(guarantee, ApproxDP):
        raise UnsupportedCombination(
            f"Expected an (epsilon, delta) guarantee beside a clip of first values, got "
            f"{guarantee!r}. Its noise may fail to hide a value with a small chance, which is a "
            "delta and nothing else. Give epsilon and delta, or use clip: auto."
        )
    whole = sum(weights)
    return tuple(
        None
        if one is None
        else ThresholdCost(
            guarantee.epsilon * one.share * weight / whole,
            guarantee.delta * one.delta_share * weight / whole,
        )
        for one, weight in zip(asked, weights, strict=True)
    )


def set_apart(costs: Sequence[ThresholdCost | None]) -> ApproxDP | None:
    """Return what all thresholds spend together; None: there are none."""
    found = [cost for cost in costs if cost is not None]
    if not found:
        return None
    epsilon = sum((cost.epsilon for cost in found), Fraction(0))
    return ApproxDP(epsilon, sum((cost.delta for cost in found), Fraction(0)))


def _percent(share: Fraction) -> str:
    return f"{100 * float(share):.3g} %"
