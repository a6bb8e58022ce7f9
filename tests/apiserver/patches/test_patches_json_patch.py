from __future__ import annotations

from contextlib import suppress
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.apimachinery.errors import ApiError
from moorage_cluster.apiserver.patches.json_patch import MAX_COPIED_BYTES, apply_json_patch
from tests.apiserver.patches.documents import DOCUMENTS, GARBAGE, JSON
from tests.strategies import examples

DOC = {"a": {"b": [1, 2, 3], "c/d": 1, "e~f": 2, "n": None}, "s": "x"}


def op(kind: str, path: str, **more: Any) -> dict[str, Any]:
    return {"op": kind, "path": path, **more}


APPLIES: dict[str, tuple[list[Any], Any]] = {
    "nothing": ([], DOC),
    "add a field": ([op("add", "/t", value=1)], {**DOC, "t": 1}),
    "add replaces a field": ([op("add", "/s", value=1)], {**DOC, "s": 1}),
    "add in the middle": ([op("add", "/a/b/1", value=9)], [1, 9, 2, 3]),
    "add at the end": ([op("add", "/a/b/-", value=9)], [1, 2, 3, 9]),
    "add at the length": ([op("add", "/a/b/3", value=9)], [1, 2, 3, 9]),
    "add before the end": ([op("add", "/a/b/-2", value=9)], [1, 2, 9, 3]),
    "add at -1 is at the end": ([op("add", "/a/b/-1", value=9)], [1, 2, 3, 9]),
    "add without value is null": ([op("add", "/s")], {**DOC, "s": None}),
    "remove an item": ([op("remove", "/a/b/0")], [2, 3]),
    "remove the last item": ([op("remove", "/a/b/-1")], [1, 2]),
    "remove an escaped field": ([op("remove", "/a/c~1d")], {"b": [1, 2, 3], "e~f": 2, "n": None}),
    "remove another escaped field": ([op("remove", "/a/e~0f")], {"b": [1, 2, 3], "c/d": 1, "n": None}),
    "replace an item": ([op("replace", "/a/b/1", value={})], [1, {}, 3]),
    "replace what is missing": ([op("replace", "/new", value=1)], {**DOC, "new": 1}),
    "replace all": ([op("replace", "", value={"z": 1})], {"z": 1}),
    "move": ([op("move", "/a/b/0", **{"from": "/a/b/2"})], [3, 1, 2]),
    "copy": ([op("copy", "/a/b/-", **{"from": "/a/b/0"})], [1, 2, 3, 1]),
    "copy what is missing": ([op("copy", "/s", **{"from": "/zzz"})], {**DOC, "s": None}),
    "test a value": ([op("test", "/a/b", value=[1, 2, 3])], DOC),
    "test everything": ([op("test", "", value=DOC)], DOC),
    "test null": ([op("test", "/a/n", value=None)], DOC),
    "test that nothing is there": ([op("test", "/zzz")], DOC),
    "what is before the slash": ([op("add", "zzz/s", value=1)], {**DOC, "s": 1}),
    "a sign and zeros": ([op("replace", "/a/b/+01", value=9)], [1, 9, 3]),
}


@pytest.mark.parametrize("name", APPLIES)
def test_applies(name: str) -> None:
    operations, wanted = APPLIES[name]
    before = deepcopy(DOC)
    result = apply_json_patch(DOC, operations)
    if isinstance(wanted, list):
        wanted = {**DOC, "a": {**DOC["a"], "b": wanted}}  # type: ignore[dict-item]
    elif "b" in wanted:
        wanted = {**DOC, "a": wanted}
    assert result == wanted
    assert before == DOC


DOES_NOT_APPLY: dict[str, Any] = {
    "remove what is missing": op("remove", "/zzz"),
    "a path through nothing": op("add", "/zzz/y", value=1),
    "a path through a scalar": op("add", "/s/y", value=1),
    "a path through null": op("add", "/a/n/y", value=1),
    "an index that is none": op("add", "/a/b/x", value=1),
    "an index with an underscore": op("remove", "/a/b/0_1"),
    "an index too far": op("add", "/a/b/4", value=1),
    "an index too far back": op("remove", "/a/b/-4"),
    "replacing a missing item": op("replace", "/a/b/3", value=1),
    "testing something else": op("test", "/s", value="y"),
    "testing null": op("test", "/s", value=None),
    "testing a truth for a number": op("test", "/a/b", value=[True, 2, 3]),
    "adding everything": op("add", "", value={}),
    "replacing everything with a scalar": op("replace", "", value=1),
    "moving from nowhere": op("move", "/s", **{"from": "/zzz"}),
    "moving into itself": op("move", "/a/b", **{"from": "/a"}),
    "moving without from": op("move", "/s"),
    "an unknown operation": op("frobnicate", "/s"),
    "no operation": {"path": "/s"},
    "no path": {"op": "remove"},
    "null": None,
}


