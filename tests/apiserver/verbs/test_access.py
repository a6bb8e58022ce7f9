"""Who may do what, from end to end."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from moorage.admission.users import User
from moorage_cluster.apiserver.embedded import Settings
from tests.apiserver.client import Answer, Cluster, configmap, node, pod

PODS = "/api/v1/namespaces/default/pods"
MAPS = "/api/v1/namespaces/default/configmaps"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
ACCOUNTS = "/api/v1/namespaces/default/serviceaccounts"
REVIEWS = "/apis/authorization.k8s.io/v1"
CLOCKS_MAY_DIFFER_SECONDS = 60
ALICE = User("alice", ("team",))


@pytest.fixture
def guarded() -> Iterator[Cluster]:
    """A server where roles decide, and which knows Alice."""
    cluster = Cluster(Settings(authorization="RBAC", static_users={"alice-token": ALICE}))
    yield cluster
    cluster.close()


def acting(cluster: Cluster, token: str, method: str, path: str, body: Any = None, **headers: str) -> Answer:
    return cluster.request(method, path, body, {"authorization": f"Bearer {token}", **headers})


def allow(cluster: Cluster, subject: dict[str, str], verbs: list[str], *resources: str) -> None:
    """Allow somebody something in the namespace default."""
    rules = [{"apiGroups": [""], "resources": list(resources), "verbs": verbs}]
    role = cluster.create(
        f"{RBAC}/namespaces/default/roles", {"metadata": {"generateName": "r-"}, "rules": rules}
    )
    name = role["metadata"]["name"]
    binding = {
        "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name},
        "subjects": [subject],
    }
    cluster.create(f"{RBAC}/namespaces/default/rolebindings", binding)


def token_of(cluster: Cluster, account: str, **spec: Any) -> Answer:
    return cluster.post(f"{ACCOUNTS}/{account}/token", {"spec": spec})


HUMAN = {"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "alice"}
TEAM = {"kind": "Group", "apiGroup": "rbac.authorization.k8s.io", "name": "team"}
ROBOT = {"kind": "ServiceAccount", "name": "robot", "namespace": "default"}


@pytest.mark.parametrize("subject", [HUMAN, TEAM], ids=["user", "group"])
def test_role_opens_what_it_names_and_nothing_else(guarded: Cluster, subject: dict[str, str]) -> None:
    refused = acting(guarded, "alice-token", "GET", PODS)
    assert (refused.code, refused["reason"]) == (403, "Forbidden")
    assert refused.message == (
        'pods is forbidden: User "alice" cannot list resource "pods" in API group "" '
        'in the namespace "default"'
    )
    allow(guarded, subject, ["list", "create"], "pods")
    assert acting(guarded, "alice-token", "GET", PODS).code == 200
    assert acting(guarded, "alice-token", "POST", PODS, pod("a")).code == 201
    assert acting(guarded, "alice-token", "GET", f"{PODS}/a").code == 403
    assert acting(guarded, "alice-token", "DELETE", PODS).code == 403
    assert acting(guarded, "alice-token", "GET", "/api/v1/pods").code == 403
    assert acting(guarded, "alice-token", "GET", MAPS).code == 403
    assert acting(guarded, "alice-token", "GET", f"{PODS}/a/log").code == 403


def test_watch_is_a_verb_of_its_own(guarded: Cluster) -> None:
    allow(guarded, HUMAN, ["list"], "pods")
    headers = {"authorization": "Bearer alice-token"}
    assert guarded.request("GET", PODS, None, headers, watch="1").code == 403


def test_admin_may_everything_and_strangers_may_read_the_public(guarded: Cluster) -> None:
    assert guarded.get("/api/v1/secrets").code == 200
    assert acting(guarded, "wrong", "GET", "/version").code == 401
    for path, code in {"/version": 200, "/readyz": 200, "/apis": 403, PODS: 403}.items():
        assert guarded.request("GET", path, None, {"authorization": ""}).code == code, path


def test_service_account_with_a_token(guarded: Cluster) -> None:
    guarded.create(ACCOUNTS, {"metadata": {"name": "robot"}})
    issued = token_of(guarded, "robot", expirationSeconds=600)
    assert issued.code == 201
    assert issued["kind"] == "TokenRequest"
    assert issued["status"]["expirationTimestamp"] == "2026-03-01T12:10:00Z"
    token = issued["status"]["token"]
    refused = acting(guarded, token, "GET", MAPS)
    assert refused.code == 403
    assert 'User "system:serviceaccount:default:robot" cannot list' in refused.message
    allow(guarded, ROBOT, ["list"], "configmaps")
    assert acting(guarded, token, "GET", MAPS).code == 200
    review = guarded.post("/apis/authentication.k8s.io/v1/tokenreviews", {"spec": {"token": token}})
    assert review["status"]["authenticated"] is True
    assert review["status"]["user"]["username"] == "system:serviceaccount:default:robot"
    assert set(review["status"]["user"]["groups"]) == {
        "system:serviceaccounts",
        "system:serviceaccounts:default",
        "system:authenticated",
    }
    guarded.advance(600 + CLOCKS_MAY_DIFFER_SECONDS + 1)
    assert acting(guarded, token, "GET", MAPS).code == 401


def test_token_dies_with_its_account(guarded: Cluster) -> None:
    guarded.create(ACCOUNTS, {"metadata": {"name": "robot"}})
    allow(guarded, ROBOT, ["list"], "configmaps")
    token = token_of(guarded, "robot")["status"]["token"]
    assert acting(guarded, token, "GET", MAPS).code == 200
    guarded.delete(f"{ACCOUNTS}/robot")
    guarded.create(ACCOUNTS, {"metadata": {"name": "robot"}})
    assert acting(guarded, token, "GET", MAPS).code == 401


def test_token_dies_with_its_pod(guarded: Cluster) -> None:
    made = guarded.create(PODS, pod("a"))
    ref = {"kind": "Pod", "apiVersion": "v1", "name": "a", "uid": made["metadata"]["uid"]}
    token = token_of(guarded, "default", boundObjectRef=ref)["status"]["token"]
    assert acting(guarded, token, "GET", MAPS).code == 403
    guarded.delete(f"{PODS}/a")
    assert acting(guarded, token, "GET", MAPS).code == 401


def test_token_for_another_audience_is_no_good_here(guarded: Cluster) -> None:
    token = token_of(guarded, "default", audiences=["vault"])["status"]["token"]
    assert acting(guarded, token, "GET", MAPS).code == 401
    assert token_of(guarded, "default", expirationSeconds=5).code == 422
    assert token_of(guarded, "absent").code == 404


def test_impersonation(guarded: Cluster) -> None:
    def as_alice(method: str, path: str, body: Any = None) -> Answer:
        return guarded.request(method, path, body, {"impersonate-user": "alice"})

    assert as_alice("GET", MAPS).code == 403
    allow(guarded, HUMAN, ["list"], "configmaps")
    assert as_alice("GET", MAPS).code == 200
    who = as_alice("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", {})
    assert who["status"]["userInfo"]["username"] == "alice"
    forbidden = acting(guarded, "alice-token", "GET", MAPS, **{"impersonate-user": "kubernetes-admin"})
    assert forbidden.code == 403
    assert 'User "alice" cannot impersonate' in forbidden.message


def test_access_reviews(guarded: Cluster) -> None:
    allow(guarded, HUMAN, ["list"], "configmaps")
    listing = {"namespace": "default", "verb": "list", "resource": "configmaps"}
    deleting = {**listing, "verb": "delete"}
    mine = f"{REVIEWS}/selfsubjectaccessreviews"
    for attributes, allowed in ((listing, True), (deleting, False)):
        spec = {"resourceAttributes": attributes}
        answer = acting(guarded, "alice-token", "POST", mine, {"spec": spec})
        assert answer.code == 201
        assert answer["status"]["allowed"] is allowed
        theirs = guarded.post(f"{REVIEWS}/subjectaccessreviews", {"spec": {**spec, "user": "alice"}})
        assert theirs["status"]["allowed"] is allowed
    rules = f"{REVIEWS}/selfsubjectrulesreviews"
    known = acting(guarded, "alice-token", "POST", rules, {"spec": {"namespace": "default"}})
    assert {"verbs": ["list"], "apiGroups": [""], "resources": ["configmaps"]} in known["status"][
        "resourceRules"
    ]
    assert acting(guarded, "alice-token", "POST", f"{REVIEWS}/subjectaccessreviews", {"spec": {}}).code == 403


def test_escalation_beyond_own_permissions_is_rejected(guarded: Cluster) -> None:
    everything = [{"apiGroups": ["rbac.authorization.k8s.io"], "resources": ["roles"], "verbs": ["create"]}]
    guarded.create(f"{RBAC}/clusterroles", {"metadata": {"name": "maker"}, "rules": everything})
    binding = {
        "metadata": {"name": "maker"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "maker"},
        "subjects": [HUMAN],
    }
    guarded.create(f"{RBAC}/namespaces/default/rolebindings", binding)

    def make(name: str, rules: list[dict[str, Any]]) -> Answer:
        body = {"metadata": {"name": name}, "rules": rules}
        return acting(guarded, "alice-token", "POST", f"{RBAC}/namespaces/default/roles", body)

    assert make("same", everything).code == 201
    more = make("more", [{"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]}])
    assert more.code == 403
    assert "is attempting to grant RBAC permissions not currently held" in more.message


def test_scheduler_has_what_it_needs_and_no_more(guarded: Cluster) -> None:
    def scheduler(method: str, path: str, body: Any = None) -> int:
        return guarded.request(method, path, body, {"impersonate-user": "system:kube-scheduler"}).code

    guarded.create("/api/v1/nodes", node("n"))
    guarded.create(PODS, pod("a"))
    assert scheduler("GET", "/api/v1/nodes") == 200
    assert scheduler("GET", "/apis/storage.k8s.io/v1/csinodes") == 200
    binding = {"metadata": {"name": "a"}, "target": {"kind": "Node", "name": "n"}}
    assert scheduler("POST", f"{PODS}/a/binding", binding) == 201
    assert scheduler("GET", "/api/v1/secrets") == 403
    assert scheduler("POST", MAPS, configmap("a")) == 403
    assert scheduler("DELETE", "/api/v1/nodes/n") == 403


@pytest.mark.parametrize("timeout", ["", "0", "0s", "-1s", "1.5s", "1h30m"])
def test_timeouts(cluster: Cluster, timeout: str) -> None:
    assert cluster.get("/api/v1/namespaces/default", timeout=timeout).code == 200


@pytest.mark.parametrize(
    ("timeout", "why"),
    [
        ("invalid", 'invalid duration "invalid"'),
        ("5", 'missing unit in duration "5"'),
        ("5x", 'unknown unit "x" in duration "5x"'),
    ],
)
def test_timeouts_that_are_no_durations(cluster: Cluster, timeout: str, why: str) -> None:
    answer = cluster.get("/api/v1/namespaces/default", timeout=timeout)
    assert (answer.code, answer["reason"]) == (400, "BadRequest")
    assert answer.message == f"invalid timeout specified in the request URL - time: {why}"
