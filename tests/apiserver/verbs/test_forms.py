"""In which forms bodies are read and answers are given."""

from __future__ import annotations

from typing import Any

import pytest

from tests.apiserver.client import Cluster, configmap, node, pod

PODS = "/api/v1/namespaces/default/pods"
MAPS = "/api/v1/namespaces/default/configmaps"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
METADATA = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
METADATA_LIST = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"


def read(cluster: Cluster, path: str, accept: str, **query: str) -> Any:
    return cluster.request("GET", path, headers={"accept": accept}, **query)


def test_table(cluster: Cluster) -> None:
    cluster.create(PODS, pod("a"))
    table = read(cluster, PODS, TABLE).json
    assert (table["kind"], table["apiVersion"]) == ("Table", "meta.k8s.io/v1")
    assert [column["name"] for column in table["columnDefinitions"]][:3] == ["Name", "Ready", "Status"]
    assert table["rows"][0]["cells"][:3] == ["a", "0/1", "Pending"]
    assert table["rows"][0]["object"]["kind"] == "PartialObjectMetadata"
    assert table["metadata"]["resourceVersion"]
    one = read(cluster, f"{PODS}/a", TABLE, includeObject="Object").json
    assert one["rows"][0]["object"]["spec"]["containers"]


def test_bare_metadata(cluster: Cluster) -> None:
    made = cluster.create(PODS, pod("a"))
    one = read(cluster, f"{PODS}/a", METADATA).json
    expected = {
        "kind": "PartialObjectMetadata",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": made["metadata"],
    }
    assert one == expected
    found = read(cluster, PODS, METADATA_LIST).json
    assert found["kind"] == "PartialObjectMetadataList"
    assert found["items"] == [expected]


def test_forms_of_the_older_version(cluster: Cluster) -> None:
    cluster.create(PODS, pod("a"))
    older = "meta.k8s.io/v1beta1"
    for path in (PODS, f"{PODS}/a"):
        table = read(cluster, path, TABLE.replace("v1", "v1beta1")).json
        assert (table["kind"], table["apiVersion"]) == ("Table", older)
        assert table["rows"][0]["object"]["apiVersion"] == older
    assert read(cluster, f"{PODS}/a", METADATA.replace("v1", "v1beta1"))["apiVersion"] == older
    found = read(cluster, PODS, METADATA_LIST.replace("v1", "v1beta1")).json
    assert [found["apiVersion"], found["items"][0]["apiVersion"]] == [older, older]


@pytest.mark.parametrize(
    "path",
    [
        "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
        "/api/v1/namespaces/default/serviceaccounts/default/token",
    ],
)
def test_what_is_not_stored_has_no_tables(cluster: Cluster, path: str) -> None:
    body = b'{"spec":{"nonResourceAttributes":{"path":"/","verb":"get"}}}'
    for accept, code in ((TABLE, 406), (f"{TABLE},application/json", 201)):
        answer = cluster.request("POST", path, body, {"accept": accept})
        assert answer.code == code, answer


ACCEPTED = {
    "": "PodList",
    "*/*": "PodList",
    "application/json": "PodList",
    "application/vnd.kubernetes.protobuf,application/json": "PodList",
    f"{TABLE},application/json": "Table",
    "application/json;as=Table;v=v9;g=meta.k8s.io, application/json": "PodList",
}


@pytest.mark.parametrize(("accept", "kind"), ACCEPTED.items())
def test_first_form_that_is_supported(cluster: Cluster, accept: str, kind: str) -> None:
    assert read(cluster, PODS, accept)["kind"] == kind


@pytest.mark.parametrize(
    "accept", ["text/html", "application/xml", "application/json;as=Chart;v=v1;g=meta.k8s.io"]
)
def test_forms_that_are_not_supported(cluster: Cluster, accept: str) -> None:
    answer = read(cluster, PODS, accept)
    assert (answer.code, answer["reason"]) == (406, "NotAcceptable")
    assert answer.message.startswith("only the following media types are accepted: application/json")


BODIES: dict[str, tuple[str, bytes, int]] = {
    "JSON": ("application/json", b'{"metadata":{"name":"a"}}', 201),
    "no type": ("", b'{"metadata":{"name":"a"}}', 201),
    "with charset": ("application/json; charset=utf-8", b'{"metadata":{"name":"a"}}', 201),
    "YAML": ("application/yaml", b"metadata:\n  name: a\ndata: {k: '1'}", 201),
    "cut off": ("application/json", b'{"metadata":{"name":"a"', 400),
    "empty": ("application/json", b"", 400),
    "null": ("application/json", b"null", 400),
    "not an object": ("application/json", b'"a"', 400),
    "metadata of another type": ("application/json", b'{"metadata":"a"}', 400),
    "data of another type": ("application/json", b'{"metadata":{"name":"a"},"data":{"k":1}}', 400),
    "bad YAML": ("application/yaml", b"a: [", 400),
    "YAML with an alias": ("application/yaml", b"metadata: {name: &a a}\ndata: {k: *a}", 400),
    "YAML with a tag that does not fit": ("application/yaml", b"metadata: {name: !!bool a}", 400),
    "YAML in UTF-16": ("application/yaml", "metadata: {name: a}".encode("utf-16"), 400),
    "bottomless": ("application/json", b'{"x":' + b"[" * 200_000 + b"}", 400),
    "bad protobuf": ("application/vnd.kubernetes.protobuf", b"xxxx", 400),
    "form": ("application/x-www-form-urlencoded", b"a=b", 415),
    "XML": ("text/xml", b"<a/>", 415),
}


