"""TopologyPlacementGenerator: all members of a group on nodes with one value of a label."""

from __future__ import annotations

import numpy as np

from moorage.api.pod import Pod
from moorage.client import kinds
from moorage.client.kinds import Kind
from moorage.cluster.columns import ABSENT
from moorage.framework.interface.cycle_state import CycleState
from moorage.framework.interface.handle import Handle
from moorage.framework.interface.nodes import Nodes
from moorage.framework.interface.pod_groups import Placement, PodGroupInfo
from moorage.framework.interface.status import Code, Status


class TopologyPlacementGenerator:
    """One placement for each value of the group's topology key."""

    name = "TopologyPlacementGenerator"
    watched_kinds: tuple[Kind, ...] = (kinds.POD_GROUP, kinds.COMPOSITE_POD_GROUP)

    def __init__(self, handle: Handle) -> None:
        self._groups = handle.pod_groups
        self.watched_kinds = self._groups.watched_kinds

    def placement_generate(
        self, cycle: CycleState, group: PodGroupInfo, nodes: Nodes
    ) -> list[Placement] | Status:
        """The nodes of each domain; where members run already, only those of their domain."""
        key = group.group.topology_key
        if not key:
            return [Placement("", nodes)]
        try:
            domain = _domain_of(self._groups.scheduled(group.key), key, nodes)
        except LookupError as error:
            reason = f"cannot determine domain for already scheduled pods: {error.args[0]}"
            return Status(Code.ERROR, (reason,))
        if nodes.rows is None and nodes.hypothetical_pods is None:
            placements = nodes.snapshot.derived(_LatestPlacements).of(key, nodes)
        else:
            placements = _by_domain(key, nodes)
        return [each for each in placements if domain in (None, each.name)]


class _LatestPlacements:
    """The placements of the topology key that was asked for last, in the whole cluster."""

    __slots__ = ("_key", "_placements", "_position")

    def __init__(self) -> None:
        self._key, self._position = "", -1
        self._placements: list[Placement] = []

    def of(self, key: str, nodes: Nodes) -> list[Placement]:
        """The nodes of each domain; computed again when nodes have changed."""
        position = nodes.snapshot.node_changes.position
        if (key, position) != (self._key, self._position):
            self._key, self._position = key, position
            self._placements = _by_domain(key, nodes)
        return self._placements


def _by_domain(key: str, nodes: Nodes) -> list[Placement]:
    """The nodes of each domain."""
    label = nodes.label(key)
    order = np.argsort(label.codes, kind="stable")
    codes, starts = np.unique(label.codes[order], return_index=True)
    names = label.vocabulary.values
    return [
        Placement(str(names[code]), nodes.at(np.sort(rows)))
        for code, rows in zip(codes.tolist(), np.split(order, starts[1:]), strict=True)
        if code != ABSENT
    ]


def _domain_of(pods: list[Pod], key: str, nodes: Nodes) -> str | None:
    """The domain in which members run; None if none runs. LookupError if there is no such domain."""
    snapshot, found = nodes.snapshot, None
    for pod in pods:
        row = snapshot.row_of.get(pod.spec.node_name)
        if row is None:
            raise LookupError(
                f'getting node for pod {pod.key}: nodeinfo not found for node name "{pod.spec.node_name}"'
            )
        domain = snapshot.nodes[row].labels.get(key)
        if domain is None:
            raise LookupError(f"no topology domain found for pod {pod.key}")
        if found is not None and found != domain:
            raise LookupError(f"more than 1 domain found for pod group: {found}, {domain}")
        found = domain
    return found
