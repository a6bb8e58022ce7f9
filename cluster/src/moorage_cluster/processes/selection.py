"""Which containers run as processes: those of moorage itself, and those selected by an annotation."""

from __future__ import annotations

from typing import Final

from moorage.api.manifests import Manifest, annotations_of
from moorage_cluster.processes.command import PROGRAM

RUN: Final = "moorage.io/run"
"""An annotation of pods: with `true`, containers run as processes; with any other value, they are simulated.

With the suffix `.NAME` it applies to that container alone.
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
    """Whether any container of a pod runs as a process."""
    spec = pod["spec"]
    return any(runs(pod, each) for each in (*(spec.get("initContainers") or ()), *spec["containers"]))
