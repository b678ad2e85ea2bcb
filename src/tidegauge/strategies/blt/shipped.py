"""Fits for an unknown horizon, shipped so that the usual gauge needs neither scipy nor a wait."""

from __future__ import annotations

from tidegauge.strategies.decay import Decay, Running, Step

__all__ = ["SHIPPED", "SPREAD_OF_HORIZONS"]

SPREAD_OF_HORIZONS = (1 << 10, 1 << 14, 1 << 17, 1 << 20, 1 << 24)
"""Steps at which a running sum is read where no horizon is given."""

SHIPPED: dict[frozenset[Decay], tuple[tuple[int, ...], tuple[int, ...]]] = {
    frozenset({Running()}): (
        (
            2192351104346,
            65903908985219,
            968403933886468,
            31212494418493308,
            545144490501188352,
            5442948059309400064,
        ),
        (
            4749235813375288,
            17399499890849946,
            70623506171058632,
            943142066833042176,
            2420903952436078080,
            5473925927019486208,
        ),
    ),
    frozenset({Running(), Step()}): (
        (
            2262893150743,
            77531591568435,
            1292550764164060,
            35494798826792804,
            859445405224108672,
        ),
        (
            2927988828738952,
            12377396887220018,
            50743965813656464,
            552435730751889920,
            1818694943805824512,
        ),
    ),
}
"""(gaps, weights) in units of 2^-64, as the fit of these views without a horizon gives them."""
