"""Protobuf bodies say what the same JSON would."""

from __future__ import annotations

import struct
from contextlib import suppress
from typing import Any

import pytest

from moorage.apimachinery.errors import ApiError
from moorage.apimachinery.protobuf import MAGIC, decode_protobuf
from moorage.apimachinery.schema import schema_of
from moorage.apimachinery.schema.wire import wire_format


def varint(value: int) -> bytes:
    value &= (1 << 64) - 1
    out = b""
    while value > 0x7F:
        out += bytes([value & 0x7F | 0x80])
        value >>= 7
    return out + bytes([value])


def message(*fields: tuple[int, Any]) -> bytes:
    """Integers are varints, floats are fixed, texts and bytes are themselves."""
    out = b""
    for number, value in fields:
        if isinstance(value, float):
            out += varint(number << 3 | 1) + struct.pack("<d", value)
        elif isinstance(value, int):
            out += varint(number << 3) + varint(value)
        else:
            data = value.encode() if isinstance(value, str) else value
            out += varint(number << 3 | 2) + varint(len(data)) + data
    return out


def body(api_version: str, kind: str, *fields: tuple[int, Any]) -> bytes:
    type_meta = message((1, api_version), (2, kind))
    return MAGIC + message((1, type_meta), (2, message(*fields)), (3, ""), (4, ""))


def entry(key: str, value: Any) -> bytes:
    return message((1, key), (2, value))


def test_a_pod() -> None:
    metadata = message(
        (1, "web"),
        (2, ""),
        (8, message((1, 1767225600), (2, 0))),
        (11, entry("app", "web")),
        (11, entry("tier", "front")),
    )
    port = message((1, ""), (2, 0), (3, 80), (4, "TCP"))
    quantities = message((2, entry("cpu", message((1, "100m")))))
    probe = message((1, message((2, message((2, message((1, 1), (3, "http"))))))), (2, 5))
    main = message((1, "main"), (2, "nginx"), (3, "a"), (3, "b"), (6, port), (8, quantities), (10, probe))
    volume = message((1, "data"), (2, message((1, message((1, "/data"))))))
    spec = message((1, volume), (2, main), (25, -5), (11, 1), (22, message((1, "k"), (5, 300))))
    assert decode_protobuf(body("v1", "Pod", (1, metadata), (2, spec), (3, b"")), wire_format()) == {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "web",
            "generateName": "",
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "labels": {"app": "web", "tier": "front"},
        },
        "spec": {
            "volumes": [{"name": "data", "hostPath": {"path": "/data"}}],
            "containers": [
                {
                    "name": "main",
                    "image": "nginx",
                    "command": ["a", "b"],
                    "ports": [{"name": "", "hostPort": 0, "containerPort": 80, "protocol": "TCP"}],
                    "resources": {"requests": {"cpu": "100m"}},
                    "livenessProbe": {"httpGet": {"port": "http"}, "initialDelaySeconds": 5},
                }
            ],
            "priority": -5,
            "hostNetwork": True,
            "tolerations": [{"key": "k", "tolerationSeconds": 300}],
        },
        "status": {},
    }


def test_what_go_writes_for_nothing_goes_in_decoding() -> None:
    given = decode_protobuf(body("v1", "Pod", (1, message((1, "p"), (2, ""), (8, b"")))), wire_format())
    schema = schema_of("", "v1", "Pod")
    assert schema is not None
    decoded = schema.decode(given)
    assert decoded == ({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}}, [])


LEASE = ("coordination.k8s.io/v1", "Lease")


