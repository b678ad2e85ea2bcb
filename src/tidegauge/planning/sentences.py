"""What a statement says of a plan, sentence by sentence: each is true of the plan it is for."""

from __future__ import annotations

from fractions import Fraction

from tidegauge.mechanisms.clip_plan import UNIT
from tidegauge.planning.choices import choices_in_words
from tidegauge.planning.durations import instant_text, written
from tidegauge.planning.plan import Plan, PlannedGauge
from tidegauge.planning.promise import protected_of
from tidegauge.planning.words import (
    budget_share,
    gauge_in_words,
    length_in_words,
    most_per_step,
    ranked_in_words,
    threshold_in_words,
    view_in_words,
)
from tidegauge.privacy.costs import GaussianCost
from tidegauge.privacy.guarantee import rounded_up
from tidegauge.strategies.decay import Decay

__all__ = ["at_rest", "declared", "duties", "left_out", "measured", "named_when", "not_covered"]

_FEW = 12


def not_covered(plan: Plan) -> tuple[str, ...]:
    """Return what the promise leaves open."""
    return (
        *protected_of(plan).gaps(),
        "Another plan over the same data, or another store of this one: its cost comes on top.",
        "What anybody publishes from the exact data by another way.",
        "What the time, memory and power of the machine tell those who can measure them.",
        *_unknown(plan),
    )


def _unknown(plan: Plan) -> list[str]:
    """What the promise leaves open where cells are discovered: names, and what they take."""
    if not any(gauge.discover for gauge in plan.gauges):
        return []
    many = (
        [f"A value of {_discovered(plan)} that one person brings in many events can be named."]
        if plan.unit is None
        else []
    )
    return [
        *many,
        "That values nobody foresaw take room: a run whose disk or memory they fill ends, and that "
        "it ends, or how long it takes, can be seen by those who see it run.",
    ]


def duties(plan: Plan, releases: int = 1) -> tuple[str, ...]:
    """Return what the operator has to see to, for the promise rests on it."""
    found = [
        "Nobody else reads the sources, the store, its backups, logs, or counts of rows.",
        "Every declared constant was chosen without looking at the data.",
        "The plan is run once: a further release of the same data spends everything again."
        if releases == 1
        else f"The plan was released {releases} times; a further release spends as much again.",
    ]
    if plan.event is not None:
        found.append(
            f"Column {plan.event} has one id for each event, never used again: two events of one "
            "id are one, and one event of two ids is two."
        )
    elif plan.unit is None:
        found.append("Each event is delivered once: a row that stands twice counts twice.")
    if plan.unit is not None:
        found.append(f"Column {plan.unit.column} has one id for each one who is to be protected.")
    if any(gauge.discover for gauge in plan.gauges):
        found.append(
            f"No value of {_discovered(plan)} is itself private text, such as a person's name: "
            "what is named is published as it is written."
        )
    if plan.multiline:
        found.append(
            "Every CSV source has balanced quotes: rows are split at newlines outside quotes, and "
            "a row with an open quote can swallow the rows that follow it."
        )
    return tuple(found)


def _discovered(plan: Plan) -> str:
    """The columns whose values nobody declared."""
    columns = [column for g in plan.gauges for column, values in g.by if not values]
    return " or ".join(dict.fromkeys(columns))


