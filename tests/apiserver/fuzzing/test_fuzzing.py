"""Short runs of the fuzzer, and requests that once failed. `make fuzz` is the long run."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from tests.apiserver.fuzzing import request
from tests.apiserver.fuzzing.checks import Wrong, check_answer
from tests.apiserver.fuzzing.generator import builtin_kinds
from tests.apiserver.fuzzing.malformed import MALFORMED, Bytes
from tests.apiserver.fuzzing.overhttp import run_http, served
from tests.apiserver.fuzzing.request import TOKEN, Kind, Shot
from tests.apiserver.fuzzing.runs import replay, run
from tests.apiserver.fuzzing.seeds import seeds_of

JSON = "application/json"
CONFIGMAPS = "/api/v1/namespaces/default/configmaps"
PODS = "/api/v1/namespaces/default/pods"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
WIDGETS = "/apis/example.com/v1/namespaces/default/widgets"


def shot(method: str, path: str, body: Any = None, content_type: str = JSON, query: str = "") -> Shot:
    headers = [("host", "127.0.0.1"), ("authorization", f"Bearer {TOKEN}"), ("content-type", content_type)]
    raw = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
    return Shot(method, path, query, headers, raw)


def definition(*versions: dict[str, Any], scope: str = "Namespaced") -> dict[str, Any]:
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    names = {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"}
    served = [
        {
            "name": f"v{at}",
            "served": True,
            "storage": at == 1,
            "schema": {"openAPIV3Schema": schema},
            **version,
        }
        for at, version in enumerate(versions or ({},), 1)
    ]
    spec = {"group": "example.com", "scope": scope, "names": names, "versions": served}
    return {"metadata": {"name": "widgets.example.com"}, "spec": spec}


def pod(**spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": "a"}, "spec": {"containers": [{"name": "main", "image": "x"}], **spec}}


ONCE_FAILED: dict[str, tuple[list[Shot], list[int]]] = {
    "bytes that are not UTF-8": ([shot("POST", CONFIGMAPS, b'{"a":"\xed\xa0\x80"}')], [400]),
    "a tag that does not fit its value": (
        [
            shot("POST", CONFIGMAPS, b"data: {k: !!bool maybe}", "application/yaml"),
            shot("POST", CONFIGMAPS, b"data: {k: !!timestamp x}", "application/yaml"),
        ],
        [400, 400],
    ),
    "a patch that is not UTF-8": (
        [shot("PATCH", f"{PODS}/a", b'{"\xe4":1}', "application/merge-patch+json")],
        [400],
    ),
    "an object that outlived its definition, defined again with the other scope": (
        [
            shot("POST", DEFINITIONS, definition()),
            shot("POST", WIDGETS, {"metadata": {"name": "a", "finalizers": ["example.com/hold"]}}),
            shot("DELETE", f"{DEFINITIONS}/widgets.example.com"),
            shot(
                "PATCH",
                f"{DEFINITIONS}/widgets.example.com",
                {"metadata": {"finalizers": None}},
                "application/merge-patch+json",
            ),
            shot("POST", DEFINITIONS, definition(scope="Cluster")),
        ],
        [201, 201, 200, 200, 201],
    ),
    "discovery of an unknown group": ([shot("GET", "/apis/apis")], [404]),
    "a path that goes on after a version": ([shot("GET", "/api/v1/namespaces/a/pods/b/c/d")], [404]),
    "a warning with a line break": (
        [shot("POST", CONFIGMAPS, {"metadata": {"name": "a"}, "x\r\nSet-Cookie: y": 1})],
        [201],
    ),
    "a warning beyond Latin-1": ([shot("POST", CONFIGMAPS, {"metadata": {"name": "a"}, "日本": 1})], [201]),
    "warnings without end": (
        [shot("POST", CONFIGMAPS, {"metadata": {"name": "a"}, **dict.fromkeys(map(str, range(9000)), 1)})],
        [201],
    ),
    "a container without a name, where a quota counts": (
        [
            shot("POST", "/api/v1/namespaces/default/resourcequotas", {
                "metadata": {"name": "q"}, "spec": {"hard": {"requests.cpu": "1"}},
            }),
            shot("POST", PODS, pod(containers=[{"image": "x"}])),
        ],
        [201, 403],
    ),
    "a volume without a name": ([shot("POST", PODS, pod(volumes=[{"emptyDir": {}}]))], [422]),
    "a custom object's managed fields of wrong types": (
        [
            shot("POST", DEFINITIONS, definition()),
            shot("POST", WIDGETS, {
                "apiVersion": "example.com/v1", "kind": "Widget",
                "metadata": {"name": "a", "managedFields": [{"manager": [], "operation": "Apply"}]},
            }),
        ],
        [201, 400],
    ),
    "a definition whose status names nothing": (
        [
            shot("POST", DEFINITIONS, definition()),
            shot(
                "PATCH",
                f"{DEFINITIONS}/widgets.example.com/status",
                {"status": {"acceptedNames": {"kind": None}}},
                "application/merge-patch+json",
            ),
            shot("GET", WIDGETS),
        ],
        [201, 200, 200],
    ),
    "a quota that limits nothing": (
        [shot("POST", "/api/v1/namespaces/default/resourcequotas", {"metadata": {"name": "q"}, "spec": {}})],
        [201],
    ),
    "a field to select by in one version only": (
        [
            shot("POST", DEFINITIONS, definition({}, {
                "selectableFields": [{"jsonPath": ".spec.x"}],
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                    "spec": {"type": "object", "properties": {"x": {"type": "string"}}}}}},
            })),
            shot("POST", WIDGETS, {
                "apiVersion": "example.com/v1", "kind": "Widget",
                "metadata": {"name": "a"}, "spec": {"x": "y"},
            }),
            shot("GET", WIDGETS.replace("v1", "v2"), query="fieldSelector=spec.x%3Dy"),
        ],
        [201, 201, 200],
    ),
    "a time before the year 1000": (
        [
            shot("POST", "/apis/coordination.k8s.io/v1/namespaces/default/leases", {
                "metadata": {"name": "a"}, "spec": {"renewTime": "0001-01-01T00:00:00.000000Z"},
            })
        ],
        [201],
    ),
    "a grace period beyond all calendars": (
        [
            shot("POST", PODS, pod(nodeName="n", terminationGracePeriodSeconds=2**63 - 1)),
            shot("DELETE", f"{PODS}/a"),
            shot("DELETE", f"{PODS}/a", {"gracePeriodSeconds": 5}),
        ],
        [201, 200, 200],
    ),
    "a namespace whose last finalizer of the server's is gone": (
        [
            shot("POST", "/api/v1/namespaces", {"metadata": {"name": "a", "finalizers": ["x.example/y"]}}),
            shot("DELETE", "/api/v1/namespaces/a"),
        ],
        [201, 200],
    ),
}  # fmt: skip


MANY = range(10_000)
EXPENSIVE: dict[str, tuple[list[Shot], list[int]]] = {
    "a number in base 60 without end": (
        [shot("POST", CONFIGMAPS, b"metadata: {name: a}\nx: 1" + b":59" * 300_000, "application/yaml")],
        [201],
    ),
    "a text that is said to be such a number": (
        [shot("POST", CONFIGMAPS, b"metadata: {name: a}\nx: !!int 1" + b":59" * 300_000, "application/yaml")],
        [400],
    ),
    "more YAML than can be read in time": (
        [shot("POST", CONFIGMAPS, b"a:\n" + b"- 1\n" * 700_000, "application/yaml")],
        [413],
    ),
    "an applied object in JSON, as long as a body may be": (
        [
            shot(
                "PATCH",
                f"{CONFIGMAPS}/a",
                {"apiVersion": "v1", "kind": "ConfigMap", "data": {"x": "y" * 2_900_000}},
                "application/apply-patch+yaml",
                "fieldManager=me",
            )
        ],
        [422],
    ),
    "ports that all overlap": (
        [
            shot("POST", PODS, pod(containers=[
                {"name": f"c{at}", "image": "x", "ports": [{"containerPort": 1}]} for at in range(3000)
            ])),
        ],
        [201],
    ),
    "many changes of many keys": (
        [
            shot("POST", CONFIGMAPS, {"metadata": {"name": "a"}, "data": dict.fromkeys(map(str, MANY), "")}),
            shot(
                "PATCH",
                f"{CONFIGMAPS}/a",
                [{"op": "add", "path": f"/data/k{at}", "value": "v"} for at in MANY],
                "application/json-patch+json",
            ),
        ],
        [201, 200],
    ),
    "managers without end": (
        [
            shot("POST", CONFIGMAPS, {"metadata": {"name": "a"}}),
            shot("PUT", f"{CONFIGMAPS}/a", {"data": {"x": "y"}, "metadata": {"name": "a", "managedFields": [
                {
                    "manager": f"m{at}", "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1",
                    "fieldsV1": {"f:data": {f"f:k{at}": {}}},
                }
                for at in MANY
            ]}}),
        ],
        [201, 200],
    ),
    "copies of copies": (
        [
            shot("POST", CONFIGMAPS, {"metadata": {"name": "a"}, "data": {"k": "x" * 1000}}),
            shot(
                "PATCH",
                f"{CONFIGMAPS}/a",
                [{"op": "copy", "from": "/data", "path": f"/data/k{at}"} for at in range(40)],
                "application/json-patch+json",
            ),
        ],
        [201, 422],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", EXPENSIVE)
def test_what_could_take_long_does_not(name: str) -> None:
    shots, expected = EXPENSIVE[name]

    codes, why = asyncio.run(replay(shots))

    assert (codes, why) == (expected, "")


@pytest.mark.parametrize("name", ONCE_FAILED)
def test_what_once_failed_is_answered(name: str) -> None:
    shots, expected = ONCE_FAILED[name]

    codes, why = asyncio.run(replay(shots))

    assert (codes, why) == (expected, "")


def test_random_requests_are_answered() -> None:
    report = asyncio.run(run(seed=1, first=0, last=2999))

    assert [f"{failure.number}: {failure.why}\n{failure.shots[-1]}" for failure in report.failures] == []
    # A fuzzer that gets nowhere finds nothing: what it sends is accepted often, and refused in many ways.
    assert report.codes[200] + report.codes[201] > 600
    assert {400, 401, 403, 404, 405, 409, 415, 422} <= report.codes.keys()


def test_random_requests_over_http_are_answered() -> None:
    report = asyncio.run(run_http(seed=1, first=0, last=299))

    assert report.failures == []
    assert {200, 201, 400, 404, 422} <= report.codes.keys()
    assert {"pipelined", "malformed HTTP"} <= report.bodies.keys()


@pytest.mark.parametrize("sent", MALFORMED, ids=lambda sent: sent.name)
def test_what_is_not_quite_http_does_no_harm(sent: Bytes) -> None:
    async def send() -> list[int]:
        async with served() as target:
            codes = await target.fire_bytes(sent)
            await target.check()
            return codes

    codes = asyncio.run(send())

    assert len(codes) <= sent.answers


NEED_OTHERS = {"Binding", "CustomResourceDefinition", "LocalSubjectAccessReview"}
"""Kinds whose manifests are only valid together with something else."""
A_CLASS = shot("POST", "/apis/scheduling.k8s.io/v1/priorityclasses", {"metadata": {"name": "a"}, "value": 1})
A_RUNTIME = shot("POST", "/apis/node.k8s.io/v1/runtimeclasses", {"metadata": {"name": "a"}, "handler": "x"})


@pytest.mark.parametrize("kind", builtin_kinds(), ids=lambda kind: f"{kind.group}/{kind.kind}")
def test_requests_begin_with_valid_manifests(kind: Kind) -> None:
    if kind.kind in NEED_OTHERS:
        return
    named = not kind.kind.endswith("Review")
    shots = [
        shot("POST", kind.path("default"), {"metadata": {"name": f"s-{at}"} if named else {}, **seed})
        for at, seed in enumerate(seeds_of(kind.group, kind.kind))
    ]

    codes, why = asyncio.run(replay([A_CLASS, A_RUNTIME, *shots]))

    assert (set(codes), why) == ({201}, "")


def test_a_failure_is_saved_and_sent_again(tmp_path: Path) -> None:
    shots = [shot("POST", CONFIGMAPS, b'{"metadata":{"name":"a"},"x":"\xff\x00"}'), shot("GET", CONFIGMAPS)]

    request.save(shots, tmp_path / "corpus")

    assert request.load(tmp_path / "corpus") == shots


def status(code: int, message: str, reason: str) -> bytes:
    status_object = {
        "kind": "Status",
        "apiVersion": "v1",
        "status": "Failure",
        "message": message,
        "reason": reason,
    }
    return json.dumps({**status_object, "code": code}).encode()


WRONG_ANSWERS: dict[str, tuple[int, str, dict[str, str], bytes]] = {
    "a failure that is not a Status": (404, JSON, {}, b'{"kind":"Pod"}'),
    "another code than HTTP's": (404, JSON, {}, status(400, "x", "NotFound")),
    "no message": (404, JSON, {}, status(404, " ", "NotFound")),
    "no reason": (404, JSON, {}, status(404, "x", "")),
    "an internal error": (500, JSON, {}, status(500, "x", "InternalError")),
    "broken JSON": (200, JSON, {}, b'{"a"'),
    "no object": (200, JSON, {}, b"[]"),
    "a failure in plain text": (404, "text/plain", {}, b"not found"),
    "an unheard-of code": (299, JSON, {}, b"{}"),
    "a header with a line break": (200, JSON, {"Warning": "a\r\nb"}, b"{}"),
    "a header without end": (200, JSON, {"Warning": "a" * 20_000}, b"{}"),
}


@pytest.mark.parametrize("name", WRONG_ANSWERS)
def test_a_wrong_answer_is_noticed(name: str) -> None:
    with pytest.raises(Wrong):
        check_answer(shot("GET", PODS), *WRONG_ANSWERS[name])
