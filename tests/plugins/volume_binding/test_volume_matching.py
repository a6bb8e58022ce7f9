"""Matching claims with volumes for all nodes at once gives what looking at one node after another gives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from moorage.api.node import Node
from moorage.api.persistent_volumes import volume_class
from moorage.api.storage import PersistentVolume, PersistentVolumeClaim
from moorage.cluster.cache import Cache
from moorage.framework.interface.nodes import Nodes
from moorage.plugins.volume_binding.matching import (
    NONE,
    Reach,
    match_volumes,
    reached_nodes,
)
from tests.builders import HOSTNAME, ZONE, expression, make_node
from tests.plugins.volumes.volume_objects import affinity, claim, in_zone, volume


def sized(item: PersistentVolume) -> tuple[int, str]:
    return item.spec.capacity["storage"].value, item.name


def reaches(item: PersistentVolume, node: Node) -> bool:
    """Whether a node has the labels that a volume asks for; only In and NotIn occur here."""
    if item.spec.node_affinity is None or item.spec.node_affinity.required is None:
        return True
    return any(
        all(
            (node.labels.get(each.key) in each.values) == (each.operator == "In")
            for each in term.match_expressions
        )
        for term in item.spec.node_affinity.required.node_selector_terms
        if term.match_expressions
    )


def one_by_one(
    claims: list[PersistentVolumeClaim], volumes: list[PersistentVolume], node: Node
) -> dict[str, str | None]:
    """The volume that each claim takes on a node, in the plainest way."""
    taken: dict[str, str | None] = {}
    for asking in sorted(claims, key=lambda each: each.spec.resources.requests["storage"].value):
        usable = [
            item
            for item in sorted(volumes, key=sized)
            if item.name not in taken.values()
            and item.spec.storage_class_name == asking.spec.storage_class_name
            and item.spec.capacity["storage"] >= asking.spec.resources.requests["storage"]
            and (item.spec.claim_ref is None or item.spec.claim_ref.name == asking.name)
        ]
        kept = [item for item in usable if item.spec.claim_ref is not None][:1]
        free = [item for item in usable if item.status.phase == "Available"]
        here = [item for item in kept or free if reaches(item, node)]
        taken[asking.name] = here[0].name if here else None
    return taken


affinities = st.one_of(
    st.none(),
    st.sampled_from("abc").map(in_zone),
    st.sampled_from(["n0", "n1", "n2", "n3", "gone"]).map(lambda name: in_zone(name, key=HOSTNAME)),
    st.sampled_from("abc").map(lambda zone: affinity([expression(ZONE, "NotIn", zone)])),
    st.tuples(st.sampled_from("abc"), st.sampled_from("abc")).map(lambda zones: in_zone(*zones)),
    st.tuples(st.sampled_from("abc"), st.sampled_from("abc")).map(
        lambda zones: affinity(*([expression(ZONE, "In", zone)] for zone in zones))
    ),
    st.just(affinity()),
)


@st.composite
def offers(draw: st.DrawFn, number: int) -> PersistentVolume:
    fields: dict[str, Any] = {
        "storage_class": draw(st.sampled_from(["late", "late", "other"])),
        "claim": draw(st.sampled_from(["", "", "", "c0", "c1", "elsewhere"])),
        "phase": draw(st.sampled_from(["Available", "Available", "Available", "Released"])),
        "nodeAffinity": draw(affinities),
    }
    return volume(f"v{number}", f"{draw(st.integers(1, 4))}Gi", **fields)


@st.composite
def clusters(draw: st.DrawFn) -> tuple[list[Node], list[PersistentVolume], list[PersistentVolumeClaim]]:
    nodes = []
    for number in range(draw(st.integers(1, 5))):
        labels = {HOSTNAME: f"n{number}"}
        if zone := draw(st.sampled_from(["a", "b", "c", ""])):
            labels[ZONE] = zone
        nodes.append(make_node(f"n{number}", labels=labels))
    volumes = [draw(offers(number)) for number in range(draw(st.integers(0, 8)))]
    claims = [
        claim(
            f"c{number}",
            f"{draw(st.integers(1, 4))}Gi",
            storage_class=draw(st.sampled_from(["late", "other"])),
        )
        for number in range(draw(st.integers(1, 3)))
    ]
    return nodes, volumes, claims


def by_class(volumes: list[PersistentVolume]) -> Callable[[str], list[PersistentVolume]]:
    """The volumes of a storage class."""
    return lambda name: [each for each in volumes if volume_class(each) == name]


@given(clusters())
def test_all_nodes_at_once_equals_one_node_after_another(
    cluster: tuple[list[Node], list[PersistentVolume], list[PersistentVolumeClaim]],
) -> None:
    members, volumes, claims = cluster
    nodes = Nodes(Cache(members).snapshot())
    matches = match_volumes(claims, by_class(volumes), nodes)
    for index, view in enumerate(nodes):
        found = {
            match.claim.name: None if match.choice[index] == NONE else match.volumes[match.choice[index]].name
            for match in matches
        }
        assert found == one_by_one(claims, volumes, view.node)


@given(clusters())
def test_reach_equals_looking_at_each_node(
    cluster: tuple[list[Node], list[PersistentVolume], list[PersistentVolumeClaim]],
) -> None:
    members, volumes, _ = cluster
    cache = Cache(members)
    nodes = Nodes(cache.snapshot())
    some = nodes.where(np.arange(len(nodes)) % 2 == 0)
    for view in (nodes, some):
        reach = Reach(view)
        for item in volumes:
            wanted = None if item.spec.node_affinity is None else item.spec.node_affinity.required
            expected = [reaches(item, each.node) for each in view]
            assert wanted is None or reached_nodes(wanted, view).tolist() == expected
            assert reach.indices(wanted).tolist() == np.flatnonzero(expected).tolist()


def test_equal_volumes_are_taken_by_name_in_whatever_order_they_came() -> None:
    nodes = Nodes(Cache([make_node("n")]).snapshot())
    for names in ("xyz", "zyx"):
        volumes = [volume(name) for name in names]
        (match,) = match_volumes([claim("c")], by_class(volumes), nodes)
        assert match.volumes[match.choice[0]].name == "x"
