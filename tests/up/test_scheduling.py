"""That pods which do not fit are told why, and get their place as soon as there is one."""

from __future__ import annotations

from collections.abc import Callable

from tests.apiserver.running import Kubectl
from tests.up.objects import POOL, pod, priority_class
from tests.up.running import TIMEOUT_SECONDS, end, line_with


def test_a_pod_that_fits_nowhere_waits_for_a_bigger_node(
    kubectl: Kubectl, namespace: str, add_node: Callable[..., str]
) -> None:
    kubectl.create(pod("large", cpu="64", nodeSelector={POOL: namespace}))
    kubectl("wait", "pod/large", "--for=condition=PodScheduled=False", TIMEOUT_SECONDS)
    assert "didn't match Pod's node affinity/selector" in kubectl("describe", "pod", "large")
    add_node(cpu="8")
    reasons = "jsonpath={.status.conditions[*].message}{'\\n'}"
    watching = kubectl.start("get", "pod", "large", "--watch", "-o", reasons)
    try:
        line_with(watching, "1 Insufficient cpu")
    finally:
        end(watching)
    bigger = add_node(cpu="65")
    kubectl("wait", "pod/large", "--for=condition=Ready", TIMEOUT_SECONDS)
    assert kubectl("get", "pod", "large", "-o", "jsonpath={.spec.nodeName}") == bigger


def test_an_important_pod_takes_the_place_of_another(
    kubectl: Kubectl, anywhere: Kubectl, namespace: str, add_node: Callable[..., str]
) -> None:
    anywhere.create(priority_class("important", 1000), priority_class("unimportant", -10))
    node, pool = add_node(cpu="2"), {POOL: namespace}
    kubectl.create(pod("victim", cpu="1500m", nodeSelector=pool, priorityClassName="unimportant"))
    kubectl("wait", "pod/victim", "--for=condition=Ready", TIMEOUT_SECONDS)
    watching = kubectl.start(
        "get", "pods", "--watch", "-o", "jsonpath={.metadata.name} {.status.nominatedNodeName}{'\\n'}"
    )
    try:
        kubectl.create(pod("winner", cpu="1500m", nodeSelector=pool, priorityClassName="important"))
        line_with(watching, f"winner {node}")
    finally:
        end(watching)
    kubectl("wait", "pod/winner", "--for=condition=Ready", TIMEOUT_SECONDS)
    assert kubectl("get", "pods", "-o", "name").split() == ["pod/winner"]
    winner = kubectl.json("get", "pod", "winner")
    assert (winner["spec"]["priority"], winner["spec"]["nodeName"]) == (1000, node)
    events = kubectl("get", "events", "--field-selector", "involvedObject.name=victim,reason=Preempted")
    assert f"Preempted by pod {winner['metadata']['uid']} on node {node}" in events
