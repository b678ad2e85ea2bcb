"""What gauges in memory have in common: a plan, an account, one block at a time, and an end."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Generic, Self, TypeVar

from tidegauge.checks import integer
from tidegauge.mechanisms.plan import GaugePlan
from tidegauge.mechanisms.turn import Turn, no_copies
from tidegauge.privacy.ledger import Ledger
from tidegauge.strategies.decay import Decay
from tidegauge.strategies.strategy import MOST_STEPS

if TYPE_CHECKING:
    from tidegauge.mechanisms.clip_plan import ClipPlan

__all__ = ["LiveGauge", "std_at"]

AnyPlan = TypeVar("AnyPlan", "GaugePlan", "ClipPlan")


class LiveGauge(ABC, Generic[AnyPlan]):
    """A gauge in memory: it spends its budget once, and ends when it is closed.

    Its key and its state are of this process alone: it cannot be copied, pickled or forked.
    """

    _plan: AnyPlan
    _ledger: Ledger
    _turn: Turn

    def _begin(self, plan: AnyPlan) -> None:
        self._plan, self._ledger, self._turn = plan, plan.charged(), Turn()

    @property
    def plan(self) -> AnyPlan:
        """Everything that affects privacy: chosen before data, public."""
        return self._plan

    @property
    def ledger(self) -> Ledger:
        """The account: what the gauge was promised to spend at most, and what it has spent."""
        return self._ledger

    @property
    @abstractmethod
    def step(self) -> int:
        """How many steps have been measured and released."""

    @abstractmethod
    def statement(self) -> str:
        """Return what is promised, in words, with every declared constant."""

    @abstractmethod
    def close(self) -> None:
        """Erase the key; nothing more can be measured. ``with`` a gauge does it at the end."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    __copy__ = __deepcopy__ = __reduce__ = __reduce_ex__ = __getstate__ = no_copies()


def std_at(plan: GaugePlan, view: str | Decay, step: int) -> float:
    """Return the standard deviation of a view's noise at one step, counted from 1.

    Raises:
        InvalidParameter: No such view or step.
    """
    why = "Steps are counted from 1, and nothing is measured after the last."
    step = integer("step", step, low=1, high=plan.last_step or MOST_STEPS, why=why)
    return float(plan.noise_std(view, [step])[0])
