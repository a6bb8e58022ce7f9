"""The default objects of namespaces: the `default` service account, and the server's CA for pods.

Both are created with the namespace, and again when they are deleted. The ConfigMap of the CA is restored when
it is changed.
"""

from __future__ import annotations

from typing import Final

from moorage.api.manifests import Manifest, child
from moorage_cluster.apiserver.auth.bootstrap import ROOT_CA_NAME, root_ca
from moorage_cluster.apiserver.deferred_jobs import DeferredJobs
from moorage_cluster.apiserver.resources import APIResource, Resources
from moorage_cluster.apiserver.rest.context import Context
from moorage_cluster.apiserver.rest.writes import Writer
from moorage_cluster.apiserver.store import Change, Collection

NAMESPACES: Final = "/namespaces"
_SERVICE_ACCOUNT_NAME: Final = "default"
_PROVIDED: Final = {"/serviceaccounts": _SERVICE_ACCOUNT_NAME, "/configmaps": ROOT_CA_NAME}
"""The names of the default objects, by collection."""


class NamespaceDefaults:
    """Maintains the default objects of every namespace that is not being deleted."""

    def __init__(self, resources: Resources, writer: Writer, work: DeferredJobs, ca_pem: str) -> None:
        self._resources = resources
        self._writer = writer
        self._work = work
        self._ca_pem = ca_pem

    def load(self) -> None:
        """Create the default objects of existing namespaces."""
        for _, name in list(self._writer.store.collection(NAMESPACES).items):
            self._provide_soon(name)

    def on_change(self, collection: Collection, change: Change) -> None:
        """Create the default objects of a new namespace, and restore those that were deleted or changed."""
        namespace, name = change.stored.key
        if collection.name == NAMESPACES:
            if change.type == "ADDED":
                self._provide(name)
        elif change.type != "ADDED" and _PROVIDED.get(collection.name) == name:
            self._provide_soon(namespace)

    def _provide_soon(self, namespace: str) -> None:
        self._work.soon(lambda: self._provide(namespace))

    def _provide(self, namespace: str) -> None:
        stored = self._writer.store.collection(NAMESPACES).get(("", namespace))
        if stored is None or stored.is_being_deleted:
            return
        self._ensure(namespace, _service_account(namespace))
        self._ensure(namespace, root_ca(namespace, self._ca_pem))
        self._restore_root_ca(namespace)

    def _ensure(self, namespace: str, obj: Manifest) -> None:
        resource = self._resource(obj)
        if self._writer.store.find(resource.storage, namespace, obj["metadata"]["name"]) is None:
            self._writer.create(resource, namespace, obj, Context())

    def _restore_root_ca(self, namespace: str) -> None:
        wanted = root_ca(namespace, self._ca_pem)
        found = self._writer.store.find("/configmaps", namespace, ROOT_CA_NAME) or {}
        described = (found["metadata"].get("annotations") or {}).keys() >= _annotations(wanted).keys()
        if found.get("data") == wanted["data"] and described:
            return

        def restored(obj: Manifest) -> Manifest:
            child(obj["metadata"], "annotations").update(_annotations(wanted))
            return {**obj, "data": wanted["data"]}

        self._writer.update(self._resource(wanted), namespace, ROOT_CA_NAME, restored, Context())

    def _resource(self, obj: Manifest) -> APIResource:
        resource = self._resources.of_kind(obj["apiVersion"], obj["kind"])
        assert resource is not None
        return resource


def _service_account(namespace: str) -> Manifest:
    metadata = {"name": _SERVICE_ACCOUNT_NAME, "namespace": namespace}
    return {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata}


def _annotations(obj: Manifest) -> dict[str, str]:
    annotations: dict[str, str] = obj["metadata"]["annotations"]
    return annotations
