"""Filters for tests: any valid one, and one with long and short memories."""

from __future__ import annotations

from hypothesis import strategies as st

UNIT = 1 << 64


@st.composite
def filters(draw, *, shortest: float = 0.05, longest: float = 40.0, most: int = 8):
    """``(gaps, weights)`` of a valid BLT; gaps are 2^-e for e in [shortest, longest]."""
    exponents = st.floats(shortest, longest).map(lambda e: int(UNIT * 2.0**-e))
    gaps = sorted(draw(st.sets(exponents, min_size=1, max_size=most)))
    parts = draw(st.lists(st.integers(1, 1000), min_size=len(gaps), max_size=len(gaps)))
    whole = sum(parts) + draw(st.integers(1, 4000))
    weights = [(UNIT - gap) * part // whole for gap, part in zip(gaps, parts, strict=True)]
    return tuple(gaps), tuple(max(1, weight) for weight in weights)


RUNNING = (  # four buffers, of memories from six steps to fifty thousand
    tuple(int(UNIT * gap) for gap in (1.9e-5, 6.0e-4, 1.2e-2, 0.16)),
    tuple(int(UNIT * weight) for weight in (0.0035, 0.016, 0.075, 0.31)),
)
