"""The scale subresource: the number of replicas of an object of any scalable kind."""

from __future__ import annotations

from moorage.api.manifests import Manifest
from moorage.apimachinery.fields import FieldError
from moorage.apimachinery.validation.checks import check_not_negative
from moorage.apimachinery.validation.selectors import labels_text, selector_text

_METADATA = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")


def scale_of(obj: Manifest) -> Manifest:
    """The autoscaling/v1 Scale of a Deployment, ReplicaSet, StatefulSet or ReplicationController."""
    metadata, spec, status = obj["metadata"], obj.get("spec") or {}, obj.get("status") or {}
    selector = spec.get("selector")
    if obj.get("kind") == "ReplicationController" or not _is_label_selector(selector):
        text = labels_text(selector or {})
    else:
        text = selector_text(selector)
    wanted = spec.get("replicas", 1)
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {key: metadata[key] for key in _METADATA if key in metadata},
        "spec": {"replicas": wanted} if wanted else {},
        "status": {"replicas": status.get("replicas", 0), **({"selector": text} if text else {})},
    }


def _is_label_selector(selector: Manifest | None) -> bool:
    return not selector or "matchLabels" in selector or "matchExpressions" in selector


def with_scale(obj: Manifest, scale: Manifest) -> Manifest:
    """The object with the number of replicas of a Scale; its other fields are ignored."""
    wanted = (scale.get("spec") or {}).get("replicas", 0)
    return {**obj, "spec": {**(obj.get("spec") or {}), "replicas": wanted}}


def check_scale(scale: Manifest) -> list[FieldError]:
    """Validation errors of a Scale."""
    return check_not_negative(scale.get("spec") or {}, ("replicas",), "spec")
