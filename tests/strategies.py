"""Hypothesis strategies: small clusters that are as awkward as the API allows.

Few names, keys and values, so that things meet: labels are missing or empty, domains are shared, ports clash,
namespaces are unknown, amounts do not divide. `cases` draws a cluster, pods and a profile's arguments, about
only those subjects that a test needs: the fewer, the denser.

A draw costs far more than what is done with it, so parts come ready-made: `any_of` is one draw from all
combinations of some choices. They are shared, and so must not be changed.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations, product
from typing import Any, TypeVar

from hypothesis import settings
from hypothesis import strategies as st

from moorage.api.base import Object
from moorage.api.decode import convert
from moorage.api.pod import Pod
from moorage.config.args import ARGS_BY_PLUGIN
from tests import builders as b
from tests.builders import HOSTNAME, PREFERRED, REQUIRED, ZONE, Manifest, expression

T = TypeVar("T")
Draw = Callable[[st.SearchStrategy[T]], T]

FACTOR = float(os.environ.get("MOORAGE_EXAMPLES", "1"))
"""Multiplies the number of examples: `MOORAGE_EXAMPLES=30 pytest ...` hunts longer."""


def examples(count: int, **more: Any) -> settings:
    """Settings for a property that is tested with so many examples."""
    return settings(max_examples=max(1, int(count * FACTOR)), **more)


# Subjects: what a case can be about.

NODES = "nodes"
"""Node names, nodeSelector and node affinity."""
TAINTS = "taints"
PORTS = "ports"
RESOURCES = "resources"
SPREAD = "spread"
AFFINITY = "affinity"
IMAGES = "images"
FEATURES = "features"
OWNED = "owned"
"""Pods that services select or controllers own, and that ask for no spreading themselves."""
SUBJECTS = (NODES, TAINTS, PORTS, RESOURCES, SPREAD, AFFINITY, IMAGES, FEATURES)

NAMESPACES = ("red", "blue", "green")
"""Only red and blue can be known as objects; green never is."""

NODE_NAMES = tuple(f"n{i}" for i in range(8))

GPU = "example.com/gpu"
HUGE = "hugepages-2Mi"
BATCH = "kubernetes.io/batch"

# Choosing


def one_of(*values: T) -> st.SearchStrategy[T]:
    """One of these values; failures shrink towards the first."""
    return st.sampled_from(values)


def any_of(make: Callable[..., T], *choices: Iterable[Any]) -> st.SearchStrategy[T]:
    """`make` of any combination of choices."""
    return from_pool(make(*chosen) for chosen in product(*choices))


def from_pool(values: Iterable[T]) -> st.SearchStrategy[T]:
    """One of many values, chosen by index: Hypothesis would show all that `sampled_from` is given."""
    pool = list(values)
    index = st.integers(0, len(pool) - 1)

    @st.composite
    def pooled(draw: Draw[int]) -> T:
        return pool[draw(index)]

    return pooled()


def subset(values: Iterable[T], most: int = 2) -> list[list[T]]:
    """All subsets with at most so many members, the smaller first."""
    known = list(values)
    return [list(chosen) for size in range(most + 1) for chosen in combinations(known, size)]


def present(**choices: tuple[str | None, ...]) -> list[dict[str, str]]:
    """All dicts with one of several values for each key; None leaves the key out."""
    return [
        {key: value for key, value in zip(choices, chosen, strict=True) if value is not None}
        for chosen in product(*choices.values())
    ]


MAYBE = st.booleans()
SELDOM = one_of(False, False, False, True)
MOSTLY = one_of(True, True, True, False)
RARELY = st.sampled_from((False,) * 11 + (True,))


# Selectors

USUAL_LABELS = {"app": "a", "version": "1"}
POD_LABELS = from_pool(
    [
        *[USUAL_LABELS] * 30,
        *present(app=("a", "b", None), tier=(None, "x", "y", ""), version=("1", "2", None)),
    ]
)

SELECTORS: tuple[Manifest | None, ...] = (
    {"matchLabels": {"app": "a"}},
    {"matchLabels": {"app": "b"}},
    {"matchLabels": {"app": "a", "tier": "x"}},
    {"matchLabels": {"tier": ""}},
    {"matchExpressions": [expression("app", "In", "a", "b")]},
    {"matchExpressions": [expression("app", "NotIn", "a")]},
    {"matchExpressions": [expression("tier", "Exists")]},
    {"matchExpressions": [expression("tier", "DoesNotExist")]},
    {"matchLabels": {"app": "a"}, "matchExpressions": [expression("tier", "NotIn", "x", "")]},
    {"matchExpressions": [expression("app", "Exists"), expression("version", "In", "1")]},
    {},
    None,
)
NAMESPACE_SELECTORS: tuple[Manifest | None, ...] = (
    None,
    {},
    {"matchLabels": {"team": "x"}},
    {"matchExpressions": [expression("team", "NotIn", "x")]},
    {"matchExpressions": [expression("team", "DoesNotExist")]},
    {"matchExpressions": [expression("env", "Exists")]},
    {"matchExpressions": [expression("team", "In", "x", "y"), expression("env", "DoesNotExist")]},
)
NAMESPACE_SCOPES = [
    {},
    {},
    # The server has merged these into the selector: whoever schedules has nothing more to do with them.
    {"match_label_keys": ["version"], "mismatch_label_keys": ["tier"]},
    *(
        {"namespaces": names, "namespace_selector": selector}
        for names in ((), ("red",), ("blue", "green"))
        for selector in NAMESPACE_SELECTORS
    ),
]
TOPOLOGY_KEYS = (ZONE, ZONE, HOSTNAME, HOSTNAME, "disk", "rack")

POD_TERM = any_of(
    lambda key, selector, scope: b.pod_term(key, selector, **scope),
    TOPOLOGY_KEYS,
    SELECTORS,
    NAMESPACE_SCOPES,
)
WEIGHTED_POD_TERM = st.builds(
    lambda weight, term: {"weight": weight, "podAffinityTerm": term}, one_of(1, 2, 7, 50, 100), POD_TERM
)
POD_AFFINITY = st.builds(
    lambda required, preferred: {REQUIRED: required, PREFERRED: preferred},
    st.lists(POD_TERM, max_size=2),
    st.lists(WEIGHTED_POD_TERM, max_size=2),
)

LABEL_NUMBERS = ("1", "2", "10", "007", "x", "", "1_0", "9223372036854775807", "9223372036854775808")

NODE_LABELS = any_of(
    lambda zone, rest: rest if zone is None else {ZONE: zone, **rest},
    ("a", "b", "a", "b", "c", "", None, None),
    present(disk=(None, "ssd", "hdd", ""), rack=(None, "1", "2"), gen=(None, None, *LABEL_NUMBERS)),
)

ZONE_LABELS = any_of(lambda zone: {} if zone is None else {ZONE: zone}, ("a", "b", "", None))

NODE_EXPRESSION = from_pool(
    [
        *(
            expression(key, operator, *values)
            for key, known in (
                (ZONE, ("a", "b", "")),
                ("disk", ("ssd", "hdd", "")),
                ("rack", ("1", "2", "3")),
            )
            for operator in ("In", "NotIn")
            for values in subset(known)[1:] * 2
        ),
        *(
            expression(key, operator)
            for key in (ZONE, HOSTNAME, "disk", "gen", "nowhere")
            for operator in ("Exists", "DoesNotExist")
        ),
        *(
            expression(key, operator, number)
            for key in ("gen", "gen", "disk")
            for operator in ("Gt", "Lt")
            for number in ("1", "2", "5", "0010", "9223372036854775807")
        ),
    ]
)
MALFORMED_EXPRESSION = one_of(
    expression("disk", "In"),
    expression("disk", "Exists", "ssd"),
    expression("gen", "Gt", "1", "2"),
    expression("gen", "Lt", "x"),
    expression("gen", "Gt", "1_0"),
    expression("disk", "Near", "ssd"),
    expression("-bad-", "Exists"),
    expression("", "Exists"),
    expression("disk", "In", "no/value"),
)
NODE_NAME = any_of(lambda name: expression("metadata.name", "In", name), NODE_NAMES[:4])
NODE_FIELD = st.one_of(
    NODE_NAME,
    any_of(
        lambda operator, names: expression("metadata.name", operator, *names),
        ("In", "NotIn"),
        subset((*NODE_NAMES[:3], "unknown")),
    ),
    one_of(
        expression("metadata.name", "Exists"),
        expression("metadata.uid", "In", "n0"),
        expression("metadata.uid", "In", ""),
        expression("metadata.uid", "NotIn", "n0"),
    ),
)
NODE_TERM_KIND = one_of(*("labels",) * 6, "fields", "fields", "both", "nothing", "malformed")
NODE_EXPRESSIONS = st.lists(NODE_EXPRESSION, min_size=1, max_size=2)
NODE_NAME_FIELDS = st.lists(NODE_NAME, min_size=1, max_size=1)
NODE_FIELDS = st.lists(NODE_FIELD, min_size=1, max_size=2)


@st.composite
def node_terms(draw: Draw[Any], sane: bool = False) -> Manifest:
    """A node selector term: labels, fields, or nothing; unless it is `sane`, seldom one without sense."""
    term: Manifest = {}
    kind = draw(NODE_TERM_KIND)
    if kind in ("labels", "both"):
        term["matchExpressions"] = draw(NODE_EXPRESSIONS)
    if kind in ("fields", "both"):
        term["matchFields"] = draw(NODE_NAME_FIELDS if sane else NODE_FIELDS)
    if kind == "malformed" and not sane:
        term["matchExpressions"] = [draw(NODE_EXPRESSION), draw(MALFORMED_EXPRESSION)]
    return term


NODE_TERM, SANE_NODE_TERM = node_terms(), node_terms(sane=True)
PREFERENCE_WEIGHT = one_of(1, 2, 10, 33, 100, 100, 0)


def _preferences(term: st.SearchStrategy[Manifest]) -> st.SearchStrategy[list[Manifest]]:
    weighted = st.builds(lambda weight, term: {"weight": weight, "preference": term}, PREFERENCE_WEIGHT, term)
    return st.lists(weighted, max_size=3)


PREFERENCES, SANE_PREFERENCES = _preferences(NODE_TERM), _preferences(SANE_NODE_TERM)
NODE_TERMS, SANE_NODE_TERMS = st.lists(NODE_TERM, max_size=3), st.lists(SANE_NODE_TERM, max_size=3)
NODE_AFFINITY_KIND = one_of(PREFERRED, PREFERRED, PREFERRED, REQUIRED, REQUIRED, "both")


@st.composite
def node_affinities(draw: Draw[Any], sane: bool = False) -> Manifest:
    """Node affinity; required terms often make no sense, preferences seldom."""
    affinity: Manifest = {}
    kind = draw(NODE_AFFINITY_KIND)
    if kind != PREFERRED:
        affinity[REQUIRED] = {"nodeSelectorTerms": draw(SANE_NODE_TERMS if sane else NODE_TERMS)}
    if kind != REQUIRED:
        affinity[PREFERRED] = draw(SANE_PREFERENCES if sane or not draw(RARELY) else PREFERENCES)
    return affinity


NODE_AFFINITY, SANE_NODE_AFFINITY = node_affinities(), node_affinities(sane=True)
NODE_SELECTOR = one_of(*(None,) * 12, {"disk": "ssd"}, {"disk": ""}, {ZONE: "a", "disk": "hdd"})


# Parts of nodes and pods

EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
CORDON = "node.kubernetes.io/unschedulable"
ALL_TAINTS = [f"{pair}:{effect}" for pair in ("gpu=yes", "gpu=no", "old", CORDON) for effect in EFFECTS]
TAINTS_LIST = from_pool([*([] for _ in range(40)), *subset(ALL_TAINTS)])
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

AMPLE_ROOM = {"cpu": "4", "memory": "8Gi", "pods": "110"}
ROOM = st.builds(
    lambda usual, special: {**usual, **special},
    from_pool(
        present(
            cpu=("8", "8", "8", "3", "1500m", "0", None),
            memory=("16Gi", "16Gi", "16Gi", "3Gi", "700M", "0", None),
            pods=("110", "110", "110", "110", "4", "2", None),
        )
    ),
    any_of(
        lambda disk, special: {**disk, **special},
        ({}, {"ephemeral-storage": "10Gi"}, {"ephemeral-storage": "0"}),
        ({}, {GPU: "2"}, {GPU: "7", HUGE: "64Mi"}, {GPU: "0", BATCH: "5"}, {HUGE: "8Mi", "cores": "8"}),
    ),
)

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
MIB = 2**20
IMAGE = any_of(
    lambda names, size: (names, size),
    subset(("web:1", "web:latest", "reg.io:5000/db:latest", "reg.io:5000/db:2", "big@sha256:0")),
    (0, 10 * MIB, 23 * MIB, 333333333, 700 * MIB, 5000 * MIB),
)
IMAGE_LIST = st.lists(IMAGE, max_size=3)

FEATURE_LIST = st.sampled_from(
    subset(("RestartAllContainersOnContainerExits", "UserNamespacesHostNetworkSupport", "Other"), most=3)
)
RESTART_RULES = one_of([], [], [{"action": "Restart"}], [{"action": "RestartAllContainers"}])
SIDECARS = st.sampled_from(
    [list(chosen) for size in range(4) for chosen in product((None, "Always"), repeat=size)]
)
HOST = one_of(*("own",) * 4, "shared", "", None)
UNSCHEDULABLE = one_of(False, False, True)
HOST_USERS = one_of(None, False, True)
NAMESPACE = one_of("red", "red", "red", *NAMESPACES)
PLACE = one_of(*("",) * 18, "n0", "unknown")


@st.composite
def nodes(draw: Draw[Any], name: str, about: Collection[str]) -> Manifest:
    """A node."""
    labels = draw(ZONE_LABELS if OWNED in about else NODE_LABELS)
    host = draw(HOST)
    if host is not None:
        labels = {**labels, HOSTNAME: name if host == "own" else host}
    parts: dict[str, Any] = {"allocatable": draw(ROOM) if RESOURCES in about else AMPLE_ROOM}
    if TAINTS in about or SPREAD in about:
        parts["taints"] = draw(TAINTS_LIST)
    if TAINTS in about:
        parts["unschedulable"] = draw(UNSCHEDULABLE)
    if IMAGES in about:
        parts["images"] = draw(IMAGE_LIST)
    if FEATURES in about:
        parts["features"] = draw(FEATURE_LIST)
    return b.node(name, labels=labels, **parts)


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


KNOWN_NAMESPACES = st.sampled_from(subset(("red", "blue")))
NAMESPACE_LABELS = st.sampled_from(present(team=(None, "x", "y"), env=(None, "")))
PLAIN_SELECTORS: tuple[dict[str, str], ...] = (
    {"app": "a"},
    {"app": "b"},
    {"tier": "x"},
    {"app": "a", "version": "1"},
    {},
)
SELECTING = from_pool(
    [
        *product(("Service", "Service", "ReplicationController"), PLAIN_SELECTORS),
        *product(("ReplicaSet", "StatefulSet"), SELECTORS),
    ]
)
SELECTING_NAMES = st.lists(one_of("own", "other"), max_size=3)


@st.composite
def other_objects(draw: Draw[Any], about: Collection[str]) -> list[Manifest]:
    """Namespaces with labels; services and controllers that may own the pods."""
    found: list[Manifest] = []
    if AFFINITY in about:
        found += [b.namespace(name, draw(NAMESPACE_LABELS)) for name in draw(KNOWN_NAMESPACES)]
    if OWNED in about and draw(MAYBE):
        found.append(b.selecting("Service", "usual", {"app": "a"}, "red"))
    if SPREAD in about or OWNED in about:
        for name in draw(SELECTING_NAMES):
            kind, selector = draw(SELECTING)
            found.append(b.selecting(kind, name, selector, draw(NAMESPACE)))
    return found


# Arguments of plugins

SCORED_RESOURCES = st.lists(
    any_of(
        lambda name, weight: {"name": name, "weight": weight},
        ("cpu", "memory", "ephemeral-storage", GPU, HUGE, BATCH),
        (1, 1, 3, 100),
    ),
    max_size=4,
    unique_by=lambda spec: spec["name"],
)
SHAPE = st.dictionaries(one_of(0, 10, 33, 50, 80, 100), st.integers(0, 10), min_size=1, max_size=4).map(
    lambda points: [{"utilization": at, "score": score} for at, score in sorted(points.items())]
)
STRATEGY = st.builds(
    lambda kind, resources, shape: {
        "type": kind,
        "resources": resources,
        "requestedToCapacityRatio": {"shape": shape} if kind == "RequestedToCapacityRatio" else None,
    },
    one_of("LeastAllocated", "MostAllocated", "RequestedToCapacityRatio"),
    SCORED_RESOURCES,
    SHAPE,
)
FIT_ARGS = st.builds(
    lambda strategy, resources, groups: {
        "scoringStrategy": strategy,
        "ignoredResources": resources,
        "ignoredResourceGroups": groups,
    },
    STRATEGY,
    one_of([], [], [GPU], [HUGE]),
    one_of([], [], ["example.com"], ["other.org"]),
)
DEFAULT_CONSTRAINTS = st.lists(SPREAD_CONSTRAINT, max_size=3).map(
    lambda constraints: [
        {key: value for key, value in each.items() if key not in ("labelSelector", "matchLabelKeys")}
        for each in constraints
    ]
)
SPREAD_ARGS = st.one_of(
    st.just({"defaultingType": "System"}),
    DEFAULT_CONSTRAINTS.map(lambda given: {"defaultingType": "List", "defaultConstraints": given}),
)
AFFINITY_ARGS = any_of(
    lambda weight, ignore: {
        "hardPodAffinityWeight": weight,
        "ignorePreferredTermsOfExistingPods": ignore,
    },
    (0, 1, 100),
    (False, True),
)


@st.composite
def plugin_args(draw: Draw[Any], about: Collection[str]) -> dict[str, Manifest]:
    """Arguments of all plugins that have to do with these subjects; often the defaults."""
    args: dict[str, Manifest] = {}
    if RESOURCES in about and draw(MAYBE):
        args["NodeResourcesFit"] = draw(FIT_ARGS)
    if RESOURCES in about and draw(MAYBE):
        args["NodeResourcesBalancedAllocation"] = {"resources": draw(SCORED_RESOURCES)}
    if NODES in about and draw(SELDOM):
        args["NodeAffinity"] = {"addedAffinity": draw(SANE_NODE_AFFINITY)}
    if AFFINITY in about and draw(MAYBE):
        args["InterPodAffinity"] = draw(AFFINITY_ARGS)
    if (SPREAD in about or OWNED in about) and draw(MAYBE):
        args["PodTopologySpread"] = draw(SPREAD_ARGS)
    return args


# Cases


@dataclass
class Case:
    """A cluster, pods that want a node, and a profile's arguments: as manifests, and as objects."""

    cluster: list[Manifest]
    pods: list[Manifest]
    args: dict[str, Manifest] = field(default_factory=dict)

    @cached_property
    def objects(self) -> list[Object]:
        """The cluster's objects, nodes first."""
        return [b.make(manifest) for manifest in self.cluster]

    @cached_property
    def new_pods(self) -> list[Pod]:
        """All pods that want a node."""
        return [convert(manifest, Pod) for manifest in self.pods]

    @property
    def pod(self) -> Pod:
        """The first pod that wants a node."""
        return self.new_pods[0]

    @cached_property
    def typed_args(self) -> dict[str, Any]:
        """The arguments of every plugin that takes some, complete."""
        return {
            name: convert(self.args.get(name, {}), kind, name).defaulted()
            for name, kind in ARGS_BY_PLUGIN.items()
        }

    def __repr__(self) -> str:
        lines: list[Any] = [*self.cluster, "pods:", *self.pods, "args:", self.args]
        shown = (line if isinstance(line, str) else json.dumps(_tidy(line)) for line in lines)
        return "Case:\n  " + "\n  ".join(shown)

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """How Hypothesis shows a failing case."""
        printer.text(repr(self))


