"""Responses: bits that were flipped with a known chance, and sums of them without the bias."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import final

import numpy as np

from tidegauge.errors import InvalidParameter, UnsupportedCombination
from tidegauge.privacy.unit import Neighbors
from tidegauge.strategies import filters, study
from tidegauge.strategies.asked import Asked
from tidegauge.strategies.blocks.levels import check_totals
from tidegauge.strategies.decay import Decay
from tidegauge.strategies.strategy import Float64, Int64, Norm, RowPerStep, State

__all__ = ["Responses", "build_responses"]


@final
@dataclass(frozen=True)
class Responses(RowPerStep):
    r"""C = I for bits, flipped with chance :math:`1 / (1 + e^{1/s})`; decoding takes the bias out.

    A response y to a bit x has the mean :math:`p + (1 - 2p) x`, so that
    :math:`y / \tanh(1 / 2s) - 1 / (e^{1/s} - 1)` is unbiased: every decay of it is as well.

    Args:
        scale: s, that of the flips (:class:`~tidegauge.noise.response.BitFlips`).

    Raises:
        InvalidParameter: The scale is no Fraction above 0.

    Cost: one bit a step and cell; its decoder is that of single steps.

    Examples:
        >>> from tidegauge.strategies.decay import Running
        >>> strategy, out = Responses(Fraction(1)), np.empty((1, 2, 1))
        >>> state = strategy.init_decoder([Running()], 1)
        >>> strategy.decode(state, [Running()], np.array([[1], [0]]), 0, out)
        >>> out.ravel().round(3)
        array([1.582, 1.   ])
    """

    scale: Fraction

    def __post_init__(self) -> None:
        if not isinstance(self.scale, Fraction) or self.scale <= 0:
            raise InvalidParameter(
                "Expected scale to be a Fraction above 0, got another. The bias follows from it. "
                "Give that of the flips."
            )

    @property
    def lattice_bits(self) -> int:  # type: ignore[override]  # one lattice: bits
        """0: rows are bits."""
        return 0

    @property
    def norms(self) -> frozenset[Norm]:
        """L1 only."""
        return frozenset({Norm.L1})

    @property
    def hard_end(self) -> None:
        """None: the sensitivity holds for ever."""
        return None

    @property
    def absolute_gain(self) -> Fraction:
        """1."""
        return Fraction(1)

    @property
    def largest_total(self) -> int:
        """1: a flip hides nothing else."""
        return 1

    def sensitivity(self, norm: Norm, neighbors: Neighbors) -> Fraction:
        """How many bits can change: exact.

        Raises:
            UnsupportedCombination: ``norm`` is L2.
        """
        if norm is not Norm.L1:
            raise UnsupportedCombination(
                f"Expected Norm.L1 for Responses, got {norm}. Flips are pure by nature. Use a "
                "guarantee of pure epsilon, or another strategy."
            )
        return Fraction(neighbors.unit.max_events * neighbors.event_l1)

    def init_encoder(self, cells: int) -> State:
        """Nothing but the number of cells has to be kept."""
        return {"cells": np.array([cells])}

    def encode(self, state: State, x: Int64, first: int) -> Int64:
        """The bits: totals above 1 count as 1, below 0 as 0.

        Raises:
            InvalidInput: ``x`` is not int64 of shape (steps, cells).
        """
        check_totals(x, int(state["cells"][0]))
        return np.minimum(np.maximum(np.ascontiguousarray(x), 0), 1)

    def init_decoder(self, views: Sequence[Decay], cells: int) -> State:
        """The state of the views."""
        return filters.init_decoder(views, cells, 0)

    def decode(
        self, state: State, views: Sequence[Decay], measured: Int64, first: int, out: Float64
    ) -> None:
        """Take the bias out of each response, and filter what is left."""
        epsilon = 1 / float(self.scale)
        unbiased = measured / math.tanh(epsilon / 2) - 1 / math.expm1(epsilon)
        filters.filter_views(state, views, unbiased, first, out)

    def variance_gain(self, view: Decay, steps: Int64) -> Float64:
        """The sum of the first ``steps`` squared weights of the decay."""
        return study.energy(view, steps)

    def worst_variance_gain(self, view: Decay, horizon: int) -> float:
        """The gain grows with the step: the last one, or the limit."""
        return study.worst_energy(view, horizon)

    def noise_terms(self, view: Decay, step: int) -> tuple[Float64, Int64]:
        """The weights of the steps in a view."""
        return study.noise_terms(view, step)


def build_responses(asked: Asked) -> Responses:
    """The builder for a gauge of bits; the scale follows from what the gauge may spend.

    Raises:
        UnsupportedCombination: Its totals are not bits, or the noise is Gaussian.
    """
    if asked.norm is not Norm.L1:
        raise UnsupportedCombination("its flips are pure by nature: give epsilon alone")
    if asked.most != 1:
        raise UnsupportedCombination(
            "it serves steps that hold one unit at most: declare max_per_step 1"
        )
    return Responses(Fraction(1))
