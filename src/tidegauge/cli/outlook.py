"""What a plan will give, before any data is read: noise, interval and ratio of every view."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tidegauge.cli.terminal import Column, Terminal
from tidegauge.cli.words import significant

if TYPE_CHECKING:
    from tidegauge.mechanisms.plan import GaugePlan
    from tidegauge.strategies.decay import Decay

__all__ = ["Outlook", "outlook", "tell"]

_UNKNOWN_HORIZON = 1 << 20  # where a running sum is judged if nobody says how long it runs


@dataclass(frozen=True)
class Outlook:
    """One view of one gauge, as it will be.

    Attributes:
        gauge: The gauge.
        view: The view.
        steps: The first, a middle and the last step that are shown, counted from 1.
        noise_std: Standard deviation of the noise at these steps, in the column's units.
        half_width: Half the width of the 95 % interval at the last of these steps.
        ratio: Worst noise over the least that any factorization mechanism could reach there.
    """

    gauge: str
    view: str
    steps: tuple[int, ...]
    noise_std: tuple[float, ...]
    half_width: float
    ratio: float


def outlook(
    gauge: str, views: Sequence[tuple[str, Decay]], plan: GaugePlan, unit: float, last: int | None
) -> list[Outlook]:
    """Return what each view of a gauge will be.

    Args:
        gauge: Its name.
        views: Names and decays.
        plan: Its mechanism.
        unit: The value of one grain.
        last: The last step, counted from 1; None: no end.
    """
    from tidegauge.engine.ratio import ratio_to_bound

    end = last or plan.horizon or _UNKNOWN_HORIZON
    steps = (1, (end + 1) // 2, end)
    rows = []
    for view, decay in views:
        stds = tuple(float(std) * unit for std in plan.noise_std(decay, steps))
        half = float(plan.half_width(decay, [end])[0]) * unit
        rows.append(Outlook(gauge, view, steps, stds, half, ratio_to_bound(plan, decay)))
    return rows


def tell(terminal: Terminal, rows: Sequence[Outlook]) -> None:
    """Print the table of views; on every line what the numbers mean at the last step."""
    columns = [
        Column("gauge"),
        Column("view"),
        *(Column(f"noise std, {name} step", right=True) for name in ("first", "middle", "last")),
        Column("± 95 %", right=True),
        Column("ratio", right=True),
    ]
    cells = [
        [
            row.gauge, row.view, *(significant(std) for std in row.noise_std),
            significant(row.half_width), f"{row.ratio:.2f}",
        ]
        for row in rows
    ]  # fmt: skip
    terminal.table("What will be published (no data was read)", columns, cells)
