"""Whose a public folder is: its ledger, made by the one store that publishes there.

Of two stores that begin at once in an empty folder one makes the ledger, for it is made
exclusively; the other finds it and is refused. Before each block the ledger has to be the one that
this store wrote. So no block lies in a folder whose ledger does not charge it. While a run is open
it holds the folder: what it has looked at stays so, whatever copies of the store there are.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import final

from tidegauge.engine.blocks import is_block_name
from tidegauge.engine.documents import spends_in
from tidegauge.engine.files import folder, put, put_new, writing
from tidegauge.engine.spends import Spend
from tidegauge.errors import (
    BudgetExceeded,
    InvalidParameter,
    Locked,
    StoreBehind,
    StoreMismatch,
)
from tidegauge.planning.plan import Plan
from tidegauge.planning.verified import plan_from_bytes

__all__ = ["Claim"]

_NUMBERS = ("releases", "measurements")


@final
class Claim:
    """A store's claim to a public folder.

    Args:
        path: The public folder.
        plan: What the store publishes.
    """

    def __init__(self, path: Path, plan: Plan) -> None:
        self._path, self._plan = path, plan
        self._ledger, self._aside = path / "ledger.json", path / "superseded"
        self._ours = b""

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold the folder, which is made if there is none, against every other run.

        The system gives it back when the process ends, however it ends. A file system without such
        locks gives none; the ledger and the origins of files are compared there as elsewhere.

        Raises:
            Locked: Another run publishes into it.
            WriteFailed: It cannot be made or opened.
        """
        folder(self._path)
        with writing(self._path):
            handle = os.open(self._path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise Locked(
                    f"Expected {self._path} to be free, got another run that publishes into it. "
                    "Two would publish two releases of one step. Wait until it is done, or publish "
                    "into a folder of its own."
                ) from None
            except OSError:
                pass
            yield
        finally:
            os.close(handle)

    def spends(self) -> list[Spend]:
        """Return every release that the folder's ledger charges; none where nothing was published.

        Raises:
            StoreMismatch: It is no ledger, it is another plan's, or numbers lie here without.
        """
        self._refuse_another_plan()
        if not (self._ledger.exists() or self._aside.exists() or self._latest()):
            return []
        try:
            return spends_in(self._ledger.read_bytes())
        except (OSError, ValueError):
            raise StoreMismatch(
                f"Expected at {self._ledger} the account of what is published beside it, got none "
                "that can be read. What was spent is not known. Bring that file back as it was, or "
                "publish into a folder of its own."
            ) from None

    def check(self, step: int, spends: Sequence[Spend]) -> None:
        """Refuse a folder of another plan or store, or one that is ahead of the store.

        A folder whose releases are fewer than the store's was left by a run that accepted another
        one and was ended before it put the folder aside: its steps bind no more.

        Args:
            step: How many steps the store has committed.
            spends: Every release that the store has charged.

        Raises:
            StoreMismatch: Another plan is published here, or the ledger cannot be read.
            StoreBehind: Steps or releases are published that the store does not know.
        """
        charged = self.spends()
        superseded = {spend.id for spend in charged} < {spend.id for spend in spends}
        latest = self._latest()
        if latest > step and not superseded:
            raise StoreBehind(
                f"Expected a store that knows what {self._path} has published, which is step "
                f"{latest} and more, got one of {step} steps. Going on would publish other numbers "
                "for the same steps. Bring back the store that published them, publish into "
                "another folder if this one is of other data, or accept a second release "
                "(--accept-second-release): it is charged to the ledger in full, once more."
            )
        self._refuse_forgotten(charged, spends)

    def take(self, spends: Sequence[Spend], ledger: bytes) -> None:
        """Put an earlier release aside, and write the ledger.

        Args:
            spends: Every release that was charged.
            ledger: ``ledger.json`` of them.

        Raises:
            StoreMismatch: Another plan is published here.
            StoreBehind: The ledger has a release that is not among them, or another store was
                faster.
            WriteFailed: The disk does not take it.
        """
        folder(self._path)
        before = self.spends()
        self._refuse_forgotten(before, spends)
        if 0 < len(before) < len(spends):
            self._supersede(len(before))
        if before:
            put(self._ledger, ledger)
        elif not put_new(self._ledger, ledger):
            self._refuse_forgotten(self.spends(), spends)
        self._ours = ledger
        self.refuse_taken()

    def refuse_taken(self) -> None:
        """Refuse to publish anything under another ledger than the one that was written.

        Raises:
            StoreBehind: Another store has taken the folder.
        """
        try:
            found = self._ledger.read_bytes()
        except OSError:
            found = b""
        if found != self._ours:
            raise self._taken()

    def _taken(self) -> StoreBehind:
        return StoreBehind(
            f"Expected {self._ledger} as this run left it, got another one: another store "
            "publishes into the folder, and its ledger does not charge what this one would "
            "add. Nothing more is published. Publish into a folder of its own."
        )

    def _refuse_another_plan(self) -> None:
        """Refuse a folder that holds another plan's numbers."""
        path = self._path / "plan.json"
        if not path.exists():
            return
        try:
            other = plan_from_bytes(path.read_bytes()).fingerprint
        except (OSError, InvalidParameter, BudgetExceeded):
            raise StoreMismatch(
                f"Expected at {path} the plan of what is published beside it, got none that can be "
                "read. Whose numbers they are is not known. Bring that file back as it was, or "
                "publish into a folder of its own."
            ) from None
        if other != self._plan.fingerprint:
            raise StoreMismatch(
                f"Expected in {self._path} the plan with fingerprint {self._plan.fingerprint}, got "
                f"one with {other}. Readers would take one for the other. Publish into a folder "
                "of its own."
            )

    def _refuse_forgotten(self, charged: Sequence[Spend], spends: Sequence[Spend]) -> None:
        """Refuse a store that does not know of a release that the folder's ledger charges."""
        known = {spend.id for spend in spends}
        missing = [spend for spend in charged if spend.id not in known]
        if missing:
            raise StoreBehind(
                f"Expected the store that publishes into {self._path}, which is named "
                f"{charged[-1].store}, got one that does not know {len(missing)} of the "
                f"{len(charged)} releases in its ledger. They would be forgotten. Bring back that "
                "store, publish into another folder, or accept a second release "
                "(--accept-second-release): it is charged to the ledger in full, once more."
            )

    def _latest(self) -> int:
        """The first step, from 1, of the last block of which a file is published; else 0."""
        found = [*self._path.glob("measurements/*/*"), *self._path.glob("releases/*/*/**/*")]
        names = (path.name for path in found)
        return max(
            (int(name.removesuffix(".parquet")) for name in names if is_block_name(name)),
            default=0,
        )

    def _supersede(self, before: int) -> None:
        """Put aside what earlier releases published: it stays as it was, under another name.

        The ledger gets a second name there and keeps its own until the next one takes its place:
        at no moment is a release charged nowhere.
        """
        aside = folder(self._aside / str(before))
        with writing(aside):
            for name in _NUMBERS:
                if (self._path / name).exists():
                    os.replace(self._path / name, aside / name)
            kept = aside / self._ledger.name
            if not kept.exists():
                os.link(self._ledger, kept)
            aside_is_ours = kept.read_bytes() == self._ledger.read_bytes()
        if not aside_is_ours:
            raise self._taken()
