"""What is charged for a release: the entries of the store, of its mark and of the ledger."""

from __future__ import annotations

import json
from dataclasses import dataclass

__all__ = ["Spend"]


@dataclass(frozen=True)
class Spend:
    """One release of a stream: all gauges of a plan, charged in full.

    Attributes:
        store: The store's name.
        fingerprint: The plan's.
        step: Steps that were committed when it was charged.
        day: When that was, as ``2013-01-31``.
        gauges: What each gauge costs, as an event in dp_accounting's terms.
        id: Random. Two releases may agree in all else, and both are spent.
    """

    store: str
    fingerprint: str
    step: int
    day: str
    gauges: dict[str, dict[str, object]]
    id: str

    def to_text(self) -> str:
        """Return the form that is stored."""
        return json.dumps(vars(self), sort_keys=True)

    @classmethod
    def from_text(cls, text: str) -> Spend:
        """Return the spend of a stored form."""
        return cls(**json.loads(text))
