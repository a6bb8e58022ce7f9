from __future__ import annotations

import json
from copy import deepcopy
from typing import Any

import pytest

from moorage.api.manifests import Manifest
from moorage.apimachinery.errors import ApiError
from moorage_cluster.apiserver.patches.apply import FieldSet, apply, track_update
from moorage_cluster.apiserver.patches.apply.last_applied import ANNOTATION
from tests.apiserver.patches.shapes import API_VERSION, THING, thing

STATUS = FieldSet.of("status")


def applying(
    live: Manifest | None,
    applied: Manifest,
    manager: str = "me",
    *,
    force: bool = False,
    time: str = "t1",
    subresource: str = "",
    ignored: FieldSet = STATUS,
) -> Manifest:
    before = deepcopy((live, applied))
    result = apply(live, applied, THING, manager, force, API_VERSION, subresource, time, ignored)
    assert (live, applied) == before
    return result


def updating(
    old: Manifest, new: Manifest, manager: str = "you", time: str = "t2", subresource: str = ""
) -> Manifest:
    new = deepcopy(new)
    track_update(old, new, THING, manager, API_VERSION, subresource, time, STATUS)
    return new


def bare(obj: Manifest) -> Manifest:
    return {
        **obj,
        "metadata": {name: value for name, value in obj["metadata"].items() if name != "managedFields"},
    }


def entries(obj: Manifest) -> list[str]:
    return [
        f"{entry['manager']} {entry['operation']} {entry.get('time')}"
        for entry in obj["metadata"].get("managedFields", [])
    ]


def fields(obj: Manifest, manager: str) -> Any:
    (entry,) = [one for one in obj["metadata"]["managedFields"] if one["manager"] == manager]
    return entry["fieldsV1"]


def c(name: str, **more: Any) -> dict[str, Any]:
    return {"name": name, **more}


def test_the_first_apply_makes_the_object() -> None:
    obj = applying(None, thing({"a": "1"}, replicas=1))
    assert bare(obj) == thing({"a": "1"}, replicas=1)
    assert obj["metadata"]["managedFields"] == [
        {
            "manager": "me",
            "operation": "Apply",
            "apiVersion": "apps/v1",
            "time": "t1",
            "fieldsType": "FieldsV1",
            "fieldsV1": {"f:metadata": {"f:labels": {"f:a": {}}}, "f:spec": {"f:replicas": {}}},
        }
    ]


def test_a_client_that_applies_only_a_name_owns_nothing() -> None:
    assert applying(None, thing()) == thing()


def test_applying_again_changes_nothing() -> None:
    obj = applying(None, thing({"a": "1"}, containers=[c("x", image="i")]))
    assert applying(obj, thing({"a": "1"}, containers=[c("x", image="i")]), time="t2") == obj


def test_applying_a_change_gives_a_new_time() -> None:
    obj = applying(applying(None, thing(replicas=1)), thing(replicas=2), time="t2")
    assert obj["spec"] == {"replicas": 2}
    assert entries(obj) == ["me Apply t2"]


PRUNED: dict[str, tuple[dict[str, Any], dict[str, Any], dict[str, Any]]] = {
    "a field": ({"replicas": 1, "paused": True}, {"replicas": 1}, {"replicas": 1}),
    "an object": ({"replicas": 1, "strategy": {"rolling": {"surge": 1}}}, {"replicas": 1}, {"replicas": 1}),
    "an item": ({"containers": [c("a"), c("b")]}, {"containers": [c("b")]}, {"containers": [c("b")]}),
    "an item's field": (
        {"containers": [c("a", image="x")]},
        {"containers": [c("a")]},
        {"containers": [c("a")]},
    ),
    "a whole list": ({"replicas": 1, "containers": [c("a")]}, {"replicas": 1}, {"replicas": 1}),
    "an atomic list": ({"replicas": 1, "tolerations": [{"key": "a"}]}, {"replicas": 1}, {"replicas": 1}),
    "a map's key": ({"devices": {"a": {}, "b": {}}}, {"devices": {"a": {}}}, {"devices": {"a": {}}}),
    "all but the object itself": (
        {"strategy": {"rolling": {"surge": 1}}},
        {"strategy": {}},
        {"strategy": {}},
    ),
    "an item with several keys": (
        {"containers": [c("a", ports=[{"containerPort": 80}, {"containerPort": 80, "protocol": "UDP"}])]},
        {"containers": [c("a", ports=[{"containerPort": 80, "protocol": "TCP"}])]},
        {"containers": [c("a", ports=[{"containerPort": 80, "protocol": "TCP"}])]},
    ),
}


