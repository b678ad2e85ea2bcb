"""What the systems cost, and the noise that a guarantee pays for: exact, rounded to the safe side.

Facts in zCDP (Bun and Steinke 2016; Cesar and Rogers 2021): Gaussian noise of std tau on counts
that move by D in L2 costs D^2 / (2 tau^2); a pick by Gumbel noise of scale tau / 2 on counts that
all move by 0 or 1 in one direction costs 1 / (2 tau^2), four times that if they move both ways; an
epsilon-DP run costs epsilon^2 / 2. Costs add up.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, final

from tidegauge.checks import exact, shown
from tidegauge.errors import InvalidParameter, UnsupportedCombination
from tidegauge.mechanisms.selection import pick_rho
from tidegauge.papers.cardoso_rogers.digits import level_count, most_blocks, steps_by_digit_sum
from tidegauge.privacy.conversion import (
    epsilon_from_mu,
    epsilon_from_rho,
    mu_from_epsilon_delta,
    rho_from_epsilon_delta,
    rho_from_mu_squared,
)
from tidegauge.privacy.curve import log_normal, mills_ratio
from tidegauge.privacy.guarantee import ZCDP, ApproxDP, GaussianDP, Guarantee
from tidegauge.privacy.rounding import ceil_decimal, least, log_fraction, sqrt_up
from tidegauge.privacy.unit import NeighboringRelation, relation_of

__all__ = [
    "Budget",
    "budget_of",
    "constant_quantile",
    "cost_of",
    "gauss_rho",
    "gumbel_offset",
    "item_rho",
    "moved_items",
    "normal_quantile",
    "selection_rho",
    "sparse_rho",
]

_MARGIN = 1e-10
_WHY_SHARE = "Thresholds take it from delta, and the rest is left for the noise. Write 0.5."


def moved_items(max_items: int, relation: object) -> int:
    """Return in how many items two neighboring histograms can differ."""
    replaced = relation_of(relation) is NeighboringRelation.REPLACE_ONE
    return max_items * (2 if replaced else 1)


def gauss_rho(moved: int, std: Fraction, max_change: int = 1) -> Fraction:
    """Return the zCDP cost of Gaussian noise on counts of which so many move."""
    return Fraction(moved * max_change**2) / (2 * std * std)


def item_rho(base: int, end: int, moved: int, std: Fraction, max_change: int = 1) -> Fraction:
    """Return the zCDP cost of KnownBase and UnkBase: an event lies in at most L blocks.

    Examples:
        >>> item_rho(2, 1000, 3, Fraction(10))
        Fraction(3, 20)
    """
    return level_count(base, end) * gauss_rho(moved, std, max_change)


def selection_rho(picks: int, std: Fraction, relation: object) -> Fraction:
    """Return the zCDP cost of picks by Gumbel noise of scale std / 2."""
    return pick_rho(picks, 1, std / 2, relation_of(relation))


def sparse_rho(
    base: int,
    end: int,
    k: int,
    switches: int,
    std_selection: Fraction,
    std_counts: Fraction,
    epsilon: Fraction,
    *,
    items: int | None = None,
    relation: object = "add_or_remove_one",
) -> Fraction:
    """Return the zCDP cost of SparseGumb: selections, counts of all items ever shown, and tests.

    Examples:
        >>> tau, std, eps = Fraction(50), Fraction(100), Fraction(1, 20)
        >>> float(sparse_rho(2, 1000, 5, 10, tau, std, eps))
        0.051
    """
    shown_items = k * (switches + 1) if items is None else min(items, k * (switches + 1))
    picks = selection_rho(k * (switches + 1), std_selection, relation)
    return picks + item_rho(base, end, shown_items, std_counts) + switches * epsilon**2 / 2


@final
@dataclass(frozen=True)
class Budget:
    """What a guarantee leaves for noise and for thresholds.

    Attributes:
        rho: zCDP of all noise together.
        delta: Chance that an item of one stream alone passes a threshold; 0 for known items.
    """

    rho: Fraction
    delta: Fraction


def budget_of(
    guarantee: Any, *, gaussian: bool, unknown: bool, delta_share: object = Fraction(1, 2)
) -> Budget:
    """Split a guarantee.

    Args:
        guarantee: What is promised for everything together.
        gaussian: All noise is Gaussian, so that its exact curve holds.
        unknown: Items are unknown, so that thresholds need a part of delta.
        delta_share: That part.

    Raises:
        UnsupportedCombination: The guarantee cannot be met by such noise.
        InvalidParameter: It is none, or the share is not between 0 and 1.
    """
    share = exact("delta_share", delta_share, above=0, below=1, why=_WHY_SHARE)
    if not isinstance(guarantee, Guarantee):
        raise InvalidParameter(
            f"Expected guarantee to be a guarantee, got {shown(guarantee)}. Nothing could be "
            "promised. Write ApproxDP(1, 1e-6), or ZCDP(0.1) for known items."
        )
    if isinstance(guarantee, ApproxDP):
        delta = share * guarantee.delta if unknown else Fraction(0)
        spent = guarantee.epsilon, guarantee.delta - delta
        if gaussian:
            return Budget(rho_from_mu_squared(mu_from_epsilon_delta(*spent) ** 2), delta)
        return Budget(rho_from_epsilon_delta(*spent), delta)
    if unknown:
        raise UnsupportedCombination(
            f"Expected ApproxDP for unknown items, got {guarantee!r}. An item of one event alone "
            "is shown with a small chance whatever the noise, which only a delta can promise. "
            "Write ApproxDP(1, 1e-6), or declare the items."
        )
    if isinstance(guarantee, ZCDP):
        return Budget(guarantee.rho, Fraction(0))
    if isinstance(guarantee, GaussianDP) and gaussian:
        return Budget(rho_from_mu_squared(guarantee.mu**2), Fraction(0))
    raise UnsupportedCombination(
        f"Expected ApproxDP or ZCDP, got {guarantee!r}. Gaussian noise is not pure, and picks by "
        "Gumbel noise are not Gaussian. Write ApproxDP(1, 1e-6) or ZCDP(0.1)."
    )


def cost_of(rho: Fraction, delta: Fraction, *, gaussian: bool) -> Guarantee:
    """Return what noise of a cost and thresholds of a delta promise.

    zCDP without thresholds; with them (epsilon, 2 delta), one delta for them and one for the noise.
    """
    if not delta:
        return ZCDP(rho)
    if gaussian:
        # squares are exact; their root is rounded up
        return ApproxDP(epsilon_from_mu(sqrt_up(2 * rho), delta), 2 * delta)
    return ApproxDP(epsilon_from_rho(rho, delta), 2 * delta)


def normal_quantile(chance: Fraction) -> Fraction:
    """Return a z >= 0 above which a standard normal lies with at most this chance, rounded up.

    Examples:
        >>> round(float(normal_quantile(Fraction(1, 10**6))), 6)
        4.753424
    """
    if chance >= Fraction(1, 2):
        return Fraction(0)
    goal = log_fraction(chance)
    goal -= _MARGIN * (1 - goal)
    return ceil_decimal(least(lambda x: _log_tail(x) <= goal))


def constant_quantile(base: int, end: int, chance: Fraction) -> Fraction:
    """Return an x with sum over steps of P(N(0, digit sum) > x) at most the chance, rounded up.

    The threshold of UnkBase, less one and over tau: the same at all steps.

    Args:
        base: Of the digits.
        end: The last step.
        chance: For all steps together.

    Examples:
        >>> round(float(constant_quantile(2, 1000, Fraction(1, 10**6))), 6)
        15.752605
    """
    counts = [(math.log(c), n) for n, c in enumerate(steps_by_digit_sum(base, end)) if c]
    goal = log_fraction(chance)
    goal -= _MARGIN * (1 + abs(goal))

    def below(x: float) -> bool:
        logs = [log_count + _log_tail(x / math.sqrt(n)) for log_count, n in counts]
        top = max(logs)
        return top + math.log(math.fsum(math.exp(one - top) for one in logs)) <= goal

    return ceil_decimal(least(below))


def worst_quantile(base: int, end: int, chance: Fraction) -> Fraction:
    """Return the naive threshold, less one and over tau: that of the worst step, at all steps.

    Examples:
        >>> round(float(worst_quantile(2, 1000, Fraction(1, 10**6))), 6)
        17.993421
    """
    return sqrt_up(Fraction(most_blocks(base, end))) * normal_quantile(chance / end)


def gumbel_offset(std: Fraction, chance: Fraction) -> Fraction:
    """Return the distance by which a Gumbel key of scale std / 2 passes another this rarely.

    The difference of two has a logistic law, so that it is (std / 2) ln(1 / chance - 1); at least
    0, rounded up.

    Examples:
        >>> round(1 + float(gumbel_offset(Fraction(1), Fraction(1, 10**6))), 6)
        7.907755
    """
    odds = 1 / chance - 1
    if odds <= 1:
        return Fraction(0)
    return std / 2 * ceil_decimal(log_fraction(odds) * (1 + 1e-13))


def _log_tail(x: float) -> float:
    return log_normal(x) + math.log(mills_ratio(x))
