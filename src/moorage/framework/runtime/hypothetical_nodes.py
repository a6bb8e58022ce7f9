"""Nodes that do not exist yet: which pods would fit on them, by all filters of a profile.

They are rows of a cache of their own, which is filtered by plugins of their own: nothing of the scheduler's
is changed, and none of its results is computed again. Other objects, such as claims, are the scheduler's.
Answers that depend on pods on other nodes need these nodes, too: `follow` copies them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Hashable, Iterable, Iterator
from contextlib import contextmanager
from typing import Final, Protocol

from moorage.api.limits import PodLimitError
from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.cluster.cache import Cache
from moorage.cluster.pod_table import PodInfo
from moorage.cluster.row_reader import RowReader
from moorage.cluster.snapshot import Snapshot
from moorage.framework.cache.equivalence_classes import EquivalenceClass, EquivalenceClasses
from moorage.framework.interface.cycle_state import CycleState
from moorage.framework.interface.diagnosis import Diagnosis
from moorage.framework.interface.nodes import Nodes
from moorage.framework.interface.status import PluginError

_SLICE: Final = 200
"""Number of nodes that are copied at once."""


class ProfileFilters(Protocol):
    """The filters of a profile."""

    def pre_filter(self, cycle: CycleState, pod: Pod, nodes: Nodes, diagnosis: Diagnosis) -> Nodes | None:
        """The nodes left to filter, or None if a pre-filter rejected them all."""

    def filter(self, cycle: CycleState, pod: Pod, nodes: Nodes, diagnosis: Diagnosis) -> Nodes:
        """The nodes that every filter lets pass."""


class HypotheticalNodes:
    """Nodes that are taken to exist, with pods that are taken to be on them.

    make: the filters of a profile over a cache. live: the scheduler's latest snapshot.
    """

    def __init__(self, make: Callable[[Cache], ProfileFilters], live: Callable[[], Snapshot]) -> None:
        self._cache = Cache()
        self._filters = make(self._cache)
        self._live = live
        self._classes = EquivalenceClasses()
        self._names: dict[str, None] = {}
        self._copied: dict[str, list[PodInfo]] = {}
        self._reader = RowReader()

    @property
    def names(self) -> Collection[str]:
        """The names of the hypothetical nodes, in the order in which they were added."""
        return self._names.keys()

    def node(self, name: str) -> Node:
        """A hypothetical or copied node, which must be there."""
        node = self._cache.node(name)
        assert node is not None, name
        return node

    def add(self, node: Node) -> None:
        """Take a node to exist; its name must be that of no other node."""
        self._names[node.name] = None
        self._cache.put_node(node)

    def remove(self, name: str) -> None:
        """Remove a hypothetical node, and the pods on it."""
        del self._names[name]
        for pod in self.pods_on(name):
            self._cache.remove_pod(pod)
        self._cache.remove_node(name)

    def pods_on(self, name: str) -> list[Pod]:
        """The pods that are taken to be on a node."""
        snapshot = self._snapshot()
        return [info.pod for info in snapshot.pods_of(snapshot.row_of[name]).infos]

    def template_of(self, pod: Pod) -> Hashable:
        """Equal for pods that all filters treat alike, but for volume claims."""
        like = self._class_of(pod)
        return pod.uid if like is None else like.key

    def _class_of(self, pod: Pod) -> EquivalenceClass | None:
        try:
            return self._classes.of(pod, len(self._cache.latest_snapshot()))
        except PodLimitError:
            return None

    def assume(self, pod: Pod, name: str) -> None:
        """Take a pod to be on a node, a hypothetical one or a copied one."""
        self._cache.assume_pod(pod, name)

    def forget(self, pod: Pod) -> None:
        """Take a pod to be on no node any more."""
        self._cache.forget_pod(pod)

    def node_of(self, pod: Pod) -> str:
        """The node that a pod is taken to be on; empty: none."""
        known = self._cache.pod(pod.uid)
        return "" if known is None else known.spec.node_name

    def fitting(self, pod: Pod, *, with_copied: bool = False) -> list[str]:
        """The nodes that pass all filters for a pod: copied ones, if wanted, and then hypothetical ones."""
        snapshot = self._snapshot()
        passing = set(self._fitting(pod, None if with_copied else self._names))
        copied = [name for name in snapshot.names if name in passing and name not in self._names]
        return [*copied, *(name for name in self._names if name in passing)] if passing else []

    def fits(self, pod: Pod, name: str) -> bool:
        """Whether a node passes all filters for a pod."""
        return bool(self._fitting(pod, (name,)))

    def _fitting(self, pod: Pod, among: Collection[str] | None) -> list[str]:
        """Those of some nodes that pass; none if a plugin fails."""
        nodes = Nodes(self._snapshot())
        try:
            return self._passing(
                pod, nodes if among is None else nodes.named(among), Diagnosis(len(nodes.snapshot))
            )
        except PluginError:
            return []

    def why_not(self, pod: Pod, node: Node) -> tuple[str, ...]:
        """Why a pod would not fit on a further node; empty: it would."""
        with self.taken(node):
            snapshot, diagnosis = self._snapshot(), Diagnosis(len(self._snapshot()))
            try:
                if self._passing(pod, Nodes(snapshot).named([node.name]), diagnosis):
                    return ()
            except PluginError as error:
                return (str(error),)
            refusal = diagnosis.of(snapshot.row_of[node.name])
            if refusal is not None:
                return tuple(refusal.reason.texts)
            status = diagnosis.pre_filter or diagnosis.left_out
            return ("it is refused",) if status is None else status.reasons

    @contextmanager
    def taken(self, node: Node) -> Iterator[None]:
        """With a further node, which is removed again with the pods that were put on it."""
        self.add(node)
        try:
            yield
        finally:
            self.remove(node.name)

    def follow(self, nodes: Nodes) -> Generator[None]:
        """Copy the nodes of a cluster with their pods, or what has changed of them since the last call.

        It yields between parts of the work: the snapshot may change meanwhile, which the next call notices.
        """
        snapshot = nodes.snapshot
        rows = self._reader.new_rows(snapshot, snapshot.changes)
        names = list(snapshot.names) if rows is None else [snapshot.names[row] for row in rows]
        for gone in self._copied.keys() - snapshot.row_of.keys():
            self._remove_copy(gone)
        for number, name in enumerate(names, 1):
            self._copy(name, snapshot)
            if not number % _SLICE:
                self._snapshot()
                yield

    def _copy(self, name: str, snapshot: Snapshot) -> None:
        row = snapshot.row_of.get(name)
        if row is None or name in self._names:
            return
        node, infos = snapshot.nodes[row], list(snapshot.pods_of(row).infos)
        if self._cache.node(name) is not node:
            self._cache.put_node(node)
        known = self._copied.get(name, [])
        self._copied[name] = infos
        kept = {id(info) for info in known} & {id(info) for info in infos}
        self._remove_pods(info for info in known if id(info) not in kept)
        new = [info for info in infos if id(info) not in kept]
        self._remove_pods(new)  # They may be taken to be elsewhere.
        self._cache.add_pods(new)

    def _remove_copy(self, name: str) -> None:
        self._remove_pods(self._copied.pop(name))
        self._cache.remove_node(name)

    def _remove_pods(self, infos: Iterable[PodInfo]) -> None:
        for info in infos:
            known = self._cache.pod(info.pod.uid)
            if known is not None:
                self._cache.remove_pod(known)

    def _passing(self, pod: Pod, nodes: Nodes, diagnosis: Diagnosis) -> list[str]:
        """Those of some nodes that pass; PluginError if a plugin fails."""
        cycle = CycleState()
        cycle.equivalence_class = self._class_of(pod)
        candidates = self._filters.pre_filter(cycle, pod, Nodes(nodes.snapshot), diagnosis)
        if candidates is None:
            return []
        return self._filters.filter(cycle, pod, nodes.within(candidates), diagnosis).names

    def _snapshot(self) -> Snapshot:
        snapshot = self._cache.snapshot()
        snapshot.objects = self._live().objects
        return snapshot
