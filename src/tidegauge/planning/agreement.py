"""What the fields of one config have to agree on."""

from __future__ import annotations

from tidegauge.planning.clocks import clock_of, time_of
from tidegauge.planning.declared import Config, GaugeConfig
from tidegauge.planning.document import Document
from tidegauge.planning.files import settings_of
from tidegauge.planning.form import ConfigForm
from tidegauge.planning.gauges import GaugeAgreement
from tidegauge.planning.guarantees import guarantee_of, unit_of
from tidegauge.privacy.unit import relation_of

__all__ = ["agreed"]

_CLOCK = frozenset({"step", "start", "end", "event_time", "timezone", "time_format"})


def agreed(
    document: Document, read: ConfigForm, wrong: frozenset[str] = frozenset()
) -> Config | None:
    """Return the config whose fields agree, or None with problems noted.

    Args:
        document: Where problems are noted.
        read: The config, each of its values right by itself.
        wrong: Fields that were refused already, and stand in it as placeholders.
    """
    told = bool(wrong & _CLOCK)
    clock, time = (None, None) if told else (clock_of(document, read), time_of(document, read))
    guarantee = guarantee_of(document, read.privacy)
    gauges = [GaugeAgreement(document, read, wrong, name).gauge() for name in read.gauges]
    if not gauges and "gauges" not in wrong:
        document.refuse(("gauges",), "Expected at least one gauge, got none. Nothing is counted.")
    _tell_apart(document, list(read.gauges))
    names = set() if "gauges" in wrong else _names(gauges)
    settings = settings_of(document, read, wrong, names)
    if document.problems or guarantee is None or clock is None:
        return None
    about = read.about.model_dump(exclude_none=True)
    return Config(
        file=document.file,
        clock=clock,
        time=time,
        unit=unit_of(read.privacy),
        relation=relation_of(read.privacy.neighboring_relation),
        guarantee=guarantee,
        gauges=tuple(gauge for gauge in gauges if gauge is not None),
        horizon=read.horizon if clock.end is None else clock.end,
        about=tuple(sorted(about.items())),
        multiline=read.csv.multiline,
        event=read.event,
        settings=settings,
        warnings=tuple(document.warnings),
    )


def _names(gauges: list[GaugeConfig | None]) -> set[str]:
    """The names of all views; none if some are not known, so that none can be refused."""
    if None in gauges:
        return set()
    return {view.name for gauge in gauges if gauge for view in gauge.views}


def _tell_apart(document: Document, names: list[str]) -> None:
    """Refuse gauges whose folders some file systems would take for one."""
    seen: dict[str, str] = {}
    for name in names:
        if name.lower() in seen:
            document.refuse(
                ("gauges", name),
                f"Expected names that differ in more than case, got {seen[name.lower()]} and "
                f"{name}. Some file systems would give them one folder. Rename one.",
                key=True,
            )
        seen.setdefault(name.lower(), name)
