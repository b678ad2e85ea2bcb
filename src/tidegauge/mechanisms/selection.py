r"""How a few cells are chosen to be shown, of many that one event may touch, and what that costs.

Where an event may be in any number of cells, noise for all of them has no bound. So k cells are
shown at a time: those that are first by Gumbel noise at the first step; at later steps a noisy test
tells whether a cell that is not shown leads one that is, by a margin, and then all k are chosen
anew, ``switches`` times at most. So no more than ``k (switches + 1)`` cells are ever shown, and an
event is paid for in so many, whatever it touches. Proof: ``docs/proofs/sparse.md``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import final

from tidegauge.checks import exact, integer
from tidegauge.errors import UnsupportedCombination
from tidegauge.privacy.costs import GaussianCost, ZCDPCost
from tidegauge.privacy.rounding import ceil_decimal, sqrt_down, sqrt_up
from tidegauge.privacy.unit import NeighboringRelation, Neighbors

__all__ = [
    "Select",
    "Selection",
    "epsilon_for",
    "pick_rho",
    "quiet_margin",
    "shown_cells",
    "std_for",
]

_PICKS, _COUNTS, _TESTS = 1, 2, 1  # shares of a gauge's cost
_CHANCE = 0.05
_LATTICE = 1 << 20  # picks are made on it
_MOST = 1 << 40
_LARGEST_SCALE = 1 << 30  # of picks, in grains
_WHY_K = "So many cells are shown at a time. Write 10."
_WHY_SWITCHES = "Each is another choice of k cells and another run of tests. Write 20."
_WHY_MARGIN = "It is a lead in counts. Leave it out for one that noise rarely passes."
_WHY_SCALE = "Picks need noise of their own. Use the plan as it was written."


@final
@dataclass(frozen=True)
class Select:
    """What is asked of a choice of cells.

    Args:
        k: How many are shown at a time; fewer than there are.
        switches: How often they change at most, at least once.
        margin: By how many grains another cell has to lead; None: by so many that noise alone
            rarely does.

    Raises:
        InvalidParameter: A number is out of range.
    """

    k: int
    switches: int
    margin: int | None = None

    def __post_init__(self) -> None:
        integer("k", self.k, low=1, high=1 << 20, why=_WHY_K)
        integer("switches", self.switches, low=1, high=1 << 20, why=_WHY_SWITCHES)
        if self.margin is not None:
            integer("margin", self.margin, low=0, high=_MOST, why=_WHY_MARGIN)

    @property
    def counts_share(self) -> Fraction:
        """The part of the gauge's rho that noise of its counts gets."""
        return Fraction(_COUNTS, _PICKS + _COUNTS + _TESTS)

    def bought(self, cost: GaussianCost, neighbors: Neighbors, end: int | None) -> Selection:
        """Return the choice that goes with counts of a cost, so that the shares are kept.

        Args:
            cost: Of the counts.
            neighbors: Who is protected.
            end: The last step, for a margin that is not given.

        Raises:
            UnsupportedCombination: There is neither a margin nor an end.
        """
        rho = cost.mu_squared / 2
        picks = self.k * (self.switches + 1)
        price = pick_rho(picks, _change(neighbors), Fraction(1), neighbors.relation)
        scale = std_for(rho * Fraction(_PICKS, _COUNTS), price)
        epsilon = epsilon_for(rho * Fraction(_TESTS, _COUNTS), self.switches)
        margin = self.margin
        if margin is None:
            if end is None:
                raise UnsupportedCombination(
                    "Expected end or a margin beside method: sparse_gumb, got neither. By how much "
                    "a cell has to lead, so that noise alone rarely makes a switch, depends on how "
                    "many steps there are. Give end, or margin: 100, say."
                )
            margin = quiet_margin(epsilon, _lead_change(neighbors), 4, end, self.switches)
            margin += self._picked_lead(scale, neighbors)
        if scale >= _LARGEST_SCALE or margin > _MOST:
            raise UnsupportedCombination(
                "Expected choices whose noise is below 2^30 grains, got more noise than counts "
                "have room for. No choice would mean anything. Raise epsilon or rho, ask for fewer "
                "switches, or protect fewer events of an id"
            )
        return Selection(self.k, self.switches, margin, scale, epsilon)

    def _picked_lead(self, scale: Fraction, neighbors: Neighbors) -> int:
        """By how much a cell that no choice picked rarely leads one that it did.

        The difference of two Gumbel draws passes L with a chance below e^(-L / scale): over all
        pairs and choices in at most one of twenty streams.
        """
        pairs = max(1, neighbors.known_cells - self.k) * self.k * (self.switches + 1)
        return math.ceil(float(scale) * math.log(pairs / _CHANCE))