@pytest.mark.parametrize("name", PRUNED)
def test_what_is_no_longer_applied_goes(name: str) -> None:
    before, after, wanted = PRUNED[name]
    obj = applying(applying(None, thing(**before)), thing(**after))
    assert obj["spec"] == wanted


def test_what_another_applier_owns_too_stays() -> None:
    obj = applying(applying(None, thing(replicas=1, paused=True), "a"), thing(replicas=1), "b")
    obj = applying(obj, thing(paused=True), "a")
    assert obj["spec"] == {"replicas": 1, "paused": True}
    assert fields(obj, "a") == {"f:spec": {"f:paused": {}}}


def test_an_item_goes_with_what_others_put_into_it() -> None:
    obj = applying(None, thing(containers=[c("a", image="x"), c("b")]))
    changed = deepcopy(obj)
    changed["spec"]["containers"][0]["args"] = ["z"]
    obj = applying(updating(obj, changed), thing(containers=[c("b")]))
    assert obj["spec"]["containers"] == [c("b")]
    assert entries(obj) == ["me Apply t1"]


def test_unowned_fields_stay() -> None:
    obj = applying({**thing(replicas=1, paused=True)}, thing(containers=[c("a")]))
    obj = applying(obj, thing({"l": "1"}))
    assert obj["spec"] == {"replicas": 1, "paused": True}


def test_an_object_from_before_belongs_to_before_first_apply() -> None:
    obj = applying(thing({"x": "y"}, replicas=1), thing(replicas=1))
    assert entries(obj) == ["me Apply None", "before-first-apply Update t1"]
    assert fields(obj, "before-first-apply") == {
        "f:metadata": {"f:labels": {"f:x": {}}},
        "f:spec": {"f:replicas": {}},
    }


def test_a_conflict() -> None:
    live = applying(None, thing(replicas=1), "other")
    with pytest.raises(ApiError) as caught:
        applying(live, thing(replicas=2))
    assert (caught.value.code, caught.value.reason) == (409, "Conflict")
    assert caught.value.message == 'Apply failed with 1 conflict: conflict with "other": .spec.replicas'
    assert caught.value.details == {
        "causes": [
            {
                "reason": "FieldManagerConflict",
                "message": 'conflict with "other"',
                "field": ".spec.replicas",
            }
        ]
    }


def test_several_conflicts() -> None:
    live = applying(None, thing({"l": "1"}), "z")
    changed = deepcopy(live)
    changed["spec"] = {"replicas": 1, "containers": [c("a", image="x")]}
    changed["status"] = {"phase": "P"}
    live = updating(live, changed, "kubectl-client-side-apply")
    with pytest.raises(ApiError) as caught:
        applying(live, thing({"l": "2"}, replicas=2, containers=[c("a", image="y")]))
    assert caught.value.message == (
        'Apply failed with 3 conflicts: conflicts with "kubectl-client-side-apply" using apps/v1:\n'
        "- .spec.replicas\n"
        '- .spec.containers[name="a"].image\n'
        'conflicts with "z":\n'
        "- .metadata.labels.l"
    )
    assert len(caught.value.details["causes"]) == 3


def test_a_conflict_with_a_subresource() -> None:
    live = applying(None, thing({"l": "1"}))
    live = updating(live, {**live, "spec": {"replicas": 1}}, "hpa", subresource="scale")
    with pytest.raises(ApiError, match="1 conflict") as caught:
        applying(live, thing({"l": "1"}, replicas=2))
    assert caught.value.message == (
        'Apply failed with 1 conflict: conflict with "hpa" with subresource "scale" using apps/v1: '
        ".spec.replicas"
    )


def test_equal_values_are_shared_without_conflict() -> None:
    obj = applying(applying(None, thing(replicas=1), "a"), thing(replicas=1), "b")
    assert entries(obj) == ["b Apply None", "a Apply t1"]


def test_force_takes_over() -> None:
    live = applying(None, thing(replicas=1, paused=True), "other")
    obj = applying(live, thing(replicas=2), force=True, time="t2")
    assert obj["spec"] == {"replicas": 2, "paused": True}
    assert fields(obj, "other") == {"f:spec": {"f:paused": {}}}
    assert fields(obj, "me") == {"f:spec": {"f:replicas": {}}}


