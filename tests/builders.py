"""API objects from short keyword arguments: what tests build clusters from.

`node(...)` and its siblings give manifests: plain dicts, as a user would write them. `make_node(...)` and its
siblings give the objects, decoded the way files are, so that what a test builds is what a cluster could hold.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from moorage.api.base import Object
from moorage.api.decode import KINDS, convert
from moorage.api.node import Namespace, Node
from moorage.api.pod import Pod
from moorage.api.workloads import ReplicaSet, ReplicationController, Service, StatefulSet
from moorage.config.args import ARGS_BY_PLUGIN
from moorage.config.defaults import ALL_PLUGINS, default_profile
from moorage.config.types import PluginConfig, PluginRef, Plugins, PluginSet, Profile
from moorage.framework.runtime.framework import Framework
from moorage.plugins import default_registry

Manifest = dict[str, Any]

HOSTNAME = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"

LONG_AGO = "2026-01-01T00:00:00Z"


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


def _spec(fields: Mapping[str, Any]) -> Manifest:
    """Fields of a spec, named as Python names them, as the API does; None is left out."""
    return {_camel(name): value for name, value in fields.items() if value is not None}


def _metadata(name: str, **fields: Any) -> Manifest:
    return {"name": name, **{_camel(key): value for key, value in fields.items() if value}}


# Parts


def expression(key: str, operator: str, *values: str) -> Manifest:
    """One expression of a label or node selector."""
    return {"key": key, "operator": operator, "values": list(values)}


def taint(text: str) -> Manifest:
    """A taint from `key=value:Effect` or `key:Effect`."""
    pair, _, effect = text.rpartition(":")
    key, _, value = pair.partition("=")
    return {"key": key, "value": value, "effect": effect}


def container(requests: Mapping[str, str] | None = None, name: str = "main", **fields: Any) -> Manifest:
    """A container; `requests` by resource, other fields as the API has them, in snake case."""
    resources = {"requests": dict(requests)} if requests else None
    return {"name": name, **_spec({"resources": resources, **fields})}


def port(number: int, protocol: str = "TCP", ip: str = "") -> Manifest:
    """A container's host port."""
    return {"containerPort": 80, "hostPort": number, "hostIP": ip, "protocol": protocol}


def pod_term(
    topology_key: str,
    selector: Manifest | None,
    *,
    namespaces: Iterable[str] = (),
    namespace_selector: Manifest | None = None,
    **fields: Any,
) -> Manifest:
    """A pod affinity term; other fields as the API has them, in snake case."""
    return _spec(
        {
            "topology_key": topology_key,
            "label_selector": selector,
            "namespaces": list(namespaces),
            "namespace_selector": namespace_selector,
            **fields,
        }
    )


def spread(topology_key: str, selector: Manifest | None, *, hard: bool = True, **fields: Any) -> Manifest:
    """A topology spread constraint; `hard` refuses nodes, otherwise it only scores."""
    return _spec(
        {
            "max_skew": 1,
            "topology_key": topology_key,
            "when_unsatisfiable": "DoNotSchedule" if hard else "ScheduleAnyway",
            "label_selector": selector,
            **fields,
        }
    )


def owner(kind: str, name: str, *, api_version: str = "apps/v1", controller: bool = True) -> Manifest:
    """An owner reference."""
    return {"apiVersion": api_version, "kind": kind, "name": name, "uid": name, "controller": controller}


# Manifests


def node(
    name: str,
    *,
    labels: Mapping[str, str] | None = None,
    taints: Iterable[str] = (),
    unschedulable: bool = False,
    allocatable: Mapping[str, str] | None = None,
    images: Iterable[tuple[Iterable[str], int]] = (),
    features: Iterable[str] = (),
) -> Manifest:
    """A node's manifest; by default one with room for ten pods, and no labels at all."""
    room = {"cpu": "4", "memory": "8Gi", "pods": "10"} if allocatable is None else dict(allocatable)
    return {
        "kind": "Node",
        "metadata": _metadata(name, labels=dict(labels or {})),
        "spec": {"unschedulable": unschedulable, "taints": [taint(each) for each in taints]},
        "status": {
            "allocatable": room,
            "images": [{"names": list(names), "sizeBytes": size} for names, size in images],
            "declaredFeatures": list(features),
        },
    }