@final
@dataclass(frozen=True)
class Selection:
    r"""How cells are chosen: numbers that are planned, stored and paid for.

    Args:
        k: How many are shown at a time.
        switches: How often they change at most.
        margin: By how many grains another cell has to lead, before noise.
        scale: Of the Gumbel noise of picks, in grains.
        epsilon: Of one run of tests, from a fresh threshold to the first that passes.

    Raises:
        InvalidParameter: A number is out of range.

    Examples:
        Ten of hundred cells, twenty switches; an event adds at most 1 to each cell:

        >>> from tidegauge.privacy.unit import Event
        >>> add = NeighboringRelation.ADD_OR_REMOVE_ONE
        >>> event = Neighbors(Event(), add, 0, 1, shown_cells(10, 20, 100, add), 100)
        >>> float(Selection(10, 20, 400, Fraction(25), Fraction(1, 20)).cost(event).rho)
        0.067
    """

    k: int
    switches: int
    margin: int
    scale: Fraction
    epsilon: Fraction

    def __post_init__(self) -> None:
        Select(self.k, self.switches, self.margin)
        for name in ("scale", "epsilon"):
            exact(name, getattr(self, name), above=0, below=_LARGEST_SCALE, why=_WHY_SCALE)

    def cost(self, neighbors: Neighbors) -> ZCDPCost:
        """Return what all choices and tests cost together, over the whole stream."""
        picks = self.k * (self.switches + 1)
        rho = pick_rho(picks, _change(neighbors), self.scale, neighbors.relation)
        return ZCDPCost(rho + self.switches * self.epsilon**2 / 2)

    def lead_change(self, neighbors: Neighbors) -> int:
        """Return how far one unit moves the lead of the best hidden cell, in grains."""
        return _lead_change(neighbors)

    def noticed(self, neighbors: Neighbors, end: int | None) -> int | None:
        """Return a lead that a test passes at once, but for one of twenty streams; None: no end."""
        if end is None:
            return None
        quiet = quiet_margin(self.epsilon, _lead_change(neighbors), 4, end, self.switches)
        return self.margin + quiet


def shown_cells(k: int, switches: int, cells: int, relation: NeighboringRelation) -> int:
    """Return in how many cells an event counts, of those that are ever shown.

    Two events that replace one another are in as many together: each is charged half of them.

    Examples:
        >>> shown_cells(10, 20, 1000, NeighboringRelation.ADD_OR_REMOVE_ONE)
        210
        >>> shown_cells(10, 20, 150, NeighboringRelation.REPLACE_ONE)
        75
    """
    ever = min(cells, k * (switches + 1))
    return ever if relation is NeighboringRelation.ADD_OR_REMOVE_ONE else -(-ever // 2)


def pick_rho(picks: int, change: int, scale: Fraction, relation: NeighboringRelation) -> Fraction:
    """Return the zCDP cost of picks by Gumbel noise, of scores that one unit moves so far.

    Under ``add_or_remove_one`` all move one way, else four times as much. Proof:
    ``docs/proofs/selection.md``.

    Examples:
        >>> pick_rho(10, 1, Fraction(5), NeighboringRelation.ADD_OR_REMOVE_ONE)
        Fraction(1, 20)
    """
    ways = 1 if relation is NeighboringRelation.ADD_OR_REMOVE_ONE else 4
    return Fraction(ways * picks * change**2) / (8 * scale * scale)


def std_for(rho: Fraction, price: Fraction) -> Fraction:
    """Return the noise s with price / s^2 <= rho, rounded up to twelve digits."""
    root = sqrt_up(price / rho)
    return max(root, ceil_decimal(math.nextafter(float(root), math.inf)))


def epsilon_for(rho: Fraction, runs: int) -> Fraction:
    """Return the epsilon of so many pure runs that cost at most rho together, rounded down."""
    return sqrt_down(2 * rho / runs)


def quiet_margin(epsilon: Fraction, change: int, times: int, end: int, switches: int) -> int:
    """Return a margin that noise alone passes in at most one of twenty streams.

    A test's noise passes a with chance e^(-a / scale) / 2, a threshold's falls by b likewise.

    Args:
        epsilon: Of one run of tests.
        change: How far one unit moves a lead.
        times: Scale of a test's noise, in change / epsilon; the threshold's is 2.
        end: How many steps there are.
        switches: How many runs.
    """
    scale = change / float(epsilon)
    test = times * scale * math.log(end / _CHANCE)
    threshold = 2 * scale * math.log(max(switches, 1) / _CHANCE)
    return math.ceil(test + threshold)


def _change(neighbors: Neighbors) -> int:
    """How far one unit moves a running count, in grains: with every event of it in the cell."""
    return neighbors.largest * neighbors.unit.max_events


def _lead_change(neighbors: Neighbors) -> int:
    """How far one unit moves the largest of some counts minus the least of others."""
    ways = 1 if neighbors.relation is NeighboringRelation.ADD_OR_REMOVE_ONE else 2
    return ways * _change(neighbors)
