"""A clip that is drawn from first values: as it is asked for in a config, and in a plan."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tidegauge.errors import InvalidParameter, UnsupportedCombination
from tidegauge.mechanisms.first_values import FirstValues, Threshold, spends, threshold_of
from tidegauge.mechanisms.plain_data import Reader, fraction_text
from tidegauge.planning import fields
from tidegauge.planning.form import ConfigForm
from tidegauge.planning.kind_form import PerrierForm
from tidegauge.planning.parts import PlannedGauge
from tidegauge.privacy.costs import ThresholdCost
from tidegauge.privacy.guarantee import ApproxDP, Guarantee
from tidegauge.privacy.unit import PrivacyUnit

__all__ = ["first_values_of", "threshold_data", "threshold_read", "thresholds_agree"]

_ASKED = ("quantile", "beta_lt", "share", "delta_share")


def first_values_of(
    asked: PerrierForm,
    low: int,
    config: ConfigForm,
    wrong: frozenset[str],
    refuse: Callable[[str], None],
) -> FirstValues | None:
    """Return what is asked of a clip of first values; None: a problem is noted.

    Args:
        asked: ``perrier`` of a gauge.
        low: The least value, in grains.
        config: What the gauge stands in.
        wrong: Fields of the config that were refused already.
        refuse: Notes a problem with the clip.
    """
    if low != 0:
        refuse(
            "Expected bounds from 0 on beside clip: perrier, got others. The paper's threshold is "
            "the upper end of values that are not negative. Write 0 as the lower bound, or "
            "clip: auto, which has a clip at both ends."
        )
    privacy = None if "privacy" in wrong else config.privacy
    if privacy is not None and privacy.delta is None:
        given = next((n for n in ("epsilon", "rho", "mu") if getattr(privacy, n)), "no epsilon")
        refuse(
            f"Expected epsilon and delta beside clip: perrier, got {given} alone. Noise that "
            "depends on the values may fail to hide one with a small chance, which is a delta and "
            "nothing else. Write epsilon: 1 and delta: 1e-9, or clip: auto."
        )
    given_by: list[Any] = [v for gauge in config.gauges.values() for v in gauge.by.values()]
    if fields.DISCOVER in given_by:
        refuse(
            "Expected known values in all gauges beside clip: perrier, got discover. That what "
            "names and thresholds spend adds up is not proved. List the values, or write "
            "clip: auto."
        )
    end = None if wrong & {"end", "start", "step"} else _steps(config)
    if end is not None and asked.first >= end:
        refuse(
            "Expected first before the end, got the whole stream or more. All values would wait, "
            "and nothing would be released. Write less, such as a tenth of it."
        )
    try:
        return FirstValues(**{name: getattr(asked, name) for name in ("first", *_ASKED)})
    except InvalidParameter as problem:
        refuse(str(problem))
        return None


def _steps(config: ConfigForm) -> int | None:
    """How many steps a config has; None: there is no end."""
    if config.end is None or config.step is None:
        return config.end
    return int((config.end - (config.start or 0)) // config.step)


def threshold_data(clip: Threshold) -> dict[str, Any]:
    """Return how a clip is drawn as plain data."""
    cost = {"epsilon": fraction_text(clip.cost.epsilon), "delta": fraction_text(clip.cost.delta)}
    numbers = {name: fraction_text(getattr(clip.asked, name)) for name in _ASKED}
    return {"first": clip.asked.first, **numbers, "cost": cost}


def threshold_read(reader: Reader, unit: PrivacyUnit) -> Threshold:
    """Read how a clip is drawn for a unit.

    Raises:
        InvalidParameter: It is not what :func:`threshold_data` wrote, or a number is out of range.
        UnsupportedCombination: No clip can be drawn at this cost.
    """
    asked = FirstValues(reader.integer("first"), *(reader.fraction(name) for name in _ASKED))
    cost = Reader(reader.take("cost"), "what a threshold costs")
    spent = ThresholdCost(cost.fraction("epsilon"), cost.fraction("delta"))
    cost.done()
    reader.done()
    return threshold_of(asked, spent, unit)


def thresholds_agree(
    guarantee: Guarantee, unit: PrivacyUnit, gauges: Sequence[PlannedGauge], end: int | None
) -> bool:
    """Whether all clips of first values are drawn at the cost and for the unit that is declared."""
    clips = [g.clip if isinstance(g.clip, Threshold) else None for g in gauges]
    if not any(clips):
        return True
    if not isinstance(guarantee, ApproxDP) or any(gauge.discover for gauge in gauges):
        return False
    asked = [None if clip is None else clip.asked for clip in clips]
    costs = spends(guarantee, asked, [gauge.budget_weight for gauge in gauges])
    return all(
        clip == _again(clip, cost, unit) and (end is None or clip.asked.first < end)
        for clip, cost in zip(clips, costs, strict=True)
        if clip is not None and cost is not None
    )


def _again(clip: Threshold, cost: ThresholdCost, unit: PrivacyUnit) -> Threshold | None:
    """The clip as it is planned for this cost and unit; None: it cannot be."""
    try:
        return threshold_of(clip.asked, cost, unit)
    except UnsupportedCombination:
        return None
