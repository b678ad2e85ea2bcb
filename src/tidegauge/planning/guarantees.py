"""Who is protected by a config, and what it promises them."""

from __future__ import annotations

from typing import Any

from tidegauge.errors import InvalidParameter
from tidegauge.planning.document import Document
from tidegauge.planning.form import IdForm, PrivacyForm
from tidegauge.planning.parts import IdUnit
from tidegauge.privacy.guarantee import ZCDP, ApproxDP, GaussianDP, Guarantee, PureDP

__all__ = ["guarantee_of", "unit_of"]


def unit_of(privacy: PrivacyForm) -> IdUnit | None:
    """Return whose events are protected together; None: each event is by itself."""
    unit: Any = privacy.unit  # a word or a mapping
    if isinstance(unit, IdForm):
        per: Any = unit.per
        return IdUnit(unit.id, unit.max_contributions, per)
    return None


def guarantee_of(document: Document, privacy: PrivacyForm) -> Guarantee | None:
    """Return what is promised; None: a problem is noted."""
    epsilon, delta, rho, mu = privacy.epsilon, privacy.delta, privacy.rho, privacy.mu
    given = [n for n, v in (("epsilon", epsilon), ("rho", rho), ("mu", mu)) if v is not None]
    if len(given) != 1:
        got = " and ".join(given) or "none of them"
        document.refuse(
            ("privacy",),
            f"Expected one of epsilon, rho and mu, got {got}. There is no default: how much "
            "may be learned is a decision. Write epsilon: 1 and delta: 1e-9.",
            key=True,
        )
        return None
    if delta is not None and epsilon is None:
        document.refuse(
            ("privacy", "delta"),
            f"Expected delta beside epsilon only, got it beside {given[0]}. {given[0]} says "
            "all. Remove delta.",
            key=True,
        )
        return None
    try:
        if rho is not None:
            return ZCDP(rho)
        if mu is not None:
            return GaussianDP(mu)
        assert epsilon is not None
        return PureDP(epsilon) if delta is None else ApproxDP(epsilon, delta)
    except InvalidParameter as error:
        name = "delta" if str(error).startswith("Expected delta") else given[0]
        document.refuse(("privacy", name), str(error))
        return None
