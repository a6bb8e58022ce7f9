"""CertificateSigningRequests: what is stored, how they are approved, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.api.manifests import timestamp
from tests.apiserver.certificate_requests import TAMPERED, TAMPERED_ECDSA, a_request, pem
from tests.apiserver.client import START, Cluster

REQUESTS = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
BOB = f"{REQUESTS}/bob"
NOW = timestamp(START)
APPROVED = {"type": "Approved", "status": "True", "reason": "Tested"}
LABEL = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start "
    "and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)


def approved(cluster: Cluster) -> dict[str, Any]:
    cluster.create(REQUESTS, a_request())
    answer = cluster.patch(f"{BOB}/approval", "merge", {"status": {"conditions": [APPROVED]}})
    assert answer.code == 200, answer
    return answer.json


def messages(answer: Any) -> list[str]:
    assert answer.code == 422, answer
    return [f"{cause['field']}: {cause['message']}" for cause in answer["details"]["causes"]]


def test_a_request_says_who_made_it(cluster: Cluster) -> None:
    made = cluster.create(REQUESTS, a_request("A_b", username="alice", groups=["x"], extra={"a": ["b"]}))
    spec = made["spec"]
    assert spec["username"] == "kubernetes-admin"
    assert spec["groups"] == ["system:masters", "system:authenticated"]
    assert "extra" not in spec
    assert made["status"] == {}


def test_the_spec_never_changes(cluster: Cluster) -> None:
    before = cluster.create(REQUESTS, a_request())["spec"]
    patch = {"metadata": {"labels": {"a": "b"}}, "spec": {"usages": ["any"]}}
    answer = cluster.patch(BOB, "merge", {**patch, "status": {"certificate": "AAAA"}})
    assert (answer["metadata"]["labels"], answer["spec"], answer["status"]) == ({"a": "b"}, before, {})


def test_approval_sets_the_condition_and_its_times(cluster: Cluster) -> None:
    times = {"lastUpdateTime": NOW, "lastTransitionTime": NOW}
    made = approved(cluster)
    assert made["status"] == {"conditions": [{**APPROVED, **times}]}
    assert cluster.get(f"{BOB}/approval").json == made


def test_approval_changes_no_more_than_conditions(cluster: Cluster) -> None:
    before = cluster.create(REQUESTS, a_request())
    patch = {"spec": {"usages": ["any"]}, "status": {"certificate": "AAAA"}}
    answer = cluster.patch(f"{BOB}/approval", "merge", patch)
    assert (answer["spec"], answer["status"]) == (before["spec"], {})


def test_a_client_that_approves_owns_the_condition(cluster: Cluster) -> None:
    query = {"fieldManager": "writer", "fieldValidation": "Strict"}
    assert cluster.patch(BOB, "apply", a_request(), **query).code == 201
    patch = {"status": {"conditions": [APPROVED]}}
    answer = cluster.patch(f"{BOB}/approval", "merge", patch, fieldManager="approver")
    owned = {each["manager"]: each["fieldsV1"] for each in answer["metadata"]["managedFields"]}
    assert owned["approver"].keys() == {"f:status"}


def test_a_status_keeps_the_approval(cluster: Cluster) -> None:
    (before,) = approved(cluster)["status"]["conditions"]
    failed = {"type": "Failed", "status": "True"}
    conditions = [failed, {**APPROVED, "reason": "Changed"}]
    answer = cluster.patch(f"{BOB}/status", "merge", {"status": {"conditions": conditions}})
    assert answer["status"]["conditions"] == [
        {**failed, "lastUpdateTime": NOW, "lastTransitionTime": NOW},
        before,
    ]


REFUSED: dict[str, tuple[dict[str, Any], list[str]]] = {
    "what is no request": (
        {"request": "aGVsbG8=", "usages": [], "signerName": "nodomain", "expirationSeconds": 6},
        [
            'spec.request: Invalid value: "aGVsbG8=": PEM block type must be CERTIFICATE REQUEST',
            "spec.usages: Required value",
            'spec.signerName: Invalid value: "nodomain": must be a fully qualified domain and path of the '
            "form 'example.com/signer-name'",
            "spec.expirationSeconds: Invalid value: 6: may not specify a duration less than 600 seconds "
            "(10 minutes)",
        ],
    ),
    "a request with the signature of another": (
        {"request": TAMPERED, "signerName": "kubernetes.io/legacy-unknown", "usages": ["any", "any"]},
        [
            f'spec.request: Invalid value: "{TAMPERED}": x509: Ed25519 verification failure',
            'spec.usages[1]: Duplicate value: "any"',
            'spec.signerName: Invalid value: "kubernetes.io/legacy-unknown": the legacy signerName is not '
            "allowed via this API version",
        ],
    ),
    "another with the signature of another": (
        {"request": TAMPERED_ECDSA},
        [f'spec.request: Invalid value: "{TAMPERED_ECDSA}": x509: ECDSA verification failure'],
    ),
    "what only looks like a request": (
        {"request": pem(b"hello"), "signerName": "Foo.com/x"},
        [
            f'spec.request: Invalid value: "{pem(b"hello")}": x509: malformed certificate request',
            f'spec.signerName: Invalid value: "Foo.com": validating label "Foo": {LABEL}',
        ],
    ),
}


@pytest.mark.parametrize(("spec", "causes"), REFUSED.values(), ids=REFUSED)
def test_what_is_wrong_with_a_request(cluster: Cluster, spec: dict[str, Any], causes: list[str]) -> None:
    assert messages(cluster.post(REQUESTS, a_request(**spec))) == causes


def test_an_unknown_usage_is_refused(cluster: Cluster) -> None:
    (message,) = messages(cluster.post(REQUESTS, a_request(usages=["x"])))
    assert message.startswith('spec.usages[0]: Unsupported value: "x": supported values: "any", "cert sign",')


STATUSES: dict[str, tuple[str, dict[str, Any], list[str]]] = {
    "an approval undone": (
        "approval",
        {"conditions": []},
        ['status.conditions: Forbidden: updates may not remove a condition of type "Approved"'],
    ),
    "an approval denied": (
        "approval",
        {"conditions": [APPROVED, {"type": "Denied", "status": "True"}]},
        ['status.conditions: Invalid value: "Denied": Approved and Denied conditions are mutually exclusive'],
    ),
    "a denial beside the status": (
        "status",
        {"conditions": [APPROVED, {"type": "Denied", "status": "True"}], "certificate": "aGVsbG8="},
        [
            'status.conditions: Invalid value: "Denied": '
            "Approved and Denied conditions are mutually exclusive",
            'status.certificate: Invalid value: "<certificate data>": must contain at least one CERTIFICATE '
            "PEM block",
            'status.conditions: Forbidden: updates may not add a condition of type "Denied"',
        ],
    ),
    "conditions that say nothing": (
        "approval",
        {"conditions": [APPROVED, {}, {"type": "Failed", "status": "False"}, {"type": "Failed"}]},
        [
            "status.conditions[1].type: Required value",
            "status.conditions[1].status: Required value",
            'status.conditions[2].status: Unsupported value: "False": supported values: "True"',
            "status.conditions[3].status: Required value",
            'status.conditions[3].type: Duplicate value: "Failed"',
        ],
    ),
}


@pytest.mark.parametrize(("part", "status", "causes"), STATUSES.values(), ids=STATUSES)
def test_what_is_wrong_with_a_decision(
    cluster: Cluster, part: str, status: dict[str, Any], causes: list[str]
) -> None:
    approved(cluster)
    assert messages(cluster.patch(f"{BOB}/{part}", "merge", {"status": status})) == causes


def test_requests_are_selected_by_their_signer(cluster: Cluster) -> None:
    cluster.create(REQUESTS, a_request())
    cluster.create(REQUESTS, a_request("other", signerName="example.com/other"))
    found = cluster.get(REQUESTS, fieldSelector="spec.signerName=example.com/signer")["items"]
    assert [each["metadata"]["name"] for each in found] == ["bob"]