def test_ignored_fields_are_nobodys_and_no_conflict() -> None:
    live = {**applying(None, thing(replicas=1), "other"), "status": {"phase": "A"}}
    obj = applying(live, thing({"l": "1"}, status={"phase": "B"}))
    assert fields(obj, "me") == {"f:metadata": {"f:labels": {"f:l": {}}}}


ORDERS: dict[str, tuple[str, str, str]] = {
    "same": ("ab", "ab", "ab"),
    "appended": ("ab", "bc", "abc"),
    "the applied order wins": ("abcd", "ca", "bcda"),
    "new ones where they are applied": ("abc", "anc", "abnc"),
    "nothing shared": ("ab", "xy", "abxy"),
    "turned around": ("abc", "cba", "cba"),
    "only one": ("abc", "b", "abc"),
}


@pytest.mark.parametrize("name", ORDERS)
def test_the_order_of_items(name: str) -> None:
    live, applied, wanted = ORDERS[name]
    obj = applying(
        thing(containers=[c(each) for each in live]), thing(containers=[c(each) for each in applied])
    )
    assert "".join(container["name"] for container in obj["spec"]["containers"]) == wanted


def test_live_items_that_cannot_be_distinguished() -> None:
    live = thing(containers=[c("a", image="1"), c("a", image="2"), c("b")])
    obj = applying(live, thing(containers=[c("a", image="3")]), force=True)
    assert obj["spec"]["containers"] == [c("a", image="3"), c("b")]


MALFORMED: dict[str, tuple[Manifest, int, str]] = {
    "managedFields": (
        {"apiVersion": "apps/v1", "kind": "Thing", "metadata": {"managedFields": []}},
        400,
        "metadata.managedFields must be nil",
    ),
    "another version": (
        {"apiVersion": "v1", "kind": "Pod"},
        400,
        "invalid object type: /v1, Kind=Pod",
    ),
    "items twice": (
        thing(containers=[c("x"), c("x")]),
        500,
        "failed to create typed patch object (ns/x; apps/v1, Kind=Thing): "
        '.spec.containers: duplicate entries for key [name="x"]',
    ),
    "items twice by default": (
        thing(containers=[c("a", ports=[{"containerPort": 1}, {"containerPort": 1, "protocol": "TCP"}])]),
        500,
        "failed to create typed patch object (ns/x; apps/v1, Kind=Thing): "
        '.spec.containers[name="a"].ports: duplicate entries for key [containerPort=1,protocol="TCP"]',
    ),
    "an object for a list": (
        thing(containers={}),
        500,
        "failed to create typed patch object (ns/x; apps/v1, Kind=Thing): "
        ".spec.containers: expected list, got &{map[]}",
    ),
    "a list for an object": (
        thing(strategy=["a", 1, True, None, 1.5]),
        500,
        "failed to create typed patch object (ns/x; apps/v1, Kind=Thing): "
        ".spec.strategy: expected map, got &{[a 1 true <nil> 1.5]}",
    ),
    "an object for a scalar": (
        thing(replicas={"a": 1}),
        500,
        "failed to create typed patch object (ns/x; apps/v1, Kind=Thing): "
        ".spec.replicas: expected any scalar, got &{map[a:1]}",
    ),
    "an unknown field": (
        thing(frobs=1),
        500,
        "failed to create typed patch object (ns/x; apps/v1, Kind=Thing): "
        ".spec.frobs: field not declared in schema",
    ),
    "an item without key": (
        thing(containers=[{"image": "x"}]),
        500,
        "failed to create typed patch object (ns/x; apps/v1, Kind=Thing): .spec.containers: element 0: "
        'associative list with keys has an element that omits all key fields ["name"] '
        "(and doesn't have default values for any key fields)",
    ),
    "several": (
        thing(containers=[1], tolerations=[{"key": "a"}, 7]),
        500,
        "failed to create typed patch object (ns/x; apps/v1, Kind=Thing): errors:\n"
        "  .spec.containers: element 0: associative list with keys may not have non-map elements\n"
        "  .spec.tolerations[1]: expected map, got &{7}",
    ),
}


@pytest.mark.parametrize("name", MALFORMED)
def test_malformed(name: str) -> None:
    applied, code, message = MALFORMED[name]
    with pytest.raises(ApiError) as caught:
        applying(None, applied)
    assert (caught.value.code, caught.value.message) == (code, message)


