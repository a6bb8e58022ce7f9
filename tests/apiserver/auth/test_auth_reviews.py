from __future__ import annotations

import pytest

from moorage.admission.users import User
from moorage.api.manifests import Manifest
from moorage.apimachinery.errors import ApiError
from moorage_cluster.apiserver.auth.claims import ISSUER
from moorage_cluster.apiserver.auth.jwt import SigningKey
from moorage_cluster.apiserver.auth.rbac import Rbac
from moorage_cluster.apiserver.auth.reviews import REVIEWS, ReviewContext
from moorage_cluster.apiserver.auth.tokens import Authenticator
from tests.apiserver.auth.cluster import ALICE, Store, binding, role, rule, subject

STORE = Store(
    role("reader", rule("get", "pods", names="p1"), rule("get", urls="/metrics")),
    binding("read", "reader", subject("User", "alice"), subject("Group", "devs")),
    binding("lost", "gone", subject("User", "carol")),
)


def answered(resource: str, body: Manifest, *, user: User = ALICE, namespace: str = "") -> Manifest:
    authenticator = Authenticator("admin's", SigningKey.generate(), STORE)
    context = ReviewContext(user, Rbac(STORE), authenticator, namespace, now=lambda: 1_800_000_000)
    [review] = [review for (_, plural), review in REVIEWS.items() if plural == resource]
    return review(body, context)


def refused(resource: str, body: Manifest, *, namespace: str = "") -> tuple[int, str]:
    with pytest.raises(ApiError) as caught:
        answered(resource, body, namespace=namespace)
    return caught.value.code, caught.value.message


def on_pods(verb: str = "get", name: str = "p1", namespace: str = "default") -> Manifest:
    return {"resourceAttributes": {"verb": verb, "resource": "pods", "name": name, "namespace": namespace}}


ALLOWED = {
    "allowed": True,
    "reason": 'RBAC: allowed by ClusterRoleBinding "read" of ClusterRole "reader" to User "alice"',
}
METRICS = {"nonResourceAttributes": {"verb": "get", "path": "/metrics"}}


@pytest.mark.parametrize(
    ("resource", "spec", "status"),
    [
        ("selfsubjectaccessreviews", on_pods(), ALLOWED),
        ("selfsubjectaccessreviews", on_pods("list"), {"allowed": False}),
        ("selfsubjectaccessreviews", METRICS, ALLOWED),
        ("subjectaccessreviews", {**on_pods(), "user": "alice"}, ALLOWED),
        ("subjectaccessreviews", {**on_pods(), "user": "bob"}, {"allowed": False}),
        (
            "subjectaccessreviews",
            {**METRICS, "groups": ["devs"]},
            {"allowed": True, "reason": str(ALLOWED["reason"]).replace('User "alice"', 'Group "devs"')},
        ),
        (
            "subjectaccessreviews",
            {**on_pods(), "user": "carol"},
            {"allowed": False, "reason": 'RBAC: clusterrole.rbac.authorization.k8s.io "gone" not found'},
        ),
        (
            "subjectaccessreviews",
            {**on_pods(), "user": "root", "groups": ["system:masters"]},
            {"allowed": True},
        ),
    ],
)
def test_access_is_decided(resource: str, spec: Manifest, status: Manifest) -> None:
    answer = answered(resource, {"spec": spec})
    assert answer["status"] == status
    assert answer["spec"] == spec
    assert answer["apiVersion"] == "authorization.k8s.io/v1"
    assert answer["kind"].lower() + "s" == resource


def test_access_is_decided_locally() -> None:
    body = {"metadata": {"namespace": "default"}, "spec": {**on_pods(), "user": "alice"}}
    assert answered("localsubjectaccessreviews", body, namespace="default")["status"] == ALLOWED


def invalid(kind: str, problems: str) -> tuple[int, str]:
    return 422, f'{kind}.authorization.k8s.io "" is invalid: {problems}'


