"""Randomised response as a plan: each step's bit is flipped or not, and its bias is known."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from tidegauge.checks import exact, shown
from tidegauge.errors import InvalidParameter, UnsupportedCombination
from tidegauge.mechanisms.plan import GaugePlan
from tidegauge.mechanisms.request import request_of
from tidegauge.noise.response import BitFlips
from tidegauge.privacy.costs import PureCost
from tidegauge.privacy.guarantee import Guarantee, PureDP
from tidegauge.strategies.decay import Decay
from tidegauge.strategies.identity import Identity
from tidegauge.strategies.strategy import Float64

__all__ = ["response_error", "response_plan", "without_bias"]

_MOST_EPSILON = 32
_ROUNDS = 60  # of golden sections: the bracket shrinks by 10^-12


def response_plan(
    decay: Decay,
    *,
    epsilon: float | Fraction | None,
    guarantee: Guarantee | None,
    cells: int,
) -> GaugePlan:
    """Return the plan of randomised response for one decay of a stream of bits.

    Raises:
        InvalidParameter: A parameter is impossible.
        UnsupportedCombination: The guarantee is not pure.
    """
    request = request_of(
        views={"released": decay},
        unit="event",
        epsilon=epsilon,
        guarantee=guarantee,
        cells=cells,
        neighboring_relation="replace_one" if cells == 1 else "add_or_remove_one",
        max_per_step=1,
    )
    promised = request.guarantee
    if not isinstance(promised, PureDP) or promised.epsilon > _MOST_EPSILON:
        raise UnsupportedCombination(
            f"Expected a pure guarantee with epsilon up to {_MOST_EPSILON}, got {shown(promised)}. "
            "Randomised response is pure by nature. Give epsilon alone."
        )
    plan = GaugePlan(
        views=request.views,
        cells=None,
        scalar=request.scalar,
        guarantee=promised,
        cost=PureCost(promised.epsilon),
        neighbors=request.neighbors,
        strategy=Identity(0),
        law=BitFlips(1 / promised.epsilon),
        max_per_step=1,
        horizon=None,
        end=None,
    )
    plan.verify()
    return plan


def without_bias(plan: GaugePlan, out: Float64, weights: Float64) -> Float64:
    r"""Return decayed sums of responses as unbiased estimates of those of the bits.

    A response y to a bit x has the mean :math:`p + (1 - 2p) x`.

    Args:
        plan: Of randomised response.
        out: Decayed sums of responses, shape (steps, cells).
        weights: The sum of the decay's weights so far at each step, shape (steps, 1).
    """
    epsilon = _epsilon(plan)
    return out / math.tanh(epsilon / 2) - weights / math.expm1(epsilon)


def response_error(plan: GaugePlan, gamma: Any, step: int) -> float:
    r"""Return a bound that the error at a step exceeds with probability at most gamma.

    The law of the error depends on the bits, which the bound must not: it is the least of
    :math:`(\ln(2/\gamma) + \sum_k \ln \max_{x} E e^{\lambda g(k) e_x}) / \lambda` over lambda.

    Raises:
        InvalidParameter: gamma is not in (0, 1).
    """
    why = "It is a chance. Write 0.05."
    chance = float(exact("gamma", gamma, above=0, below=1, why=why))
    [(_, decay)] = plan.views
    weights, counts = plan.strategy.noise_terms(decay, step)
    law = plan.law
    if not isinstance(law, BitFlips):
        raise InvalidParameter("Expected a plan of randomised response, got another. Use its own.")
    p, rate = law.chance, math.tanh(_epsilon(plan) / 2)

    def bound(log_scale: float) -> float:
        moved = math.exp(log_scale) * weights / rate
        flipped = np.logaddexp(math.log(p) + (1 - p) * moved, math.log1p(-p) - p * moved)
        mirrored = np.logaddexp(math.log(p) - (1 - p) * moved, math.log1p(-p) + p * moved)
        moments = float(counts @ np.maximum(flipped, mirrored))
        return (math.log(2 / chance) + moments) / math.exp(log_scale)

    middle = -math.log(float(np.sqrt(counts @ weights**2)))
    return _least(bound, middle - 12, middle + 12)


def _least(function: Callable[[float], float], low: float, high: float) -> float:
    """The least value of a function with one minimum, by golden sections; every value bounds."""
    golden = (math.sqrt(5) - 1) / 2
    for _ in range(_ROUNDS):
        left, right = high - golden * (high - low), low + golden * (high - low)
        if function(left) < function(right):
            high = right
        else:
            low = left
    return function((low + high) / 2)


def _epsilon(plan: GaugePlan) -> float:
    assert isinstance(plan.cost, PureCost)
    return float(plan.cost.epsilon)
