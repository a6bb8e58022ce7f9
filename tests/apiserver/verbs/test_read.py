from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from moorage_cluster.apiserver.embedded import Settings
from tests.apiserver.client import Answer, Cluster, names, node, pod

SECRETS = "/api/v1/namespaces/other/secrets"
PODS = "/api/v1/namespaces/default/pods"
NODES = "/api/v1/nodes"
HISTORY = 10
OLD = "b2xk"


@pytest.fixture
def forgetful() -> Iterator[Cluster]:
    """A server that remembers few changes, and whose namespace `other` holds ten secrets."""
    cluster = Cluster(Settings(history=HISTORY))
    cluster.create("/api/v1/namespaces", {"metadata": {"name": "other"}})
    for number in range(10):
        cluster.create(SECRETS, secret(f"m{number}"))
    yield cluster
    cluster.close()


def secret(name: str) -> dict[str, Any]:
    return {"metadata": {"name": name}, "data": {"key": OLD}}


def listed(answer: Answer) -> list[str]:
    assert answer.code == 200, answer
    return list(names(answer["items"]))


def version_of(answer: Answer) -> int:
    return int(answer["metadata"]["resourceVersion"])


def forget(cluster: Cluster) -> None:
    """Write until the present is past."""
    for number in range(2 * HISTORY + 1):
        cluster.patch(f"{SECRETS}/m0", "merge", {"data": {"key": f"{number:04}"}})