def pod(
    name: str,
    *,
    namespace: str = "default",
    uid: str = "",
    labels: Mapping[str, str] | None = None,
    on: str = "",
    requests: Mapping[str, str] | None = None,
    containers: Iterable[Manifest] | None = None,
    owners: Iterable[Manifest] = (),
    terminating: bool = False,
    status: Manifest | None = None,
    **spec: Any,
) -> Manifest:
    """A pod's manifest, by default with one container; `on` is the node it is on, `spec` is in snake case."""
    main = [container(requests)] if containers is None else list(containers)
    return {
        "kind": "Pod",
        "metadata": _metadata(
            name,
            namespace=namespace,
            uid=uid,
            labels=dict(labels or {}),
            owner_references=list(owners),
            deletion_timestamp=LONG_AGO if terminating else None,
        ),
        "spec": _spec({"node_name": on or None, "containers": main, **spec}),
        "status": status or {},
    }


def namespace(name: str, labels: Mapping[str, str] | None = None) -> Manifest:
    """A namespace's manifest."""
    return {"kind": "Namespace", "metadata": _metadata(name, labels=dict(labels or {}))}


def selecting(kind: str, name: str, selector: Manifest | None, namespace: str = "default") -> Manifest:
    """The manifest of a service or controller: a kind whose spec is a selector, in that kind's own form."""
    return {
        "kind": kind,
        "metadata": _metadata(name, namespace=namespace),
        "spec": _spec({"selector": selector}),
    }


# Objects


def make(manifest: Manifest) -> Object:
    """The object a manifest describes."""
    return convert(manifest, KINDS[manifest["kind"]], manifest["kind"])


def make_node(name: str, **fields: Any) -> Node:
    """A node; see `node`."""
    return convert(node(name, **fields), Node)


def make_pod(name: str, **fields: Any) -> Pod:
    """A pod; see `pod`."""
    return convert(pod(name, **fields), Pod)


def make_namespace(name: str, **labels: str) -> Namespace:
    """A namespace with labels."""
    return convert(namespace(name, labels), Namespace)


def make_service(name: str, selector: Mapping[str, str], namespace: str = "default") -> Service:
    """A service."""
    return convert(selecting("Service", name, dict(selector), namespace), Service)


def make_replication_controller(
    name: str, selector: Mapping[str, str], namespace: str = "default"
) -> ReplicationController:
    """A replication controller."""
    manifest = selecting("ReplicationController", name, dict(selector), namespace)
    return convert(manifest, ReplicationController)


def make_replica_set(name: str, selector: Manifest | None, namespace: str = "default") -> ReplicaSet:
    """A replica set."""
    return convert(selecting("ReplicaSet", name, selector, namespace), ReplicaSet)


def make_stateful_set(name: str, selector: Manifest | None, namespace: str = "default") -> StatefulSet:
    """A stateful set."""
    return convert(selecting("StatefulSet", name, selector, namespace), StatefulSet)


# Profiles


def make_profile(
    *plugins: str,
    args: Mapping[str, Manifest] | None = None,
    off: Mapping[str, Iterable[str]] | None = None,
) -> Profile:
    """A profile with only these plugins at work (without any named: with the default ones).

    args: by plugin, as a configuration file has them. off: by extension point, plugins not to run there.
    """
    chosen = PluginSet()
    if plugins:
        enabled = dict.fromkeys(("PrioritySort", *plugins, "DefaultBinder"))
        refs = tuple(PluginRef(name=name) for name in enabled)
        chosen = PluginSet(enabled=refs, disabled=(PluginRef(name=ALL_PLUGINS),))
    switched_off = {
        point: PluginSet(disabled=tuple(PluginRef(name=name) for name in names))
        for point, names in (off or {}).items()
    }
    config = tuple(
        PluginConfig(name=name, args=convert(given, ARGS_BY_PLUGIN[name], name))
        for name, given in (args or {}).items()
    )
    return default_profile(Profile(plugins=Plugins(multi_point=chosen, **switched_off), plugin_config=config))


def make_framework(
    *plugins: str,
    args: Mapping[str, Manifest] | None = None,
    off: Mapping[str, Iterable[str]] | None = None,
) -> Framework:
    """A framework for such a profile; see `make_profile`."""
    return Framework(make_profile(*plugins, args=args, off=off), default_registry())
