from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moorage.apimachinery.errors import ApiError
from moorage.apimachinery.schema.shape import Form
from moorage_cluster.apiserver.extensions.structural import CustomSchema
from tests.apiserver.extensions.definitions import INTEGER, STRING, array, obj, of_spec, widget

PRESERVE = {"x-kubernetes-preserve-unknown-fields": True}
EMBEDDED = {"type": "object", "x-kubernetes-embedded-resource": True}

PRUNED: dict[str, tuple[dict[str, Any], Any, Any, list[str]]] = {
    "an unknown field": (obj(a=STRING), {"a": "1", "b": {"c": 2}}, {"a": "1"}, ["spec.x.b"]),
    "in items": (
        array(obj(a=STRING)),
        [{"a": "1"}, {"b": 1, "c": 2}],
        [{"a": "1"}, {}],
        ["spec.x[1].b", "spec.x[1].c"],
    ),
    "in a map": (
        {"type": "object", "additionalProperties": obj(a=STRING)},
        {"k": {"a": "1", "b": 2}},
        {"k": {"a": "1"}},
        ["spec.x.k.b"],
    ),
    "a map of whatever keeps no objects": (
        {"type": "object", "additionalProperties": True},
        {"k": {"a": "1"}, "l": 1},
        {"k": {}, "l": 1},
        ["spec.x.k.a"],
    ),
    "preserved": (PRESERVE, {"a": {"b": [1, None]}}, {"a": {"b": [1, None]}}, []),
    "known fields of what is preserved are still pruned": (
        obj(a=obj(b=STRING)) | PRESERVE,
        {"a": {"b": "1", "c": 2}, "d": {"e": 3}},
        {"a": {"b": "1"}, "d": {"e": 3}},
        ["spec.x.a.c"],
    ),
    "a null": (obj(a=STRING), {"a": None}, {}, []),
    "a null that is a value": (obj(a=STRING | {"nullable": True}), {"a": None}, {"a": None}, []),
    "a null that waits for its default": (
        obj(a=STRING | {"default": "z"}),
        {"a": None},
        {"a": None},
        [],
    ),
    "a null in a list": (array(STRING), [None], [None], []),
    "scalars where objects belong are left for validation": (obj(a=STRING), 5, 5, []),
    "an embedded object": (
        EMBEDDED | obj(spec=obj(a=STRING)),
        {"kind": "K", "apiVersion": "v1", "metadata": {"name": "n", "foo": 1}, "spec": {"b": 1}, "c": 2},
        {"kind": "K", "apiVersion": "v1", "metadata": {"name": "n"}, "spec": {}},
        ["spec.x.c", "spec.x.spec.b", "spec.x.metadata.foo"],
    ),
    "an integer beyond 64 bits": ({"type": "number"}, 2**70, float(2**70), []),
}


@pytest.mark.parametrize("case", PRUNED)
def test_what_is_not_known_is_dropped_and_reported(case: str) -> None:
    schema, value, expected, unknown = PRUNED[case]
    given_object = widget(spec={"x": value})
    before = json.dumps(given_object)
    decoded = CustomSchema(of_spec(schema)).decode(given_object)
    assert (decoded.obj, decoded.unknown) == (widget(spec={"x": expected}), unknown)
    assert json.dumps(given_object) == before, "what is decoded is a copy"


