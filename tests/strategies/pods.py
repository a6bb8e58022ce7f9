"""Pods on nodes, and pods that wait for one."""

from __future__ import annotations

from collections.abc import Collection
from itertools import product
from typing import Any

from hypothesis import strategies as st

from tests import builders as b
from tests.builders import Manifest
from tests.strategies.choosing import MAYBE, MOSTLY, SELDOM, Draw, any_of, from_pool, one_of, present
from tests.strategies.selectors import (
    NODE_AFFINITY,
    NODE_SELECTOR,
    POD_AFFINITY,
    POD_LABELS,
    SELECTORS,
    TOPOLOGY_KEYS,
)
from tests.strategies.subjects import (
    AFFINITY,
    BATCH,
    CORDON,
    EFFECTS,
    FEATURES,
    GPU,
    HUGE,
    IMAGES,
    NAMESPACES,
    NODES,
    OWNED,
    PORTS,
    RESOURCES,
    SPREAD,
    TAINTS,
)

TOLERATION = any_of(
    lambda key, operator, value, effect: {
        "key": key,
        "operator": operator,
        "value": value,
        "effect": effect,
    },
    ("gpu", "old", CORDON, ""),
    ("", "Equal", "Exists", "Exists", "Lt"),
    ("", "yes", "no"),
    ("", "", *EFFECTS),
)
TOLERATIONS = st.lists(TOLERATION, max_size=3)

REQUESTS = st.builds(
    lambda usual, special: {**usual, **special},
    from_pool(
        present(
            cpu=(None, "100m", "1", "0.3334", "1500u", "2", "0", "333333333n"),
            memory=(None, "64Mi", "1Gi", "100M", "1", "0", "100m", "2Gi"),
        )
    ),
    st.sampled_from(
        [
            *({} for _ in range(10)),
            *({GPU: amount} for amount in ("1", "2", "0", "1")),
            *({"ephemeral-storage": amount} for amount in ("1Gi", "6Gi", "0")),
            {HUGE: "2Mi"},
            {HUGE: "40Mi", GPU: "1"},
            {BATCH: "3"},
            {"cores": "4"},
            {"other.org/fpga": "1"},
        ]
    ),
)
PLAIN_REQUESTS = one_of(
    {}, {"cpu": "100m"}, {"cpu": "500m", "memory": "256Mi"}, {"memory": "1Gi"}, {"cpu": "0", "memory": "0"}
)
POD_LEVEL = one_of(
    {"cpu": "1", "memory": "1Gi"},
    {"cpu": "700m"},
    {"memory": "300Mi"},
    {HUGE: "4Mi"},
    {"cpu": "0"},
    {GPU: "1"},
    {},
)

PORT = any_of(
    b.port,
    (80, 80, 443, 0),
    ("TCP", "TCP", "UDP", ""),
    ("", "", "0.0.0.0", "127.0.0.1", "10.0.0.1"),
)
PORT_LIST = st.lists(PORT, max_size=2)

USED_IMAGE = one_of("", "web", "web:1", "reg.io:5000/db", "reg.io:5000/db:2", "big@sha256:0", "none")
RESTART_RULES = one_of([], [], [{"action": "Restart"}], [{"action": "RestartAllContainers"}])
SIDECARS = st.sampled_from(
    [list(chosen) for size in range(4) for chosen in product((None, "Always"), repeat=size)]
)
HOST_USERS = one_of(None, False, True)
NAMESPACE = one_of("red", "red", "red", *NAMESPACES)
PLACE = one_of(*("",) * 18, "n0", "unknown")


def _container(draw: Draw[Any], about: Collection[str], name: str) -> Manifest:
    """A container with requests, ports, an image."""
    parts: dict[str, Any] = {}
    requests = draw(REQUESTS if RESOURCES in about else PLAIN_REQUESTS)
    if PORTS in about:
        parts["ports"] = draw(PORT_LIST)
    if IMAGES in about:
        parts["image"] = draw(USED_IMAGE)
    if FEATURES in about:
        parts["restart_policy_rules"] = draw(RESTART_RULES)
    return b.container(requests, name, **parts)


