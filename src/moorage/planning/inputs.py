"""What a plan is about: a cluster, and pods that are not in it yet."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from moorage.api.base import Object
from moorage.api.decode import InputError
from moorage.api.files import Located, load_manifests
from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.emulation.kubernetes_version import DEFAULT_VERSION, KubernetesVersion
from moorage.sim.admission import Admission
from moorage.simulation.scenario import ScenarioSource
from moorage.simulation.shapes import nodes_of
from moorage.simulation.traces.node_lists import is_node_list, read_nodes

_COUNT_FIELDS: Final = {
    "Deployment": "replicas",
    "ReplicaSet": "replicas",
    "StatefulSet": "replicas",
    "ReplicationController": "replicas",
    "Job": "parallelism",
}
"""The kinds that are made into pods, and the field with the number of these."""
_OTHERS: Final = ("DaemonSet", "CronJob")
"""Kinds whose number of pods is not in them."""


class Planned(NamedTuple):
    """The objects of a cluster, and new pods."""

    cluster: list[Object]
    pods: list[Pod]


def read_planned(source: ScenarioSource, version: KubernetesVersion = DEFAULT_VERSION) -> Planned:
    """The cluster and the workload of a source; InputError if something in it cannot be used.

    A Deployment or another controller in the workload stands for its pods. Other objects in it are part of
    the cluster.
    """
    node_lists = [path for path in source.cluster if is_node_list(path)]
    dumps = [path for path in source.cluster if path not in node_lists]
    manifests = [located for path in dumps for located in load_manifests(path)]
    wanted = [
        each for path in source.workload for located in load_manifests(path) for each in _unfolded(located)
    ]
    admission = Admission([*manifests, *source.live.admission, *wanted], version.features)
    asked = admission.objects(wanted)
    listed = [node for path in node_lists for node in read_nodes(path, source.trace.units)]
    cluster = [*nodes_of(source.shapes), *listed, *source.live.objects, *admission.objects(manifests)]
    others = [each for each in asked if not isinstance(each, Pod)]
    return Planned([*cluster, *others], [each for each in asked if isinstance(each, Pod)])


def require_nodes(cluster: list[Object]) -> list[Object]:
    """The same objects; InputError if there is no node among them."""
    if not any(isinstance(each, Node) for each in cluster):
        raise InputError("", "there are no nodes; give --nodes, --shape, --from or --kubeconfig")
    return cluster


def _unfolded(located: Located) -> Iterator[Located]:
    """A manifest, or the pods that a controller makes of it."""
    manifest, where = located
    kind = manifest.get("kind") if isinstance(manifest, Mapping) else None
    if kind in _OTHERS:
        raise InputError(where, f"{kind}: how many pods it makes is not in it; give its pods")
    if kind not in _COUNT_FIELDS:
        yield located
        return
    spec = _mapping(manifest, "spec", f"{where}: {kind}")
    template = _mapping(spec, "template", f"{where}: {kind}: spec")
    meta, labels = manifest.get("metadata"), template.get("metadata")
    if not isinstance(meta, Mapping) or not meta.get("name"):
        raise InputError(f"{where}: {kind}", "metadata.name: missing")
    count = spec.get(_COUNT_FIELDS[kind], 1)
    if not isinstance(count, int) or isinstance(count, bool) or count < 0:
        raise InputError(f"{where}: {kind} {meta['name']}", f"spec.{_COUNT_FIELDS[kind]}: not a number")
    for number in range(count):
        name = {"name": f"{meta['name']}-{number}", "namespace": meta.get("namespace") or "default"}
        given = dict(labels) if isinstance(labels, Mapping) else {}
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {**given, **name}}
        yield {**pod, "spec": template.get("spec")}, where


def _mapping(parent: Mapping[str, Any], field: str, where: str) -> Mapping[str, Any]:
    value = parent.get(field)
    if not isinstance(value, Mapping):
        raise InputError(where, f"{field}: missing")
    return value