def test_live_managed_fields_that_make_no_sense() -> None:
    live = thing()
    live["metadata"]["managedFields"] = [{"operation": "Guess"}]
    with pytest.raises(ApiError, match="failed to decode managed fields: operation must be"):
        applying(live, thing(replicas=1))


# -- kubectl's annotation


def annotated(obj: Manifest, last: Manifest) -> Manifest:
    obj = deepcopy(obj)
    obj["metadata"]["annotations"] = {ANNOTATION: json.dumps(last)}
    return obj


def test_kubectl_takes_over_what_it_applied_on_the_client() -> None:
    live = annotated(thing(replicas=1, paused=True), thing(replicas=1))
    obj = applying(live, thing(replicas=2), "kubectl")
    assert obj["spec"] == {"replicas": 2, "paused": True}
    assert json.loads(obj["metadata"]["annotations"][ANNOTATION]) == thing(replicas=2)
    assert obj["metadata"]["annotations"][ANNOTATION].endswith('"spec":{"replicas":2}}\n')
    with pytest.raises(
        ApiError, match=r"conflict with \"before-first-apply\" using apps/v1: \.spec\.replicas"
    ):
        applying(live, thing(replicas=2), "somebody")
    with pytest.raises(ApiError, match=r"1 conflict: .*: \.spec\.paused"):
        applying(live, thing(replicas=2, paused=False), "kubectl")


def test_kubectl_does_not_take_over_what_changed_since() -> None:
    live = annotated(thing(replicas=5), thing(replicas=1))
    with pytest.raises(ApiError, match=r"\.spec\.replicas"):
        applying(live, thing(replicas=2), "kubectl")


# -- updates


def test_an_object_that_was_never_applied_is_not_tracked() -> None:
    assert updating(thing(replicas=1), thing(replicas=2)) == thing(replicas=2)


def test_an_update_takes_what_it_changes() -> None:
    live = applying(None, thing({"l": "1"}, replicas=1, paused=True))
    changed = {**bare(live), "spec": {"replicas": 2}, "status": {"phase": "P"}}
    changed["metadata"] = {**changed["metadata"], "uid": "u", "generation": 2}
    obj = updating(live, changed)
    assert entries(obj) == ["me Apply t1", "you Update t2"]
    assert fields(obj, "me") == {"f:metadata": {"f:labels": {"f:l": {}}}}
    assert fields(obj, "you") == {"f:spec": {"f:replicas": {}}}


def test_an_update_of_nothing_leaves_the_time() -> None:
    live = updating(applying(None, thing(replicas=1)), thing(replicas=2))
    assert updating(live, live, time="t3") == live
    assert updating(live, bare(live), time="t3") == live


def test_updates_by_one_manager_add_up() -> None:
    live = applying(None, thing({"l": "1"}))
    live = updating(live, thing({"l": "1"}, replicas=1))
    live = updating(live, thing({"l": "1"}, replicas=1, paused=True), time="t3")
    assert fields(live, "you") == {"f:spec": {".": {}, "f:paused": {}, "f:replicas": {}}}
    assert entries(live) == ["me Apply t1", "you Update t3"]


def test_clients_may_write_managed_fields() -> None:
    live = applying(None, thing(replicas=1))
    moved = deepcopy(live)
    moved["metadata"]["managedFields"][0]["manager"] = "heir"
    assert entries(updating(live, moved)) == ["heir Apply t1"]
    assert entries(updating(live, moved, subresource="status")) == ["me Apply t1"]
    resets: tuple[list[Manifest], ...] = ([], [{}])
    for reset in resets:
        moved["metadata"]["managedFields"] = reset
        assert "managedFields" not in updating(live, moved)["metadata"]
    moved["metadata"]["managedFields"] = [{"manager": "nonsense"}]
    assert entries(updating(live, moved)) == ["me Apply t1"]


def test_old_updaters_become_one() -> None:
    live = applying(None, thing({"l": "1"}))
    labels = {"l": "1"}
    for number in range(10, 22):
        labels = {**labels, f"l{number}": "x"}
        live = updating(live, thing(labels), f"m{number}", time=f"t{number}")
    updates = entries(live)[1:]
    assert len(updates) == 10
    assert updates[0] == "ancient-changes Update t12"
    assert updates[-1] == "m21 Update t21"
    assert fields(live, "ancient-changes")["f:metadata"]["f:labels"] == {
        "f:l10": {},
        "f:l11": {},
        "f:l12": {},
    }
