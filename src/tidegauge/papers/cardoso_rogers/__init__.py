"""Histograms over streams: the systems of Cardoso and Rogers, 2022.

Differentially private histograms under continual observation, AISTATS 2022. Each event is a set of
items. Items are known in advance or not, and an event has a few of them or any number:

=================  ==========================  ==========================================
..                 at most max_items an event  any number: the top k
=================  ==========================  ==========================================
known items        KnownBase, known_gauss      SparseGumb, known_gumb
unknown items      UnkBase, unk_gauss          unk_gumb
=================  ==========================  ==========================================

``MetaAlgo`` makes a stream's system of each of the lower-case algorithms, which serve one
histogram once. The corrections are listed in ``docs/errata.md`` and proved in
``docs/proofs/cardoso_rogers.md``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidegauge.exports import exported

if TYPE_CHECKING:
    from tidegauge.papers.cardoso_rogers.algorithms import KnownGauss, KnownGumb, UnkGauss, UnkGumb
    from tidegauge.papers.cardoso_rogers.base_mech import BaseMech, KnownBase, best_base
    from tidegauge.papers.cardoso_rogers.events import Shown
    from tidegauge.papers.cardoso_rogers.meta import MetaAlgo
    from tidegauge.papers.cardoso_rogers.one_shot import (
        known_gauss,
        known_gumb,
        unk_gauss,
        unk_gumb,
    )
    from tidegauge.papers.cardoso_rogers.sparse import SparseGumb, SparseNoise
    from tidegauge.papers.cardoso_rogers.unk_base import UnkBase

__all__ = [
    "BaseMech",
    "KnownBase",
    "KnownGauss",
    "KnownGumb",
    "MetaAlgo",
    "Shown",
    "SparseGumb",
    "SparseNoise",
    "UnkBase",
    "UnkGauss",
    "UnkGumb",
    "best_base",
    "known_gauss",
    "known_gumb",
    "unk_gauss",
    "unk_gumb",
]

_HOMES = {
    "tidegauge.papers.cardoso_rogers.algorithms": (
        "KnownGauss",
        "KnownGumb",
        "UnkGauss",
        "UnkGumb",
    ),
    "tidegauge.papers.cardoso_rogers.base_mech": ("BaseMech", "KnownBase", "best_base"),
    "tidegauge.papers.cardoso_rogers.events": ("Shown",),
    "tidegauge.papers.cardoso_rogers.meta": ("MetaAlgo",),
    "tidegauge.papers.cardoso_rogers.one_shot": (
        "known_gauss",
        "known_gumb",
        "unk_gauss",
        "unk_gumb",
    ),
    "tidegauge.papers.cardoso_rogers.sparse": ("SparseGumb", "SparseNoise"),
    "tidegauge.papers.cardoso_rogers.unk_base": ("UnkBase",),
}
__getattr__, __dir__ = exported(__name__, _HOMES)
