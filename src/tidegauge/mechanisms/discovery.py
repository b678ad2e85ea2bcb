"""Items that nobody knows before they occur: what is asked, and what is planned.

A cell of such a gauge is an *item*. It becomes visible at the first step at which an event of it
lies in the *discovery view* and its noisy value there exceeds the *threshold*; from then on, for
ever and in all views, it is a cell as any other. A hidden item leaves no trace. Names cost delta,
once: views and later steps of visible items are free. Proof: ``docs/proofs/unknown_domain.md``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from typing import final

from tidegauge.checks import exact, integer, shown
from tidegauge.errors import InvalidParameter, UnsupportedCombination
from tidegauge.mechanisms.name_threshold import false_releases, least_threshold, window_of
from tidegauge.noise.law import Law
from tidegauge.privacy.guarantee import ApproxDP, Guarantee, rounded_up
from tidegauge.privacy.unit import Neighbors
from tidegauge.strategies.decay import Decay, Running, Step, Window
from tidegauge.strategies.strategy import Strategy

__all__ = [
    "MOST_ITEMS",
    "Discover",
    "Discovery",
    "check_discoverable",
    "deltas",
    "discovery_of",
]

_EXPECTED = 100_000
MOST_ITEMS = 1 << 31
"""Most items of one gauge that discovers them: more would not fit into its numbers."""
_WHY_SHARE = (
    "It is the part of delta that pays for names: with nothing no name could be shown, with all "
    "of it no number. Write 0.5."
)
_WHY_EXPECTED = (
    "It sizes blocks and memory; more are accepted. Say roughly how many items there are."
)


@final
@dataclass(frozen=True, init=False)
class Discover:
    """How items are to be discovered, as asked; ``discover:`` of a config has the same fields.

    Args:
        view: The view in which items are discovered: ``Running()``, ``Window(steps)`` or
            ``Step()``. A running one needs an end, and its promise holds also where later events
            depend on releases; that of a window holds for streams fixed in advance. None: the
            planned view with the longest memory that can discover, for an item adds up in it most.
        delta_share: The part of the guarantee's delta that pays for names, in (0, 1).
        expected_items: For how many items memory is planned; more are accepted.

    Raises:
        InvalidParameter: Not a decay, a share not inside (0, 1), or no number of items.

    Examples:
        >>> Discover(Running(), delta_share=0.25).delta_share
        Fraction(1, 4)
    """

    view: Decay | None
    delta_share: Fraction
    expected_items: int

    def __init__(
        self,
        view: Decay | None = None,
        delta_share: float | Fraction = Fraction(1, 2),
        expected_items: int = _EXPECTED,
    ) -> None:
        if view is not None and not isinstance(view, Decay):
            raise InvalidParameter(
                f"Expected the discovery view to be a decay, got {shown(view)}. It decides when an "
                "item is shown. Write Window(168), or Running() for a stream with an end."
            )
        share = exact("delta_share", delta_share, above=0, below=1, why=_WHY_SHARE)
        items = integer("expected_items", expected_items, low=1, high=MOST_ITEMS, why=_WHY_EXPECTED)
        object.__setattr__(self, "view", view)
        object.__setattr__(self, "delta_share", share)
        object.__setattr__(self, "expected_items", items)


@dataclass(frozen=True)
class Discovery:
    """How items are discovered: a part of a plan, public and fixed before any data is read.

    Attributes:
        view: Name of the discovery view.
        decay: Its weights: a running sum, a window or a step.
        delta: What names cost, in all.
        threshold: A value of the view has to exceed it, in grains.
        expected_items: For how many items memory is planned.
        adaptive: Whether the promise for names also holds where later events are chosen after
            reading releases; else it is for streams that do not depend on them.
    """

    view: str
    decay: Decay
    delta: Fraction
    threshold: Fraction
    expected_items: int
    adaptive: bool

    def in_words(self) -> str:
        """How items are discovered and what that costs, in sentences."""
        where = (
            "also if later events depend on releases"
            if self.adaptive
            else "in a stream fixed in advance"
        )
        return (
            "An item is shown from the first step at which an event of it lies in the view "
            f"{self.view} and its noisy value there is above {rounded_up(self.threshold)}; then "
            "for ever, in all views. Items that only one protected unit has are shown with a "
            f"probability of at most {rounded_up(self.delta)}, {where}: that part of delta is "
            "spent on names, once."
        )

    def paid(self, strategy: Strategy, law: Law, neighbors: Neighbors, end: int | None) -> bool:
        """Whether the threshold keeps what it claims under this strategy and noise.

        Raises:
            UnsupportedCombination: No proof covers it.
        """
        chance = false_releases(self.threshold, self.decay, strategy, law, neighbors, end)
        return chance <= self.delta and self.adaptive == _adaptive(self.decay)


def deltas(guarantee: Guarantee, asked: Sequence[Discover | None]) -> tuple[Fraction, ...]:
    """Return what each gauge may spend on names: its share of delta, over all that discover.

    Raises:
        UnsupportedCombination: Names are asked for under a guarantee without a delta.

    Examples:
        >>> deltas(ApproxDP(1, 1e-6), [Discover(), None])
        (Fraction(1, 2000000), Fraction(0, 1))
    """
    finding = [discover for discover in asked if discover is not None]
    if not finding:
        return (Fraction(0),) * len(asked)
    if not isinstance(guarantee, ApproxDP):
        raise UnsupportedCombination(
            f"Expected an (epsilon, delta) guarantee where items are discovered, got {guarantee!r}."
            " A name that only one person has may be shown with a small chance, which is a delta "
            "and nothing else. Give epsilon and delta, or list the cells."
        )
    whole = guarantee.delta
    return tuple(
        Fraction(0) if discover is None else whole * discover.delta_share / len(finding)
        for discover in asked
    )


def check_discoverable(
    asked: Discover, views: Sequence[tuple[str, Decay]], end: int | None
) -> None:
    """Refuse what no strategy could discover items in.

    Raises:
        UnsupportedCombination: The discovery view, or every view if none is asked for, is one in
            which events fade, or a running sum without an end.
    """
    tried = [asked.view] if asked.view is not None else [decay for _, decay in views]
    if any(_discovers(decay, end) for decay in tried):
        return
    if asked.view is None:
        names = shown([name for name, _ in views])
        raise UnsupportedCombination(
            f"Expected a view in which items can be discovered, got {names}. It has to be a window "
            "or a step, or a running sum of a stream with an end: in others one event could be "
            "discovered at any later step. Declare the end, or name a window to discover in."
        )
    window_of(asked.view)
    raise UnsupportedCombination(
        "Expected a stream with an end where items are discovered in a running sum, got none. "
        "An item of one unit could pass the threshold at any later step, and the chances would add "
        "up without end. Declare the end, or discover in a window."
    )


def _discovers(decay: Decay, end: int | None) -> bool:
    """Whether items can be discovered in a view."""
    return isinstance(decay, Window | Step) or (isinstance(decay, Running) and end is not None)


def discovery_of(
    asked: Discover,
    views: Sequence[tuple[str, Decay]],
    strategy: Strategy,
    law: Law,
    neighbors: Neighbors,
    end: int | None,
    delta: Fraction,
) -> Discovery:
    """Return how items are discovered under a strategy and its noise.

    Args:
        asked: What is asked.
        views: The planned views, by name.
        strategy: What measures the stream.
        law: Its noise.
        neighbors: Who is protected.
        end: The last step; None: there is none.
        delta: What names may cost.

    Raises:
        UnsupportedCombination: No view can discover under this strategy; the message says why.
    """
    names = {decay: name for name, decay in reversed(views)}
    check_discoverable(asked, views, end)
    tried = [asked.view] if asked.view is not None else [decay for _, decay in views]
    tried = [decay for decay in dict.fromkeys(tried) if _discovers(decay, end)]
    for decay in sorted(tried, key=_memory, reverse=True):
        with suppress(UnsupportedCombination):
            threshold = least_threshold(decay, strategy, law, neighbors, end, delta)
            name = names.get(decay, decay.name)
            items, adaptive = asked.expected_items, _adaptive(decay)
            return Discovery(name, decay, delta, threshold, items, adaptive)
    least_threshold(tried[0], strategy, law, neighbors, end, delta)  # says why not
    raise AssertionError("what cannot discover says why")


def _memory(decay: Decay) -> float:
    """For how many steps an event counts in a view that discovers."""
    if isinstance(decay, Window):
        return decay.steps
    return math.inf if isinstance(decay, Running) else 1


def _adaptive(decay: Decay) -> bool:
    """Whether not having passed can only make passing less likely.

    The noise of a running sum has no negative covariance under the strategies that are allowed for
    it: B >= 0 for the identity and every interlaced filter. That of a window has some.
    """
    return isinstance(decay, Running)
