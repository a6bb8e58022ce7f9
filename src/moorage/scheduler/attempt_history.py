"""The last attempts of every pod, remembered by a running scheduler.

Kept are small summaries: the result, the message, the number of nodes by reason, the best nodes with their
scores. Both the number of attempts of a pod and the size of all are bounded; the pods attempted least
recently are dropped first. Reading the scores of thousands of nodes may take longer than a decision: it is
limited to a share of the time, so that remembering costs a busy scheduler a few microseconds a pod.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from time import perf_counter
from typing import Final

import msgspec
import numpy as np

from moorage.api.base import Struct
from moorage.client.scheduler_api import Attempt, AttemptResult, RejectedNodes, ScoredNode
from moorage.clock import Clock
from moorage.engine.decision import Decision
from moorage.framework.interface.effects import EvictPods
from moorage.queue.queued_pod import QueuedPod
from moorage.scheduler.observers import Observer

MAX_ATTEMPTS_OF_POD: Final = 10
"""Default number of attempts that are kept of a pod."""
MAX_BYTES: Final = 64 * 1024 * 1024
"""Default size of all attempts that are kept, in bytes."""
_MAX_NODES: Final = 5
"""Number of the best nodes that are kept with their scores."""
_SCORING_SHARE: Final = 0.0025
"""Share of the time in which scores are read: 7 µs a pod where 350 pods come in a second."""
_CLOCK_TOLERANCE: Final = timedelta(seconds=1)
"""How far wall time and monotonic time may drift apart before times are determined again."""
_MAX_SCORING_SECONDS: Final = 0.05
"""Time for reading scores that is saved up while there is little to schedule, in seconds."""
_MAX_VICTIMS: Final = 50
_POD_BYTES: Final = 400
"""Size of an entry for a pod, besides its attempts, in bytes."""
_ATTEMPT_BYTES: Final = 300
"""Size of a kept attempt without its texts, in bytes."""
_MAX_MESSAGES: Final = 1024
"""Number of messages that attempts share."""


class _Detail(Struct):
    """What most attempts do not have; kept encoded."""

    rejections: tuple[RejectedNodes, ...] = ()
    nodes: tuple[ScoredNode, ...] = ()
    nominated_node: str = ""
    victims: tuple[str, ...] = ()


class _Kept(msgspec.Struct, gc=False):
    """A kept attempt. `time` is the clock's."""

    id: int
    time: float
    uid: str
    profile: str
    attempt: int
    result: AttemptResult
    node: str
    message: str
    evaluated: int
    feasible: int
    detail: bytes
    size_bytes: int


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(_Detail).decode


