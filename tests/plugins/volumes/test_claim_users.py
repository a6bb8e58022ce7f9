"""Whether a claim is in use follows pods and nodes as they come and go."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.cluster.cache import Cache
from moorage.cluster.columns import CodeColumn
from moorage.framework.interface.cycle_state import CycleState
from moorage.framework.interface.nodes import Nodes
from moorage.framework.interface.status import SKIP
from moorage.plugins.volume_restrictions import VolumeRestrictions
from moorage.plugins.volumes.claim_users import ClaimUsers
from tests.builders import make_node
from tests.plugins.volumes.volume_objects import claim, pod_with
from tests.strategies import one_of

NODES, CLAIMS = ("a", "b", "c"), ("x", "y", "z")
PODS = tuple(
    pod_with(*CLAIMS[first : first + 2], name=f"p{first}{node}", uid=f"p{first}{node}", on=node)
    for first in range(3)
    for node in NODES
)


@given(st.lists(st.tuples(st.booleans(), one_of(*PODS, *map(make_node, NODES)), st.booleans()), max_size=20))
def test_users_of_claims(changes: list[tuple[bool, Pod | Node, bool]]) -> None:
    cache, users = Cache([make_node("n")]), ClaimUsers()
    for is_put, item, is_read in changes:
        if is_put:
            cache.put(item)
        else:
            cache.remove(item)
        if is_read:
            snapshot = cache.snapshot()
            used = {key for row in range(len(snapshot)) for key in snapshot.claims[row] or ()}
            for name in CLAIMS:
                assert users.has_any([f"default/{name}"], snapshot) == (f"default/{name}" in used)


def test_a_pod_with_an_exclusive_claim_does_not_read_all_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    nodes = [make_node(f"n{number}") for number in range(20)]
    cache = Cache([*nodes, *PODS, claim("own", accessModes=["ReadWriteOncePod"])])
    plugin, read = VolumeRestrictions(), list[int]()
    plugin.pre_filter(CycleState(), pod_with("own"), Nodes(cache.snapshot()))
    cache.put(pod_with("x", name="new", uid="new", on="n3"))
    snapshot, original = cache.snapshot(), CodeColumn.__getitem__

    def noted(column: CodeColumn[frozenset[str]], row: int) -> frozenset[str] | None:
        read.append(row)
        return original(column, row)

    monkeypatch.setattr(CodeColumn, "__getitem__", noted)
    monkeypatch.setattr(type(snapshot.claims.vocabulary), "items", None)
    assert plugin.pre_filter(CycleState(), pod_with("own"), Nodes(snapshot)) is SKIP
    assert read == [snapshot.row_of["n3"]]
