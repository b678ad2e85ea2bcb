"""Kills a run at every write, one after the other, and says what each resumed run made of it.

    python killing.py ROOT MODE STRIDE

``resume`` goes on after each kill (``pure``: with noise of blocks that are still open;
``distinct``: with the values that were seen; ``mean``: of means; ``clip``: under a clip that moves;
``drawn``: under one that is drawn from first values;
``found``: with cells that are discovered; ``chosen``: with cells that are chosen);
``restore`` brings an old copy of the store back instead; ``mutant`` does so with a run that writes
its mark after publishing; ``accept`` kills a run that accepts a second release. Every STRIDE-th
point is tried.

A process that has loaded everything forks a child for each point: the child counts every statement
that SQLite executes and every call that changes or syncs a file, and ends itself by SIGKILL before
the n-th one. Nothing of the child's memory is left, as after a real kill. The page cache is, so
power loss is not what this shows.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sqlite3
import sys
import traceback
from pathlib import Path

os.environ["POLARS_MAX_THREADS"] = "1"  # before anything imports it: its threads survive no fork
sys.path.insert(0, str(Path(__file__).parent))

import stand

from tidegauge.engine import run as running
from tidegauge.engine import schema
from tidegauge.engine.documents import documents, spend_of
from tidegauge.errors import StoreBehind
from tidegauge.mechanisms.finder import Finder
from tidegauge.mechanisms.growing import GrowingReading
from tidegauge.mechanisms.meter import Meter
from tidegauge.mechanisms.reading import Reading
from tidegauge.mechanisms.selector import Selector

PLAN = stand.plan_of(end=30, pure="pure" in sys.argv)
if "distinct" in sys.argv:
    PLAN = stand.distinct_plan_of(end=30)
if "mean" in sys.argv:
    PLAN = stand.mean_plan_of(end=30)
if "clip" in sys.argv:
    PLAN = stand.clipped_plan_of(end=30)
if "drawn" in sys.argv:
    PLAN = stand.drawn_plan_of(end=30)
if "found" in sys.argv:
    PLAN = stand.found_plan_of(end=30)
if "chosen" in sys.argv:
    PLAN = stand.chosen_plan_of(end=30)
VIEW = "window" if "distinct" in sys.argv else "running"


class Points:
    """Counts writes; ends the process at the n-th."""

    def __init__(self, fatal):
        self.fatal, self.seen = fatal, 0

    def reach(self, *_):
        self.seen += 1
        if self.seen == self.fatal:
            os.kill(os.getpid(), signal.SIGKILL)

    def before(self, call):
        def counted(*args, **options):
            self.reach()
            return call(*args, **options)

        return counted

    def install(self):
        for name in ("open", "fsync", "replace", "chmod", "mkdir", "link", "unlink"):
            setattr(os, name, self.before(getattr(os, name)))
        connect = sqlite3.connect

        def traced(*args, **options):
            connection = connect(*args, **options)
            connection.set_trace_callback(self.reach)
            return connection

        schema.sqlite3.connect = traced


def late_mark(self, start, steps):
    """The mutant: publishes first, and writes the mark afterwards."""
    committed = {g.name: self.store.block(g.name, start) for g in self.plan.gauges}
    self.publisher.publish(start, steps, committed)
    self.publisher.settle()  # its last files as well
    self.mark_file.write(running.replace(self.mark, step=self.store.step))


def in_a_child(work):
    """Run ``work`` in a fork; return its wait status."""
    child = os.fork()
    if child == 0:
        try:
            work()
            os._exit(0)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
    return os.waitpid(child, 0)[1]


def killed_run(place, point, **options):
    def work():
        points = Points(point)
        points.install()
        place.run(PLAN, stand.rows(), **options)

    return os.WIFSIGNALED(in_a_child(work))


def same(released, whole):
    """Whether a view has what was released; of discovered cells it has their past as well."""
    if "found" in sys.argv:
        whole = whole.join(released, on=["step", "kind"], how="semi", maintain_order="left")
    return len(released) > 0 and released.equals(whole)


def resumed(place, before, result):
    """Resume, and say what came of what was published before."""

    def work():
        outcome = place.run(PLAN, stand.rows())
        numbers = place.numbers()
        from tidegauge.engine.public import PublicFolder

        folder = PublicFolder(place.public)
        view = folder.view("flights", VIEW)
        released = stand.pl.read_parquet(place.public / f"releases/flights/{VIEW}/*")
        print(
            json.dumps(
                {
                    **result,
                    "kept": all(numbers.get(name) == data for name, data in before.items()),
                    "steps": len(view.value),
                    "last": outcome.last,
                    "releases": outcome.releases,
                    "same": same(released, view.table()),
                    "files": len(numbers),
                }
            ),
            flush=True,
        )

    if in_a_child(work):
        print(json.dumps({**result, "failed": True}), flush=True)


def restored(place, backup, before, result):
    """Bring an old copy of the store back, where readers already have newer numbers."""
    shutil.rmtree(place.root / "private")
    shutil.copytree(backup, place.root / "private")
    shutil.rmtree(place.public)  # so that the folder itself cannot tell
    newer = any(int(Path(name).stem) > 10 for name in before)

    def work():
        try:
            place.run(PLAN, stand.rows())
            refused = False
        except StoreBehind:
            refused = True
        print(json.dumps({**result, "newer": newer, "refused": refused}), flush=True)

    in_a_child(work)


def accepted(place, before, result):
    """Go on after a kill; accept only what is not yet charged."""

    def work():
        try:
            releases, again = place.run(PLAN, stand.rows()).releases, False
        except StoreBehind:
            releases = place.run(PLAN, stand.rows(), accept_second_release=True).releases
            again = True
        ledger = json.loads((place.public / "ledger.json").read_text())
        files = place.files()
        kept = all(data in (files.get(name), files.get(f"superseded/1/{name}"))
                   for name, data in before.items())  # fmt: skip
        seen = {"releases": releases, "again": again, "kept": kept, "ledger": ledger["releases"]}
        print(json.dumps({**result, **seen}), flush=True)

    if in_a_child(work):
        print(json.dumps({**result, "failed": True}), flush=True)


def outdated(place, backup):
    """A store at step 10 whose folder has all 30."""
    first_block(place)
    shutil.copytree(place.root / "private", backup)
    in_a_child(lambda: place.run(PLAN, stand.rows()))
    shutil.rmtree(place.root / "private")
    shutil.copytree(backup, place.root / "private")
    shutil.rmtree(backup)


def warm_up():
    """Load every compiled kernel and make the documents; a child has both at once.

    No thread is started.
    """
    documents(PLAN, [spend_of(PLAN, "s", 0, "2013-01-31")])
    for gauge in PLAN.gauges:
        plan = gauge.mechanism
        if plan.discovery is not None:
            none = stand.np.zeros(0, int)
            Finder(plan, [(0, bytes(32))], gauge="warm").measure(2, none, none, none)
            GrowingReading(plan, [decay for _, decay in plan.views]).grow(
                stand.np.zeros((0, 1), int)
            )
            continue
        if plan.selection is not None:
            Selector(plan).measure(stand.np.zeros((2, 3), int))
            continue
        rows = Meter(plan).measure(stand.np.zeros((2, plan.neighbors.known_cells), int))
        Reading(plan, [decay for _, decay in plan.views]).decode(rows, 2)


def first_block(place):
    """Run until the first block is published, and no further."""

    def work():
        publish = running._Work._publish

        def once(self, start, steps):
            publish(self, start, steps)
            os.kill(os.getpid(), signal.SIGKILL)

        running._Work._publish = once
        place.run(PLAN, stand.rows())

    in_a_child(work)


def main(root, mode, stride):
    lanes = sum(gauge.lanes for gauge in PLAN.gauges)
    running._LANES = 10 * max(4 * len(PLAN.gauges), lanes)  # three blocks
    running._FOUND_LANES = 10 * 8
    if "chosen" in sys.argv:
        running._LANES = 10
    warm_up()
    if mode == "mutant":
        running._Work._publish = late_mark
    for point in range(1, 10_000, stride):
        place = stand.Place(root / str(point))
        backup = root / f"backup {point}"
        if mode in ("restore", "mutant"):
            first_block(place)
            shutil.copytree(place.root / "private", backup)
        options = {}
        if mode == "accept":
            outdated(place, backup)
            options, before = {"accept_second_release": True}, place.numbers()
        if not killed_run(place, point, **options):
            break
        before = before if mode == "accept" else place.numbers()
        result = {"point": point, "published": len(before)}
        if mode == "accept":
            accepted(place, before, result)
        elif mode in ("restore", "mutant"):
            restored(place, backup, before, result)
            shutil.rmtree(backup)
        else:
            resumed(place, before, result)
        shutil.rmtree(place.root)
    print(json.dumps({"points": point - 1}), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