class AttemptHistory(Observer):
    """Remembers the last attempts of every pod, by namespace and name.

    max_attempts: number of attempts that are kept of a pod.
    max_bytes: size of all of them.
    stopwatch: measures how long scores are read.
    """

    def __init__(
        self,
        clock: Clock,
        *,
        max_attempts: int = MAX_ATTEMPTS_OF_POD,
        max_bytes: int = MAX_BYTES,
        stopwatch: Callable[[], float] = perf_counter,
    ) -> None:
        super().__init__()
        self._clock = clock
        self._max_attempts = max_attempts
        self._max_bytes = max_bytes
        self._last_id = 0
        self._pods: OrderedDict[str, tuple[_Kept, ...]] = OrderedDict()
        """The attempts of each pod, oldest first; tuples, which the garbage collector need not track."""
        self.size_bytes = 0
        """Estimated size of what is kept."""
        self._open: dict[str, _Kept] = {}
        """Attempts that have not ended, by the uid of the pod."""
        self._messages: dict[str, str] = {}
        self._stopwatch = stopwatch
        self._scoring_seconds = _MAX_SCORING_SECONDS
        self._scored_at = 0.0
        self._start: datetime | None = None
        """The wall time at 0 seconds, when it was last determined."""

    # What is kept

    def decided(self, queued: QueuedPod, decision: Decision) -> None:
        """A node was found for a pod, or none."""
        now = self._clock.now()
        node = decision.node
        if node is not None:
            detail = self._scored(decision, now)
            self._keep(queued, now, "Binding", node, "", decision.evaluated, len(decision.feasible), detail)
            return
        result: AttemptResult = "Unschedulable" if decision.error is None else "SchedulerError"
        detail = _encode(_rejection(decision))
        self._keep(queued, now, result, "", self._shared(decision.message), decision.evaluated, 0, detail)

    def bound(self, queued: QueuedPod, now: float) -> None:
        """A pod was bound."""
        kept = self._open.pop(queued.uid, None)
        if kept is not None:
            kept.result = "Scheduled"

    def abandoned(self, queued: QueuedPod) -> None:
        """An attempt was abandoned: the pod is deleted, or the scheduler is stopping."""
        self._open.pop(queued.uid, None)

    def failed(self, queued: QueuedPod, reason: str, message: str = "") -> None:
        """An attempt failed: no node was found, or the pod was not bound to the chosen one."""
        result: AttemptResult = "Unschedulable" if reason == "Unschedulable" else "SchedulerError"
        kept = self._open.pop(queued.uid, None)
        if kept is None:
            self._keep(queued, self._clock.now(), result, "", self._shared(message), 0, 0, b"")
            del self._open[queued.uid]
        elif kept.result == "Binding":
            kept.result, kept.message = result, self._shared(message)

    def _keep(
        self,
        queued: QueuedPod,
        now: float,
        result: AttemptResult,
        node: str,
        message: str,
        evaluated: int,
        feasible: int,
        detail: bytes,
    ) -> None:
        self._last_id += 1
        pod = queued.pod
        size_bytes = _ATTEMPT_BYTES + len(message) + len(detail)
        new = _Kept(
            self._last_id,
            now,
            queued.uid,
            pod.spec.scheduler_name,
            queued.attempts,
            result,
            node,
            message,
            evaluated,
            feasible,
            detail,
            size_bytes,
        )
        self._open[queued.uid] = new
        key = pod.key
        kept = self._pods.get(key)
        if kept is None:
            self._pods[key] = (new,)
            self.size_bytes += _POD_BYTES
        else:
            self._pods.move_to_end(key)
            if len(kept) == self._max_attempts:
                self.size_bytes -= kept[0].size_bytes
                kept = kept[1:]
            self._pods[key] = (*kept, new)
        self.size_bytes += size_bytes
        while self.size_bytes > self._max_bytes and self._pods:
            _, dropped = self._pods.popitem(last=False)
            self.size_bytes -= _POD_BYTES + sum(each.size_bytes for each in dropped)

    def _shared(self, message: str) -> str:
        """An equal message of another attempt, if there is one."""
        if len(self._messages) >= _MAX_MESSAGES:
            self._messages.clear()
        return self._messages.setdefault(message, message)

    def _scored(self, decision: Decision, now: float) -> bytes:
        """The best nodes with their scores, encoded; nothing if the time for that is used up."""
        saved = self._scoring_seconds + (now - self._scored_at) * _SCORING_SHARE
        self._scored_at = now
        if saved <= 0:
            self._scoring_seconds = saved
            return b""
        began = self._stopwatch()
        nodes = _encode(_Detail(nodes=tuple(_best_nodes(decision))))
        self._scoring_seconds = min(saved, _MAX_SCORING_SECONDS) - (self._stopwatch() - began)
        return nodes

    # What is read

    def _wall_time_at_zero(self) -> datetime:
        """The same as before unless the wall clock was set: an attempt has one time whenever it is read."""
        start = self._clock.utc_now() - timedelta(seconds=self._clock.now())
        if self._start is None or abs(start - self._start) > _CLOCK_TOLERANCE:
            self._start = start
        return self._start

    def of(self, pod: str, after: int = 0) -> list[Attempt]:
        """The kept attempts of a pod (`namespace/name`) whose id is greater than `after`, oldest first."""
        start, attempts = self._wall_time_at_zero(), []
        for kept in self._pods.get(pod, ()):
            if kept.id > after:
                detail = _decode(kept.detail) if kept.detail else _Detail()
                attempts.append(
                    Attempt(
                        id=kept.id,
                        time=start + timedelta(seconds=kept.time),
                        pod=pod,
                        uid=kept.uid,
                        profile=kept.profile,
                        attempt=kept.attempt,
                        result=kept.result,
                        node=kept.node,
                        message=kept.message,
                        evaluated_nodes=kept.evaluated,
                        feasible_nodes=kept.feasible,
                        rejections=detail.rejections,
                        nodes=detail.nodes,
                        nominated_node=detail.nominated_node,
                        victims=detail.victims,
                    )
                )
        return attempts

    def last_message(self, pod: str) -> str:
        """The message of a pod's last attempt; empty if there is none."""
        kept = self._pods.get(pod)
        return kept[-1].message if kept else ""

    def __len__(self) -> int:
        """Number of pods of which attempts are kept."""
        return len(self._pods)


def _best_nodes(decision: Decision) -> Iterator[ScoredNode]:
    """The chosen node, and the nodes with the best totals besides it."""
    feasible, scores = decision.feasible, decision.scores
    if scores is None:
        yield ScoredNode(name=decision.node or "")
        return
    totals = scores.totals
    best = (
        range(len(totals))
        if len(totals) <= _MAX_NODES
        else np.argpartition(totals, -_MAX_NODES)[-_MAX_NODES:]
    )
    rows = [(feasible.name(int(index)), int(index)) for index in best]
    if all(name != decision.node for name, _ in rows):
        # Of more nodes with the best total than are kept, it is one.
        rows[0] = (decision.node or "", feasible.names.index(decision.node or ""))
    rows.sort(key=lambda row: (row[0] != decision.node, -int(totals[row[1]]), row[0]))
    by_plugin = scores.by_plugin
    for name, index in rows:
        points = {plugin: int(values[index]) for plugin, values in by_plugin.items()}
        yield ScoredNode(name=name, total=int(totals[index]), scores=points)


def _rejection(decision: Decision) -> _Detail:
    """Why a pod is unschedulable, and what preemption does about it."""
    arranged = decision.post_filter
    victims = [
        victim.key
        for effect in (arranged.effects if arranged is not None else ())
        if isinstance(effect, EvictPods)
        for victim in effect.victims
    ]
    return _Detail(
        rejections=tuple(
            RejectedNodes(plugin=plugin, reason=", ".join(reasons), nodes=nodes)
            for plugin, reasons, nodes in decision.diagnosis.rejections()
        ),
        nominated_node="" if arranged is None else arranged.nominated_node or "",
        victims=tuple(victims[:_MAX_VICTIMS]),
    )