def _body(draw: Draw[Any], about: Collection[str]) -> dict[str, Any]:
    """What pods have whether they are on a node or not: containers, init containers, overhead."""
    body: dict[str, Any] = {"containers": [_container(draw, about, "main")]}
    if {RESOURCES, PORTS, IMAGES, FEATURES} & set(about):
        if draw(SELDOM):
            body["containers"].append(_container(draw, about, "second"))
        if draw(MAYBE):
            body["init_containers"] = [
                {**_container(draw, about, f"init{i}"), "restartPolicy": policy}
                for i, policy in enumerate(draw(SIDECARS))
            ]
    if RESOURCES in about:
        if draw(SELDOM):
            body["overhead"] = {"cpu": "50m", "memory": "10Mi"}
        if draw(SELDOM):
            body["resources"] = {"requests": draw(POD_LEVEL)}
    if IMAGES in about and draw(SELDOM):
        body["volumes"] = [{"name": "v", "image": {"reference": draw(USED_IMAGE)}}]
    if FEATURES in about:
        body["host_network"] = draw(MAYBE)
        body["host_users"] = draw(HOST_USERS)
    return body


TWO_REQUESTS = st.tuples(PLAIN_REQUESTS, PLAIN_REQUESTS)
RESIZE = st.builds(
    lambda main, sidecar, condition, whole: {
        "conditions": condition,
        "containerStatuses": [
            {"name": name, "resources": {"requests": given}, "allocatedResources": booked}
            for name, (given, booked) in (("main", main), ("init0", sidecar))
        ],
        "resources": whole and {"requests": whole},
        "allocatedResources": whole or {},
    },
    TWO_REQUESTS,
    TWO_REQUESTS,
    one_of(
        [],
        [{"type": "PodResizePending", "reason": "Infeasible"}],
        [{"type": "PodResizePending", "reason": "Deferred"}],
    ),
    one_of(None, {"cpu": "2", "memory": "2Gi"}, {"memory": "10Mi"}),
)
"""What the kubelet says of a pod that is being resized."""


def _pod_affinities(draw: Draw[Any]) -> Manifest:
    return {kind: draw(POD_AFFINITY) for kind in ("podAffinity", "podAntiAffinity") if draw(MAYBE)}


@st.composite
def placed_pods(draw: Draw[Any], name: str, on: str, about: Collection[str]) -> Manifest:
    """A pod that is on a node."""
    return b.pod(
        name,
        namespace=draw(NAMESPACE),
        labels=draw(POD_LABELS),
        on=on,
        terminating=draw(SELDOM),
        status=draw(RESIZE) if RESOURCES in about and draw(SELDOM) else None,
        affinity=_pod_affinities(draw) if AFFINITY in about else None,
        **_body(draw, about),
    )


SPREAD_CONSTRAINT = st.builds(
    lambda main, more: b.spread(*main[:2], hard=main[2], **more),
    any_of(lambda *chosen: chosen, TOPOLOGY_KEYS, (*SELECTORS[:1] * 6, *SELECTORS), (True, False)),
    any_of(
        lambda skew, least, affinity, taints, keys: {
            "max_skew": skew,
            "min_domains": least,
            "node_affinity_policy": affinity,
            "node_taints_policy": taints,
            "match_label_keys": keys,
        },
        (1, 1, 1, 2, 3),
        (None, None, 1, 2, 4),
        (None, "Honor", "Ignore"),
        (None, "Honor", "Ignore"),
        (None, None, None, None, ["version"], ["tier", "version"]),
    ),
)
SPREAD_CONSTRAINTS = st.lists(SPREAD_CONSTRAINT, max_size=3)

OWNER = any_of(
    lambda kind, name, version, controller: b.owner(kind, name, api_version=version, controller=controller),
    ("ReplicaSet", "StatefulSet", "ReplicationController", "Job"),
    ("own", "other"),
    ("apps/v1", "apps/v1", "v1", "apps/v1beta1", "a/b/c"),
    (True, True, False),
)
OWNERS = st.lists(OWNER, max_size=2)


@st.composite
def new_pods(draw: Draw[Any], name: str, about: Collection[str]) -> Manifest:
    """A pod that wants a node."""
    spec = _body(draw, about)
    affinity: Manifest = {}
    if NODES in about:
        spec["on"] = draw(PLACE)
    if NODES in about or SPREAD in about:
        spec["node_selector"] = draw(NODE_SELECTOR)
        if draw(MOSTLY if NODES in about else SELDOM):
            affinity["nodeAffinity"] = draw(NODE_AFFINITY)
    if TAINTS in about or SPREAD in about:
        spec["tolerations"] = draw(TOLERATIONS)
    if AFFINITY in about:
        affinity |= _pod_affinities(draw)
    if SPREAD in about:
        spec["topology_spread_constraints"] = draw(SPREAD_CONSTRAINTS)
    if SPREAD in about or OWNED in about:
        spec["owners"] = draw(OWNERS)
    return b.pod(name, namespace=draw(NAMESPACE), labels=draw(POD_LABELS), affinity=affinity or None, **spec)
