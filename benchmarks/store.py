"""The store: a live step to durable commit, resuming after a kill, and 10^5 blocks.

Live steps are of 1000 cells under (epsilon, delta): measured, committed; then the mark is written
and three views are published. Everything is synced to the disk that holds the temporary folder.
"""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from fractions import Fraction
from functools import cache
from pathlib import Path

import numpy as np
from timing import is_quick

from tidegauge.engine.documents import spend_of
from tidegauge.engine.mark import Mark, MarkFile
from tidegauge.engine.publisher import Publisher
from tidegauge.engine.store import Store
from tidegauge.mechanisms.design import design
from tidegauge.mechanisms.meter import Meter
from tidegauge.mechanisms.request import request_of
from tidegauge.planning.plan import Clock, Plan, PlannedGauge, TimeColumn
from tidegauge.privacy.unit import NeighboringRelation
from tidegauge.strategies.decay import Exponential, Running, Window

CELLS, HOUR = 1000, 3_600_000_000
VIEWS = (("running", Running()), ("day", Window(24)), ("recent", Exponential(half_life=24)))


@cache
def plan_of(cells=CELLS):
    names = tuple(f"cell {i}" for i in range(cells))
    asked = {"views": dict(VIEWS), "unit": "event", "cells": cells}
    mechanism = design(request_of(**asked, horizon=8760, epsilon=1.0, delta=1e-9))
    gauge = PlannedGauge(
        name="visits", kind="count", column=None, low=0, high=1, round_to=Fraction(1), where=None,
        by=(("page", names),), other=None, views=VIEWS, every=(), anticipate=(),
        budget_weight=Fraction(1), mechanism=mechanism,
    )  # fmt: skip
    return Plan(
        clock=Clock(0, HOUR, None), time=TimeColumn("at", None, "iso"), unit=None,
        relation=NeighboringRelation.ADD_OR_REMOVE_ONE, guarantee=mechanism.guarantee,
        gauges=(gauge,), about=(), versions=(),
    )  # fmt: skip


class Live:
    """A gauge that measures step by step."""

    def __init__(self, root, plan):
        self.plan, self.root = plan, root
        self.store = Store(
            root / "a.tidegauge", fingerprint=plan.fingerprint, canonical=plan.canonical(),
            gauges=["visits"],
        )  # fmt: skip
        self.mark_file = MarkFile(root / "marks" / "a.mark", self.store.path)
        self.publisher = Publisher(root / "public", plan, version="0")
        if not self.store.spends():
            self.store.charge([spend_of(plan, self.store.name, 0, "2025-01-01")])
        self.publisher.prepare(self.store.spends())
        self.resumed = self.publisher.resume(self.store)
        state = self.store.states().get("visits")
        step = self.store.step
        self.meter = Meter(plan.gauges[0].mechanism, state=state, step=step)

    def commit(self, exact):
        step = self.store.step
        measured = {"visits": self.meter.measure(exact)}
        states = {"visits": self.meter.state}
        self.store.commit(step, 1, measured, states, readings=self.publisher.checkpoints())

    def publish(self):
        step = self.store.step - 1
        mark = Mark(self.store.name, "", self.plan.fingerprint, step + 1, ())
        self.mark_file.write(mark)
        self.publisher.publish(step, 1, {"visits": self.store.block("visits", step)})
        self.publisher.settle()


def median(seconds):
    return sorted(seconds)[len(seconds) // 2] * 1e3


def live_steps(root, steps=500):
    live, exact = Live(root, plan_of()), np.ones((1, CELLS), np.int64)
    commits, whole = [], []
    for _ in range(steps):
        start = time.perf_counter()
        live.commit(exact)
        commits.append(time.perf_counter() - start)
        live.publish()
        whole.append(time.perf_counter() - start)
    live.store.close()
    print(f"live step, {CELLS} cells: durable commit {median(commits):.2f} ms median, "
          f"{min(commits) * 1e3:.2f} ms least, "
          f"{sorted(commits)[len(commits) * 99 // 100] * 1e3:.2f} ms at 99 %")  # fmt: skip
    print(
        f"  with mark and three published views: {median(whole):.2f} ms median, "
        f"{min(whole) * 1e3:.2f} ms least"
    )


def endless(root):
    """Measure and publish for ever; somebody kills it."""
    live, exact = Live(Path(root), plan_of()), np.ones((1, CELLS), np.int64)
    while True:
        live.commit(exact)
        live.publish()
        print(live.store.step, flush=True)


def resume_after_kill(root, steps=300):
    command = [sys.executable, __file__, "endless", str(root)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE)
    for _ in range(steps):
        process.stdout.readline()
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    process.stdout.close()
    plan = plan_of()
    start = time.perf_counter()
    live = Live(root, plan)
    seconds = time.perf_counter() - start
    print(f"resume after a kill at step {live.store.step}: {seconds * 1e3:.0f} ms, "
          f"{live.resumed} blocks published again")  # fmt: skip
    live.store.close()


def many_blocks(root, blocks=100_000):
    """10^5 blocks of one step and one cell: opening, committing and looking stay as fast."""
    plan = plan_of(cells=1)
    mechanism = plan.gauges[0].mechanism
    store = Store(root / "b.tidegauge", fingerprint="f", canonical=b"p", gauges=["visits"])
    meter, exact = Meter(mechanism), np.ones((1, 1), np.int64)
    seconds = []
    for step in range(blocks):
        start = time.perf_counter()
        store.commit(step, 1, {"visits": meter.measure(exact)}, {"visits": meter.state})
        seconds.append(time.perf_counter() - start)
    thousand = min(1000, blocks // 2)
    first, last = median(seconds[:thousand]), median(seconds[-thousand:])
    store.close()
    start = time.perf_counter()
    store = Store(root / "b.tidegauge", fingerprint="f", canonical=b"p", gauges=["visits"])
    found = len(store.spans()), store.states(), store.block("visits", blocks - 1)
    opened = time.perf_counter() - start
    store.close()
    print(f"{found[0]} blocks: first thousand {first:.2f} ms, last thousand {last:.2f} ms "
          f"(ratio {last / first:.2f}); opened again in {opened * 1e3:.0f} ms")  # fmt: skip


def main():
    quick = is_quick(__doc__)
    sizes = {live_steps: 20, resume_after_kill: 20, many_blocks: 200}
    for measure, size in sizes.items():
        root = Path(tempfile.mkdtemp(prefix="tidegauge-benchmark-"))
        try:
            measure(root, *([size] if quick else []))
        finally:
            shutil.rmtree(root)


if __name__ == "__main__":
    endless(sys.argv[2]) if sys.argv[1:2] == ["endless"] else main()
