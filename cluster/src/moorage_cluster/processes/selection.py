"""Which containers run as processes: those of moorage itself, and those whose pod asks for it."""

from __future__ import annotations

from typing import Final

from moorage.api.manifests import Manifest, annotations_of
from moorage_cluster.processes.command import PROGRAM

RUN: Final = "moorage.io/run"
"""An annotation of pods: `true`, and containers run as processes; any other value, and they are simulated.

With `.NAME` at its end it is about that container alone.
"""


def runs(pod: Manifest, container: Manifest) -> bool:
    """Whether a container of a pod runs as a process."""
    annotations = annotations_of(pod)
    said = annotations.get(f"{RUN}.{container['name']}", annotations.get(RUN))
    if said is not None:
        return said == "true"
    command: list[str] = container.get("command") or []
    return command[:1] == [PROGRAM]


def any_runs(pod: Manifest) -> bool:
    """Whether some container of a pod does."""
    spec = pod["spec"]
    return any(runs(pod, each) for each in (*(spec.get("initContainers") or ()), *spec["containers"]))
