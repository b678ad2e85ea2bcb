"""What is set apart of an (epsilon, delta) guarantee before noise is made for the rest of it.

Names of items cost a chance, which is a delta; a private threshold costs an epsilon and a delta.
Neither has a price in a ledger's currency. Proof: ``docs/proofs/ledger.md``.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

from tidegauge.checks import shown
from tidegauge.errors import BudgetExceeded, InvalidParameter
from tidegauge.privacy.conversion import epsilon_from_mu, epsilon_from_rho
from tidegauge.privacy.costs import AnyCost, ThresholdCost
from tidegauge.privacy.guarantee import ZCDP, ApproxDP, GaussianDP, Guarantee

__all__ = ["epsilon_at", "refuse_not_set_apart", "without_names", "without_thresholds"]


def without_names(guarantee: Guarantee, delta: Fraction) -> ApproxDP:
    """Return what is left for noise of a guarantee that pays for names.

    Raises:
        InvalidParameter: It has no such part.
    """
    if not isinstance(guarantee, ApproxDP) or not 0 < delta < guarantee.delta:
        raise InvalidParameter(
            f"Expected delta_for_names to be a part of a delta, got {shown(delta)} under "
            f"{guarantee!r}. Names are shown with a small chance, and noise needs a delta, too. "
            "Give a part of it."
        )
    return ApproxDP(guarantee.epsilon, guarantee.delta - delta)


def without_thresholds(guarantee: Guarantee, names: Fraction, apart: ApproxDP) -> ApproxDP:
    """Return what is left for noise of a guarantee that pays for thresholds.

    Raises:
        InvalidParameter: It has no such part, or pays for names as well.
    """
    if isinstance(guarantee, ApproxDP) and not names:
        epsilon, delta = guarantee.epsilon - apart.epsilon, guarantee.delta - apart.delta
        if epsilon > 0 and delta > 0:
            return ApproxDP(epsilon, delta)
    raise InvalidParameter(
        f"Expected thresholds to have a part of an epsilon and a delta, got {apart!r} under "
        f"{guarantee!r}, or names beside them. A threshold needs both, and so does the noise. "
        "Promise epsilon and delta (ApproxDP), and give a part of each."
    )


def refuse_not_set_apart(costs: Iterable[AnyCost], apart: ApproxDP | None) -> None:
    """Refuse thresholds that spend more than was set apart for them.

    Raises:
        BudgetExceeded: In epsilon or in delta; its attributes are of the one that is exceeded.
    """
    drawn = [cost for cost in costs if isinstance(cost, ThresholdCost)]
    epsilon = sum((cost.epsilon for cost in drawn), Fraction(0))
    delta = sum((cost.delta for cost in drawn), Fraction(0))
    if not drawn or (apart and epsilon <= apart.epsilon and delta <= apart.delta):
        return
    nothing = Fraction(0)
    parts = (nothing, nothing) if apart is None else (apart.epsilon, apart.delta)
    needed, most = (epsilon, parts[0]) if epsilon > parts[0] else (delta, parts[1])
    raise BudgetExceeded(
        f"Expected thresholds within what is set apart for them, got more than {apart!r}. Noise is "
        "made for the rest, so that together they would exceed what was promised. Give "
        "Ledger(..., thresholds=ApproxDP(epsilon, delta)) their sums.",
        needed=needed,
        left=most,
        total=most,
    )


def epsilon_at(spent: Guarantee, delta: Fraction) -> Fraction:
    """Return an epsilon that what was spent has at a delta."""
    match spent:
        case GaussianDP(mu=mu):
            return epsilon_from_mu(mu, delta)
        case ZCDP(rho=rho):
            return epsilon_from_rho(rho, delta)
        case _:
            return spent.epsilon
