"""What `plan` tells beside the plan: candidates, the budget for an error, a picture."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tidegauge.cli.steps import ends_of
from tidegauge.cli.terminal import Column, Terminal
from tidegauge.cli.words import significant
from tidegauge.errors import InvalidParameter

if TYPE_CHECKING:
    from tidegauge.planning.declared import Config
    from tidegauge.planning.plan import Plan
    from tidegauge.planning.target import Budget, Target

__all__ = [
    "budget_data",
    "draw_noise",
    "solved",
    "tell_budget",
    "tell_candidates",
    "warn_of_budget",
]

_MOST_EPSILON = 10  # beyond it a promise is hardly one
_MOST_PANELS = 64
_TIMES = (
    "Times the noise: of the worst view, with the noise of each taken relative to its lower bound. "
    "Noise is told at the worst step; ratios are to the least that noise of the same kind can be.\n"
)
_LAST_DAY_US = 253_402_214_400_000_000  # 9999-12-31: no calendar goes further


def solved(config: Config, texts: Sequence[str]) -> tuple[Budget, tuple[Target, ...]]:
    """Return the least budget for errors such as ``week=25``."""
    from tidegauge.planning.target import budget_for, targets_of

    try:
        targets = targets_of(config, texts)
    except InvalidParameter as problem:
        raise click.UsageError(str(problem)) from None
    return budget_for(config, targets), targets


def budget_data(budget: Budget, targets: Sequence[Target], plan: Plan) -> dict[str, Any]:
    """Return the answer to ``--for-error`` as plain data."""
    return {
        "field": budget.field,
        "value": float(budget.value),
        "written": budget.written,
        "views": [
            {
                "gauge": plan.gauges[target.gauge].name,
                "name": target.view.name,
                "asked": float(target.error),
                **{
                    key: float(given)
                    for key, given in (("events", target.events), ("clip", target.clip))
                    if given is not None
                },
                "half_width": width,
                "step": step,
                "level": plan.gauges[target.gauge].mechanism.level,
                "band": plan.gauges[target.gauge].mechanism.band,
            }
            for target, (width, step) in zip(targets, budget.widths, strict=True)
        ],
    }


def warn_of_budget(terminal: Terminal, plan: Plan) -> None:
    """Warn of a budget at which little is hidden; an error alone asks for any budget."""
    from tidegauge.planning.spending import epsilon_of

    epsilon = float(epsilon_of(plan))
    if epsilon > _MOST_EPSILON:
        terminal.say(
            f"Warning: this error takes epsilon {significant(epsilon)}, above {_MOST_EPSILON}. "
            "Little is hidden then: at 10 a reader's odds may already change 22,026-fold. Ask for "
            "a larger error, or a view of more steps."
        )


def tell_budget(terminal: Terminal, told: dict[str, Any]) -> None:
    """Tell what to write in the config."""
    terminal.data(f"Write {told['field']}: {told['written']} under privacy.")
    for view in told["views"]:
        of = f" of {view['events']:,.10g} events" if "events" in view else ""
        under = f" under a clip of {view['clip']:,.10g}" if "clip" in view else ""
        terminal.data(
            f"{view['gauge']}, {view['name']}{of}{under}: at its worst step ({view['step']:,}) "
            "half of the "
            f"{view['band']} {100 * view['level']:.10g} % interval is "
            f"{significant(view['half_width'])} (asked: at most {view['asked']:g})."
        )
        if "clip" in view:
            terminal.data(
                "What the clip cuts off comes on top, and some noise where a clip is chosen again."
            )
    terminal.data("")


def tell_candidates(terminal: Terminal, told: Sequence[dict[str, Any]]) -> None:
    """Tell every candidate of every gauge, and why it was chosen or not."""
    columns = [Column("noise"), Column("on every coordinate of"), Column("worst view")]
    columns += [Column(title, right=True) for title in ("noise there", "lower bound", "ratio")]
    columns += [Column("outcome")]
    for gauge in told:
        rows = []
        for candidate in gauge["candidates"]:
            named = {view["name"]: view for view in candidate["views"]}
            worst = named.get(candidate["worst_view"])
            numbers = ["", "", "", ""]
            if worst is not None:
                stds = (significant(worst[name]) for name in ("worst_std", "lower_bound"))
                numbers = [worst["name"], *stds, f"{worst['ratio']:.2f}"]
            row = [candidate["noise"], candidate["strategy"], *numbers, candidate["verdict"]]
            rows.append(row)
        terminal.table(f"Candidates for {gauge['gauge']}", columns, rows)
        terminal.data(f"{gauge['choice'][0].upper()}{gauge['choice'][1:]}")
    terminal.data(_TIMES)


def draw_noise(plan: Plan, output: Path) -> None:
    """Draw the noise of every view over its steps."""
    from tidegauge.mechanisms.clip_plan import UNIT
    from tidegauge.planning.widest import last_step, noise_curve
    from tidegauge.planning.words import span_in_words
    from tidegauge.plots import Panel, noise_figure

    views = [(gauge, name, decay) for gauge in plan.gauges for name, decay in gauge.views]
    if len(views) > _MOST_PANELS:
        raise click.UsageError(
            f"Expected at most {_MOST_PANELS} views to draw, got {len(views)}: one panel for each. "
            "They would be too small. Draw a plan with fewer."
        )
    clock = plan.clock
    last = max(last_step(gauge.mechanism) for gauge in plan.gauges)
    if clock.step_us is not None and clock.start_us + last * clock.step_us > _LAST_DAY_US:
        clock = replace(clock, step_us=None)
    panels, times = [], []
    for number, (gauge, name, decay) in enumerate(views):
        steps, least, most = noise_curve(gauge.mechanism, decay, gauge.every_of(name))
        grain = float(gauge.round_to)
        what = f"{gauge.name}, {name}" if len(plan.gauges) > 1 else name
        if gauge.kind == "mean":  # a ratio has no noise of its own: that of its count is drawn
            grain, what = 1 / gauge.bounds.reach, f"{what}: number of events"
        if gauge.clip is not None:
            grain, what = 1 / UNIT, f"{what}: in clips"
        label = f"{what} ({span_in_words(decay, plan.clock.step_us)})"
        panels.append(Panel(label, most * grain, least * grain, most * grain, number))
        times.append(ends_of(steps, clock))
    about = dict(plan.about).get("title")
    title = "Noise of the plan" if about is None else f"{about}: noise"
    unit = "number of the step" if clock.step_us is None else "end of the step (UTC)"
    noise_figure(
        times, panels, path=output, title=title, time_label=unit,
        value_label="standard deviation of the noise",
        caption=f"{plan.guarantee!r}. {plan.sha256}",
    )  # fmt: skip
