"""An update or apply that creates an object needs the right to create it, as on a real API server."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from moorage.admission.users import User
from moorage_cluster.apiserver.embedded import Settings
from tests.apiserver.client import PATCHES, Answer, Cluster, configmap

MAPS = "/api/v1/namespaces/default/configmaps"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
RBAC = "/apis/rbac.authorization.k8s.io/v1/namespaces/default"
TOKEN = {"authorization": "Bearer alice-token"}


@pytest.fixture
def guarded() -> Iterator[Cluster]:
    cluster = Cluster(Settings(authorization="RBAC", static_users={"alice-token": User("alice", ())}))
    yield cluster
    cluster.close()


def allow(cluster: Cluster, *verbs: str, **more: Any) -> None:
    """Give Alice verbs on config maps and leases."""
    rule = {
        "apiGroups": ["", "coordination.k8s.io"],
        "resources": ["configmaps", "leases"],
        "verbs": list(verbs),
    }
    cluster.create(f"{RBAC}/roles", {"metadata": {"name": "r"}, "rules": [rule | more]})
    binding = {
        "metadata": {"name": "r"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "r"},
        "subjects": [{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "alice"}],
    }
    cluster.create(f"{RBAC}/rolebindings", binding)


def applied(cluster: Cluster, name: str, **query: str) -> Answer:
    headers = TOKEN | {"content-type": PATCHES["apply"]}
    body = configmap(name, x="y")
    return cluster.request("PATCH", f"{MAPS}/{name}", body, headers, fieldManager="m", **query)


def put_lease(cluster: Cluster, name: str, **spec: Any) -> Answer:
    return cluster.request("PUT", f"{LEASES}/{name}", {"metadata": {"name": name}, "spec": spec}, TOKEN)


@pytest.mark.parametrize("query", [{}, {"dryRun": "All"}], ids=["apply", "dry run"])
def test_patch_alone_does_not_create_by_server_side_apply(guarded: Cluster, query: dict[str, str]) -> None:
    allow(guarded, "patch")
    refused = applied(guarded, "a", **query)
    assert (refused.code, refused["reason"]) == (403, "Forbidden")
    assert refused["details"] == {"name": "a", "kind": "configmaps"}
    assert refused.message == (
        'configmaps "a" is forbidden: User "alice" cannot create resource "configmaps" in API group "" '
        'in the namespace "default"'
    )
    assert not guarded.exists(f"{MAPS}/a")
    guarded.create(MAPS, configmap("a"))
    assert applied(guarded, "a", **query).code == 200


def test_update_alone_does_not_create_by_put(guarded: Cluster) -> None:
    allow(guarded, "update")
    refused = put_lease(guarded, "a")
    assert refused.code == 403
    assert 'cannot create resource "leases" in API group "coordination.k8s.io"' in refused.message
    assert not guarded.exists(f"{LEASES}/a")
    assert put_lease(guarded, "a", leaseDurationSeconds=-1).code == 422, "what is wrong is said first"


def test_create_restricted_to_a_name_creates_that_name_by_update(guarded: Cluster) -> None:
    allow(guarded, "patch", "update", "create", resourceNames=["mine"])
    assert [put_lease(guarded, "mine").code, applied(guarded, "mine").code] == [201, 201]
    assert [put_lease(guarded, "other").code, applied(guarded, "other").code] == [403, 403]
