from __future__ import annotations

import json

import pytest

from moorage.admission.system_objects import SYSTEM_NAMESPACES
from moorage.admission.users import AUTHENTICATED, MASTERS, User
from moorage.api.manifests import Manifest
from moorage_cluster.apiserver.auth.bootstrap import bootstrap_objects, root_ca
from moorage_cluster.apiserver.auth.rbac import Rbac
from moorage_cluster.apiserver.auth.serviceaccounts import groups
from moorage_cluster.apiserver.auth.tokens import ANONYMOUS_USER
from moorage_cluster.apiserver.server_version import DEFAULT_SERVED
from tests.apiserver.auth.cluster import ALICE, Store, asks, binding, rule, subject

OBJECTS = bootstrap_objects("the CA", DEFAULT_SERVED)
SCHEDULER = User("system:kube-scheduler", (AUTHENTICATED,))
READ = "get list watch"


def of(kind: str, name: str, namespace: str | None = None) -> Manifest:
    [found] = [
        each
        for each in OBJECTS
        if (each["kind"], each["metadata"]["name"]) == (kind, name)
        and namespace in (None, each["metadata"].get("namespace"))
    ]
    return found


def test_the_schedulers_roles_have_kubernetes_rules() -> None:
    resource, storage, lease = "resource.k8s.io", "storage.k8s.io", "coordination.k8s.io"
    assert of("ClusterRole", "system:kube-scheduler")["rules"] == [
        rule("create patch update", "events", "core events.k8s.io"),
        rule("create", "leases", lease),
        rule("get list update watch", "leases", lease, names="kube-scheduler"),
        rule("create delete deletecollection get list patch update watch", "leasecandidates", lease),
        rule(READ, "nodes"),
        rule("delete get list watch", "pods"),
        rule("create", "bindings pods/binding"),
        rule("patch update", "pods/status"),
        rule(READ, "replicationcontrollers services"),
        rule(READ, "replicasets", "apps extensions"),
        rule(READ, "statefulsets", "apps"),
        rule(READ, "poddisruptionbudgets", "policy"),
        rule(READ, "persistentvolumeclaims persistentvolumes"),
        rule("create", "tokenreviews", "authentication.k8s.io"),
        rule("create", "subjectaccessreviews", "authorization.k8s.io"),
        rule(READ, "csinodes", storage),
        rule(READ, "volumeattachments", storage),
        rule(READ, "namespaces"),
        rule(READ, "csidrivers", storage),
        rule(READ, "csistoragecapacities", storage),
        rule(READ, "deviceclasses", resource),
        rule("get list patch update watch", "resourceclaims", resource),
        rule("get list patch update watch", "resourceclaims/status", resource),
        rule("update", "pods/finalizers"),
        rule(READ, "resourceslices", resource),
        rule("create delete", "resourceclaims", resource),
        rule(READ, "devicetaintrules", resource),
        rule("patch update", "resourceclaims/binding", resource),
    ]
    assert of("ClusterRole", "system:volume-scheduler")["rules"] == [
        rule("get list patch update watch", "persistentvolumes"),
        rule(READ, "storageclasses", storage),
        rule("get list patch update watch", "persistentvolumeclaims"),
    ]


@pytest.mark.parametrize(
    ("user", "verb", "what", "namespace", "name", "allowed"),
    [
        (SCHEDULER, "create", "pods/binding", "default", "p", True),
        (SCHEDULER, "patch", "pods/status", "default", "p", True),
        (SCHEDULER, "create", "pods", "default", "", False),
        (SCHEDULER, "update", "persistentvolumeclaims", "default", "c", True),
        (SCHEDULER, "get", "configmaps", "kube-system", "extension-apiserver-authentication", True),
        (SCHEDULER, "get", "configmaps", "kube-system", "other", False),
        (SCHEDULER, "get", "leases.coordination.k8s.io", "kube-system", "any", True),
        (SCHEDULER, "get", "leases.coordination.k8s.io", "default", "kube-scheduler", True),
        (SCHEDULER, "get", "leases.coordination.k8s.io", "default", "any", False),
        (SCHEDULER, "get", "/apis/apps", "", "", True),
        (ALICE, "get", "pods", "default", "", False),
        (ALICE, "create", "selfsubjectaccessreviews.authorization.k8s.io", "", "", True),
        (ALICE, "get", "/openapi/v3", "", "", True),
        (ALICE, "get", "/metrics", "", "", False),
        (ANONYMOUS_USER, "get", "/readyz", "", "", True),
        (ANONYMOUS_USER, "get", "/version/", "", "", True),
        (ANONYMOUS_USER, "get", "/api", "", "", False),
        (ANONYMOUS_USER, "create", "selfsubjectreviews.authentication.k8s.io", "", "", False),
        (User("x", ("system:monitoring",)), "get", "/metrics", "", "", True),
        (User("x", groups("default")), "get", "/openid/v1/jwks", "", "", True),
    ],
)
def test_bootstrap_permissions(
    user: User, verb: str, what: str, namespace: str, name: str, allowed: bool
) -> None:
    rbac = Rbac(Store(*OBJECTS))
    assert rbac.authorize(asks(verb, what, user, namespace=namespace, name=name)).allowed is allowed


