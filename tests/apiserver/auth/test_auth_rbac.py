from __future__ import annotations

from collections.abc import Callable

import pytest

from moorage.admission.users import MASTERS, User
from moorage_cluster.apiserver.auth.attributes import RequestAttributes, forbidden, forbidden_message
from moorage_cluster.apiserver.auth.authorizers import AlwaysAllow
from moorage_cluster.apiserver.auth.rbac import Rbac, aggregated_rules
from moorage_cluster.apiserver.auth.rules import Rule
from moorage_cluster.apiserver.auth.tokens import ANONYMOUS_USER
from tests.apiserver.auth.cluster import ALICE, Store, asks, binding, role, rule, subject

TO_ALICE = subject("User", "alice")
ACCOUNT = User("system:serviceaccount:ci:runner", ("system:serviceaccounts", "system:serviceaccounts:ci"))


def with_rule(written: dict[str, object]) -> Rbac:
    return Rbac(Store(role("r", written), binding("b", "r", TO_ALICE)))


@pytest.mark.parametrize(
    ("granted", "request_", "allowed"),
    [
        (rule("get", "pods"), asks("get", "pods", namespace="default"), True),
        (rule("get", "pods"), asks("list", "pods", namespace="default"), False),
        (rule("get", "pods"), asks("get", "pods/status"), False),
        (rule("get", "pods"), asks("get", "services"), False),
        (rule("get", "pods"), asks("get", "pods.metrics.k8s.io"), False),
        (rule("*", "pods"), asks("evict", "pods"), True),
        (rule("get", "*"), asks("get", "pods/log"), True),
        (rule("get", "*/scale", "apps"), asks("get", "deployments/scale"), False),
        (rule("get", "*/scale", "*"), asks("get", "deployments/scale"), True),
        (rule("get", "*/scale", "*"), asks("get", "deployments"), False),
        (rule("get", "*/scale", "*"), asks("get", "deployments/autoscale"), False),
        (rule("get", "pods/*"), asks("get", "pods/log"), False),
        (rule("get", "deployments", "core apps"), asks("get", "deployments.apps"), True),
        (rule("get", "secrets", names="a b"), asks("get", "secrets", name="b"), True),
        (rule("get", "secrets", names="a b"), asks("get", "secrets", name="c"), False),
        (rule("list", "secrets", names="a"), asks("list", "secrets"), False),
        (rule("get", urls="/healthz"), asks("get", "/healthz"), True),
        (rule("get", urls="/healthz"), asks("get", "/healthz/etcd"), False),
        (rule("get", urls="/healthz/*"), asks("get", "/healthz/etcd"), True),
        (rule("get", urls="/healthz/*"), asks("get", "/healthz"), False),
        (rule("get", urls="*"), asks("get", "/any/where"), True),
        (rule("get", urls="*"), asks("post", "/any/where"), False),
        (rule("*", "*", "*"), asks("get", "/healthz"), False),
        (rule("*", urls="*"), asks("get", "pods"), False),
    ],
)
def test_a_rule_allows(granted: dict[str, object], request_: RequestAttributes, allowed: bool) -> None:
    assert with_rule(granted).authorize(request_).allowed is allowed


@pytest.mark.parametrize(
    ("bound", "user", "namespace", "reason"),
    [
        (
            binding("b", "r", TO_ALICE),
            ALICE,
            "",
            'RBAC: allowed by ClusterRoleBinding "b" of ClusterRole "r" to User "alice"',
        ),
        (
            binding("b", "r", subject("Group", "system:authenticated"), TO_ALICE),
            ALICE,
            "default",
            'RBAC: allowed by ClusterRoleBinding "b" of ClusterRole "r" to Group "system:authenticated"',
        ),
        (
            binding("b", "r", TO_ALICE, namespace="default"),
            ALICE,
            "default",
            'RBAC: allowed by RoleBinding "b/default" of ClusterRole "r" to User "alice"',
        ),
        (binding("b", "r", TO_ALICE, namespace="default"), ALICE, "other", None),
        (binding("b", "r", TO_ALICE, namespace="default"), ALICE, "", None),
        (
            binding("b", "local", TO_ALICE, namespace="default", kind="Role"),
            ALICE,
            "default",
            'RBAC: allowed by RoleBinding "b/default" of Role "local" to User "alice"',
        ),
        (
            binding("b", "r", subject("ServiceAccount", "runner", "ci")),
            ACCOUNT,
            "",
            'RBAC: allowed by ClusterRoleBinding "b" of ClusterRole "r" to ServiceAccount "runner/ci"',
        ),
        (
            binding("b", "r", subject("ServiceAccount", "runner"), namespace="ci"),
            ACCOUNT,
            "ci",
            'RBAC: allowed by RoleBinding "b/ci" of ClusterRole "r" to ServiceAccount "runner/ci"',
        ),
        (binding("b", "r", subject("ServiceAccount", "runner")), ACCOUNT, "", None),
        (binding("b", "r", subject("ServiceAccount", "runner", "default")), ACCOUNT, "", None),
        (
            binding("b", "r", subject("Group", "system:serviceaccounts:ci")),
            ACCOUNT,
            "",
            'RBAC: allowed by ClusterRoleBinding "b" of ClusterRole "r" to Group "system:serviceaccounts:ci"',
        ),
        (binding("b", "r", subject("Robot", "alice")), ALICE, "", None),
    ],
)
def test_a_binding_applies(bound: dict[str, object], user: User, namespace: str, reason: str | None) -> None:
    local = role("local", rule("get", "pods"), namespace="default")
    decision = Rbac(Store(role("r", rule("get", "pods")), local, bound)).authorize(
        asks("get", "pods", user, namespace=namespace)
    )
    assert (decision.allowed, decision.reason) == (reason is not None, reason or "")


