from __future__ import annotations

from contextlib import suppress
from copy import deepcopy
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from moorage.api.manifests import Manifest
from moorage.apimachinery.errors import ApiError
from moorage.apimachinery.json_values import same
from moorage.apimachinery.schema.shape import ANYTHING
from moorage_cluster.apiserver.patches.apply import FieldSet, apply, track_update
from moorage_cluster.apiserver.patches.apply.managers import decode_managers, encode_managers
from moorage_cluster.apiserver.patches.apply.ownership import compare, fields_of
from tests.apiserver.patches.documents import FULL, GARBAGE
from tests.apiserver.patches.shapes import API_VERSION, THING, thing
from tests.strategies import examples

FEW = st.sampled_from(["a", "b", "c"])
VALUES = st.sampled_from([1, "x", True])


# Nobody owns a list without items, so that there would be nothing to say about it.


def keyed(items: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[list[dict[str, Any]]]:
    return st.lists(items, min_size=1, max_size=3, unique_by=lambda item: item["name"])


def named(**optional: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({"name": FEW}, optional=optional)


PORT = st.fixed_dictionaries(
    {"containerPort": st.sampled_from([80, 81])},
    optional={"protocol": st.sampled_from(["TCP", "UDP"]), "name": FEW},
)
CONTAINER = named(
    image=VALUES,
    args=st.lists(FEW, max_size=2),
    env=keyed(named(value=VALUES)),
    ports=st.lists(
        PORT,
        min_size=1,
        max_size=2,
        unique_by=lambda port: (port["containerPort"], port.get("protocol", "TCP")),
    ),
)
SPEC: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {},
    optional={
        "replicas": VALUES,
        "selector": st.just({}) | st.just({"matchLabels": {"a": "b"}}),
        "strategy": st.fixed_dictionaries({}, optional={"type": VALUES, "rolling": st.just({"surge": 1})}),
        "containers": keyed(CONTAINER),
        "tolerations": st.lists(st.just({"key": "a"}), max_size=2),
        "devices": st.dictionaries(FEW, st.just({}) | st.just({"model": "x"}), max_size=2),
        "anything": st.dictionaries(FEW, FULL, max_size=2),
    },
)


@st.composite
def things(draw: st.DrawFn) -> Manifest:
    obj = thing(draw(st.none() | st.dictionaries(FEW, VALUES, max_size=2)), **draw(SPEC))
    finalizers = draw(st.none() | st.lists(FEW, min_size=1, max_size=2, unique=True))
    if finalizers is not None:
        obj["metadata"]["finalizers"] = finalizers
    return obj


def applying(
    live: Manifest | None, applied: Manifest, manager: str, time: str, force: bool = True
) -> Manifest:
    before = deepcopy((live, applied))
    result = apply(live, applied, THING, manager, force, API_VERSION, "", time)
    assert (live, applied) == before
    return result


def includes(obj: Any, part: Any) -> bool:
    """Whether all fields of the one are in the other."""
    return not fields_of(part, THING) - places(obj)


def places(obj: Any) -> FieldSet:
    return compare({}, obj, THING).added


@examples(100)
@given(st.none() | things(), st.lists(things(), min_size=1, max_size=3), things())
def test_applying_twice_changes_nothing(
    live: Manifest | None, others: list[Manifest], mine: Manifest
) -> None:
    for number, other in enumerate(others):
        live = applying(live, other, f"m{number % 2}", f"t{number}")
    once = applying(live, mine, "m0", "t8")
    assert includes(once, mine)
    assert applying(once, mine, "m0", "t9", force=False) == once


@examples(80)
@given(things(), things())
def test_an_only_applier_gets_what_it_applies(first: Manifest, second: Manifest) -> None:
    obj = applying(applying(None, first, "me", "t1"), second, "me", "t2", force=False)
    left = fields_of({**obj, "metadata": {**obj["metadata"], "managedFields": None}}, THING)
    extra = [path for path in (left - fields_of(second, THING)).paths() if "f:managedFields" not in path]
    assert not extra


@examples(80)
@given(st.sets(st.sampled_from(list(THING.fields["spec"].fields))), things(), things())
def test_appliers_of_disjoint_fields_do_not_conflict(mine: set[str], one: Manifest, two: Manifest) -> None:
    first = thing(**{name: value for name, value in one.get("spec", {}).items() if name in mine})
    second = thing(**{name: value for name, value in two.get("spec", {}).items() if name not in mine})
    obj = applying(applying(None, first, "one", "t1", force=False), second, "two", "t2", force=False)
    assert same(obj.get("spec", {}), {**first.get("spec", {}), **second.get("spec", {})})
    assert applying(obj, first, "one", "t3", force=False) == obj
    assert same(applying(obj, thing(), "one", "t3").get("spec", {}), second.get("spec", {}))


@examples(80)
@given(things(), things(), things())
def test_every_owned_field_is_there(applied: Manifest, updated: Manifest, again: Manifest) -> None:
    live = applying(None, applied, "me", "t1")
    new = deepcopy(updated)
    track_update(live, new, THING, "you", API_VERSION, "", "t2")
    obj = applying(new, again, "me", "t3")
    managed = decode_managers(obj["metadata"].get("managedFields"))
    assert encode_managers(managed) == obj["metadata"].get("managedFields", [])
    for manager, owned in managed.items():
        assert not owned.fields - places(obj), manager


@examples(100)
@given(st.dictionaries(st.sampled_from(["metadata", "spec", "status", "x"]), GARBAGE), st.booleans())
def test_garbage_is_an_api_error(applied: dict[str, Any], known: bool) -> None:
    applied = {"apiVersion": API_VERSION, "kind": "Thing", **applied}
    with suppress(ApiError):
        obj = apply(
            thing(replicas=1), applied, THING if known else ANYTHING, "kubectl", True, API_VERSION, "", "t"
        )
        assert obj["spec"] is not None or applied["spec"] is None


@examples(80)
@given(st.lists(st.dictionaries(st.sampled_from(["manager", "operation", "fieldsV1"]), GARBAGE)) | GARBAGE)
def test_garbage_in_managed_fields_is_not_kept(entries: Any) -> None:
    live = applying(None, thing(replicas=1), "me", "t1")
    new = thing(replicas=1)
    new["metadata"]["managedFields"] = entries
    track_update(live, new, THING, "you", API_VERSION, "", "t2")
    kept = new["metadata"].get("managedFields")
    assert kept == (None if entries in ([], [{}]) else live["metadata"]["managedFields"])
