"""Namespaces, services and controllers."""

from __future__ import annotations

from collections.abc import Collection
from itertools import product
from typing import Any

from hypothesis import strategies as st

from tests import builders as b
from tests.builders import Manifest
from tests.strategies.choosing import MAYBE, Draw, from_pool, one_of, present, subset
from tests.strategies.pods import NAMESPACE
from tests.strategies.selectors import SELECTORS
from tests.strategies.subjects import AFFINITY, OWNED, SPREAD

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
