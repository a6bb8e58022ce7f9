"""Nodes and namespaces, as far as a scheduler reads them."""

from __future__ import annotations

from moorage.api.base import Condition, Object, ResourceList, Struct


class Taint(Struct):
    """A taint, which repels pods from a node."""

    key: str = ""
    value: str = ""
    effect: str = ""


class ContainerImage(Struct):
    """An image that is on a node already, under all its names."""

    names: tuple[str, ...] = ()
    size_bytes: int = 0


class NodeSpec(Struct):
    """The spec of a node, written by operators."""

    unschedulable: bool = False
    taints: tuple[Taint, ...] = ()
    provider_id: str = ""


class NodeStatus(Struct):
    """The status of a node, written by the kubelet."""

    capacity: ResourceList = {}
    allocatable: ResourceList = {}
    conditions: tuple[Condition, ...] = ()
    images: tuple[ContainerImage, ...] = ()
    declared_features: tuple[str, ...] = ()


class Node(Object, weakref=True, gc=True):
    """A node."""

    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()


class Namespace(Object):
    """A namespace; its labels are what pod affinity selects by."""
