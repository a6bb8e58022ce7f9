"""The cluster state as the scheduler knows it: events in, snapshots out.

Watch events and assumed pods are applied here, to plain objects; each marks its node as changed. `snapshot()`
then rewrites the columns of the changed nodes: a node update costs the same in a cluster of a hundred nodes
and of a hundred thousand.

A pod can be confirmed (the API server shows it on its node) or assumed (the scheduler has placed it and the
API server has not confirmed it yet; assumptions do not expire). Pods of either kind on an unknown node are
kept without being counted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from moorage.api.base import Object
from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.cluster.node_entry import NodeEntry
from moorage.cluster.node_tree import NodeTree, zone_key
from moorage.cluster.nominations import Nominations
from moorage.cluster.object_tables import Objects
from moorage.cluster.pod_followers import PodFollower, PodFollowers
from moorage.cluster.pod_groups import PodGroups
from moorage.cluster.pod_table import PodInfo
from moorage.cluster.snapshot import Snapshot


class CacheError(Exception):
    """A request that contradicts the state of the cache."""


class Cache:
    """Nodes, the pods on them, and all other objects."""

    def __init__(self, objects: Iterable[Object] = ()) -> None:
        self.objects = Objects()
        self.nominations = Nominations()
        self.pod_groups = PodGroups(self.objects, self.pod)
        self._entries: dict[str, NodeEntry] = {}
        self._followers = PodFollowers()
        self._node_of: dict[str, str] = {}
        self._assumed: set[str] = set()
        self._changed: dict[str, bool] = {}
        """The changed nodes, and whether more has changed than labels of their pods."""
        self._node_tree = NodeTree()
        self._snapshot = Snapshot(self._node_tree)
        for item in objects:
            self.put(item)

    # Any object, by its kind

    def put(self, item: Object) -> None:
        """Add or replace an object of any kind; pods without a node are ignored."""
        if isinstance(item, Node):
            self.put_node(item)
        elif not isinstance(item, Pod):
            self.objects.put(item)
        elif item.spec.node_name:
            self.put_pod(item)

    def remove(self, item: Object) -> None:
        """Remove an object of any kind; unknown objects are ignored."""
        if isinstance(item, Node):
            self.remove_node(item.name)
        elif isinstance(item, Pod):
            self.remove_pod(item)
        else:
            self.objects.remove(item)

    # Nodes

    def put_node(self, node: Node) -> None:
        """Add or replace a node; pods that arrived before it are counted on it from now on."""
        self._entry(node.name).node = node
        self._node_tree.put(node)

    def remove_node(self, name: str) -> None:
        """Remove a node; its pods are kept until they are removed, or the node is added again."""
        entry = self._entries.get(name)
        if entry is None:
            return
        entry.node = None
        entry.forget_moves()
        self._node_tree.remove(name)
        self._changed[name] = True
        self._tidy(entry)

    def node(self, name: str) -> Node | None:
        """A node by name."""
        entry = self._entries.get(name)
        return None if entry is None else entry.node

    # Pods

    def put_pod(self, pod: Pod, like: PodInfo | None = None) -> Pod | None:
        """A pod that the API server shows on a node: new, updated, or the confirmation of an assumed pod.

        Returns the assumed pod, if it was one.
        like: an info of a pod with the same values, if there is one, whose computed values are reused.
        """
        uid, node_name, is_finished = pod.uid, pod.spec.node_name, pod.finished
        if not node_name:
            raise CacheError(f"pod {pod.key} is on no node")
        known = self._info(uid)
        assumed = known.pod if known is not None and uid in self._assumed else None
        if known is not None and not is_finished and known.holds_but_for_labels(pod):
            # Confirms the assumption, or changes nothing that scheduling reads but labels.
            self._assumed.discard(uid)
            if known.pod.metadata.labels == pod.metadata.labels:
                known.pod = pod
            else:
                relabelled = known.relabelled(pod)
                self._entries[node_name].relabel(uid, relabelled)
                if self._followers:
                    self._followers.moved(known, -1)
                    self._followers.moved(relabelled, 1)
                self._changed.setdefault(node_name, False)
            return assumed
        self._remove_pod(uid)
        if not is_finished:
            self._add_pod(uid, node_name, PodInfo(pod) if like is None else like.renewed(pod))
        elif pod.spec.scheduling_group is not None:
            self.pod_groups.remove(pod)
        return assumed

    def add_pods(self, infos: Iterable[PodInfo]) -> None:
        """Pods on nodes, neither known nor finished: as `put_pod` of each, and faster for many."""
        by_node: dict[str, list[PodInfo]] = {}
        for info in infos:
            by_node.setdefault(info.pod.spec.node_name, []).append(info)
            if info.pod.spec.scheduling_group is not None:
                self.pod_groups.place(info.pod)
        for name, some in by_node.items():
            uids = [info.pod.uid for info in some]
            self._entry(name).extend(uids, some)
            self._node_of.update(dict.fromkeys(uids, name))
            for info in some if self._followers else ():
                self._followers.moved(info, 1)

    def remove_pod(self, pod: Pod) -> None:
        """A pod was deleted from any node."""
        uid = pod.uid
        self.nominations.remove(uid)
        self._remove_pod(uid)
        if pod.spec.scheduling_group is not None:
            self.pod_groups.remove(pod)

    def assume_pod(self, pod: Pod, node_name: str, like: PodInfo | None = None) -> Pod:
        """Count a pod on a node before it is bound.

        like: an info of the same equivalence class, if there is one, whose computed values are reused.
        """
        uid = pod.uid
        if uid in self._node_of:
            raise CacheError(f"pod {pod.key} is on node {self._node_of[uid]} already")
        bound = msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, node_name=node_name))
        self._add_pod(uid, node_name, PodInfo(bound) if like is None else like.renewed(bound))
        self._assumed.add(uid)
        return bound

    def forget_pod(self, pod: Pod) -> None:
        """Remove an assumed pod; a confirmed one stays."""
        if pod.uid in self._assumed:
            self._remove_pod(pod.uid)

    def follow_pods(self, follower: PodFollower) -> None:
        """Tell an object of all pods on nodes, and from now on of those that come and go."""
        self._followers.add(follower)
        for entry in self._entries.values():
            for info in entry.pods.infos:
                follower.pod_moved(info, 1)

    def is_assumed(self, pod: Pod) -> bool:
        """Whether a pod is assumed."""
        return pod.uid in self._assumed

    def pod(self, uid: str) -> Pod | None:
        """A pod on a node, by uid."""
        name = self._node_of.get(uid)
        return None if name is None else self._entries[name].pods[uid].pod

    def pods(self) -> Iterator[Pod]:
        """All pods on nodes, assumed ones included."""
        return (info.pod for entry in self._entries.values() for info in entry.pods.infos)

    def pods_on(self, node_name: str) -> list[Pod]:
        """The pods on a node, assumed ones included; none if it is unknown."""
        entry = self._entries.get(node_name)
        return [] if entry is None else [info.pod for info in entry.pods.infos]

    @property
    def node_count(self) -> int:
        """Number of nodes."""
        return sum(entry.node is not None for entry in self._entries.values())

    @property
    def pod_count(self) -> int:
        """Number of pods on nodes, including assumed ones."""
        return len(self._node_of)

    @property
    def assumed_count(self) -> int:
        """Number of assumed pods."""
        return len(self._assumed)

    def nodes(self) -> Iterator[Node]:
        """All nodes."""
        return (entry.node for entry in self._entries.values() if entry.node is not None)

    def _add_pod(self, uid: str, node_name: str, info: PodInfo) -> None:
        self.nominations.remove(uid)
        self._entry(node_name).add(uid, info)
        self._node_of[uid] = node_name
        if self._followers:
            self._followers.moved(info, 1)
        if info.pod.spec.scheduling_group is not None:
            self.pod_groups.place(info.pod)

    def _info(self, uid: str) -> PodInfo | None:
        name = self._node_of.get(uid)
        return None if name is None else self._entries[name].pods[uid]

    def _remove_pod(self, uid: str) -> None:
        self._assumed.discard(uid)
        name = self._node_of.pop(uid, None)
        if name is not None:
            entry = self._entry(name)
            info = entry.remove(uid)
            self._tidy(entry)
            if self._followers:
                self._followers.moved(info, -1)
            if info.pod.spec.scheduling_group is not None:
                self.pod_groups.unplace(info.pod)

    def _entry(self, name: str) -> NodeEntry:
        """A node's entry, marked as changed."""
        self._changed[name] = True
        entry = self._entries.get(name)
        if entry is None:
            entry = self._entries[name] = NodeEntry(name)
        return entry

    def _tidy(self, entry: NodeEntry) -> None:
        if entry.node is None and not entry.pods:
            del self._entries[entry.name]

    # What if

    def set_aside(self, pods: Iterable[Pod]) -> PodsSetAside:
        """Remove pods from their nodes for a dry run, which puts them back at its end."""
        return PodsSetAside(self, pods)

    # Snapshots

    def snapshot(self) -> Snapshot:
        """The current state. It is always the same object, updated by what changed."""
        changed = []
        for name in self._changed:
            entry = self._entries.get(name)
            if entry is None or entry.node is None:
                self._snapshot.remove(name)
            else:
                changed.append(entry)
        # A pod that moved must be removed from its old node before it is added to the new one.
        for entry in changed:
            if entry.has_departures:
                self._snapshot.release(entry)
        new = []
        for entry in changed:
            if entry.name not in self._snapshot.row_of:
                new.append(entry)
            elif not self._changed[entry.name]:
                self._snapshot.relabel(entry)
            elif self._snapshot.has_load_of(entry):
                self._snapshot.write_labels(entry)
            else:
                self._snapshot.write(entry)
        if new:
            self._snapshot.add(new)
        self._changed.clear()
        self._snapshot.sync_objects(self.objects)
        self._snapshot.sync_nominations(self.nominations)
        return self._snapshot

    def latest_snapshot(self) -> Snapshot:
        """The state at the last call of `snapshot`."""
        return self._snapshot

    def validate(self) -> None:
        """Check every invariant by building everything again: AssertionError if one is broken."""
        fresh = Cache()
        for entry in self._entries.values():
            if entry.node is not None:
                fresh.put_node(entry.node)
            for info in entry.pods.infos:
                assert self._node_of[info.pod.uid] == entry.name == info.pod.spec.node_name, info.pod.uid
                fresh.put_pod(info.pod)
            assert entry.node is not None or entry.pods, f"empty entry {entry.name}"
        assert self._node_of == fresh._node_of
        assert self._assumed <= self._node_of.keys()
        current, expected = self.snapshot(), fresh.snapshot()
        current.allocatable.validate()
        current.requested.validate()
        current.labels.validate(current.nodes)
        assert current.contents() == expected.contents()
        assert all(current.row_of[name] == row for row, name in enumerate(current.names))
        if self._node_tree.is_kept:
            assert self._node_tree.zone_of == {node.name: zone_key(node.labels) for node in self.nodes()}
            assert sorted(current.search_order().tolist()) == list(range(len(current)))
        for name, entry in self._entries.items():
            rebuilt = fresh._entries[name]
            if entry.node is not None:
                assert list(current.pods_of(current.row_of[name])) == list(entry.pods), name
            assert entry.requested == rebuilt.requested, name
            assert entry.ports == rebuilt.ports, name
            assert (entry.claims, entry.disks) == (rebuilt.claims, rebuilt.disks), name