def test_get_waits_for_no_future(forgetful: Cluster) -> None:
    now = version_of(forgetful.get(SECRETS))
    assert forgetful.get(f"{SECRETS}/m1", resourceVersion=now).code == 200
    assert forgetful.get(f"{SECRETS}/m1", resourceVersion=0).code == 200
    late = forgetful.get(f"{SECRETS}/m1", resourceVersion=now + 1)
    assert late.code == 504
    assert late.message == f"Timeout: Too large resource version: {now + 1}, current: {now}"
    assert late["details"]["causes"] == [
        {"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}
    ]
    assert late["details"]["retryAfterSeconds"] == 1


def test_list_at_a_version(forgetful: Cluster) -> None:
    then = version_of(forgetful.get(SECRETS))
    forgetful.delete(f"{SECRETS}/m0")
    forgetful.create(SECRETS, secret("n"))
    forgetful.patch(f"{SECRETS}/m1", "merge", {"data": {"key": "bmV3"}})
    now = [*(f"m{number}" for number in range(1, 10)), "n"]
    exact = forgetful.get(SECRETS, resourceVersion=then, resourceVersionMatch="Exact")
    assert listed(exact) == [f"m{number}" for number in range(10)]
    assert {item["data"]["key"] for item in exact["items"]} == {OLD}
    assert version_of(exact) == then
    assert listed(forgetful.get(SECRETS, resourceVersion=then, resourceVersionMatch="NotOlderThan")) == now
    assert listed(forgetful.get(SECRETS, resourceVersion=then)) == now
    assert listed(forgetful.get(SECRETS, resourceVersion=0)) == now
    assert listed(forgetful.get(SECRETS)) == now
    # What a page begins with is exact even if nobody says so.
    assert listed(forgetful.get(SECRETS, resourceVersion=then, limit=3)) == ["m0", "m1", "m2"]


def test_list_of_the_future_and_of_the_forgotten_past(forgetful: Cluster) -> None:
    then = version_of(forgetful.get(SECRETS))
    forget(forgetful)
    assert forgetful.get(SECRETS, resourceVersion=10**18).code == 504
    past = forgetful.get(SECRETS, resourceVersion=then, resourceVersionMatch="Exact")
    assert (past.code, past["reason"]) == (410, "Expired")
    assert past.message == "The resourceVersion for the provided list is too old."
    assert listed(forgetful.get(SECRETS, resourceVersion=then)) == [f"m{number}" for number in range(10)]


BAD_OPTIONS: dict[str, tuple[dict[str, Any], int, str]] = {
    "version": ({"resourceVersion": "x"}, 400, 'Invalid value: "x"'),
    "match alone": (
        {"resourceVersionMatch": "Exact"},
        422,
        "Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided",
    ),
    "unknown match": (
        {"resourceVersionMatch": "x", "resourceVersion": "1"},
        422,
        'resourceVersionMatch: Unsupported value: "x": supported values: "Exact", "NotOlderThan", ""',
    ),
    "exactly any": (
        {"resourceVersionMatch": "Exact", "resourceVersion": "0"},
        422,
        'resourceVersionMatch "exact" is forbidden for resourceVersion "0"',
    ),
    "match of a page": (
        {"resourceVersionMatch": "Exact", "resourceVersion": "1", "continue": "x"},
        422,
        "resourceVersionMatch is forbidden when continue is provided",
    ),
    "initial events": ({"sendInitialEvents": "true"}, 422, "sendInitialEvents is forbidden for list"),
    "limit": ({"limit": "many"}, 400, 'strconv.ParseInt: parsing "many"'),
    "token": ({"continue": "x"}, 400, "continue key is not valid"),
    "labels": ({"labelSelector": "a in ("}, 400, "unable to parse requirement"),
    "fields": ({"fieldSelector": "a"}, 400, "invalid selector: 'a'; can't understand 'a'"),
    "unknown field": ({"fieldSelector": "spec.x=1"}, 400, "field label not supported: spec.x"),
}


@pytest.mark.parametrize(("options", "code", "message"), BAD_OPTIONS.values(), ids=BAD_OPTIONS)
def test_bad_list_options(cluster: Cluster, options: dict[str, Any], code: int, message: str) -> None:
    answer = cluster.get(PODS, **options)
    assert answer.code == code, answer
    assert message in answer.message


def test_pages_show_one_moment(forgetful: Cluster) -> None:
    first = forgetful.get(SECRETS, limit=4)
    assert listed(first) == ["m0", "m1", "m2", "m3"]
    assert first["metadata"]["remainingItemCount"] == 6
    forgetful.delete(f"{SECRETS}/m5")
    forgetful.create(SECRETS, secret("m55"))
    forgetful.patch(f"{SECRETS}/m6", "merge", {"data": {"key": "bmV3"}})
    second = forgetful.get(SECRETS, limit=4, **{"continue": first["metadata"]["continue"]})
    assert listed(second) == ["m4", "m5", "m6", "m7"]
    assert {item["data"]["key"] for item in second["items"]} == {OLD}
    third = forgetful.get(SECRETS, limit=4, **{"continue": second["metadata"]["continue"]})
    assert listed(third) == ["m8", "m9"]
    assert "continue" not in third["metadata"]
    assert version_of(first) == version_of(second) == version_of(third)


def test_selected_pages_do_not_count_what_remains(forgetful: Cluster) -> None:
    selector = "metadata.name!=m1"
    first = forgetful.get(SECRETS, limit=2, fieldSelector=selector)
    assert listed(first) == ["m0", "m2"]
    assert "remainingItemCount" not in first["metadata"]
    token = first["metadata"]["continue"]
    rest = forgetful.get(SECRETS, limit=50, fieldSelector=selector, **{"continue": token})
    assert listed(rest) == [f"m{number}" for number in range(3, 10)]


def test_forgotten_page_can_be_read_on_if_one_insists(forgetful: Cluster) -> None:
    first = forgetful.get(SECRETS, limit=4)
    forget(forgetful)
    forgetful.create(SECRETS, secret("n"))
    late = forgetful.get(SECRETS, limit=4, **{"continue": first["metadata"]["continue"]})
    assert (late.code, late["reason"]) == (410, "Expired")
    assert late.message.startswith("The provided continue parameter is too old to display a consistent list")
    rest = forgetful.get(SECRETS, **{"continue": late["metadata"]["continue"]})
    assert listed(rest) == ["m4", "m5", "m6", "m7", "m8", "m9", "n"]
    assert version_of(rest) == version_of(forgetful.get(SECRETS))


def test_pages_expire_after_five_minutes(forgetful: Cluster) -> None:
    first = forgetful.get(SECRETS, limit=4)
    forgetful.advance(200)
    second = forgetful.get(SECRETS, limit=4, **{"continue": first["metadata"]["continue"]})
    assert listed(second) == ["m4", "m5", "m6", "m7"]
    forgetful.create(SECRETS, secret("n"))
    forgetful.advance(100)
    late = forgetful.get(SECRETS, limit=4, **{"continue": second["metadata"]["continue"]})
    assert (late.code, late["reason"]) == (410, "Expired")
    rest = forgetful.get(SECRETS, limit=2, **{"continue": late["metadata"]["continue"]})
    assert listed(rest) == ["m8", "m9"]
    assert version_of(rest) > version_of(first)
    assert listed(forgetful.get(SECRETS, **{"continue": rest["metadata"]["continue"]})) == ["n"]


def test_token_and_version_exclude_each_other(forgetful: Cluster) -> None:
    token = forgetful.get(SECRETS, limit=4)["metadata"]["continue"]
    answer = forgetful.get(SECRETS, resourceVersion=5, **{"continue": token})
    assert answer.message == "specifying resource version is not allowed when using continue"


def test_all_namespaces_in_order(cluster: Cluster) -> None:
    for namespace in ("b", "a"):
        cluster.create("/api/v1/namespaces", {"metadata": {"name": namespace}})
        for name in ("y", "x"):
            cluster.create(f"/api/v1/namespaces/{namespace}/pods", pod(name, namespace))
    found = cluster.get("/api/v1/pods")["items"]
    places = [(item["metadata"]["namespace"], item["metadata"]["name"]) for item in found]
    assert places == [("a", "x"), ("a", "y"), ("b", "x"), ("b", "y")]
    assert listed(cluster.get("/api/v1/pods", fieldSelector="metadata.namespace=b")) == ["x", "y"]
    assert listed(cluster.get("/api/v1/namespaces/none/pods")) == []


LABELS = {"a": {"app": "web", "tier": "1"}, "b": {"app": "db"}, "c": {"tier": "2"}, "d": {}}
SELECTORS = {
    "": "abcd",
    "app": "ab",
    "!app": "cd",
    "app=web": "a",
    "app==web": "a",
    "app!=web": "bcd",
    "app in (web,db)": "ab",
    "app notin (web)": "bcd",
    "app,tier": "a",
    "app in (web), tier notin (2)": "a",
    "tier>1": "c",
    "tier<2": "a",
}


@pytest.mark.parametrize(("selector", "expected"), SELECTORS.items())
def test_label_selectors(cluster: Cluster, selector: str, expected: str) -> None:
    for name, labels in LABELS.items():
        cluster.create(NODES, {"metadata": {"name": name, "labels": labels}})
    assert "".join(listed(cluster.get(NODES, labelSelector=selector))) == expected


FIELDS = {
    "spec.nodeName=n": "a",
    "spec.nodeName=": "bc",
    "spec.nodeName!=n": "bc",
    "metadata.name=b": "b",
    "metadata.name!=b,spec.nodeName=": "c",
    "status.phase=Pending,spec.restartPolicy=Never": "c",
    "spec.schedulerName=mine": "b",
}


@pytest.mark.parametrize(("selector", "expected"), FIELDS.items())
def test_field_selectors(cluster: Cluster, selector: str, expected: str) -> None:
    cluster.create(NODES, node("n"))
    cluster.create(PODS, pod("a", nodeName="n"))
    cluster.create(PODS, pod("b", schedulerName="mine"))
    cluster.create(PODS, pod("c", restartPolicy="Never"))
    assert "".join(listed(cluster.get(PODS, fieldSelector=selector))) == expected
