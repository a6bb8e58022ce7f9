"""Files as sources: what kind a file is of is known from its contents."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from moorage.api.decode import InputError
from moorage.api.files import load_json, read_text
from moorage.simulation.results import KIND as SIMULATION
from moorage.ui.sources.file_source import FileSource
from moorage.ui.sources.recording import recording_source
from moorage.ui.sources.shadow import is_comparison, shadow_source
from moorage.ui.sources.simulation import simulation_source

_UNKNOWN: Final = (
    "neither a recording, nor a result of moorage simulate -o json, nor a report of moorage run --shadow"
)


def open_file(path: Path) -> FileSource:
    """A recording, a result of a simulation, or a report of shadow mode; InputError for anything else."""
    text = read_text(path)
    if is_comparison(_first_line(text)):
        return shadow_source(text, str(path))
    document = load_json(path) if text.strip() else None
    if not isinstance(document, Mapping):
        raise InputError(str(path), _UNKNOWN)
    if document.get("kind") == SIMULATION:
        return simulation_source(document, str(path))
    if "steps" in document:
        return recording_source(document, str(path))
    raise InputError(str(path), _UNKNOWN)


def _first_line(text: str) -> Any:
    try:
        return json.loads(text.partition("\n")[0])
    except (ValueError, RecursionError):
        return None
