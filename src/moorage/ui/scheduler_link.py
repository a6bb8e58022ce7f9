"""What a running scheduler tells about its work, through the API of its secure port."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Final
from urllib.parse import parse_qs, unquote

from moorage.client.client import Client
from moorage.client.scheduler_api import AttemptList, QueueEntry, read_attempts, read_queue
from moorage.http.errors import ConnectionFailed, RequestError
from moorage.http.transport import Request, Response
from moorage.services.responses import document
from moorage.ui.application import API, problem
from moorage.ui.documents import PodState, Queue
from moorage.ui.sources.source import Feature
from moorage.ui.timeline import Timeline

UNSCHEDULABLE: Final = "Unschedulable"
"""Reason of the condition PodScheduled after a failed attempt."""
_PLACES: Final = {"SchedulingGated": "gated", UNSCHEDULABLE: "unschedulable"}
"""The place in the queue that a condition's reason stands for."""
_SCHEDULER_ERRORS = (RequestError, ConnectionFailed)


def queue_feature(timeline: Timeline, scheduler: Client | None) -> Feature:
    """The pods that wait: from the scheduler's queue if there is one, otherwise from their conditions."""

    async def queue(request: Request) -> Response:
        why_not = ""
        if scheduler is not None:
            try:
                return document(Queue(from_scheduler=True, items=await read_queue(scheduler)))
            except _SCHEDULER_ERRORS as error:
                why_not = str(error)
        entries = tuple(entries_of_conditions(timeline))
        return document(Queue(from_scheduler=False, problem=why_not, items=entries))

    return Feature("queue", {"queue": queue})


def entries_of_conditions(timeline: Timeline) -> Iterator[QueueEntry]:
    """The pods without a node, as far as their conditions say what they wait for."""
    for key, pod in timeline.pods.items():
        if not pod.node and not pod.deleting:
            yield _entry(key, pod)


def _entry(key: str, pod: PodState) -> QueueEntry:
    return QueueEntry(
        pod=key,
        uid=pod.uid,
        profile=pod.scheduler,
        place=_PLACES.get(pod.reason, "active"),
        since=datetime.fromtimestamp(pod.created, UTC),
        attempts=0,
        nominated_node=pod.nominated_node,
        message=pod.message,
    )


def attempts_feature(scheduler: Client) -> Feature:
    """The attempts that a scheduler remembers of a pod."""

    async def attempts(request: Request) -> Response:
        namespace, _, name = unquote(request.path).removeprefix(f"{API}attempts/").partition("/")
        after = parse_qs(request.query).get("after", ["0"])[0]
        if not namespace or not name or not (after.isascii() and after.isdecimal()):
            return problem(HTTPStatus.BAD_REQUEST, "attempts/NAMESPACE/POD?after=ID is expected")
        try:
            items = await read_attempts(scheduler, namespace, name, int(after))
        except _SCHEDULER_ERRORS as error:
            return problem(HTTPStatus.BAD_GATEWAY, str(error))
        return document(AttemptList(items=items))

    return Feature("attempts", {"attempts/": attempts})
