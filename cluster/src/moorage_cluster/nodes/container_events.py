"""The events of a pod's containers, as `kubectl describe` shows them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from moorage.config.duration import Duration
from moorage_cluster.nodes.containers import ContainerRun, Running, Waiting
from moorage_cluster.nodes.images import full_name, size_of
from moorage_cluster.nodes.podrun import PodRun


class ContainerEvent(NamedTuple):
    """An event to record."""

    type: str
    reason: str
    message: str


class ContainerEvents:
    """Remembers the last recorded state of each container."""

    def __init__(self) -> None:
        self._reported: dict[tuple[str, str], str] = {}
        self._pulls: dict[str, float] = {}

    def pulling(self, image: str, seconds: float) -> ContainerEvent:
        """The event of an image pull, which takes this many seconds."""
        self._pulls[full_name(image)] = seconds
        return ContainerEvent("Normal", "Pulling", f'Pulling image "{image}"')

    def forget(self, run: PodRun) -> None:
        """Drop the state of a deleted pod."""
        for each in run.containers:
            self._reported.pop((run.uid, each.name), None)

    def new_events(self, run: PodRun) -> Iterator[ContainerEvent]:
        """The events that have not been recorded yet."""
        for each in run.containers:
            state = each.state
            mark = each.container_id if isinstance(state, Running) else f"{state}"
            if self._reported.get((run.uid, each.name)) == mark:
                continue
            self._reported[run.uid, each.name] = mark
            if isinstance(state, Running):
                yield from self._started(each)
            elif isinstance(state, Waiting) and state.reason == "CrashLoopBackOff":
                described = f"{run.name}_{run.namespace}({run.uid})"
                message = f"Back-off restarting failed container {each.name} in pod {described}"
                yield ContainerEvent("Warning", "BackOff", message)

    def _started(self, container: ContainerRun) -> Iterator[ContainerEvent]:
        image = container.spec["image"]
        seconds = self._pulls.pop(full_name(image), None)
        if seconds is None:
            message = f'Container image "{image}" already present on machine and can be accessed by the pod'
        else:
            took = Duration(round(seconds, 3))
            message = (
                f'Successfully pulled image "{image}" in {took} ({took} including waiting). '
                f"Image size: {size_of(image)} bytes."
            )
        yield ContainerEvent("Normal", "Pulled", message)
        yield ContainerEvent("Normal", "Created", "Container created")
        yield ContainerEvent("Normal", "Started", "Container started")
