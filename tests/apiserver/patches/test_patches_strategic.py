from __future__ import annotations

from contextlib import suppress
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.apimachinery.errors import ApiError
from moorage.apimachinery.schema.shape import ANYTHING
from moorage_cluster.apiserver.patches.strategic import apply_strategic_patch
from tests.apiserver.patches.documents import FULL, GARBAGE
from tests.apiserver.patches.shapes import THING, thing
from tests.strategies import examples


def c(name: str, **more: Any) -> dict[str, Any]:
    return {"name": name, **more}


def names(*each: str) -> list[dict[str, Any]]:
    return [c(name) for name in each]


SPECS: dict[str, tuple[dict[str, Any], dict[str, Any], dict[str, Any]]] = {
    "scalars are replaced": ({"replicas": 1}, {"replicas": 2}, {"replicas": 2}),
    "null removes": ({"replicas": 1, "paused": True}, {"replicas": None}, {"paused": True}),
    "objects merge": (
        {"selector": {"matchLabels": {"a": "1"}}},
        {"selector": {"matchLabels": {"b": "2"}}},
        {"selector": {"matchLabels": {"a": "1", "b": "2"}}},
    ),
    "lists without strategy are replaced": (
        {"tolerations": [{"key": "a"}]},
        {"tolerations": [{"key": "b"}]},
        {"tolerations": [{"key": "b"}]},
    ),
    "items merge by key": (
        {"containers": [c("a", image="1", args=["x"]), c("b", image="2")]},
        {"containers": [c("b", image="3")]},
        {"containers": [c("a", image="1", args=["x"]), c("b", image="3")]},
    ),
    "new items come first, as nothing says where else": (
        {"containers": names("a", "b")},
        {"containers": names("n")},
        {"containers": names("n", "a", "b")},
    ),
    "the patch's order wins": (
        {"containers": names("a", "b", "c", "d")},
        {"containers": names("c", "a")},
        {"containers": names("b", "c", "a", "d")},
    ),
    "given order": (
        {"containers": names("a", "b", "c")},
        {
            "$setElementOrder/containers": names("c", "n", "a"),
            "containers": names("n"),
        },
        {"containers": names("b", "c", "n", "a")},
    ),
    "given order alone": (
        {"containers": [c("a", image="1"), c("b")]},
        {"$setElementOrder/containers": names("b", "a")},
        {"containers": [c("b"), c("a", image="1")]},
    ),
    "given order of a new list": (
        {},
        {"$setElementOrder/containers": names("b", "a"), "containers": names("b", "a")},
        {"containers": names("b", "a")},
    ),
    "given order of nothing": ({"replicas": 1}, {"$setElementOrder/containers": names("b")}, {"replicas": 1}),
    "an item is deleted": (
        {"containers": names("a", "b", "c")},
        {"containers": [c("b", **{"$patch": "delete"})]},
        {"containers": names("a", "c")},
    ),
    "an item is deleted, with an order": (
        {"containers": names("a", "b", "c")},
        {
            "$setElementOrder/containers": names("c", "a"),
            "containers": [c("a", image="2"), c("b", **{"$patch": "delete"})],
        },
        {"containers": [c("c"), c("a", image="2")]},
    ),
    "a list is replaced": (
        {"containers": names("a", "b")},
        {"containers": [{"$patch": "replace"}, c("z")]},
        {"containers": names("z")},
    ),
    "an object is replaced": (
        {"selector": {"matchLabels": {"a": "1"}}},
        {"selector": {"$patch": "replace", "matchLabels": {"b": "2"}}},
        {"selector": {"matchLabels": {"b": "2"}}},
    ),
    "an object is deleted": (
        {"strategy": {"type": "R"}, "replicas": 1},
        {"strategy": {"$patch": "delete"}},
        {"strategy": {}, "replicas": 1},
    ),
    "deleting what is not there": (
        {"replicas": 1},
        {"strategy": {"$patch": "delete"}},
        {"replicas": 1},
    ),
    "keys are retained": (
        {"strategy": {"type": "Rolling", "rolling": {"surge": 1}}},
        {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}},
        {"strategy": {"type": "Recreate"}},
    ),
    "nested lists": (
        {"containers": [c("a", env=[c("x", value="1"), c("y", value="2")])]},
        {
            "containers": [
                c(
                    "a",
                    env=[c("x", value="3"), c("y", **{"$patch": "delete"})],
                    **{"$setElementOrder/env": [c("x")]},
                )
            ]
        },
        {"containers": [c("a", env=[c("x", value="3")])]},
    ),
    "keys that are numbers": (
        {"containers": [c("a", ports=[{"containerPort": 80, "name": "x"}])]},
        {"containers": [c("a", ports=[{"containerPort": 80, "name": "y"}, {"containerPort": 81}])]},
        {"containers": [c("a", ports=[{"containerPort": 80, "name": "y"}, {"containerPort": 81}])]},
    ),
    "nulls in new objects": (
        {},
        {"strategy": {"type": "R", "rolling": None}},
        {"strategy": {"type": "R"}},
    ),
    "directives in new lists": (
        {},
        {"containers": [c("a"), c("b", **{"$patch": "delete"})]},
        {"containers": names("a")},
    ),
    "unknown JSON merges": (
        {"anything": {"a": {"b": 1}, "l": [1]}},
        {"anything": {"a": {"c": 2}, "l": [2]}},
        {"anything": {"a": {"b": 1, "c": 2}, "l": [2]}},
    ),
}


