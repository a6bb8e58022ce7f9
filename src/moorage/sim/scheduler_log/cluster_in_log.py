"""The nodes and pods of a cluster while a log is followed, and how they change.

What is in the cluster but not described by any object makes it uncertain: nothing that is decided then can be
compared.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from msgspec.structs import replace

from moorage.api.base import Object
from moorage.api.node import Node
from moorage.api.pod import Pod, PodStatus
from moorage.sim.scheduler_log.happenings import Event, LoggedAttempt, What
from moorage.sim.scheduler_log.logged_nodes import LoggedNodes
from moorage.sim.scheduler_log.pod_lives import PodHappening, PodLife

_UNKNOWN_TIME: Final = datetime.fromtimestamp(0, UTC)
"""A deletion timestamp where none is known: only whether there is one is read."""
_FROM_BEFORE: Final = (What.BOUND_POD_ADDED, What.BOUND_POD_UPDATED, What.BOUND_POD_DELETED)
"""First events of pods that were on a node before the log."""


@dataclass(slots=True)
class _PodState:
    """What a log has said about a pod so far."""

    node: str = ""
    nominated: str = ""
    is_updated: bool = False
    """Whether it was updated since it is on its node, as its kubelet does."""
    is_terminating: bool = False


class ClusterInLog:
    """Nodes, and pods that are on one or nominated to one."""

    def __init__(self, nodes: LoggedNodes) -> None:
        self.nodes = nodes
        self.ever_unknown: set[str] = set()
        self._objects: dict[tuple[type[Object], str], Object] = {}
        self._states: dict[PodLife, _PodState] = {}
        self._unknown: set[str] = set()
        """Nodes that are in the cluster and pods that are on a node, without an object or a node."""
        self._undecided: set[PodLife] = set()
        """Pods for which a node may have been chosen, in an attempt that does not say which."""
        self._maybe_nominated: set[PodLife] = set()
        """Pods that were pending before the log, and may have preempted others then."""
        self._changes: list[tuple[bool, Object]] = []

    @property
    def is_uncertain(self) -> bool:
        """Whether something is in the cluster that is not known."""
        return bool(self._unknown or self._undecided or self.nodes.uncertain)

    @property
    def has_unknown_nominations(self) -> bool:
        """Whether pods may be nominated without it being known."""
        return bool(self._maybe_nominated)

    @property
    def node_count(self) -> int:
        """Number of nodes."""
        return sum(kind is Node for kind, _ in self._objects)

    def present(self) -> list[Object]:
        """The nodes, and the pods that count."""
        return list(self._objects.values())

    def take_changes(self) -> list[tuple[bool, Object]]:
        """The changes since the last call: whether an object was deleted, and the object."""
        changes, self._changes = self._changes, []
        return changes

    def begin(self, unmentioned: Iterable[Pod], happenings: Iterable[Event | PodHappening]) -> None:
        """Put what was in the cluster before the log.

        unmentioned: pods that are not in the log.
        """
        for name, node in self.nodes.before().items():
            self._put_or_note(name, node)
        for pod in unmentioned:
            if not pod.finished and (pod.spec.node_name or pod.status.nominated_node_name):
                self._put(pod)
        first: dict[PodLife, What | None] = {}
        for each in happenings:
            if isinstance(each, PodHappening) and not each.life.is_added:
                what = each.happening.what if isinstance(each.happening, Event) else None
                if what is not What.POD_EVICTED:  # It may have been deleted before that is logged.
                    first.setdefault(each.life, what)
        lowest = min((life.pod.priority for life in first if life.pod is not None), default=0)
        for life, what in first.items():
            if what in _FROM_BEFORE:
                self._state(life).is_updated = True
                self._show_on_node(life)
            elif life.pod is None or _can_preempt(life.pod, lowest):
                self._maybe_nominated.add(life)

    def change_nodes(self, event: Event) -> None:
        """A node was added, updated or deleted, or the scheduler has started: it lists everything again."""
        if event.what is What.SCHEDULER_STARTED:
            for obj in self.present():
                self._remove(obj)
            self._unknown.clear()
            self._undecided.clear()
            return
        self.nodes.follow(event)
        if event.what is not What.NODE_DELETED:
            self._put_or_note(event.subject, self.nodes.at(event.subject))
        elif (node := self._objects.get((Node, event.subject))) is not None:
            self._remove(node)
        self._unknown -= {event.subject} if event.what is What.NODE_DELETED else set()

    def change_pod(self, event: Event, life: PodLife) -> None:
        """Something happened to a pod."""
        state = self._state(life)
        if event.what is What.NOMINATED:
            self._maybe_nominated.discard(life)
        match event.what:
            case What.PENDING_POD_ADDED:
                state.node = ""
            case What.BOUND_POD_ADDED:
                state.is_updated |= not state.node
                self._show_on_node(life)
            case What.BOUND_POD_UPDATED if not state.is_updated:
                state.is_updated = True
                self._show_on_node(life)
            case What.POD_EVICTED if (Pod, life.key) in self._objects:
                state.is_terminating = True
                self._show_on_node(life)
            case What.BOUND_POD_DELETED | What.PENDING_POD_DELETED:
                self._forget(life)
            case What.NOMINATED if not state.node and state.nominated != event.node:
                state.nominated = event.node
                self._nominate(life)
            case What.NODE_CLAIMED:
                self._clear_nominations(event.node, life)

    def attempt(self, attempt: LoggedAttempt, life: PodLife, *, is_step: bool) -> None:
        """Apply an attempt. What follows from one that is a step is no further change."""
        state = self._state(life)
        before = len(self._changes)
        self._undecided.discard(life)
        if attempt.node is not None or attempt.nominated is not None:
            self._maybe_nominated.discard(life)
        if attempt.node is not None:
            state.node, state.nominated = attempt.node, ""
            self._show_on_node(life)
        elif attempt.nominated is not None:
            state.nominated = attempt.nominated
            self._nominate(life)
        elif attempt.is_failed or not attempt.has_ended:
            self._undecided.add(life)
        if is_step:
            del self._changes[before:]

    def end_attempt(self, attempt: LoggedAttempt, life: PodLife) -> None:
        """An attempt has ended; if it failed, the pod is not on the node that was chosen."""
        self._undecided.discard(life)
        is_bound = attempt.message is None and attempt.error is None
        if attempt.node is not None and not is_bound:
            self._forget(life)

    def pending(self, life: PodLife) -> Pod:
        """A pod as it is before an attempt."""
        assert life.pod is not None
        status = PodStatus(nominated_node_name=self._state(life).nominated)
        metadata = replace(life.pod.metadata, deletion_timestamp=None)
        return replace(life.pod, metadata=metadata, spec=replace(life.pod.spec, node_name=""), status=status)

    def _state(self, life: PodLife) -> _PodState:
        return self._states.setdefault(life, _PodState())

    def _on_node(self, life: PodLife, node: str) -> Pod:
        """A pod as it is on a node; its kubelet's status came with the first update."""
        pod, state = self.pending(life), self._state(life)
        assert life.pod is not None
        status = life.pod.status if state.is_updated else PodStatus()
        phase = "Running" if life.pod.finished else status.phase
        status = replace(status, nominated_node_name="", phase=phase)
        if state.is_terminating:
            time = life.pod.metadata.deletion_timestamp or _UNKNOWN_TIME
            pod = replace(pod, metadata=replace(pod.metadata, deletion_timestamp=time))
        return replace(pod, spec=replace(pod.spec, node_name=node), status=status)

    def _show_on_node(self, life: PodLife) -> None:
        """A pod is on the node where the log has bound it, or else where its object says."""
        state = self._state(life)
        if life.pod is not None and not state.node:
            state.node = life.pod.spec.node_name
        if life.pod is not None and state.node:
            self._unknown.discard(life.key)
            self._undecided.discard(life)
            self._put(self._on_node(life, state.node))
        else:
            self._note_unknown(life.key)

    def _nominate(self, life: PodLife) -> None:
        if life.pod is not None:
            self._put(self.pending(life))
        elif self._state(life).nominated:
            self._note_unknown(life.key)
        else:
            self._unknown.discard(life.key)

    def _clear_nominations(self, node: str, preemptor: PodLife) -> None:
        """Pods of lower priority are not nominated any more to a node on which room is made."""
        if preemptor.pod is None:
            return
        for life, state in self._states.items():
            is_lower = life.pod is not None and life.pod.priority < preemptor.pod.priority
            if is_lower and state.nominated == node:
                state.nominated = ""
                self._nominate(life)

    def _forget(self, life: PodLife) -> None:
        """A pod is not on a node any more, nor nominated to one."""
        state = self._state(life)
        state.node = state.nominated = ""
        self._unknown.discard(life.key)
        self._undecided.discard(life)
        self._maybe_nominated.discard(life)
        if (pod := self._objects.get((Pod, life.key))) is not None:
            self._remove(pod)

    def _put_or_note(self, name: str, node: Node | None) -> None:
        if node is None:
            self._note_unknown(name)
        else:
            self._put(node)

    def _note_unknown(self, key: str) -> None:
        self._unknown.add(key)
        self.ever_unknown.add(key)

    def _put(self, obj: Object) -> None:
        kind = Pod if isinstance(obj, Pod) else Node
        if self._objects.get((kind, obj.key)) != obj:
            self._objects[kind, obj.key] = obj
            self._changes.append((False, obj))

    def _remove(self, obj: Object) -> None:
        del self._objects[Pod if isinstance(obj, Pod) else Node, obj.key]
        self._changes.append((True, obj))


def _can_preempt(pod: Pod, lowest: int) -> bool:
    """Whether a pod may preempt pods of the lowest priority."""
    return pod.priority > lowest and pod.spec.preemption_policy != "Never"
