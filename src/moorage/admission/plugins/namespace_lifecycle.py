"""NamespaceLifecycle: objects are created only in namespaces that exist and are not terminating."""

from __future__ import annotations

from typing import Final

from moorage.admission.attributes import Attributes, Reader
from moorage.admission.plugin import ANY, NAMESPACES, Call, Plugin, refusal
from moorage.apimachinery import errors

_IMMORTAL: Final = frozenset(("default", "kube-system", "kube-public"))
_ACCESS_REVIEWS: Final = "authorization.k8s.io/localsubjectaccessreviews"


def admit(attributes: Attributes, reader: Reader) -> None:
    """Reject creations in a missing or terminating namespace, and deletions of the three that must stay."""
    resource = attributes.resource
    if attributes.operation == "DELETE":
        if attributes.name in _IMMORTAL:
            raise refusal(attributes, "this namespace may not be deleted")
        return
    # A review must not reveal to other users which namespaces exist.
    if not resource.namespaced or resource.storage == _ACCESS_REVIEWS:
        return
    name = attributes.namespace
    namespace = reader.find(NAMESPACES, "", name)
    if namespace is None:
        raise errors.not_found("", "namespaces", name)
    if namespace.get("status", {}).get("phase") == "Terminating":
        error = refusal(
            attributes, f"unable to create new content in namespace {name} because it is being terminated"
        )
        cause = {
            "reason": "NamespaceTerminating",
            "message": f"namespace {name} is being terminated",
            "field": "metadata.namespace",
        }
        error.details["causes"] = [cause]
        raise error


PLUGIN: Final = Plugin("NamespaceLifecycle", admit, (Call("CREATE", ANY, ANY), Call("DELETE", NAMESPACES)))
