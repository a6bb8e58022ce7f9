"""TopologyPlacementGenerator: one placement for each value of a label, or the one where members run."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.api.base import Object
from moorage.api.decode import convert
from moorage.api.pod_groups import PodGroup, key_of
from moorage.cluster.cache import Cache
from moorage.framework.interface.cycle_state import CycleState
from moorage.framework.interface.handle import Handle
from moorage.framework.interface.nodes import Nodes
from moorage.framework.interface.pod_groups import PodGroupInfo
from moorage.framework.interface.status import Code, Status
from moorage.plugins.topology_placement_generator import TopologyPlacementGenerator
from tests.builders import ZONE, make_node, make_pod

NODES = {"a1": "a", "b1": "b", "a2": "a", "bare": ""}
"""Nodes and their zones."""
UNKNOWN_DOMAIN = "cannot determine domain for already scheduled pods: "


def member(name: str, node: str, of: str = "g") -> Object:
    return make_pod(name, uid=name, scheduling_group={"podGroupName": of}, node_name=node)


def placements(
    key: str, members: list[Object], *, zones: dict[str, str] = NODES, within: list[str]
) -> dict[str, list[str]] | str:
    """The nodes of each placement, or the error."""
    topology = [{"key": key}] if key else []
    spec = {"schedulingPolicy": {"basic": {}}, "schedulingConstraints": {"topology": topology}}
    group = convert({"metadata": {"name": "g", "namespace": "default"}, "spec": spec}, PodGroup)
    nodes = [make_node(name, labels={ZONE: zone} if zone else {}) for name, zone in zones.items()]
    cache = Cache([*nodes, group, *members])
    snapshot = cache.snapshot()
    rows = np.array([snapshot.row_of[name] for name in within or zones], np.intp)
    plugin = TopologyPlacementGenerator(Handle(pod_groups=cache.pod_groups))
    found = plugin.placement_generate(CycleState(), PodGroupInfo(key_of(group), group), Nodes(snapshot, rows))
    if isinstance(found, Status):
        assert found.code is Code.ERROR
        return found.message
    assert len({each.name for each in found}) == len(found)
    return {each.name: sorted(each.nodes.names) for each in found}


ALL = {"": ["a1", "a2", "b1", "bare"]}
RULES: dict[str, tuple[str, list[Object], list[str], dict[str, list[str]] | str]] = {
    "without a key all nodes": ("", [], [], ALL),
    "without a key members may be anywhere": ("", [member("x", "a1"), member("y", "b1")], [], ALL),
    "a placement for each value": (ZONE, [], [], {"a": ["a1", "a2"], "b": ["b1"]}),
    "no node has the label": ("rack", [], [], {}),
    "among the nodes of the parent": (ZONE, [], ["a2", "b1", "bare"], {"a": ["a2"], "b": ["b1"]}),
    "members run in a value": (ZONE, [member("x", "a1"), member("y", "a2")], [], {"a": ["a1", "a2"]}),
    "members run outside of the parent's nodes": (ZONE, [member("x", "a1")], ["b1", "bare"], {}),
    "members of other groups do not count": (
        ZONE,
        [member("x", "b1", of="other"), member("y", "a2")],
        [],
        {"a": ["a1", "a2"]},
    ),
    "members run in two values": (
        ZONE,
        [member("x", "a1"), member("y", "b1")],
        [],
        f"{UNKNOWN_DOMAIN}more than 1 domain found for pod group: a, b",
    ),
    "a member runs on a node without the label": (
        ZONE,
        [member("x", "bare")],
        [],
        f"{UNKNOWN_DOMAIN}no topology domain found for pod default/x",
    ),
}


@pytest.mark.parametrize(("key", "members", "within", "expected"), RULES.values(), ids=RULES.keys())
def test_placements(
    key: str, members: list[Object], within: list[str], expected: dict[str, list[str]] | str
) -> None:
    assert placements(key, members, within=within) == expected


@given(zones=st.lists(st.sampled_from(["", "a", "b", "c"]), min_size=1, max_size=8), data=st.data())
def test_placements_are_the_nodes_by_label(zones: list[str], data: st.DataObject) -> None:
    by_node = {f"n{number}": zone for number, zone in enumerate(zones)}
    within = data.draw(st.lists(st.sampled_from(sorted(by_node)), min_size=1, unique=True), label="within")
    runs_on = data.draw(st.sampled_from([None, *(name for name, zone in by_node.items() if zone)]))
    members = [] if runs_on is None else [member("x", runs_on)]
    expected: dict[str, list[str]] = {}
    for name in sorted(within):
        zone = by_node[name]
        if zone and (runs_on is None or by_node[runs_on] == zone):
            expected.setdefault(zone, []).append(name)
    assert placements(ZONE, members, zones=by_node, within=within) == expected


def test_placements_follow_the_nodes_and_the_key() -> None:
    cache = Cache([make_node("a", labels={ZONE: "x", "rack": "r"}), make_node("b", labels={ZONE: "x"})])
    plugin = TopologyPlacementGenerator(Handle(pod_groups=cache.pod_groups))

    def domains(key: str) -> dict[str, list[str]]:
        spec = {"schedulingPolicy": {"basic": {}}, "schedulingConstraints": {"topology": [{"key": key}]}}
        group = convert({"metadata": {"name": "g", "namespace": "default"}, "spec": spec}, PodGroup)
        info = PodGroupInfo(key_of(group), group)
        found = plugin.placement_generate(CycleState(), info, Nodes(cache.snapshot()))
        assert not isinstance(found, Status)
        return {each.name: each.nodes.names for each in found}

    assert domains(ZONE) == domains(ZONE) == {"x": ["a", "b"]}
    assert domains("rack") == {"r": ["a"]}
    cache.put_node(make_node("b", labels={ZONE: "y"}))
    assert domains(ZONE) == {"x": ["a"], "y": ["b"]}
    cache.put_node(make_node("c", labels={ZONE: "y"}))
    assert domains(ZONE) == {"x": ["a"], "y": ["b", "c"]}
    cache.remove_node("a")
    assert {name: sorted(nodes) for name, nodes in domains(ZONE).items()} == {"y": ["b", "c"]}
