"""The pages that are generated from the source, by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

from tools.docs import (
    command_line,
    configuration,
    extension_points,
    feature_gates,
    log_messages,
    metrics,
    plugins,
    python_api,
)

PAGES: Final[Mapping[str, Callable[[], str]]] = MappingProxyType(
    {
        "cli": command_line.page,
        "configuration": configuration.page,
        "extension-points": extension_points.page,
        "feature-gates": feature_gates.page,
        "log-messages": log_messages.page,
        "metrics": metrics.page,
        "plugins": plugins.page,
        "python-api": python_api.page,
    }
)


def pages() -> dict[str, str]:
    """The text of every page."""
    return {name: page() for name, page in PAGES.items()}
