from __future__ import annotations

from typing import Any

import pytest

from moorage.api.manifests import Manifest
from moorage.apimachinery.errors import ApiError
from moorage_cluster.apiserver.extensions.resources import deprecation_warning, resources_of
from moorage_cluster.apiserver.extensions.scale import scale_of, with_scale
from tests.apiserver.extensions.definitions import INTEGER, NOW, STRING, crd, obj, of_spec, version, widget

SCALE = {
    "specReplicasPath": ".spec.replicas",
    "statusReplicasPath": ".status.replicas",
    "labelSelectorPath": ".status.selector",
}
REPLICAS = obj(
    spec=obj(replicas=INTEGER | {"default": 1}, color=STRING),
    status=obj(replicas=INTEGER, selector=STRING),
)
SCALED = crd(version(schema=REPLICAS, subresources={"status": {}, "scale": SCALE}))


def test_each_served_version_is_a_resource_of_one_collection() -> None:
    definition = crd(
        version("v1"), version("v1beta1", storage=False), version("v1alpha1", storage=False, served=False)
    )
    resources = resources_of(definition)
    assert [resource.api_version for resource in resources] == ["example.com/v1", "example.com/v1beta1"]
    assert {resource.storage for resource in resources} == {"example.com/widgets"}
    first = resources[0]
    assert (first.kind, first.list_kind, first.singular) == ("Widget", "WidgetList", "widget")
    assert (first.short_names, first.categories, first.namespaced) == (("wd",), ("all",), True)
    assert first.is_custom
    assert first.subresources == ()


def test_a_list_may_have_a_kind_of_its_own() -> None:
    definition = crd()
    definition["spec"]["names"]["listKind"] = "Wall"
    assert resources_of(definition)[0].list_kind == "Wall"


def test_subresources_are_served_as_declared() -> None:
    (resource,) = resources_of(SCALED)
    status, scale = resource.subresources
    assert (status.name, status.kind, status.group) == ("status", "Widget", "")
    assert (scale.name, scale.kind, scale.group, scale.version) == ("scale", "Scale", "autoscaling", "v1")
    assert resource.strategy.has_status


def test_columns_are_shown_after_the_name() -> None:
    column = {"name": "Size", "type": "integer", "jsonPath": ".spec.x"}
    (resource,) = resources_of(crd(version(schema=of_spec(INTEGER), additionalPrinterColumns=[column])))
    assert [each.name for each in resource.printer.columns] == ["Name", "Size"]
    assert resource.printer.row(widget(spec={"x": 3}), NOW) == ["w", 3]
    assert [each.name for each in resources_of(crd())[0].printer.columns] == ["Name", "Age"]


def test_a_status_has_one_writer_only_where_it_has_an_address() -> None:
    (with_status,) = resources_of(SCALED)
    (without,) = resources_of(crd(version(schema=REPLICAS)))
    old = widget(metadata={"name": "w", "generation": 4}, spec={"replicas": 1}, status={"replicas": 1})
    kept = widget(spec={"replicas": 1}, status={"replicas": 2})
    with_status.strategy.prepare_update(kept, old)
    assert (kept["status"], kept["metadata"]["generation"]) == ({"replicas": 1}, 4)
    changed = widget(spec={"replicas": 1}, status={"replicas": 2})
    without.strategy.prepare_update(changed, old)
    assert (changed["status"], changed["metadata"]["generation"]) == ({"replicas": 2}, 5)


def test_a_status_writer_changes_nothing_else() -> None:
    (resource,) = resources_of(SCALED)
    old = widget(metadata={"name": "w", "generation": 4, "labels": {"a": "b"}}, spec={"replicas": 1})
    new = widget(
        metadata={"name": "w", "labels": {"a": "c"}, "managedFields": [{"manager": "m"}]},
        spec={"replicas": 9},
        status={"replicas": 2},
    )
    resource.strategy.prepare_status(new, old)
    expected = {"name": "w", "generation": 4, "labels": {"a": "b"}, "managedFields": [{"manager": "m"}]}
    assert new == widget(metadata=expected, spec={"replicas": 1}, status={"replicas": 2})


def test_objects_are_completed_and_checked() -> None:
    (resource,) = resources_of(SCALED)
    new = widget(spec={})
    resource.strategy.default(new)
    assert new["spec"] == {"replicas": 1}
    assert resource.strategy.validate(new) == []
    assert [str(error) for error in resource.strategy.validate(new | {"kind": "Gadget"})] == [
        'kind: Invalid value: "Gadget": must be Widget'
    ]