def named_when(plan: Plan) -> tuple[str, ...]:
    """Return for each gauge that discovers cells when one is named; nothing if all are known."""
    return tuple(
        f"{gauge.name}: {threshold_in_words(plan, gauge)}; it is published as it is written, and "
        "until then nothing of it is."
        for gauge in plan.gauges
        if gauge.discover is not None
    )


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
            f"[{_number(gauge.low * grain)}, {_number(gauge.high * grain)}] in multiples of "
            f"{_number(grain)}"
        )
    if gauge.where is not None:
        found[f"{name}, where"] = _code(gauge.where)
    for column, values in gauge.by:
        if not values:
            found[f"{name}, values of {column}"] = "discovered"
            continue
        shown = ", ".join(_code(value) for value in values[:_FEW])
        more = f" and {len(values) - _FEW:,} more (plan.json)" if len(values) > _FEW else ""
        found[f"{name}, values of {column}"] = shown + more
    if gauge.discover is not None:
        found[f"{name}, expected items"] = f"{gauge.discover.expected_items:,}"
    if any(values for _, values in gauge.by):
        found[f"{name}, other"] = "dropped" if gauge.other is None else _code(gauge.other)
    limit = "largest total of a cell and step"
    mean = gauge.kind == "mean" or gauge.clip is not None
    if gauge.clip is not None:
        share = f"{100 * float(gauge.clip.share):.3g} %"
        found[f"{name}, clip"] = f"found from published numbers, with {share} of its budget"
    if mean:
        limit = "most events of a cell and step"
    if gauge.mechanism.neighbors.lasting:
        limit = "most different values in a cell"
    most = gauge.mechanism.max_per_step * grain
    found[f"{name}, {limit}"] = _number(Fraction(most_per_step(gauge)) if mean else most)
    return found


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


def _number(value: Fraction) -> str:
    value = Fraction(value)
    return f"{value.numerator:,}" if value.denominator == 1 else f"{float(value):,.12g}"


def _code(text: str) -> str:
    """Text of the config as it may stand in Markdown."""
    fence = "``" if "`" in text else "`"
    return f"{fence}{text}{fence}"


def measured(plan: Plan, gauge: PlannedGauge) -> str:
    """Return in one sentence what a gauge measures, with which noise, at what cost."""
    mechanism, cost = gauge.mechanism, gauge.mechanism.cost
    rows = "rows" if plan.event is None else "events"
    what = f"number of {rows}" if gauge.kind == "count" else gauge_in_words(gauge)
    where = "" if gauge.where is None else f" where {_code(gauge.where)}"
    by = f" by {' and '.join(column for column, _ in gauge.by)}" if gauge.by else ""
    spends = f"mu^2 = {rounded_up(cost.mu_squared)}" if isinstance(cost, GaussianCost) else (
        f"epsilon = {rounded_up(cost.epsilon)}"
    )  # fmt: skip
    scale = mechanism.law.scale / Fraction(2) ** mechanism.strategy.lattice_bits * gauge.round_to
    noise = f"of scale {float(scale):.6g}"
    if gauge.clip is not None:
        noise = f"of scale {float(scale / gauge.round_to / UNIT):.6g} times the clip"
    views = "; ".join(_published(plan, gauge, name, decay) for name, decay in gauge.views)
    whole = "mean" if gauge.kind == "mean" else "sum"
    totals = f"; and of each of them the {whole} of all cells, as the cell *"
    totals = totals if gauge.totals else ""
    top = "" if gauge.top is None else f"; of each {ranked_in_words(gauge)}"
    number = f"{len(gauge.cells):,} cell{'s' * (len(gauge.cells) != 1)}"
    if gauge.discover is not None:
        number = "cells that are discovered"
    if gauge.select is not None:
        top = ", of the cells that are shown, ranked by noisy values"
    return (
        f"the {what}{where}{by} ({number}), as {mechanism.measures}, with "
        f"{mechanism.noise} noise {noise} on every coordinate, drawn once. "
        f"{100 * budget_share(plan, gauge):.3g} % of the budget ({spends}). "
        f"Published: {views}{totals}{top}.{names_of(plan, gauge)}"
        f"{choices_in_words(plan, gauge)}{_ratio(gauge)}{_clip(gauge)}"
    )


