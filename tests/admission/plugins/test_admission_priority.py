"""Priority."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.admission.plugins.priority import (
    PRIORITY_CLASSES,
    admit_class,
    admit_pod,
    group_plugin,
    keep_pod,
    keep_system_class,
)
from moorage.api.manifests import Manifest
from tests.admission.harness import World, named, pod, refused, update, write

LOWER = "PreemptLowerPriority"
POD_GROUPS = "scheduling.k8s.io/podgroups"
admit_pod_group = group_plugin(preemption_policies=False).admit


def priority_class(
    name: str, value: int, *, is_default: bool = False, policy: str | None = LOWER
) -> Manifest:
    fields: dict[str, Any] = {"value": value, "globalDefault": is_default}
    if policy:
        fields["preemptionPolicy"] = policy
    return named(name, **fields)


HIGH = priority_class("high", 1000, policy="Never")
PLAIN = World(priority_classes=[HIGH, priority_class("bare", 7, policy=None)])
WITH_DEFAULT = World(priority_classes=[HIGH, priority_class("usual", 5, is_default=True)])


@pytest.mark.parametrize(
    ("harness", "spec", "expected"),
    [
        (PLAIN, {}, {"priority": 0, "preemptionPolicy": LOWER}),
        (PLAIN, {"priority": 0}, {"priority": 0, "preemptionPolicy": LOWER}),
        (
            PLAIN,
            {"priorityClassName": "high"},
            {"priorityClassName": "high", "priority": 1000, "preemptionPolicy": "Never"},
        ),
        (
            PLAIN,
            {"priorityClassName": "high", "priority": 1000, "preemptionPolicy": "Never"},
            {"priorityClassName": "high", "priority": 1000, "preemptionPolicy": "Never"},
        ),
        (PLAIN, {"priorityClassName": "bare"}, {"priorityClassName": "bare", "priority": 7}),
        (
            WITH_DEFAULT,
            {},
            {"priorityClassName": "usual", "priority": 5, "preemptionPolicy": LOWER},
        ),
    ],
)
def test_a_pod_gets_its_priority(harness: World, spec: Manifest, expected: Manifest) -> None:
    attributes = write(pod(**spec))
    admit_pod(attributes, harness)
    del attributes.obj["spec"]["containers"]
    assert attributes.obj["spec"] == expected


def test_of_several_defaults_the_lowest_counts() -> None:
    classes = [priority_class(str(value), value, is_default=True) for value in (9, 3, 5)]
    attributes = write(pod())
    admit_pod(attributes, World(priority_classes=classes))
    assert attributes.obj["spec"]["priorityClassName"] == "3"


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        ({"priorityClassName": "nope"}, "no PriorityClass with name nope was found"),
        (
            {"priorityClassName": "high", "priority": 3},
            "the integer value of priority (3) must not be provided in pod spec; "
            "priority admission controller computed 1000 from the given PriorityClass name",
        ),
        (
            {"priority": 3},
            "the integer value of priority (3) must not be provided in pod spec; "
            "priority admission controller computed 0 from the given PriorityClass name",
        ),
        (
            {"priorityClassName": "high", "preemptionPolicy": LOWER},
            "the string value of PreemptionPolicy (PreemptLowerPriority) must not be provided in pod spec; "
            "priority admission controller computed Never from the given PriorityClass name",
        ),
    ],
)
def test_a_pod_cannot_choose_for_itself(spec: Manifest, why: str) -> None:
    error = refused(admit_pod, write(pod(**spec)), PLAIN)
    assert error.message == f'pods "p" is forbidden: {why}'
    assert error.code == 403


def test_an_update_keeps_what_it_leaves_out() -> None:
    attributes = update(pod(), pod(priority=7, preemptionPolicy="Never"))
    keep_pod(attributes, PLAIN)
    assert attributes.obj["spec"]["priority"] == 7
    assert attributes.obj["spec"]["preemptionPolicy"] == "Never"


def test_an_update_that_says_something_is_left_to_validation() -> None:
    attributes = update(pod(priority=8), pod(priority=7))
    keep_pod(attributes, PLAIN)
    assert attributes.obj["spec"]["priority"] == 8


def test_a_pod_group_gets_its_priority_without_a_policy() -> None:
    attributes = write(named("g", "here", spec={}), POD_GROUPS)
    admit_pod_group(attributes, WITH_DEFAULT)
    assert attributes.obj["spec"] == {"priorityClassName": "usual", "priority": 5}


def test_a_pod_group_cannot_choose_for_itself() -> None:
    attributes = write(named("g", "here", spec={"priorityClassName": "high", "priority": 3}), POD_GROUPS)
    assert refused(admit_pod_group, attributes, PLAIN).message == (
        'podgroups.scheduling.k8s.io "g" is forbidden: priority set in the pod group (3) must match the '
        "priority computed (1000) based on the priority class set in the spec"
    )


def test_there_is_one_default_class_at_most() -> None:
    another = priority_class("another", 1, is_default=True)
    attributes = write(another, PRIORITY_CLASSES, namespaced=False)
    error = refused(admit_class, attributes, WITH_DEFAULT)
    assert error.message == (
        'priorityclasses.scheduling.k8s.io "another" is forbidden: PriorityClass usual is already marked as '
        "default. Only one default can exist"
    )
    refused(admit_class, update(another, another, PRIORITY_CLASSES), WITH_DEFAULT)


def test_the_default_class_may_be_updated_and_others_created() -> None:
    usual = priority_class("usual", 5, is_default=True)
    admit_class(update(usual, usual, PRIORITY_CLASSES), WITH_DEFAULT)
    admit_class(write(priority_class("new", 1), PRIORITY_CLASSES, namespaced=False), WITH_DEFAULT)
    admit_class(write(usual, PRIORITY_CLASSES, namespaced=False), PLAIN)


def test_the_system_classes_stay() -> None:
    gone = priority_class("system-node-critical", 2_000_001_000)
    error = refused(keep_system_class, write(gone, PRIORITY_CLASSES, "DELETE", namespaced=False), PLAIN)
    assert error.message == (
        'priorityclasses.scheduling.k8s.io "system-node-critical" is forbidden: '
        "this is a system priority class and cannot be deleted"
    )
    keep_system_class(write(HIGH, PRIORITY_CLASSES, "DELETE", namespaced=False), PLAIN)
