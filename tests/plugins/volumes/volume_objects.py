"""Volumes, claims and what belongs to them from short keyword arguments, and one way to ask a filter."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from moorage.api.decode import convert
from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.api.storage import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
)
from moorage.cluster.cache import Cache
from moorage.cluster.snapshot import Snapshot
from moorage.config.args import VolumeBindingArgs
from moorage.framework.interface.cycle_state import CycleState
from moorage.framework.interface.filter_result import FilterResult
from moorage.framework.interface.handle import Handle
from moorage.framework.interface.nodes import Nodes
from moorage.framework.interface.status import SKIP, Status
from moorage.plugins.volume_binding.plugin import VolumeBinding
from tests.builders import ZONE, expression, make_node, make_pod

Manifest = dict[str, Any]

DRIVER = "csi.example.com"
BIND_COMPLETED = "pv.kubernetes.io/bind-completed"
BETA_ZONE = "failure-domain.beta.kubernetes.io/zone"
REGION = "topology.kubernetes.io/region"


def zone_nodes(**zones: str) -> list[Node]:
    """Nodes by name, each in a zone; an empty zone is no label at all."""
    return [make_node(name, labels={ZONE: zone} if zone else {}) for name, zone in zones.items()]


def affinity(*terms: Iterable[Manifest]) -> Manifest:
    """A volume's node affinity: terms, each made of expressions."""
    return {"required": {"nodeSelectorTerms": [{"matchExpressions": list(term)} for term in terms]}}


def in_zone(*zones: str, key: str = ZONE) -> Manifest:
    """The node affinity of a volume that can be reached from some zones."""
    return affinity([expression(key, "In", *zones)])


def volume(
    name: str,
    size: str = "1Gi",
    *,
    storage_class: str = "late",
    labels: Mapping[str, str] | None = None,
    claim: str = "",
    claim_uid: str = "",
    phase: str = "Available",
    deleted: bool = False,
    **spec: Any,
) -> PersistentVolume:
    """A persistent volume; `claim` is who has it, or for whom it is kept. `spec` is as the API names it."""
    reference = {"namespace": "default", "name": claim, "uid": claim_uid} if claim else None
    return convert(
        {
            "metadata": {
                "name": name,
                "labels": dict(labels or {}),
                "deletionTimestamp": "2026-01-01T00:00:00Z" if deleted else None,
            },
            "spec": {
                "capacity": {"storage": size},
                "accessModes": ["ReadWriteOnce"],
                "storageClassName": storage_class,
                "claimRef": reference,
                **spec,
            },
            "status": {"phase": phase},
        },
        PersistentVolume,
    )


def claim(
    name: str,
    size: str = "1Gi",
    *,
    storage_class: str | None = "late",
    volume: str = "",
    complete: bool = True,
    annotations: Mapping[str, str] | None = None,
    owner_uid: str = "",
    deleted: bool = False,
    phase: str = "Pending",
    namespace: str = "default",
    uid: str = "",
    **spec: Any,
) -> PersistentVolumeClaim:
    """A claim; with a `volume` it is bound, unless it is not `complete`. `spec` is as the API names it."""
    notes = dict(annotations or {})
    if volume and complete:
        notes[BIND_COMPLETED] = "yes"
    owners = [{"kind": "Pod", "name": "pod", "uid": owner_uid, "controller": True}] if owner_uid else []
    return convert(
        {
            "metadata": {
                "name": name,
                "namespace": namespace,
                "uid": uid,
                "annotations": notes,
                "ownerReferences": owners,
                "deletionTimestamp": "2026-01-01T00:00:00Z" if deleted else None,
            },
            "spec": {
                "accessModes": ["ReadWriteOnce"],
                "resources": {"requests": {"storage": size}},
                "storageClassName": storage_class,
                "volumeName": volume,
                **spec,
            },
            "status": {"phase": phase},
        },
        PersistentVolumeClaim,
    )


def storage_class(
    name: str = "late",
    provisioner: str = "kubernetes.io/no-provisioner",
    *,
    waits: bool = True,
    zones: Iterable[str] = (),
) -> StorageClass:
    """A storage class; `zones` are where its volumes may be made."""
    topology = {"matchLabelExpressions": [{"key": ZONE, "values": list(zones)}]}
    return convert(
        {
            "metadata": {"name": name},
            "provisioner": provisioner,
            "volumeBindingMode": "WaitForFirstConsumer" if waits else "Immediate",
            "allowedTopologies": [topology] if zones else [],
        },
        StorageClass,
    )


