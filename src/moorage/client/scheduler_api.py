"""The API of a running scheduler: attempts that it remembers, and its queue.

Served on the scheduler's authenticated port, as JSON. The version is part of the path and of every document:
fields may be added within a version; none is removed or changes its meaning.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final, Literal, TypeVar
from urllib.parse import quote

import msgspec

from moorage.api.base import Struct
from moorage.client.client import Client
from moorage.http.errors import AnswerLost

API_VERSION: Final = "moorage.io/v1"
ATTEMPTS_PATH: Final = "/moorage/v1/attempts/"
"""Path of the attempts of a pod, followed by its namespace and name."""
QUEUE_PATH: Final = "/moorage/v1/queue"
"""Path of the queue; followed by a slash and a namespace, only the pods of that."""

SHADOW_PATH: Final = "/moorage/v1/shadow"
"""Path of the counts of shadow mode."""

T = TypeVar("T")
AttemptResult = Literal["Binding", "Scheduled", "Unschedulable", "SchedulerError"]
"""`Binding`: a node was chosen, and the pod is not bound yet."""


class ScoredNode(Struct):
    """A feasible node with its total, and each plugin's part of it."""

    name: str
    total: int = 0
    scores: dict[str, int] = {}


class RejectedNodes(Struct):
    """Number of nodes that a plugin rejected for a reason."""

    plugin: str
    reason: str
    nodes: int


class Attempt(Struct):
    """One attempt to schedule a pod, with the numbers of that moment.

    id: grows with every attempt of the process.
    nodes: the best feasible nodes, best first; empty while the scheduler is too busy to keep scores.
    """

    id: int
    time: datetime
    pod: str
    uid: str
    profile: str
    attempt: int
    result: AttemptResult
    node: str = ""
    message: str = ""
    evaluated_nodes: int = 0
    feasible_nodes: int = 0
    rejections: tuple[RejectedNodes, ...] = ()
    nodes: tuple[ScoredNode, ...] = ()
    nominated_node: str = ""
    victims: tuple[str, ...] = ()


class AttemptList(Struct, omit_defaults=False):
    """The remembered attempts of a pod, oldest first."""

    api_version: str = API_VERSION
    kind: str = "AttemptList"
    items: tuple[Attempt, ...] = ()


class AwaitedEvents(Struct):
    """The events that requeue a pod, because of one of the plugins that rejected it."""

    plugin: str
    events: tuple[str, ...] = ()


class QueueEntry(Struct):
    """A pod in the queue, or in flight.

    since: when it was added, or put back after its last attempt.
    next_attempt: when it is retried: the end of its backoff, or the latest time if no event requeues it
        before; absent if only an event can, and for pods that can be attempted now.
    """

    pod: str
    uid: str
    profile: str
    place: str
    since: datetime
    attempts: int
    next_attempt: datetime | None = None
    rejected_by: tuple[str, ...] = ()
    gated_by: str = ""
    awaited: tuple[AwaitedEvents, ...] = ()
    nominated_node: str = ""
    message: str = ""


class QueueList(Struct, omit_defaults=False):
    """All pods without a node, in the order in which they are attempted where that is defined."""

    api_version: str = API_VERSION
    kind: str = "QueueList"
    items: tuple[QueueEntry, ...] = ()


async def read_attempts(client: Client, namespace: str, pod: str, after: int = 0) -> tuple[Attempt, ...]:
    """The remembered attempts of a pod whose id is greater than `after`.

    client: a client of the scheduler's port; RequestError if the scheduler rejects the request.
    """
    path = f"{ATTEMPTS_PATH}{quote(namespace)}/{quote(pod)}"
    return (await _read(client, path, AttemptList, {"after": after} if after else {})).items


async def read_queue(client: Client, namespace: str = "") -> tuple[QueueEntry, ...]:
    """The pods without a node, of one namespace or of all."""
    path = f"{QUEUE_PATH}/{quote(namespace)}" if namespace else QUEUE_PATH
    return (await _read(client, path, QueueList, {})).items


async def _read(client: Client, path: str, kind: type[T], query: dict[str, str | int]) -> T:
    body = await client.exchange("GET", path, query)
    try:
        return msgspec.json.decode(body, type=kind)
    except msgspec.MsgspecError as error:
        raise AnswerLost(f"GET {path}: not a scheduler's response: {error}") from None
