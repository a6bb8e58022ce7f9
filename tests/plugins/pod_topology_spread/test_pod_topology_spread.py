"""PodTopologySpread: DoNotSchedule constraints refuse, ScheduleAnyway constraints score.

The cluster: a1 and a2 in zone a, b1 in zone b, and bare without labels.
"""

from __future__ import annotations

from typing import Any

import pytest

from moorage.plugins.pod_topology_spread.constraints import TemplateConstraints
from moorage.plugins.pod_topology_spread.plugin import NO_LABEL, UNEVEN
from tests.builders import HOSTNAME, ZONE, expression, make_node, make_pod, make_service, owner, spread
from tests.plugins.plugin_rules import refusals, scores

Manifest = dict[str, Any]

NAMES = ("a1", "a2", "b1", "bare")
WEB = {"matchLabels": {"app": "web"}}


def nodes(**taints: list[str]) -> list[Any]:
    labels = {
        "a1": {ZONE: "a", HOSTNAME: "a1", "disk": "ssd"},
        "a2": {ZONE: "a", HOSTNAME: "a2", "disk": "ssd"},
        "b1": {ZONE: "b", HOSTNAME: "b1"},
        "bare": {},
    }
    return [make_node(name, labels=labels[name], taints=taints.get(name, ())) for name in NAMES]


def web(*places: str, **fields: Any) -> list[Any]:
    """Existing pods on nodes."""
    labels = {"app": "web"}
    return [make_pod(f"web-{n}", on=place, labels=labels, **fields) for n, place in enumerate(places)]


ONLY_SSD = {
    "nodeAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [{"matchExpressions": [expression("disk", "In", "ssd")]}]
        }
    }
}

FILTER: dict[str, tuple[Manifest, list[Any], list[str]]] = {
    "an even cluster lets in everywhere in the topology": (spread(ZONE, WEB), [], ["", "", "", NO_LABEL]),
    "a domain one ahead of the emptiest is full": (
        spread(ZONE, WEB),
        web("a1"),
        [UNEVEN, UNEVEN, "", NO_LABEL],
    ),
    "maxSkew says how far ahead": (spread(ZONE, WEB, max_skew=2), web("a1"), ["", "", "", NO_LABEL]),
    "domains are values of the topology key": (spread(HOSTNAME, WEB), web("a1"), [UNEVEN, "", "", NO_LABEL]),
    "pods that do not match do not count": (
        spread(ZONE, {"matchLabels": {"app": "db"}}),
        web("a1", "a1"),
        ["", "", "", NO_LABEL],
    ),
    "pods of other namespaces do not count": (
        spread(ZONE, WEB),
        web("a1", namespace="other"),
        ["", "", "", NO_LABEL],
    ),
    "terminating pods do not count": (
        spread(ZONE, WEB),
        web("a1", terminating=True),
        ["", "", "", NO_LABEL],
    ),
    "fewer domains than minDomains: the smallest count is 0": (
        spread(ZONE, WEB, min_domains=3),
        web("a1", "b1"),
        [UNEVEN, UNEVEN, UNEVEN, NO_LABEL],
    ),
    "enough domains for minDomains": (
        spread(ZONE, WEB, min_domains=2),
        web("a1", "b1"),
        ["", "", "", NO_LABEL],
    ),
}


@pytest.mark.parametrize(("constraint", "existing", "expected"), FILTER.values(), ids=FILTER.keys())
def test_filter(constraint: Manifest, existing: list[Any], expected: list[str]) -> None:
    pod = make_pod("p", labels={"app": "web"}, topology_spread_constraints=[constraint])
    found = refusals("PodTopologySpread", pod, *nodes(), *existing)
    assert found == dict(zip(NAMES, expected, strict=True))


def test_a_pod_that_does_not_match_itself_does_not_add_to_its_domain() -> None:
    pod = make_pod("p", labels={"app": "db"}, topology_spread_constraints=[spread(ZONE, WEB)])
    found = refusals("PodTopologySpread", pod, *nodes(), *web("a1"))
    assert found == {"a1": "", "a2": "", "b1": "", "bare": NO_LABEL}


