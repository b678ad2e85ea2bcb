"""Every constant that a promise rests on, in words: declared without looking at the data."""

from __future__ import annotations

from fractions import Fraction

from tidegauge.mechanisms.first_values import Threshold
from tidegauge.planning.durations import instant_text, written
from tidegauge.planning.parts import Clip
from tidegauge.planning.plan import Plan, PlannedGauge
from tidegauge.planning.promise import protected_of
from tidegauge.planning.words import as_code, as_number, most_per_step

__all__ = ["declared"]

_FEW = 12


def declared(plan: Plan) -> dict[str, str]:
    """Return every public constant that the promise rests on, in words; nothing protects them."""
    clock, time, unit = plan.clock, plan.time, plan.unit
    found = {}
    if clock.step_us is None:
        found["step"] = "each record; their number is public"
        found["end"] = "none" if clock.end is None else f"{clock.end:,} records"
    else:
        found["step"] = written(clock.step_us)
        found["start"] = instant_text(clock.start_us)
        end = clock.end
        found["end"] = (
            "none"
            if end is None
            else f"{instant_text(clock.start_us + end * clock.step_us)} ({end:,} steps)"
        )
    if plan.multiline:
        found["csv"] = "newlines within quotes belong to a field"
    if time is not None:
        zone = "" if time.timezone is None else f", {time.timezone} where a stamp has no zone"
        found["event time"] = f"column {time.column} ({time.format}{zone})"
    if unit is not None:
        during = protected_of(plan).period
        which = f"in each of {during}" if during else "over the whole life of the store"
        found["id"] = f"column {unit.column}, at most {unit.max_contributions:,} events {which}"
    if plan.event is not None:
        found["event"] = f"all rows of one {plan.event}, at the step of the earliest"
    for gauge in plan.gauges:
        found |= _declared_of(gauge)
        if plan.event is not None:
            found[f"{gauge.name}, of one event"] = _items(gauge)
    horizon = plan.gauges[0].mechanism.horizon
    found["horizon"] = "unknown" if horizon is None else f"{horizon:,} steps"
    return found


def _declared_of(gauge: PlannedGauge) -> dict[str, str]:
    name, grain = gauge.name, gauge.round_to
    found = {}
    if gauge.kind in ("sum", "mean"):
        found[f"{name}, bounds"] = (
            f"[{as_number(gauge.low * grain)}, {as_number(gauge.high * grain)}] in multiples of "
            f"{as_number(grain)}"
        )
    if gauge.where is not None:
        found[f"{name}, where"] = as_code(gauge.where)
    for column, values in gauge.by:
        if not values:
            found[f"{name}, values of {column}"] = "discovered"
            continue
        shown = ", ".join(as_code(value) for value in values[:_FEW])
        more = f" and {len(values) - _FEW:,} more (plan.json)" if len(values) > _FEW else ""
        found[f"{name}, values of {column}"] = shown + more
    if gauge.discover is not None:
        found[f"{name}, expected items"] = f"{gauge.discover.expected_items:,}"
    if any(values for _, values in gauge.by):
        found[f"{name}, other"] = "dropped" if gauge.other is None else as_code(gauge.other)
    if gauge.clip is not None:
        found[f"{name}, clip"] = _clip(gauge.clip)
    events = gauge.kind == "mean" or gauge.clip is not None
    most = gauge.mechanism.max_per_step * grain
    number = as_number(Fraction(most_per_step(gauge)) if events else most)
    found[f"{name}, {_limit(gauge)}"] = number
    return found


def _limit(gauge: PlannedGauge) -> str:
    """What the cap on one cell in one step is of."""
    if gauge.mechanism.neighbors.lasting:
        return "most different values in a cell"
    if gauge.kind == "mean" or gauge.clip is not None:
        return "most events of a cell and step"
    return "largest total of a cell and step"


def _clip(clip: Clip | Threshold) -> str:
    """What a config says of a clip that is found."""
    if isinstance(clip, Clip):
        share = f"{100 * float(clip.share):.3g} %"
        return f"found from published numbers, with {share} of its budget"
    asked = clip.asked
    shares = (f"{100 * float(share):.3g} %" for share in (asked.share, asked.delta_share))
    return (
        f"drawn from the values of the first {asked.first:,} steps, with {' and '.join(shares)} of "
        f"its epsilon and delta, at the upper quantile of {as_number(asked.quantile)}, below it "
        f"with probability {as_number(asked.beta_lt)} at most"
    )


def _items(gauge: PlannedGauge) -> str:
    """How much of an event that is a set counts."""
    if gauge.kind == "count_distinct":
        return f"at most {_few(gauge.high, 'value')}: the smallest by a keyed hash"
    cells = f"at most {_few(gauge.max_items, 'cell')}: the smallest by bytes; " if gauge.by else ""
    if gauge.select is not None:
        cells = "any number of cells; "
    if gauge.kind == "sum":
        return f"{cells}the sum of its amounts in each, clamped to the bounds"
    if gauge.kind == "mean":
        return f"{cells}the sum of its amounts in each, clamped to the bounds, is one value"
    times = "once" if gauge.high == 1 else f"up to {gauge.high:,} times"
    return f"{cells}{times} in each"


def _few(number: int, word: str) -> str:
    return f"{number:,} {word}{'s' * (number != 1)}"
