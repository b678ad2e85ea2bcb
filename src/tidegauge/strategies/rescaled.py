r"""Noise of views whose increments are multiplied by factors that change now and then.

A view of increments, each times a public factor w_s of its step, has the noise

.. math:: N_t = \sum_s g(t - s) w_s n_s, \qquad n = C^{-1} z.

Let the factor be constant up to step :math:`e_1`, then up to :math:`e_2`, and so on. With
X the noise of the same view without factors and g of one pole a, summation by parts gives

.. math:: N_t = w(t) X_t + \sum_{e_m < t} (w_m - w_{m+1}) \, a^{t - e_m} X_{e_m};

a window is the difference of two running sums, from which every change before it drops out. So a
covariance needs those of X at the changes and at t alone, which are closed forms: with
:math:`b_k = \sum_i \rho_i p_i^k` the response of X and s <= t,

.. math:: \mathrm{Cov}(X_s, X_t) = \sum_{k<s} b_k b_{k+t-s}
          = \sum_{ij} \rho_i \rho_j p_j^{t-s} \frac{1 - (p_i p_j)^s}{1 - p_i p_j}.

Proof: ``docs/proofs/moving_clip.md``.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import TypeGuard

import numpy as np

from tidegauge.checks import shown
from tidegauge.errors import UnsupportedCombination
from tidegauge.strategies.blt.blt import Blt
from tidegauge.strategies.blt.inverse import Inverse
from tidegauge.strategies.blt.response import Response, responses
from tidegauge.strategies.decay import Decay, Exponential, Running, Step, Window
from tidegauge.strategies.identity import Identity
from tidegauge.strategies.strategy import Float64, Int64, Strategy

__all__ = ["EVENTS_ONCE", "covariances", "refuse_rescaled", "serves_rescaled"]

EVENTS_ONCE = 1 << 32
"""How many events' largest changes one step may hold beyond its total, once: at least so many."""

_CHUNK = 256
_NO_GAP = 2.0**-100


def serves_rescaled(strategy: Strategy) -> TypeGuard[Blt | Identity]:
    """Whether the noise of rescaled increments is known in closed form."""
    return isinstance(strategy, Blt | Identity)


def refuse_rescaled(name: str, decay: Decay) -> None:
    """Refuse a view of rescaled increments whose noise has no closed form here.

    Raises:
        UnsupportedCombination: It is no step, running sum, window or exponential.
    """
    if not isinstance(decay, Step | Running | Window | Exponential):
        raise UnsupportedCombination(
            f"Expected steps, running sums, windows and half-lives, got {shown(name)}. The noise "
            "of others under a clip that is found is not computed. Declare a fixed clip, or leave "
            "the view out."
        )


def covariances(
    strategy: Blt | Identity, decay: Decay, steps: Int64, changes: Int64, factors: Float64
) -> Float64:
    """Return how the noises of a view belong together under several sequences of factors.

    Args:
        strategy: What is measured, one row a step.
        decay: A step, running sum, window or exponential.
        steps: Steps counted from 1, shape (n,).
        changes: The last step of each stretch of constant factors but the last, from 1 and
            increasing; shape (stretches - 1,).
        factors: Of each sequence and stretch, shape (sequences, stretches).

    Returns:
        Covariances over the variance of a lattice draw, shape (n, sequences, sequences), in grains
        squared: the diagonal is ``variance_gain`` where all factors are 1.

    Raises:
        UnsupportedCombination: The noise of this view is not known.

    Cost: O((changes^2 + poles^2) n) time.
    """
    refuse_rescaled(decay.name, decay)
    t = np.asarray(steps, dtype=np.int64)
    out = np.empty((len(t), len(factors), len(factors)))
    for start in range(0, len(t), _CHUNK):
        out[start : start + _CHUNK] = _chunk(
            strategy, decay, t[start : start + _CHUNK], changes, factors
        )
    return out * 4.0**-strategy.lattice_bits


def _chunk(
    strategy: Blt | Identity, decay: Decay, t: Int64, changes: Int64, factors: Float64
) -> Float64:
    now = factors[:, np.searchsorted(changes, t, side="left")].T
    if isinstance(decay, Step):
        gain = strategy.variance_gain(decay, t) * 4.0**strategy.lattice_bits
        return np.asarray(gain[:, None, None] * now[:, :, None] * now[:, None, :])
    changes = changes[changes < t.max()]
    drops = (factors[:, : len(changes)] - factors[:, 1 : len(changes) + 1]).T
    ages = t[:, None] - changes
    if isinstance(decay, Window):
        of: Decay = Running()
        heard = ((ages > 0) & (ages < decay.steps)).astype(np.float64)
        began = np.maximum(t - decay.steps, 0)
        first = -factors[:, np.searchsorted(changes, began + 1, side="left")].T
        points, weights = np.stack([began, t], axis=1), np.stack([first, now], axis=1)
    else:
        of = decay
        gap = decay.gap if isinstance(decay, Exponential) else 0.0
        heard = np.where(ages > 0, np.exp(np.maximum(ages, 0) * np.log1p(-gap)), 0.0)
        points, weights = t[:, None], now[:, None]
    total = np.zeros((len(t), len(factors), len(factors)))
    for share, gaps, rho in _parts(strategy, of):
        fixed = _covariance(gaps, rho, changes[:, None], changes)
        own = _covariance(gaps, rho, points[:, :, None], points[:, None, :])
        both = _covariance(gaps, rho, points[:, :, None], changes)
        at_changes = heard[:, :, None] * drops  # (n, changes, sequences)
        crossed = np.einsum("npa,npc,ncb->nab", weights, both, at_changes, optimize=True)
        total += share * (
            np.einsum("nca,cd,ndb->nab", at_changes, fixed, at_changes, optimize=True)
            + np.einsum("npa,npq,nqb->nab", weights, own, weights, optimize=True)
            + crossed
            + crossed.transpose(0, 2, 1)
        )
    return total


def _covariance(gaps: Float64, rho: Float64, one: Int64, other: Int64) -> Float64:
    """Cov(X_s, X_t) of all pairs that broadcast; 0 where a step is 0."""
    first, second = np.broadcast_arrays(one, other)
    early, lag = np.minimum(first, second), np.abs(second - first)
    log = np.log1p(-gaps)
    different, place = np.unique(early, return_inverse=True)
    pairs = gaps[:, None] + gaps - gaps[:, None] * gaps
    lost = -np.expm1(different[:, None, None] * (log[:, None] + log)) / pairs
    sums = rho * (lost @ rho)  # (different, poles)
    return np.asarray((sums[place.reshape(early.shape)] * np.exp(lag[..., None] * log)).sum(-1))


@lru_cache(maxsize=64)
def _parts(strategy: Blt | Identity, decay: Decay) -> tuple[tuple[float, Float64, Float64], ...]:
    """The response of a view in pole form: one of share 1, or an affine combination of four."""
    return tuple(_pole_forms(strategy, decay))


def _pole_forms(strategy: Blt | Identity, decay: Decay) -> Iterator[tuple[float, Float64, Float64]]:
    assert isinstance(decay, Running | Exponential)
    if isinstance(strategy, Identity):
        gaps, weights = decay.poles
        yield 1.0, np.maximum(gaps, _NO_GAP), weights
        return
    found: list[tuple[float, Response]] = responses(
        Inverse.of(strategy.gaps, strategy.weights), decay
    )
    for share, response in found:
        yield share, response.gaps, response.amplitudes[0]
