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
    ├── StoreMismatch                   the store or public folder belongs to another plan
    ├── StoreBehind                     older than what was published, or damaged; never retry
    ├── Locked                          another process writes; retry later
    ├── WriteFailed                     disk full or read-only; everything stays as it was
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
    "Locked",
    "MissingExtra",
    "SourceUnavailable",
    "StoreBehind",
    "StoreMismatch",
    "StreamEnded",
    "TidegaugeError",
    "UnsupportedCombination",
    "WriteFailed",
]


class TidegaugeError(Exception):
    """Base of every exception raised by tidegauge.

    Examples:
        >>> import tidegauge as tg
        >>> try:
        ...     tg.Window(0)
        ... except tg.TidegaugeError as problem:
        ...     print(type(problem).__name__)
        InvalidParameter
    """


class InvalidParameter(TidegaugeError, ValueError):
    """A parameter is outside what is possible; the call has to change.

    Examples:
        >>> import tidegauge as tg
        >>> tg.PureDP(0)  # doctest: +ELLIPSIS
        Traceback (most recent call last):
            ...
        tidegauge.errors.InvalidParameter: Expected epsilon > 0, got epsilon=0. ...
    """


class InvalidInput(TidegaugeError, ValueError):
    """Data handed to a gauge cannot be measured; the gauge is as it was before the call.

    Examples:
        >>> import tidegauge as tg
        >>> gauge = tg.Gauge(views=[tg.Step()], epsilon=1, unit="event", cells=2)
        >>> try:
        ...     gauge.update([1, 2, 3])
        ... except tg.InvalidInput:
        ...     print("steps measured:", gauge.step)
        steps measured: 0
    """


class BudgetExceeded(TidegaugeError):
    """A charge does not fit into what is left of the guarantee; nothing was charged.

    Attributes:
        needed: What the charge takes, in the ledger's currency.
        left: What is left.
        total: What the guarantee allows altogether.

    Examples:
        >>> from tidegauge.privacy.costs import PureCost
        >>> from tidegauge.privacy.guarantee import PureDP
        >>> from tidegauge.privacy.ledger import Ledger
        >>> ledger = Ledger(PureDP(1))
        >>> try:
        ...     ledger.charge({"visits": PureCost(Fraction(3))})
        ... except BudgetExceeded as problem:
        ...     print(problem.needed, problem.left, problem.total)
        3 1 1
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
    """There is no proven mechanism for this combination of views, unit and guarantee.

    Examples:
        >>> import tidegauge as tg
        >>> try:
        ...     tg.DiscoveryGauge(views=[tg.Step()], epsilon=1, unit="event")  # no delta for names
        ... except tg.UnsupportedCombination:
        ...     print("refused")
        refused
    """


class StreamEnded(TidegaugeError):
    """A step lies beyond the declared end or beyond the strategy's hard end.

    Examples:
        >>> import tidegauge as tg
        >>> gauge = tg.Gauge(views=[tg.Running()], epsilon=1, unit="event", end=1)
        >>> _ = gauge.update(5)
        >>> try:
        ...     gauge.update(7)
        ... except tg.StreamEnded:
        ...     print("steps measured:", gauge.step)
        steps measured: 1
    """


class LiveState(TidegaugeError, TypeError):
    """A live gauge cannot be copied, pickled, used after a fork, or after an interruption.

    Examples:
        >>> import copy
        >>> import tidegauge as tg
        >>> gauge = tg.Gauge(views=[tg.Running()], epsilon=1, unit="event")
        >>> try:
        ...     copy.copy(gauge)
        ... except tg.LiveState:
        ...     print("refused")
        refused
    """


class SourceUnavailable(TidegaugeError):
    """A source is away, cannot be read, or has no such columns; it never depends on a row."""


class StoreMismatch(TidegaugeError):
    """A store or a public folder belongs to another plan, or to another version of its format."""


class StoreBehind(TidegaugeError):
    """A store is older than what was published from it, copied, or damaged.

    Going on would publish a second release of the same steps; trying again cannot help.
    """


class Locked(TidegaugeError):
    """Another process writes to the store; trying again later may help."""


class WriteFailed(TidegaugeError):
    """Something could not be written; what was committed and published stays as it was."""


class MissingExtra(TidegaugeError, ImportError):
    """An optional dependency is not installed."""
