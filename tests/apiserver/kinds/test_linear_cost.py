"""No list or map of any kind makes validation cost more than its length: a long one cannot stall the server.

Every list and map of every built-in kind is filled with some items and with twice as many, and the object is
put through defaults, validation, update and status. What is counted is calls and comparisons of strings.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import pytest

from moorage.api.manifests import Manifest, utc_now
from moorage.apimachinery import errors, fields
from moorage.apimachinery.schema import BuiltinSchema
from moorage.apimachinery.schema.wire import TypeUse, WireField, WireType
from moorage.apimachinery.validation.metadata import validate_metadata, validate_metadata_update
from moorage.emulation.kubernetes_version import V1_36
from moorage_cluster.apiserver.kinds.catalog import builtin_resources
from moorage_cluster.apiserver.kinds.pods import validated_spec_cache as sound_specs
from moorage_cluster.apiserver.resources import APIResource
from moorage_cluster.apiserver.server_version import ServerVersion
from moorage_cluster.apiserver.store import Store
from tests.apiserver.client import GROUPS_SERVED

ITEMS = 16
_WORDS = {"operator": "In", "apiVersion": "v1", "effect": "NoSchedule", "whenUnsatisfiable": "DoNotSchedule"}
_LEAVES: dict[str, Any] = {
    "double": 1.0,
    "bool": True,
    "bytes": "YQ==",
    "Quantity": "1",
    "IntOrString": 1,
    "Time": "2026-01-01T00:00:00Z",
    "MicroTime": "2026-01-01T00:00:00.000000Z",
    "FieldsV1": {"f:a": {}},
    "RawExtension": {"a": 1},
}
_SOMETIMES_SET = ("deletionTimestamp", "generateName")


class Counted(str):
    """Text that counts how often it is compared."""

    compared = 0

    def __eq__(self, other: object) -> bool:
        Counted.compared += 1
        return str.__eq__(self, other)

    def __ne__(self, other: object) -> bool:
        Counted.compared += 1
        return str.__ne__(self, other)

    __hash__ = str.__hash__


def counted(value: Any) -> Any:
    if isinstance(value, str):
        return Counted(value)
    if isinstance(value, list):
        return [counted(item) for item in value]
    if isinstance(value, dict):
        return {key: counted(item) for key, item in value.items()}
    return value


def filled(use: TypeUse, index: int, depth: int, field: WireField | None = None) -> Any:
    """A value of a type, with all that is at most `depth` deep in it; `index` makes its names unique."""
    match use.word:
        case "string":
            name = field.name if field else ""
            if field and field.enum:
                return field.enum[index % len(field.enum)]
            return _WORDS.get(name) or (f"/x{index}" if name.lower().endswith("path") else f"x{index}")
        case "int32" | "int64":
            return index + 1
        case "list":
            return [filled(use.items, index, depth - 1)] if depth > 0 and use.items else []
        case "map":
            return {f"k{index}": filled(use.items, index, depth - 1)} if depth > 0 and use.items else {}
        case "struct":
            return fields_filled(use.struct, index, depth - 1)
    return _LEAVES[use.word]


def fields_filled(wire: WireType, index: int, depth: int) -> Manifest:
    found = {}
    for field in wire.fields:
        nested = field.type.word in ("list", "map", "struct")
        if not nested or (depth > 0 and field.type.name != wire.name):
            found[field.name] = filled(field.type, index, depth, field)
    return {key: value for key, value in found.items() if value not in ({}, [])}


def lists_of(wire: WireType, above: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], TypeUse]]:
    """The way to each list and map in a type, with its type."""
    if wire.name in above:
        return
    for field in wire.fields:
        yield from _lists_in(field.type, (field.name,), (*above, wire.name))


def _lists_in(
    use: TypeUse, way: tuple[str, ...], above: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], TypeUse]]:
    if use.word == "struct":
        for rest, found in lists_of(use.struct, above):
            yield (*way, *rest), found
    elif use.items:
        yield way, use
        yield from _lists_in(use.items, (*way, "[]" if use.word == "list" else "{}"), above)


def built(use: TypeUse, way: tuple[str, ...], leaf: Any) -> Any:
    """A value with `leaf` at the end of a way into it, and simple fields on the way."""
    if not way:
        return leaf
    step, *rest = way
    if use.items:
        inside = built(use.items, tuple(rest), leaf)
        return [inside] if step == "[]" else {"k0": inside}
    obj = fields_filled(use.struct, 0, 0)
    obj[step] = built(use.struct.by_name[step].type, tuple(rest), leaf)
    return obj


def object_with(resource: APIResource, way: tuple[str, ...], use: TypeUse, count: int) -> Manifest:
    assert use.items
    items = [filled(use.items, index, 2) for index in range(count)]
    leaf = items if use.word == "list" else {f"k{index}": item for index, item in enumerate(items)}
    wire = wire_of(resource)
    obj: Manifest = built(TypeUse("struct", None, wire.name, wire.types), way, leaf)
    meta = {"name": "x", "namespace": "default", "uid": "u", "creationTimestamp": "2026-01-01T00:00:00Z"}
    given = {key: value for key, value in obj.get("metadata", {}).items() if key not in _SOMETIMES_SET}
    return {**obj, "apiVersion": resource.api_version, "kind": resource.kind, "metadata": {**given, **meta}}


def lived(resource: APIResource, obj: Manifest, update: Manifest) -> None:
    """What the verbs do with an object: create, update, status."""
    strategy = resource.strategy
    strategy.default(obj)
    strategy.prepare_create(obj)
    problems = validate_metadata(obj["metadata"], name_problems=strategy.name_problems)
    problems += strategy.validate(obj)
    errors.invalid(resource.group, resource.kind, "x", problems or [fields.required("x")])
    strategy.warnings(obj, None)
    strategy.default(update)
    strategy.prepare_update(update, obj)
    validate_metadata_update(update["metadata"], obj["metadata"])
    strategy.validate_update(update, obj)
    strategy.warnings(update, obj)
    if strategy.has_status:
        strategy.prepare_status(update, obj)
        strategy.validate_status(update, obj)
    strategy.selectable(update)


def operations(resource: APIResource, obj: Manifest) -> int:
    """Calls and comparisons in an object's life."""
    new, update = counted(obj), counted(obj)
    calls = 0

    def count(frame: object, event: str, argument: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    Counted.compared = 0
    before = sys.getprofile()
    sys.setprofile(count)
    try:
        lived(resource, new, update)
    finally:
        sys.setprofile(before)
    return calls + Counted.compared


def wire_of(resource: APIResource) -> WireType:
    assert isinstance(resource.schema, BuiltinSchema)
    return resource.schema.wire


def resources() -> dict[str, APIResource]:
    """Those of the newest version, with all of pod groups, and those that only older versions have."""
    store = Store()
    return {
        f"{resource.plural}.{resource.group}/{resource.version}": resource
        for version in (ServerVersion.of(V1_36), GROUPS_SERVED)
        for resource in builtin_resources(store.all, utc_now, version)
    }


RESOURCES = resources()


def is_seen_elsewhere(name: str, way: tuple[str, ...]) -> bool:
    """Whether the same part is looked at in another place: in config maps, in pods, in plain containers."""
    is_metadata = way[0] == "metadata" and not name.startswith("configmaps.")
    return is_metadata or not {"template", "initContainers", "ephemeralContainers"}.isdisjoint(way[:-1])


@pytest.fixture
def encodable(monkeypatch: pytest.MonkeyPatch) -> None:
    """Counted text can be encoded."""
    encode = msgspec.json.Encoder(enc_hook=str).encode
    monkeypatch.setattr(sound_specs, "encode", encode)
    monkeypatch.setattr(msgspec.json, "encode", encode)


@pytest.mark.usefixtures("encodable")
@pytest.mark.parametrize("name", RESOURCES)
def test_twice_as_long_a_list_costs_twice_as_much(name: str) -> None:
    resource = RESOURCES[name]
    wire = wire_of(resource)
    too_dear = {}
    by_type = {(way[-1], use): way for way, use in lists_of(wire) if not is_seen_elsewhere(name, way)}
    for (_, use), way in by_type.items():
        once, twice = (operations(resource, object_with(resource, way, use, n)) for n in (ITEMS, 2 * ITEMS))
        if twice > 2.5 * once:
            too_dear[".".join(way)] = (once, twice)
    assert not too_dear


def _pod(**spec: Any) -> Manifest:
    meta = {"name": "x", "namespace": "default", "uid": "u", "creationTimestamp": "2026-01-01T00:00:00Z"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {**meta, "labels": {"k1": "v"}}, "spec": spec}


def _pod_of(**container: Any) -> Manifest:
    return _pod(containers=[{"name": "c", "image": "i", **container}])


def _claims(count: int) -> Manifest:
    wanted = [{"name": "r", "request": f"q{index}"} for index in range(count)]
    pod = _pod_of(resources={"claims": [*wanted, *({"name": f"c{index}"} for index in range(count))]})
    pod["spec"]["resourceClaims"] = [{"name": f"d{index}"} for index in range(count)]
    return pod


def _label_keys(count: int) -> Manifest:
    keys = [f"k{index}" for index in range(count)]
    expressions = [{"key": key, "operator": "Exists"} for key in keys]
    term = {
        "topologyKey": "t",
        "labelSelector": {"matchExpressions": expressions},
        "matchLabelKeys": keys,
        "mismatchLabelKeys": [f"m{index}" for index in range(count)],
    }
    return _pod(affinity={"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}})


def _mounts_and_devices(count: int) -> Manifest:
    return _pod_of(
        volumeMounts=[{"name": f"m{index}", "mountPath": f"/m{index}"} for index in range(count)],
        volumeDevices=[{"name": f"d{index}", "devicePath": f"/d{index}"} for index in range(count)],
    )


def _spread_constraints(count: int) -> Manifest:
    constraint = {"maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}
    return _pod(topologySpreadConstraints=[{**constraint, "topologyKey": f"k{n}"} for n in range(count)])


def _host_ports(count: int) -> Manifest:
    ports = [{"containerPort": 80, "hostPort": index + 1, "protocol": "TCP"} for index in range(count)]
    return _pod_of(ports=ports)


@pytest.mark.usefixtures("encodable")
@pytest.mark.parametrize(
    "make", [_claims, _label_keys, _mounts_and_devices, _spread_constraints, _host_ports]
)
def test_lists_that_are_compared_with_each_other_cost_no_more_than_their_lengths(
    make: Callable[[int], Manifest],
) -> None:
    pods = RESOURCES["pods./v1"]
    once, twice = (operations(pods, make(count)) for count in (4 * ITEMS, 8 * ITEMS))
    assert twice < 2.5 * once
