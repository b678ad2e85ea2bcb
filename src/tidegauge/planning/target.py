"""The least budget at which views are as accurate as asked; reads no data.

The error of a view is the half-width of its interval, in the view's unit, at the worst of the steps
at which it is published. That of a mean depends on how many events it is of, and under a clip that
is found on the clip: both are asked with the error, and nothing is known of what a clip cuts off.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache, partial
from math import inf

from tidegauge.errors import InvalidParameter, TidegaugeError, UnsupportedCombination
from tidegauge.mechanisms.clip_plan import UNIT
from tidegauge.mechanisms.comparison import Comparison
from tidegauge.mechanisms.mean import Bounds, MeanReading
from tidegauge.mechanisms.plan import GaugePlan
from tidegauge.mechanisms.plan_in_words import NOISE_IN_WORDS
from tidegauge.planning import fields
from tidegauge.planning.declared import Config, GaugeConfig
from tidegauge.planning.document import Scalar
from tidegauge.planning.parts import count_cells, for_all
from tidegauge.planning.planner import compared
from tidegauge.planning.problems import did_you_mean
from tidegauge.planning.view_form import View
from tidegauge.planning.widest import worst_half_width
from tidegauge.privacy.costs import PureCost
from tidegauge.privacy.guarantee import ZCDP, ApproxDP, GaussianDP, Guarantee, PureDP, rounded_up

__all__ = ["Budget", "Target", "budget_for", "targets_of"]

_DIGITS = 4
_DECADE = 9 * 10 ** (_DIGITS - 1)  # numbers of four digits in a decade
_LEAST, _DECADES = -9, 15  # from 1e-9 up to below 1e6
_TOP = _DECADES * _DECADE - 1
_FAR = _DECADE // 3  # longest stride of the search: a factor of about two
_FIELDS: dict[type, str] = {
    PureDP: "epsilon",
    ApproxDP: "epsilon",
    ZCDP: "rho",
    GaussianDP: "mu",
}

Plans = tuple[GaugePlan, ...]


@dataclass(frozen=True)
class Target:
    """How accurate a view has to be.

    Attributes:
        gauge: Number of the gauge in the config.
        name: What it was called: the view, or the gauge and the view.
        view: The view.
        error: Largest half-width of an interval, in the unit of the view.
        events: Of a mean: how many events it is of.
        clip: Of a clip that is found: how large it is expected to be, in the unit of the view.
    """

    gauge: int
    name: str
    view: View
    error: Fraction
    events: Fraction | None = None
    clip: Fraction | None = None


@dataclass(frozen=True)
class Budget:
    """What has to be written in the config, and what that gives.

    Attributes:
        field: ``epsilon``, ``rho`` or ``mu``: the field of ``privacy``.
        value: Its least value of four digits.
        config: The config with it.
        widths: The largest half-width of each target, in its unit, and the step, from 1, where it
            is so wide.
    """

    field: str
    value: Fraction
    config: Config
    widths: tuple[tuple[float, int], ...]

    @property
    def written(self) -> str:
        """The value as a config has it."""
        return rounded_up(self.value, _DIGITS)


def targets_of(config: Config, texts: Sequence[str]) -> tuple[Target, ...]:
    """Return what texts such as ``week=25`` or ``spend.week=0.5,events=3000,clip=250`` ask for.

    Args:
        config: What it is asked of.
        texts: A view, or of several gauges the gauge and the view, and the largest half-width; of
            a mean how many events it is of; under ``clip: auto`` the clip that is expected.

    Raises:
        InvalidParameter: No such view, no number above 0, or one that says nothing of this view.
    """
    views = [(number, view) for number, g in enumerate(config.gauges) for view in g.views]
    full = {f"{config.gauges[number].name}.{view.name}": (number, view) for number, view in views}
    short = {view.name: (number, view) for number, view in views}
    shown = list(full if len(config.gauges) > 1 else short)
    known = full if len(config.gauges) > 1 else full | short
    found = []
    for text in texts:
        name, sign, rest = text.partition("=")
        if not sign or name not in known:
            raise InvalidParameter(
                f"Expected a view and its error, such as {shown[0]}=25, got {text!r}. Nothing is "
                f"published under this name. {did_you_mean(name or text, shown, 'views')}"
            )
        number, *more = rest.split(",")
        error = _above_0(number)
        if error is None:
            raise InvalidParameter(
                f"Expected the error of {name} to be a number above 0, got {number!r}. It is half "
                f"the width of an interval, in the unit of the view. Write {name}=25."
            )
        gauge, view = known[name]
        asked = Target(gauge, name, view, error, **_conditions(config.gauges[gauge], text, more))
        _refuse_any_budget(config.gauges[gauge], asked)
        found.append(asked)
    return tuple(found)


def _above_0(text: str) -> Fraction | None:
    """A number above 0, or None."""
    try:
        number = fields.amount(Scalar(text.strip(), False))
    except TidegaugeError:
        return None
    return number if number > 0 else None


def _conditions(gauge: GaugeConfig, text: str, more: Sequence[str]) -> dict[str, Fraction]:
    """What an error is asked for: of how many events, under which clip; just what it hangs on."""
    why = {
        "events": "How far a mean may be off depends on how many events it is of",
        "clip": "Noise is made for the clip, which only the stream will tell",
    }
    needed = {"events": gauge.kind == "mean", "clip": gauge.clip is not None}
    example = ",".join(f"{key}={n}" for key, n in (("events", 1000), ("clip", 250)) if needed[key])
    given: dict[str, Fraction] = {}
    for part in more:
        key, _, number = part.strip().partition("=")
        amount = _above_0(number)
        if key == "events" and amount is not None and amount.denominator != 1:
            amount = None
        if not needed.get(key) or amount is None or key in given:
            few = f"{example}, each above 0, events whole" if example else "nothing more"
            raise InvalidParameter(
                f"Expected after the error {few}, got {part!r} in {text!r}. The error of this "
                f"view hangs on nothing else. Remove it, or write it so."
            )
        given[key] = amount
    for key, reason in why.items():
        if needed[key] and key not in given:
            raise InvalidParameter(
                f"Expected {key}= after the error, got {text!r}. {reason}. Write what you expect: "
                f"{text.split(',')[0]},{example}."
            )
    most = max(-gauge.low, gauge.high) * gauge.round_to
    if given.get("clip", most) > most:
        raise InvalidParameter(
            f"Expected a clip of at most {float(most):g}, the bound, got "
            f"{float(given['clip']):g}. No clip lies beyond the bounds. Write a smaller one."
        )
    return given


def _refuse_any_budget(gauge: GaugeConfig, target: Target) -> None:
    """Refuse an error of a mean that every mean keeps, whatever the noise."""
    if target.events is None:
        return
    widest = sum(_ends(gauge, target)) / 2
    if target.error >= widest:
        raise InvalidParameter(
            f"Expected an error of {target.name} below {float(widest):g}, got "
            f"{float(target.error):g}. No mean of such values is further from the middle, so that "
            "any budget would do. Ask for a smaller error."
        )


def _ends(gauge: GaugeConfig, target: Target) -> tuple[Fraction, Fraction]:
    """How far below and above 0 values count, in the unit of the view; their sum is the range."""
    low, high = -gauge.low * gauge.round_to, gauge.high * gauge.round_to
    if target.clip is None:
        return low, high
    return min(low, target.clip), min(high, target.clip)


def budget_for(config: Config, targets: Sequence[Target]) -> Budget:
    """Return the least epsilon (rho, mu) of four digits at which all targets are met.

    Everything else of the config is kept, delta too. The result is on the safe side: its own plan
    meets the targets, and that of the next smaller number does not.

    Raises:
        InvalidParameter: No budget below 1e6 meets them.
        UnsupportedCombination: No proved mechanism fits a gauge.

    Cost: no data is read; some ten plans, of one fit a gauge: below a second.
    """
    field = _FIELDS[type(config.guarantee)]

    @cache
    def compared_at(guarantee: Guarantee) -> tuple[Comparison, ...] | None:
        try:
            return compared(replace(config, guarantee=guarantee))
        except UnsupportedCombination:
            return None

    @cache
    def excess(index: int, noise: str | None) -> float:
        """The largest width over what is allowed, as planned or with noise of one kind."""
        given = _with_budget(config.guarantee, _number(index))
        if isinstance(given, ApproxDP) and noise == NOISE_IN_WORDS[PureCost]:
            given = PureDP(given.epsilon)  # the same shares, without what delta would buy
        found = compared_at(given)
        plans = None if found is None else _plans(found, noise)
        if plans is None:
            return inf
        widths = _widths(config, plans, targets)
        return max(w / float(t.error) for (w, _), t in zip(widths, targets, strict=True))

    amount: Fraction = getattr(config.guarantee, field)
    start = _index(min(max(amount, Fraction(1, 1000)), Fraction(5)))
    kinds = NOISE_IN_WORDS.values() if isinstance(config.guarantee, ApproxDP) else ()
    index = _least(excess, kinds, start, 2 if field == "rho" else 1)
    found = None
    if index is not None:
        reached = replace(config, guarantee=_with_budget(config.guarantee, _number(index)))
        found = compared_at(reached.guarantee)
    if index is None or found is None:
        asked = " and ".join(f"{target.name}={float(target.error):g}" for target in targets)
        raise InvalidParameter(
            f"Expected an error that can be reached, got {asked}. No {field} from 1e{_LEAST} to "
            f"1e{_LEAST + _DECADES} gives it. Ask for another error, or for another view; where a "
            "clip is drawn from first values, which takes no large epsilon, for a smaller share, "
            "or clip: auto."
        )
    plans = tuple(each.plan for each in found)
    return Budget(field, _number(index), reached, tuple(_widths(config, plans, targets)))


def _plans(found: Sequence[Comparison], noise: str | None) -> Plans | None:
    """What all gauges would measure with noise of one kind; None: what they will measure."""
    if noise is None:
        return tuple(gauge.plan for gauge in found)
    tried = (
        [c for c in gauge.candidates if NOISE_IN_WORDS[type(c.cost)] == noise] for gauge in found
    )
    plans = [min(mine, key=lambda candidate: candidate.rank).plan for mine in tried]
    return tuple(plan for plan in plans if plan is not None) if all(plans) else None


def _widths(config: Config, plans: Plans, targets: Sequence[Target]) -> list[tuple[float, int]]:
    """The largest half-width of each target's view, in its unit, and its step."""
    found = []
    for target in targets:
        view, gauge, plan = target.view, config.gauges[target.gauge], plans[target.gauge]
        if gauge.top is not None:
            cells = count_cells(gauge.by, gauge.other)
            plan = for_all(plan, cells if gauge.select is None else gauge.select.k)
        width, step = worst_half_width(plan, view.decay, view.every)
        if target.events is not None:
            width = _of_mean(gauge, plan, target, width, step)
        elif target.clip is not None:
            width *= float(target.clip) / UNIT
        else:
            width *= float(gauge.round_to)
        found.append((width, step))
    return found


