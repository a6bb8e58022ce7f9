"""Recordings: what each step has changed, and the numbers of each attempt. Times are numbers of steps."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Any
from urllib.parse import unquote

from msgspec.structs import replace

from moorage.api.base import Object
from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.client.scheduler_api import Attempt, AttemptList, ScoredNode
from moorage.http.transport import Request, Response
from moorage.services.responses import document as answer
from moorage.sim.group_recording import GroupStep
from moorage.sim.recording import Expectation, PodStep, Recording, parse_recording
from moorage.ui.application import API, problem
from moorage.ui.scheduler_link import UNSCHEDULABLE, queue_feature
from moorage.ui.sources.file_source import FileSource
from moorage.ui.sources.source import Feature
from moorage.ui.sources.states import node_state, pod_state
from moorage.ui.timeline import Timeline


def recording_source(document: Mapping[str, Any], where: str) -> FileSource:
    """What `moorage run --record` or `moorage record` has written; InputError if it is not that."""
    recording = parse_recording(document, where)
    source = FileSource("recording", where)
    attempts = RecordedRun(recording, source.timeline).attempts
    source.add(_attempts_feature(attempts))
    source.add(queue_feature(source.timeline, None))
    return source


def _attempts_feature(attempts: Mapping[str, list[Attempt]]) -> Feature:
    async def of_pod(request: Request) -> Response:
        key = unquote(request.path).removeprefix(f"{API}attempts/")
        if not all(key.partition("/")):
            return problem(HTTPStatus.BAD_REQUEST, "attempts/NAMESPACE/POD is expected")
        return answer(AttemptList(items=tuple(attempts.get(key, ()))))

    return Feature("attempts", {"attempts/": of_pod})


class RecordedRun:
    """Applies a recording's decisions to a timeline, step by step; nothing is decided again."""

    def __init__(self, recording: Recording, timeline: Timeline) -> None:
        self._recording = recording
        self._timeline = timeline
        self.attempts: dict[str, list[Attempt]] = {}
        """By pod, oldest first."""
        self._put(recording.objects)
        timeline.close_batch(0.0)
        for number, step in enumerate(recording.steps, 1):
            if isinstance(step, PodStep):
                self._attempt(step, number)
            else:
                self._put(step.put)
                if isinstance(step, GroupStep):
                    self._group(step)
                self._delete(step.delete)
            timeline.close_batch(float(number))

    def _put(self, objects: Iterable[Object]) -> None:
        for each in objects:
            if isinstance(each, Node):
                self._timeline.put_node(each.name, node_state(each))
            elif isinstance(each, Pod):
                self._put_pod(each)

    def _put_pod(self, pod: Pod) -> None:
        state, before = pod_state(pod), self._timeline.pods.get(pod.key)
        if pod.finished:
            self._timeline.put_pod(pod.key, None)
            return
        if not state.node and before is not None and before.uid == state.uid:
            # The object may be older than the binding.
            state = replace(state, node=before.node)
        self._timeline.put_pod(pod.key, state)

    def _delete(self, objects: Iterable[Object]) -> None:
        for each in objects:
            if isinstance(each, Node):
                self._timeline.put_node(each.name, None)
            elif isinstance(each, Pod):
                self._timeline.put_pod(each.key, None)

    # -- attempts of pods

    def _attempt(self, step: PodStep, number: int) -> None:
        pod, expect = step.pod, step.expect
        for attempt in self._attempts_of(step, number):
            known = self.attempts.setdefault(pod.key, [])
            known.append(replace(attempt, attempt=len(known) + 1))
        if not self._recording.every_attempt:
            for key in expect.victims or ():
                self._timeline.put_pod(key, None)
        self._decided(pod, expect.node, expect.message, expect.nominated)

    def _decided(self, pod: Pod, node: str | None, message: str | None, nominated: str | None) -> None:
        state = pod_state(pod)
        if node:
            state = replace(state, node=node, reason="", message="", nominated_node="")
        elif message:
            state = replace(state, reason=UNSCHEDULABLE, message=message, nominated_node=nominated or "")
        self._timeline.put_pod(pod.key, state)

    def _attempts_of(self, step: PodStep, number: int) -> Iterator[Attempt]:
        """One attempt; where only pods are steps, also the one that failed before the binding."""
        expect = step.expect
        failed_before = bool(expect.message or expect.victims) and not self._recording.every_attempt
        if failed_before or expect.node is None:
            yield self._one_attempt(step, number, replace(expect, node=None))
        if expect.node is not None:
            bound = replace(expect, message=None, victims=None, nominated=None)
            yield self._one_attempt(step, number, bound)

    def _one_attempt(self, step: PodStep, number: int, expect: Expectation) -> Attempt:
        nodes = _scored(expect) if expect.node is not None else ()
        return Attempt(
            id=number * 2 + (expect.node is not None),
            time=datetime.fromtimestamp(number, UTC),
            pod=step.pod.key,
            uid=step.pod.uid,
            profile=step.pod.spec.scheduler_name,
            attempt=0,
            result=UNSCHEDULABLE if expect.node is None else "Scheduled",
            node=expect.node or "",
            message=expect.message or "",
            # Of a sample it is not known how many nodes were evaluated until enough were found.
            evaluated_nodes=0 if expect.sampled else len(self._timeline.nodes),
            feasible_nodes=len(nodes) or int(expect.node is not None),
            nodes=nodes,
            nominated_node=expect.nominated or "",
            victims=expect.victims or (),
        )

    # -- groups

    def _group(self, step: GroupStep) -> None:
        for pod in step.pods:
            self._put_pod(pod)
        for key in () if self._recording.every_attempt else step.expect.victims:
            self._timeline.put_pod(key, None)
        for cycle in step.expect.cycles:
            for key, message in cycle.messages.items():
                self._member(key, None, message, cycle.nominated.get(key))
            for key, node in (cycle.nodes or {}).items():
                self._member(key, node, None, None)
        for key, after in step.expect.pods.items():
            self._member(key, after.node, after.message, after.nominated)

    def _member(self, key: str, node: str | None, message: str | None, nominated: str | None) -> None:
        before = self._timeline.pods.get(key)
        if before is None or before.node:
            return
        state = replace(
            before,
            node=node or "",
            reason=UNSCHEDULABLE if message and not node else "",
            message="" if node else message or "",
            nominated_node="" if node else nominated or "",
        )
        self._timeline.put_pod(key, state)


def _scored(expect: Expectation) -> tuple[ScoredNode, ...]:
    """The feasible nodes, the best first."""
    scored = (
        ScoredNode(name=name, total=sum(by.values()), scores=by) for name, by in (expect.scores or {}).items()
    )
    return tuple(sorted(scored, key=lambda each: (-each.total, each.name != expect.node, each.name)))
