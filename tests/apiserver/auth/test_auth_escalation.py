from __future__ import annotations

import pytest

from moorage.admission.users import MASTERS, User
from moorage.api.manifests import Manifest
from moorage.apimachinery.errors import ApiError
from moorage_cluster.apiserver.auth.authorizers import AlwaysAllow, Authorizer
from moorage_cluster.apiserver.auth.escalation import check_escalation
from moorage_cluster.apiserver.auth.rbac import Rbac
from tests.apiserver.auth.cluster import ALICE, RBAC, Store, binding, role, rule, subject

TO_ALICE = subject("User", "alice")
WANTED = role("wanted", rule("get list", "pods secrets"), rule("get", urls="/metrics"))


def holding(*rules: Manifest) -> Rbac:
    return Rbac(Store(role("held", *rules), WANTED, binding("b", "held", TO_ALICE)))


def refusal(authorizer: Authorizer, resource: str, obj: Manifest, old: Manifest | None = None) -> str:
    namespace = obj["metadata"].get("namespace", "")
    try:
        check_escalation(authorizer, ALICE, resource, namespace, obj, old)
    except ApiError as error:
        return error.message
    return ""


LACKING = (
    'user "alice" (groups=["system:authenticated"]) is attempting to grant RBAC permissions '
    "not currently held:\n"
)


@pytest.mark.parametrize(
    ("held", "missing"),
    [
        ([rule("*", "*", "*"), rule("*", urls="*")], ""),
        ([rule("get list", "pods secrets"), rule("get", urls="/met*")], ""),
        (
            [rule("get", "pods"), rule("list", "*")],
            '{APIGroups:[""], Resources:["secrets"], Verbs:["get"]}\n'
            '{NonResourceURLs:["/metrics"], Verbs:["get"]}',
        ),
        (
            [rule("*", "pods secrets", names="one"), rule("get", urls="/metrics")],
            '{APIGroups:[""], Resources:["pods"], Verbs:["get" "list"]}\n'
            '{APIGroups:[""], Resources:["secrets"], Verbs:["get" "list"]}',
        ),
    ],
)
def test_a_role_gives_only_what_its_writer_has(held: list[Manifest], missing: str) -> None:
    prefix = f'clusterroles.{RBAC} "wanted" is forbidden: '
    assert refusal(holding(*held), "clusterroles", WANTED) == (missing and prefix + LACKING + missing)


@pytest.mark.parametrize(
    ("held", "wanted", "covered"),
    [
        (rule("get", "*/scale", "apps"), rule("get", "deployments/scale", "apps"), True),
        (rule("get", "*/scale", "apps"), rule("get", "deployments", "apps"), False),
        (rule("get", "pods", names="a b"), rule("get", "pods", names="b"), True),
        (rule("get", "pods", names="a b"), rule("get", "pods", names="c"), False),
        (rule("get", "pods"), rule("get", "pods", names="c"), True),
        (rule("get", "pods"), rule("*", "pods"), False),
        (rule("get", "pods"), rule("get", "pods", "*"), False),
        (rule("get", urls="/a/*"), rule("get", urls="/a/b/*"), True),
        (rule("get", urls="/a/*"), rule("get", urls="/*"), False),
    ],
)
def test_rules_cover_others(held: Manifest, wanted: Manifest, covered: bool) -> None:
    response = refusal(holding(held), "roles", role("x", wanted, namespace="default"))
    assert bool(response) is not covered


def test_the_escalate_verb_allows_escalation() -> None:
    rbac = holding(rule("escalate", "clusterroles", RBAC))
    assert refusal(rbac, "clusterroles", WANTED) == ""
    assert refusal(rbac, "roles", role("x", rule("get", "pods"), namespace="default"))


def test_masters_and_a_server_without_roles_do_not_care() -> None:
    check_escalation(Rbac(Store()), User("root", (MASTERS,)), "clusterroles", "", WANTED)
    assert refusal(AlwaysAllow(), "clusterroles", WANTED) == ""
    assert refusal(AlwaysAllow(), "clusterrolebindings", binding("x", "any", TO_ALICE)) == ""


def test_gathering_roles_takes_all_rights() -> None:
    gathering = role("x", aggregationRule={"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]})
    why = "must have cluster-admin privileges to use the aggregationRule"
    few = holding(rule("get", "pods"))
    assert refusal(few, "clusterroles", gathering) == f'clusterroles.{RBAC} "x" is forbidden: {why}'
    assert refusal(few, "clusterroles", role("x"), old=gathering).endswith(why)
    assert refusal(holding(rule("*", "*", "*"), rule("*", urls="*")), "clusterroles", gathering) == ""


def test_the_garbage_collector_may_change_what_it_must() -> None:
    few = holding(rule("get", "pods"))
    changed = {**WANTED, "metadata": {**WANTED["metadata"], "finalizers": ["x"]}}
    assert refusal(few, "clusterroles", changed, old=WANTED) == ""
    changed["metadata"]["labels"] = {"a": "b"}
    assert refusal(few, "clusterroles", changed, old=WANTED)


@pytest.mark.parametrize(
    ("held", "bound", "message"),
    [
        (rule("get list", "pods secrets"), binding("x", "wanted", TO_ALICE), "NonResourceURLs"),
        (rule("bind", "clusterroles", RBAC, names="wanted"), binding("x", "wanted", TO_ALICE), ""),
        (rule("bind", "clusterroles", RBAC, names="other"), binding("x", "wanted", TO_ALICE), LACKING),
        (
            rule("get", "pods"),
            binding("x", "gone", TO_ALICE),
            f'clusterroles.{RBAC} "gone" not found',
        ),
        (
            rule("get", "pods"),
            binding("x", "gone", TO_ALICE, namespace="default", kind="Role"),
            f'roles.{RBAC} "gone" not found',
        ),
        (
            rule("get", "pods"),
            binding("x", "r", TO_ALICE, namespace="default", kind="Thing"),
            'roleRef.kind: Unsupported value: "Thing": supported values: "ClusterRole", "Role"',
        ),
    ],
)
def test_a_binding_gives_only_what_its_writer_has(held: Manifest, bound: Manifest, message: str) -> None:
    resource = "rolebindings" if bound["metadata"].get("namespace") else "clusterrolebindings"
    response = refusal(holding(held), resource, bound)
    assert (message in response) if message else response == ""


def test_rights_in_a_namespace_do_not_reach_beyond_it() -> None:
    store = Store(role("pods", rule("get", "pods")), binding("b", "pods", TO_ALICE, namespace="mine"))
    wanted = rule("get", "pods")
    assert refusal(Rbac(store), "roles", role("x", wanted, namespace="mine")) == ""
    assert refusal(Rbac(store), "roles", role("x", wanted, namespace="other"))
    assert refusal(Rbac(store), "clusterroles", role("x", wanted))
