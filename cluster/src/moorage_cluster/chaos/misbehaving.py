"""A plugin and an extender that fail in the calls that a script names, and answer well in all others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any, Final

import msgspec
import numpy as np

from moorage.api.pod import Pod
from moorage.client.waiting import sleep
from moorage.clock import Clock
from moorage.framework.interface.cycle_state import CycleState
from moorage.framework.interface.extension_points import Scores
from moorage.framework.interface.filter_result import ALL, FilterResult
from moorage.framework.interface.nodes import Nodes
from moorage.framework.interface.status import Status, unschedulable, wait
from moorage.http.client_transport import Endpoint
from moorage.http.errors import ConnectionFailed
from moorage.http.transport import Request, Response
from moorage.queue.cluster_events import Action, Interest, Resource, on
from moorage_cluster.chaos.script import ExtenderFault, Fault, PluginFault

POINTS: Final = ("filter", "score", "reserve", "permit", "pre_bind", "post_bind")
"""The extension points at which the plugin may fail."""
EXTENDER_URL: Final = "http://127.0.0.1:1/chaos"
EXTENDER_SECONDS: Final = 5.0
"""Time limit of calls of the extender, in seconds."""
_LIE: Final = 1_000_000
"""A score that is out of bounds."""


class InjectedError(Exception):
    """What the plugin raises."""


class Misbehaving:
    """A plugin that places no demands, but for the calls that a script names."""

    name = "Misbehaving"

    def __init__(
        self, clock: Clock, faults: Iterable[Fault], injected: Counter[str], is_calm: Callable[[], bool]
    ) -> None:
        self._clock = clock
        self._faults = {(each.point, each.number): each for each in faults if isinstance(each, PluginFault)}
        self._injected = injected
        self._is_calm = is_calm
        self._calls: Counter[str] = Counter()

    def events(self) -> tuple[Interest, ...]:
        """A refusal may end at any time: pods are tried again when a node changes."""
        return (on(Resource.NODE, Action.ADD | Action.UPDATE_NODE_LABEL),)

    def filter(self, cycle: CycleState, pod: Pod, nodes: Nodes) -> FilterResult:
        """Every node is allowed."""
        fault = self._fault("filter")
        if fault is not None and fault.fault == "lie":
            return "yes"  # type: ignore[return-value]  # It is a lie.
        return ALL

    def score(self, cycle: CycleState, pod: Pod, nodes: Nodes) -> Scores:
        """All nodes are equal."""
        fault = self._fault("score")
        return np.full(len(nodes), 0 if fault is None else _LIE, dtype=np.int64)

    def reserve(self, cycle: CycleState, pod: Pod, node_name: str) -> Status | None:
        """Nothing is reserved."""
        return self._refusal("reserve")

    def unreserve(self, cycle: CycleState, pod: Pod, node_name: str) -> None:
        """Nothing is given back."""

    def permit(self, cycle: CycleState, pod: Pod, node_name: str) -> Status | None:
        """Every pod is permitted; one may have to wait until its time is up."""
        fault = self._fault("permit")
        if fault is None:
            return None
        return wait(fault.seconds) if fault.fault == "hang" else unschedulable("injected refusal")

    async def pre_bind(self, cycle: CycleState, pod: Pod, node_name: str) -> Status | None:
        """Nothing has to be done before a binding."""
        fault = self._fault("pre_bind")
        if fault is None:
            return None
        if fault.fault == "hang":
            await sleep(self._clock, fault.seconds)
            return None
        return unschedulable("injected refusal")

    async def post_bind(self, cycle: CycleState, pod: Pod, node_name: str) -> None:
        """Nothing has to be done after a binding."""
        fault = self._fault("post_bind")
        if fault is not None:
            await sleep(self._clock, fault.seconds)

    def _refusal(self, point: str) -> Status | None:
        return None if self._fault(point) is None else unschedulable("injected refusal")

    def _fault(self, point: str) -> PluginFault | None:
        """The fault of this call; raises it, if it is to raise."""
        number = self._calls[point]
        self._calls[point] += 1
        fault = None if self._is_calm() else self._faults.get((point, number))
        if fault is not None:
            self._injected[f"plugin at {point}: {fault.fault}"] += 1
            if fault.fault == "raise":
                raise InjectedError(f"injected at {point}")
        return fault


class FaultyExtender:
    """An extender that allows every node, but for the calls that a script names."""

    def __init__(
        self, clock: Clock, faults: Iterable[Fault], injected: Counter[str], is_calm: Callable[[], bool]
    ) -> None:
        self._clock = clock
        self._faults = {each.number: each.fault for each in faults if isinstance(each, ExtenderFault)}
        self._injected = injected
        self._is_calm = is_calm
        self._calls = 0

    def connect(self, endpoint: Endpoint) -> FaultyExtender:
        """The extender is its own connection."""
        return self

    async def close(self) -> None:
        """There is no connection."""

    async def handle(self, request: Request) -> Response:
        """The answer to a call."""
        fault = None if self._is_calm() else self._faults.get(self._calls)
        self._calls += 1
        if fault is not None:
            self._injected[f"extender: {fault}"] += 1
        match fault:
            case "unreachable":
                raise ConnectionFailed("injected: connection refused")
            case "timeout":
                await sleep(self._clock, 2 * EXTENDER_SECONDS)
            case "500":
                return Response(500, b"injected 500", content_type="text/plain")
            case "garbage":
                return Response(200, b"<html>injected</html>", content_type="text/html")
            case "error":
                return Response(200, msgspec.json.encode({"Error": "injected error"}))
        return Response(200, msgspec.json.encode(_answer(msgspec.json.decode(request.body))))


def _answer(question: dict[str, Any]) -> dict[str, Any]:
    return {"NodeNames": question.get("NodeNames") or [], "FailedNodes": {}, "Error": ""}
