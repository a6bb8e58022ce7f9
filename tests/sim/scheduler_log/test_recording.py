"""Recordings of logs: who was in the cluster when, and which attempts are left out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from moorage.api.base import Object
from moorage.sim.scheduler_log.recording import Reason
from tests.builders import make, make_node, make_pod
from tests.sim.scheduler_log.logs import (
    STARTED,
    Line,
    added,
    bound,
    deleted,
    node_added,
    recorded,
    rejected,
    replayed,
    shown,
)

N1, N2 = make_node("n1"), make_node("n2")


def names(objects: Any) -> list[str]:
    return [each.name for each in objects]


def test_what_comes_and_goes_is_a_step_between_the_attempts() -> None:
    lines = [
        STARTED,
        *node_added("n1"),
        *added("a", "b", "c"),
        *bound("a", "n1", 1),
        *node_added("n2"),
        *bound("b", "n2", 2, {"n1": 1, "n2": 2}),
        *deleted("a"),
        ("Delete event for node", {"node": "n1"}),
        *bound("c", "n2", 1),
    ]
    made = recorded(lines, [N1, N2, *(make_pod(name, uid=name) for name in "abc")])
    assert names(made.objects) == ["n1"]
    assert shown(made) == ["a n1", "+n2", "b n2", "-a", "-n1", "c n2"]
    assert (made.left_out, made.unknown) == ({}, set())
    assert [step["expect"].get("scores") for step in made.steps if "pod" in step] == [
        {"n1": {}},
        {"n1": {"NodeResourcesFit": 1}, "n2": {"NodeResourcesFit": 2}},
        {"n2": {}},
    ]


def test_pods_of_others_are_put_where_they_are() -> None:
    other = make_pod("other", uid="other", on="n1")
    lines = [
        STARTED,
        *node_added("n1"),
        *bound("a", "n1"),
        ("Add event for scheduled pod", {"pod": other.key}),
    ]
    made = recorded([*lines, *bound("b", "n1")], [N1, other, make_pod("a"), make_pod("b")])
    assert shown(made) == ["a n1", "+other", "b n1"]


def test_without_its_beginning_a_log_continues_what_was_there() -> None:
    there = make_pod("there", uid="there", on="n1")
    touched = make_pod("touched", uid="touched", on="n2")
    ended = make_pod("ended", uid="ended", on="n1", status={"phase": "Succeeded"})
    lines = [
        ("Update event for scheduled pod", {"pod": touched.key}),
        *bound("a", "n1"),
        *node_added("n3"),
        *deleted("touched", "ended"),
        *bound("b", "n1"),
    ]
    pods = [there, touched, ended, make_pod("a", on="n1"), make_pod("b", on="n1")]
    made = recorded(lines, [N1, N2, make_node("n3"), *pods])
    assert sorted(names(made.objects)) == ["ended", "n1", "n2", "there", "touched"]
    assert shown(made) == ["a n1", "+n3", "-touched", "-ended", "b n1"]


def test_with_its_beginning_a_log_has_everything_that_was_there() -> None:
    later = make_pod("later", uid="later", on="n1")
    made = recorded([STARTED, *node_added("n1"), *bound("a", "n1")], [N1, N2, make_pod("a"), later])
    assert names(made.objects) == ["n1"]


def test_a_restarted_scheduler_sees_everything_anew() -> None:
    pods = [make_pod("a", uid="a", on="n1"), make_pod("b", uid="b", on="n1"), make_pod("c", uid="c")]
    lines = [STARTED, *node_added("n1"), *bound("a", "n1"), *bound("b", "n1"), STARTED, *node_added("n1")]
    lines += [("Add event for scheduled pod", {"pod": "default/a"}), *bound("c", "n1")]
    made = recorded(lines, [N1, *pods])
    assert shown(made) == ["a n1", "b n1", "-n1", "-a", "-b", "+n1", "+a", "c n1"]


def test_a_pod_that_is_not_known_makes_attempts_uncertain_while_it_is_on_a_node() -> None:
    lines = [STARTED, *node_added("n1"), *added("a", "gone", "b", "c"), *bound("a", "n1")]
    lines += [*bound("gone", "n1"), *bound("b", "n1"), *deleted("gone"), *bound("c", "n1")]
    made = recorded(lines, [N1, *(make_pod(name, uid=name) for name in "abc")])
    assert shown(made) == ["a n1", "+b", "c n1"]
    assert made.left_out == {Reason.UNKNOWN_POD: ["default/gone"], Reason.UNKNOWN_STATE: ["default/b"]}
    assert made.unknown == {"default/gone"}


def test_a_pod_that_is_not_known_and_fits_nowhere_changes_nothing() -> None:
    made = recorded([STARTED, *node_added("n1"), *rejected("gone"), *bound("a", "n1")], [N1, make_pod("a")])
    assert shown(made) == ["a n1"]
    assert made.left_out == {Reason.UNKNOWN_POD: ["default/gone"]}


def test_a_node_that_is_not_known_makes_attempts_uncertain() -> None:
    lines = [STARTED, *node_added("n1", "gone"), *bound("a", "n1")]
    lines += [("Delete event for node", {"node": "gone"}), *bound("b", "n1")]
    made = recorded(lines, [N1, make_pod("a"), make_pod("b")])
    assert shown(made) == ["+a", "b n1"]
    assert made.left_out == {Reason.UNKNOWN_STATE: ["default/a"]}


UPDATE: Line = ("Update event for node", {"node": "n1"})
VERSIONS = [N1, make_node("n1", unschedulable=True)]


def test_a_node_with_one_change_and_one_update_changes_there() -> None:
    lines = [STARTED, *node_added("n1"), *rejected("a"), UPDATE, *rejected("a")]
    made = recorded(lines, [*VERSIONS, make_pod("a")])
    assert shown(made) == ["a no", "+n1", "a no"]
    assert made.updated_nodes == set()


def test_between_several_updates_it_is_not_known_which_of_them_was_the_change() -> None:
    lines = [STARTED, *node_added("n1"), *rejected("a"), UPDATE, *rejected("b"), UPDATE, *rejected("c")]
    made = recorded(lines, [*VERSIONS, *map(make_pod, "abc")])
    assert shown(made) == ["a no", "+n1", "c no"]
    assert made.left_out == {Reason.UNKNOWN_STATE: ["default/b"]}


def test_of_one_version_of_a_node_its_updates_are_not_known() -> None:
    made = recorded([STARTED, *node_added("n1"), UPDATE, *rejected("a")], [N1, make_pod("a")])
    assert (shown(made), made.updated_nodes) == (["a no"], {"n1"})


def test_a_node_that_is_added_again_is_the_next_version() -> None:
    gone: Line = ("Delete event for node", {"node": "n1"})
    lines = [STARTED, *node_added("n1"), *rejected("a"), gone, *node_added("n1"), *rejected("a")]
    made = recorded(lines, [*VERSIONS, make_pod("a")])
    again = made.steps[2]["replace"][0]
    assert (shown(made), again["spec"]["unschedulable"]) == (["a no", "-n1", "+n1", "a no"], True)


def test_pods_of_the_same_name_follow_each_other() -> None:
    pods = [make_pod("a", uid=uid, requests={"cpu": cpu}) for uid, cpu in (("1", "1"), ("2", "2"))]
    lines = [STARTED, *node_added("n1"), *added("a"), *bound("a", "n1"), *deleted("a"), *added("a")]
    made = recorded([*lines, *bound("a", "n1")], [N1, *pods])
    assert [step["pod"]["metadata"]["uid"] for step in made.steps if "pod" in step] == ["1", "2"]


def test_of_several_pods_of_the_same_name_only_the_last_one_is_known_by_its_existence() -> None:
    lines = [STARTED, *node_added("n1"), *added("a"), *bound("a", "n1"), *deleted("a"), *added("a")]
    made = recorded([*lines, *bound("a", "n1")], [N1, make_pod("a", uid="2")])
    assert shown(made) == ["a n1"]
    assert made.left_out == {Reason.UNKNOWN_POD: ["default/a"]}
    made = recorded([*lines, *bound("a", "n1"), *deleted("a")], [N1, make_pod("a", uid="2")])
    assert made.left_out == {Reason.UNKNOWN_POD: ["default/a", "default/a"]}


def preemption(victims: int = 1) -> list[Line]:
    keys = {"preemptor": "default/boss", "node": "n1"}
    return [
        ("Attempting to schedule pod", {"pod": "default/boss"}),
        ("the target node for the preemption is determined", {"pod": "default/boss", "node": "n1"}),
        (
            "Unable to schedule pod; no fit; waiting",
            {"pod": "default/boss", "err": "0/1 nodes are available: 1 x."},
        ),
        (
            "Start the preemption asynchronously",
            {**keys, "numVictims": victims, "numVictimsToDelete": victims},
        ),
        ("Preemptor Pod preempted victim Pod", {**keys, "victim": "default/low"}),
    ]


BOSS = make_pod("boss", uid="boss", priority=10)
LOW = make_pod("low", uid="low", on="n1", priority=1)


def test_a_preemptor_is_nominated_and_its_victim_ends_before_it_is_deleted() -> None:
    lines = [STARTED, *node_added("n1"), *bound("low", "n1"), *preemption(), *rejected("boss")]
    lines += [*deleted("low"), *bound("boss", "n1")]
    made = recorded(lines, [N1, LOW, BOSS])
    assert shown(made) == ["low n1", "boss no: n1", "+low", "boss no", "-low", "boss n1"]
    first, ending, second, _, last = made.steps[1:]
    assert first["expect"]["victims"] == ["default/low"]
    assert "deletionTimestamp" in ending["replace"][0]["metadata"]
    assert "nominatedNodeName" not in first["pod"].get("status", {})
    assert second["pod"]["status"]["nominatedNodeName"] == "n1"
    assert last["pod"]["status"]["nominatedNodeName"] == "n1"


def test_victims_that_are_not_all_in_the_log_are_not_expected() -> None:
    lines = [STARTED, *node_added("n1"), *bound("low", "n1"), *preemption(victims=2)]
    made = recorded(lines, [N1, LOW, BOSS])
    assert "victims" not in made.steps[1]["expect"]


def test_pods_of_lower_priority_lose_their_nomination_to_a_preemptor() -> None:
    waiting = make_pod("waiting", uid="waiting", priority=5)
    update = "Updating pod condition and nominated node name"
    nominated = {"pod": "default/waiting", "nominatedNodeName": "n1", "nominatingMode": 1}
    lines = [STARTED, *node_added("n1"), *bound("low", "n1"), *rejected("waiting"), (update, nominated)]
    made = recorded([*lines, *preemption(), *rejected("waiting")], [N1, LOW, BOSS, waiting])
    assert shown(made)[2:] == ["+waiting", "boss no: n1", "+waiting", "+low", "waiting no"]
    statuses = [each.get("status", {}) for step in made.steps for each in step.get("replace", ())]
    assert [status.get("nominatedNodeName") for status in statuses] == ["n1", None, None]


def test_a_nomination_ends_when_preemption_does_not_help_any_more() -> None:
    no_help: Line = ("Preemption will not help schedule pod on any node", {"pod": "default/boss"})
    lines = [STARTED, *node_added("n1"), *bound("low", "n1"), *preemption(), *rejected("boss"), no_help]
    made = recorded([*lines, *rejected("boss")], [N1, LOW, BOSS])
    assert shown(made)[2:] == ["+low", "boss no", "+boss", "boss no"]


def test_a_pod_that_cannot_be_bound_is_taken_off_its_node() -> None:
    lines: list[Line] = [STARTED, *node_added("n1"), ("Attempting to schedule pod", {"pod": "default/a"})]
    lines += [("Attempting to bind pod to node", {"pod": "default/a", "node": "n1"}), *bound("b", "n1")]
    lines += [("Error scheduling pod; retrying", {"err": "conflict", "pod": "default/a"}), *bound("c", "n1")]
    made = recorded(lines, [N1, *map(make_pod, "abc")])
    assert shown(made) == ["a n1", "b n1", "-a", "c n1"]


REFUSED = {
    "by a plugin at the node": (
        "Pod rejected by plugin",
        {"pod": "default/a", "plugin": "p", "status": "no"},
    ),
    "while it waits": ("Pod rejected while waiting on permit", {"pod": "default/a", "status": "no"}),
    "after scores": (
        "Plugin scored node for pod",
        {"pod": "default/a", "node": "n1", "plugin": "p", "score": 1},
    ),
}


@pytest.mark.parametrize("line", REFUSED.values(), ids=REFUSED.keys())
def test_a_pod_that_was_refused_after_a_node_was_chosen_is_left_out_and_others_meanwhile(line: Line) -> None:
    begun, ended = rejected("a")
    lines = [STARTED, *node_added("n1"), begun, line, *bound("b", "n1"), ended, *bound("c", "n1")]
    made = recorded(lines, [N1, *(make_pod(name, uid=name) for name in "abc")])
    assert shown(made) == ["+b", "c n1"]
    assert made.left_out == {Reason.FAILED: ["default/a"], Reason.UNKNOWN_STATE: ["default/b"]}


def claim(storage_class: str) -> list[Object]:
    spec = {"storageClassName": storage_class, "volumeName": "v"}
    return [
        make(
            {
                "kind": "StorageClass",
                "metadata": {"name": "late"},
                "volumeBindingMode": "WaitForFirstConsumer",
            }
        ),
        make(
            {"kind": "PersistentVolumeClaim", "metadata": {"name": "c", "namespace": "default"}, "spec": spec}
        ),
    ]


LEFT_OUT: dict[str, tuple[list[Line], list[Object], Reason]] = {
    "a member of a group": (
        [
            ("Attempting to schedule a pod belonging to a pod group", {"pod": "default/a"}),
            *bound("a", "n1")[1:],
        ],
        [make_pod("a")],
        Reason.MEMBER,
    ),
    "an attempt without an end": (bound("a", "n1")[:1], [make_pod("a")], Reason.INCOMPLETE),
    "an attempt that ended with an error": (
        [*bound("a", "n1")[:1], ("Error scheduling pod; retrying", {"err": "broken", "pod": "default/a"})],
        [make_pod("a")],
        Reason.FAILED,
    ),
    "a claim that was bound for the pod": (
        bound("a", "n1"),
        [make_pod("a", volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]), *claim("late")],
        Reason.CLAIMS,
    ),
    "devices": (
        bound("a", "n1"),
        [make_pod("a", resource_claims=[{"name": "gpu", "resourceClaimName": "c"}])],
        Reason.CLAIMS,
    ),
    "another scheduler": (bound("a", "n1"), [make_pod("a", scheduler_name="other")], Reason.OTHER_SCHEDULER),
}


@pytest.mark.parametrize(("lines", "objects", "reason"), LEFT_OUT.values(), ids=LEFT_OUT.keys())
def test_what_a_log_does_not_say_enough_of_is_left_out(
    lines: list[Line], objects: list[Object], reason: Reason
) -> None:
    made = recorded([STARTED, *node_added("n1"), *lines], [N1, *objects])
    assert (made.left_out, shown(made)) == ({reason: ["default/a"]}, [])


def test_a_claim_that_was_bound_before_is_no_reason() -> None:
    pod = make_pod("a", volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}])
    made = recorded([STARTED, *node_added("n1"), *bound("a", "n1")], [N1, pod, *claim("early")])
    assert made.left_out == {}


def test_attempts_without_scores_are_counted() -> None:
    lines = [each for each in bound("a", "n1", 2, {"n1": 1, "n2": 1}) if "scored" not in each[0]]
    made = recorded([STARTED, *node_added("n1", "n2"), *lines], [N1, N2, make_pod("a")])
    assert (made.unscored_count, "scores" in made.steps[0]["expect"]) == (1, False)


def test_one_feasible_node_is_expected_to_be_the_only_one_unless_no_other_was_tried(tmp_path: Path) -> None:
    objects = [N1, make_node("n2"), make_pod("a")]
    first = recorded([STARTED, *node_added("n1", "n2"), *bound("a", "n1", 2)], objects)
    [difference] = replayed(first, tmp_path).differences
    assert (difference.what, difference.node) == ("feasible", "n2")
    hinted = recorded([STARTED, *node_added("n1", "n2"), *bound("a", "n1", 1)], objects)
    assert replayed(hinted, tmp_path).differences == []


def test_a_pod_that_was_nominated_before_the_first_attempt_takes_its_room_in_a_replay(tmp_path: Path) -> None:
    boss = make_pod(
        "boss", uid="boss", priority=10, requests={"cpu": "4"}, status={"nominatedNodeName": "n1"}
    )
    made = recorded(bound("a", "n1", 1), [N1, boss, make_pod("a", requests={"cpu": "1"})])
    [first, *_] = replayed(made, tmp_path).differences
    assert (names(made.objects), first.what, first.pod) == (["n1", "boss"], "message", "a")
    assert "Insufficient cpu" in str(first.ours)


def test_a_pod_that_was_nominated_and_is_on_its_node_takes_its_room_once(tmp_path: Path) -> None:
    boss = make_pod("boss", uid="boss", priority=10, requests={"cpu": "2"})
    lines = [*preemption(), *bound("boss", "n1"), *deleted("gone"), *bound("a", "n1", 1)]
    gone = ("Update event for scheduled pod", {"pod": "default/gone"})
    made = recorded(
        [STARTED, *node_added("n1"), gone, *lines], [N1, boss, make_pod("a", requests={"cpu": "2"})]
    )
    assert shown(made) == ["+boss", "+boss", "a n1"]
    assert replayed(made, tmp_path).differences == []


def test_an_attempt_that_began_before_the_log_is_left_out_and_its_pod_is_there() -> None:
    lines = [*rejected("a"), *bound("b", "n1")[2:], *bound("c", "n1")]
    made = recorded(lines, [N1, *(make_pod(name, uid=name) for name in "abc")])
    assert shown(made) == ["+b", "a no", "c n1"]
    assert made.left_out == {Reason.INCOMPLETE: ["default/b"]}


@pytest.mark.parametrize("cut", [2, 3, 4])
def test_a_pod_whose_binding_is_at_the_beginning_of_the_log_is_there(cut: int) -> None:
    objects = [N1, make_pod("b", uid="b", on="n1"), make_pod("a")]
    made = recorded([*bound("b", "n1")[cut:], *rejected("a")], objects)
    assert "b" in names(made.objects) or shown(made) == ["+b", "a no"]


def test_a_pod_that_may_have_been_nominated_before_the_log_makes_attempts_uncertain() -> None:
    waiting: Line = ("Attempting to schedule pod", {"pod": "default/boss"})
    reason = "0/1 nodes are available: 1 x. preemption: not eligible due to a terminating pod."
    lines = [*rejected("a"), waiting, *rejected("boss", reason)[1:], *rejected("a"), *bound("boss", "n1")]
    made = recorded([*lines, *rejected("a")], [N1, BOSS, make_pod("a", uid="a")])
    assert made.left_out == {
        Reason.UNKNOWN_NOMINATIONS: ["default/a", "default/boss", "default/a", "default/boss"]
    }
    assert shown(made) == ["+boss", "a no"]


def test_a_pod_that_never_preempts_has_no_nomination() -> None:
    patient = make_pod("boss", uid="boss", priority=10, preemption_policy="Never")
    made = recorded([*rejected("boss"), *rejected("a")], [N1, patient, make_pod("a", uid="a")])
    assert made.left_out == {}


def test_evictions_that_go_on_during_later_attempts_belong_to_the_one_that_chose_the_node() -> None:
    *begun, evicted = preemption()
    lines = [STARTED, *node_added("n1"), *bound("low", "n1"), *begun, *rejected("boss"), evicted]
    made = recorded(lines, [N1, LOW, BOSS])
    assert [step["expect"].get("victims") for step in made.steps if "pod" in step] == [
        None,
        ["default/low"],
        [],
    ]


def test_a_preemptor_that_is_not_known_makes_attempts_uncertain_until_it_is_deleted() -> None:
    a, b, c = (make_pod(name, uid=name) for name in "abc")
    lines = [
        STARTED,
        *node_added("n1"),
        *bound("low", "n1"),
        *preemption(),
        *rejected("a"),
        *rejected("boss"),
    ]
    lines += [*deleted("low"), *rejected("b"), *bound("boss", "n1"), *deleted("boss"), *rejected("c")]
    made = recorded(lines, [N1, LOW, a, b, c])
    assert made.left_out == {
        Reason.UNKNOWN_POD: ["default/boss"] * 3,
        Reason.UNKNOWN_STATE: ["default/a", "default/b"],
    }
    assert shown(made) == ["low n1", "+low", "-low", "c no"]