def _of_mean(gauge: GaugeConfig, plan: GaugePlan, target: Target, worst: float, step: int) -> float:
    """The half-width of a mean of so many events, in its unit, wherever the mean lies."""
    assert target.events is not None
    decay = target.view.decay
    # a wider noise than that of the step that was looked at is as that of fewer events there
    events = float(target.events) * float(plan.half_width(decay, [step])[0]) / worst
    if target.clip is None:
        grain = float(gauge.round_to)
        reading = MeanReading(plan, Bounds(gauge.low, gauge.high))
    else:
        grain = float(sum(_ends(gauge, target)) / 2) / UNIT  # values count in halves of their range
        reading = MeanReading(plan, Bounds(-UNIT, UNIT))
    return float(reading.half_width(decay, step, events)) * grain


def _with_budget(guarantee: Guarantee, amount: Fraction) -> Guarantee:
    """The guarantee with another epsilon, rho or mu."""
    match guarantee:
        case PureDP():
            return PureDP(amount)
        case ApproxDP(delta=delta):
            return ApproxDP(amount, delta)
        case ZCDP():
            return ZCDP(amount)
        case GaussianDP():
            return GaussianDP(amount)


def _least(
    excess: Callable[[int, str | None], float], kinds: Iterable[str], start: int, power: int
) -> int | None:
    """The least index at which the plan exceeds nothing; None: there is none.

    With more budget a plan may change its noise, and a view may lose by it: so it is also looked
    for where noise of one kind would begin to do.
    """
    index = _first(lambda at: excess(at, None), start, power)
    for noise in kinds:
        below = _TOP if index is None else index - 1
        if index is None or (below >= 0 and excess(below, noise) <= 1):
            other = _first(partial(_swapped, excess, noise), min(below, start), power)
            if other is not None and excess(other, None) <= 1:
                index = other
    return index


