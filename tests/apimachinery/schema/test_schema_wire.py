"""The data file is in its one form, and says what the API is known to say."""

from __future__ import annotations

from pathlib import Path

import pytest

from moorage.apimachinery.schema import schema_of, wire
from moorage.apimachinery.schema.wire import (
    TypeUse,
    WireFormat,
    merge_versions,
    render,
    select_version,
    wire_format,
)

CORE = "io.k8s.api.core.v1."


VERSIONS = ("1.36", "1.37")


def test_the_file_is_in_its_canonical_form() -> None:
    texts = {version: render(known := wire_format(version), known.version) for version in VERSIONS}
    assert texts == {version: wire_format(version).text for version in VERSIONS}
    assert merge_versions(texts) == Path(wire.__file__).with_name("wire.txt").read_text()


def test_parsing_what_was_written_gives_the_same_types() -> None:
    again = WireFormat(render(wire_format(), "v0"))
    assert render(again, "v0") == render(wire_format(), "v0")
    assert again.version == "v0"


def test_lines_that_not_all_versions_have_are_marked() -> None:
    old = "# v1\n\na.B\n  x string\n  y string\n\na.Old\n  z bool\n"
    new = "# v2\n\na.B kind=g/v/K\n  x int32\n  y string\n"
    merged = merge_versions({"1.1": old, "1.2": new})
    assert merged == (
        "1.1|# v1\n1.2|# v2\n\n1.1|a.B\n1.2|a.B kind=g/v/K\n1.1|  x string\n1.2|  x int32\n  y string\n\n"
        "1.1|a.Old\n1.1|  z bool\n"
    )
    assert (select_version(merged, "1.1"), select_version(merged, "1.2")) == (old, new)


@pytest.mark.parametrize("version", VERSIONS)
def test_all_types_that_are_referred_to_are_there(version: str) -> None:
    def names(use: TypeUse) -> list[str]:
        return names(use.items) if use.items else [use.name] * bool(use.name)

    known = wire_format(version)
    referred = {name for wire in known for field in wire.fields for name in names(field.type)}
    assert {name for name in referred if name not in known} == set()


@pytest.mark.parametrize("version", VERSIONS)
def test_numbers_are_unique_in_a_message(version: str) -> None:
    for known in wire_format(version):
        numbers = [field.number for field in known.fields if field.number]
        assert len(numbers) == len(set(numbers)), known.name


def field(type_name: str, name: str) -> object:
    return wire_format().type(type_name).by_name[name]


@pytest.mark.parametrize(
    ("type_name", "name", "facts"),
    [
        (f"{CORE}PodSpec", "containers", {"number": (2,), "list_keys": ("name",), "required": True}),
        (f"{CORE}PodSpec", "volumes", {"patch": ("merge", "retainKeys"), "merge_key": "name"}),
        (f"{CORE}Volume", "hostPath", {"number": (2, 1), "embedded": ("VolumeSource",)}),
        (f"{CORE}ContainerPort", "protocol", {"default": "TCP", "enum": ("SCTP", "TCP", "UDP")}),
        (f"{CORE}PodStatus", "phase", {"go_type": "v1.PodPhase"}),
        (f"{CORE}ResourceRequirements", "limits", {"go_type": "v1.ResourceList"}),
        (f"{CORE}PodSpec", "priority", {"keeps_zero": True}),
        (f"{CORE}PodSpec", "nodeName", {"keeps_zero": False}),
        (f"{CORE}PodSpec", "nodeSelector", {"map_type": "atomic"}),
    ],
)
def test_facts(type_name: str, name: str, facts: dict[str, object]) -> None:
    known = field(type_name, name)
    assert {fact: getattr(known, fact) for fact in facts} == facts


@pytest.mark.parametrize(
    "kind",
    [
        ("", "v1", "Pod"),
        ("", "v1", "Binding"),
        ("policy", "v1", "Eviction"),
        ("autoscaling", "v1", "Scale"),
        ("resource.k8s.io", "v1", "ResourceSlice"),
        ("apiextensions.k8s.io", "v1", "CustomResourceDefinition"),
        ("", "v1", "Status"),
        ("apps", "v1", "DeleteOptions"),
    ],
)
def test_kinds_have_types(kind: tuple[str, str, str]) -> None:
    known = wire_format().of_kind(*kind)
    assert known is not None
    assert kind in known.kinds


@pytest.mark.parametrize(
    ("kind", "versions"),
    [
        (("scheduling.k8s.io", "v1alpha2", "PodGroup"), ["1.36"]),
        (("scheduling.k8s.io", "v1alpha3", "CompositePodGroup"), ["1.37"]),
        (("scheduling.k8s.io", "v1beta1", "Workload"), ["1.37"]),
        (("resource.k8s.io", "v1", "DeviceTaintRule"), ["1.37"]),
        (("scheduling.k8s.io", "v1", "PriorityClass"), ["1.36", "1.37"]),
    ],
)
def test_versions_of_kinds(kind: tuple[str, str, str], versions: list[str]) -> None:
    assert [version for version in VERSIONS if wire_format(version).of_kind(*kind)] == versions


def test_fields_of_a_version() -> None:
    job = "io.k8s.api.batch.v1.JobSpec"
    fields = [wire_format(version).type(job).by_name.keys() for version in VERSIONS]
    assert fields[1] - fields[0] == {"scheduling"}
    rule = "io.k8s.api.admissionregistration.v1.RuleWithOperations"
    assert wire_format("1.37").type(rule).by_name["scope"].number == (2, 4)


@pytest.mark.parametrize("container", [{"name": "a"}, {"name": "a", "tty": None}], ids=["fast", "careful"])
def test_fields_of_gates_that_are_off_are_dropped_silently(container: dict[str, object]) -> None:
    group = {"podGroupName": "g"}
    spec = {"spec": {"schedulingGroup": group, "evictionResponders": [], "containers": [container]}}
    for gates, kept in ((frozenset({"GenericWorkload"}), group), (frozenset[str](), None), (None, group)):
        schema = schema_of("", "v1", "Pod", wire_format("1.37", gates))
        assert schema is not None
        decoded = schema.decode(spec)
        assert (decoded.obj["spec"].get("schedulingGroup"), decoded.unknown) == (kept, [])


def test_unknown_facts_are_refused() -> None:
    with pytest.raises(ValueError, match="'color=red' of field 'name'"):
        WireFormat("# head\n\na.b.C\n  name string color=red\n").type("a.b.C")


def test_a_type_may_have_no_fields() -> None:
    assert WireFormat("# head\n\na.b.C atomic\n").type("a.b.C").atomic