REFUSED = {
    "no object": (5, "the object provided is not a JSON object"),
    "a name that is a number": (
        widget(metadata={"name": 5}),
        "metadata.name: Invalid value: 5: must be of type string",
    ),
    "labels that are a list": (
        widget(metadata={"labels": []}),
        "metadata.labels: Invalid value: []: must be of type object",
    ),
    "a kind that is a list": (widget(kind=[]), "kind: Invalid value: []: must be a string"),
    "a huge number": (
        widget(spec={"x": 10**400}),
        "the object provided has a number that is too large",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_an_object_is_refused(case: str) -> None:
    value, message = REFUSED[case]
    with pytest.raises(ApiError) as raised:
        CustomSchema(of_spec(PRESERVE)).decode(value)
    assert (raised.value.code, raised.value.message) == (400, message)


def test_metadata_loses_nulls_and_unknown_fields() -> None:
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u", "controller": True, "extra": 1}
    meta = {
        "name": "w",
        "creationTimestamp": None,
        "labels": {"a": None},
        "finalizers": ["f/g"],
        "ownerReferences": [owner],
        "managedFields": [{"manager": "m", "fieldsV1": {"f:a": {}}}],
        "color": "red",
    }
    decoded = CustomSchema(obj()).decode(widget(metadata=meta))
    assert decoded.unknown == ["metadata.color", "metadata.ownerReferences[0].extra"]
    assert decoded.obj["metadata"] == {
        "name": "w",
        "labels": {"a": ""},
        "finalizers": ["f/g"],
        "ownerReferences": [{key: value for key, value in owner.items() if key != "extra"}],
        "managedFields": [{"manager": "m", "fieldsV1": {"f:a": {}}}],
    }


DEFAULTED: dict[str, tuple[dict[str, Any], Any, Any]] = {
    "missing": (obj(a=STRING | {"default": "z"}), {}, {"a": "z"}),
    "there": (obj(a=STRING | {"default": "z"}), {"a": ""}, {"a": ""}),
    "null": (obj(a=STRING | {"default": "z"}), {"a": None}, {"a": "z"}),
    "null that is a value": (
        obj(a=STRING | {"default": "z", "nullable": True}),
        {"a": None},
        {"a": None},
    ),
    "inside of a default": (
        obj(a=obj(b=INTEGER | {"default": 1}) | {"default": {}}),
        {},
        {"a": {"b": 1}},
    ),
    "not inside of what is missing": (obj(a=obj(b=INTEGER | {"default": 1})), {}, {}),
    "in items": (array(obj(b=INTEGER | {"default": 1})), [{}, {"b": 2}], [{"b": 1}, {"b": 2}]),
    "for a null item": (array(INTEGER | {"default": 7}), [None, 1], [7, 1]),
    "in a map": (
        {"type": "object", "additionalProperties": obj(b=INTEGER | {"default": 1})},
        {"k": {}},
        {"k": {"b": 1}},
    ),
}


@pytest.mark.parametrize("case", DEFAULTED)
def test_what_is_left_out_is_filled_in(case: str) -> None:
    schema, value, expected = DEFAULTED[case]
    compiled = CustomSchema(of_spec(schema))
    filled = widget(spec={"x": value})
    for _ in range(2):
        compiled.apply_defaults(filled)
        assert filled == widget(spec={"x": expected})


def test_objects_do_not_share_their_defaults() -> None:
    compiled = CustomSchema(of_spec(obj(a={"type": "object", "default": {}} | PRESERVE)))
    first, second = widget(spec={"x": {}}), widget(spec={"x": {}})
    compiled.apply_defaults(first)
    first["spec"]["x"]["a"]["b"] = 1
    compiled.apply_defaults(second)
    assert second["spec"]["x"] == {"a": {}}


def test_shapes_follow_the_schemas_list_and_map_types() -> None:
    keyed = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name", "port"]}
    item = obj(name=STRING, port=INTEGER | {"default": 80})
    fields = {
        "plain": array(STRING),
        "unique": array(STRING, **{"x-kubernetes-list-type": "set"}),
        "keyed": array(item, **keyed),
        "map": {"type": "object", "additionalProperties": STRING},
        "whole": obj(a=STRING) | {"x-kubernetes-map-type": "atomic"},
        "either": {"x-kubernetes-int-or-string": True, "type": ""} | STRING,
        "any": PRESERVE,
        "some": obj(a=STRING) | PRESERVE,
        "embedded": EMBEDDED | PRESERVE,
    }
    root = CustomSchema(obj(spec=obj(**fields))).shape
    assert root.form is Form.OBJECT
    assert root.fields["metadata"].fields["ownerReferences"].keys == ("uid",)
    spec = root.fields["spec"].fields
    assert {name: spec[name].form for name in fields} == {
        "plain": Form.LIST,
        "unique": Form.LIST,
        "keyed": Form.LIST,
        "map": Form.MAP,
        "whole": Form.OBJECT,
        "either": Form.SCALAR,
        "any": Form.ANY,
        "some": Form.OBJECT,
        "embedded": Form.OBJECT,
    }
    assert [name for name in fields if spec[name].atomic] == ["plain", "whole"]
    assert spec["unique"].is_set
    assert (spec["keyed"].keys, spec["keyed"].key_defaults) == (("name", "port"), {"port": 80})
    assert spec["some"].items is not None
    assert "metadata" in spec["embedded"].fields


KEYS = st.sampled_from(["spec", "status", "metadata", "kind", "x", "a", "name", "labels", "finalizers", "ü"])
JSON_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.just(10**400)
    | st.floats(allow_nan=False)
    | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=12,
)
WIDE = CustomSchema(
    obj(
        spec=obj(
            x=array(
                obj(name=STRING | {"default": "z", "pattern": "^z", "format": "date"}),
                **{"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"], "minItems": 1},
            ),
            a={"x-kubernetes-int-or-string": True, "minimum": 0.5, "multipleOf": 2, "enum": [1, "a", None]},
            labels={"type": "object", "additionalProperties": INTEGER | {"maximum": 3, "format": "int32"}},
            name=EMBEDDED | PRESERVE,
        )
        | {"oneOf": [{"required": ["x"]}, {"required": ["a"]}]},
        status=PRESERVE,
    )
)


@settings(max_examples=300, deadline=None)
@given(JSON_VALUES)
def test_no_value_breaks_a_schema(value: Any) -> None:
    WIDE.validate(value)
    try:
        decoded = WIDE.decode(value).obj
    except ApiError:
        return
    WIDE.apply_defaults(decoded)
    WIDE.validate(decoded)
    WIDE.validate(decoded, decoded)
    WIDE.validate_status(decoded, decoded)
    assert WIDE.decode(decoded) == (decoded, []), "decoding twice changes nothing"


def test_an_endless_nest_is_refused() -> None:
    nest: Any = 1
    for _ in range(5000):
        nest = [nest]
    with pytest.raises(ApiError, match="nested too deeply"):
        CustomSchema(of_spec(PRESERVE)).decode(widget(spec={"x": nest}))
