"""A plugin as an extender: kube-scheduler sends requests over HTTP, a moorage plugin answers them.

    POST /filter      pre_filter and filter, with the plugin's message for each node that it rejects
    POST /prioritize  pre_filter, pre_score, score and normalize_score; 0 to 100 becomes 0 to 10
    POST /preempt     nodes that the plugin's filter rejects even without the victims are left out
    POST /bind        bind, if the plugin implements it and the pods are known

The plugin reads the cluster state of the informers (`cache`); without informers, the nodes in the request,
whose pods are unknown.

Every client of an extender can bind pods and read nodes. Requests from web pages are rejected by their
headers (`Guarded`); other hosts need client certificates, or cannot connect because only loopback is served.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from http import HTTPStatus
from typing import Final

import msgspec
import numpy as np

from moorage.api.decode import InputError
from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.cluster.cache import Cache
from moorage.cluster.snapshot import Snapshot
from moorage.framework.extenders.extenders import MAX_PRIORITY, ChosenVictims
from moorage.framework.interface.cycle_state import CycleState
from moorage.framework.interface.diagnosis import Diagnosis
from moorage.framework.interface.extension_points import MAX_SCORE
from moorage.framework.interface.hypothetical_pods import HypotheticalPods
from moorage.framework.interface.nodes import Nodes
from moorage.framework.interface.status import Code, PluginError
from moorage.framework.runtime.framework import Framework
from moorage.http.api_error import ApiError
from moorage.http.guard import Guard
from moorage.http.transport import Request, Response, Transport
from moorage.klog import Logger, kobj
from moorage.scheduler.informers import decoder
from moorage.services import extender_server_messages as wire
from moorage.services import responses
from moorage.services.go_json import GoJsonError

log = Logger(__name__)

_JSON: Final = "application/json"
_UNKNOWN: Final = "node(s) unknown to the extender"
_NO_CACHE: Final = (
    "node names were sent, and this extender does not know the nodes: set nodeCacheCapable to false in the "
    "scheduler's configuration, or start it with --kubeconfig"
)
_read_pod = decoder(Pod)
_read_node = decoder(Node)

FindPod = Callable[[str, str], Pod | None]
"""Finds a pod by namespace and name, bound or not."""


class ExtenderServer:
    """Answers kube-scheduler's extender requests with one plugin.

    framework: a profile with that plugin; besides it, only the bind plugin is called.
    cache: the cluster state, if there are informers. find_pod: finds the pods to bind.
    """

    def __init__(
        self, framework: Framework, plugin: str, cache: Cache | None = None, find_pod: FindPod | None = None
    ) -> None:
        self._framework = framework
        self._plugin = plugin
        self._cache = cache
        self._find_pod = find_pod
        self._handlers = {
            f"/{verb}": handler
            for verb, handler in (
                ("filter", self._filter),
                ("prioritize", self._prioritize),
                ("preempt", self._preempt),
                ("bind", self._bind),
            )
            if verb in self.verbs
        }

    @property
    def verbs(self) -> list[str]:
        """The verbs that the plugin supports."""
        offered = ["filter", "preempt"] if self._has("filter") or self._has("pre_filter") else []
        if self._has("score"):
            offered.append("prioritize")
        if self._has("bind") and self._find_pod is not None:
            offered.append("bind")
        return offered

    def _has(self, point: str) -> bool:
        return any(step.plugin == self._plugin for step in self._framework.at(point))

    async def handle(self, request: Request) -> Response:
        """The response; failures are reported in its body."""
        if request.path in ("/healthz", "/livez", "/readyz"):
            return responses.text("ok")
        handler = self._handlers.get(request.path)
        if handler is None:
            there = ", ".join(self._handlers)
            return responses.error(HTTPStatus.NOT_FOUND, f"404 page not found; there is {there}")
        if request.method != "POST":
            return responses.error(HTTPStatus.METHOD_NOT_ALLOWED, "ask with POST")
        try:
            body = await handler(request.body)
        except (GoJsonError, InputError, msgspec.DecodeError) as error:
            return responses.error(HTTPStatus.BAD_REQUEST, str(error))
        except PluginError as error:
            log.error(error, "Request failed", path=request.path)
            return responses.error(HTTPStatus.INTERNAL_SERVER_ERROR, str(error))
        return Response(HTTPStatus.OK, body, _JSON)

    # Each verb

    async def _filter(self, body: bytes) -> bytes:
        question = wire.read_question(body)
        pod = _pod(question.pod)
        try:
            asked = self._asked(question)
            passed, failed, unresolvable = self._filtered(pod, asked)
        except (PluginError, _CannotAnswer) as error:
            log.error(error, "Request failed", path="/filter", pod=kobj(pod))
            return wire.filter_error(str(error))
        if question.node_names is not None:
            return wire.filter_result(None, passed, failed, unresolvable)
        of_name = dict(zip(asked.names, question.nodes or (), strict=True))
        return wire.filter_result([of_name[name] for name in passed], None, failed, unresolvable)

    async def _prioritize(self, body: bytes) -> bytes:
        question = wire.read_question(body)
        try:
            asked = self._asked(question)
        except _CannotAnswer as error:
            raise GoJsonError(str(error)) from None
        scores = self._scores(_pod(question.pod), asked)
        return wire.priorities([(name, scores.get(name, 0)) for name in asked.names])

    def _scores(self, pod: Pod, asked: _RequestedNodes) -> dict[str, int]:
        """The requested nodes that the plugin knows, with scores; none if pre_filter rejects the pod."""
        cycle, nodes = CycleState(), Nodes(asked.snapshot)
        candidates = self._framework.pre_filter(cycle, pod, nodes, Diagnosis(len(nodes)))
        known = nodes.named(asked.names)
        if candidates is None or not len(known):
            return {}
        totals = self._framework.score(cycle, pod, known).totals.tolist()
        return {name: _scaled(total) for name, total in zip(known.names, totals, strict=True)}

    async def _preempt(self, body: bytes) -> bytes:
        question = wire.read_preemption_question(body)
        if self._cache is None:
            return wire.preemption_result(question.victims)  # Only the names of the nodes are known.
        snapshot = self._cache.snapshot()
        return wire.preemption_result(self._still_useful(_pod(question.pod), question.victims, snapshot))

    def _still_useful(
        self, pod: Pod, victims: Mapping[str, ChosenVictims], snapshot: Snapshot
    ) -> dict[str, ChosenVictims]:
        """The nodes that accept the pod without the victims; unknown nodes are kept as they are."""
        cycle, everywhere = CycleState(), Nodes(snapshot)
        diagnosis = Diagnosis(len(snapshot))
        candidates = self._framework.pre_filter(cycle, pod, everywhere, diagnosis)
        if diagnosis.pre_filter is not None and diagnosis.pre_filter.code is not Code.UNRESOLVABLE:
            candidates = everywhere  # Evicting pods may change that.
        left = {name for name in victims if name not in snapshot.row_of}
        if candidates is not None:
            candidate_nodes = everywhere.named(victims.keys() & set(candidates.names))
            left.update(
                self._framework.filter(cycle, pod, _without(candidate_nodes, victims), diagnosis).names
            )
        return {name: each for name, each in victims.items() if name in left}

    async def _bind(self, body: bytes) -> bytes:
        question = wire.read_binding_question(body)
        assert self._find_pod is not None
        pod = self._find_pod(question.namespace, question.name)
        if pod is None or pod.uid != question.uid:
            return wire.binding_result(f'pod "{question.namespace}/{question.name}" is not known')
        try:
            status = await self._framework.bind(CycleState(), pod, question.node_name)
        except PluginError as error:
            log.error(error, "Request failed", path="/bind", pod=kobj(pod))
            return wire.binding_result(str(error))
        return wire.binding_result("" if status.code is Code.SUCCESS else status.text)

    # Shared by all verbs

    def _asked(self, question: wire.Question) -> _RequestedNodes:
        """The requested nodes, and the cluster state as far as it is known."""
        if question.node_names is not None:
            if self._cache is None:
                raise _CannotAnswer(_NO_CACHE)
            return _RequestedNodes(self._cache.snapshot(), question.node_names)
        nodes = [_node(raw) for raw in question.nodes or ()]
        cache = self._cache or Cache(nodes)
        return _RequestedNodes(cache.snapshot(), [node.name for node in nodes])

    def _filtered(self, pod: Pod, asked: _RequestedNodes) -> tuple[list[str], dict[str, str], dict[str, str]]:
        """The names of the requested nodes that pass, and the reasons of the others."""
        snapshot, cycle = asked.snapshot, CycleState()
        diagnosis = Diagnosis(len(snapshot))
        candidates = self._framework.pre_filter(cycle, pod, Nodes(snapshot), diagnosis)
        passed: set[str] = set()
        if candidates is not None:
            in_question = candidates.named(set(asked.names) & set(candidates.names))
            passed = set(self._framework.filter(cycle, pod, in_question, diagnosis).names)
        failed: dict[str, str] = {}
        unresolvable: dict[str, str] = {}
        for name in asked.names:
            row = snapshot.row_of.get(name)
            if row is None:
                failed[name] = _UNKNOWN
            elif name not in passed:
                refused = unresolvable if diagnosis.code_of(row) is Code.UNRESOLVABLE else failed
                refused[name] = _error_text(diagnosis, row)
        return [name for name in asked.names if name in passed], failed, unresolvable


class Guarded:
    """A transport that only accepts requests addressed to one of its own names or addresses."""

    def __init__(self, transport: Transport, names: Iterable[str]) -> None:
        self._transport = transport
        self._guard = Guard(names, is_for_programs=True)

    async def handle(self, request: Request) -> Response:
        """The response; 403 for requests from browsers, and for host names that others pointed here."""
        try:
            self._guard.check(request.headers)
        except ApiError as error:
            return responses.error(error.code, str(error))
        return await self._transport.handle(request)


class _CannotAnswer(Exception):  # noqa: N818 -- it says what happened
    """The request is about objects that are not known here."""


class _RequestedNodes:
    """The requested nodes, and the snapshot they are in."""

    def __init__(self, snapshot: Snapshot, names: Sequence[str]) -> None:
        self.snapshot = snapshot
        self.names = names


def _pod(raw: bytes) -> Pod:
    pod = _read_pod(raw)
    assert isinstance(pod, Pod)
    return pod


def _node(raw: bytes) -> Node:
    node = _read_node(raw)
    assert isinstance(node, Node)
    return node


def _scaled(score: int) -> int:
    """A score from 0 to 100 scaled to 0 to 10, rounded."""
    step = MAX_SCORE // MAX_PRIORITY
    return (score + step // 2) // step


def _error_text(diagnosis: Diagnosis, row: int) -> str:
    refusal = diagnosis.of(row)
    if refusal is not None:
        return ", ".join(refusal.reason.texts)
    status = diagnosis.pre_filter or diagnosis.left_out
    return "" if status is None else status.message


def _without(nodes: Nodes, victims: Mapping[str, ChosenVictims]) -> Nodes:
    """Nodes as they would be without the victims; some of these may be deleted already."""
    snapshot = nodes.snapshot
    places: list[int] = []
    uids: list[str] = []
    for place, row in enumerate(nodes.row_numbers().tolist()):
        here = snapshot.pods_of(row)
        leaving = [uid for uid in victims[snapshot.names[row]].uids if uid in here]
        places += [place] * len(leaving)
        uids += leaving
    changes = HypotheticalPods(
        snapshot, len(nodes), np.array(places, np.intp), np.array(snapshot.pods.rows_of(uids), np.intp)
    )
    return Nodes(snapshot, nodes.row_numbers(), changes)
