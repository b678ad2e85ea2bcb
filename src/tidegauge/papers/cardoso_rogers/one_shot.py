"""The one-shot algorithms as functions: made for a guarantee, run once on one histogram."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

import numpy as np

from tidegauge.errors import InvalidInput, InvalidParameter
from tidegauge.mechanisms.oneshot import LATTICE_BITS
from tidegauge.papers.cardoso_rogers.algorithms import (
    KnownGauss,
    KnownGumb,
    OneShot,
    UnkGauss,
    UnkGumb,
    made_for,
)
from tidegauge.papers.cardoso_rogers.events import Shown, counts_of
from tidegauge.privacy.guarantee import Guarantee

__all__ = ["known_gauss", "known_gumb", "unk_gauss", "unk_gumb"]

_UNIT = 1 << LATTICE_BITS
_HALF = Fraction(1, 2)
_RELATION = "add_or_remove_one"


def known_gauss(
    histogram: Mapping[str, int],
    guarantee: Guarantee,
    *,
    max_items: int,
    neighboring_relation: str = _RELATION,
) -> Shown:
    """Return all counts of a histogram over known items, with Gaussian noise.

    Args:
        histogram: Every known item and how many events have it, 0 too: its keys are public.
        guarantee: GaussianDP, ZCDP or ApproxDP, for one event.
        max_items: Most items of one event.
        neighboring_relation: ``"add_or_remove_one"`` or ``"replace_one"``.

    Raises:
        InvalidInput: No such histogram.
        InvalidParameter: A parameter is impossible.
        UnsupportedCombination: The guarantee is pure.

    Examples:
        >>> from tidegauge import ZCDP
        >>> known_gauss({"ale": 500, "bread": 0}, ZCDP(0.5), max_items=1).items
        ('ale', 'bread')

    References:
        Cardoso and Rogers 2022, Table 1.
    """
    kind = made_for(
        KnownGauss, guarantee, 1, max_items=max_items, neighboring_relation=neighboring_relation
    )
    return _once(kind, histogram)


def known_gumb(
    histogram: Mapping[str, int],
    guarantee: Guarantee,
    *,
    k: int,
    neighboring_relation: str = _RELATION,
) -> Shown:
    """Return the top k of a histogram over known items, for events of any number of items.

    Args:
        histogram: Every known item and how many events have it, 0 too: its keys are public.
        guarantee: ZCDP or ApproxDP, for one event.
        k: How many items are shown.
        neighboring_relation: ``"add_or_remove_one"`` or ``"replace_one"``.

    Raises:
        InvalidInput: No such histogram.
        InvalidParameter: A parameter is impossible.
        UnsupportedCombination: The guarantee is pure or Gaussian.

    Examples:
        >>> from tidegauge import ZCDP
        >>> known_gumb({"ale": 500, "bread": 3, "cheese": 0}, ZCDP(0.5), k=1).items
        ('ale',)

    References:
        Cardoso and Rogers 2022, Table 1.
    """
    kind = made_for(KnownGumb, guarantee, 1, k=k, neighboring_relation=neighboring_relation)
    return _once(kind, histogram)


def unk_gauss(
    histogram: Mapping[str, int],
    guarantee: Guarantee,
    *,
    max_items: int,
    kbar: int | None = None,
    delta_share: float | Fraction = _HALF,
    neighboring_relation: str = _RELATION,
) -> Shown:
    """Return the items of a histogram whose noisy counts pass a threshold, of unknown items.

    Args:
        histogram: The items that occur and how many events have each.
        guarantee: ApproxDP, for one event.
        max_items: Most items of one event.
        kbar: See :class:`UnkGauss`.
        delta_share: The threshold's part of delta.
        neighboring_relation: ``"add_or_remove_one"`` or ``"replace_one"``.

    Raises:
        InvalidInput: No such histogram.
        InvalidParameter: A parameter is impossible.
        UnsupportedCombination: A guarantee without delta.

    Examples:
        >>> from tidegauge import ApproxDP
        >>> unk_gauss({"ale": 500, "bread": 3}, ApproxDP(1, 1e-6), max_items=1).items
        ('ale',)

    References:
        Cardoso and Rogers 2022, section 4.
    """
    kind = made_for(
        UnkGauss,
        guarantee,
        1,
        delta_share,
        max_items=max_items,
        kbar=kbar,
        neighboring_relation=neighboring_relation,
    )
    return _once(kind, histogram)


def unk_gumb(
    histogram: Mapping[str, int],
    guarantee: Guarantee,
    *,
    k: int,
    kbar: int,
    delta_share: float | Fraction = _HALF,
    neighboring_relation: str = _RELATION,
) -> Shown:
    """Return at most k items of a histogram of unknown items, for events of any number of items.

    Args:
        histogram: The items that occur and how many events have each.
        guarantee: ApproxDP, for one event.
        k: Most items shown.
        kbar: So many of the largest counts are looked at.
        delta_share: The threshold's part of delta.
        neighboring_relation: ``"add_or_remove_one"`` or ``"replace_one"``.

    Raises:
        InvalidInput: No such histogram.
        InvalidParameter: A parameter is impossible.
        UnsupportedCombination: A guarantee without delta.

    Examples:
        >>> from tidegauge import ApproxDP
        >>> unk_gumb({"ale": 900, "bread": 3}, ApproxDP(1, 1e-6), k=1, kbar=5).items
        ('ale',)

    References:
        Cardoso and Rogers 2022, Table 1; Durfee and Rogers 2019.
    """
    kind = made_for(
        UnkGumb,
        guarantee,
        1,
        delta_share,
        k=k,
        kbar=kbar,
        neighboring_relation=neighboring_relation,
    )
    return _once(kind, histogram)


def _once(kind: OneShot, histogram: Mapping[str, int]) -> Shown:
    """Run an algorithm once, under keys that are then erased."""
    if not isinstance(histogram, Mapping):
        raise InvalidInput(
            "Expected a mapping from items to counts, got something else. A histogram says how "
            "many events have each item. Count them first."
        )
    positive = counts_of(histogram, None)
    names = sorted(positive if kind.unknown else map(str, histogram))
    if not kind.unknown and not names:
        raise InvalidParameter(
            "Expected a histogram over known items, got no item. Its keys are all there are. Name "
            "them, or take an algorithm for unknown items."
        )
    counts = np.fromiter((positive.get(name, 0) for name in names), np.int64)
    noise = kind.noise()
    try:
        places, noisy = kind.run(noise, counts, names)
    finally:
        noise.close()
    order = np.argsort(places)
    shown = tuple(names[place] for place in places[order].tolist())
    return Shown(shown, noisy[order] / _UNIT)
