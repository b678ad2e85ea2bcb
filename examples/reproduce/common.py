"""What the scripts of this folder share: streams side by side, the packages' data, their output."""

from __future__ import annotations

import argparse
import importlib.util
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from tidegauge.papers.system import System

OUTPUT = Path(__file__).resolve().parent / "output"
STREAMS, WORK = 4000, 1 << 24  # streams side by side at most, and streams times steps

Maker = Callable[[int], System]
"""A system as a function of the number of streams."""


def measured(make: Maker, step: int, work: int) -> float:
    """The std of a system's error at a step, over streams that differ in their noise alone."""
    streams = max(100, min(STREAMS, work // step))
    bits = np.arange(step) % 3 == 0
    with make(streams) as system:
        exact, last = float(system.decay.weights(step)[::-1] @ bits), np.empty(0)
        block = max(1, (1 << 19) // streams)
        for start in range(0, step, block):
            readings = np.repeat(bits[start : start + block, None], streams, axis=1)
            last = system.update_many(readings)[-1]
    return float(np.sqrt(np.mean((last - exact) ** 2)))


def example(folder: str) -> ModuleType:
    """The module that prepares the data of another example."""
    path = Path(__file__).resolve().parents[1] / folder / "prepare.py"
    spec = importlib.util.spec_from_file_location(f"{folder}_prepare", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """The lines of a Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return ["| " + " | ".join(line) + " |" for line in lines]


def figure(panels: int, size: tuple[float, float]) -> tuple[Any, Any]:
    """A picture with panels side by side that have a grid and no frame."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    picture = Figure(figsize=size, layout="constrained")
    FigureCanvasAgg(picture)
    made = picture.subplots(1, panels, squeeze=False)[0]
    for panel in made:
        panel.grid(color="#dddddd", linewidth=0.6)
        panel.spines[["top", "right"]].set_visible(False)
    return picture, made


def script(
    name: str,
    about: str | None,
    everything: Callable[[bool], Any],
    table: Callable[[Any], str],
    draw: Callable[[Any, Path], None],
) -> None:
    """Print the table; write it, and the figure, under the name of the script."""
    parser = argparse.ArgumentParser(description=(about or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="few parameters and streams")
    parser.add_argument("--output", type=Path, default=OUTPUT, help="folder for both")
    asked = parser.parse_args()
    found = everything(asked.quick)
    asked.output.mkdir(parents=True, exist_ok=True)
    text = table(found)
    (asked.output / f"{name}.md").write_text(text)
    draw(found, asked.output / f"{name}.png")
    print(text)
