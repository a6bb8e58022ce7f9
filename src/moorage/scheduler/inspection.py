"""What a running scheduler serves about pods: its queue, and the attempts that it remembers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from http import HTTPStatus
from urllib.parse import parse_qs, unquote

from moorage.client.scheduler_api import (
    ATTEMPTS_PATH,
    QUEUE_PATH,
    SHADOW_PATH,
    AttemptList,
    AwaitedEvents,
    QueueEntry,
    QueueList,
)
from moorage.clock import Clock
from moorage.http.transport import Request, Response
from moorage.queue.cluster_events import Action, ClusterEvent
from moorage.queue.queued_pod import QueuedPod
from moorage.queue.scheduling_queue import Place, SchedulingQueue
from moorage.scheduler.attempt_history import AttemptHistory
from moorage.scheduler.shadow.report import ShadowReport
from moorage.services import responses
from moorage.services.responses import Handler


def inspection_routes(
    queue: SchedulingQueue, history: AttemptHistory | None, clock: Clock
) -> dict[str, Handler]:
    """The queue, and the attempts of pods if they are remembered; both read the scheduler's state."""

    async def waiting(request: Request) -> Response:
        namespace = unquote(request.path).removeprefix(QUEUE_PATH).strip("/")
        return responses.document(QueueList(items=tuple(queue_entries(queue, clock, history, namespace))))

    async def attempts(request: Request) -> Response:
        assert history is not None
        namespace, slash, name = unquote(request.path).removeprefix(ATTEMPTS_PATH).partition("/")
        if not slash or not name or "/" in name:
            message = f"a namespace and the name of a pod have to follow {ATTEMPTS_PATH}"
            return responses.error(HTTPStatus.NOT_FOUND, message)
        try:
            after = int(parse_qs(request.query).get("after", ["0"])[0])
        except ValueError:
            return responses.error(HTTPStatus.BAD_REQUEST, "after: not a whole number")
        return responses.document(AttemptList(items=tuple(history.of(f"{namespace}/{name}", after))))

    routes: dict[str, Handler] = {QUEUE_PATH: waiting, f"{QUEUE_PATH}/": waiting}
    return routes if history is None else {**routes, ATTEMPTS_PATH: attempts}


def shadow_routes(report: ShadowReport) -> dict[str, Handler]:
    """The counts of shadow mode."""

    async def status(request: Request) -> Response:
        return responses.document(report.status)

    return {SHADOW_PATH: status}


def queue_entries(
    queue: SchedulingQueue, clock: Clock, history: AttemptHistory | None = None, namespace: str = ""
) -> Iterator[QueueEntry]:
    """The pods without a node, of one namespace or of all."""
    now, utc_now = clock.now(), clock.utc_now()

    def moment(seconds: float) -> datetime:
        return utc_now + timedelta(seconds=seconds - now)

    for place in Place:
        for queued in queue.pods_in(place):
            pod = queued.pod
            if namespace and pod.namespace != namespace:
                continue
            retried = queue.next_attempt(queued)
            is_waiting = place in (Place.UNSCHEDULABLE, Place.GATED)
            yield QueueEntry(
                pod=pod.key,
                uid=queued.uid,
                profile=queued.profile,
                place=place.value,
                since=moment(queued.timestamp),
                attempts=queued.attempts,
                next_attempt=None if retried is None else moment(retried),
                rejected_by=tuple(sorted(queued.rejector_plugins())),
                gated_by=queued.gating_plugin,
                awaited=tuple(_awaited(queue, queued)) if is_waiting else (),
                nominated_node=pod.status.nominated_node_name,
                message="" if history is None else history.last_message(pod.key),
            )


def _awaited(queue: SchedulingQueue, queued: QueuedPod) -> Iterator[AwaitedEvents]:
    """The events that may requeue a waiting pod: of a gated one, only those of the plugin that gates it."""
    for plugin, events in queue.awaited_events(queued).items():
        if not queued.gating_plugin or plugin == queued.gating_plugin:
            yield AwaitedEvents(plugin=plugin, events=tuple(dict.fromkeys(_labels(events))))


def _labels(events: Iterable[ClusterEvent]) -> Iterator[str]:
    """The names of events as logs and metrics have them, one for each action."""
    for event in events:
        if Action.UPDATE in event.action:
            yield ClusterEvent(event.resource, Action.UPDATE).label
        rest = event.action & ~Action.UPDATE if Action.UPDATE in event.action else event.action
        for action in rest:
            yield ClusterEvent(event.resource, action).label
