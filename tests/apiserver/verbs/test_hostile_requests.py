"""Requests that are meant to break the server: each is answered, and none as a failure of the server."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from moorage.api.names import label_value_problems
from moorage.api.quantity import parse_quantity
from moorage.apimachinery.schema.quantities import canonical_quantity
from moorage.apimachinery.schema.timestamps import canonical_time
from moorage_cluster.apiserver import address, negotiation
from moorage_cluster.apiserver import selector_parsing as selection
from moorage_cluster.apiserver.extensions.formats import conforms
from moorage_cluster.apiserver.patches.apply.elements import normalized, sort_key
from moorage_cluster.apiserver.rest import bodies
from tests.apiserver.client import Cluster, configmap, pod

MAPS = "/api/v1/namespaces/default/configmaps"
PODS = "/api/v1/namespaces/default/pods"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
DIGITS = "9" * 4301
"""One more than Python reads as a number."""


def continuing(field: str) -> str:
    token = {"version": 1, "namespace": "a", "name": "b", "begun": 1}
    raw = json.dumps(token).replace(f'"{field}": 1', f'"{field}": {DIGITS}')
    return base64.urlsafe_b64encode(raw.encode()).decode()


QUERIES: dict[str, dict[str, str]] = {
    "resourceVersion": {"resourceVersion": DIGITS},
    "resourceVersion of a watch": {"resourceVersion": DIGITS, "watch": "1"},
    "limit": {"limit": DIGITS},
    "a negative limit": {"limit": f"-{DIGITS}"},
    "digits of others": {"limit": "١"},
    "timeoutSeconds": {"timeoutSeconds": DIGITS},
    "timeoutSeconds of a watch": {"timeoutSeconds": DIGITS, "watch": "1"},
    "timeout": {"timeout": f"{DIGITS}s"},
    "continue, version": {"continue": continuing("version")},
    "continue, time": {"continue": continuing("begun")},
    "labelSelector": {"labelSelector": f"a>{DIGITS}"},
}


@pytest.mark.parametrize("query", QUERIES.values(), ids=QUERIES)
def test_numbers_of_thousands_of_digits_in_queries_are_bad_requests(
    cluster: Cluster, query: Mapping[str, str]
) -> None:
    answer = cluster.get(MAPS, **query)
    assert (answer.code, answer["reason"]) == (400, "BadRequest")


def cron_job(schedule: str) -> dict[str, Any]:
    template = {"spec": {**pod("x")["spec"], "restartPolicy": "Never"}}
    spec = {"schedule": schedule, "jobTemplate": {"spec": {"template": template}}}
    return {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "a"}, "spec": spec}


def budget(available: str) -> dict[str, Any]:
    spec = {"minAvailable": available, "selector": {}}
    return {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "a"}, "spec": spec}


def definition(json_path: str) -> dict[str, Any]:
    column = {"name": "a", "type": "string", "jsonPath": json_path}
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": anything},
        "additionalPrinterColumns": [column],
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.x.example"},
        "spec": {
            "group": "x.example",
            "scope": "Namespaced",
            "names": {"plural": "things", "kind": "Thing"},
            "versions": [version],
        },
    }


BODIES: dict[str, tuple[str, dict[str, Any]]] = {
    "schedule": ("/apis/batch/v1/namespaces/default/cronjobs", cron_job(f"{DIGITS} * * * *")),
    "step": ("/apis/batch/v1/namespaces/default/cronjobs", cron_job(f"*/{DIGITS} * * * *")),
    "percentage": ("/apis/policy/v1/namespaces/default/poddisruptionbudgets", budget(f"{DIGITS}%")),
    "path": (DEFINITIONS, definition(f".a[{DIGITS}]")),
    "quantity": (PODS, pod("a", containers=[{"name": "c", "resources": {"requests": {"cpu": DIGITS}}}])),
}


@pytest.mark.parametrize(("path", "body"), BODIES.values(), ids=BODIES)
def test_numbers_of_thousands_of_digits_in_bodies_are_no_failures(
    cluster: Cluster, path: str, body: dict[str, Any]
) -> None:
    assert cluster.post(path, body).code in (201, 400, 422)


def nested(depth: int) -> str:
    return '{"a":' * depth + "{}" + "}" * depth


def test_a_patch_whose_error_message_is_nested_too_deeply_is_a_bad_request(cluster: Cluster) -> None:
    cluster.create(PODS, pod("a"))
    for depth in (400, 500, 700, 900):
        deep = b"[" * depth + b"]" * depth
        patch = b'{"spec":{"tolerations":[{"key":"a","operator":"Exists","unknown":' + deep + b"}]}}"
        answer = cluster.patch(f"{PODS}/a", "strategic", patch, fieldValidation="Strict")
        assert answer.code in (400, 422), answer


@pytest.mark.parametrize("depth", [200, 480, 950, 20_000])
def test_deeply_nested_json_is_read_or_refused(cluster: Cluster, depth: int) -> None:
    cluster.create(DEFINITIONS, definition(".a"))
    cluster.advance(1.0)
    things = "/apis/x.example/v1/namespaces/default/things"
    deep = nested(depth)
    thing = f'{{"apiVersion":"x.example/v1","kind":"Thing","metadata":{{"name":"a"}},"spec":{deep}}}'
    fields = deep.replace('"a"', '"f:a"')
    entry = (
        f'{{"manager":"m","operation":"Apply","apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":{fields}}}'
    )
    managed = f'{{"kind":"ConfigMap","metadata":{{"name":"m","managedFields":[{entry}]}}}}'
    applied = (
        cluster.request("POST", MAPS, managed.encode()),
        cluster.patch(
            f"{MAPS}/m", "apply", {**configmap("m", k="v"), "metadata": {"name": "m"}}, fieldManager="other"
        ),
    )
    answers = [
        *applied,
        cluster.request("POST", things, thing.encode()),
        cluster.get(f"{things}/a"),
        cluster.get(things),
        cluster.patch(f"{things}/a", "merge", f'{{"spec":{deep}}}'.encode()),
        cluster.patch(f"{things}/a", "json", f'[{{"op":"add","path":"/b","value":{deep}}}]'.encode()),
        cluster.patch(f"{things}/a", "json", f'[{{"op":"test","path":"/spec","value":{deep}}}]'.encode()),
        cluster.patch(f"{things}/a", "apply", thing.encode(), fieldManager="m"),
        cluster.patch(f"{MAPS}/m", "strategic", f'{{"metadata":{{"annotations":{deep}}}}}'.encode()),
        cluster.request("POST", MAPS, thing.encode(), {"content-type": "application/yaml"}),
        cluster.delete(f"{things}/a"),
    ]
    assert max(answer.code for answer in answers) < 500, answers


def test_the_head_of_a_watch_is_not_a_watch(cluster: Cluster) -> None:
    queries: tuple[dict[str, Any], ...] = ({}, {"watch": "1"})
    for query in queries:
        answer = cluster.request("HEAD", MAPS, **query)
        assert (answer.code, answer["reason"]) == (405, "MethodNotAllowed")
    assert cluster.request("HEAD", "/readyz").code == 200


MEMORIES: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "paths": (address.parse_address, ("/" + "x" * 2000, "GET", False)),
    "Accept headers": (negotiation.negotiate, ("*/*;" + "x" * 2000,)),
    "content types": (bodies.media_type, ("x" * 2000,)),
    "label selectors": (selection.parse_label_selector, ("a=b," * 500 + "a=b",)),
    "field selectors": (selection.parse_field_selector, ("a=b," * 500,)),
    "names": (label_value_problems, ("x" * 2000,)),
    "formats": (conforms, ("x" * 2000, "date")),
    "times": (canonical_time, (f"2026-01-01T00:00:00.{'0' * 2000}Z",)),
    "fields": (normalized, ("f:" + "x" * 2000,)),
    "order of fields": (sort_key, ("f:" + "x" * 2000,)),
}


@pytest.mark.parametrize(("function", "arguments"), MEMORIES.values(), ids=MEMORIES)
def test_long_texts_from_outside_are_not_remembered(
    function: Callable[..., Any], arguments: tuple[Any, ...]
) -> None:
    (memory,) = [
        cell.cell_contents for cell in function.__closure__ or () if hasattr(cell.cell_contents, "cache_info")
    ]
    before = memory.cache_info()
    function(*arguments)
    assert memory.cache_info() == before
    assert before.maxsize <= 1 << 16


@pytest.mark.parametrize("read", [parse_quantity, canonical_quantity])
def test_quantities_that_fill_the_memory_are_none(read: Callable[[str], Any]) -> None:
    for text in ("1" + " " * 2000, "0." + "0" * 2000 + "1", "1" * 400):
        with pytest.raises(ValueError, match="quantit"):
            read(text)