@pytest.mark.parametrize(
    ("kind", "fields", "expected"),
    [
        (
            LEASE,
            [(2, message((1, "me"), (2, 15), (4, message((1, 1767225600), (2, 1500)))))],
            {
                "spec": {
                    "holderIdentity": "me",
                    "leaseDurationSeconds": 15,
                    "renewTime": "2026-01-01T00:00:00.000001Z",
                }
            },
        ),
        (("v1", "Secret"), [(2, entry("a", b"hi"))], {"data": {"a": "aGk="}}),
        (
            ("policy/v1", "PodDisruptionBudget"),
            [(2, message((1, message((1, 0), (2, 3), (3, "")))))],
            {"spec": {"minAvailable": 3}},
        ),
        (
            ("apps/v1", "ControllerRevision"),
            [(2, message((1, b'{"a": [1]}'))), (3, 7)],
            {"data": {"a": [1]}, "revision": 7},
        ),
        (
            ("authorization.k8s.io/v1", "SubjectAccessReview"),
            [(2, message((5, entry("scopes", message((1, "a"), (1, "b"))))))],
            {"spec": {"extra": {"scopes": ["a", "b"]}}},
        ),
        (
            ("v1", "Pod"),
            [(2, message((14, message((4, 1), (4, 2), (4, varint(3) + varint(4))))))],
            {"spec": {"securityContext": {"supplementalGroups": [1, 2, 3, 4]}}},
        ),
        (
            ("v1", "Binding"),
            [(1, message((1, "p"))), (2, message((1, "Node"), (3, "n")))],
            {"metadata": {"name": "p"}, "target": {"kind": "Node", "name": "n"}},
        ),
        (("v1", "DeleteOptions"), [(1, 0), (4, "Background")],
         {"gracePeriodSeconds": 0, "propagationPolicy": "Background"}),
        (("v1", "ConfigMap"), [(999, "from the future"), (2, entry("a", ""))], {"data": {"a": ""}}),
    ],
)  # fmt: skip
def test_forms(kind: tuple[str, str], fields: list[tuple[int, Any]], expected: dict[str, Any]) -> None:
    assert decode_protobuf(body(*kind, *fields), wire_format()) == {
        "apiVersion": kind[0],
        "kind": kind[1],
        **expected,
    }


def test_schemas_of_custom_resources() -> None:
    leaf = message((5, "number"), (9, 1.5), (8, message((1, b"2"))))
    props = message(
        (5, "object"),
        (29, entry("size", leaf)),
        (30, message((1, 0), (2, message((5, "string"))))),
        (24, message((2, leaf))),
    )
    version = message((1, "v1"), (4, message((1, props))))
    given = decode_protobuf(
        body("apiextensions.k8s.io/v1", "CustomResourceDefinition", (2, message((7, version)))),
        wire_format(),
    )
    expected_leaf = {"type": "number", "maximum": 1.5, "default": 2}
    assert given["spec"]["versions"][0]["schema"]["openAPIV3Schema"] == {
        "type": "object",
        "properties": {"size": expected_leaf},
        "additionalProperties": {"type": "string"},
        "items": [expected_leaf],
    }


NESTED = b""
for _ in range(200):
    NESTED = message((28, NESTED))


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"", "does not appear to be a protobuf message"),
        (b'{"kind": "Pod"}', "does not appear to be a protobuf message"),
        (MAGIC, 'no kind "" is registered for version ""'),
        (MAGIC + b"\x0a\x7f", "unexpected end"),
        (MAGIC + b"\xff" * 20, "a number does not end"),
        (MAGIC + b"\x0b", "wire type 3 is not supported"),
        (MAGIC + b"\x02\x00", "number 0"),
        (body("v1", "Teapot"), 'no kind "Teapot" is registered for version "v1"'),
        (body("v1", "Pod", (1, 5)), "wire type 0 where 2 is expected"),
        (body("v1", "Pod", (1, message((1, b"\xff")))), "not UTF-8"),
        (body("v1", "Pod", (2, message((25, "x")))), "wire type 2 where 0 is expected"),
        (body("v1", "Pod", (1, message((8, message((1, 1 << 60)))))), "time is out of range"),
        (body("apps/v1", "ControllerRevision", (2, message((1, b"{")))), "not JSON"),
        (
            body(
                "apiextensions.k8s.io/v1",
                "CustomResourceDefinition",
                (2, message((7, message((4, message((1, NESTED))))))),
            ),
            "nested too deeply",
        ),
    ],
)
def test_malformed_bodies_are_bad_requests(data: bytes, problem: str) -> None:
    with pytest.raises(ApiError, match=problem) as caught:
        decode_protobuf(data, wire_format())
    assert caught.value.code == 400


def test_a_cut_body_is_read_or_refused() -> None:
    whole = body("v1", "Pod", (1, message((1, "web"), (8, message((1, 5))))), (2, message((25, -5))))
    for length in range(len(whole)):
        with suppress(ApiError):
            decode_protobuf(whole[:length], wire_format())
