"""Why a change may help a pod, or does not, in the words of kube-scheduler's log."""

from __future__ import annotations

import pytest

from moorage.api.base import Object
from moorage.api.pod import Pod
from tests.builders import make_node, make_pod
from tests.logs import without_heads, written
from tests.plugins.requeueing import wakes
from tests.plugins.test_node_events import (
    CORDONED,
    HDD,
    OTHER,
    OTHER_TOLERANT,
    PLAIN,
    POD,
    SSD,
    TAINTED,
    TOLERANT,
    TOLERATES_CORDON,
    WANTS_SSD,
    with_port,
)
from tests.plugins.test_resources_events import LARGE, SMALL, running, sized, wanting

LINES: dict[str, list[tuple[Pod, Object | None, Object | None, str]]] = {
    "NodeResourcesFit": [
        (
            wanting(),
            None,
            SMALL,
            '"node was created or updated, but it doesn\'t have enough resource(s) to accommodate this pod"'
            ' pod="default/p" node="n"',
        ),
        (
            wanting(),
            None,
            LARGE,
            '"node was added and it might fit the pod\'s resource requests" pod="default/p" node="n"',
        ),
        (
            wanting(),
            SMALL,
            LARGE,
            '"node was updated, and may now fit the pod\'s resource requests" pod="default/p" node="n"',
        ),
        (
            wanting(),
            LARGE,
            sized(cpu="4", memory="2Gi"),
            "\"node was updated, but haven't changed the pod's resource requestments fit assessment\""
            ' pod="default/p" node="n"',
        ),
        (
            wanting(),
            running(cpu="1"),
            None,
            '"another scheduled pod was deleted, and it may make the unscheduled pod schedulable"'
            ' pod="default/p" deletedPod="default/q"',
        ),
        (
            wanting(),
            make_pod("q", uid="q"),
            None,
            '"the deleted pod was unscheduled and it wouldn\'t make the unscheduled pod schedulable"'
            ' pod="default/p" deletedPod="default/q"',
        ),
        (
            wanting(),
            running(cpu="2"),
            running(cpu="1"),
            '"another scheduled pod or the target pod itself got scaled down, '
            'and it may make the unscheduled pod schedulable" pod="default/p" modifiedPod="default/q"',
        ),
    ],
    "NodeUnschedulable": [
        (
            POD,
            CORDONED,
            PLAIN,
            '"node was created or updated, pod may be schedulable now" pod="default/p" node="n"',
        ),
        (
            POD,
            None,
            CORDONED,
            '"node was created or updated, but it doesn\'t make this pod schedulable"'
            ' pod="default/p" node="n"',
        ),
        (
            TOLERATES_CORDON,
            POD,
            TOLERATES_CORDON,
            '"a new toleration is added for the unschedulable Pod, and it may make it schedulable"'
            ' pod="default/p"',
        ),
        (
            TOLERANT,
            POD,
            TOLERANT,
            '"a new toleration is added for the unschedulable Pod, but it\'s an unrelated toleration"'
            ' pod="default/p"',
        ),
    ],
    "TaintToleration": [
        (
            POD,
            TAINTED,
            PLAIN,
            '"node was created or updated, and this may make the Pod rejected by TaintToleration plugin '
            'in the previous scheduling cycle schedulable" pod="default/p" node="n"',
        ),
        (
            POD,
            None,
            TAINTED,
            "\"node was created or updated, but it doesn't change the TaintToleration plugin's decision\""
            ' pod="default/p" node="n"',
        ),
        (
            POD,
            OTHER,
            OTHER_TOLERANT,
            "\"a new toleration is added for a Pod, but it's an unrelated Pod and wouldn't change "
            'the TaintToleration plugin\'s decision" pod="default/q"',
        ),
    ],
    "NodeAffinity": [
        (
            WANTS_SSD,
            None,
            HDD,
            "\"node was created or updated, but the pod's NodeAffinity doesn't match\""
            ' pod="default/p" node="n"',
        ),
        (
            WANTS_SSD,
            None,
            SSD,
            '"node was created, and matches with the pod\'s NodeAffinity" pod="default/p" node="n"',
        ),
        (
            WANTS_SSD,
            HDD,
            SSD,
            '"node was updated and the pod\'s NodeAffinity changed to matched" pod="default/p" node="n"',
        ),
        (
            WANTS_SSD,
            SSD,
            make_node("n", labels={"disk": "ssd", "a": "b"}),
            '"node updated, but the pod\'s NodeAffinity hasn\'t changed" pod="default/p" node="n"',
        ),
    ],
    "NodePorts": [
        (
            with_port("p", 80),
            with_port("q", 80, on="n"),
            None,
            '"the deleted pod and the target pod have any common port(s), '
            'returning Queue as deleting this Pod may make the Pod schedulable"'
            ' pod="default/p" deletedPod="default/q"',
        ),
        (
            with_port("p", 80),
            with_port("q", 81, on="n"),
            None,
            "\"the deleted pod and the target pod don't have any common port(s), "
            "returning QueueSkip as deleting this Pod won't make the Pod schedulable\""
            ' pod="default/p" deletedPod="default/q"',
        ),
    ],
}


@pytest.mark.parametrize("plugin", LINES)
def test_why(plugin: str) -> None:
    for pod, old, new, line in LINES[plugin]:
        with written(5) as stream:
            wakes(plugin, pod, old, new)
        assert without_heads(stream.getvalue()) == [f"I {line}"]
        with written(3) as stream:
            wakes(plugin, pod, old, new)
        assert stream.getvalue() == ""