def test_masters_may_do_everything() -> None:
    assert Rbac(Store()).authorize(asks("delete", "nodes", User("root", (MASTERS,)))) == (True, "")


def test_a_role_that_is_not_there_is_named() -> None:
    store = Store(binding("a", "gone", TO_ALICE), binding("b", "r", TO_ALICE, namespace="x", kind="Role"))
    rbac = Rbac(store)
    assert rbac.authorize(asks("get", "pods")) == (
        False,
        'RBAC: clusterrole.rbac.authorization.k8s.io "gone" not found',
    )
    assert rbac.authorize(asks("get", "pods", namespace="x")).reason == (
        'RBAC: [clusterrole.rbac.authorization.k8s.io "gone" not found, '
        'role.rbac.authorization.k8s.io "r" not found]'
    )


def test_changes_are_seen_at_once() -> None:
    store = Store()
    rbac = Rbac(store)
    request = asks("get", "pods", namespace="default")
    bound = binding("b", "r", TO_ALICE, namespace="default")
    steps: list[tuple[Callable[[], None], bool]] = [
        (lambda: None, False),
        (lambda: store.put(role("r", rule("get", "pods"))), False),
        (lambda: store.put(bound), True),
        (lambda: store.put(role("r", rule("list", "pods"))), False),
        (lambda: store.put(role("r", rule("get", "pods"))), True),
        (lambda: store.put(binding("b", "r", subject("User", "bob"), namespace="default")), False),
        (lambda: store.put(bound), True),
        (lambda: store.remove(bound), False),
    ]
    for number, (change, allowed) in enumerate(steps):
        change()
        assert rbac.authorize(request).allowed is allowed, number


def selecting(**labels: str) -> dict[str, object]:
    return {"clusterRoleSelectors": [{"matchLabels": labels}]}


def test_aggregated_roles_gather_and_follow_changes() -> None:
    store = Store(
        role("top", rule("delete", "pods"), aggregationRule=selecting(to="top")),
        role("middle", labels={"to": "top"}, aggregationRule=selecting(to="middle")),
        role("leaf", rule("get", "pods"), labels={"to": "middle"}),
        binding("b", "top", TO_ALICE),
    )
    rbac = Rbac(store)
    assert rbac.authorize(asks("get", "pods")).allowed
    assert not rbac.authorize(asks("delete", "pods")).allowed  # its own rules are not its own
    store.put(role("leaf", rule("list", "pods"), labels={"to": "middle"}))
    assert not rbac.authorize(asks("get", "pods")).allowed
    assert rbac.authorize(asks("list", "pods")).allowed


def test_circles_of_aggregation_end() -> None:
    one = role("one", labels={"to": "two"}, aggregationRule=selecting(to="one"))
    two = role("two", labels={"to": "one"}, aggregationRule=selecting(to="two"))
    leaf = role("leaf", rule("get", "pods"), labels={"to": "two"})
    assert aggregated_rules(one, [one, two, leaf]) == (Rule(("get",), ("",), ("pods",)),)


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        (
            asks("list", "pods", namespace="default"),
            'pods is forbidden: User "alice" cannot list resource "pods" in API group "" '
            'in the namespace "default"',
        ),
        (
            asks("get", "nodes/status", name="n1"),
            'nodes "n1" is forbidden: User "alice" cannot get resource "nodes/status" in API group "" '
            "at the cluster scope",
        ),
        (
            asks("create", "deployments.apps", namespace="x"),
            'deployments.apps is forbidden: User "alice" cannot create resource "deployments" '
            'in API group "apps" in the namespace "x"',
        ),
        (asks("get", "/metrics"), 'forbidden: User "alice" cannot get path "/metrics"'),
        (
            asks("get", "/<b>&", User("<i>")),
            'forbidden: User "&lt;i&gt;" cannot get path "/&lt;b&gt;&amp;"',
        ),
    ],
)
def test_refusals_are_worded(request_: RequestAttributes, message: str) -> None:
    error = forbidden(request_)
    assert (error.code, error.reason, error.message) == (403, "Forbidden", message)
    assert message.endswith(forbidden_message(request_))


def test_a_refusal_says_the_reason() -> None:
    assert forbidden(asks("get", "/x"), "RBAC: oh").message.endswith('path "/x": RBAC: oh')


@pytest.mark.parametrize(
    ("request_", "allowed"),
    [
        (asks("delete", "nodes", ALICE), True),
        (asks("get", "/metrics", ALICE), True),
        (asks("get", "/livez", ANONYMOUS_USER), True),
        (asks("get", "/version", ANONYMOUS_USER), True),
        (asks("post", "/version", ANONYMOUS_USER), False),
        (asks("get", "/metrics", ANONYMOUS_USER), False),
        (asks("get", "pods", ANONYMOUS_USER), False),
    ],
)
def test_always_allow_means_every_authenticated_user(request_: RequestAttributes, allowed: bool) -> None:
    assert AlwaysAllow().authorize(request_).allowed is allowed
