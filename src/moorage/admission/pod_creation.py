"""Creating a pod without a server: decoding, defaults, admission and validation, as for `kubectl create`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from moorage.admission.attributes import Attributes
from moorage.admission.chain import Chain
from moorage.admission.cluster_objects import ClusterObjects, json_copy
from moorage.admission.plugin import PODS, Plugin
from moorage.admission.plugins import (
    default_toleration_seconds,
    limit_ranger,
    namespace_lifecycle,
    pod_topology_labels,
    priority,
    runtime_class,
)
from moorage.admission.pods.defaults import default_pod
from moorage.admission.pods.preparation import prepare_new_pod
from moorage.admission.pods.validation import validate_new_pod
from moorage.admission.users import MASTERS, User
from moorage.api.decode import InputError
from moorage.api.files import Located
from moorage.api.manifests import Manifest
from moorage.apimachinery.errors import ApiError, invalid
from moorage.apimachinery.schema.builtin import known_schema
from moorage.apimachinery.schema.decoding import cannot_be_handled, decode_kind
from moorage.apimachinery.schema.strictness import NO_PROBLEMS
from moorage.apimachinery.validation.metadata import NOT_IN_NEW_OBJECTS, validate_metadata

POD_PLUGINS: Final[tuple[Plugin, ...]] = (
    namespace_lifecycle.PLUGIN,
    limit_ranger.DEFAULTS,
    *priority.PLUGINS,
    default_toleration_seconds.PLUGIN,
    runtime_class.PLUGIN,
    *pod_topology_labels.PLUGINS,
    *limit_ranger.BOUNDS,
)
"""The plugins for new pods, in a server's order.

ServiceAccount and ResourceQuota are not among them: no decision depends on them, and they need more of a
cluster than scheduling does.
"""
_SET_BY_SERVERS: Final = (*NOT_IN_NEW_OBJECTS, "creationTimestamp", "generation")
_CREATOR: Final = User("kubernetes-admin", (MASTERS,))


@dataclass(frozen=True, slots=True)
class _PodResource:
    """The resource that pods are written to."""

    group: str = ""
    plural: str = "pods"
    namespaced: bool = True
    is_custom: bool = False
    storage: str = PODS


_POD_RESOURCE: Final = _PodResource()


class PodCreation:
    """Processes new pods as a server with the objects of a cluster does.

    cluster: manifests of any kinds. If no Namespace is among them, all namespaces are assumed to exist.
    """

    def __init__(self, cluster: Iterable[Located]) -> None:
        self._chain = Chain(POD_PLUGINS)
        self.objects = ClusterObjects()
        """The objects that admission reads."""
        self._has_namespaces = False
        for manifest, where in cluster:
            try:
                self.objects.add(manifest)
            except ApiError as error:
                raise InputError(where, error.message) from None
            self._has_namespaces |= isinstance(manifest, dict) and manifest.get("kind") == "Namespace"

    def created(self, pod: Manifest) -> Manifest:
        """A pod with a name and a namespace as it would be stored, but for the metadata and the status that
        a server sets; ApiError if it would be rejected.
        """
        obj = _decoded(pod)
        meta = obj["metadata"]
        default_pod(obj)
        for key in _SET_BY_SERVERS:
            meta.pop(key, None)
        self._admit(obj, meta["namespace"], meta["name"])
        prepare_new_pod(obj)
        if problems := validate_metadata(meta) + validate_new_pod(obj):
            raise invalid("", "Pod", meta["name"], problems)
        return obj

    def _admit(self, pod: Manifest, namespace: str, name: str) -> None:
        if not self._has_namespaces:
            self.objects.add({"kind": "Namespace", "metadata": {"name": namespace}})
        attributes = Attributes("CREATE", _POD_RESOURCE, "", namespace, name, pod, None, _CREATOR)
        self._chain.admit(attributes, self.objects)


def _decoded(pod: Manifest) -> Manifest:
    """A pod without unknown fields, with values of the right types; ApiError (400) otherwise."""
    obj, unknown = decode_kind(json_copy(pod), "v1", "Pod", known_schema("v1", "Pod"))
    if unknown:
        raise cannot_be_handled("Pod", "v1", NO_PROBLEMS.strict_error(unknown))
    return obj