def _clip(gauge: PlannedGauge) -> str:
    """How a clip is found; nothing of other gauges. Begins with a space."""
    if gauge.clip is None:
        return ""
    cost = gauge.clip.mechanism.cost
    assert isinstance(cost, GaussianCost), "others were refused"
    return (
        f" {gauge.clipped.in_words()} The counts of magnitudes are measured once an epoch of steps "
        f"that are fixed in advance, as {gauge.clip.mechanism.measures} (mu^2 = "
        f"{rounded_up(cost.mu_squared)} of its own) and are published as well. What comes before "
        "there is a first clip counts at the first step that has one."
    )


def _ratio(gauge: PlannedGauge) -> str:
    """How a mean comes to be; nothing of other gauges. Begins with a space."""
    if gauge.kind != "mean":
        return ""
    if gauge.clip is not None:
        return (
            " Measured are the sum of distances from the middle of the clip, and the number of "
            "values; a mean is the ratio of the two noisy numbers, and the noisy number of values "
            "is published beside it. Where that is too small for a ratio there is no value."
        )
    middle, reach = (_number(n * gauge.round_to) for n in (gauge.bounds.centre, gauge.bounds.reach))
    return (
        f" Measured are the sum of distances from {middle}, the middle of the bounds, and the "
        f"number of values, each counted as {reach}; a mean is the ratio of the two noisy numbers, "
        "and the noisy number of values is published beside it. Where that is too small for a "
        "ratio there is no value."
    )


def names_of(plan: Plan, gauge: PlannedGauge) -> str:
    """Return how the cells of a gauge come to be named, and at what cost; nothing if all are known.

    Begins with a space where there is something to say.
    """
    found = gauge.mechanism.discovery
    if found is None:
        return ""
    sentence, unit = threshold_in_words(plan, gauge), "event" if plan.unit is None else "id"
    kind = (
        "This holds also where later events are chosen after reading what was published."
        if found.adaptive
        else "This holds for streams fixed in advance: where events are chosen after reading what "
        "was published, a name could be shown with a larger chance."
    )
    return (
        f" {sentence[0].upper()}{sentence[1:]}; from then on it is published at every step, and "
        "what was measured of it before stands in its measurement. Until then nothing of it is: no "
        f"name, number or count. A name that one {unit} alone brings is "
        f"shown with a chance of at most {rounded_up(found.delta)}. {kind}"
    )


def _published(plan: Plan, gauge: PlannedGauge, name: str, decay: Decay) -> str:
    """A view's name and what it is."""
    every, step_us = gauge.every_of(name), plan.clock.step_us
    aligned = f", every {length_in_words(every, step_us)}" if every > 1 else ""
    return f"{name} ({view_in_words(decay, step_us)}{aligned})"


def left_out(plan: Plan) -> tuple[str, ...]:
    """Return which rows count nowhere and which values are cut, so that numbers may be off."""
    rows = ["rows that cannot be read"]
    if plan.time is not None:
        zone = " (or whose stamp has no zone)" if plan.time.timezone is None else ""
        if plan.time.format != "iso":
            zone = ""
        rows.append(f"rows without a stamp in {plan.time.column}{zone}")
        rows.append("rows outside the steps, or of a step that was published before they came")
    if plan.unit is not None:
        rows.append(
            f"rows without an id in {plan.unit.column}, or with one spelled as a float (1.0); ids "
            "are compared as text, byte for byte"
        )
        beyond = "rows" if plan.event is None else "events"
        rows.append(f"{beyond} beyond the bound of their id")
    if plan.event is not None:
        rows.append(
            f"rows without an event in {plan.event}, judged as ids are; of an event, cells and "
            "repeats beyond what is declared; and events that began before the first step, or "
            "whose first step was published before they came"
        )
    found = [column for g in plan.gauges for column, values in g.by if not values]
    if found:
        rows.append(
            f"in a gauge that discovers values of {' and '.join(dict.fromkeys(found))}, rows "
            "without one (null or empty text), or with one of more than 1,024 bytes"
        )
    if any(g.other is None and any(values for _, values in g.by) for g in plan.gauges):
        rows.append("rows whose value is not among the declared ones, where other is dropped")
    more, cut = _of_values(plan)
    return (
        f"These count nowhere: {'; '.join([*rows, *more])}.",
        *cut,
        "So the numbers may differ from the truth by more than noise. The intervals cover the "
        "noise alone.",
        *_of_newly_named(plan),
    )