@pytest.mark.parametrize(
    ("role", "verb", "what", "allowed"),
    [
        ("view", "list", "pods", True),
        ("view", "list", "secrets", False),
        ("view", "create", "pods", False),
        ("edit", "list", "secrets", True),
        ("edit", "list", "pods", True),
        ("edit", "create", "roles.rbac.authorization.k8s.io", False),
        ("admin", "create", "roles.rbac.authorization.k8s.io", True),
        ("admin", "delete", "deployments.apps", True),
        ("admin", "get", "limitranges", True),
        ("admin", "update", "resourcequotas", False),
        ("cluster-admin", "update", "resourcequotas", True),
    ],
)
def test_roles_for_people(role: str, verb: str, what: str, allowed: bool) -> None:
    store = Store(*OBJECTS, binding("b", role, subject("User", "alice"), namespace="default"))
    assert Rbac(store).authorize(asks(verb, what, namespace="default")).allowed is allowed


def test_gathering_roles_show_what_they_gather() -> None:
    shown = {name: of("ClusterRole", name)["rules"] for name in ("view", "edit", "admin")}
    assert shown["view"] == of("ClusterRole", "system:aggregate-to-view")["rules"]
    assert all(rule in shown["edit"] for rule in shown["view"])
    assert all(rule in shown["admin"] for rule in shown["edit"])
    assert of("ClusterRole", "admin")["aggregationRule"] == {
        "clusterRoleSelectors": [{"matchLabels": {"rbac.authorization.k8s.io/aggregate-to-admin": "true"}}]
    }


def test_every_binding_leads_to_a_role() -> None:
    rbac = Rbac(Store(*OBJECTS))
    bindings = [each for each in OBJECTS if each["kind"].endswith("Binding")]
    assert bindings
    for each in bindings:
        ref, namespace = each["roleRef"], each["metadata"].get("namespace", "")
        assert rbac.rules_of_role(ref["kind"], ref["name"], namespace), each["metadata"]["name"]


def test_namespaces_priorities_and_authorities_are_there() -> None:
    assert tuple(o["metadata"]["name"] for o in OBJECTS if o["kind"] == "Namespace") == SYSTEM_NAMESPACES
    assert of("PriorityClass", "system-cluster-critical")["value"] == 2000000000
    assert of("PriorityClass", "system-node-critical")["value"] == 2000001000
    for namespace in SYSTEM_NAMESPACES:
        assert of("ConfigMap", "kube-root-ca.crt", namespace)["data"] == {"ca.crt": "the CA"}
    assert root_ca("new", "x")["metadata"]["namespace"] == "new"
    data = of("ConfigMap", "extension-apiserver-authentication", "kube-system")["data"]
    assert data["client-ca-file"] == "the CA"
    assert json.loads(data["requestheader-username-headers"]) == ["X-Remote-User"]


def test_objects_are_the_callers_own() -> None:
    first = bootstrap_objects("x", DEFAULT_SERVED)
    for each in first:
        each["metadata"]["name"] = "changed"
        each.pop("rules", None)
    assert bootstrap_objects("the CA", DEFAULT_SERVED) == OBJECTS


def test_masters_need_no_objects() -> None:
    assert Rbac(Store()).authorize(asks("get", "/metrics", User("x", (MASTERS,)))).allowed
