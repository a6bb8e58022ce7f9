from __future__ import annotations

from typing import Any

import pytest

from moorage_cluster.apiserver.extensions.structural import CustomSchema
from tests.apiserver.extensions.definitions import INTEGER, STRING, array, obj, of_spec, widget

IN = "spec.x in body"

REFUSED: dict[str, tuple[dict[str, Any], Any, list[str]]] = {
    "text for a number": (
        INTEGER,
        "three",
        [f'spec.x: Invalid value: "string": {IN} must be of type integer: "string"'],
    ),
    "a number for text": (
        STRING,
        3,
        [f'spec.x: Invalid value: "integer": {IN} must be of type string: "integer"'],
    ),
    "an object for a list": (
        array(STRING),
        {},
        [f'spec.x: Invalid value: "object": {IN} must be of type array: "object"'],
    ),
    "null": (
        STRING | {"default": "a"},
        None,
        [f'spec.x: Invalid value: "null": {IN} must be of type string: "null"'],
    ),
    "a fraction for an integer": (
        INTEGER,
        1.5,
        [
            f'spec.x: Invalid value: "number": {IN} must be of type integer: "number"',
            '<nil>: Invalid value: "": Checked value must be of type integer (default format) in spec.x',
        ],
    ),
    "too large for 32 bits": (
        INTEGER | {"format": "int32"},
        2**31,
        ['<nil>: Invalid value: "": Checked value must be of type integer with format int32 in spec.x'],
    ),
    "neither integer nor string": (
        {"x-kubernetes-int-or-string": True},
        True,
        [f'spec.x: Invalid value: "boolean": {IN} must be of type integer,string: "boolean"'],
    ),
    "not one of the enum, in the schema's order": (
        STRING | {"enum": ["b", "a"]},
        "z",
        ['spec.x: Unsupported value: "z": supported values: "b", "a"'],
    ),
    "true is not 1": (
        {"type": "boolean", "enum": [1]},
        True,
        ['spec.x: Unsupported value: true: supported values: "1"'],
    ),
    "a pattern": (
        STRING | {"pattern": "^a+$"},
        "ab",
        [f"spec.x: Invalid value: \"ab\": {IN} should match '^a+$'"],
    ),
    "too short": (
        STRING | {"minLength": 2},
        "ä",
        [f'spec.x: Invalid value: "ä": {IN} should be at least 2 chars long'],
    ),
    "too long": (STRING | {"maxLength": 2}, "abc", ["spec.x: Too long: may not be more than 2 bytes"]),
    "below the minimum": (
        INTEGER | {"minimum": 1},
        0,
        [f"spec.x: Invalid value: 0: {IN} should be greater than or equal to 1"],
    ),
    "at the exclusive minimum": (
        {"type": "number", "minimum": 0.5, "exclusiveMinimum": True},
        0.5,
        [f"spec.x: Invalid value: 0.5: {IN} should be greater than 0.5"],
    ),
    "above the maximum": (
        INTEGER | {"maximum": 10},
        11,
        [f"spec.x: Invalid value: 11: {IN} should be less than or equal to 10"],
    ),
    "above a large maximum": (
        {"type": "number", "maximum": 1000000},
        2000000.5,
        [f"spec.x: Invalid value: 2.0000005e+06: {IN} should be less than or equal to 1e+06"],
    ),
    "at the exclusive maximum": (
        INTEGER | {"maximum": 10, "exclusiveMaximum": True},
        10,
        [f"spec.x: Invalid value: 10: {IN} should be less than 10"],
    ),
    "no multiple": (
        INTEGER | {"multipleOf": 5},
        7,
        [f"spec.x: Invalid value: 7: {IN} should be a multiple of 5"],
    ),
    "no multiple of a fraction": (
        {"type": "number", "multipleOf": 0.1},
        0.35,
        [f"spec.x: Invalid value: 0.35: {IN} should be a multiple of 0.1"],
    ),
    "too few items": (
        array(STRING, minItems=1),
        [],
        [f"spec.x: Invalid value: 0: {IN} should have at least 1 items"],
    ),
    "too many items": (
        array(STRING, maxItems=2),
        ["a", "b", "c"],
        ["spec.x: Too many: 3: must have at most 2 items"],
    ),
    "an item": (
        array(INTEGER),
        [1, "b"],
        ['spec.x[1]: Invalid value: "string": spec.x[1] in body must be of type integer: "string"'],
    ),
    "too few properties": (
        {"type": "object", "additionalProperties": STRING, "minProperties": 1},
        {},
        [f"spec.x: Invalid value: 0: {IN} should have at least 1 properties"],
    ),
    "too many properties": (
        {"type": "object", "additionalProperties": STRING, "maxProperties": 2},
        {"a": "", "b": "", "c": ""},
        ["spec.x: Too many: 3: must have at most 2 items"],
    ),
    "a value of a map": (
        {"type": "object", "additionalProperties": INTEGER},
        {"a": "b"},
        ['spec.x.a: Invalid value: "string": spec.x.a in body must be of type integer: "string"'],
    ),
    "required": (obj(a=STRING) | {"required": ["a"]}, {}, ["spec.x.a: Required value"]),
    "anyOf": (
        obj(a=STRING, b=STRING) | {"anyOf": [{"required": ["a"]}, {"required": ["b"]}]},
        {},
        [
            '<nil>: Invalid value: "": "spec.x" must validate at least one schema (anyOf)',
            "spec.x.a: Required value",
        ],
    ),
    "oneOf with none": (
        INTEGER | {"oneOf": [{"minimum": 5}, {"enum": [1]}]},
        2,
        [
            '<nil>: Invalid value: "": "spec.x" must validate one and only one schema (oneOf). '
            "Found none valid",
            f"spec.x: Invalid value: 2: {IN} should be greater than or equal to 5",
        ],
    ),
    "oneOf with two": (
        INTEGER | {"oneOf": [{"minimum": 1}, {"minimum": 2}]},
        3,
        [
            '<nil>: Invalid value: "": "spec.x" must validate one and only one schema (oneOf). '
            "Found 2 valid alternatives"
        ],
    ),
    "allOf": (
        INTEGER | {"allOf": [{"minimum": 5}, {"maximum": 9}]},
        2,
        [
            f"spec.x: Invalid value: 2: {IN} should be greater than or equal to 5",
            '<nil>: Invalid value: "": "spec.x" must validate all the schemas (allOf)',
        ],
    ),
    "allOf with none": (
        INTEGER | {"allOf": [{"minimum": 5}]},
        2,
        [
            f"spec.x: Invalid value: 2: {IN} should be greater than or equal to 5",
            '<nil>: Invalid value: "": "spec.x" must validate all the schemas (allOf). None validated',
        ],
    ),
    "not": (
        STRING | {"not": {"enum": ["a"]}},
        "a",
        ['<nil>: Invalid value: "": "spec.x" must not validate the schema (not)'],
    ),
    "a format": (
        STRING | {"format": "date-time"},
        "noon",
        [f'spec.x: Invalid value: "noon": {IN} must be of type date-time: "noon"'],
    ),
    "a number where a format of text is asked": (
        STRING | {"format": "uuid"},
        5,
        [f'spec.x: Invalid value: "int64": {IN} must be of type uuid: "int64"'],
    ),
    "twice in a set": (
        array(STRING, **{"x-kubernetes-list-type": "set"}),
        ["a", "b", "a", "a"],
        ['spec.x[2]: Duplicate value: "a"'],
    ),
    "twice under a key": (
        array(obj(name=STRING), **{"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]}),
        [{"name": "a"}, {"name": "a"}],
        ['spec.x[1]: Duplicate value: {"name":"a"}'],
    ),
    "an object that is none": (
        {
            "type": "object",
            "x-kubernetes-embedded-resource": True,
            "x-kubernetes-preserve-unknown-fields": True,
        },
        {"apiVersion": "", "metadata": {"name": "a/b"}},
        [
            'spec.x.apiVersion: Invalid value: "": must not be empty',
            "spec.x.kind: Required value",
            "spec.x.metadata.name: Invalid value: \"a/b\": may not contain '/'",
        ],
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_wrong_is_reported_in_kubernetes_words(case: str) -> None:
    schema, value, expected = REFUSED[case]
    assert [
        str(error) for error in CustomSchema(of_spec(schema)).validate(widget(spec={"x": value}))
    ] == expected


ACCEPTED: dict[str, tuple[dict[str, Any], Any]] = {
    "a whole number in floating point": (INTEGER, 3.0),
    "an integer for a number": ({"type": "number"}, 3),
    "1.0 for an enum of 1": (INTEGER | {"enum": [1]}, 1.0),
    "null where it may be": (STRING | {"nullable": True}, None),
    "an integer or a string": ({"x-kubernetes-int-or-string": True, "anyOf": [INTEGER, STRING]}, "50%"),
    "any format that nobody knows": (STRING | {"format": "colour"}, "?"),
    "anything without a type": ({"x-kubernetes-preserve-unknown-fields": True}, [1, {"a": None}]),
    "a multiple of a fraction": ({"type": "number", "multipleOf": 0.1}, 0.3),
    "a pattern that matches a part": (STRING | {"pattern": "b"}, "abc"),
}


@pytest.mark.parametrize("case", ACCEPTED)
def test_what_fits_is_accepted(case: str) -> None:
    schema, value = ACCEPTED[case]
    assert CustomSchema(of_spec(schema)).validate(widget(spec={"x": value})) == []


FORMATS = {
    "byte": ("aGk=", "hi!"),
    "cidr": ("10.0.0.0/8", "10.0.0.0"),
    "date": ("2024-02-29", "2023-02-29"),
    "date-time": ("2024-02-29T10:00:00Z", "2024-02-29 10:00:00"),
    "duration": ("1h30m", "long"),
    "email": ("a@example.com", "example.com"),
    "hostname": ("a.example.com", "-a"),
    "ipv4": ("010.1.2.3", "10.1.2"),
    "ipv6": ("::1", "10.1.2.3"),
    "isbn": ("978-0321751041", "978-0321751042"),
    "isbn10": ("0321751043", "0321751044"),
    "creditcard": ("4111 1111 1111 1111", "4111 1111 1111 1112"),
    "k8s-long-name": ("a.b-c", "A"),
    "k8s-short-name": ("b-c", "a.b"),
    "mac": ("01:23:45:67:89:ab", "01:23:45:67:89"),
    "hexcolor": ("#ff00FF", "#ff00F"),
    "rgbcolor": ("rgb(1, 2,255)", "rgb(1,2,256)"),
    "ssn": ("078-05-1120", "078-051120"),
    "uri": ("https://example.com/a", "example"),
    "uuid": ("123e4567-e89b-12d3-a456-426614174000", "123e4567"),
    "uuid4": ("123e4567-e89b-42d3-a456-426614174000", "123e4567-e89b-12d3-a456-426614174000"),
    "bsonobjectid": ("507f1f77bcf86cd799439011", "507f"),
}


@pytest.mark.parametrize("name", FORMATS)
def test_formats(name: str) -> None:
    schema = CustomSchema(of_spec(STRING | {"format": name}))
    good, bad = FORMATS[name]
    assert schema.validate(widget(spec={"x": good})) == []
    assert [error.detail for error in schema.validate(widget(spec={"x": bad}))] == [
        f'spec.x in body must be of type {name}: "{bad}"'
    ]


def test_an_update_may_leave_what_was_wrong() -> None:
    schema = CustomSchema(of_spec(obj(a=INTEGER, b=INTEGER)))
    old = widget(spec={"x": {"a": "wrong", "b": 1}})
    assert schema.validate(widget(spec={"x": {"a": "wrong", "b": 2}}), old) == []
    changed = schema.validate(widget(spec={"x": {"a": "still wrong", "b": 1}}), old)
    assert [error.path for error in changed] == ["spec.x.a"]


def test_an_update_finds_old_items_by_their_keys() -> None:
    keyed = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]}
    schema = CustomSchema(of_spec(array(obj(name=STRING, size=INTEGER), **keyed)))
    old = widget(spec={"x": [{"name": "a", "size": "wrong"}]})
    new = widget(spec={"x": [{"name": "b", "size": "new"}, {"name": "a", "size": "wrong"}]})
    assert [error.path for error in schema.validate(new, old)] == ["spec.x[0].size"]


def test_a_status_is_checked_on_its_own() -> None:
    schema = CustomSchema(obj(spec=obj(x=INTEGER), status=obj(ready=INTEGER)))
    found = schema.validate_status(widget(spec={"x": "wrong"}, status={"ready": "no"}), widget())
    assert [str(error) for error in found] == [
        'status.ready: Invalid value: "string": ready in body must be of type integer: "string"'
    ]
