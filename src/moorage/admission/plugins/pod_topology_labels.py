"""PodTopologyLabels: a pod gets the labels of its node's zone and region when it is bound."""

from __future__ import annotations

from typing import Final

from moorage.admission.attributes import Attributes, Reader
from moorage.admission.plugin import NODES, PODS, Call, Plugin
from moorage.api.labels import REGION, ZONE
from moorage.api.manifests import Manifest, child, labels_of, metadata


def topology_labels(node: Manifest) -> dict[str, str]:
    """The labels of a node that are copied to its pods."""
    labels = labels_of(node)
    return {key: labels[key] for key in (ZONE, REGION) if key in labels}


def admit_binding(attributes: Attributes, reader: Reader) -> None:
    """Add the labels to the Binding, from which they are copied to the pod."""
    target = attributes.obj.get("target") or {}
    if target.get("kind") == "Node":
        _label(attributes.obj, target.get("name", ""), reader)


def admit_pod(attributes: Attributes, reader: Reader) -> None:
    """Add the labels to a pod that is created with a node name."""
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
