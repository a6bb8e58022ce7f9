"""A trace of a live cluster: every pod with its arrival, run time, requests and priority.

Times are those of the API server and the kubelets, in whole seconds, where they say them; so they are
right also for what happened while a watch was broken. A pod is written when it has ended, and sorted by
arrival in the end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from http import HTTPStatus
from typing import Final

import msgspec

from moorage.api.base import Condition, Struct
from moorage.api.decode import InputError
from moorage.api.pod import Pod
from moorage.api.quantity import format_quantity
from moorage.api.resource_requests import pod_requests
from moorage.client.client import Client
from moorage.client.informer import EventType, Informer
from moorage.client.kinds import POD
from moorage.clock import Clock
from moorage.explain.cluster_reader import forbidden_text
from moorage.http.errors import RequestError
from moorage.scheduler.informers import decoder
from moorage.simulation.traces.disk_sort import DiskSorter
from moorage.simulation.traces.moorage_schema import is_resource
from moorage.simulation.traces.pods import Requests, TracePod

_SCHEDULED: Final = "PodScheduled"
_PROBES: Final[dict[str, dict[str, str | int]]] = {
    "list": {"limit": 1},
    "watch": {"watch": "1", "timeoutSeconds": 1},
}


class _Terminated(Struct):
    finished_at: datetime | None = None


class _State(Struct):
    terminated: _Terminated | None = None


class _ContainerStatus(Struct):
    state: _State = _State()


class _Status(Struct):
    container_statuses: tuple[_ContainerStatus, ...] = ()


class _Ending(Struct):
    """The part of a pod that says when its containers ended."""

    status: _Status = _Status()


class SeenPod(msgspec.Struct, frozen=True, gc=False):
    """What a recording needs of a pod."""

    namespace: str
    name: str
    uid: str
    created_at: datetime | None
    scheduled_at: datetime | None
    """When it was bound; None: it is not."""
    finished_at: datetime | None
    """When its last container ended; None: one still runs, or it is not known."""
    is_finished: bool
    requests: Requests
    priority: int


def new_informer(client: Client, clock: Clock) -> Informer[SeenPod]:
    """An informer of pods that keeps what a recording needs."""
    decode_pod = decoder(Pod)
    decode_ending = msgspec.json.Decoder(_Ending).decode
    requests: dict[Requests, Requests] = {}

    def decode(raw: bytes) -> SeenPod:
        pod = decode_pod(raw)
        assert isinstance(pod, Pod)
        asked = _requests(pod)
        return _seen(pod, requests.setdefault(asked, asked), decode_ending(raw))

    return Informer(client, POD, clock, decode=decode)


def _seen(pod: Pod, requests: Requests, ending: _Ending) -> SeenPod:
    created = pod.metadata.creation_timestamp
    bound = [each.last_transition_time for each in pod.status.conditions if _is_scheduled(each)]
    is_bound = bool(pod.spec.node_name)
    return SeenPod(
        pod.namespace,
        pod.name,
        pod.uid,
        created,
        ((bound[0] if bound else None) or pod.status.start_time or created) if is_bound else None,
        _last_end(each.state.terminated for each in ending.status.container_statuses),
        pod.finished,
        requests,
        pod.priority,
    )


def _is_scheduled(condition: Condition) -> bool:
    return condition.type == _SCHEDULED and condition.status == "True"


def _last_end(ended: Iterable[_Terminated | None]) -> datetime | None:
    times = [None if each is None else each.finished_at for each in ended]
    known = [each for each in times if each is not None]
    return max(known) if known and len(known) == len(times) else None


def _requests(pod: Pod) -> Requests:
    amounts = sorted(pod_requests(pod).items())
    return tuple((name, format_quantity(amount)) for name, amount in amounts if amount and is_resource(name))


async def check_access(client: Client) -> None:
    """InputError if pods may not be listed and watched; RequestError and ConnectionFailed as always."""
    for verb, query in _PROBES.items():
        try:
            stream = await client.stream(POD.path(), query)
        except RequestError as error:
            if error.code != HTTPStatus.FORBIDDEN:
                raise
            raise InputError("", forbidden_text([POD], verb, error.message)) from None
        stream.close()


class PodRecorder:
    """Notes the pods that informers tell of."""

    def __init__(self, informer: Informer[SeenPod], utc_now: Callable[[], datetime]) -> None:
        self._informer = informer
        self._utc_now = utc_now
        self._started_at = utc_now().replace(microsecond=0)
        self._sorter = DiskSorter(TracePod, lambda pod: (pod.at_seconds, pod.namespace, pod.name))
        self._ended: set[str] = set()
        """The uids of pods that have ended, but are still there."""
        self._names: set[tuple[str, str]] = set()
        self.resources: set[str] = set()
        """All that is requested."""
        self._ended_count = 0
        informer.listeners.append(self._changed)

    def close(self) -> None:
        """Remove temporary files."""
        self._sorter.close()

    async def synced(self) -> None:
        """Returns when the pods that were there are known."""
        await self._informer.synced()

    @property
    def count(self) -> int:
        """The number of pods that were seen."""
        return self._ended_count + self.running_count

    @property
    def running_count(self) -> int:
        """The number of pods that are there and have not ended."""
        return len(self._informer.objects) - len(self._ended)

    def pods(self) -> Iterator[TracePod]:
        """The recording, in the order of arrival; once, in the end."""
        for pod in self._informer.objects.values():
            if pod.uid not in self._ended:
                self._add(pod, None)
        return self._sorter.in_order()

    def _changed(self, type: EventType, pod: SeenPod, before: SeenPod | None) -> None:
        if pod.uid not in self._ended and (type == "DELETED" or pod.is_finished):
            ended_at = pod.finished_at or self._utc_now()
            self._ended.add(pod.uid)
            if before is not None or self._is_new(pod):
                self._ended_count += 1
                self._add(pod, ended_at)
        if type == "DELETED":
            self._ended.discard(pod.uid)

    def _is_new(self, pod: SeenPod) -> bool:
        """Whether a pod that had ended when it was seen first has ended since the start."""
        known = pod.finished_at or pod.created_at
        return known is None or known >= self._started_at

    def _add(self, pod: SeenPod, ended_at: datetime | None) -> None:
        started, created = self._started_at, pod.created_at or self._started_at
        began = max(pod.scheduled_at or created, started)
        self.resources.update(name for name, _ in pod.requests)
        self._sorter.add(
            TracePod(
                max((created - started).total_seconds(), 0.0),
                0,
                self._own_name(pod),
                None if ended_at is None else max(round((ended_at - began).total_seconds(), 3), 0.0),
                pod.requests,
                pod.namespace,
                pod.priority,
                age_seconds=max((started - created).total_seconds(), 0.0),
            )
        )

    def _own_name(self, pod: SeenPod) -> str:
        """Its name, with a number if there was a pod of that name: a simulation may have both at a time."""
        name, number = pod.name, 1
        while (pod.namespace, name) in self._names:
            number += 1
            name = f"{pod.name}-{number}"
        self._names.add((pod.namespace, name))
        return name
