"""Objects by key, and values by node, follow the changes of a table: they equal what the table gives."""

from __future__ import annotations

from collections.abc import Collection

from hypothesis import given
from hypothesis import strategies as st

from moorage.api.base import Object
from moorage.api.persistent_volumes import volume_class
from moorage.api.storage import CSINode, PersistentVolume
from moorage.cluster.cache import Cache
from moorage.cluster.grouped_objects import GroupedObjects
from moorage.cluster.object_tables import ObjectTable
from moorage.framework.interface.nodes import Nodes
from moorage.plugins.volumes.node_columns import NodeColumns
from tests.builders import make_node
from tests.plugins.volumes.volume_objects import DRIVER, csi_node, volume
from tests.strategies import one_of

NAMES = ("a", "b", "c")
VOLUMES = [volume(name, storage_class=each) for name in NAMES for each in ("fast", "slow")]
CHANGES = st.lists(st.tuples(st.booleans(), one_of(*VOLUMES), st.booleans()), max_size=12)


@given(CHANGES)
def test_objects_by_key(changes: list[tuple[bool, PersistentVolume, bool]]) -> None:
    table: ObjectTable[PersistentVolume] = ObjectTable()
    grouped = GroupedObjects(volume_class)
    for is_put, item, is_read in changes:
        if is_put:
            table.put(item)
        else:
            table.remove("", item.name)
        if is_read:
            for name in ("fast", "slow"):
                expected = {each.name for each in table if volume_class(each) == name}
                assert {each.name for each in grouped.members(table, name)} == expected


OBJECTS: tuple[Object, ...] = (
    *(make_node(name) for name in NAMES),
    *(csi_node(name, {DRIVER: 2}) for name in NAMES),
    *(csi_node(name, {DRIVER: 3, "other": 1}) for name in NAMES),
    *(csi_node(name) for name in NAMES),
)


def drivers(csi_nodes: Collection[CSINode]) -> dict[str, int]:
    """The number of letters in the name of each driver of a node, and how many drivers it has."""
    found = [driver.name for each in csi_nodes for driver in each.spec.drivers]
    return {name: len(name) + len(found) for name in found}


def name_of(item: CSINode) -> str:
    return item.name


@given(st.lists(st.tuples(st.booleans(), one_of(*OBJECTS), st.booleans()), max_size=15))
def test_values_by_node(changes: list[tuple[bool, Object, bool]]) -> None:
    cache, kept = Cache([make_node("z")]), NodeColumns(name_of, drivers)
    for is_put, item, is_read in changes:
        if is_put:
            cache.put(item)
        else:
            cache.remove(item)
        if is_read:
            nodes, fresh = Nodes(cache.snapshot()), NodeColumns(name_of, drivers)
            table = nodes.objects.of(CSINode)
            assert set(kept.subjects(table)) == set(fresh.subjects(table))
            for subject in (DRIVER, "other"):
                expected = fresh.column(table, subject, nodes).tolist()
                assert kept.column(table, subject, nodes).tolist() == expected


def test_an_update_computes_only_the_values_of_changed_nodes() -> None:
    computed: list[str] = []

    def noted(csi_nodes: Collection[CSINode]) -> dict[str, int]:
        computed.extend(each.name for each in csi_nodes)
        return drivers(csi_nodes)

    cache = Cache([*(make_node(name) for name in NAMES), *(csi_node(name, {DRIVER: 1}) for name in NAMES)])
    columns = NodeColumns(name_of, noted)
    for item in (csi_node("b", {"other": 1}), csi_node("c")):
        nodes = Nodes(cache.snapshot())
        columns.column(nodes.objects.of(CSINode), DRIVER, nodes)
        computed.clear()
        cache.put(item)
    nodes = Nodes(cache.snapshot())
    columns.column(nodes.objects.of(CSINode), DRIVER, nodes)
    assert computed == ["c"]
