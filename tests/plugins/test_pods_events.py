"""What may help pods that were refused because of other pods: PodTopologySpread and InterPodAffinity."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.api.base import Object
from moorage.api.pod import Pod
from tests.builders import REQUIRED, ZONE, make_namespace, make_node, make_pod, make_service, pod_term, spread
from tests.plugins.requeueing import wakes

WEB = {"matchLabels": {"app": "web"}}
DB = {"matchLabels": {"app": "db"}}


def other(app: str = "web", **fields: Any) -> Pod:
    return make_pod("q", uid="q", **{"on": "n", "labels": {"app": app}, **fields})


def in_zone(zone: str | None, **labels: str) -> Any:
    return make_node("n", labels={**({} if zone is None else {ZONE: zone}), **labels})


PLAIN = in_zone(None)

# Spreading


def spreading(*constraints: Any, **fields: Any) -> Pod:
    return make_pod("p", uid="p", topology_spread_constraints=constraints or [spread(ZONE, WEB)], **fields)


HONORING = spread(ZONE, WEB, node_taints_policy="Honor")
TOLERATING = [{"key": "a", "operator": "Exists"}]
TWO_KEYS = spreading(spread(ZONE, WEB), spread("rack", WEB))

SPREADING: dict[str, tuple[Pod, Object | None, Object | None, bool]] = {
    "a pod of its kind comes": (spreading(), None, other(), True),
    "a pod of its kind goes": (spreading(), other(), None, True),
    "another pod comes": (spreading(), None, other("db"), False),
    "another pod goes": (spreading(), other("db"), None, False),
    "a pod of another namespace comes": (spreading(), None, other(namespace="else"), False),
    "a pod without a node goes": (spreading(), other(on=""), None, False),
    "a nominated pod goes": (spreading(), other(on="", status={"nominatedNodeName": "n"}), None, True),
    "a pod becomes one of its kind": (spreading(), other("db"), other(), True),
    "a pod is not of its kind any more": (spreading(), other(), other("db"), True),
    "labels change that do not matter": (spreading(), other(), other(labels={"app": "web", "a": "b"}), False),
    "its own labels change": (
        spreading(labels={"app": "web"}),
        spreading(),
        spreading(labels={"app": "web"}),
        True,
    ),
    "its own labels change, which does not matter": (
        spreading(labels={"a": "b"}),
        spreading(),
        spreading(labels={"a": "b"}),
        False,
    ),
    "it tolerates more, and taints count": (
        spreading(HONORING, tolerations=TOLERATING),
        spreading(HONORING),
        spreading(HONORING, tolerations=TOLERATING),
        True,
    ),
    "it tolerates more, but taints do not count": (
        spreading(tolerations=TOLERATING),
        spreading(),
        spreading(tolerations=TOLERATING),
        False,
    ),
    "another pod tolerates more": (spreading(HONORING), other(), other(tolerations=TOLERATING), False),
    "a node with a zone comes": (spreading(), None, in_zone("a"), True),
    "a node without a zone comes": (spreading(), None, PLAIN, False),
    "a node with one of two keys comes": (TWO_KEYS, None, in_zone("a"), False),
    "a node with both keys comes": (TWO_KEYS, None, in_zone("a", rack="1"), True),
    "a node with a zone goes": (spreading(), in_zone("a"), None, True),
    "a node without a zone goes": (spreading(), PLAIN, None, False),
    "a node gets a zone": (spreading(), PLAIN, in_zone("a"), True),
    "a node loses its zone": (spreading(), in_zone("a"), PLAIN, True),
    "a node moves": (spreading(), in_zone("a"), in_zone("b"), True),
    "other labels change": (spreading(), in_zone("a"), in_zone("a", disk="ssd"), False),
    "taints change in a zone": (
        spreading(),
        in_zone("a"),
        make_node("n", labels={ZONE: "a"}, taints=["a:NoSchedule"]),
        True,
    ),
    "taints change elsewhere": (spreading(), PLAIN, make_node("n", taints=["a:NoSchedule"]), False),
    "a node grows": (spreading(), in_zone("a"), make_node("n", labels={ZONE: "a"}, allocatable={}), False),
    "soft constraints refuse nobody": (spreading(spread(ZONE, WEB, hard=False)), None, other(), False),
}


@pytest.mark.parametrize(("pod", "old", "new", "woken"), SPREADING.values(), ids=SPREADING.keys())
def test_spreading(pod: Pod, old: Object | None, new: Object | None, woken: bool) -> None:
    assert wakes("PodTopologySpread", pod, old, new) is woken


def test_constraints_that_the_configuration_gives() -> None:
    hard = {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule"}
    args = {"defaultConstraints": [hard], "defaultingType": "List"}
    pod = make_pod("p", uid="p", labels={"app": "web"})
    services = [make_service("s", {"app": "web"})]
    assert wakes("PodTopologySpread", pod, None, other(), args=args, objects=services)
    assert not wakes("PodTopologySpread", pod, None, other("db"), args=args, objects=services)


# Affinity


def wanting(*near: Any, away: Any = (), **fields: Any) -> Pod:
    affinity = {"podAffinity": {REQUIRED: list(near)}, "podAntiAffinity": {REQUIRED: list(away)}}
    return make_pod("p", uid="p", affinity=affinity, **fields)


NEAR_WEB, NEAR_DB = pod_term(ZONE, WEB), pod_term(ZONE, DB)
REQUIRED_AFFINITY, AFFINITY_TO_BOTH = wanting(NEAR_WEB), wanting(NEAR_WEB, NEAR_DB)
REQUIRED_ANTI_AFFINITY, ANTI_AFFINITY_TO_BOTH = wanting(away=[NEAR_WEB]), wanting(away=[NEAR_WEB, NEAR_DB])
PREFERRED_ANTI_AFFINITY = {"affinity": {"podAntiAffinity": {REQUIRED: [NEAR_WEB]}}}
UNWANTED = make_pod("p", uid="p", labels={"app": "web"})
"""Wants nothing of others; those that keep away from web keep away from it."""

AFFINITY: dict[str, tuple[Pod, Object | None, Object | None, bool]] = {
    "a liked pod comes": (REQUIRED_AFFINITY, None, other(), True),
    "another pod comes": (REQUIRED_AFFINITY, None, other("db"), False),
    "one of two liked pods comes: nobody is both": (AFFINITY_TO_BOTH, None, other(), False),
    "a liked pod comes without a node": (REQUIRED_AFFINITY, None, other(on=""), False),
    "a liked pod of another namespace comes": (REQUIRED_AFFINITY, None, other(namespace="else"), False),
    "a liked pod goes": (REQUIRED_AFFINITY, other(), None, False),
    "the last of its own kind may have gone": (wanting(NEAR_WEB, labels={"app": "web"}), other(), None, True),
    "a pod becomes a liked one": (REQUIRED_AFFINITY, other("db"), other(), True),
    "a pod is not liked any more": (REQUIRED_AFFINITY, other(), other("db"), False),
    "a hated pod goes": (REQUIRED_ANTI_AFFINITY, other(), None, True),
    "one of two hated pods goes": (ANTI_AFFINITY_TO_BOTH, other(), None, True),
    "another pod goes": (REQUIRED_ANTI_AFFINITY, other("db"), None, False),
    "a hated pod goes that was nominated": (
        REQUIRED_ANTI_AFFINITY,
        other(on="", status={"nominatedNodeName": "n"}),
        None,
        True,
    ),
    "a hated pod comes": (REQUIRED_ANTI_AFFINITY, None, other(), False),
    "a pod is not hated any more": (REQUIRED_ANTI_AFFINITY, other(), other("x"), True),
    "one of two hates ends": (ANTI_AFFINITY_TO_BOTH, other(), other("x"), True),
    "from one hate to the other": (ANTI_AFFINITY_TO_BOTH, other(), other("db"), True),
    "a pod becomes a hated one": (REQUIRED_ANTI_AFFINITY, other("db"), other(), False),
    "a pod goes that kept away from it": (UNWANTED, other("db", **PREFERRED_ANTI_AFFINITY), None, True),
    "a pod goes that did not": (UNWANTED, other("db"), None, False),
    "its own labels change": (UNWANTED, make_pod("p", uid="p"), UNWANTED, True),
    "another waiting pod's labels change": (UNWANTED, make_pod("q"), other(on=""), False),
    "a node with the key comes": (REQUIRED_AFFINITY, None, in_zone("a"), True),
    "a node without the key comes": (REQUIRED_AFFINITY, None, PLAIN, False),
    "a node gets the key": (REQUIRED_AFFINITY, PLAIN, in_zone("a"), True),
    "a node loses the key": (REQUIRED_AFFINITY, in_zone("a"), PLAIN, False),
    "a node moves": (REQUIRED_AFFINITY, in_zone("a"), in_zone("b"), True),
    "other labels change": (REQUIRED_AFFINITY, in_zone("a"), in_zone("a", disk="ssd"), False),
    "any node comes": (REQUIRED_ANTI_AFFINITY, None, PLAIN, True),
    "a node gets the key of what is hated": (REQUIRED_ANTI_AFFINITY, PLAIN, in_zone("a"), False),
    "a node loses the key of what is hated": (REQUIRED_ANTI_AFFINITY, in_zone("a"), PLAIN, True),
    "a node moves away from what is hated": (REQUIRED_ANTI_AFFINITY, in_zone("a"), in_zone("b"), True),
    "other labels change beside what is hated": (
        REQUIRED_ANTI_AFFINITY,
        in_zone("a"),
        in_zone("a", disk="ssd"),
        False,
    ),
    "a node comes for who is unwanted elsewhere": (UNWANTED, None, PLAIN, True),
    "a node changes for who is unwanted elsewhere": (UNWANTED, in_zone("a"), in_zone("b"), True),
    "taints change": (
        REQUIRED_AFFINITY,
        in_zone("a"),
        make_node("n", labels={ZONE: "a"}, taints=["a:NoSchedule"]),
        False,
    ),
    "a node goes": (REQUIRED_AFFINITY, in_zone("a"), None, False),
}


@pytest.mark.parametrize(("pod", "old", "new", "woken"), AFFINITY.values(), ids=AFFINITY.keys())
def test_affinity(pod: Pod, old: Object | None, new: Object | None, woken: bool) -> None:
    assert wakes("InterPodAffinity", pod, old, new) is woken


NAMESPACES = {
    "by name": ({"namespaces": ["else"]}, True),
    "by another name": ({"namespaces": ["third"]}, False),
    "by its labels": ({"namespace_selector": {"matchLabels": {"team": "x"}}}, True),
    "by other labels": ({"namespace_selector": {"matchLabels": {"team": "y"}}}, False),
    "all": ({"namespace_selector": {}}, True),
}


@pytest.mark.parametrize(("fields", "woken"), NAMESPACES.values(), ids=NAMESPACES.keys())
def test_pods_of_other_namespaces(fields: dict[str, Any], woken: bool) -> None:
    pod, known = wanting(pod_term(ZONE, WEB, **fields)), [make_namespace("else", team="x")]
    assert wakes("InterPodAffinity", pod, None, other(namespace="else"), objects=known) is woken
