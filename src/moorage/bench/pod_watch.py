"""Tracks pods: waits for their stages, and records when each was bound."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any, Final, Protocol

from moorage.client.informer import EventType, Informer, Key

UNSEEN: Final = 0
WAITING: Final = 1
ATTEMPTED: Final = 2
SCHEDULED: Final = 3
"""The stages of a pod: absent, not attempted, unschedulable, on a node."""


class _Metadata(Protocol):
    @property
    def name(self) -> str: ...
    @property
    def namespace(self) -> str: ...
    @property
    def uid(self) -> str: ...
    @property
    def labels(self) -> Mapping[str, str]: ...


class _ClaimReference(Protocol):
    @property
    def name(self) -> str: ...
    @property
    def resource_claim_template_name(self) -> str | None: ...


class _Spec(Protocol):
    @property
    def node_name(self) -> str: ...
    @property
    def resource_claims(self) -> Sequence[_ClaimReference]: ...


class _Condition(Protocol):
    @property
    def type(self) -> str: ...
    @property
    def message(self) -> str: ...


class _Status(Protocol):
    @property
    def conditions(self) -> Sequence[_Condition]: ...


class SeenPod(Protocol):
    """The fields of a pod that are read."""

    @property
    def metadata(self) -> _Metadata:
        """Its name, uid and labels."""

    @property
    def spec(self) -> _Spec:
        """Its node, and its claims for devices."""

    @property
    def status(self) -> _Status:
        """Its conditions, which show whether it was attempted."""


def stage(pod: SeenPod | None) -> int:
    """A pod's stage."""
    if pod is None:
        return UNSEEN
    if pod.spec.node_name:
        return SCHEDULED
    return ATTEMPTED if _scheduling(pod) is not None else WAITING


def _scheduling(pod: SeenPod) -> _Condition | None:
    for each in pod.status.conditions:
        if each.type == "PodScheduled":
            return each
    return None


@dataclass(slots=True)
class PodSelection:
    """Pods by namespace and labels."""

    namespaces: Collection[str]
    labels: Mapping[str, str] = field(default_factory=dict)

    def holds(self, pod: SeenPod) -> bool:
        """Whether a pod is one of them."""
        meta = pod.metadata
        if meta.namespace not in self.namespaces:
            return False
        return not self.labels or all(meta.labels.get(key) == value for key, value in self.labels.items())


@dataclass(slots=True)
class BindingTimes:
    """The binding times of a group's pods."""

    group: PodSelection
    times: list[float] = field(default_factory=list)
    """Time at which each pod was bound, in order."""
    latencies: list[float] = field(default_factory=list)
    """Time from each pod's create request until it was seen bound, in seconds."""
    _created: dict[Key, float] = field(default_factory=dict)
    _bound: dict[Key, float] = field(default_factory=dict)
    """Binding times of pods without a known creation: a pod may be bound before its create call returns."""

    def was_created(self, key: Key, at: float) -> None:
        """A pod was created; `at` is the time of the request."""
        if key[0] in self.group.namespaces:
            bound = self._bound.pop(key, None)
            if bound is None:
                self._created[key] = at
            else:
                self.latencies.append(bound - at)

    def was_bound(self, pod: SeenPod) -> None:
        """A pod was bound."""
        if self.group.holds(pod):
            now, key = perf_counter(), (pod.metadata.namespace, pod.metadata.name)
            self.times.append(now)
            created = self._created.pop(key, None)
            if created is None:
                self._bound[key] = now
            else:
                self.latencies.append(now - created)


class _Waiter:
    """Waits until a number of a group's pods have reached a stage."""

    def __init__(self, group: PodSelection, wanted: int, at_least: int) -> None:
        self.group = group
        self.wanted = wanted
        self.at_least = at_least
        self.count = 0
        self.done = asyncio.get_running_loop().create_future()

    def change(self, pod: SeenPod | None, before: SeenPod | None) -> int:
        """By how much an event changes the number of pods that have reached the stage."""
        if (
            pod is not None
            and before is not None
            and self.at_least >= SCHEDULED
            and pod.spec.node_name == before.spec.node_name
            and pod.metadata.labels == before.metadata.labels
        ):
            return 0
        return self.counts(pod) - self.counts(before)

    def counts(self, pod: SeenPod | None) -> bool:
        if pod is None:
            return False
        has_reached = pod.spec.node_name or (self.at_least < SCHEDULED and stage(pod) >= self.at_least)
        return bool(has_reached) and self.group.holds(pod)

    def check(self) -> None:
        if self.count >= self.wanted and not self.done.done():
            self.done.set_result(None)


class PodWatch:
    """Follows all pods of a cluster."""

    def __init__(self, informer: Informer[Any]) -> None:
        self._informer = informer
        self._waiters: list[_Waiter] = []
        self._bindings: list[BindingTimes] = []
        self.bound = 0
        """Total number of pods that were bound."""
        self._broken: Exception | None = None
        informer.listeners.append(self._on_event)

    def pods(self, group: PodSelection) -> list[SeenPod]:
        """The current pods of a group."""
        return [pod for pod in self._informer.objects.values() if group.holds(pod)]

    async def until(self, group: PodSelection, wanted: int, at_least: int) -> None:
        """Wait until `wanted` pods of a group have reached a stage."""
        if self._broken is not None:
            raise self._broken
        waiter = _Waiter(group, wanted, at_least)
        waiter.count = sum(map(waiter.counts, self._informer.objects.values()))
        waiter.check()
        self._waiters.append(waiter)
        try:
            await waiter.done
        finally:
            self._waiters.remove(waiter)

    def give_up(self, error: Exception) -> None:
        """Fail all current and future waits with an error."""
        self._broken = error
        for waiter in self._waiters:
            if not waiter.done.done():
                waiter.done.set_exception(error)

    def standing(self, group: PodSelection) -> str:
        """How many pods of a group are scheduled, and why one of the others is not."""
        pods = self.pods(group)
        done = sum(1 for pod in pods if stage(pod) == SCHEDULED)
        text = f"{done} of {len(pods)} pods are scheduled"
        waiting = next((pod for pod in pods if stage(pod) != SCHEDULED), None)
        if waiting is None:
            return text
        condition = _scheduling(waiting)
        reason = (
            f": {condition.message}" if condition is not None and condition.message else ", not tried yet"
        )
        return f"{text}; {waiting.metadata.namespace}/{waiting.metadata.name} is not{reason}"

    def start_noting(self, group: PodSelection) -> BindingTimes:
        """Start recording when pods of a group are bound."""
        bindings = BindingTimes(group)
        self._bindings.append(bindings)
        return bindings

    def was_created(self, key: Key, at: float) -> None:
        """A pod was created; `at` is the time of the request."""
        for bindings in self._bindings:
            bindings.was_created(key, at)

    def stop_noting(self, bindings: BindingTimes) -> None:
        """Stop recording."""
        self._bindings.remove(bindings)

    def _on_event(self, type: EventType, pod: SeenPod, before: SeenPod | None) -> None:
        now = None if type == "DELETED" else pod
        if now is not None and now.spec.node_name and (before is None or not before.spec.node_name):
            self.bound += 1
            for bindings in self._bindings:
                bindings.was_bound(now)
        for waiter in self._waiters:
            change = waiter.change(now, before)
            if change:
                waiter.count += change
                waiter.check()


def selected(pods: Iterable[SeenPod]) -> list[Key]:
    """Namespaces and names."""
    return [(pod.metadata.namespace, pod.metadata.name) for pod in pods]
