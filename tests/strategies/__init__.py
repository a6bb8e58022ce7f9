"""Hypothesis strategies: small clusters that are as awkward as the API allows.

Few names, keys and values, so that things meet: labels are missing or empty, domains are shared, ports clash,
namespaces are unknown, amounts do not divide. `cases` draws a cluster, pods and a profile's arguments, about
only those subjects that a test needs: the fewer, the denser.

A draw costs far more than what is done with it, so parts come ready-made: `any_of` is one draw from all
combinations of some choices. They are shared, and so must not be changed.
"""

from __future__ import annotations

from tests import builders as b
from tests.builders import HOSTNAME, PREFERRED, REQUIRED, ZONE
from tests.strategies.choosing import MOSTLY, Draw, any_of, examples, one_of, present, subset
from tests.strategies.cluster_nodes import ALL_TAINTS, nodes
from tests.strategies.objects import other_objects
from tests.strategies.pods import new_pods, placed_pods
from tests.strategies.selectors import USUAL_LABELS
from tests.strategies.subjects import (
    AFFINITY,
    FEATURES,
    GPU,
    IMAGES,
    NODE_NAMES,
    NODES,
    OWNED,
    PORTS,
    RESOURCES,
    SPREAD,
    TAINTS,
)
from tests.strategies.whole_cases import Case, cases, mixed_cases

__all__ = [
    "AFFINITY",
    "ALL_TAINTS",
    "FEATURES",
    "GPU",
    "HOSTNAME",
    "IMAGES",
    "MOSTLY",
    "NODES",
    "NODE_NAMES",
    "OWNED",
    "PORTS",
    "PREFERRED",
    "REQUIRED",
    "RESOURCES",
    "SPREAD",
    "TAINTS",
    "USUAL_LABELS",
    "ZONE",
    "Case",
    "Draw",
    "any_of",
    "b",
    "cases",
    "examples",
    "mixed_cases",
    "new_pods",
    "nodes",
    "one_of",
    "other_objects",
    "placed_pods",
    "present",
    "subset",
]
