"""Until when pods tolerate preemption: columns against the rules of the model, pod by pod."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage import Cache, Nodes, Pod, microseconds
from moorage.optional_plugins.preemption_toleration.policy import PriorityClass, policy_of
from moorage.optional_plugins.preemption_toleration.tolerations import FOR_EVER, Tolerations
from tests.optional_plugins.preemption_toleration.preempting import NOW, priority_class, running, small

CLASSES = {
    "plain": (None, None),
    "safe": ("500", "-1"),
    "minute": ("500", "60"),
    "below": ("50", "60"),
    "at-once": ("500", "0"),
    "own-minimum": (None, "60"),
    "wrong": ("500", "soon"),
    "ages": ("500", str(2**63 - 1)),
    "century": ("500", str(100 * 365 * 86400)),
}
VALUE = 100


def tolerates(victim: Pod, priority: int, classes: dict[str, PriorityClass], after: float) -> bool:
    """The rules of scheduler-plugins, in plain Python; a class that is missing protects nothing."""
    known = classes.get(victim.spec.priority_class_name)
    if known is None:
        return False
    try:
        minimum, seconds = policy_of(known)
    except ValueError:
        return False
    if priority >= minimum:
        return False
    if seconds < 0:
        return True
    scheduled = [each for each in victim.status.conditions if each.type == "PodScheduled"]
    if not scheduled or scheduled[0].status != "True":
        return True
    time = scheduled[0].last_transition_time
    assert time is not None
    return (NOW + timedelta(seconds=after) - time).total_seconds() < seconds


AGES = st.one_of(st.none(), st.sampled_from([-5.0, 0.0, 59.0, 60.0, 61.0, 3600.0]))
PODS = st.lists(
    st.tuples(st.sampled_from(["", "gone", *CLASSES]), st.sampled_from([0, VALUE, 400]), AGES), max_size=8
)


@given(PODS, PODS, st.sampled_from([1, VALUE + 1, 50, 499, 500]), st.sampled_from([0.0, 1.0, 30.0]))
def test_columns_equal_the_rules(
    before: Sequence[Any], later: Sequence[Any], priority: int, after: float
) -> None:
    cache = Cache([small("a"), small("b")])
    classes = {name: priority_class(name, VALUE, *texts) for name, texts in CLASSES.items()}
    for each in classes.values():
        cache.objects.put(each)
    tolerations = Tolerations()
    equals_rules(tolerations, put(cache, "one", before), classes, priority, after)
    put(cache, "two", later)
    # As many go as have come, and those that were being bound are bound.
    for pod in list(cache.pods())[: len(before) // 2]:
        cache.remove_pod(pod)
    for pod in list(cache.pods()):
        if not pod.status.conditions:
            name = pod.spec.priority_class_name
            cache.put_pod(running(pod.name, pod.spec.node_name, pod.priority, name, 30.0))
    equals_rules(tolerations, cache, classes, priority, after)
    classes["plain"] = priority_class("plain", VALUE, "1000", "45")
    cache.objects.put(classes["plain"])
    equals_rules(tolerations, cache, classes, priority, after)


def put(cache: Cache, prefix: str, pods: Sequence[Any]) -> Cache:
    for number, (name, priority, age) in enumerate(pods):
        cache.put_pod(running(f"{prefix}-{number}", "ab"[number % 2], priority, name, age))
    return cache


def equals_rules(
    tolerations: Tolerations, cache: Cache, classes: dict[str, PriorityClass], priority: int, after: float
) -> None:
    nodes = Nodes(cache.snapshot())
    pods = nodes.snapshot.pods
    lower = pods.priority.values < priority
    now = microseconds(NOW + timedelta(seconds=after))
    ends = tolerations.ends(nodes, lower, priority, now)
    safe = [tolerates(info.pod, priority, classes, after) for info in pods.infos]
    expected = np.array(safe, bool) & lower
    assert (ends is None) == (not expected.any())
    if ends is not None:
        assert ((ends > now) & lower).tolist() == expected.tolist()


ENDS = {
    "a minute after it was scheduled": ("minute", 20.0, 40),
    "never": ("safe", 20.0, None),
    "in practice never": ("ages", 20.0, None),
    "never, by a time that is out of range": ("century", -7900 * 365 * 86400.0, None),
    "counted from now while it is being bound": ("minute", None, 60),
    "a second while it is being bound": ("at-once", None, 1),
}


@pytest.mark.parametrize(("name", "age", "seconds"), ENDS.values(), ids=ENDS.keys())
def test_a_toleration_ends(name: str, age: float | None, seconds: int | None) -> None:
    cache = Cache([small("a"), priority_class(name, VALUE, *CLASSES[name])])
    cache.put_pod(running("pod", "a", VALUE, name, age))
    ends = Tolerations().ends(Nodes(cache.snapshot()), np.array([True]), 400, microseconds(NOW))
    assert ends is not None
    end = None if ends[0] == FOR_EVER else (int(ends[0]) - microseconds(NOW)) / 1_000_000
    assert end == seconds


def test_a_class_that_cannot_be_read_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    cache = Cache([small("a"), priority_class("wrong", VALUE, *CLASSES["wrong"])])
    cache.put_pod(running("pod", "a", VALUE, "wrong"))
    tolerations = Tolerations()
    with caplog.at_level(logging.WARNING, "moorage"):
        for _ in range(3):
            assert tolerations.ends(Nodes(cache.snapshot()), np.array([True]), 400, 0) is None
    assert caplog.messages == [
        "PriorityClass wrong: pods do not tolerate preemption: preemption-toleration.scheduling.x-k8s.io/"
        f"toleration-seconds: 'soon' is not a whole number from {-(2**63)} to {2**63 - 1}"
    ]
