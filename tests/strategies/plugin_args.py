"""Arguments of plugins."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from hypothesis import strategies as st

from tests.builders import Manifest
from tests.strategies.choosing import MAYBE, SELDOM, Draw, any_of, one_of
from tests.strategies.pods import SPREAD_CONSTRAINT
from tests.strategies.selectors import SANE_NODE_AFFINITY
from tests.strategies.subjects import AFFINITY, BATCH, GPU, HUGE, NODES, OWNED, RESOURCES, SPREAD

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