def _swapped(excess: Callable[[int, str | None], float], noise: str, index: int) -> float:
    return excess(index, noise)


def _first(excess: Callable[[int], float], guess: int, power: int) -> int | None:
    """The least index at which nothing is exceeded; None: there is none.

    Args:
        excess: Above 1: something is exceeded; falls as the index grows, infinite where there is
            no plan.
        guess: Where to begin.
        power: Noise falls as the root of this order.
    """
    for _ in range(16):  # noise falls nearly as a power of the budget: a few jumps come near
        factor = Fraction(min(max(excess(guess), 0.5), 4.0))
        near = _index(_number(guess) * factor**power)
        if abs(near - guess) <= 1 or excess(near) == inf:
            break
        guess = near
    if excess(guess) > 1:
        return _first_above(excess, guess)
    stride = 1
    while guess > 0:
        low = max(guess - stride, 0)
        if excess(low) > 1:
            return _between(excess, low, guess)
        guess, stride = low, min(2 * stride, _FAR)
    return 0


def _first_above(excess: Callable[[int], float], low: int) -> int | None:
    """The least index above one at which something is exceeded."""
    stride = 1
    while low < _TOP:
        high = min(low + stride, _TOP)
        if excess(high) <= 1:
            return _between(excess, low, high)
        low, stride = high, min(2 * stride, _FAR)
    return None


def _between(excess: Callable[[int], float], low: int, high: int) -> int:
    """Bisect: at ``low`` something is exceeded, at ``high`` nothing."""
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if excess(middle) <= 1 else (middle, high)
    return high


def _number(index: int) -> Fraction:
    """The numbers of four digits in order, from 1e-9."""
    decade, digits = divmod(index, _DECADE)
    least = 10 ** (_DIGITS - 1)
    return Fraction((least + digits) * Fraction(10) ** (decade + _LEAST - _DIGITS + 1))


def _index(value: Fraction) -> int:
    """The index of the largest number that is not above a value; of the least if there is none."""
    return max(bisect_right(range(_TOP + 1), value, key=_number) - 1, 0)
