"""A cluster on paper: the production engine places pods in it, and everything can be taken back.

A pod that is placed is assumed and reserved for, as the scheduler does before it binds; a pod that is evicted
is removed, and its successor is placed like a new pod. No pod is preempted: the scheduler's wish to do so is
reported.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Final, NamedTuple

from msgspec.structs import replace

from moorage.api.base import Object
from moorage.api.decode import InputError
from moorage.api.labels import REGION, ZONE
from moorage.api.node import Node, Taint
from moorage.api.pod import Pod, PodStatus
from moorage.api.resource_requests import countable
from moorage.engine.decision import Decision, refusal_at_a_node
from moorage.explain.loading import fill
from moorage.framework.interface.cycle_state import CycleState
from moorage.framework.interface.nodes import Nodes
from moorage.framework.interface.status import Code, PluginError, Status
from moorage.planning.results import Move, Usage, WaitingPod, by_priority
from moorage.sim.cluster import SimulatedCluster
from moorage.simulation.settings import Settings

CORDON: Final = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")
"""What the node lifecycle controller adds to a node that is cordoned."""


class Placement(NamedTuple):
    """What the engine answered about a pod."""

    pod: Pod
    node: str = ""
    """Where it was placed; empty: nowhere."""
    message: str = ""
    """Why it was not placed."""
    decision: Decision | None = None
    """None if the pod was not tried."""

    def move(self, source: str = "") -> Move:
        """For a result: a pod that got a node."""
        return Move(namespace=self.pod.namespace, name=self.pod.name, source=source, node=self.node)

    def waiting(self, source: str = "") -> WaitingPod:
        """For a result: a pod that got none."""
        made = None if self.decision is None else self.decision.post_filter
        return WaitingPod(
            namespace=self.pod.namespace,
            name=self.pod.name,
            source=source,
            message=self.message,
            preempts_on=(made.nominated_node or "") if made is not None else "",
        )


class Trial:
    """The objects of a cluster, with an engine that decides about pods; changes can be undone in steps."""

    def __init__(self, objects: Iterable[Object], settings: Settings) -> None:
        objects = list(objects)
        self.cluster = SimulatedCluster(
            (), settings.config, settings.registry, settings.seed, version=settings.version
        )
        fill(self.cluster, objects)
        self.pending = pending_pods(objects)
        """The pods without a node that `settle` has not placed."""
        self._undo: list[Callable[[], None]] = []

    # What is there

    def nodes(self) -> list[Node]:
        """All nodes, by name."""
        return sorted(self.cluster.cache.nodes(), key=lambda node: node.name)

    def pods_on(self, node: Node) -> list[Pod]:
        """The pods on a node, by namespace and name."""
        snapshot = self.cluster.cache.snapshot()
        infos = Nodes(snapshot).pods_on(snapshot.row_of[node.name])
        return sorted((info.pod for info in infos), key=lambda pod: pod.key)

    def usage(self) -> list[Usage]:
        """The resources that nodes have, and how much of them is requested."""
        nodes = Nodes(self.cluster.cache.snapshot())
        names = {name for node in self.cluster.cache.nodes() for name in node.status.allocatable}
        return [
            Usage(
                resource=name,
                requested=int(nodes.requested(name).sum()),
                allocatable=int(nodes.allocatable(name).sum()),
            )
            for name in sorted(names)
            if countable(name)
        ]

    # What is changed

    def settle(self) -> int:
        """Place the pending pods that fit, as a scheduler at work would have; returns how many did not."""
        self.pending = [pod for pod in by_priority(self.pending) if not self.place(pod).node]
        return len(self.pending)

    def place(self, pod: Pod) -> Placement:
        """Decide about a pending pod, and put it on its node if it gets one."""
        cycle = CycleState()
        try:
            if why := self.cluster.not_tried(pod):
                return Placement(pod, message=why)
            decision = self.cluster.decide(pod, cycle)
        except InputError as error:
            return Placement(pod, message=str(error))
        if decision.post_filter is not None:
            decision.post_filter.done()  # Nothing is evicted: the pod does not wait for it.
        if decision.node is None:
            return Placement(pod, message=decision.message, decision=decision)
        self.cluster.cache.assume_pod(pod, decision.node)
        status = self._reserve(cycle, pod, decision.node)
        if status.code is not Code.SUCCESS:
            self._take_back(cycle, pod, decision.node)
            return Placement(pod, message=refusal_at_a_node(status), decision=decision)
        self._undo.append(partial(self._take_back, cycle, pod, decision.node))
        return Placement(pod, decision.node, decision=decision)

    def evict(self, pod: Pod) -> Pod:
        """Remove a pod from its node; returns what its controller creates in its place."""
        cache = self.cluster.cache
        node = cache.node(pod.spec.node_name)
        was_assumed = cache.is_assumed(pod)
        cache.remove_pod(pod)
        again = successor(pod, node)
        self._undo.append(partial(self._put_back, pod, was_assumed=was_assumed))
        return again

    def cordon(self, node: Node) -> None:
        """Let no more pods onto a node."""
        spec = replace(node.spec, unschedulable=True, taints=(*node.spec.taints, CORDON))
        self.put_node(replace(node, spec=spec))

    def put_node(self, node: Node) -> None:
        """Add or replace a node."""
        cache, before = self.cluster.cache, self.cluster.cache.node(node.name)
        cache.put_node(node)
        again = partial(cache.remove_node, node.name) if before is None else partial(cache.put_node, before)
        self._undo.append(again)

    def remove_node(self, node: Node) -> None:
        """Remove a node; its pods are to be evicted before or after that."""
        self.cluster.cache.remove_node(node.name)
        self._undo.append(partial(self.cluster.cache.put_node, node))

    # What is undone

    def mark(self) -> int:
        """The present state, for `undo_to`."""
        return len(self._undo)

    def undo_to(self, mark: int) -> None:
        """Undo everything since a mark, the last first."""
        while len(self._undo) > mark:
            self._undo.pop()()

    def _reserve(self, cycle: CycleState, pod: Pod, node: str) -> Status:
        try:
            return self.cluster.framework_of(pod).reserve(cycle, pod, node)
        except PluginError as error:
            return Status(Code.ERROR, (str(error),), error.plugin)

    def _take_back(self, cycle: CycleState, pod: Pod, node: str) -> None:
        self.cluster.framework_of(pod).unreserve(cycle, pod, node)
        self.cluster.cache.forget_pod(pod)

    def _put_back(self, pod: Pod, *, was_assumed: bool) -> None:
        if was_assumed:
            pending = replace(pod, spec=replace(pod.spec, node_name=""))
            self.cluster.cache.assume_pod(pending, pod.spec.node_name)
        else:
            self.cluster.cache.put_pod(pod)


def pending_pods(objects: Iterable[Object]) -> list[Pod]:
    """The pods among some objects that wait for a node; those that a gate keeps from the queue do not."""
    pods = (each for each in objects if isinstance(each, Pod) and not each.spec.node_name)
    return [pod for pod in pods if not (pod.finished or pod.terminating or pod.spec.scheduling_gates)]


def successor(pod: Pod, node: Node | None = None) -> Pod:
    """What a controller creates in place of a pod: the same, without what binding and running added to it."""
    where = {} if node is None else {key: node.labels.get(key) for key in (ZONE, REGION)}
    labels = {key: value for key, value in pod.labels.items() if where.get(key) != value}
    return replace(
        pod,
        metadata=replace(pod.metadata, labels=labels, deletion_timestamp=None),
        spec=replace(pod.spec, node_name=""),
        status=PodStatus(),
    )


def numbered(pod: Pod, number: int) -> Pod:
    """A copy of a pod, as new, with a name of its own."""
    name = f"{pod.name}-{number}"
    again = successor(pod)
    return replace(again, metadata=replace(again.metadata, name=name, uid=f"{pod.namespace}/{name}"))


def existing(names: Sequence[str], trial: Trial) -> list[Node]:
    """Nodes by name, in this order; InputError if one is not there."""
    nodes = []
    for name in names:
        node = trial.cluster.cache.node(name)
        if node is None:
            raise InputError("", f"there is no node {name}")
        nodes.append(node)
    return nodes
