"""What may help pods that were refused for what nodes are: names, labels, taints, features, ports; gates."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.api.base import Object
from moorage.api.pod import Pod
from tests.builders import REQUIRED, container, expression, make_node, make_pod, port
from tests.plugins.requeueing import wakes

POD = make_pod("p", uid="p")
PLAIN = make_node("n")
CORDONED = make_node("n", unschedulable=True)
TAINTED = make_node("n", taints=["a:NoSchedule"])
TWICE = make_node("n", taints=["a:NoSchedule", "b:NoExecute"])
SSD = make_node("n", labels={"disk": "ssd"})
HDD = make_node("n", labels={"disk": "hdd"})
TOLERANT = make_pod("p", uid="p", tolerations=[{"key": "a", "operator": "Exists"}])
TOLERATES_CORDON = make_pod(
    "p", uid="p", tolerations=[{"key": "node.kubernetes.io/unschedulable", "operator": "Exists"}]
)
OTHER_TOLERANT = make_pod("q", uid="q", tolerations=[{"key": "a", "operator": "Exists"}])
OTHER = make_pod("q", uid="q")
WANTS_SSD = make_pod("p", uid="p", node_selector={"disk": "ssd"})
WANTS_NODE = make_pod(
    "p",
    uid="p",
    affinity={
        "nodeAffinity": {
            REQUIRED: {"nodeSelectorTerms": [{"matchFields": [expression("metadata.name", "In", "n")]}]}
        }
    },
)


def with_port(name: str, number: int, ip: str = "", **fields: Any) -> Pod:
    return make_pod(name, uid=name, containers=[container(ports=[port(number, ip=ip)])], **fields)


def gated(*gates: str, name: str = "p") -> Pod:
    return make_pod(name, uid=name, scheduling_gates=[{"name": gate} for gate in gates])


def restarting(name: str) -> Pod:
    rule = {"action": "RestartAllContainers"}
    return make_pod(name, uid=name, containers=[container(restart_policy_rules=[rule])])


CASES: dict[str, dict[str, tuple[Pod, Object | None, Object | None, bool]]] = {
    "NodeName": {
        "a node comes": (POD, None, PLAIN, True),
        "a node changes": (POD, PLAIN, SSD, False),
        "a node goes": (POD, PLAIN, None, False),
        "an uncordoned node is none that comes": (POD, CORDONED, PLAIN, False),
    },
    "NodeUnschedulable": {
        "a node comes": (POD, None, PLAIN, True),
        "a cordoned node comes": (POD, None, CORDONED, False),
        "a node is uncordoned": (POD, CORDONED, PLAIN, True),
        "a node is cordoned": (POD, PLAIN, CORDONED, False),
        "a taint goes from a node that was open": (POD, TAINTED, PLAIN, False),
        "labels change": (POD, PLAIN, SSD, False),
        "the pod tolerates cordons now": (TOLERATES_CORDON, POD, TOLERATES_CORDON, True),
        "the pod tolerates something else now": (TOLERANT, POD, TOLERANT, False),
        "another pod tolerates": (POD, OTHER, OTHER_TOLERANT, False),
    },
    "TaintToleration": {
        "a node comes": (POD, None, PLAIN, True),
        "a tainted node comes": (POD, None, TAINTED, False),
        "a tainted node comes that is tolerated": (TOLERANT, None, TAINTED, True),
        "the taint goes": (POD, TAINTED, PLAIN, True),
        "one of two taints goes": (POD, TWICE, TAINTED, False),
        "the one that is not tolerated goes": (TOLERANT, TWICE, TAINTED, True),
        "it was open already": (POD, make_node("n", taints=["a:PreferNoSchedule"]), PLAIN, False),
        "labels change": (POD, PLAIN, SSD, False),
        "the pod tolerates more": (TOLERANT, POD, TOLERANT, True),
        "another pod does": (POD, OTHER, OTHER_TOLERANT, False),
    },
    "NodeAffinity": {
        "a matching node comes": (WANTS_SSD, None, SSD, True),
        "another node comes": (WANTS_SSD, None, HDD, False),
        "the node it names comes": (WANTS_NODE, None, PLAIN, True),
        "another than it names comes": (WANTS_NODE, None, make_node("m"), False),
        "a node begins to match": (WANTS_SSD, HDD, SSD, True),
        "a node ceases to match": (WANTS_SSD, SSD, HDD, False),
        "a node matched before": (WANTS_SSD, SSD, make_node("n", labels={**SSD.labels, "a": "b"}), False),
        "taints change": (WANTS_SSD, TAINTED, PLAIN, False),
        "a node goes": (WANTS_SSD, SSD, None, False),
    },
    "NodeDeclaredFeatures": {
        "a node comes": (POD, None, PLAIN, True),
        "a node declares more": (POD, PLAIN, make_node("n", features=["F"]), True),
        "labels change": (POD, PLAIN, SSD, False),
        "the pod needs something else": (restarting("p"), POD, restarting("p"), True),
        "the pod needs the same": (TOLERANT, POD, TOLERANT, False),
        "another pod needs something else": (POD, OTHER, restarting("q"), False),
    },
    "NodePorts": {
        "a node comes": (with_port("p", 80), None, PLAIN, True),
        "a node changes": (with_port("p", 80), PLAIN, SSD, False),
        "a pod with the port goes": (with_port("p", 80), with_port("q", 80, on="n"), None, True),
        "a nominated pod with the port goes": (
            with_port("p", 80),
            with_port("q", 80, status={"nominatedNodeName": "n"}),
            None,
            True,
        ),
        "a pod with the port goes that had no node": (with_port("p", 80), with_port("q", 80), None, False),
        "a pod with another port goes": (with_port("p", 80), with_port("q", 81, on="n"), None, False),
        "a pod with the port on another address goes": (
            with_port("p", 80, ip="10.0.0.1"),
            with_port("q", 80, ip="10.0.0.2", on="n"),
            None,
            False,
        ),
        "a pod without ports goes": (with_port("p", 80), make_pod("q", on="n"), None, False),
        "a pod comes": (with_port("p", 80), None, with_port("q", 80, on="n"), False),
    },
    "SchedulingGates": {
        "the last gate is lifted": (gated(), gated("a"), gated(), True),
        "one of two is lifted": (gated("b"), gated("a", "b"), gated("b"), False),
        "another pod's is lifted": (gated("a"), gated("a", name="q"), gated(name="q"), False),
        "a node comes": (gated("a"), None, PLAIN, False),
    },
    "DefaultPreemption": {
        "a pod goes: those say that matter who refused the pod": (POD, make_pod("q", on="n"), None, False),
        "a node comes": (POD, None, PLAIN, False),
    },
}
ROWS = {f"{plugin}: {name}": (plugin, *row) for plugin, rows in CASES.items() for name, row in rows.items()}


@pytest.mark.parametrize(("plugin", "pod", "old", "new", "woken"), ROWS.values(), ids=ROWS.keys())
def test_hints(plugin: str, pod: Pod, old: Object | None, new: Object | None, woken: bool) -> None:
    assert wakes(plugin, pod, old, new) is woken


ENFORCED = {
    "addedAffinity": {
        REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": [expression("zone", "In", "a")]}]}
    }
}
IN_ZONE = {"disk": "ssd", "zone": "a"}
ADDED = {
    "what the configuration asks for as well": (None, make_node("n", labels=IN_ZONE), True),
    "only what the pod asks for": (None, SSD, False),
    "now what the configuration asks for as well": (SSD, make_node("n", labels=IN_ZONE), True),
}


@pytest.mark.parametrize(("old", "new", "woken"), ADDED.values(), ids=ADDED.keys())
def test_affinity_that_the_configuration_adds(old: Object | None, new: Object, woken: bool) -> None:
    assert wakes("NodeAffinity", WANTS_SSD, old, new, args=ENFORCED) is woken
