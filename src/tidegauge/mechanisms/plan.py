"""The plan of one gauge: everything that affects privacy, chosen before any data is read."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from fractions import Fraction
from functools import cached_property
from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from tidegauge.checks import shown
from tidegauge.errors import InvalidParameter
from tidegauge.mechanisms.discovery import Discovery
from tidegauge.mechanisms.half_widths import half_widths
from tidegauge.mechanisms.intervals import Band, band_of, level_of, tails
from tidegauge.mechanisms.plain_data import fraction_text
from tidegauge.mechanisms.plan_in_words import NOISE_IN_WORDS, strategy_in_words
from tidegauge.mechanisms.selection import Selection
from tidegauge.mechanisms.stored import VERSION, plain
from tidegauge.noise.law import Law
from tidegauge.noise.response import BitFlips
from tidegauge.privacy.costs import AnyCost, Cost
from tidegauge.privacy.guarantee import Guarantee
from tidegauge.privacy.ledger import Ledger
from tidegauge.privacy.protected import Protected
from tidegauge.privacy.statement import privacy_statement
from tidegauge.privacy.unit import Neighbors
from tidegauge.strategies.decay import Decay, Running, full_after
from tidegauge.strategies.strategy import MOST_STEPS, Float64, Strategy

__all__ = ["GaugePlan"]

_CHUNK = 256  # steps whose numbers are computed together
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
        if what == "std":
            return np.sqrt(self.strategy.variance_gain(decay, steps)) * self.law.std
        tail = tails(self.level, self.band, steps, self.known_end)
        return half_widths(self.strategy, self.law, decay, steps, tail, summed)

    def charged(self) -> Ledger:
        """Return an account of the guarantee with this gauge's cost charged."""
        delta = Fraction(0) if self.discovery is None else self.discovery.delta
        ledger = Ledger(self.guarantee, delta_for_names=delta)
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
