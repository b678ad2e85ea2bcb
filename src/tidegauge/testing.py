"""Doubles for tests: noise that can be repeated, and so protects nobody."""

from __future__ import annotations

import hashlib
from functools import partial
from typing import Any, TypeVar, final

import numpy as np
from numpy.typing import NDArray

from tidegauge.mechanisms.design import design
from tidegauge.mechanisms.gauge import Gauge
from tidegauge.mechanisms.item_noise import ItemNoise
from tidegauge.mechanisms.measure import measure_threshold
from tidegauge.mechanisms.meter import Meter
from tidegauge.mechanisms.oneshot import AboveThreshold, Once
from tidegauge.mechanisms.plan import GaugePlan
from tidegauge.mechanisms.request import request_of
from tidegauge.mechanisms.selector import Selector
from tidegauge.noise.randomness import AesWords, Words
from tidegauge.papers.cardoso_rogers.algorithms import Run
from tidegauge.papers.cardoso_rogers.events import ItemSystem
from tidegauge.papers.perrier.thresholded import ThresholdedSum
from tidegauge.papers.system import System

__all__ = [
    "SeededWords",
    "seeded_gauge",
    "seeded_items",
    "seeded_meter",
    "seeded_selector",
    "seeded_system",
    "seeded_thresholded",
]

Made = TypeVar("Made", bound=System)
MadeItems = TypeVar("MadeItems", bound=ItemSystem)


@final
class SeededWords(Words):
    """INSECURE: words from a known seed, for tests only; the same construction as the real ones.

    Args:
        seed: Any integer; the same seed gives the same words in every run.

    Examples:
        >>> SeededWords(1)
        SeededWords(INSECURE)
    """

    def __init__(self, seed: int) -> None:
        self._words = AesWords(hashlib.sha256(f"INSECURE tidegauge seed {seed}".encode()).digest())

    def __repr__(self) -> str:
        return "SeededWords(INSECURE)"

    def fill(self, inputs: NDArray[np.uint64], outputs: NDArray[np.uint64]) -> None:
        """Write the word of each input number."""
        self._words.fill(inputs, outputs)

    def check_live(self) -> None:
        """Refuse closed words, and those of a fork."""
        self._words.check_live()

    def scratch(
        self, count: int
    ) -> tuple[NDArray[np.uint64], NDArray[np.uint64], NDArray[np.int64]]:
        """Return reused arrays for ``fill``."""
        return self._words.scratch(count)

    def close(self) -> None:
        """Erase the key."""
        self._words.close()


def seeded_gauge(seed: int, *, keep: bool = False, **asked: Any) -> Gauge:
    """Return an INSECURE gauge whose releases can be repeated; its arguments are Gauge's.

    Examples:
        >>> import tidegauge as tg
        >>> gauge = seeded_gauge(1, views=[tg.Step()], unit="event", epsilon=1)
        >>> again = seeded_gauge(1, views=[tg.Step()], unit="event", epsilon=1)
        >>> float(gauge.update(5)["step"].value) == float(again.update(5)["step"].value)
        True
    """
    plan = design(request_of(**asked))
    gauge = Gauge.__new__(Gauge)
    gauge._start(plan, seeded_meter(seed, plan), keep=keep)
    return gauge


def seeded_meter(seed: int, plan: GaugePlan, state: Any = None, step: int = 0) -> Meter:
    """Return an INSECURE meter whose measurement can be repeated; its arguments are Meter's."""
    meter = Meter.__new__(Meter)
    meter._start(plan, SeededWords(seed), state, step)
    return meter


def seeded_selector(seed: int, plan: GaugePlan, state: Any = None, step: int = 0) -> Selector:
    """Return an INSECURE selector whose noise can be repeated; its arguments are Selector's."""
    selector = Selector(plan, state=state, step=step)
    selector._meter.close()
    state = dict(selector._meter.state)
    selector._meter = seeded_meter(seed, plan, state, step)
    for number, part in enumerate((selector._order, selector._tests)):
        part._words = SeededWords(1000 * seed + 500 + number)
    selector._tests._threshold_words = SeededWords(1000 * seed + 502)
    return selector


def seeded_system(seed: int, system: Made) -> Made:
    """Return a system that has measured nothing yet, made INSECURE: its noise can be repeated."""
    system.close()
    system._meter = seeded_meter(seed, system.plan)
    return system


def seeded_items(seed: int, system: MadeItems) -> MadeItems:
    """Return a system of items that has measured nothing yet, made INSECURE."""
    parts = list(vars(system).values())
    for run in [part for part in parts if isinstance(part, Run)]:
        parts += vars(run).values()
    key = hashlib.sha256(f"INSECURE tidegauge items {seed}".encode()).digest()
    for number, part in enumerate(parts):
        if isinstance(part, ItemNoise):
            part._start(AesWords(key), key)
        elif isinstance(part, Once):
            part._words = SeededWords(1000 * seed + number)
        if isinstance(part, AboveThreshold):
            part._threshold_words = SeededWords(1000 * seed + 500 + number)
    return system


def seeded_thresholded(seed: int, system: ThresholdedSum) -> ThresholdedSum:
    """Return a system that has measured nothing yet, made INSECURE: its noise can be repeated."""
    system._draw = partial(measure_threshold, words=SeededWords(seed))
    system._open = lambda plan: seeded_meter(seed + 1 + (plan.end != 1), plan)
    return system
