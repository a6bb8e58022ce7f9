from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage_cluster.apiserver.patches.apply import NOTHING, FieldSet
from moorage_cluster.apiserver.patches.apply.elements import MalformedError, item_element
from moorage_cluster.apiserver.patches.apply.ownership import compare, fields_of
from tests.apiserver.patches.documents import GARBAGE
from tests.apiserver.patches.shapes import METADATA, PORTS, THING, thing
from tests.strategies import examples

ELEMENTS = st.sampled_from(
    [
        "f:a",
        "f:b",
        "f:.",
        "f:",
        'k:{"name":"x"}',
        'k:{"a":1,"b":"<"}',
        'v:"x"',
        "v:1",
        "v:true",
        "i:0",
        "i:10",
    ]
).map(lambda text: text.replace("<", "\\u003c"))
PATHS = st.lists(ELEMENTS, min_size=1, max_size=3)


@st.composite
def field_sets(draw: st.DrawFn) -> FieldSet:
    fields = FieldSet()
    for path in draw(st.lists(PATHS, max_size=6)):
        fields.add(path)
    return fields


def paths(fields: FieldSet) -> set[tuple[str, ...]]:
    return set(fields.paths())


@examples(150)
@given(field_sets())
def test_encoding_loses_nothing(fields: FieldSet) -> None:
    assert FieldSet.decode(fields.encode()) == fields
    assert FieldSet.decode(fields.encode()).encode() == fields.encode()


@examples(150)
@given(field_sets(), field_sets())
def test_operations_are_those_of_sets_of_paths(one: FieldSet, other: FieldSet) -> None:
    assert paths(one | other) == paths(one) | paths(other)
    assert paths(one & other) == paths(one) & paths(other)
    assert paths(one - other) == paths(one) - paths(other)
    assert paths(one.outside(other)) == {
        path
        for path in paths(one)
        if not any(path[:length] in paths(other) for length in range(1, len(path) + 1))
    }
    for result in (one | other, one & other, one - other, one.outside(other)):
        assert bool(result) == bool(paths(result))
        assert FieldSet.decode(result.encode()) == result
    assert all(path in one for path in paths(one))
    assert not any(path in one for path in paths(other - one))


@examples(100)
@given(st.dictionaries(ELEMENTS | st.just(".") | st.text(max_size=4), GARBAGE) | GARBAGE)
def test_garbage_is_malformed(fields: Any) -> None:
    with suppress(MalformedError):
        FieldSet.decode(fields)


def test_encoding_is_sorted_and_normal() -> None:
    given: dict[str, Any] = {
        "i:2": {},
        'v:"b"': {},
        'k:{ "protocol": "TCP", "containerPort": 80.0}': {"f:name": {}, ".": {}},
        "f:b": {"f:c": {}},
        "f:a": {},
        'k:{"containerPort":9,"protocol":"TCP"}': {},
        "x:from-the-future": {},
    }
    encoded = FieldSet.decode(given).encode()
    assert list(encoded) == [
        "f:a",
        "f:b",
        'k:{"containerPort":9,"protocol":"TCP"}',
        'k:{"containerPort":80,"protocol":"TCP"}',
        'v:"b"',
        "i:2",
    ]
    assert encoded['k:{"containerPort":80,"protocol":"TCP"}'] == {".": {}, "f:name": {}}
    assert encoded["f:b"] == {"f:c": {}}


def test_paths_are_printed() -> None:
    fields = FieldSet.decode(
        {"f:spec": {'k:{"a":1,"b":"x"}': {".": {}, "f:c": {}}, 'v:"y"': {}, "v:true": {}, "i:3": {}}}
    )
    assert fields.texts() == [
        '.spec[a=1,b="x"]',
        '.spec[="y"]',
        ".spec[=true]",
        ".spec[3]",
        '.spec[a=1,b="x"].c',
    ]


def test_items_without_a_key_take_its_default() -> None:
    assert item_element({"containerPort": 80}, PORTS) == 'k:{"containerPort":80,"protocol":"TCP"}'
    with pytest.raises(MalformedError, match="omits all key fields"):
        item_element({}, METADATA.__class__(PORTS.form, keys=("a", "b")))


