"""Objects for tests of authentication and authorization, and a place that keeps them."""

from __future__ import annotations

from collections.abc import Iterable

from moorage.admission.users import AUTHENTICATED, User
from moorage.api.manifests import Manifest
from moorage_cluster.apiserver.auth.attributes import RequestAttributes

RBAC = "rbac.authorization.k8s.io"
ALICE = User("alice", (AUTHENTICATED,))

_STORAGES = {
    "Role": f"{RBAC}/roles",
    "ClusterRole": f"{RBAC}/clusterroles",
    "RoleBinding": f"{RBAC}/rolebindings",
    "ClusterRoleBinding": f"{RBAC}/clusterrolebindings",
    "ServiceAccount": "/serviceaccounts",
    "Secret": "/secrets",
    "Pod": "/pods",
    "Node": "/nodes",
}


class Store:
    """Objects in memory: what the server's storage looks like to those who only read it."""

    def __init__(self, *objects: Manifest) -> None:
        self._objects: dict[tuple[str, str, str], Manifest] = {}
        for obj in objects:
            self.put(obj)

    def put(self, obj: Manifest) -> None:
        self._objects[_key(obj)] = obj

    def remove(self, obj: Manifest) -> None:
        del self._objects[_key(obj)]

    def find(self, storage: str, namespace: str, name: str) -> Manifest | None:
        return self._objects.get((storage, namespace, name))

    def all(self, storage: str, namespace: str | None = None) -> Iterable[Manifest]:
        for (kept_in, within, _), obj in self._objects.items():
            if kept_in == storage and namespace in (None, within):
                yield obj


def _key(obj: Manifest) -> tuple[str, str, str]:
    meta = obj["metadata"]
    kind: str = obj["kind"]
    return _STORAGES.get(kind, kind), meta.get("namespace", ""), meta["name"]


def rule(verbs: str, resources: str = "", groups: str = "core", names: str = "", urls: str = "") -> Manifest:
    written: Manifest = {"verbs": verbs.split()}
    if resources:
        written["apiGroups"] = ["" if group == "core" else group for group in groups.split()]
        written["resources"] = resources.split()
    if names:
        written["resourceNames"] = names.split()
    if urls:
        written["nonResourceURLs"] = urls.split()
    return written


def role(name: str, *rules: Manifest, namespace: str = "", **more: object) -> Manifest:
    metadata = {"name": name, "labels": more.pop("labels", {})}
    if namespace:
        metadata["namespace"] = namespace
    kind = "Role" if namespace else "ClusterRole"
    return {"kind": kind, "metadata": metadata, "rules": list(rules), **more}


def binding(
    name: str, role_name: str, *subjects: Manifest, namespace: str = "", kind: str = "ClusterRole"
) -> Manifest:
    metadata = {"name": name}
    if namespace:
        metadata["namespace"] = namespace
    return {
        "kind": "RoleBinding" if namespace else "ClusterRoleBinding",
        "metadata": metadata,
        "roleRef": {"apiGroup": RBAC, "kind": kind, "name": role_name},
        "subjects": list(subjects),
    }


def subject(kind: str, name: str, namespace: str = "") -> Manifest:
    return {"kind": kind, "name": name, **({"namespace": namespace} if namespace else {})}


def named(kind: str, name: str, namespace: str = "", uid: str = "", **more: object) -> Manifest:
    metadata: Manifest = {"name": name, "uid": uid or f"{name}-uid"}
    if namespace:
        metadata["namespace"] = namespace
    return {"kind": kind, "metadata": metadata, **more}


def asks(
    verb: str, what: str, user: User = ALICE, *, namespace: str = "", name: str = ""
) -> RequestAttributes:
    """A request about `/path`, `resource`, `resource/subresource`, or `resource.group`."""
    if what.startswith("/"):
        return RequestAttributes(user, verb, path=what, is_resource_request=False)
    resource, _, subresource = what.partition("/")
    resource, _, group = resource.partition(".")
    return RequestAttributes(user, verb, group, "v1", resource, subresource, namespace, name)
