from __future__ import annotations

import pytest

from moorage.admission.users import AUTHENTICATED, MASTERS, UNAUTHENTICATED, User
from moorage.api.manifests import Manifest
from moorage.apimachinery.errors import ApiError
from moorage_cluster.apiserver.auth.impersonation import impersonate
from moorage_cluster.apiserver.auth.rbac import Rbac
from tests.apiserver.auth.cluster import ALICE, Store, asks, binding, role, rule, subject

AUTH = "authentication.k8s.io"
ROOT = User("root", (MASTERS,))
AGENT = User(
    "system:serviceaccount:kube-system:agent", extra={f"{'authentication.kubernetes.io'}/node-name": ("n1",)}
)
Headers = list[tuple[str, str]]


def acting(headers: Headers, *rules: Manifest, user: User = ALICE) -> User:
    store = Store(role("r", *rules), binding("b", "r", subject("User", user.name)))
    return impersonate(asks("list", "pods", user, namespace="default"), headers, Rbac(store).authorize)


def as_(user: str, *groups: str) -> Headers:
    return [("Impersonate-User", user), *(("Impersonate-Group", group) for group in groups)]


@pytest.mark.parametrize(
    ("headers", "user"),
    [
        ([("Accept", "*/*")], ROOT),
        (as_("bob"), User("bob", (AUTHENTICATED,))),
        (as_("bob", "a", "b"), User("bob", ("a", "b", AUTHENTICATED))),
        (as_("bob", AUTHENTICATED, "b"), User("bob", (AUTHENTICATED, "b"))),
        (as_("bob", UNAUTHENTICATED), User("bob", (UNAUTHENTICATED,))),
        (as_("bob", MASTERS), User("bob", (MASTERS, AUTHENTICATED))),
        (as_("system:anonymous"), User("system:anonymous", (UNAUTHENTICATED,))),
        (
            as_("system:serviceaccount:ci:runner"),
            User(
                "system:serviceaccount:ci:runner",
                ("system:serviceaccounts", "system:serviceaccounts:ci", AUTHENTICATED),
            ),
        ),
        (
            as_("system:serviceaccount:ci:runner", "only"),
            User("system:serviceaccount:ci:runner", ("only", AUTHENTICATED)),
        ),
        (as_("system:serviceaccount:bad"), User("system:serviceaccount:bad", (AUTHENTICATED,))),
        (as_("system:node:n1"), User("system:node:n1", ("system:nodes", AUTHENTICATED))),
        (
            [
                ("impersonate-user", "bob"),
                ("IMPERSONATE-UID", "7"),
                ("Impersonate-Extra-Acme.io%2FScopes", "a"),
                ("Impersonate-Extra-Acme.io%2fScopes", "b"),
                ("Impersonate-Extra-50%", "c"),
            ],
            User("bob", (AUTHENTICATED,), "7", {"acme.io/scopes": ("a", "b"), "50%": ("c",)}),
        ),
    ],
)
def test_an_administrator_can_impersonate(headers: Headers, user: User) -> None:
    assert acting(headers, user=ROOT) == user


ON_PODS = rule("impersonate-on:user-info:list", "pods")