@pytest.mark.parametrize(("content_type", "body", "code"), BODIES.values(), ids=BODIES)
def test_bodies(cluster: Cluster, content_type: str, body: bytes, code: int) -> None:
    answer = cluster.request("POST", MAPS, body, {"content-type": content_type})
    assert answer.code == code, answer
    if code != 201:
        assert answer["kind"] == "Status"
        assert answer.message


UNKNOWN = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "more": 1}


def test_unknown_fields_are_warned_of(cluster: Cluster) -> None:
    answer = cluster.post(MAPS, UNKNOWN)
    assert answer.code == 201
    assert answer.headers["Warning"] == '299 - "unknown field \\"more\\""'
    assert "more" not in answer.json


def test_unknown_fields_are_ignored_on_request(cluster: Cluster) -> None:
    answer = cluster.post(MAPS, UNKNOWN, fieldValidation="Ignore")
    assert answer.code == 201
    assert "Warning" not in answer.headers


def test_unknown_fields_are_refused_on_request(cluster: Cluster) -> None:
    answer = cluster.post(MAPS, UNKNOWN, fieldValidation="Strict")
    assert (answer.code, answer["reason"]) == (400, "BadRequest")
    assert 'strict decoding error: unknown field "more"' in answer.message
    body = b'{"metadata":{"name":"a"},"data":{"k":"1","k":"2"}}'
    twice = cluster.request("POST", MAPS, body, fieldValidation="Strict")
    assert twice.code == 400
    assert 'duplicate field "data.k"' in twice.message


def test_unknown_fields_in_patches(cluster: Cluster) -> None:
    cluster.create(MAPS, configmap("a"))
    warned = cluster.patch(f"{MAPS}/a", "merge", {"more": 1})
    assert (warned.code, warned.headers["Warning"]) == (200, '299 - "unknown field \\"more\\""')
    refused = cluster.patch(f"{MAPS}/a", "merge", {"more": 1}, fieldValidation="Strict")
    assert refused.code == 422
    assert 'unknown field "more"' in refused.message


def test_unknown_validation(cluster: Cluster) -> None:
    answer = cluster.post(MAPS, UNKNOWN, fieldValidation="Sometimes")
    assert answer.code in (400, 422)
    assert 'fieldValidation: Unsupported value: "Sometimes"' in answer.message


def test_event_of_one_group_is_read_in_the_other(cluster: Cluster) -> None:
    cluster.create("/api/v1/nodes", node("n"))
    core, new = "/api/v1/namespaces/default/events", "/apis/events.k8s.io/v1/namespaces/default/events"
    old_form = {
        "metadata": {"name": "a"},
        "involvedObject": {"kind": "Pod", "namespace": "default", "name": "p"},
        "reason": "Because",
        "message": "said",
        "count": 3,
        "type": "Normal",
        "source": {"component": "me"},
    }
    cluster.create(core, old_form)
    shown = cluster.get(f"{new}/a").json
    assert (shown["apiVersion"], shown["kind"]) == ("events.k8s.io/v1", "Event")
    assert shown["regarding"] == old_form["involvedObject"]
    assert (shown["note"], shown["deprecatedCount"]) == ("said", 3)
    new_form = {
        "metadata": {"name": "b"},
        "eventTime": "2026-03-01T12:00:00.000001Z",
        "regarding": {"kind": "Pod", "namespace": "default", "name": "p"},
        "reportingController": "example.com/me",
        "reportingInstance": "me-1",
        "action": "Acting",
        "reason": "Because",
        "note": "noted",
        "type": "Warning",
    }
    watcher = cluster.watch(core, fieldSelector="type=Warning,involvedObject.name=p")
    cluster.create(new, new_form)
    (event,) = watcher.events()
    assert event["object"]["apiVersion"] == "v1"
    assert event["object"]["message"] == "noted"
    assert event["object"]["reportingComponent"] == "example.com/me"
    assert [item["metadata"]["name"] for item in cluster.get(new)["items"]] == ["a", "b"]
    assert cluster.get(new, fieldSelector="regarding.name=p,type=Warning")["items"][0]["note"] == "noted"
    cluster.delete(f"{new}/a")
    assert not cluster.exists(f"{core}/a")
