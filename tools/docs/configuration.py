"""The configuration file: every field of KubeSchedulerConfiguration."""

from __future__ import annotations

from moorage.config.types import API_VERSION, KIND, ClientConnection, SchedulerConfiguration
from moorage.config.without_effect import WITHOUT_EFFECT
from tools.docs.fields import field_table, inner_types
from tools.docs.markdown import block, code, without_entries


def page() -> str:
    """The page."""
    parts = [
        "# Fields of the configuration",
        f"The fields of {code(KIND)}, {code(API_VERSION)}, as `moorage run --config FILE` reads them. "
        "Profiles name plugins by [extension point](extension-points.md) in camel case, and their "
        "[arguments](plugins.md).",
        block(f"apiVersion: {API_VERSION}\nkind: {KIND}", "yaml"),
    ]
    for kind in (SchedulerConfiguration, *inner_types(SchedulerConfiguration)):
        title = KIND if kind is SchedulerConfiguration else kind.__name__
        parts += [f"## {title}", without_entries(kind.__doc__), field_table(kind, notes=_notes(kind))]
    return "\n\n".join(parts) + "\n"


def _notes(kind: type) -> dict[str, str]:
    """What is said of fields that have no effect, by name."""
    parents: dict[type, str] = {SchedulerConfiguration: "", ClientConnection: "clientConnection"}
    paths = {path.rpartition(".")[::2]: reason for path, reason in WITHOUT_EFFECT.items()}
    return {
        name: f"No effect: {reason}."
        for (parent, name), reason in paths.items()
        if parent == parents.get(kind)
    }