@pytest.mark.parametrize(
    ("resource", "body", "namespace", "answer"),
    [
        (
            "selfsubjectaccessreviews",
            {},
            "",
            invalid(
                "SelfSubjectAccessReview",
                "spec.resourceAttributes: Invalid value: null: exactly one of nonResourceAttributes or "
                "resourceAttributes must be specified",
            ),
        ),
        (
            "subjectaccessreviews",
            {"spec": {**on_pods(), **METRICS}},
            "",
            invalid(
                "SubjectAccessReview",
                '[spec.nonResourceAttributes: Invalid value: {"verb":"get","path":"/metrics"}: cannot be '
                'specified in combination with resourceAttributes, spec.user: Invalid value: "": at least '
                "one of user or group must be specified]",
            ),
        ),
        (
            "selfsubjectaccessreviews",
            {"metadata": {"name": "x"}, "spec": METRICS},
            "",
            invalid("SelfSubjectAccessReview", 'metadata: Invalid value: {"name":"x"}: must be empty'),
        ),
        (
            "selfsubjectaccessreviews",
            {"spec": {"resourceAttributes": {"labelSelector": {}}}},
            "",
            invalid(
                "SelfSubjectAccessReview",
                "spec.resourceAttributes.labelSelector.requirements: Required value: when "
                "spec.resourceAttributes.labelSelector is specified, requirements or rawSelector is required",
            ),
        ),
        (
            "localsubjectaccessreviews",
            {"metadata": {"namespace": "x"}, "spec": {**on_pods(), "user": "u"}},
            "x",
            invalid(
                "LocalSubjectAccessReview",
                'spec.resourceAttributes.namespace: Invalid value: "default": must match metadata.namespace',
            ),
        ),
        (
            "localsubjectaccessreviews",
            {"metadata": {"namespace": "default"}, "spec": {**on_pods(), "user": "u"}},
            "x",
            (400, "spec.resourceAttributes.namespace must match namespace: x"),
        ),
        (
            "localsubjectaccessreviews",
            {"metadata": {"namespace": "x"}, "spec": {**METRICS, "user": "u"}},
            "x",
            invalid(
                "LocalSubjectAccessReview",
                'spec.nonResourceAttributes: Invalid value: {"verb":"get","path":"/metrics"}: disallowed on '
                "this kind of request",
            ),
        ),
        ("selfsubjectrulesreviews", {"spec": {}}, "", (400, "no namespace on request")),
        ("tokenreviews", {}, "", (400, "token is required for TokenReview in authentication")),
        (
            "tokenreviews",
            {"spec": {"token": 5}},
            "",
            (
                400,
                'TokenReview in version "v1" cannot be handled as a TokenReview: Expected `str | null`, '
                "got `int` - at `$.spec.token`",
            ),
        ),
    ],
)
def test_questions_that_make_no_sense(
    resource: str, body: Manifest, namespace: str, answer: tuple[int, str]
) -> None:
    assert refused(resource, body, namespace=namespace) == answer


def test_rules_are_listed() -> None:
    answer = answered("selfsubjectrulesreviews", {"spec": {"namespace": "default"}})
    assert answer == {
        "kind": "SelfSubjectRulesReview",
        "apiVersion": "authorization.k8s.io/v1",
        "metadata": {},
        "spec": {},
        "status": {
            "resourceRules": [
                {"verbs": ["get"], "apiGroups": [""], "resources": ["pods"], "resourceNames": ["p1"]}
            ],
            "nonResourceRules": [{"verbs": ["get"], "nonResourceURLs": ["/metrics"]}],
            "incomplete": False,
        },
    }
    lost = answered("selfsubjectrulesreviews", {"spec": {"namespace": "x"}}, user=User("carol"))
    assert lost["status"]["evaluationError"] == 'clusterrole.rbac.authorization.k8s.io "gone" not found'


def test_who_am_i() -> None:
    user = User("u", ("g",), "1", {"k": ("v",)})
    assert answered("selfsubjectreviews", {}, user=user) == {
        "kind": "SelfSubjectReview",
        "apiVersion": "authentication.k8s.io/v1",
        "metadata": {"creationTimestamp": "2027-01-15T08:00:00Z"},
        "status": {"userInfo": {"username": "u", "uid": "1", "groups": ["g"], "extra": {"k": ["v"]}}},
    }


@pytest.mark.parametrize(
    ("spec", "status"),
    [
        (
            {"token": "admin's"},
            {
                "authenticated": True,
                "user": {
                    "username": "kubernetes-admin",
                    "groups": ["system:masters", "system:authenticated"],
                },
                "audiences": [ISSUER],
            },
        ),
        ({"token": "no good"}, {"user": {}, "error": "invalid bearer token"}),
        ({"token": "admin's", "audiences": ["x"]}, {"user": {}, "error": "invalid bearer token"}),
    ],
)
def test_whose_token_is_this(spec: Manifest, status: Manifest) -> None:
    assert answered("tokenreviews", {"spec": spec})["status"] == status