POLICIES: dict[str, tuple[Manifest, Manifest, list[str]]] = {
    "nodes that the pod's affinity excludes are no domains": (
        {},
        {"affinity": ONLY_SSD},
        ["", "", "", NO_LABEL],
    ),
    "nodeAffinityPolicy Ignore counts them": (
        {"node_affinity_policy": "Ignore"},
        {"affinity": ONLY_SSD},
        [UNEVEN, UNEVEN, "", NO_LABEL],
    ),
    "tainted nodes are domains": ({}, {}, [UNEVEN, UNEVEN, "", NO_LABEL]),
    "nodeTaintsPolicy Honor leaves them out": (
        {"node_taints_policy": "Honor"},
        {},
        ["", "", "", NO_LABEL],
    ),
    "unless the pod tolerates the taint": (
        {"node_taints_policy": "Honor"},
        {"tolerations": [{"operator": "Exists"}]},
        [UNEVEN, UNEVEN, "", NO_LABEL],
    ),
}


@pytest.mark.parametrize(("fields", "spec", "expected"), POLICIES.values(), ids=POLICIES.keys())
def test_inclusion_policies(fields: Manifest, spec: Manifest, expected: list[str]) -> None:
    constraint = spread(ZONE, WEB, **fields)
    pod = make_pod("p", labels={"app": "web"}, topology_spread_constraints=[constraint], **spec)
    found = refusals("PodTopologySpread", pod, *nodes(b1=["maintenance:NoSchedule"]), *web("a1"))
    assert found == dict(zip(NAMES, expected, strict=True))


SCORES: dict[str, tuple[list[Manifest], list[Any], list[int]]] = {
    "no constraint and no service: not scored": ([], web("a1"), []),
    "no matching pod: nodes in the topology are equal": (
        [spread(ZONE, WEB, hard=False)],
        [],
        [100, 100, 100, 0],
    ),
    # Raw scores log(2 + 2) * pods: 1.39 -> 1 and 0; 100 * (1 + 0 - raw) / 1.
    "the domain with fewer pods is better": (
        [spread(ZONE, WEB, hard=False)],
        web("a1"),
        [0, 0, 100, 0],
    ),
    # Raw scores log(4) * 3 = 4.16 -> 4, and log(4) = 1.39 -> 1; 100 * (4 + 1 - raw) / 4.
    "both domains have pods": (
        [spread(ZONE, WEB, hard=False)],
        web("a1", "a2", "a1", "b1"),
        [25, 25, 100, 0],
    ),
    # Three hosts: log(3 + 2) = 1.61 -> 2 on a1, 0 elsewhere.
    "hosts count their own pods": (
        [spread(HOSTNAME, WEB, hard=False)],
        web("a1"),
        [0, 100, 100, 0],
    ),
}


@pytest.mark.parametrize(("constraints", "existing", "expected"), SCORES.values(), ids=SCORES.keys())
def test_score(constraints: list[Manifest], existing: list[Any], expected: list[int]) -> None:
    pod = make_pod("p", labels={"app": "web"}, topology_spread_constraints=constraints)
    found = scores("PodTopologySpread", pod, *nodes(), *existing)
    assert found == (dict(zip(NAMES, expected, strict=True)) if expected else {})


def test_pods_of_a_service_spread_by_default() -> None:
    pod = make_pod("p", labels={"app": "web"})
    service = make_service("web", {"app": "web"})
    found = scores("PodTopologySpread", pod, *nodes(), *web("a1"), service)
    assert found["a1"] < found["a2"] < found["b1"]


def test_neither_services_nor_controllers_are_looked_up_where_there_can_be_no_constraint() -> None:
    nothing: Any = None
    pod = make_pod("p", owners=[owner("ReplicaSet", "web")])
    assert TemplateConstraints(pod, "DoNotSchedule", ()).of(pod, nothing) == ()
