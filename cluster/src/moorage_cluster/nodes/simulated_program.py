"""The simulated behaviour of a container, from its pod's annotations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from moorage.api.manifests import Manifest, annotations_of
from moorage.config.duration import parse_duration
from moorage.simulation.workload import DURATION
from moorage_cluster.nodes.settings import KubeletSettings
from moorage_cluster.nodes.usage import UsageModel, usage_model

EXIT_CODE: Final = "moorage.io/exit-code"
"""Exit code after the run time; 0 by default."""
READY_AFTER: Final = "moorage.io/ready-after"
"""Time until a running container is ready; without it, its readiness probe's initial delay."""
USAGE: Final = "moorage.io/usage"
"""The usage of each container; see `usage`."""


@dataclass(frozen=True, slots=True)
class Program:
    """The simulated behaviour of a container."""

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
    """The program of a container of a pod; ValueError if an annotation is invalid.

    An annotation applies to all containers of a pod but the init containers, which end by themselves; and
    sidecars do not end. With the suffix `.NAME` it applies to that container alone.
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
            # Containers without limits of their own have the pod's.
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
