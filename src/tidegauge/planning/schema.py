"""The JSON Schema of a config, for editors and for other programs."""

from __future__ import annotations

from typing import Any

__all__ = ["config_schema"]


def config_schema() -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of a config file.

    It knows fields, their types and choices. What several fields have to agree on is left to
    ``tidegauge validate``.
    """
    from tidegauge.planning.form import ConfigForm

    schema = ConfigForm.model_json_schema(mode="validation")
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **schema,
        "title": "Config of tidegauge",
    }
