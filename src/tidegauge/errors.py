"""Every exception that tidegauge raises on purpose, one class for each kind of remedy.

::

    TidegaugeError
    ├── InvalidParameter (ValueError)   fix the call
    ├── InvalidInput (ValueError)       fix the data handed in; nothing was measured
    ├── BudgetExceeded                  ask for less, or for a larger guarantee
    ├── UnsupportedCombination          no proven mechanism for this combination
    ├── StreamEnded                     the stream's declared end is reached
    ├── LiveState (TypeError)           a live gauge was copied, pickled, forked or interrupted
    ├── SourceUnavailable               bring the source back, or correct its columns
    └── MissingExtra (ImportError)      install an optional dependency

Messages have one form: ``Expected ..., got .... What goes wrong. What to do.`` They may show
parameters, never a value of the data.
"""

from __future__ import annotations

from fractions import Fraction

__all__ = [
    "BudgetExceeded",
    "InvalidInput",
    "InvalidParameter",
    "LiveState",
    "MissingExtra",
    "SourceUnavailable",
    "StreamEnded",
    "TidegaugeError",
    "UnsupportedCombination",
]


class TidegaugeError(Exception):
    """Base of every exception raised by tidegauge."""


class InvalidParameter(TidegaugeError, ValueError):
    """A parameter is outside what is possible; the call has to change."""


class InvalidInput(TidegaugeError, ValueError):
    """Data handed to a gauge cannot be measured; the gauge is as it was before the call."""


class BudgetExceeded(TidegaugeError):
    """A charge does not fit into what is left of the guarantee; nothing was charged.

    Attributes:
        needed: What the charge takes, in the ledger's currency.
        left: What is left.
        total: What the guarantee allows altogether.
    """

    def __init__(
        self,
        message: str,
        needed: Fraction = Fraction(0),
        left: Fraction = Fraction(0),
        total: Fraction = Fraction(0),
    ) -> None:
        super().__init__(message)
        self.needed = needed
        self.left = left
        self.total = total


class UnsupportedCombination(TidegaugeError):
    """There is no proven mechanism for this combination of views, unit and guarantee."""


class StreamEnded(TidegaugeError):
    """A step lies beyond the declared end or beyond the strategy's hard end."""


class LiveState(TidegaugeError, TypeError):
    """A live gauge cannot be copied, pickled, used after a fork, or after an interruption."""


class SourceUnavailable(TidegaugeError):
    """A source is away, cannot be read, or has no such columns; it never depends on a row."""


class MissingExtra(TidegaugeError, ImportError):
    """An optional dependency is not installed."""