def _of_values(plan: Plan) -> tuple[list[str], list[str]]:
    """Which rows count nowhere for what they hold, and which values are cut or told apart."""
    rows: list[str] = []
    kinds = {gauge.kind for gauge in plan.gauges}
    cut = ["A cell's total of one step that is larger than declared counts as the largest."]
    for kind, done in (("sum", "summed"), ("mean", "averaged")):
        if kind in kinds:
            rows.append(f"rows without a number in a column that is {done}")
            cut.insert(0, f"A value outside the bounds of its {kind} counts as the nearest bound.")
    if any(gauge.clip for gauge in plan.gauges):
        cut.insert(0, "A value beyond the clip in force, which each release names, counts as it.")
    if any(gauge.discover for gauge in plan.gauges):
        cut.append(
            "Discovered values are compared as text, byte for byte: composed and decomposed "
            "letters are two, the integer 1 and the text 1 are one, 1.0 is another."
        )
    if "count_distinct" in kinds:
        rows.append("rows without a value in a column whose different values are counted")
        cut.append("Values are different if their texts are, byte for byte.")
    return rows, cut


def _of_newly_named(plan: Plan) -> list[str]:
    """What a reader has to know of the numbers of a value that has just been named."""
    if not any(gauge.discover for gauge in plan.gauges):
        return []
    return [
        "A value is named because its noisy number passed the threshold. So numbers near the "
        "threshold are too high on average at the step of naming, and an interval made for one "
        "cell covers them less often than its level says; at later steps, as far as their noise "
        "is the same, too. Intervals of ranked cells, which hold at once, are not concerned."
    ]


def at_rest(plan: Plan) -> tuple[str, ...]:
    """Return what is kept where, and how the noise is made."""
    ids = ""
    if plan.unit is not None:
        ids = ", and how often each id was counted, under keyed hashes of the ids"
    if plan.event is not None:
        ids += ", and keyed hashes of the ids of all events so far"
    if any(gauge.kind == "count_distinct" for gauge in plan.gauges):
        ids += (
            ", and keyed hashes of the values that later counts need, with their cells and when "
            "they were seen last"
        )
    if any(gauge.clip for gauge in plan.gauges):
        ids += (
            ", and, until there is a first clip, sums of what waits for it, under each clip that "
            "it may be, and how many values of each magnitude the epoch has that is not over"
        )
    if any(gauge.select for gauge in plan.gauges):
        ids += ", and of cells that are chosen the noisy threshold of the tests that are on"
    noise = "under keys of the operating system, erased after use"
    if any(gauge.discover for gauge in plan.gauges):
        ids += (
            ", and every value that was discovered, named or not, with the keys of its noise: a "
            "name that is shown later has its past measured anew, with the noise that it had"
        )
        noise += (
            " (those of discovered values are kept in the store, as long as it has private state)"
        )
    kept = (
        "They are kept as long as the store, for there is no end."
        if plan.clock.end is None
        else "They are erased when the last step is measured."
    )
    return (
        f"Noise comes from AES-256 {noise}: the "
        "promise holds against readers who cannot break AES.",
        f"The store holds exact totals of the past, as far as later steps need them{ids}. {kept} "
        "Only its owner may read it (mode 0600).",
        "Exact counts of rows that were left out and of totals that were cut stay in the store. "
        "They carry no noise and are the operator's alone.",
        "The public folder holds noisy numbers, the plan, this statement and the account of what "
        "was spent (ledger.json). What was published cannot be recalled, and need not be: the "
        "promise holds whatever becomes of it.",
    )
