"""The data file is in its one form, and says what the API is known to say."""

from __future__ import annotations

import pytest

from moorage.apimachinery.schema.wire import TypeUse, WireFormat, WireType, render, wire_format

CORE = "io.k8s.api.core.v1."


def test_the_file_is_in_its_canonical_form() -> None:
    known = wire_format()
    assert render(known, known.version) == known.text


def test_parsing_what_was_written_gives_the_same_types() -> None:
    known = wire_format()
    again = WireFormat(render(known, "v0"))
    assert list(again) == list(known)
    assert again.version == "v0"


def test_all_types_that_are_referred_to_are_there() -> None:
    def names(use: TypeUse) -> list[str]:
        return names(use.items) if use.items else [use.name] * bool(use.name)

    known = wire_format()
    referred = {name for wire in known for field in wire.fields for name in names(field.type)}
    assert {name for name in referred if name not in known} == set()


def test_numbers_are_unique_in_a_message() -> None:
    for wire in wire_format():
        numbers = [field.number for field in wire.fields if field.number]
        assert len(numbers) == len(set(numbers)), wire.name


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
        ("scheduling.k8s.io", "v1alpha2", "PodGroup"),
        ("resource.k8s.io", "v1", "ResourceSlice"),
        ("apiextensions.k8s.io", "v1", "CustomResourceDefinition"),
        ("", "v1", "Status"),
        ("apps", "v1", "DeleteOptions"),
    ],
)
def test_kinds_have_types(kind: tuple[str, str, str]) -> None:
    wire = wire_format().of_kind(*kind)
    assert wire is not None
    assert kind in wire.kinds


def test_unknown_facts_are_refused() -> None:
    with pytest.raises(ValueError, match="'color=red' of field 'name'"):
        WireFormat("# head\n\na.b.C\n  name string color=red\n").type("a.b.C")


def test_a_type_may_have_no_fields() -> None:
    assert WireFormat("# head\n\na.b.C atomic\n").type("a.b.C") == WireType("a.b.C", atomic=True)
