"""What happens in a namespace when it begins and when it ends.

A new namespace gets its `default` service account and the server's CA. One that is being deleted is emptied;
when nothing is left in it, it goes.
"""

from __future__ import annotations

from moorage.api.manifests import Manifest
from moorage.apiserver.auth.bootstrap import root_ca
from moorage.apiserver.errors import ApiError
from moorage.apiserver.kinds.namespaces import finalize
from moorage.apiserver.resources import Resource, Resources
from moorage.apiserver.rest.context import Context
from moorage.apiserver.rest.deletes import DeleteOptions, Deleter
from moorage.apiserver.rest.writes import Writer
from moorage.apiserver.store import Change, Collection
from moorage.apiserver.work import Work

NAMESPACES = "/namespaces"


class NamespaceKeeper:
    """Follows namespaces from beginning to end."""

    def __init__(
        self, resources: Resources, writer: Writer, deleter: Deleter, work: Work, ca_pem: str
    ) -> None:
        self._resources = resources
        self._writer = writer
        self._deleter = deleter
        self._work = work
        self._ca_pem = ca_pem
        self._ending: set[str] = set()

    def load(self) -> None:
        """Go on with what was there before: finish beginnings and endings."""
        for stored in list(self._writer.store.collection(NAMESPACES).items.values()):
            if stored.obj["metadata"].get("deletionTimestamp"):
                self._end(stored.key[1])
            else:
                self._begin(stored.key[1])

    def follow(self, collection: Collection, change: Change) -> None:
        """Note a change, and what is to be done because of it."""
        namespace, name = change.stored.key
        if collection.name == NAMESPACES:
            if change.type == "ADDED":
                self._begin(name)
            elif change.type == "DELETED":
                self._ending.discard(name)
            elif change.stored.is_being_deleted:
                self._end(name)
        elif change.type == "DELETED" and namespace in self._ending:
            self._work.soon(lambda: self._empty(namespace))

    def _begin(self, name: str) -> None:
        account = {
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "metadata": {"name": "default", "namespace": name},
        }
        for obj in (account, root_ca(name, self._ca_pem)):
            self._ensure(name, obj)

    def _ensure(self, namespace: str, obj: Manifest) -> None:
        resource = self._resources.of_kind(obj["apiVersion"], obj["kind"])
        assert resource is not None
        if self._writer.store.find(resource.storage, namespace, obj["metadata"]["name"]) is None:
            self._writer.create(resource, namespace, obj, Context())

    def _end(self, name: str) -> None:
        self._ending.add(name)
        self._work.soon(lambda: self._empty(name))

    def _empty(self, namespace: str) -> None:
        """Delete all there is; the namespace goes when nothing is left."""
        if namespace not in self._ending:
            return
        left = 0
        for resource in self._stored_resources():
            for stored in list(self._writer.store.collection(resource.storage).within(namespace).values()):
                if not stored.is_being_deleted:
                    self._delete(resource, namespace, stored.key[1])
            left += len(self._writer.store.collection(resource.storage).within(namespace))
        if not left:
            self._finish(namespace)

    def _stored_resources(self) -> list[Resource]:
        """One resource for each collection of namespaced objects."""
        return list({one.storage: one for one in self._resources if one.namespaced}.values())

    def _delete(self, resource: Resource, namespace: str, name: str) -> None:
        try:
            self._deleter.delete(resource, namespace, name, DeleteOptions(policy="Background"), Context())
        except ApiError:
            return  # Refused by admission: it stays, and the namespace with it.

    def _finish(self, name: str) -> None:
        resource = self._resources.of_kind("v1", "Namespace")
        stored = self._writer.store.collection(NAMESPACES).get(("", name))
        if resource is None or stored is None:
            return
        self._writer.replace(resource, stored, stored.decoded(), finalize(stored.decoded()), Context())