@pytest.mark.parametrize("name", SPECS)
def test_merges(name: str) -> None:
    spec, patch, wanted = SPECS[name]
    original = {"spec": spec}
    untouched = deepcopy((original, patch))
    assert apply_strategic_patch(original, {"spec": patch}, THING) == {"spec": wanted}
    assert (original, patch) == untouched


FINALIZERS: dict[str, tuple[list[str], dict[str, Any], list[str]]] = {
    "merge": (["a", "b"], {"finalizers": ["c", "b"]}, ["c", "a", "b"]),
    "delete": (["a", "b", "c"], {"$deleteFromPrimitiveList/finalizers": ["b", "z"]}, ["a", "c"]),
    "delete and order": (
        ["a", "b", "c"],
        {
            "$deleteFromPrimitiveList/finalizers": ["b"],
            "$setElementOrder/finalizers": ["c", "n"],
            "finalizers": ["n"],
        },
        ["a", "c", "n"],
    ),
    "order": (["a", "b", "c"], {"$setElementOrder/finalizers": ["c", "a"]}, ["b", "c", "a"]),
}


@pytest.mark.parametrize("name", FINALIZERS)
def test_lists_of_scalars(name: str) -> None:
    before, patch, wanted = FINALIZERS[name]
    result = apply_strategic_patch({"metadata": {"finalizers": before}}, {"metadata": patch}, THING)
    assert result == {"metadata": {"finalizers": wanted}}


