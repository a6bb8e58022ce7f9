"""Creating a pod without a server: decoding, defaults, admission and validation, as for `kubectl create`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from moorage.admission.chain import Chain
from moorage.admission.cluster_objects import ClusterObjects
from moorage.admission.new_objects import NewResource, creation, decode_new
from moorage.admission.plugin import Plugin
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
from moorage.api.decode import InputError
from moorage.api.files import Located
from moorage.api.manifests import Manifest
from moorage.apimachinery.errors import ApiError, invalid
from moorage.apimachinery.schema.builtin import known_schema
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
_POD_RESOURCE: Final = NewResource("", "pods")


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
        obj = decode_new(pod, known_schema("v1", "Pod"))
        meta = obj["metadata"]
        default_pod(obj)
        for key in _SET_BY_SERVERS:
            meta.pop(key, None)
        self._admit(obj, meta["namespace"])
        prepare_new_pod(obj)
        if problems := validate_metadata(meta) + validate_new_pod(obj):
            raise invalid("", "Pod", meta["name"], problems)
        return obj

    def _admit(self, pod: Manifest, namespace: str) -> None:
        if not self._has_namespaces:
            self.objects.add({"kind": "Namespace", "metadata": {"name": namespace}})
        self._chain.admit(creation(_POD_RESOURCE, pod), self.objects)