class PodsSetAside:
    """Pods that a dry run has removed from their nodes; some of them may be back already."""

    def __init__(self, cache: Cache, pods: Iterable[Pod]) -> None:
        self._cache = cache
        self._orders: dict[str, list[str]] = {}
        self._gone: dict[str, tuple[PodInfo, bool]] = {}
        for pod in pods:
            self.remove(pod)

    def remove(self, pod: Pod) -> None:
        """Remove a pod from its node."""
        cache, uid = self._cache, pod.uid
        info, is_assumed = cache._info(uid), cache.is_assumed(pod)
        assert info is not None, pod.key
        name = cache._node_of[uid]
        if name not in self._orders:
            self._orders[name] = list(cache._entries[name].pods)
        cache._remove_pod(uid)
        self._gone[uid] = (info, is_assumed)

    def info(self, pod: Pod) -> PodInfo:
        """A pod that is set aside, as it was on its node."""
        return self._gone[pod.uid][0]

    def put_back(self, pod: Pod) -> None:
        """Put a pod back on its node."""
        info, is_assumed = self._gone.pop(pod.uid)
        self._cache._add_pod(pod.uid, info.pod.spec.node_name, info)
        if is_assumed:
            self._cache._assumed.add(pod.uid)

    def end(self) -> None:
        """Put all pods back, in the order in which they were."""
        for info, _ in list(self._gone.values()):
            self.put_back(info.pod)
        for name, uids in self._orders.items():
            self._cache._entry(name).reorder(uids)
