"""Plugins for tests, and configurations with them."""

from __future__ import annotations

import asyncio
from typing import Any

from moorage.api.pod import Pod
from moorage.framework.interface.cycle_state import CycleState
from moorage.framework.interface.handle import Handle
from moorage.framework.interface.status import Status, wait
from moorage.framework.loading.registry import Registry
from moorage.plugins import default_registry
from moorage.queue.cluster_events import Action, Interest, Resource, on


def profile(*plugins: str, name: str = "default-scheduler") -> dict[str, Any]:
    """A configuration with more plugins than the default ones."""
    enabled = [{"name": plugin} for plugin in plugins]
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"schedulerName": name, "plugins": {"multiPoint": {"enabled": enabled}}}],
    }


def registry_with(*plugins: Any) -> Registry:
    """The default plugins and these."""
    registry = default_registry()
    for plugin in plugins:
        registry.register(plugin.name, _given(plugin))
    return registry


def _given(plugin: Any) -> Any:
    def make(handle: Handle) -> Any:
        plugin.handle = handle
        return plugin

    return make


class Quiet:
    """A plugin that waits for nothing: nothing changes its mind."""

    handle: Handle

    def events(self) -> tuple[Interest, ...]:
        return (on(Resource.CSI_DRIVER, Action.ADD),)


class Hold(Quiet):
    """Lets pods whose name begins with `held` wait for a permit."""

    name = "Hold"

    def __init__(self, seconds: float = 60.0) -> None:
        self.seconds = seconds

    def permit(self, cycle: CycleState, pod: Pod, node_name: str) -> Status | None:
        return wait(self.seconds) if pod.name.startswith("held") else None

    def waiting(self) -> Any:
        assert self.handle.waiting is not None
        return next(iter(self.handle.waiting))


class Diary(Quiet):
    """Records its calls, and returns scripted results: by point, or by point and pod."""

    def __init__(self, name: str, diary: list[str], answers: dict[str, Any] | None = None) -> None:
        self.name = name
        self._diary = diary
        self.answers = answers or {}

    def _asked(self, point: str, pod: Pod) -> Any:
        self._diary.append(f"{self.name}.{point}")
        answer = self.answers.get(f"{point} {pod.name}", self.answers.get(point))
        if isinstance(answer, Exception):
            raise answer
        return answer

    def reserve(self, cycle: CycleState, pod: Pod, node_name: str) -> Status | None:
        status: Status | None = self._asked("reserve", pod)
        return status

    def unreserve(self, cycle: CycleState, pod: Pod, node_name: str) -> None:
        self._asked("unreserve", pod)

    def permit(self, cycle: CycleState, pod: Pod, node_name: str) -> Status | None:
        status: Status | None = self._asked("permit", pod)
        return status

    def pre_bind_pre_flight(self, cycle: CycleState, pod: Pod, node_name: str) -> Status | None:
        status: Status | None = self._asked("pre_bind_pre_flight", pod)
        return status

    async def pre_bind(self, cycle: CycleState, pod: Pod, node_name: str) -> Status | None:
        answer = self._asked("pre_bind", pod)
        if isinstance(answer, asyncio.Event):
            await answer.wait()
            return None
        status: Status | None = answer
        return status

    def post_bind(self, cycle: CycleState, pod: Pod, node_name: str) -> None:
        self._asked("post_bind", pod)


class Binding(Diary):
    """Also binds, or does not."""

    async def bind(self, cycle: CycleState, pod: Pod, node_name: str) -> Status | None:
        status: Status | None = self._asked("bind", pod)
        return status


class Wake(Quiet):
    """Wants another pod to be tried whenever one is reserved, or bound."""

    name = "Wake"

    def __init__(self, point: str) -> None:
        self._point = point
        self.sleeper: Pod | None = None
        self.is_awake = False

    def filter_node(self, cycle: CycleState, pod: Pod, node: Any) -> str | None:
        if pod.name != "sleeper" or self.is_awake:
            return None
        self.sleeper = pod
        return "asleep"

    def permit(self, cycle: CycleState, pod: Pod, node_name: str) -> None:
        self._wake("permit", cycle)

    def post_bind(self, cycle: CycleState, pod: Pod, node_name: str) -> None:
        self._wake("post_bind", cycle)

    def _wake(self, point: str, cycle: CycleState) -> None:
        if point == self._point and self.sleeper is not None:
            self.is_awake = True
            cycle.pods_to_activate[self.sleeper.uid] = self.sleeper
