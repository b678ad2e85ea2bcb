"""What a statement says of a plan, sentence by sentence: each is true of the plan it is for."""

from __future__ import annotations

from tidegauge.mechanisms.first_values import Threshold
from tidegauge.planning.parts import Clip
from tidegauge.planning.plan import Plan
from tidegauge.planning.promise import protected_of
from tidegauge.planning.words import threshold_in_words

__all__ = ["at_rest", "duties", "left_out", "named_when", "not_covered"]


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
    if any(isinstance(gauge.clip, Threshold) for gauge in plan.gauges):
        ids += (
            ", and, until the clip is drawn from them, the values of the first steps, each with "
            "its cell"
        )
    if any(isinstance(gauge.clip, Clip) for gauge in plan.gauges):
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