@pytest.mark.parametrize("name", DOES_NOT_APPLY)
def test_does_not_apply(name: str) -> None:
    with pytest.raises(ApiError) as caught:
        apply_json_patch(DOC, [DOES_NOT_APPLY[name]])
    assert (caught.value.code, caught.value.reason) == (422, "Invalid")
    assert caught.value.message == "the server rejected our request due to an error in our request"


MALFORMED: dict[str, tuple[Any, str]] = {
    "an object": ({}, "object into Go value of type []handlers.jsonPatchOp"),
    "a text": ("x", "string into Go value of type []handlers.jsonPatchOp"),
    "an operation that is a number": ([1], "number into Go value of type handlers.jsonPatchOp"),
    "a path that is a truth": (
        [{"op": "add", "path": True}],
        "bool into Go struct field jsonPatchOp.path of type string",
    ),
}


@pytest.mark.parametrize("name", MALFORMED)
def test_malformed(name: str) -> None:
    operations, problem = MALFORMED[name]
    with pytest.raises(ApiError) as caught:
        apply_json_patch(DOC, operations)
    assert caught.value.code == 400
    assert caught.value.message == f"error decoding patch: json: cannot unmarshal {problem}"


def test_too_many_operations() -> None:
    with pytest.raises(ApiError) as caught:
        apply_json_patch(DOC, [op("test", "/zzz")] * 10_001)
    assert (caught.value.code, caught.value.reason) == (413, "RequestEntityTooLarge")
    assert caught.value.message == (
        "Request entity too large: The allowed maximum operations in a JSON patch is 10000, got 10001"
    )


def test_doubling_a_document_again_and_again_is_refused() -> None:
    doc = {"a": {"x": "y" * 1000}}
    doubling = [op("copy", f"/a/{n}", **{"from": "/a"}) for n in range(40)]
    with pytest.raises(ApiError) as caught:
        apply_json_patch(doc, doubling)
    assert caught.value.code == 422
    assert len(str(apply_json_patch(doc, doubling[:5]))) < MAX_COPIED_BYTES


def test_a_document_that_is_too_deep_is_a_bad_request() -> None:
    deep: Any = []
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(ApiError) as caught:
        apply_json_patch({"a": deep}, [op("copy", "/b", **{"from": "/a"})])
    assert caught.value.code == 400
    while deep:  # Taken apart here, since the interpreter would do it recursively.
        deep = deep[0]


def diff(old: Any, new: Any, path: str = "") -> list[dict[str, Any]]:
    """A patch from one document to another."""
    if isinstance(old, dict) and isinstance(new, dict):
        operations = []
        for key in old | new:
            place = f"{path}/{key.replace('~', '~0').replace('/', '~1')}"
            if key not in new:
                operations.append(op("remove", place))
            elif key not in old:
                operations.append(op("add", place, value=new[key]))
            else:
                operations += diff(old[key], new[key], place)
        return operations
    if isinstance(old, list) and isinstance(new, list) and len(old) <= len(new):
        operations = []
        for index, item in enumerate(old):
            operations += diff(item, new[index], f"{path}/{index}")
        return operations + [op("add", f"{path}/-", value=item) for item in new[len(old) :]]
    return [op("test", path, value=old), op("replace", path, value=new)]


@examples(150)
@given(DOCUMENTS, DOCUMENTS)
def test_a_diff_makes_the_one_document_of_the_other(old: Any, new: Any) -> None:
    assert apply_json_patch(old, diff(old, new)) == new


OPERATIONS = st.fixed_dictionaries(
    {"op": st.sampled_from(["add", "remove", "replace", "move", "copy", "test", "huh"])},
    optional={
        "path": st.sampled_from(["", "/", "/a", "/a/0", "/a/-", "/b/a", "x"]) | GARBAGE,
        "from": st.sampled_from(["", "/a", "/b"]) | GARBAGE,
        "value": JSON,
    },
)


@examples(150)
@given(DOCUMENTS, st.lists(OPERATIONS) | GARBAGE)
def test_garbage_is_an_api_error(document: Any, operations: Any) -> None:
    before = deepcopy(document)
    with suppress(ApiError):
        apply_json_patch(document, operations)
    assert document == before
