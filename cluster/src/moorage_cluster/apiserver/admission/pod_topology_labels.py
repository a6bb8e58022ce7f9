"""PodTopologyLabels: a pod carries its node's zone and region from the moment it is bound."""

from __future__ import annotations

from typing import Final

from moorage.api.labels import REGION, ZONE
from moorage.api.manifests import Manifest, child, labels_of, metadata
from moorage_cluster.apiserver.admission.base import Attributes, Reader
from moorage_cluster.apiserver.admission.plugin import NODES, PODS, Call, Plugin


def topology_labels(node: Manifest) -> dict[str, str]:
    """The labels of a node that its pods get, too."""
    labels = labels_of(node)
    return {key: labels[key] for key in (ZONE, REGION) if key in labels}


def admit_binding(attributes: Attributes, reader: Reader) -> None:
    """Write the labels to the Binding, from where they come to the pod."""
    target = attributes.obj.get("target") or {}
    if target.get("kind") == "Node":
        _label(attributes.obj, target.get("name", ""), reader)


def admit_pod(attributes: Attributes, reader: Reader) -> None:
    """Write the labels to a pod that is created on a node."""
    node_name = attributes.obj.get("spec", {}).get("nodeName")
    if node_name:
        _label(attributes.obj, node_name, reader)


def _label(obj: Manifest, node_name: str, reader: Reader) -> None:
    node = reader.find(NODES, "", node_name)
    labels = topology_labels(node) if node is not None else None
    if labels:
        child(metadata(obj), "labels").update(labels)


PLUGINS: Final = (
    Plugin("PodTopologyLabels", admit_pod, (Call("CREATE", PODS),)),
    Plugin("PodTopologyLabels", admit_binding, (Call("CREATE", PODS, "binding"),)),
)