def _tidy(value: Mapping[str, Any]) -> dict[str, Any]:
    """A manifest without what is empty at its top levels, to be read."""
    tidied = {
        key: _tidy(item) if key in ("spec", "status", "metadata") else item for key, item in value.items()
    }
    return {key: item for key, item in tidied.items() if item not in ({}, [], "", None, False)}


@st.composite
def cases(
    draw: Draw[Any], about: Collection[str] = SUBJECTS, *, new: int = 1, nodes_at_least: int = 1
) -> Case:
    """A case about some subjects."""
    names = NODE_NAMES[: draw(st.integers(nodes_at_least, len(NODE_NAMES)))]
    cluster: list[Manifest] = [draw(nodes(name, about)) for name in names]
    if {AFFINITY, SPREAD, RESOURCES, PORTS} & set(about):
        places = draw(st.lists(st.sampled_from(names), max_size=8))
        cluster += [draw(placed_pods(f"p{i}", place, about)) for i, place in enumerate(places)]
    if {AFFINITY, SPREAD, OWNED} & set(about):
        # Plain pods that most selectors match, so that there is something to count.
        crowd = draw(st.lists(st.sampled_from(names), max_size=6))
        cluster += [
            b.pod(f"c{i}", namespace="red", labels=USUAL_LABELS, on=place) for i, place in enumerate(crowd)
        ]
    cluster += draw(other_objects(about))
    pods = [draw(new_pods(f"new{i}", about)) for i in range(new)]
    return Case(cluster, pods, draw(plugin_args(about)))


@st.composite
def mixed_cases(draw: Draw[Any], /, *, most_subjects: int = 4, **options: Any) -> Case:
    """A case about a few subjects at a time, so that a pod is not refused everywhere for one of too many."""
    about = draw(st.lists(one_of(*SUBJECTS), min_size=1, max_size=most_subjects, unique=True))
    return draw(cases(about, **options))
