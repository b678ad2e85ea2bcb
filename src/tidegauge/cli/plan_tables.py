"""What `plan` shows of a plan: tables and sentences for people."""

from __future__ import annotations

from typing import Any

from tidegauge.cli.plan_details import tell_budget, tell_candidates
from tidegauge.cli.terminal import Column, Terminal
from tidegauge.cli.words import significant

__all__ = ["tell_plan"]


def tell_plan(terminal: Terminal, told: dict[str, Any]) -> None:
    """Show people what a config gives and costs, as `described` has it."""
    if "for_error" in told:
        tell_budget(terminal, told["for_error"])
    if "compared" in told:
        tell_candidates(terminal, told["compared"])
    _tell_gauges(terminal, told["gauges"])
    _tell_published(terminal, told["gauges"])
    for gauge in told["gauges"]:
        _tell_of(terminal, gauge)
    for apart in ("delta_spent", "thresholds"):
        if apart in told:
            terminal.data(f"{told[apart]}.")
    terminal.data("")
    columns = [Column(title, right=True) for title in ("together", "epsilon", "delta")]
    rows = [
        [str(row["events"]), significant(row["epsilon"]), f"{row['delta']:g}".replace("e-0", "e-")]
        for row in told["k_events"]
    ]
    terminal.table(
        "What it means for several protected units, such as those of one person", columns, rows
    )
    terminal.data(f"\n{told['guarantee']}, spent: {told['spent']}\n{told['sha256']}")


def _tell_gauges(terminal: Terminal, gauges: list[dict[str, Any]]) -> None:
    columns = [Column("gauge"), Column("cells", right=True), Column("budget", right=True)]
    columns += [Column("noise"), Column("on every coordinate of")]
    rows = [
        [
            gauge["name"],
            "discovered" if gauge["cells"] is None else f"{gauge['cells']:,}",
            f"{100 * gauge['budget_share']:.3g} %",
            gauge["noise"],
            gauge["measures"],
        ]
        for gauge in gauges
    ]
    terminal.table("What will be measured (no data was read)", columns, rows)
    terminal.data("")


def _tell_of(terminal: Terminal, gauge: dict[str, Any]) -> None:
    """What is known of one gauge beforehand, in sentences."""
    if "ranked" in gauge:
        terminal.data(f"{gauge['name']}: of each view and step {gauge['ranked']}.")
    if "discovery" in gauge:
        _tell_discovery(terminal, gauge["name"], gauge["discovery"])
    if "choices" in gauge:
        terminal.data(f"{gauge['name']}: {gauge['choices']['chosen']}.")
    for view in gauge["views"]:
        if "stands_out" in view:
            terminal.data(f"{gauge['name']}, {view['name']}: {view['stands_out']}.")


def _tell_discovery(terminal: Terminal, gauge: str, found: dict[str, Any]) -> None:
    """When a name is shown."""
    streams = "" if found["adaptive"] else " (promised for streams fixed in advance)"
    terminal.data(f"{gauge}: {found['named']}{streams}.")


def _tell_published(terminal: Terminal, gauges: list[dict[str, Any]]) -> None:
    """What is known of the views beforehand, which is another thing for every kind."""
    clipped = [gauge for gauge in gauges if "clip" in gauge]
    fixed = [gauge for gauge in gauges if "clip" not in gauge]
    means = [gauge for gauge in fixed if gauge["kind"] == "mean"]
    if len(means) < len(fixed):
        _tell_views(terminal, [gauge for gauge in fixed if gauge["kind"] != "mean"])
    if clipped:
        _tell_clips(terminal, clipped)
    if means:
        _tell_means(terminal, means)


def _tell_clips(terminal: Terminal, gauges: list[dict[str, Any]]) -> None:
    """The noise of clipped values is a multiple of the clip, which the stream will tell."""
    columns = [Column("gauge"), Column("view"), Column("noise of a sum, worst step", right=True)]
    rows = [
        [gauge["name"], view["name"], f"{significant(view['noise_of_clip'])} times the clip"]
        for gauge in gauges
        for view in gauge["views"]
    ]
    terminal.table("What will be published under clips that are found", columns, rows)
    for gauge in gauges:
        terminal.data(f"{gauge['name']}: {gauge['clip']['says']}")
        if not gauge["clip"]["can_pay"]:
            terminal.data(
                f"{gauge['name']}: learning the clip cannot pay: no clip lies that far below the "
                "bound. Leave out clip."
            )
    terminal.data("")


def _tell_means(terminal: Terminal, gauges: list[dict[str, Any]]) -> None:
    """How far a mean may be off depends on how many events it is of."""
    counts = list(gauges[0]["views"][0]["half_width_of"])
    columns = [Column("gauge"), Column("view")]
    columns += [Column(f"of {int(count):,} events", right=True) for count in counts]
    columns += [Column("noise of the count", right=True)]
    rows = [
        [
            gauge["name"],
            view["name"],
            *(f"± {significant(view['half_width_of'][count])}" for count in counts),
            significant(view["count_std"]),
        ]
        for gauge in gauges
        for view in gauge["views"]
    ]
    levels = ", ".join(dict.fromkeys(f"{100 * g['level']:.10g} % {g['band']}" for g in gauges))
    title = f"Half of the interval of a mean ({levels}), at the worst step, wherever it lies"
    terminal.table(title, columns, rows)
    terminal.data(
        "A mean of few events is mostly noise. No lower bound is known for means: none is "
        "claimed.\n"
    )


def _tell_views(terminal: Terminal, gauges: list[dict[str, Any]]) -> None:
    columns = [Column("gauge"), Column("view")]
    columns += [Column(f"noise, {step} step", right=True) for step in ("first", "worst", "last")]
    levels = {(gauge["level"], gauge["band"]) for gauge in gauges}
    level, band = levels.pop()
    kind = "" if band == "pointwise" else f" {band}"
    interval = "half-width" if levels else f"± {100 * level:.10g} %{kind}"
    columns += [Column(f"{interval}, worst", right=True), Column("ratio", right=True)]
    rows = [
        [
            gauge["name"],
            name,
            significant(noise["noise_std"][0]),
            significant(noise["worst"]["noise_std"]),
            significant(noise["noise_std"][-1]),
            significant(noise["worst"]["half_width"]),
            f"{view['ratio']:.2f}",
        ]
        for gauge in gauges
        for view in gauge["views"]
        for name, noise in [
            (view["name"], view),
            *([(f"{view['name']}, cell *", view["total"])] if "total" in view else []),
        ]
    ]
    terminal.table("What will be published (standard deviations)", columns, rows)
    terminal.data(
        "Ratio: worst noise over the least of any factorization mechanism with noise of this kind "
        "at this cost."
    )
    for gauge in gauges:
        if "sets" in gauge:
            terminal.data(f"{gauge['name']}: {gauge['sets']}.")
    terminal.data("")
