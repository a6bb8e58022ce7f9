"""Fields of a configuration that are accepted and have no effect."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from operator import attrgetter
from typing import Final

from moorage.config.types import SchedulerConfiguration

WITHOUT_EFFECT: Final[Mapping[str, str]] = {
    "parallelism": "plugins are asked about all nodes at once, without workers",
    "clientConnection.acceptContentTypes": "answers are JSON, which every API server gives",
    "clientConnection.contentType": "requests are JSON, which every API server understands",
    "enableContentionProfiling": "profiles of this kind are those of Go programs",
}
"""The fields as named in files, each with the reason; docs/reference/configuration.md lists them as well."""

_DEFAULTS: Final = SchedulerConfiguration()
_CAPITAL: Final = re.compile(r"(?=[A-Z])")


def fields_without_effect(config: SchedulerConfiguration) -> Iterator[str]:
    """The fields without effect that are not at their defaults, each with the reason."""
    for path, reason in WITHOUT_EFFECT.items():
        value = attrgetter(_CAPITAL.sub("_", path).lower())
        if value(config) != value(_DEFAULTS):
            yield f"{path}: {reason}"