WRONG_SCALES: dict[str, tuple[Manifest, list[str]]] = {
    "negative": (
        {"spec": {"replicas": -1}},
        [".spec.replicas: Invalid value: -1: should be a non-negative integer"],
    ),
    "too many": (
        {"spec": {"replicas": 2**31}},
        [".spec.replicas: Invalid value: 2147483648: should be less than or equal to 2147483647"],
    ),
    "no number": (
        {"status": {"replicas": "2"}},
        [
            'status.replicas: Invalid value: "string": status.replicas in body must be of type integer: '
            '"string"',
            ".status.replicas: Invalid value: 0: .status.replicas accessor error: 2 is of the type string, "
            "expected int64",
        ],
    ),
}


@pytest.mark.parametrize("case", WRONG_SCALES)
def test_replicas_must_be_a_count(case: str) -> None:
    (resource,) = resources_of(SCALED)
    fields, expected = WRONG_SCALES[case]
    assert [str(error) for error in resource.strategy.validate(widget(**fields))] == expected


def test_the_scale_of_an_object() -> None:
    meta = {"name": "w", "namespace": "n", "uid": "u", "resourceVersion": "5", "labels": {"a": "b"}}
    current = widget(metadata=meta, spec={"replicas": 3}, status={"replicas": 2, "selector": "a=b"})
    scale = scale_of(current, SCALED)
    assert scale == {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {"name": "w", "namespace": "n", "uid": "u", "resourceVersion": "5"},
        "spec": {"replicas": 3},
        "status": {"replicas": 2, "selector": "a=b"},
    }
    scale["spec"]["replicas"] = 7
    changed = with_scale(current, scale, SCALED)
    assert (changed["spec"], current["spec"]) == ({"replicas": 7}, {"replicas": 3})
    assert with_scale(current, {"spec": {}}, SCALED)["spec"] == {"replicas": 0}
    assert with_scale(widget(), scale, SCALED)["spec"] == {"replicas": 7}


NO_SCALE: dict[str, tuple[Manifest, Manifest, int, str]] = {
    "no replicas": (
        SCALED,
        widget(spec={}),
        500,
        'Internal error occurred: the spec replicas field ".spec.replicas" does not exist',
    ),
    "replicas that are text": (
        SCALED,
        widget(spec={"replicas": "3"}),
        500,
        "Internal error occurred: .spec.replicas accessor error: 3 is of the type string, expected int64",
    ),
    "a spec that is text": (
        SCALED,
        widget(spec="s"),
        500,
        "Internal error occurred: .spec.replicas accessor error: s is of the type string, "
        "expected map[string]interface{}",
    ),
    "no scale": (crd(), widget(), 404, "the server could not find the requested resource"),
}


@pytest.mark.parametrize("case", NO_SCALE)
def test_some_objects_have_no_scale(case: str) -> None:
    definition, current, code, message = NO_SCALE[case]
    with pytest.raises(ApiError) as raised:
        scale_of(current, definition)
    assert (raised.value.code, raised.value.message) == (code, message)


def test_a_scale_must_say_a_number() -> None:
    with pytest.raises(ApiError, match="must be of type integer"):
        with_scale(widget(), {"spec": {"replicas": "many"}}, SCALED)
    with pytest.raises(ApiError, match=r"value cannot be set because \.spec is not a map"):
        with_scale(widget(spec="s"), {"spec": {"replicas": 1}}, SCALED)


def test_selectable_fields_are_always_there() -> None:
    fields = obj(spec=obj(color=STRING, on={"type": "boolean"}, size=INTEGER))
    selectable = [{"jsonPath": ".spec.color"}, {"jsonPath": ".spec.on"}, {"jsonPath": ".spec.size"}]
    (resource,) = resources_of(crd(version(schema=fields, selectableFields=selectable)))
    assert resource.strategy.selectable(widget(spec={"on": True, "size": 3})) == {
        "spec.color": "",
        "spec.on": "true",
        "spec.size": "3",
    }


def test_finalizers_that_may_clash_are_mentioned() -> None:
    (resource,) = resources_of(crd())
    new = widget(metadata={"name": "w", "finalizers": ["mine", "example.com", "example.com/mine", "orphan"]})
    advice = "to avoid accidental conflicts with other finalizer writers"
    assert resource.strategy.warnings(new, None) == [
        'metadata.finalizers: "example.com": prefer a domain-qualified finalizer name including a path (/) '
        + advice,
        f'metadata.finalizers: "mine": prefer a domain-qualified finalizer name {advice}',
    ]
    assert resource.strategy.warnings(new, new) == []


def test_deprecated_versions_name_a_better_one() -> None:
    old: dict[str, Any] = {"storage": False, "deprecated": True}
    definition = crd(
        version("v1"),
        version("v2alpha1", storage=False),
        version("v1beta1", **old),
        version("v1alpha1", **old, deprecationWarning="go away"),
    )
    assert deprecation_warning(definition, "v1") == ""
    assert deprecation_warning(definition, "v1alpha1") == "go away"
    expected = "example.com/v1beta1 Widget is deprecated; use example.com/v1 Widget"
    assert deprecation_warning(definition, "v1beta1") == expected
