r"""The ledger: what each gauge costs, what is left, and nothing beyond it.

A ledger keeps one account in one currency (see ``costs.py``), in exact fractions.

PureDP, ZCDP and GaussianDP have one currency each. An (epsilon, delta) guarantee could be met in
any of the three; its ledger settles on one with its first charge (all gauges Gaussian: mu^2; all
pure: epsilon, delta unused; else: rho) and stays with it, because choosing the account after
having seen releases would be an adaptive choice that no composition theorem covers. So charge the
whole plan at once. Proof: ``docs/proofs/ledger.md``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, TypeVar, final

from tidegauge.checks import exact, shown
from tidegauge.errors import BudgetExceeded, InvalidParameter, UnsupportedCombination
from tidegauge.privacy.apart import (
    epsilon_at,
    refuse_not_set_apart,
    without_names,
    without_thresholds,
)
from tidegauge.privacy.conversion import (
    mu_from_epsilon_delta,
    rho_from_epsilon_delta,
)
from tidegauge.privacy.costs import (
    AnyCost,
    Currency,
    GaussianCost,
    PureCost,
    ThresholdCost,
    ZCDPCost,
    dp_event,
    price,
    share,
)
from tidegauge.privacy.guarantee import (
    ZCDP,
    ApproxDP,
    GaussianDP,
    Guarantee,
    Number,
    PureDP,
    rounded_up,
)
from tidegauge.privacy.rounding import sqrt_up

__all__ = ["Charge", "Ledger"]


_Kind = TypeVar("_Kind", GaussianCost, PureCost, ZCDPCost)


@final
@dataclass(frozen=True)
class Charge:
    """One line of the ledger.

    Args:
        name: The gauge that spends.
        cost: What it spends.
    """

    name: str
    cost: AnyCost


@final
class Ledger:
    """The account of one guarantee: it composes exactly, and refuses to exceed it.

    Guarantee:
        Everything measured under its charges satisfies the guarantee together, also when inputs,
        steps and the order of gauges are chosen from earlier releases.

    Args:
        guarantee: The promise for everything ever published.
        delta_for_names: What is set apart of its delta for the names of items that nobody knew
            before: the chance that one is shown that a single unit has, all gauges together. Noise
            is made for the rest. All of it counts as spent from the start.
        thresholds: What is set apart of its epsilon and its delta for private thresholds, all
            gauges together; in the same way. Not beside ``delta_for_names``.

    Raises:
        InvalidParameter: ``delta_for_names`` or ``thresholds`` is not a part of an (epsilon,
            delta) pair.

    Examples:
        >>> ledger = Ledger(PureDP(1))
        >>> shares = ledger.split([0.1] * 10, PureCost)
        >>> ledger.charge({f"gauge {i}": cost for i, cost in enumerate(shares)})
        >>> ledger.left
        Fraction(0, 1)
        >>> ledger
        <Ledger of PureDP(epsilon=1): 10 charges, 0 % of its epsilon left>
    """

    def __init__(
        self,
        guarantee: Guarantee,
        *,
        delta_for_names: Fraction = Fraction(0),
        thresholds: ApproxDP | None = None,
    ) -> None:
        if not isinstance(guarantee, Guarantee):
            raise InvalidParameter(
                f"Expected a guarantee, got a {type(guarantee).__name__}. Nothing could be "
                "refused. Write PureDP(1), ZCDP(0.5), GaussianDP(1) or ApproxDP(1, 1e-9)."
            )
        self._guarantee, self._delta_for_names = guarantee, delta_for_names
        self._noise, self._thresholds = guarantee, thresholds
        if delta_for_names:
            self._noise = without_names(guarantee, delta_for_names)
        if thresholds is not None:
            self._noise = without_thresholds(guarantee, delta_for_names, thresholds)
        self._charges: tuple[Charge, ...] = ()
        self._currency = Currency.MU_SQUARED if delta_for_names else _own_currency(guarantee)
        self._spent = Fraction(0)

    def __repr__(self) -> str:
        currency = self._currency or _natural_currency(self._guarantee)
        left = 100 * (1 - self._spent / _capacity(self._noise, currency))
        return (
            f"<Ledger of {self._guarantee!r}: {len(self._charges)} charges, "
            f"{float(left):.3g} % of its {currency.value} left>"
        )

    @property
    def guarantee(self) -> Guarantee:
        """The promise that this ledger keeps."""
        return self._guarantee

    @property
    def delta_for_names(self) -> Fraction:
        """What is set apart of delta for names of items; 0: nothing."""
        return self._delta_for_names

    @property
    def noise(self) -> Guarantee:
        """What noise is made for: the promise without what is set apart of it."""
        return self._noise

    @property
    def charges(self) -> tuple[Charge, ...]:
        """Every charge so far, in order."""
        return self._charges

    @property
    def currency(self) -> Currency | None:
        """What is counted; None: an (epsilon, delta) ledger before its first charge."""
        return self._currency

    @property
    def left(self) -> Fraction:
        """What is left, in the currency (before the first (epsilon, delta) charge: in mu^2)."""
        currency = self._currency or _natural_currency(self._guarantee)
        return _capacity(self._noise, currency) - self._spent

    def split(self, weights: Sequence[Number], kind: type[_Kind]) -> tuple[_Kind, ...]:
        """Divide what is left among gauges of one kind, in proportion to their weights.

        Nothing is charged. Shares of mu^2 (Gaussian) or epsilon (pure) add up to all that is
        left, exactly; in zCDP pure gauges divide rho, and each root is rounded down.

        Args:
            weights: One positive number a gauge.
            kind: ``GaussianCost``, ``PureCost`` or ``ZCDPCost``.

        Returns:
            One cost a gauge, in order.

        Raises:
            InvalidParameter: No weight, or one that is not a finite number above 0.
            UnsupportedCombination: The guarantee cannot be met by gauges of this kind.
            BudgetExceeded: Nothing is left.

        Examples:
            >>> Ledger(GaussianDP(1)).split([1, 3], GaussianCost)[0].mu
            Fraction(1, 2)
        """
        if not len(weights):
            raise InvalidParameter(
                "Expected at least one weight, got none. There is nobody to share with. Give one "
                "weight for each gauge."
            )
        parts = [
            exact("weight", w, above=0, why="A gauge without a share has no noise.")
            for w in weights
        ]
        currency = self._currency or _settled({kind})
        _refuse_unproven({kind}, currency, self._guarantee)
        left = _capacity(self._noise, currency) - self._spent
        if left <= 0:
            raise BudgetExceeded(
                f"Expected something left of {self._guarantee!r}, got nothing. Another gauge would "
                "exceed what was promised. Split before charging, or promise less elsewhere.",
                left=left,
                total=_capacity(self._noise, currency),
            )
        whole = sum(parts)
        return tuple(kind(share(left * part / whole, kind, currency)) for part in parts)

    def charge(self, costs: Mapping[str, AnyCost]) -> None:
        """Charge gauges, all of them or none.

        Args:
            costs: What each gauge spends, by name. The choice may depend on releases only as far
                as the currency is settled already, which it is after the first call.

        Raises:
            InvalidParameter: A name or a cost is not one.
            UnsupportedCombination: No proof covers this combination.
            BudgetExceeded: It does not fit; ``needed``, ``left`` and ``total`` are its attributes.

        Examples:
            >>> ledger = Ledger(ApproxDP(1, 1e-9))
            >>> ledger.charge(dict(zip(["visits"], ledger.split([1], GaussianCost))))
            >>> ledger.currency, ledger.left
            (<Currency.MU_SQUARED: 'mu^2'>, Fraction(0, 1))
        """
        for name, cost in costs.items():
            if not isinstance(name, str) or not isinstance(cost, AnyCost):
                raise InvalidParameter(
                    f"Expected a mapping from names to costs, got {shown(name)} -> "
                    f"{type(cost).__name__}. It cannot be accounted for. Use GaussianCost, "
                    "PureCost, ZCDPCost or ThresholdCost."
                )
        together = (*(charge.cost for charge in self._charges), *costs.values())
        refuse_not_set_apart(together, self._thresholds)
        kinds: set[type[AnyCost]] = {type(cost) for cost in costs.values()} - {ThresholdCost}
        if not kinds:
            self._charges += tuple(Charge(name, cost) for name, cost in costs.items())
            return
        currency = self._currency or _settled(kinds)
        _refuse_unproven(kinds, currency, self._guarantee)
        needed = sum((price(cost, currency) for cost in costs.values()), Fraction(0))
        left = _capacity(self._noise, currency) - self._spent
        if needed > left:
            raise _exceeded(needed, left, self._noise, currency)
        self._currency = currency
        self._spent += needed
        self._charges += tuple(Charge(name, cost) for name, cost in costs.items())

    def total(self, releases: int = 1) -> Guarantee | None:
        """Return what all charges amount to together, the strongest that is proved; None: nothing.

        Gaussian gauges alone are exactly GDP, whatever the currency. To be read for charges that
        were fixed before the first release; for charges chosen from releases, the guarantee
        itself is what is proved. With ``delta_for_names`` or ``thresholds`` it is an (epsilon,
        delta) pair, for a chance to be shown is no noise, and neither is a threshold. Thresholds
        alone are charged all that is set apart for them.

        Args:
            releases: How often everything was released; each time costs all of it again, and may
                exceed the guarantee.

        Examples:
            >>> ledger = Ledger(ZCDP(0.5))
            >>> ledger.charge({"visits": GaussianCost(1)})
            >>> ledger.total()
            GaussianDP(mu=1)
        """
        noise, apart = self.spent_on_noise(releases), self._thresholds
        if noise is not None and self._delta_for_names:
            return self._with_names(noise, releases)
        if apart is None or not self._charges:
            return noise
        if noise is None:
            return ApproxDP(releases * apart.epsilon, releases * apart.delta)
        return self._with_thresholds(noise, apart, releases)

    def spent_on_noise(self, releases: int = 1) -> PureDP | ZCDP | GaussianDP | None:
        """Return what noise and choices amount to, without names and thresholds; None: nothing.

        Args:
            releases: How often everything was released; each time costs all of it again.

        Examples:
            >>> ledger = Ledger(ApproxDP(1, 1e-9), delta_for_names=Fraction(1, 10**10))
            >>> ledger.charge({"visits": GaussianCost(Fraction(1, 100))})
            >>> ledger.spent_on_noise(4), ledger.total().delta
            (GaussianDP(mu=0.2), Fraction(1, 1000000000))
        """
        costs = [c.cost for c in self._charges if not isinstance(c.cost, ThresholdCost)]
        if not costs:
            return None
        if all(isinstance(cost, GaussianCost) for cost in costs):
            return GaussianDP(sqrt_up(releases * _sum(self._charges, Currency.MU_SQUARED)))
        if all(isinstance(cost, PureCost) for cost in costs) and (
            self._currency is Currency.EPSILON
        ):
            return PureDP(releases * self._spent)
        if self._currency is Currency.RHO:
            return ZCDP(releases * self._spent)
        return GaussianDP(sqrt_up(releases * self._spent))

    def _with_names(self, noise: Guarantee, releases: int) -> ApproxDP:
        """What noise and names amount to together: their deltas add up."""
        assert isinstance(self._noise, ApproxDP)
        epsilon = epsilon_at(noise, releases * self._noise.delta)
        if releases == 1 and not self.left:  # all of it, but for the last digit of a conversion
            epsilon = self._noise.epsilon
        return ApproxDP(epsilon, releases * (self._noise.delta + self._delta_for_names))

    def _with_thresholds(self, noise: Guarantee, apart: ApproxDP, releases: int) -> ApproxDP:
        """What noise and thresholds amount to together: both parameters add up."""
        assert isinstance(self._noise, ApproxDP)
        epsilon, delta = epsilon_at(noise, self._noise.delta), self._noise.delta
        if releases == 1 and not self.left:
            epsilon = self._noise.epsilon
        return ApproxDP(epsilon + releases * apart.epsilon, delta + releases * apart.delta)

    def events(self) -> dict[str, Any]:
        """Return the charges as a dp_accounting ``ComposedDpEvent``, in plain values.

        ``dp_accounting.dp_event.DpEvent.from_named_tuple`` on equal fields gives its events back,
        so that a stranger can recompute epsilon. Rounded so that they never claim less than was
        spent. With ``delta_for_names``, ask for epsilon at delta - delta_for_names, and with
        ``thresholds`` at delta - thresholds.delta. (dp_accounting has no event that adds to delta
        alone.)

        Examples:
            >>> ledger = Ledger(GaussianDP(1))
            >>> ledger.charge({"visits": GaussianCost(Fraction(1, 4))})
            >>> [event["class_name"] for event in ledger.events()["events"]]
            ['GaussianDpEvent']
        """
        return dp_event("ComposedDpEvent", events=[charge.cost.event() for charge in self._charges])


def _own_currency(guarantee: Guarantee) -> Currency | None:
    """The currency of a guarantee that has only one."""
    return None if isinstance(guarantee, ApproxDP) else _natural_currency(guarantee)


def _natural_currency(guarantee: Guarantee) -> Currency:
    """The currency that a guarantee is usually kept in."""
    if isinstance(guarantee, PureDP):
        return Currency.EPSILON
    return Currency.RHO if isinstance(guarantee, ZCDP) else Currency.MU_SQUARED


def _settled(kinds: set[type[AnyCost]]) -> Currency:
    """The currency that an (epsilon, delta) ledger takes with its first charge."""
    if kinds == {GaussianCost}:
        return Currency.MU_SQUARED
    return Currency.EPSILON if kinds == {PureCost} else Currency.RHO


@lru_cache(maxsize=64)
def _capacity(guarantee: Guarantee, currency: Currency) -> Fraction:
    """How much of a currency a guarantee allows, rounded down."""
    match guarantee:
        case PureDP(epsilon=epsilon):
            return epsilon
        case ZCDP(rho=rho):
            return rho
        case GaussianDP(mu=mu):
            return mu**2
        case ApproxDP(epsilon=epsilon, delta=delta):
            if currency is Currency.EPSILON:
                return epsilon
            if currency is Currency.RHO:
                return rho_from_epsilon_delta(epsilon, delta)
            return mu_from_epsilon_delta(epsilon, delta) ** 2


def _sum(charges: Sequence[Charge], currency: Currency) -> Fraction:
    """What charges take from an account."""
    return sum((price(charge.cost, currency) for charge in charges), Fraction(0))


def _refuse_unproven(kinds: set[type[AnyCost]], currency: Currency, guarantee: Guarantee) -> None:
    """Refuse what no composition theorem covers."""
    if ZCDPCost in kinds and currency is not Currency.RHO:
        raise UnsupportedCombination(
            f"Expected noise alone under {guarantee!r} counted in {currency.value}, got choices of "
            "items. What they cost is known in rho. Promise rho (ZCDP), or give epsilon and a "
            "delta (ApproxDP) and charge the whole plan at once."
        )
    if GaussianCost in kinds and currency is Currency.EPSILON:
        raise UnsupportedCombination(
            f"Expected pure gauges under {guarantee!r} counted in epsilon, got a Gaussian gauge. "
            "Gaussian noise is epsilon-DP for no epsilon. Give a delta (ApproxDP) and charge the "
            "whole plan at once, or use discrete Laplace noise."
        )


def _exceeded(
    needed: Fraction, left: Fraction, guarantee: Guarantee, currency: Currency
) -> BudgetExceeded:
    """The refusal, with its facts."""
    total = _capacity(guarantee, currency)
    return BudgetExceeded(
        f"Expected charges within {guarantee!r}, got {currency.value}={rounded_up(needed)}: "
        f"{float(left):.6g} is left of {float(total):.6g}, {rounded_up(needed - left)} too little. "
        "Together they would exceed what was promised. Give the gauges smaller shares, "
        "or publish fewer of them.",
        needed=needed,
        left=left,
        total=total,
    )
