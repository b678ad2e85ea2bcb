"""All candidates of a config's gauges, as plain data in the units of each gauge."""

from __future__ import annotations

from typing import Any

from tidegauge.mechanisms.comparison import Candidate, Comparison
from tidegauge.planning.declared import Config

__all__ = ["described_candidates"]


def described_candidates(config: Config, found: tuple[Comparison, ...]) -> list[dict[str, Any]]:
    """Return what ``tidegauge plan --compare`` tells: for each gauge its candidates and the choice.

    ``worst_std`` is the noise at the worst step, ``lower_bound`` the least of any factorization
    mechanism there, with noise of the same kind at the same cost; both in the unit of the gauge.
    """
    return [
        {
            "gauge": gauge.name,
            "choice": comparison.explain(),
            "candidates": [
                _candidate(candidate, float(gauge.round_to)) for candidate in comparison.candidates
            ],
        }
        for gauge, comparison in zip(config.gauges, found, strict=True)
    ]


def _candidate(candidate: Candidate, grain: float) -> dict[str, Any]:
    worst = candidate.worst
    return {
        "strategy": candidate.strategy,
        "noise": candidate.noise,
        "chosen": candidate.chosen,
        "verdict": candidate.verdict,
        "worst_view": None if worst is None else worst.view,
        "worst_ratio": None if worst is None else worst.ratio,
        "views": [
            {
                "name": view.view,
                "published": view.published,
                "worst_std": view.worst_std * grain,
                "lower_bound": view.lower_bound * grain,
                "ratio": view.ratio,
            }
            for view in candidate.views
        ],
    }