@pytest.mark.parametrize(
    ("headers", "rules", "allowed"),
    [
        (as_("bob"), [rule("impersonate", "users")], True),
        (as_("bob"), [rule("impersonate", "users", names="carol")], False),
        (as_("bob", "a"), [rule("impersonate", "users")], False),
        (as_("bob", "a"), [rule("impersonate", "users groups")], True),
        (as_("system:serviceaccount:ci:runner"), [rule("impersonate", "users")], False),
        (as_("system:serviceaccount:ci:runner"), [rule("impersonate", "serviceaccounts")], True),
        ([*as_("bob"), ("Impersonate-Uid", "7")], [rule("impersonate", "users")], False),
        (
            [*as_("bob"), ("Impersonate-Uid", "7")],
            [rule("impersonate", "users"), rule("impersonate", "uids", AUTH, names="7")],
            True,
        ),
        (
            [*as_("bob"), ("Impersonate-Extra-Scopes", "x")],
            [rule("impersonate", "users"), rule("impersonate", "userextras/scopes", AUTH, names="x")],
            True,
        ),
        (
            [*as_("bob"), ("Impersonate-Extra-Scopes", "y")],
            [rule("impersonate", "users"), rule("impersonate", "userextras/scopes", AUTH, names="x")],
            False,
        ),
        (as_("bob"), [ON_PODS, rule("impersonate:user-info", "users", AUTH, names="bob")], True),
        (as_("bob"), [ON_PODS], False),
        (as_("bob"), [rule("impersonate:user-info", "users", AUTH, names="bob")], False),
        (as_("bob", MASTERS), [ON_PODS, rule("impersonate:user-info", "*", AUTH)], False),
        (
            as_("bob", "a", "b", "c", "d"),
            [ON_PODS, rule("impersonate:user-info", "users groups", AUTH)],
            True,
        ),
        (
            [*as_("bob"), ("Impersonate-Extra-Acme.io%2Fx", "v")],
            [ON_PODS, rule("impersonate:user-info", "users userextras/acme.io/x", AUTH)],
            True,
        ),
        (
            [*as_("bob"), ("Impersonate-Extra-Plain", "v")],
            [ON_PODS, rule("impersonate:user-info", "*", AUTH)],
            False,
        ),
        (
            as_("system:serviceaccount:ci:runner"),
            [
                rule("impersonate-on:serviceaccount:list", "pods"),
                rule("impersonate:serviceaccount", "serviceaccounts", AUTH),
            ],
            True,
        ),
        (
            as_("system:node:n1"),
            [
                rule("impersonate-on:arbitrary-node:list", "pods"),
                rule("impersonate:arbitrary-node", "nodes", AUTH),
            ],
            True,
        ),
    ],
)
def test_permission_is_needed_for_every_part(headers: Headers, rules: list[Manifest], allowed: bool) -> None:
    if allowed:
        assert acting(headers, *rules).name == headers[0][1]
        return
    with pytest.raises(ApiError) as caught:
        acting(headers, *rules)
    assert caught.value.code == 403


def test_a_nodes_agent_may_act_as_its_node_only() -> None:
    rules = (
        rule("impersonate-on:associated-node:list", "pods"),
        rule("impersonate:associated-node", "nodes", AUTH, names="*"),
    )
    node = User("system:node:n1", ("system:nodes", AUTHENTICATED))
    assert acting(as_("system:node:n1"), *rules, user=AGENT) == node
    with pytest.raises(ApiError, match="impersonate-on:arbitrary-node:list"):
        acting(as_("system:node:n2"), *rules, user=AGENT)


def test_the_first_refusal_is_the_answer() -> None:
    with pytest.raises(ApiError) as caught:
        acting(as_("bob"))
    assert caught.value.message == (
        'pods is forbidden: User "alice" cannot impersonate-on:user-info:list resource "pods" '
        'in API group "" in the namespace "default"'
    )
    with pytest.raises(ApiError) as caught:
        acting(as_("system:serviceaccount:ci:runner", "g"))
    assert caught.value.message == (
        'serviceaccounts "runner" is forbidden: User "alice" cannot impersonate resource "serviceaccounts" '
        'in API group "" in the namespace "ci"'
    )


@pytest.mark.parametrize(
    ("headers", "shown"),
    [
        (
            [("Impersonate-Group", "a"), ("Impersonate-Group", "b")],
            'Name:"", UID:"", Groups:[]string{"a", "b"}, Extra:map[string][]string(nil)',
        ),
        (
            [("Impersonate-Uid", "7")],
            'Name:"", UID:"7", Groups:[]string(nil), Extra:map[string][]string(nil)',
        ),
        (
            [("Impersonate-Extra-B", "x"), ("Impersonate-Extra-A", "y")],
            'Name:"", UID:"", Groups:[]string(nil), '
            'Extra:map[string][]string{"a":[]string{"y"}, "b":[]string{"x"}}',
        ),
    ],
)
def test_an_impersonated_user_must_be_named(headers: Headers, shown: str) -> None:
    with pytest.raises(ApiError) as caught:
        acting(headers, user=ROOT)
    assert (caught.value.code, caught.value.message) == (
        400,
        f"requested &user.DefaultInfo{{{shown}}} without impersonating a user name",
    )
