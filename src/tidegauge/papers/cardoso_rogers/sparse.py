"""SparseGumb: the top k of a stream of sets of any size, chosen anew only when it has to be."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, final

import numpy as np

from tidegauge.checks import exact, integer, shown
from tidegauge.errors import InvalidInput, InvalidParameter
from tidegauge.mechanisms.item_noise import ItemNoise
from tidegauge.mechanisms.oneshot import LATTICE_BITS, AboveThreshold, NoisyOrder
from tidegauge.mechanisms.selection import epsilon_for, quiet_margin, std_for
from tidegauge.papers.cardoso_rogers.accounting import (
    budget_of,
    item_rho,
    selection_rho,
    sparse_rho,
)
from tidegauge.papers.cardoso_rogers.events import (
    LARGEST_TOTAL,
    Items,
    ItemSystem,
    Shown,
    counts_of,
    domain_of,
    encoded,
)
from tidegauge.privacy.guarantee import ZCDP, Guarantee
from tidegauge.privacy.unit import NeighboringRelation, relation_of
from tidegauge.strategies.strategy import MOST_STEPS, Int64

__all__ = ["SparseGumb", "SparseNoise"]

_WHY_SHARES = "They split the cost among selections, counts and tests. Write (1, 2, 1)."


@final
@dataclass(frozen=True)
class SparseNoise:
    """The noise of :class:`SparseGumb`.

    Args:
        selection: tau of selections, whose Gumbel noise has the scale tau / 2.
        counts: Standard deviation of the noise of one block of a count.
        epsilon: Of one run of tests, until it passes.

    Raises:
        InvalidParameter: One of them is not above 0.

    Examples:
        >>> SparseNoise(50, 100, 0.05).epsilon
        Fraction(1, 20)
    """

    selection: Fraction
    counts: Fraction
    epsilon: Fraction

    def __post_init__(self) -> None:
        why = "More means less noise of it, or more. Write SparseNoise(50, 100, 0.05)."
        for name in ("selection", "counts", "epsilon"):
            object.__setattr__(self, name, exact(name, getattr(self, name), above=0, why=why))


@final
class SparseGumb(ItemSystem):
    """Shows k items and their noisy running counts; tests at each step whether they should change.

    The items are chosen by Gumbel noise at the first step. At later ones a noisy test tells whether
    an item that is not shown leads one that is by a margin; if so, all k are chosen anew, at most
    ``switches`` times. The counts' noise is that of :class:`~.base_mech.BaseMech`, a function of
    item and block, so that an item that returns has its old noise.

    Guarantee:
        For one event, a set of any number of known items, over all steps. Proof:
        docs/proofs/cardoso_rogers.md.

    Args:
        items: All items, public; text.
        k: How many are shown; all of them, without selections and tests, if there are no more.
        base: Of the blocks; see :func:`~.digits.best_base`.
        end: The last step.
        guarantee: ZCDP or ApproxDP; this or ``noise``.
        switches: How often at most the items change; after that they stay.
        margin: By how much another item must lead, an integer; None: so much that noise alone
            causes a switch in at most one of twenty streams.
        noise: The noise, in place of a guarantee.
        shares: How a guarantee's cost is split among selections, counts and tests.
        against_published: Compare with the published counts of the items that are shown, in place
            of the exact ones; under ``"add_or_remove_one"`` the test then needs half the noise.
        neighboring_relation: Under ``"replace_one"`` selections cost four times as much, and the
            test's noise is doubled.

    Raises:
        InvalidParameter: A parameter is impossible.
        UnsupportedCombination: The guarantee is pure or Gaussian.

    Cost: k draws a step, and time for each item at a step; memory for each item.

    Examples:
        >>> noise = SparseNoise(50, 100, 0.05)
        >>> names = [f"item {i}" for i in range(100)]
        >>> system = SparseGumb(names, 5, 2, 1000, switches=10, noise=noise)
        >>> system.cost, len(system.update({"item 1", "item 2"}).items)
        (ZCDP(rho=0.051), 5)

    References:
        Cardoso and Rogers 2022, section 5, as derived in ``docs/proofs/cardoso_rogers.md``.
    """

    def __init__(
        self,
        items: Any,
        k: int,
        base: int,
        end: int,
        guarantee: Guarantee | None = None,
        *,
        switches: int,
        margin: int | None = None,
        noise: SparseNoise | None = None,
        shares: tuple[float, float, float] = (1, 2, 1),
        against_published: bool = False,
        neighboring_relation: str = "add_or_remove_one",
    ) -> None:
        last = integer("end", end, low=1, high=MOST_STEPS, why="Give the number of the last step.")
        self._domain = domain_of(items)
        size = len(self._domain)
        asked = integer("k", k, low=1, high=1 << 40, why="So many items are shown. Write 10.")
        self.k = min(asked, size)
        why = "Each is another selection and another run of tests. Write 10."
        self._left = integer("switches", switches, low=0, high=1 << 20, why=why)
        if self.k == size:
            self._left = 0
        if (guarantee is None) is (noise is None):
            raise InvalidParameter(
                "Expected either a guarantee or noise, got both or neither. They could disagree. "
                "Leave one of the two out."
            )
        relation = relation_of(neighboring_relation)
        if noise is None:
            assert guarantee is not None
            noise = self._noise_for(base, last, guarantee, shares, relation)
        self.noise, self._relation = noise, relation
        self._published = bool(against_published)
        replaced = relation is NeighboringRelation.REPLACE_ONE
        self._counts = np.zeros(size, np.int64)
        self._items = Items(self._domain)
        self._bytes = [encoded(name) for name in self._domain]
        self._order = NoisyOrder(noise.selection / 2)
        self._blocks = ItemNoise(base, last, noise.counts)
        self._tests = AboveThreshold(
            noise.epsilon,
            2 if replaced and not self._published else 1,
            monotone=self._published and not replaced,
        )
        self._margin = self._checked_margin(margin, last, replaced)
        self._shown = np.arange(size)
        self._begin(base, last, ZCDP(self.rho_of(base, last)) if guarantee is None else guarantee)

    @property
    def source(self) -> str:
        """Cardoso and Rogers 2022, section 5."""
        return "Cardoso and Rogers 2022, section 5 (SparseGumb)"

    @property
    def switches_left(self) -> int:
        """How often the items can still change; at 0 they stay for ever. Public."""
        return self._left

    @property
    def margin(self) -> int:
        """By how much another item must lead."""
        return self._margin

    def close(self) -> None:
        """Erase the keys and the counts."""
        for one in (self._order, self._blocks, self._tests):
            one.close()
        self._counts[:] = 0

    def rho_of(self, base: int, end: int) -> Fraction:
        """Return the zCDP cost of a stream that has not begun yet."""
        size, noise = len(self._domain), self.noise
        if self.k == size:
            return item_rho(base, end, size, noise.counts)
        return sparse_rho(
            base,
            end,
            self.k,
            self._left,
            noise.selection,
            noise.counts,
            noise.epsilon,
            items=size,
            relation=self._relation,
        )

    def _noise_for(
        self,
        base: int,
        end: int,
        guarantee: Guarantee,
        shares: tuple[float, float, float],
        relation: NeighboringRelation,
    ) -> SparseNoise:
        """The noise that a guarantee pays for."""
        rho = budget_of(guarantee, gaussian=False, unknown=False).rho
        parts = [exact("shares", share, above=0, why=_WHY_SHARES) for share in shares]
        if len(parts) != 3:
            raise InvalidParameter(f"Expected three shares, got {shown(shares)}. {_WHY_SHARES}")
        picks = Fraction(0) if self.k == len(self._domain) else parts[0]
        tests = parts[2] if self._left else Fraction(0)
        whole = picks + parts[1] + tests
        ever = min(len(self._domain), self.k * (self._left + 1))
        counted = item_rho(base, end, ever, Fraction(1))
        chosen = selection_rho(self.k * (self._left + 1), Fraction(1), relation)
        counts = std_for(rho * parts[1] / whole, counted)
        # without selections or tests their noise is never drawn
        selection = std_for(rho * picks / whole, chosen) if picks else Fraction(1)
        epsilon = epsilon_for(rho * tests / whole, self._left) if tests else Fraction(1)
        return SparseNoise(selection, counts, epsilon)

    def _checked_margin(self, margin: Any, end: int, replaced: bool) -> int:
        """The margin, or one that noise alone rarely passes."""
        if margin is not None:
            why = "It is a lead in counts. Leave it out for one that noise rarely passes."
            return integer("margin", margin, low=0, high=1 << 40, why=why)
        moved = 2 if replaced and not self._published else 1
        times = 2 if self._published and not replaced else 4
        return quiet_margin(self.noise.epsilon, moved, times, end, self._left)

    def _checked_step(self, step: Any) -> dict[str, int]:
        counts = counts_of(step, None)
        if not counts.keys() <= self._domain.keys():
            raise InvalidInput(
                "Expected items that were declared, got another one. It belongs to no count. "
                "Declare it, or drop it from every event."
            )
        return counts

    def _check_live(self) -> None:
        self._blocks.check_live()

    @property
    def _block_std(self) -> float:
        return self._blocks.law.std / (1 << LATTICE_BITS)

    def _released(self, counts: dict[str, int]) -> Shown:
        places = self._items.places(counts)
        self._counts[places] += np.fromiter(counts.values(), np.int64, len(counts))
        np.minimum(self._counts, LARGEST_TOTAL, out=self._counts)
        self._blocks.advance()
        if self._step == 0:
            self._choose()
        elif self._left and self._tests.passed(self._lead()):
            self._left -= 1
            self._choose()
        noisy = np.zeros(len(self._counts))
        noisy[self._shown] = self._blocks.of(self._counts[self._shown]) / (1 << LATTICE_BITS)
        mask = np.zeros(len(self._counts), bool)
        mask[self._shown] = True
        return self._items.shown(mask, noisy)

    def _choose(self) -> None:
        """Choose the items anew, and begin a run of tests if another switch is paid for."""
        if self.k < len(self._counts):
            order: Int64 = self._order.of(self._counts << LATTICE_BITS)
            self._shown = np.sort(order[: self.k])
        self._blocks.replace([self._bytes[place] for place in self._shown.tolist()])
        if self._left:
            self._tests.restart(self._margin)

    def _lead(self) -> int:
        """By how much the best item that is not shown leads the least that is."""
        hidden = np.ones(len(self._counts), bool)
        hidden[self._shown] = False
        best = int(self._counts[hidden].max())
        if self._published:
            return best - (int(self._blocks.of(self._counts[self._shown]).min()) >> LATTICE_BITS)
        return best - int(self._counts[self._shown].min())
