"""Decoding: what is kept, what goes, and what is said of what cannot be."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any, ClassVar

import msgspec
import pytest

from moorage.apimachinery.errors import ApiError
from moorage.apimachinery.schema import fast, schema_of
from moorage.apimachinery.schema.builtin import BuiltinSchema
from moorage.apimachinery.schema.careful import decode_carefully
from moorage.apimachinery.schema.quantities import WRONG_FORMAT
from moorage.apimachinery.schema.wire import TypeUse, wire_format

Manifest = dict[str, Any]


def schema(kind: str, group: str = "", version: str = "v1") -> BuiltinSchema:
    found = schema_of(group, version, kind)
    assert found is not None
    return found


def pod(**spec: Any) -> Manifest:
    containers = [{"name": "main", "image": "busybox"}]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "labels": {"app": "web"}},
        "spec": {"containers": containers, **spec},
    }


def container(**more: Any) -> Manifest:
    return {"name": "main", **more}


def test_there_are_no_schemas_of_other_kinds() -> None:
    assert schema_of("example.com", "v1", "Pod") is None


def test_what_is_right_comes_back_equal_and_as_a_copy() -> None:
    given = pod(tolerations=[{"operator": "Exists"}], terminationGracePeriodSeconds=0)
    decoded = schema("Pod").decode(given)
    assert (decoded.obj, decoded.unknown) == (given, [])
    assert decoded.obj["spec"]["containers"] is not given["spec"]["containers"]


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ({"priority": None}, {}),
        ({"nodeName": None}, {}),
        ({"tolerations": None}, {}),
        ({"restartPolicy": ""}, {}),
        ({"hostNetwork": False}, {}),
        ({"nodeSelector": {}}, {}),
        ({"tolerations": []}, {}),
        ({"priority": 0}, {"priority": 0}),
        ({"enableServiceLinks": False}, {"enableServiceLinks": False}),
        ({"runtimeClassName": ""}, {"runtimeClassName": ""}),
        ({"securityContext": {}}, {"securityContext": {}}),
        ({"nodeSelector": {"a": None}}, {"nodeSelector": {"a": ""}}),
        ({"tolerations": [None]}, {"tolerations": [{}]}),
        ({"overhead": {"cpu": None}}, {"overhead": {"cpu": "0"}}),
        ({"overhead": {"cpu": 1.5, "memory": "1024Mi"}}, {"overhead": {"cpu": "1500m", "memory": "1Gi"}}),
        ({"overhead": {"cpu": 2000}}, {"overhead": {"cpu": "2k"}}),
    ],
)
def test_pod_specs(given: Manifest, kept: Manifest) -> None:
    assert schema("Pod").decode(pod(**given)) == (pod(**kept), [])


def test_times_are_canonical() -> None:
    given = {"metadata": {"creationTimestamp": "2026-01-01T01:00:00+01:00", "deletionTimestamp": None}}
    assert schema("Pod").decode(given).obj == {"metadata": {"creationTimestamp": "2026-01-01T00:00:00Z"}}
    lease = {"spec": {"renewTime": "2026-01-01T00:00:00.500000Z"}}
    assert schema("Lease", "coordination.k8s.io").decode(lease).obj == lease


def test_bytes_are_checked_base64() -> None:
    assert schema("Secret").decode({"data": {"a": "aGk="}}).obj == {"data": {"a": "aGk="}}
    assert schema("Secret").decode({"data": {"a": "aG\nk="}}).obj == {"data": {"a": "aGk="}}
    with pytest.raises(ApiError, match="illegal base64 data at input byte 2"):
        schema("Secret").decode({"data": {"a": "aG!="}})


def test_integers_or_strings() -> None:
    for value in (1, "50%"):
        budget = {"spec": {"minAvailable": value}}
        assert schema("PodDisruptionBudget", "policy").decode(budget).obj == budget


@pytest.mark.parametrize(
    ("given", "unknown"),
    [
        ({"spec": {"foo": 1}}, ["spec.foo"]),
        ({"foo": None}, ["foo"]),
        ({"spec": {"containers": [container(), container(imagee="x")]}}, ["spec.containers[1].imagee"]),
        (
            {"zeta": 1, "spec": {"b": 1, "containers": [container(zoo={}, ports=[{"a": 1}])], "a": 1}},
            ["zeta", "spec.b", "spec.containers[0].zoo", "spec.containers[0].ports[0].a", "spec.a"],
        ),
        ({"spec": {"Containers": []}}, ["spec.Containers"]),
        ({"metadata": {"creationTimestamp": None}, "status": {}}, []),
        ({"metadata": {"managedFields": [{"fieldsV1": {"f:anything": {"goes": None}}}]}}, []),
        (
            {"spec": {"foo": 1, "nodeSelector": {"a": None}, "tolerations": [{"x": 1}, None]}},
            ["spec.foo", "spec.tolerations[0].x"],
        ),
    ],
)
def test_unknown_fields_are_listed_in_the_order_of_the_body(given: Manifest, unknown: list[str]) -> None:
    decoded = schema("Pod").decode(given)
    assert decoded.unknown == unknown
    again = schema("Pod").decode(decoded.obj)
    assert again == (decoded.obj, [])


PREFIX = 'Pod in version "v1" cannot be handled as a Pod: '


def said(field: str, found: str, go_type: str) -> str:
    return f"{PREFIX}json: cannot unmarshal {found} into Go struct field {field} of type {go_type}"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (pod(priority="x"), said("PodSpec.spec.priority", "string", "int32")),
        (pod(priority=1.5), said("PodSpec.spec.priority", "number 1.5", "int32")),
        (pod(priority=1 << 40), said("PodSpec.spec.priority", "number 1099511627776", "int32")),
        (pod(priority=True), said("PodSpec.spec.priority", "bool", "int32")),
        (pod(hostNetwork="yes"), said("PodSpec.spec.hostNetwork", "string", "bool")),
        (pod(nodeName=7), said("PodSpec.spec.nodeName", "number", "string")),
        (pod(containers={}), said("PodSpec.spec.containers", "object", "[]v1.Container")),
        (pod(containers=[container(image=3)]), said("Container.spec.containers.image", "number", "string")),
        (pod(containers=["x"]), said("PodSpec.spec.containers", "string", "v1.Container")),
        (pod(restartPolicy=[]), said("PodSpec.spec.restartPolicy", "array", "v1.RestartPolicy")),
        (pod(nodeSelector={"a": 1}), said("PodSpec.spec.nodeSelector", "number", "string")),
        (pod(nodeSelector=[]), said("PodSpec.spec.nodeSelector", "array", "map[string]string")),
        (pod(overhead="1"), said("PodSpec.spec.overhead", "string", "v1.ResourceList")),
        (
            pod(volumes=[{"hostPath": "x"}]),
            said("Volume.spec.volumes.VolumeSource.hostPath", "string", "v1.HostPathVolumeSource"),
        ),
        ({"spec": []}, said("Pod.spec", "array", "v1.PodSpec")),
        (
            {"metadata": {"creationTimestamp": 3}},
            said("ObjectMeta.metadata.creationTimestamp", "number", "string"),
        ),
        (
            {"metadata": {"creationTimestamp": "x"}},
            f'{PREFIX}parsing time "x" as "2006-01-02T15:04:05Z07:00": cannot parse "x" as "2006"',
        ),
        (pod(overhead={"cpu": "abc"}), PREFIX + WRONG_FORMAT),
        (pod(overhead={"cpu": True}), PREFIX + WRONG_FORMAT),
        # The first of several, but a quantity's problem is said before others'.
        (pod(priority="x", nodeName=1), said("PodSpec.spec.priority", "string", "int32")),
        (pod(priority="x", overhead={"cpu": ""}), PREFIX + WRONG_FORMAT),
        ([], f"{PREFIX}json: cannot unmarshal array into Go value of type v1.Pod"),
    ],
)
def test_wrong_types(given: Any, message: str) -> None:
    with pytest.raises(ApiError) as caught:
        schema("Pod").decode(given)
    assert (caught.value.code, caught.value.reason) == (400, "BadRequest")
    assert caught.value.message == message


def test_recursive_types_are_decoded_too() -> None:
    definition = schema("CustomResourceDefinition", "apiextensions.k8s.io")
    inner = {"type": "object", "properties": {"a": {"type": "string", "typo": 1}}}
    given = {"spec": {"versions": [{"name": "v1", "schema": {"openAPIV3Schema": inner}}]}}
    decoded = definition.decode(given)
    assert decoded.unknown == ["spec.versions[0].schema.openAPIV3Schema.properties.a.typo"]
    kept = decoded.obj["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    assert kept == {"type": "object", "properties": {"a": {"type": "string"}}}


def test_too_deep_is_a_bad_request() -> None:
    inner: Manifest = {}
    for _ in range(5000):
        inner = {"not": inner}
    given = {"spec": {"versions": [{"schema": {"openAPIV3Schema": inner}}]}}
    with pytest.raises(ApiError, match="exceeded max depth"):
        schema("CustomResourceDefinition", "apiextensions.k8s.io").decode(given)


class Maker:
    """Random values, mostly of the right type."""

    WORDS: ClassVar[dict[str, Sequence[Any]]] = {
        "string": ["", "a", "b"],
        "int32": [0, 1, -5],
        "int64": [0, 7, 1 << 40],
        "double": [0.5],
        "bool": [True, False],
        "bytes": ["", "aGk="],
        "Quantity": ["1", "1000m", "1024Mi", 3],
        "IntOrString": [0, 1, "", "50%"],
        "Time": ["2026-01-01T00:00:00Z", "2026-01-01T00:00:00+01:00"],
        "MicroTime": ["2026-01-01T00:00:00.000001Z"],
        "FieldsV1": [{}, {"f:a": {"x": None}}],
        "RawExtension": [{"kind": "X"}],
    }

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def value(self, use: TypeUse, depth: int = 0) -> Any:
        chance = self.random.random
        if chance() < 0.003:
            return self.random.choice([None, "odd", 1, 2.5, [], {}, True])
        if use.items:
            size = self.random.choice([0, 1, 2]) if depth < 8 else 0
            values = [self.value(use.items, depth + 1) for _ in range(size)]
            return values if use.word == "list" else {f"k{index}": item for index, item in enumerate(values)}
        if use.word != "struct":
            return self.random.choice(self.WORDS[use.word])
        found = {}
        for known in use.struct.fields:
            if chance() < (0.5 if depth < 2 else 0.15 if depth < 6 else 0.02):
                found[known.name] = self.value(known.type, depth + 1)
        if chance() < 0.02:
            found["unheardOf"] = self.random.choice([None, 1, {}])
        return found


@pytest.mark.parametrize(
    "kind",
    [
        ("", "Pod"),
        ("", "Node"),
        ("apps", "Deployment"),
        ("resource.k8s.io", "ResourceSlice"),
        ("", "Service"),
    ],
)
def test_fast_and_careful_decoding_agree(kind: tuple[str, str]) -> None:
    known = schema(kind[1], kind[0])
    struct = fast.struct_of(known.wire)
    fast_ones = 0
    for seed in range(150):
        given = Maker(seed).value(TypeUse("struct", None, known.wire.name, wire_format()))
        try:
            fast.convert(given, struct)
        except msgspec.ValidationError:
            continue
        fast_ones += 1
        assert known.decode(given) == decode_carefully(known.wire, given)
    assert fast_ones > 30