LIVE = {
    "containers": names("a"),
    "devices": {"gpu": {"model": "x"}},
    "nameless": [{"a": 1}],
    "anything": {"a": 1},
}
REFUSED: dict[str, tuple[dict[str, Any], int, str]] = {
    "an item without key": (
        {"containers": [{"image": "x"}]},
        500,
        "map: map[image:x] does not contain declared merge key: name",
    ),
    "a deletion without key": (
        {"containers": [{"$patch": "delete"}]},
        500,
        "map: map[$patch:delete] does not contain declared merge key: name",
    ),
    "an unknown directive": (
        {"$patch": "frob", "replicas": 1},
        500,
        "unknown patch type: frob in map: map[$patch:frob replicas:1]",
    ),
    "an unknown directive in a list": (
        {"containers": [{"name": "a", "$patch": "frob"}]},
        500,
        "unknown patch type: frob in map: map[$patch:frob name:a]",
    ),
    "merge in a list": (
        {"containers": [{"name": "a", "$patch": "merge"}]},
        500,
        "merging lists cannot yet be specified in the patch",
    ),
    "mixed items": (
        {"containers": ["x"]},
        500,
        "list element types are not identical: [[map[name:a]] [x]]",
    ),
    "lists in lists": (
        {"containers": [["x"]]},
        422,
        "the server rejected our request due to an error in our request",
    ),
    "a list to merge without key": (
        {"nameless": [{"a": 2}]},
        500,
        "cannot merge lists without merge key for struct",
    ),
    "retained keys that are no list": (
        {"$retainKeys": "x"},
        400,
        "invalid patch format of retainKeys",
    ),
    "more than the retained keys": (
        {"$retainKeys": ["paused"], "replicas": 1},
        400,
        "invalid patch format of retainKeys",
    ),
    "deletion of no field": (
        {"$deleteFromPrimitiveList": ["x"]},
        400,
        "invalid patch format of primitive list",
    ),
    "order of no field": (
        {"$setElementOrder": ["x"]},
        400,
        "invalid patch format of setElementOrder list",
    ),
    "an order that is none": (
        {"$setElementOrder/containers": "x"},
        500,
        "expected a []interface {}, but received a string",
    ),
    "an order of what is removed": (
        {"$setElementOrder/containers": [], "containers": None},
        500,
        "expected a []interface {}, but received a %!s(<nil>)",
    ),
    "an order of scalars for objects": (
        {"$setElementOrder/containers": ["a"], "containers": names("a")},
        500,
        "expected a map[string]interface {}, but received a string",
    ),
    "another order": (
        {"$setElementOrder/containers": names("b", "a"), "containers": names("a", "b")},
        500,
        "The order in patch list:\n[map[name:a] map[name:b]]\n"
        " doesn't match $setElementOrder list:\n[map[name:b] map[name:a]]\n",
    ),
    "objects in a map": (
        {"devices": {"gpu": {"model": "y"}}},
        500,
        "merging an object in json but data type is not struct, instead is: map",
    ),
    "an order of an object": (
        {"$setElementOrder/strategy": []},
        500,
        "expected slice or array type, but got: struct",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refuses(name: str) -> None:
    patch, code, message = REFUSED[name]
    with pytest.raises(ApiError) as caught:
        apply_strategic_patch({"spec": LIVE}, {"spec": patch}, THING)
    assert (caught.value.code, caught.value.message) == (code, message)


def test_kinds_without_known_fields_have_no_strategy() -> None:
    with pytest.raises(ApiError) as caught:
        apply_strategic_patch({}, {}, ANYTHING)
    assert caught.value.message == "strategic merge patch format is not supported"


FIELDS = st.sampled_from(
    [
        "$patch",
        "$retainKeys",
        "$setElementOrder/containers",
        "$setElementOrder/finalizers",
        "$setElementOrder/zzz",
        "$setElementOrder/spec",
        "$deleteFromPrimitiveList/finalizers",
        "$deleteFromPrimitiveList/containers",
        "metadata",
        "spec",
        "containers",
        "env",
        "finalizers",
        "devices",
        "anything",
        "name",
        "tolerations",
    ]
)
PATCHES = st.recursive(
    st.sampled_from(["a", "b", "delete", "replace", "merge", 1, True, None]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(FIELDS, inner, max_size=4),
    max_leaves=15,
)
FULL_THING = thing(
    containers=[c("a", env=names("x", "y")), c("b")], devices={"gpu": {}}, tolerations=[{"key": "k"}]
)
FULL_THING["metadata"]["finalizers"] = ["a", "b"]


@examples(150)
@given(
    st.fixed_dictionaries({}, optional={"metadata": PATCHES, "spec": PATCHES, "$retainKeys": PATCHES})
    | GARBAGE
)
def test_garbage_is_an_api_error(patch: Any) -> None:
    before = deepcopy(FULL_THING)
    with suppress(ApiError):
        apply_strategic_patch(FULL_THING, patch, THING)
    assert before == FULL_THING


@examples(100)
@given(st.dictionaries(FIELDS, FULL))
def test_patching_twice_is_patching_once(spec: Any) -> None:
    try:
        once = apply_strategic_patch(FULL_THING, {"spec": spec}, THING)
        twice = apply_strategic_patch(once, {"spec": spec}, THING)
    except ApiError:
        return
    assert once == twice
