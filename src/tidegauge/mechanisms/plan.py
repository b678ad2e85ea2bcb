"""The plan of one gauge: everything that affects privacy, chosen before any data is read."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from fractions import Fraction
from functools import cached_property, lru_cache
from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from tidegauge.checks import shown
from tidegauge.errors import InvalidParameter, UnsupportedCombination
from tidegauge.mechanisms.discovery import Discovery
from tidegauge.mechanisms.intervals import Band, band_of, level_of, tails
from tidegauge.mechanisms.plain_data import Reader, fraction_text
from tidegauge.mechanisms.request import cells_of, steps_of, views_of
from tidegauge.mechanisms.selection import Selection, shown_cells
from tidegauge.mechanisms.stored import VERSION, plain, read_as
from tidegauge.noise.gaussian import RoundedGaussian
from tidegauge.noise.laplace import DiscreteLaplace
from tidegauge.noise.law import Law
from tidegauge.noise.quantile import gaussian_half_width, laplace_half_width
from tidegauge.noise.response import BitFlips, response_half_width
from tidegauge.privacy.costs import AnyCost, Cost, GaussianCost, PureCost
from tidegauge.privacy.guarantee import ZCDP, ApproxDP, GaussianDP, Guarantee, PureDP
from tidegauge.privacy.ledger import Ledger
from tidegauge.privacy.protected import Protected
from tidegauge.privacy.statement import privacy_statement
from tidegauge.privacy.unit import Neighbors
from tidegauge.strategies.blocks import Blocks, OpenBlocks
from tidegauge.strategies.blt import Blt, Comb, NormalisedBlt
from tidegauge.strategies.decay import (
    Custom,
    Decay,
    Difference,
    Exponential,
    Polynomial,
    Running,
    Step,
    Window,
    full_after,
)
from tidegauge.strategies.decayed import DecayedTree
from tidegauge.strategies.dense import DenseToeplitz
from tidegauge.strategies.distinct import Anchored, Shaped
from tidegauge.strategies.identity import Identity
from tidegauge.strategies.responses import Responses
from tidegauge.strategies.stepped import PolynomialSum
from tidegauge.strategies.strategy import MOST_STEPS, Float64, Norm, Strategy

__all__ = ["NOISE_IN_WORDS", "GaugePlan", "check_distinct", "strategy_in_words", "views_read"]

_CHUNK = 256  # steps whose numbers are computed together
_STRATEGIES: dict[type, str] = {
    Identity: "the stream itself",
    Blt: "a buffered linear Toeplitz encoding of the stream",
    Comb: "a buffered linear Toeplitz encoding of the stream behind a comb",
    NormalisedBlt: "a buffered linear Toeplitz encoding with multipliers, for so many steps",
    DenseToeplitz: "a Toeplitz encoding of a short stream",
    DecayedTree: "the left nodes of a tree of decayed sums",
    Blocks: "blocks",
    OpenBlocks: "blocks, open ones included",
    Shaped: "the count itself under shaped noise",
    Anchored: "the count now and then, and its changes in between",
    PolynomialSum: "windows of falling weight, each by binary trees",
    Responses: "the bits themselves",
}
NOISE_IN_WORDS: dict[type[Cost], str] = {
    GaussianCost: "rounded Gaussian",
    PureCost: "discrete Laplace",
}
_MOST_SIZES = 7  # of blocks, written out beside the largest
_CLOSE = 0.998  # stds this close share one half-width
_KEPT = 4096  # chunks remembered: 8 MB at most


@dataclass(frozen=True)
class GaugePlan:
    """One gauge's strategy, noise and cost: frozen, fingerprinted, made of public numbers.

    Attributes:
        views: Name of each view and its decay, in the order of publication.
        cells: The names of the cells; None where they have none.
        scalar: There is one cell, and totals and releases have no cell axis.
        guarantee: What is promised for everything the gauge ever publishes.
        cost: What the gauge spends of it.
        neighbors: Who is protected and how far one unit can move the stream.
        strategy: The factorization, with the exact numbers that define it.
        law: The noise, in lattice units of the strategy.
        max_per_step: Totals of a cell and step are clamped to this many grains; larger counts of
            different values are refused, for what is cut off an interval need not be one.
        horizon: How many steps the accuracy is designed for; None: unknown.
        end: The last step, counted from 1; None: no end.
        level: The coverage of the intervals.
        band: Whether the level holds at each step alone or for a whole curve.
        selection: How the few cells are chosen that are shown; None: all are.
        discovery: How items are discovered; None: the cells are known.
    """

    views: tuple[tuple[str, Decay], ...]
    cells: tuple[str, ...] | None
    scalar: bool
    guarantee: Guarantee
    cost: Cost
    neighbors: Neighbors
    strategy: Strategy
    law: Law
    max_per_step: int
    horizon: int | None
    end: int | None
    level: float = 0.95
    band: Band = "pointwise"
    selection: Selection | None = None
    discovery: Discovery | None = None
    _chunks: dict[tuple[str, Decay, int, int], Float64] = field(
        init=False, default_factory=dict, repr=False, compare=False
    )

    @cached_property
    def last_step(self) -> int | None:
        """The last step that may be measured: the declared end or the strategy's hard end."""
        ends = [end for end in (self.end, self.strategy.hard_end) if end is not None]
        return min(ends, default=None)

    @property
    def known_end(self) -> int | None:
        """The last step that is foreseen; None: none, though no rounding is charged beyond 2^38.

        Bands and judgements stretch over a stream that somebody declared, not over all that the
        integers of a strategy would hold.
        """
        last = self.last_step
        return None if self.end is None and last is not None and last >= MOST_STEPS else last

    def decay(self, view: str | Decay) -> Decay:
        """Return a decay itself, or that of a view by its name.

        Raises:
            InvalidParameter: There is no view of this name, or it is neither.
        """
        if isinstance(view, Decay):
            if self.neighbors.distinct is not None and view != self.views[0][1]:
                raise InvalidParameter(
                    f"Expected the count of different values itself, {self.views[0][0]}, got "
                    f"{shown(view.name)}. Those of another window are no function of it. Measure "
                    "them in a gauge of their own."
                )
            if self.selection is not None and view != Running():
                raise InvalidParameter(
                    f"Expected the running counts of the cells that are shown, got "
                    f"{shown(view.name)}. Of a cell nothing is published while it is hidden, so "
                    "that no other view can be made. Count in a gauge of its own."
                )
            return view
        for name, decay in self.views:
            if name == view:
                return decay
        raise InvalidParameter(
            f"Expected the name of a view or a decay, got {shown(view)}. Nothing of this kind was "
            f"planned. Use one of {shown([name for name, _ in self.views])}, or write Window(168)."
        )

    def with_view(self, name: str, decay: Decay) -> GaugePlan:
        """Return this plan with one published view; what affects privacy is the same."""
        return replace(self, views=((name, decay),))

    def full_after(self, view: str | Decay) -> int:
        """The first step, counted from 1, at which the view has seen all that it weighs."""
        return full_after(self.decay(view))

    def noise_std(self, view: str | Decay, steps: ArrayLike, summed: int = 1) -> Float64:
        """Return the standard deviation of a view's noise at each of ``steps``.

        Args:
            view: A view's name, or any decay.
            steps: Step numbers, counted from 1; shape (n,).
            summed: How many cells are added up; their noises are independent.

        Returns:
            float64 of shape (n,), in grains; of the implemented noise, exact up to rounding.

        Raises:
            InvalidParameter: No such view, or a step that cannot be released.
        """
        return self._by_step("std", self.decay(view), steps) * sqrt(summed)

    def half_width(self, view: str | Decay, steps: ArrayLike, summed: int = 1) -> Float64:
        """Return half the width of the interval at each of ``steps``, in grains; shape (n,).

        Pointwise or simultaneous, as :mod:`tidegauge.mechanisms.intervals` says. Arguments are
        those of :meth:`noise_std`.
        """
        return self._by_step("half", self.decay(view), steps, summed)

    def with_intervals(self, level: float | None = None, band: str | None = None) -> GaugePlan:
        """Return this plan with other intervals; values, noise and cost are the same.

        Args:
            level: The coverage; None: as it was.
            band: ``"pointwise"`` or ``"simultaneous"``; None: as it was.

        Raises:
            InvalidParameter: The level is out of range, or the band has another name.
        """
        return replace(
            self,
            level=self.level if level is None else level_of(level),
            band=self.band if band is None else band_of(band),
        )

    def _by_step(self, what: str, decay: Decay, steps: ArrayLike, summed: int = 1) -> Float64:
        """Look numbers up in chunks of steps, so that a live step costs no formula."""
        given = np.atleast_1d(np.asarray(steps))
        last = self.last_step or MOST_STEPS
        if given.ndim != 1 or (given.size and given.dtype.kind not in "iu"):
            raise InvalidParameter(
                f"Expected step numbers of shape (n,), got {given.dtype} of shape {given.shape}. "
                "Steps are whole numbers, counted from 1. Give a list of integers."
            )
        wanted = given.astype(np.int64)
        if wanted.size and not 1 <= wanted.min() <= wanted.max() <= last:
            raise InvalidParameter(
                f"Expected step numbers in [1, {last}], got others. Steps are counted from 1, and "
                "nothing is measured after the last. Ask for a step that can be released."
            )
        result = np.empty(len(wanted))
        chunks = (wanted - 1) // _CHUNK
        for chunk in np.unique(chunks):
            key = (what, decay, summed, int(chunk))
            numbers = self._chunks.get(key)
            if numbers is None:
                if len(self._chunks) >= _KEPT:
                    self._chunks.clear()
                self._chunks[key] = numbers = self._chunk(what, decay, summed, int(chunk))
            inside = chunks == chunk
            result[inside] = numbers[(wanted[inside] - 1) % _CHUNK]
        return result

    def _chunk(self, what: str, decay: Decay, summed: int, chunk: int) -> Float64:
        steps = np.arange(chunk * _CHUNK + 1, (chunk + 1) * _CHUNK + 1)
        std = np.sqrt(self.strategy.variance_gain(decay, steps)) * self.law.std
        if what == "std":
            return std
        std *= sqrt(summed)
        tail = tails(self.level, self.band, steps, self.known_end)
        if isinstance(self.law, RoundedGaussian):
            return gaussian_half_width(std, tail)
        alike = self.strategy.gain_tells_terms(decay)
        growing = alike and bool((np.diff(std) >= 0).all())
        found = dict[tuple[float, float], float]()
        result, used = np.empty(_CHUNK), -1
        for i in range(_CHUNK - 1, -1, -1):
            # a sum of more draws spreads wider (Anderson), and tails never grow: the width of a
            # slightly later step is safe
            if not growing or used < 0 or std[i] < std[used] * _CLOSE:
                # steps of one variance weigh draws alike: longer rows differ by weights of 0 alone
                key = float(std[i] if alike else i), float(tail[i])
                if key not in found:
                    weights, counts = self.strategy.noise_terms(decay, int(steps[i]))
                    terms = weights.tobytes(), (counts * summed).tobytes()
                    flips = isinstance(self.law, BitFlips)
                    found[key] = _summed_half_width(flips, float(self.law.scale), *terms, key[1])
                used, width = i, found[key]
            result[i] = width
        return result

    def charged(self) -> Ledger:
        """Return an account of the guarantee with this gauge's cost charged."""
        names = Fraction(0) if self.discovery is None else self.discovery.delta
        ledger = Ledger(self.guarantee, names=names)
        ledger.charge(self.charges("gauge"))
        return ledger

    def charges(self, name: str) -> dict[str, AnyCost]:
        """Return what a gauge of this name is charged: its noise, and choices of cells if any."""
        if self.selection is None:
            return {name: self.cost}
        return {name: self.cost, f"{name}, choices": self.selection.cost(self.neighbors)}

    def promise(self) -> str:
        """Return the guarantee in one sentence, for what this plan protects."""
        return self.guarantee.in_words(self.protected.question)

    def statement(self, instead: Mapping[str, object] | None = None) -> str:
        """Return what is promised, in words, with every declared constant, as Markdown.

        Args:
            instead: Constants that were declared in other words, by name; None leaves one out.
        """
        return privacy_statement(
            self.guarantee,
            self.protected,
            gauges={"gauge": self.in_words()},
            declared={**self.declared(), **(instead or {})},
            spent=self.charged().total(),
        )

    def in_words(self) -> str:
        """Return what is measured under which noise, in a sentence or two."""
        text = f"{self.noise} noise on every coordinate of {self.measures}, drawn once."
        return text if self.discovery is None else f"{text} {self.discovery.in_words()}"

    def declared(self) -> dict[str, object]:
        """Return every public constant that the promise rests on; None: not declared."""
        low, high = self.neighbors.low, self.neighbors.high
        cells: object = ", ".join(self.cells) if self.cells else self.neighbors.cells
        return {
            "views": ", ".join(name for name, _ in self.views),
            "cells": cells if self.discovery is None else "items that are discovered",
            "max_change": (low, high) if low else high,
            "max_cells": self.neighbors.max_cells,
            "max_per_step": self.max_per_step,
            "horizon": self.horizon,
            "end": self.end,
            "last step": self.last_step,
            "level of intervals": self.level,
            "band": self.band,
        }

    @property
    def protected(self) -> Protected:
        """Who is protected, and which streams are told apart."""
        return Protected(self.neighbors.unit, self.neighbors.relation)

    def __getstate__(self) -> dict[str, Any]:
        """What defines the plan, without the numbers that it remembers."""
        return {f.name: getattr(self, f.name) for f in fields(self) if f.init}

    def __setstate__(self, state: dict[str, Any]) -> None:
        for name, value in {**state, "_chunks": {}}.items():
            object.__setattr__(self, name, value)

    def stored(self) -> dict[str, Any]:
        """Return the whole plan as plain data: integers, text, fractions as ``"n/d"``."""
        views = [[name, plain(decay)] for name, decay in self.views]
        level = fraction_text(Fraction(repr(self.level)))
        return {**self.describe(), "views": views, "level": level, "band": self.band}

    def describe(self) -> dict[str, Any]:
        """Return everything but the published views and their intervals."""
        return {
            "version": VERSION,
            "cells": None if self.cells is None else list(self.cells),
            "scalar": self.scalar,
            "guarantee": plain(self.guarantee),
            "cost": plain(self.cost),
            "neighbors": plain(self.neighbors),
            "strategy": plain(self.strategy),
            "law": plain(self.law),
            "max_per_step": self.max_per_step,
            "horizon": self.horizon,
            "end": self.end,
            **({} if self.selection is None else {"selection": plain(self.selection)}),
            **({} if self.discovery is None else {"discovery": plain(self.discovery)}),
        }

    @staticmethod
    def restore(data: Any) -> GaugePlan:
        """Return the plan that :meth:`stored` wrote, number by number; nothing is fitted.

        Raises:
            InvalidParameter: Another version wrote it, a name is unknown, a field is missing or
                left over, or its noise is too small for its cost.
            BudgetExceeded: Its cost exceeds its guarantee.
        """
        reader = Reader(data, "the plan of a gauge")
        version = reader.integer("version")
        if version != VERSION:
            raise InvalidParameter(
                f"Expected the plan of a gauge in version {VERSION}, got version {version}. "
                "Its numbers may mean something else. Use the version of tidegauge that wrote it."
            )
        views = views_read(reader.items("views"))
        cells = reader.take("cells")
        plan = GaugePlan(
            views=views,
            cells=None if cells is None else cells_of(cells)[1],
            scalar=reader.flag("scalar"),
            guarantee=read_as(reader.take("guarantee"), PureDP, ZCDP, GaussianDP, ApproxDP),
            cost=read_as(reader.take("cost"), GaussianCost, PureCost),
            neighbors=read_as(reader.take("neighbors"), Neighbors),
            strategy=read_as(reader.take("strategy"), *_STRATEGIES),
            law=read_as(reader.take("law"), RoundedGaussian, DiscreteLaplace, BitFlips),
            max_per_step=reader.integer("max_per_step"),
            horizon=reader.optional_integer("horizon"),
            end=reader.optional_integer("end"),
            level=level_of(reader.fraction("level")),
            band=band_of(reader.text("band")),
            selection=read_as(reader.take("selection"), Selection)
            if "selection" in reader.names
            else None,
            discovery=read_as(reader.take("discovery"), Discovery)
            if "discovery" in reader.names
            else None,
        )
        reader.done()
        plan.verify()
        return plan

    def verify(self) -> None:
        """Refuse a plan whose noise does not pay for what it claims.

        Raises:
            InvalidParameter: The noise is smaller than sensitivity over cost, of another kind than
                the cost, or totals, cells or steps do not fit the strategy.
            BudgetExceeded: The cost exceeds the guarantee.
        """
        gaussian = isinstance(self.law, RoundedGaussian)
        if gaussian != isinstance(self.cost, GaussianCost):
            raise _unpaid("noise of the kind that is charged", "another kind")
        norm = Norm.L2 if gaussian else Norm.L1
        if norm not in self.strategy.norms:
            raise _unpaid(f"a strategy that is proved for {norm.value} noise", "one that is not")
        amount = self.cost.mu if isinstance(self.cost, GaussianCost) else self.cost.epsilon
        try:
            check_distinct(self.strategy, self.neighbors)
            moved = self.strategy.sensitivity(norm, self.neighbors)
        except UnsupportedCombination:
            raise _unpaid("a strategy that is proved for what is counted", "another") from None
        if self.law.scale * amount < moved:
            raise _unpaid("a noise scale of sensitivity over cost or more", "a smaller one")
        if not 1 <= self.max_per_step <= self.strategy.largest_total:
            raise _unpaid("max_per_step within what the strategy can hold", "more")
        if self.cells is not None and len(self.cells) != self.neighbors.cells:
            raise _unpaid("as many names as cells", "another number")
        if self.scalar and self.neighbors.cells != 1:
            raise _unpaid("one cell in a scalar gauge", "more")
        horizon, end = steps_of(self.horizon, self.end)
        if (horizon, end) != (self.horizon, self.end):
            raise _unpaid("a horizon within the end", "another")
        self._verify_distinct()
        self._verify_responses()
        self._verify_selection()
        self._verify_discovery()
        self.charged()

    def _verify_distinct(self) -> None:
        """Refuse a count of different values with other views than the count itself."""
        distinct = self.neighbors.distinct
        if distinct is not None:
            view = Running() if distinct == "ever" else Window(distinct)
            if [decay for _, decay in self.views] != [view]:
                raise _unpaid("the count of different values as the one view", "others")

    def _verify_responses(self) -> None:
        """Refuse flips of anything but bits, and a bias that is not that of the flips."""
        law, strategy = self.law, self.strategy
        if not isinstance(law, BitFlips) and not isinstance(strategy, Responses):
            return
        alike = isinstance(law, BitFlips) and isinstance(strategy, Responses)
        if not alike or strategy != Responses(law.scale):
            raise _unpaid("flips of bits, with the bias that is taken out", "others")

    def _verify_selection(self) -> None:
        """Refuse cells that are chosen where that is not what noise was made for."""
        selection, neighbors = self.selection, self.neighbors
        if selection is None:
            return
        cells = neighbors.cells
        if cells is None:
            raise _unpaid("known cells where some are chosen", "others")
        if [decay for _, decay in self.views] != [Running()] or neighbors.low:
            raise _unpaid("running counts as the one view of cells that are chosen", "others")
        if not isinstance(self.cost, GaussianCost) or neighbors.distinct or neighbors.paired:
            raise _unpaid("counts with Gaussian noise where cells are chosen", "others")
        k, switches = selection.k, selection.switches
        if k >= cells:
            raise _unpaid("fewer cells to be shown than there are", "all")
        if neighbors.max_cells != shown_cells(k, switches, cells, neighbors.relation):
            raise _unpaid("noise for all cells that may ever be shown", "less, or more")

    def _verify_discovery(self) -> None:
        """Refuse items that nobody knows without a threshold that pays for their names."""
        discovery = self.discovery
        if (discovery is None) != (self.neighbors.cells is not None):
            raise _unpaid("either known cells or a discovery", "another plan")
        if discovery is None:
            return
        if self.cells is not None or self.scalar or self.neighbors.distinct is not None:
            raise _unpaid("sums of items without names", "others")
        try:
            paid = discovery.paid(self.strategy, self.law, self.neighbors, self.end)
        except UnsupportedCombination:
            raise _unpaid("a strategy that is proved for unknown items", "another") from None
        if not paid:
            raise _unpaid("a threshold that pays for names", "a lower one")

    @property
    def flips(self) -> bool:
        """Whether bits are flipped (randomised response), not numbers added."""
        return isinstance(self.law, BitFlips)

    @property
    def noise(self) -> str:
        """The kind of the noise, in words."""
        if self.flips:
            return "randomised response"
        return NOISE_IN_WORDS[type(self.cost)]

    @property
    def measures(self) -> str:
        """What is measured, in words."""
        return strategy_in_words(self.strategy)

    @property
    def fingerprint(self) -> str:
        """SHA-256 of everything but the published views; noise of another plan shares no word."""
        text = json.dumps(self.describe(), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()


def strategy_in_words(strategy: Strategy) -> str:
    """Return what a strategy measures; of blocks, how many steps they have.

    Examples:
        >>> strategy_in_words(Identity(0)), strategy_in_words(Blocks((1, 24)))
        ('the stream itself', 'blocks of 1 and 24 steps')
        >>> strategy_in_words(Blocks(tuple(2**level for level in range(30))))
        'blocks of 1, 2, 4, ... and 536870912 steps'
    """
    words = _STRATEGIES[type(strategy)]
    if not isinstance(strategy, Blocks | OpenBlocks):
        return words
    *smaller, largest = map(str, strategy.levels)
    if len(smaller) > _MOST_SIZES:
        smaller = [*smaller[:3], "..."]
    sizes = f"{', '.join(smaller)} and {largest} steps" if smaller else "1 step"
    return words.replace("blocks", f"blocks of {sizes}", 1)


def check_distinct(strategy: Strategy, neighbors: Neighbors) -> None:
    """Refuse a strategy under which values that are seen for the first time could move too far.

    An event moves such a count at two steps, in opposite ways. Columns of C with inner products
    of at least 0 then differ by no more than the root of their two squares: that is charged.

    Raises:
        UnsupportedCombination: The strategy is not known to have such columns.
    """
    if neighbors.distinct in (None, neighbors.lasting):
        return
    alike = isinstance(strategy, Identity | Blt | NormalisedBlt | Blocks | OpenBlocks)
    if isinstance(strategy, DenseToeplitz):
        alike = min(strategy.coefficients) >= 0
    if not alike:
        raise UnsupportedCombination(
            "it is not proved for counts of different values, whose changes have both signs"
        )


@lru_cache(maxsize=4096)
def _summed_half_width(
    flips: bool, scale: float, weights: bytes, counts: bytes, tail: float
) -> float:
    """The half-width of a sum of draws; few sums serve many steps."""
    half_width = response_half_width if flips else laplace_half_width
    return half_width(scale, np.frombuffer(weights), np.frombuffer(counts, np.int64), tail)


def views_read(items: tuple[Any, ...]) -> tuple[tuple[str, Decay], ...]:
    """Return views that were stored as ``[name, decay]``.

    Raises:
        InvalidParameter: They are not views, or a name comes twice.
    """
    for item in items:
        if not isinstance(item, list) or len(item) != 2 or not isinstance(item[0], str):
            raise _unpaid("each view as a name and a decay", shown(item))
    kinds = (Step, Running, Window, Exponential, Polynomial, Custom, Difference)
    views = tuple((name, read_as(decay, *kinds)) for name, decay in items)
    if len(dict(views)) < len(views):
        raise _unpaid("each view once", "one twice")
    return views_of(dict(views))


def _unpaid(expected: str, got: str) -> InvalidParameter:
    return InvalidParameter(
        f"Expected {expected}, got {got}. The stored numbers were changed: what they claim to "
        "promise is not what they would give. Use the plan as it was written."
    )