FIELDS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "scalars": ({"replicas": 1}, {"f:replicas": {}}),
    "an atomic object": ({"selector": {"matchLabels": {"a": "b"}}}, {"f:selector": {}}),
    "an object": (
        {"strategy": {"rolling": {"surge": 1}}},
        {"f:strategy": {"f:rolling": {"f:surge": {}}}},
    ),
    "an empty object": ({"strategy": {}}, {"f:strategy": {}}),
    "a map": (
        {"devices": {"g": {"model": "x"}}},
        {"f:devices": {"f:g": {".": {}, "f:model": {}}}},
    ),
    "an atomic list": ({"tolerations": [{"key": "a"}]}, {"f:tolerations": {}}),
    "an empty atomic list": ({"tolerations": []}, {"f:tolerations": {}}),
    "a list with keys": (
        {"containers": [{"name": "a", "args": ["x"]}]},
        {"f:containers": {'k:{"name":"a"}': {".": {}, "f:name": {}, "f:args": {}}}},
    ),
    "an empty list with keys": ({"containers": []}, {}),
    "items that are there twice": (
        {"containers": [{"name": "a"}, {"name": "a", "image": "x"}, {"name": "a"}]},
        {"f:containers": {'k:{"name":"a"}': {}}},
    ),
    "anything": (
        {"anything": {"a": {"b": [1]}, "c": 1}},
        {"f:anything": {"f:a": {".": {}, "f:b": {}}, "f:c": {}}},
    ),
    "null": ({"replicas": None}, {"f:replicas": {}}),
}


@pytest.mark.parametrize("name", FIELDS)
def test_fields_of(name: str) -> None:
    spec, wanted = FIELDS[name]
    shape = THING.fields["spec"]
    assert fields_of(spec, shape) == FieldSet.decode(wanted) if wanted else not fields_of(spec, shape)


def test_fields_of_a_set() -> None:
    assert fields_of({"finalizers": ["a", "b"]}, METADATA).encode() == {
        "f:finalizers": {'v:"a"': {}, 'v:"b"': {}}
    }


DIFFERENCES: dict[str, tuple[dict[str, Any], dict[str, Any], list[str], list[str], list[str]]] = {
    "nothing": ({"replicas": 1}, {"replicas": 1}, [], [], []),
    "a scalar": ({"replicas": 1}, {"replicas": 2}, [], [".replicas"], []),
    "a truth for a number": ({"replicas": 1}, {"replicas": True}, [], [".replicas"], []),
    "an atomic object": (
        {"selector": {"matchLabels": {}}},
        {"selector": {"matchLabels": {"a": "b"}}},
        [],
        [".selector"],
        [],
    ),
    "a new object": (
        {},
        {"strategy": {"rolling": {"surge": 1}}},
        [".strategy", ".strategy.rolling", ".strategy.rolling.surge"],
        [],
        [],
    ),
    "another item": (
        {"containers": [{"name": "a"}]},
        {"containers": [{"name": "b"}]},
        ['.containers[name="b"]', '.containers[name="b"].name'],
        [],
        ['.containers[name="a"]', '.containers[name="a"].name'],
    ),
    "the order of items": (
        {"containers": [{"name": "a"}, {"name": "b"}]},
        {"containers": [{"name": "b"}, {"name": "a"}]},
        [],
        [],
        [],
    ),
    "an item that is there twice now": (
        {"containers": [{"name": "a"}]},
        {"containers": [{"name": "a"}, {"name": "a"}]},
        ['.containers[name="a"]'],
        [],
        ['.containers[name="a"]', '.containers[name="a"].name'],
    ),
    "an item that is there once again": (
        {"containers": [{"name": "a"}, {"name": "a"}]},
        {"containers": [{"name": "a"}]},
        ['.containers[name="a"]', '.containers[name="a"].name'],
        [],
        ['.containers[name="a"]'],
    ),
    "items that are there twice": (
        {"containers": [{"name": "a"}, {"name": "a", "image": "x"}]},
        {"containers": [{"name": "a"}, {"name": "a", "image": "y"}]},
        [],
        ['.containers[name="a"]'],
        [],
    ),
    "an object for a scalar": (
        {"anything": {"a": 1}},
        {"anything": {"a": {"b": 2}}},
        [".anything.a.b"],
        [".anything.a"],
        [],
    ),
    "empty for null": ({"strategy": None}, {"strategy": {}}, [], [".strategy"], []),
}


@pytest.mark.parametrize("name", DIFFERENCES)
def test_compare(name: str) -> None:
    old, new, *wanted = DIFFERENCES[name]
    difference = compare(old, new, THING.fields["spec"])
    assert [fields.texts() for fields in difference] == wanted


def test_nothing_is_nothing() -> None:
    assert not NOTHING
    assert NOTHING.encode() == {}
    assert not fields_of(thing(), THING) - FieldSet.of(
        "apiVersion", "kind", "metadata.name", "metadata.namespace"
    )
