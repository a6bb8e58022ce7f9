"""Fields of a configuration that are accepted and mean nothing here."""

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
"""The fields as files name them, each with the reason; README lists them too."""

_DEFAULTS: Final = SchedulerConfiguration()
_CAPITAL: Final = re.compile(r"(?=[A-Z])")


def fields_without_effect(config: SchedulerConfiguration) -> Iterator[str]:
    """Of the fields that mean nothing, those that are not as they are by default, each with the reason."""
    for path, reason in WITHOUT_EFFECT.items():
        value = attrgetter(_CAPITAL.sub("_", path).lower())
        if value(config) != value(_DEFAULTS):
            yield f"{path}: {reason}"
