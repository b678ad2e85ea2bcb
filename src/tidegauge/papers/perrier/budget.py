r"""The error budget: five ways to be wrong, with their chances, and the time lag that they ask for.

=========  ==================================================================================
chance     of what
=========  ==================================================================================
beta_qt    the empirical quantile of lambda p lies below the true one of p
beta_lt    noise moves the threshold below that empirical quantile
beta_rt    noise moves the threshold above what is expected of it
beta_out   more is cut off by the threshold than expected
beta_lap   the noise of the sums is larger than expected
=========  ==================================================================================

Utility alone depends on these numbers, never privacy; nothing here reads data.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, final

from tidegauge.checks import exact, integer, shown
from tidegauge.errors import InvalidParameter
from tidegauge.papers.perrier.threshold import BETA_LT, LAM, P, rule_of
from tidegauge.privacy.rounding import minimiser
from tidegauge.strategies.strategy import MOST_STEPS

__all__ = [
    "ErrorBudget",
    "error_budget",
    "first_needed",
    "light_tail_error",
    "light_tail_excess",
    "outlier_error",
    "quantile_risk",
    "tree_error",
]

_MOST_TEETH = 1 << 20


def quantile_risk(first: int, p: float | Fraction = P, lam: float | Fraction = LAM) -> float:
    r"""Return the chance that the empirical upper quantile of ``lam * p`` is below that of p.

    :math:`g = \Pr[\mathrm{Bin}(m, p) \le \lceil \lambda p m \rceil - 1]`, computed, not bounded.

    Args:
        first: Readings that the threshold is taken from, m.
        p: The share of readings to cut.
        lam: The quantile of ``lam * p`` is estimated.

    Examples:
        >>> round(quantile_risk(10_000), 7), round(quantile_risk(20_000), 7)
        (0.1428767, 0.057096)
    """
    share, caution = _share("p", p), _share("lam", lam)
    count = integer("first", first, low=1, high=MOST_STEPS, why="It is a number of readings.")
    return _risk(count, share, caution)


def _risk(count: int, share: Fraction, caution: Fraction) -> float:
    return float(_at_most(math.ceil(caution * share * count) - 1, count, float(share)))


def _at_most(k: Any, n: Any, p: float) -> Any:
    """The chance of k or fewer of n: the binomial distribution, also for n beyond 32 bits."""
    from scipy.special import betaincc

    return betaincc(k + 1.0, n - k + 0.0, p)


def first_needed(
    p: float | Fraction = P, lam: float | Fraction = LAM, beta_qt: float | Fraction = 0.006
) -> int:
    r"""Return the least time lag m from which on the quantile's risk is at most ``beta_qt``.

    The risk is a saw-tooth in m: it falls, and jumps up wherever :math:`\lceil \lambda p m \rceil`
    does. So the first m that is good enough may be followed by worse ones.

    Args:
        p: The share of readings to cut.
        lam: The quantile of ``lam * p`` is estimated.
        beta_qt: The chance allowed.

    Raises:
        InvalidParameter: A number is out of range, or lam is so near 1 that m is beyond reach.

    Examples:
        >>> first_needed()  # 52,220 is good enough, and some later ones are not
        54602
    """
    import numpy as np

    share, caution, chance = _share("p", p), _share("lam", lam), _share("beta_qt", beta_qt)
    rare = InvalidParameter(
        f"Expected larger p, lam and beta_qt, got p={shown(p)}, lam={shown(lam)} and "
        f"beta_qt={shown(beta_qt)}. So rare readings take more first ones than a stream can have. "
        "Use 0.005, 0.85 and 0.006."
    )
    if (1 - float(share)) ** MOST_STEPS > chance:  # as often there is none of them at all
        raise rare
    rate = caution * share
    # by Chernoff the risk is below exp(-p m (1 - lam)^2 / 2): no tooth after this one matters
    bounded = 2 * math.log(1 / chance) / float(share * (1 - caution) ** 2)
    if not bounded * float(rate) < _MOST_TEETH:
        raise InvalidParameter(
            f"Expected lam further from 1, got lam={shown(lam)}. Too many readings would be needed "
            "to tell the two quantiles apart. Use 0.85."
        )
    teeth = math.ceil(rate * math.ceil(bounded)) + 1
    # tooth r: ceil = r + 1; those that begin beyond every stream are one
    starts = np.array([min(math.floor(r / rate), MOST_STEPS) + 1 for r in range(teeth)])
    risks = _at_most(np.arange(teeth), starts, float(share))
    bad = np.flatnonzero((risks > float(chance)) & (starts <= bounded))
    if not len(bad):
        return 1
    low = int(starts[bad[-1]])
    high = min(math.floor((int(bad[-1]) + 1) / rate), max(low, math.ceil(bounded))) + 1
    while high - low > 1:  # within a tooth the risk falls
        middle = (low + high) // 2
        low, high = (low, middle) if _risk(middle, share, caution) <= chance else (middle, high)
    if high > MOST_STEPS:
        raise rare
    return int(high)


def tree_error(upper: float, end: int, epsilon: float, beta: float) -> float:
    r"""Return the paper's bound on the noise of a binary tree (its equation 3).

    :math:`\sqrt 8 \, (B / \epsilon) (\log_2 n)^{1.5} \ln(2 / \beta)`. ``BinaryTree.error_at`` has
    the exact one.

    Args:
        upper: B: the largest reading.
        end: n: how many steps there are.
        epsilon: What the tree spends.
        beta: How often the noise may be larger.

    Examples:
        >>> f"{tree_error(1440, 10**6, 1, 0.02):.5e}", f"{tree_error(150, 10**6, 1, 0.02):.5e}"
        ('1.66903e+06', '1.73858e+05')
    """
    levels: float = math.log2(end) ** 1.5
    return math.sqrt(8) * (upper / epsilon) * levels * math.log(2 / beta)


def outlier_error(gap: float, end: int, p: float, beta_out: float) -> float:
    r"""Return what the threshold cuts off at most, but with chance ``beta_out``, at worst.

    The worst readings are at the upper bound with chance p, each cut by ``gap``, D = B - tau:
    :math:`\min_h (\ln(1/\beta) + n \ln(1 - p + p e^{hD})) / h`, at its true minimum. The paper's
    h = 1 / (D p n) gives six times as much in the example.

    Args:
        gap: D: how far the largest reading lies above the threshold.
        end: n: how many steps there are.
        p: The share of readings above the threshold.
        beta_out: How often more may be cut off.

    Examples:
        >>> f"{outlier_error(1290, 10**6, 0.005, 0.004):.3e}"
        '6.755e+06'
    """
    if not gap:
        return 0.0

    def bound(log_x: float) -> float:
        x = math.exp(log_x)
        return (math.log(1 / beta_out) + end * math.log1p(p * math.expm1(x))) / x

    return gap * min(bound(minimiser(bound, -30, 6)), end)


def light_tail_excess(quantile: float, p: float) -> float:
    r"""Return the expected excess of a light-tailed reading over its upper quantile of p.

    With :math:`\Pr[X > x] \le e^{-\gamma x}` from there on, :math:`\gamma = \ln(1/p) / x_p`, the
    expectation of :math:`(X - x_p)_+` is at most :math:`p / \gamma`.

    Args:
        quantile: The upper quantile of p, in units of the readings.
        p: The share of readings above it.

    Examples:
        >>> import math
        >>> light_tail_excess(-math.log(0.005), 0.005)  # Exp(1): gamma = 1
        0.005
    """
    return p * quantile / math.log(1 / p)


def light_tail_error(quantile: float, end: int, p: float, beta_out: float) -> float:
    r"""Return what a threshold at the quantile or above cuts off a light tail, as an estimate.

    :math:`(x_p / \ln(1/p)) (\sqrt{np} + \sqrt{\ln(1/\beta)})^2`.

    Args:
        quantile: The upper quantile of p, in units of the readings.
        end: n: how many steps there are.
        p: The share of readings above it.
        beta_out: How often more may be cut off.

    Examples:
        >>> f"{light_tail_error(150, 10**6, 0.005, 0.004):.2e}"
        '1.51e+05'
    """
    spread = math.sqrt(end * p) + math.sqrt(math.log(1 / beta_out))
    return quantile / math.log(1 / p) * spread**2


@final
@dataclass(frozen=True)
class ErrorBudget:
    """What the paper's mechanism is expected to do, from public numbers.

    Attributes:
        beta: The five chances together.
        first: The time lag m that beta_qt asks for.
        risk: The quantile's risk at that m.
        kappa: The factor on the noise of the threshold.
        margin: The threshold lies above the empirical quantile by at most this many times its
            smooth sensitivity, but with chance beta_rt.
        noise: The tree's noise at the threshold that was guessed.
        outliers: What is cut off, at worst.
        light_outliers: What is cut off a light tail; None without its quantile.
        plain: The tree's noise without a threshold.

    Examples:
        >>> found = ErrorBudget(beta=0.02, first=100, risk=0.1, kappa=2, margin=3, noise=2e5,
        ...                     outliers=6e6, light_outliers=2e5, plain=1.6e6)
        >>> found.light_gain, round(found.worst_gain, 2)
        (4.0, 0.26)
    """

    beta: float
    first: int
    risk: float
    kappa: float
    margin: float
    noise: float
    outliers: float
    light_outliers: float | None
    plain: float

    @property
    def worst_gain(self) -> float:
        """How many times less error than the plain tree, whatever the readings are."""
        return self.plain / (self.noise + self.outliers)

    @property
    def light_gain(self) -> float | None:
        """How many times less error than the plain tree, with a light tail."""
        if self.light_outliers is None:
            return None
        return self.plain / (self.noise + self.light_outliers)


def error_budget(
    upper: float,
    end: int,
    epsilon: float | Fraction,
    threshold: float,
    *,
    quantile: float | None = None,
    delta: float | Fraction | None = None,
    share: float | Fraction = Fraction(1, 2),
    p: float | Fraction = P,
    lam: float | Fraction = LAM,
    beta_qt: float | Fraction = 0.006,
    beta_lt: float | Fraction = BETA_LT,
    beta_rt: float | Fraction = 0.002,
    beta_out: float | Fraction = 0.004,
    beta_lap: float | Fraction = 0.002,
) -> ErrorBudget:
    """Return what to expect of :class:`~.thresholded.ThresholdedSum`, and the time lag to give it.

    Of the five chances the published defaults fix the sum, 0.02, and beta_lt; the rest is split
    here.

    Args:
        upper: The largest reading, B.
        end: The last step, n.
        epsilon: Of the whole.
        threshold: A guess of the threshold, from public knowledge.
        quantile: A guess of the readings' upper quantile of p, for the estimate with a light tail.
        delta: None: 1 / end^2.
        share: The part of epsilon that the threshold spends.
        p: The share of readings to cut.
        lam: The quantile of ``lam * p`` is estimated.
        beta_qt: See the module, as of the others.
        beta_lt: Above about delta / 4.
        beta_rt: Below 1/2.
        beta_out: Below 1.
        beta_lap: Below 1.

    Raises:
        InvalidParameter: A number is out of range.
        UnsupportedCombination: epsilon, delta and beta_lt do not go together.

    Examples:
        >>> found = error_budget(1440, 10**6, epsilon=1, threshold=150, quantile=150)
        >>> found.first, round(found.kappa, 2), round(found.worst_gain, 2)
        (54602, 1.19, 0.36)

    References:
        Perrier, Asghar and Kaafar 2019, section on utility, as corrected in ``docs/errata.md``.
    """
    length = integer("end", end, low=2, high=MOST_STEPS, why="It is the number of readings.")
    top, spent = _positive("upper", upper), _positive("epsilon", epsilon)
    cut = _positive("threshold", threshold)
    if cut > top:
        raise InvalidParameter(
            f"Expected threshold of at most upper, got threshold={shown(threshold)}. No reading "
            "would reach it. Give a smaller one."
        )
    chances = {
        "beta_qt": beta_qt,
        "beta_lt": beta_lt,
        "beta_rt": beta_rt,
        "beta_out": beta_out,
        "beta_lap": beta_lap,
    }
    chance = {name: float(_share(name, value)) for name, value in chances.items()}
    if sum(chance.values()) >= 1:
        raise InvalidParameter(
            f"Expected chances below 1 together, got {sum(chance.values()):.3g}. Bounds that may "
            "all fail say nothing. Give smaller ones."
        )
    portion = _share("share", share)
    given = Fraction(1, length**2) if delta is None else delta
    rule = rule_of(portion * exact("epsilon", epsilon), given, p, lam, beta_lt)
    first, part = first_needed(p, lam, beta_qt), float(_share("p", p))
    upward = rule.shift - Fraction(math.log(2 * chance["beta_rt"]))
    guess = None if quantile is None else _positive("quantile", quantile)
    light = None if guess is None else light_tail_error(guess, length, part, chance["beta_out"])
    return ErrorBudget(
        beta=sum(chance.values()),
        first=first,
        risk=quantile_risk(first, p, lam),
        kappa=float(rule.kappa),
        margin=float(rule.kappa / rule.a * upward),
        noise=tree_error(cut, length, spent, chance["beta_lap"]),
        outliers=outlier_error(top - cut, length, part, chance["beta_out"]),
        light_outliers=light,
        plain=tree_error(top, length, spent, chance["beta_lap"]),
    )


def _share(name: str, value: Any) -> Fraction:
    return exact(name, value, above=0, below=1, why="It is a share of the whole, or a chance.")


def _positive(name: str, value: Any) -> float:
    return float(exact(name, value, above=0, why="Errors are in proportion to it."))
