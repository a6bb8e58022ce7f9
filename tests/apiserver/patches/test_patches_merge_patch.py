from __future__ import annotations

from contextlib import suppress
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given

from moorage.apimachinery.errors import ApiError
from moorage.apimachinery.json_values import same
from moorage_cluster.apiserver.patches.merge_patch import apply_merge_patch
from tests.apiserver.patches.documents import DOCUMENTS, GARBAGE, JSON
from tests.strategies import examples

MERGES: dict[str, tuple[Any, Any, Any]] = {
    "nothing": ({"a": 1}, {}, {"a": 1}),
    "replaces": ({"a": "b"}, {"a": "c"}, {"a": "c"}),
    "adds": ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
    "removes": ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
    "removes nothing": ({"a": "b"}, {"z": None}, {"a": "b"}),
    "replaces lists": ({"a": [1, 2]}, {"a": [3]}, {"a": [3]}),
    "a list for an object": ({"a": {"b": 1}}, {"a": [1]}, {"a": [1]}),
    "an object for a list": ({"a": [1]}, {"a": {"b": 1}}, {"a": {"b": 1}}),
    "merges objects": ({"a": {"b": 1, "c": 2}}, {"a": {"b": None, "d": 3}}, {"a": {"c": 2, "d": 3}}),
    "nulls in new objects": ({}, {"a": {"b": None, "c": {"d": None}}}, {"a": {"c": {}}}),
    "nulls in new lists stay": ({}, {"a": [None, {"b": None}]}, {"a": [None, {}]}),
}


@pytest.mark.parametrize("name", MERGES)
def test_merges(name: str) -> None:
    document, patch, wanted = MERGES[name]
    before = deepcopy(document)
    assert apply_merge_patch(document, patch) == wanted
    assert document == before


@pytest.mark.parametrize(
    ("patch", "message"),
    [
        (None, "Invalid JSON Patch"),
        (
            [],
            "error decoding patch: "
            "json: cannot unmarshal array into Go value of type map[string]interface {}",
        ),
    ],
)
def test_refuses(patch: Any, message: str) -> None:
    with pytest.raises(ApiError) as caught:
        apply_merge_patch({}, patch)
    assert (caught.value.code, caught.value.message) == (400, message)


def diff(old: Any, new: Any) -> Any:
    if not isinstance(old, dict) or not isinstance(new, dict):
        return new
    return {
        key: diff(old.get(key), new.get(key)) for key in old | new if not same(old.get(key), new.get(key))
    }


@examples(100)
@given(DOCUMENTS, DOCUMENTS)
def test_a_diff_makes_the_one_document_of_the_other(old: Any, new: Any) -> None:
    assert same(apply_merge_patch(old, diff(old, new)), new)


@examples(100)
@given(JSON, GARBAGE)
def test_garbage_is_an_api_error(document: Any, patch: Any) -> None:
    before = deepcopy(document)
    with suppress(ApiError):
        apply_merge_patch(document, patch)
    assert document == before
