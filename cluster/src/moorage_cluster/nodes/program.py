"""What a container does when it runs: its pod's annotations say so."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from moorage.api.manifests import Manifest, annotations_of
from moorage.config.duration import parse_duration
from moorage_cluster.nodes.settings import KubeletSettings
from moorage_cluster.nodes.usage import UsageModel, usage_model

DURATION: Final = "moorage.io/duration"
"""How long containers run, such as `30s`; without it, until they are stopped."""
EXIT_CODE: Final = "moorage.io/exit-code"
"""How they end then; 0 if it is not said."""
READY_AFTER: Final = "moorage.io/ready-after"
"""How long a running container is not ready; without it, its readiness probe's initial delay."""
USAGE: Final = "moorage.io/usage"
"""What each container uses; see `usage`."""


@dataclass(frozen=True, slots=True)
class Program:
    """What a container does."""

    usage: UsageModel
    seconds: float | None = None
    exit_code: int = 0
    ready_after_seconds: float = 0.0


def program_of(
    pod: Manifest,
    container: Manifest,
    settings: KubeletSettings,
    *,
    is_init: bool = False,
    is_sidecar: bool = False,
) -> Program:
    """What a container of a pod does; ValueError if an annotation cannot be read.

    An annotation is about all containers of a pod but the init containers, which end by themselves; and
    sidecars do not end. With `.NAME` at its end it is about that container alone.
    """
    annotations = annotations_of(pod)
    own_only = {DURATION, EXIT_CODE} if is_sidecar else {DURATION, EXIT_CODE, READY_AFTER, USAGE}

    def said(key: str) -> str | None:
        own = annotations.get(f"{key}.{container['name']}")
        is_own_only = (is_init or is_sidecar) and key in own_only
        return annotations.get(key) if own is None and not is_own_only else own

    def seconds(key: str) -> float | None:
        text = said(key)
        if text is None:
            return None
        try:
            return max(float(parse_duration(text)), 0.0)
        except ValueError as error:
            raise ValueError(f"{key}: {error}") from None

    whole = ((pod.get("spec") or {}).get("resources") or {}).get("limits") or {}
    own = container.get("resources") or {}
    try:
        usage = usage_model(
            said(USAGE) or "",
            # Who has no limit of their own may have all that the pod may have.
            {**own, "limits": {**whole, **(own.get("limits") or {})}},
            cpu_share=settings.cpu_share,
            memory_share=settings.memory_share,
        )
    except ValueError as error:
        raise ValueError(f"{USAGE}: {error}") from None
    duration = seconds(DURATION)
    if duration is None and is_init:
        duration = settings.init_seconds
    ready_after = seconds(READY_AFTER)
    if ready_after is None:
        probe = container.get("readinessProbe") or {}
        ready_after = float(probe.get("initialDelaySeconds") or 0)
    code = said(EXIT_CODE) or "0"
    if not code.isdecimal() or int(code) > 255:
        raise ValueError(f"{EXIT_CODE}: {code!r} is not a number from 0 to 255")
    return Program(usage, duration, int(code), ready_after)
