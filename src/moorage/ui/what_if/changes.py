"""Changes of a cluster that the page can try, by kind; each is applied to a simulated cluster."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

from msgspec import Meta
from msgspec.structs import replace

from moorage.api.base import Object, Struct
from moorage.api.decode import InputError, convert
from moorage.api.devices import ResourceSlice
from moorage.api.node import Node, Taint
from moorage.api.pod import Pod
from moorage.api.storage import CSINode
from moorage.config.types import PluginRef, PluginSet, Profile, SchedulerConfiguration
from moorage.explain.help.change import Situation
from moorage.explain.help.new_node import AddNode as NodeLike
from moorage.explain.help.new_node import coming_with
from moorage.explain.help.node_labels import LabelNode
from moorage.sim.cluster import SimulatedCluster

_HOSTNAME = "kubernetes.io/hostname"
_BOUND_TO_NODE = ("DaemonSet", "Node")
"""Owners whose pods stay on a drained node."""
_MAX_NEW_NODES = 100
Name = Annotated[str, Meta(min_length=1, max_length=253)]
SuggestionText = Annotated[str, Meta(min_length=1, max_length=16_384)]
Count = Annotated[int, Meta(ge=1, le=_MAX_NEW_NODES)]
Weight = Annotated[int, Meta(ge=1, le=1_000_000)]


class _Change(Struct, tag_field="kind", forbid_unknown_fields=True):
    """The base of all kinds."""


class _ClusterChange(_Change):
    def apply(self, cluster: SimulatedCluster) -> list[Pod]:
        """Change the cluster; returns the pods that lose their node."""
        raise NotImplementedError


class NodeShape(Struct, forbid_unknown_fields=True):
    """A node that is like no other."""

    allocatable: dict[str, str | int | float] = {}
    labels: dict[str, str] = {}


class AddNode(_ClusterChange, tag="addNode"):
    """Add nodes like one of the cluster, with what comes with it; or of a shape of their own."""

    like: str = ""
    shape: NodeShape | None = None
    count: Count = 1

    def apply(self, cluster: SimulatedCluster) -> list[Pod]:
        """Add them."""
        if bool(self.like) == (self.shape is not None):
            raise InputError("addNode", "give either like or shape")
        for number in range(1, self.count + 1):
            for item in self._like(cluster, number) if self.like else self._shaped(cluster):
                cluster.cache.put(item)
        return []

    def _like(self, cluster: SimulatedCluster, number: int) -> Iterator[Object]:
        node = _node(cluster, self.like)
        snapshot = cluster.cache.snapshot()
        others = tuple(coming_with(snapshot, snapshot.names.index(self.like)))
        while cluster.cache.node(NodeLike(node, others, number).name) is not None:
            number += 1
        yield from NodeLike(node, others, number).apply(Situation(Pod())).put.values()

    def _shaped(self, cluster: SimulatedCluster) -> Iterator[Object]:
        assert self.shape is not None
        number = 1
        while cluster.cache.node(name := f"new-node-{number}") is not None:
            number += 1
        room: dict[str, Any] = {"pods": "110", **self.shape.allocatable}
        labels = {_HOSTNAME: name, **self.shape.labels}
        manifest = {
            "metadata": {"name": name, "labels": labels},
            "status": {"allocatable": room, "capacity": room},
        }
        yield convert(manifest, Node, "addNode: shape")


class RemoveNode(_ClusterChange, tag="removeNode"):
    """Remove a node, with its pods and devices."""

    node: Name

    def apply(self, cluster: SimulatedCluster) -> list[Pod]:
        """Remove it."""
        node = _node(cluster, self.node)
        pods, objects = _pods_on(cluster, self.node), cluster.cache.objects
        slices = [each for each in objects.of(ResourceSlice) if each.spec.node_name == self.node]
        drivers = objects.of(CSINode).get("", self.node)
        for item in (*pods, *slices, *([] if drivers is None else [drivers]), node):
            cluster.cache.remove(item)
        return [each for each in pods if not _is_bound_to_node(each)]


class Cordon(_ClusterChange, tag="cordon"):
    """Let no more pods onto a node."""

    node: Name

    def apply(self, cluster: SimulatedCluster) -> list[Pod]:
        """Cordon it."""
        return _cordoned(cluster, self.node, is_cordoned=True)


class Uncordon(_ClusterChange, tag="uncordon"):
    """Let pods onto a node again."""

    node: Name

    def apply(self, cluster: SimulatedCluster) -> list[Pod]:
        """Uncordon it."""
        return _cordoned(cluster, self.node, is_cordoned=False)


class Drain(_ClusterChange, tag="drain"):
    """Cordon a node, and evict its pods but for those of DaemonSets, and static ones."""

    node: Name

    def apply(self, cluster: SimulatedCluster) -> list[Pod]:
        """Drain it."""
        _cordoned(cluster, self.node, is_cordoned=True)
        evicted = [each for each in _pods_on(cluster, self.node) if not _is_bound_to_node(each)]
        for each in evicted:
            cluster.cache.remove_pod(each)
        return evicted


class AddTaint(_ClusterChange, tag="taint"):
    """Taint a node; pods that are there stay."""

    node: Name
    key: Name
    value: str = ""
    effect: str = "NoSchedule"

    def apply(self, cluster: SimulatedCluster) -> list[Pod]:
        """Taint it."""
        if self.effect not in ("NoSchedule", "PreferNoSchedule", "NoExecute"):
            raise InputError("taint", "effect: expected NoSchedule, PreferNoSchedule or NoExecute")
        node = _node(cluster, self.node)
        left = (each for each in node.spec.taints if (each.key, each.effect) != (self.key, self.effect))
        taints = (*left, Taint(key=self.key, value=self.value, effect=self.effect))
        cluster.cache.put(replace(node, spec=replace(node.spec, taints=taints)))
        return []


class RemoveTaint(_ClusterChange, tag="untaint"):
    """Remove all taints with a key from a node."""

    node: Name
    key: Name

    def apply(self, cluster: SimulatedCluster) -> list[Pod]:
        """Remove them."""
        node = _node(cluster, self.node)
        taints = tuple(each for each in node.spec.taints if each.key != self.key)
        cluster.cache.put(replace(node, spec=replace(node.spec, taints=taints)))
        return []


class SetLabel(_ClusterChange, tag="label"):
    """Set a label of a node, or remove it (null)."""

    node: Name
    key: Name
    value: str | None = None

    def apply(self, cluster: SimulatedCluster) -> list[Pod]:
        """Set it."""
        change = LabelNode(_node(cluster, self.node), self.key, self.value)
        for item in change.apply(Situation(Pod())).put.values():
            cluster.cache.put(item)
        return []


class SetWeight(_Change, tag="weight"):
    """Give a score plugin another weight, in all profiles that have it."""

    plugin: Name
    weight: Weight

    def configured(self, config: SchedulerConfiguration) -> SchedulerConfiguration:
        """A configuration with the weight."""
        profiles = tuple(map(self._weighted, config.profiles))
        if profiles == config.profiles and not any(map(self._is_in, config.profiles)):
            raise InputError("weight", f"no profile has plugin {self.plugin}")
        return replace(config, profiles=profiles)

    def _is_in(self, profile: Profile) -> bool:
        plugins = profile.plugins
        return any(
            each.name == self.plugin for each in (*plugins.score.enabled, *plugins.multi_point.enabled)
        )

    def _weighted(self, profile: Profile) -> Profile:
        plugins = profile.plugins
        score, multi_point = self._in(plugins.score), self._in(plugins.multi_point)
        return replace(profile, plugins=replace(plugins, score=score, multi_point=multi_point))

    def _in(self, plugins: PluginSet) -> PluginSet:
        new = PluginRef(name=self.plugin, weight=self.weight)
        return replace(
            plugins, enabled=tuple(new if each.name == self.plugin else each for each in plugins.enabled)
        )


class ApplySuggestion(_Change, tag="suggestion"):
    """Make the changes that an explanation of the pod as it is suggests; they come before all others."""

    text: SuggestionText


ClusterChange = AddNode | RemoveNode | Cordon | Uncordon | Drain | AddTaint | RemoveTaint | SetLabel
CLUSTER_CHANGES = (AddNode, RemoveNode, Cordon, Uncordon, Drain, AddTaint, RemoveTaint, SetLabel)
Change = ClusterChange | SetWeight | ApplySuggestion


def _node(cluster: SimulatedCluster, name: str) -> Node:
    node = cluster.cache.node(name)
    if node is None:
        raise InputError("", f"there is no node {name}")
    return node


def _cordoned(cluster: SimulatedCluster, name: str, *, is_cordoned: bool) -> list[Pod]:
    node = _node(cluster, name)
    cluster.cache.put(replace(node, spec=replace(node.spec, unschedulable=is_cordoned)))
    return []


def _pods_on(cluster: SimulatedCluster, name: str) -> list[Pod]:
    return [each for each in cluster.cache.pods() if each.spec.node_name == name]


def _is_bound_to_node(pod: Pod) -> bool:
    return any(owner.kind in _BOUND_TO_NODE for owner in pod.metadata.owner_references)