def csi_node(
    name: str,
    limits: Mapping[str, int | None] | None = None,
    *,
    migrated: str = "",
    topology_keys: Iterable[str] = (),
) -> CSINode:
    """What CSI drivers say of a node: their limits (None: no limit), and which old drivers they serve."""
    return convert(
        {
            "metadata": {
                "name": name,
                "annotations": {"storage.alpha.kubernetes.io/migrated-plugins": migrated} if migrated else {},
            },
            "spec": {
                "drivers": [
                    {
                        "name": driver,
                        "nodeID": name,
                        "topologyKeys": list(topology_keys),
                        "allocatable": None if count is None else {"count": count},
                    }
                    for driver, count in (limits or {}).items()
                ]
            },
        },
        CSINode,
    )


def csi_driver(name: str = DRIVER, *, storage_capacity: bool = True) -> CSIDriver:
    """A CSI driver, by default one that reports its capacity."""
    return convert({"metadata": {"name": name}, "spec": {"storageCapacity": storage_capacity}}, CSIDriver)


def capacity(
    name: str, size: str | None, zone: str | None, *, storage_class: str = "late", largest: str | None = None
) -> CSIStorageCapacity:
    """A report of what a driver has left in a zone; without a zone it speaks of no node."""
    return convert(
        {
            "metadata": {"name": name, "namespace": "kube-system"},
            "storageClassName": storage_class,
            "nodeTopology": None if zone is None else {"matchLabels": {ZONE: zone}},
            "capacity": size,
            "maximumVolumeSize": largest,
        },
        CSIStorageCapacity,
    )


def attachment(
    name: str, node: str, volume_name: str | None = None, attacher: str = DRIVER
) -> VolumeAttachment:
    """A volume attached to a node."""
    return convert(
        {
            "metadata": {"name": name},
            "spec": {
                "attacher": attacher,
                "nodeName": node,
                "source": {"persistentVolumeName": volume_name},
            },
        },
        VolumeAttachment,
    )


def csi(handle: str, driver: str = DRIVER) -> Manifest:
    """A CSI volume source."""
    return {"driver": driver, "volumeHandle": handle}


def pod_with(*claims: str, name: str = "pod", on: str = "", uid: str = "", **spec: Any) -> Pod:
    """A pod that uses claims."""
    volumes = [{"name": each, "persistentVolumeClaim": {"claimName": each}} for each in claims]
    return make_pod(name, on=on, uid=uid, volumes=volumes, **spec)


def pod_with_sources(*sources: Manifest, name: str = "pod", on: str = "", uid: str = "") -> Pod:
    """A pod whose volumes have these sources."""
    volumes = [{"name": f"v{index}", **source} for index, source in enumerate(sources)]
    return make_pod(name, on=on, uid=uid, volumes=volumes)


EPHEMERAL: Manifest = {"ephemeral": {"volumeClaimTemplate": {"spec": {}}}}


def volume_binding(handle: Handle | None = None, **args: Any) -> VolumeBinding:
    """The plugin, with arguments as Python names them."""
    return VolumeBinding(VolumeBindingArgs(**args), handle or Handle())


Answer = dict[str, tuple[str, ...]]
"""Why each node is refused; an empty tuple lets the pod in."""


def ask(plugin: Any, pod: Pod, snapshot: Snapshot | Cache, nodes: Nodes | None = None) -> Answer | str:
    """What a filter says of every node, or the pre-filter's refusal.

    On the way: the filter says the same without its pre-filter, one node at a time, and when asked again.
    """
    if isinstance(snapshot, Cache):
        snapshot = snapshot.snapshot()
    if nodes is None:
        nodes = Nodes(snapshot)
    cycle = CycleState()
    before = plugin.pre_filter(cycle, pod, Nodes(snapshot))
    alone = _read(nodes, plugin.filter(CycleState(), pod, nodes))
    if isinstance(before, Status) and before is not SKIP:
        assert all(reasons == before.reasons for reasons in alone.values())
        return before.message
    answer = _read(nodes, plugin.filter(cycle, pod, nodes)) if before is None else alone
    assert before is None or not any(answer.values())
    assert answer == alone
    if before is None:
        assert answer == _read(nodes, plugin.filter(cycle, pod, nodes))
        for index, name in enumerate(nodes.names):
            only = nodes.where(np.arange(len(nodes)) == index)
            assert _read(only, plugin.filter(cycle, pod, only)) == {name: answer[name]}
    return answer


def _read(nodes: Nodes, verdict: FilterResult) -> Answer:
    codes = np.zeros(len(nodes), int) if verdict.codes is None else verdict.codes
    assert len(codes) == len(nodes)
    return {
        name: verdict.reasons[code - 1].texts if code else ()
        for name, code in zip(nodes.names, codes.tolist(), strict=True)
    }


def passing(answer: Answer | str) -> set[str]:
    """The nodes that pass; none after a refusal by the pre-filter."""
    return set() if isinstance(answer, str) else {name for name, reasons in answer.items() if not reasons}
