"""Objects that operations create, with defaults for what files leave out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from moorage.api.manifests import Manifest, copy
from moorage.bench.object_templates import Template, Templates
from moorage.bench.ops import CreateNodes, CreatePods

_HOSTNAME: Final = "kubernetes.io/hostname"
_MIGRATED: Final = "storage.alpha.kubernetes.io/migrated-plugins"
_ROOM: Final = {"pods": "110", "cpu": "4", "memory": "32Gi"}
_NEEDS: Final = {"cpu": "100m", "memory": "500Mi"}


def base_node(prefix: str) -> Manifest:
    """The default node, without a template."""
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"generateName": prefix},
        "status": {
            "capacity": _ROOM,
            "allocatable": _ROOM,
            "phase": "Running",
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def base_pod() -> Manifest:
    """The default pod, without a template."""
    container = {
        "name": "pause",
        "image": "registry.k8s.io/pause:3.10.1",
        "ports": [{"containerPort": 80}],
        "resources": {"requests": _NEEDS, "limits": _NEEDS},
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"generateName": "pod-"},
        "spec": {"containers": [container]},
    }


def base_namespace() -> Manifest:
    """The default namespace, without a template."""
    return {"apiVersion": "v1", "kind": "Namespace"}


def declared_features(count: int) -> list[str]:
    """The names of the features that nodes declare, in order."""
    return sorted(f"Feature{number}" for number in range(1, count + 1))


def nodes(
    op: CreateNodes, op_index: int, templates: Templates, features: Sequence[str] = ()
) -> Iterator[tuple[Manifest, Manifest | None]]:
    """The nodes of an operation, which declare features, each with its CSINode if it is to have one."""
    path = op.node_template_path
    template = None if path is None else templates.get(path, op.template_params)
    for index in range(op.count):
        base = base_node(f"node-{op_index}-") if template is None else template.object(index, op.count)
        node = copy(base)
        meta = node.setdefault("metadata", {})
        name = meta.get("name") or f"{meta.pop('generateName', '')}{op_index}-{index:05d}"
        meta["name"] = name
        labels = meta.setdefault("labels", {})
        labels[_HOSTNAME] = name
        if features:
            node.setdefault("status", {})["declaredFeatures"] = features
        if op.node_allocatable_strategy is not None:
            _add_resources(node, op.node_allocatable_strategy.node_allocatable)
        elif op.label_node_prepare_strategy is not None:
            values = op.label_node_prepare_strategy.label_values
            labels[op.label_node_prepare_strategy.label_key] = values[index % len(values)]
        elif op.unique_node_label_strategy is not None:
            labels[op.unique_node_label_strategy.label_key] = f"unique-{op_index}-{index}"
        yield node, _csi_node(op, name)


def _add_resources(node: Manifest, resources: dict[str, str | int]) -> None:
    status = node.setdefault("status", {})
    known = status.get("allocatable") or status.get("capacity") or {}
    status["allocatable"] = {**known, **{name: str(value) for name, value in resources.items()}}


def _csi_node(op: CreateNodes, node_name: str) -> Manifest | None:
    strategy = op.node_allocatable_strategy
    if strategy is None:
        return None
    drivers = []
    for driver, limits in strategy.csi_node_allocatable.items():
        allocatable = {} if limits.count is None else {"count": limits.count}
        drivers.append({"name": driver, "nodeID": node_name, "allocatable": allocatable})
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSINode",
        "metadata": {"name": node_name, "annotations": {_MIGRATED: ",".join(strategy.migrated_plugins)}},
        "spec": {"drivers": drivers},
    }


class PodSource:
    """The pods of an operation, and with each the claim and the volume that it is to have."""

    def __init__(
        self, op: CreatePods, templates: Templates, default_path: str | None, namespace: str
    ) -> None:
        path = op.pod_template_path or default_path
        self._op = op
        self._namespace = namespace
        self._template: Template | None = None if path is None else templates.get(path, op.template_params)
        self._base = base_pod()
        self._volume = _fixed(templates, op.persistent_volume_template_path)
        self._claim = _fixed(templates, op.persistent_volume_claim_template_path)

    def pod(self, index: int) -> Manifest:
        """The pod at an index."""
        pod = self._base if self._template is None else self._template.object(index, self._op.count)
        if self._op.signature_batch_size:
            pod = _signed(pod, index // self._op.signature_batch_size)
        if self._claim is None:
            return pod
        with_claim: Manifest = copy(pod)
        claim = {"claimName": _claim_name(index)}
        with_claim["spec"]["volumes"] = [{"name": "vol", "persistentVolumeClaim": claim}]
        return with_claim

    def storage(self, index: int) -> list[Manifest]:
        """The claim and the volume of a pod, bound to each other; nothing if it has none."""
        if self._claim is None or self._volume is None:
            return []
        claim, volume = copy(self._claim), copy(self._volume)
        claim_name, volume_name = _claim_name(index), f"{self._namespace}-vol-{index}"
        claim.setdefault("metadata", {}).update(name=claim_name, namespace=self._namespace)
        claim.setdefault("spec", {})["volumeName"] = volume_name
        claim["status"] = {"phase": "Bound"}
        volume.setdefault("metadata", {})["name"] = volume_name
        spec = volume.setdefault("spec", {})
        if "csi" in spec:
            spec["csi"]["volumeHandle"] = volume_name
        elif "awsElasticBlockStore" in spec:
            spec["awsElasticBlockStore"]["volumeID"] = f"vol-{index}"
        spec["claimRef"] = {
            "kind": "PersistentVolumeClaim",
            "namespace": self._namespace,
            "name": claim_name,
            "apiVersion": "v1",
        }
        volume["status"] = {"phase": "Bound"}
        return [claim, volume]


def _signed(pod: Manifest, batch: int) -> Manifest:
    meta = pod.get("metadata") or {}
    labels = {**(meta.get("labels") or {}), "signature": f"signature-label-{batch}"}
    return {**pod, "metadata": {**meta, "labels": labels}}


def _claim_name(index: int) -> str:
    return f"pvc-{index}"


def _fixed(templates: Templates, path: str | None) -> Manifest | None:
    return None if path is None else templates.get(path).object()
