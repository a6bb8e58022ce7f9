"""Creating a pod without a server: its defaults, its admission and its validation."""

from __future__ import annotations

from collections.abc import Iterable
from random import Random
from typing import Any, Final

from moorage.admission.chain import Chain
from moorage.api.decode import InputError
from moorage.api.files import Located
from moorage.api.manifests import Manifest, utc_now
from moorage.apimachinery.errors import ApiError, bad_request
from moorage_cluster.apiserver.admission.default_plugins import default_plugins
from moorage_cluster.apiserver.auth.bootstrap import bootstrap_objects
from moorage_cluster.apiserver.kinds.catalog import builtin_resources
from moorage_cluster.apiserver.options import WriteOptions
from moorage_cluster.apiserver.rest.bodies import decode_object
from moorage_cluster.apiserver.rest.context import Context
from moorage_cluster.apiserver.rest.writes import Writer
from moorage_cluster.apiserver.store import Store, decode, encode

_READ: Final = ("Namespace", "LimitRange", "PriorityClass", "RuntimeClass", "Node")
"""The kinds that the admission of pods reads."""
_LEFT_OUT: Final = ("ServiceAccount", "ResourceQuota")
"""Admission plugins that no decision depends on, and that need more of a cluster than scheduling does."""
_AS_KUBECTL: Final = WriteOptions(dry_run=True, field_validation="Strict")


class PodCreation:
    """Processes new pods as a server with the objects of a cluster does.

    cluster: manifests of any kinds. If no Namespace is among them, all namespaces are assumed to exist.
    """

    def __init__(self, cluster: Iterable[Located]) -> None:
        self._store = Store()
        self._resources = {
            resource.kind: resource
            for resource in builtin_resources(self._store.all, utc_now)
            if resource.kind in (*_READ, "Pod")
        }
        random = Random(0)
        plugins = (plugin for plugin in default_plugins(random) if plugin.name not in _LEFT_OUT)
        self._writer = Writer(self._store, Chain(plugins), utc_now, random)
        for manifest in bootstrap_objects(ca_pem=""):
            self._load(manifest)
        self._has_namespaces = False
        for manifest, where in cluster:
            try:
                self._load(manifest)
            except ApiError as error:
                raise InputError(where, error.message) from None
            self._has_namespaces |= isinstance(manifest, dict) and manifest.get("kind") == "Namespace"

    def created(self, pod: Manifest) -> Manifest:
        """A pod with a name and a namespace as it would be stored; ApiError if it would be rejected."""
        namespace, context = pod["metadata"]["namespace"], Context(options=_AS_KUBECTL)
        if not self._has_namespaces:
            self._load({"kind": "Namespace", "metadata": {"name": namespace}})
        resource = self._resources["Pod"]
        obj = decode_object(_copied(pod), resource, context)
        created: Manifest = decode(self._writer.create(resource, namespace, obj, context))
        return created

    def _load(self, manifest: Any) -> None:
        """Add an object, if the admission of pods reads its kind."""
        kind = manifest.get("kind") if isinstance(manifest, dict) else None
        resource = self._resources.get(kind) if kind in _READ else None
        if resource is None or manifest.get("apiVersion") not in (None, resource.api_version):
            return
        obj = decode_object(_copied(manifest), resource, Context())
        if not obj["metadata"].get("name"):
            raise bad_request(f"{kind}: metadata.name: missing")
        if resource.namespaced:
            obj["metadata"].setdefault("namespace", "default")
        resource.strategy.default(obj)
        self._store.load(resource.storage, obj, 0, {})


def _copied(manifest: Any) -> Any:
    """A copy as decoded from a request's body."""
    try:
        return decode(encode(manifest))
    except (RecursionError, TypeError, ValueError) as error:
        raise bad_request(f"the object cannot be written as JSON: {error}") from None
