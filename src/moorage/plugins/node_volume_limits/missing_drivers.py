"""Nodes without a CSI driver whose pods must not be scheduled there (`preventPodSchedulingIfMissing`)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from moorage.api.storage import CSIDriver, CSINode
from moorage.cluster.object_tables import Objects
from moorage.framework.interface.nodes import Nodes
from moorage.plugins.node_volume_limits.csi_volumes import CSIVolumeId
from moorage.plugins.volumes.node_columns import NodeColumns

NOT_INSTALLED = "{driver} CSI driver is not installed on the node"


def _installed(csi_nodes: Collection[CSINode]) -> dict[str, int]:
    """The drivers of a node, each with 1."""
    return {driver.name: 1 for csi_node in csi_nodes for driver in csi_node.spec.drivers}


class MissingDrivers:
    """The drivers that nodes have, kept from pod to pod."""

    def __init__(self) -> None:
        self._installed: NodeColumns[CSINode] = NodeColumns(lambda csi_node: csi_node.name, _installed)

    def of(self, volumes: Iterable[CSIVolumeId], nodes: Nodes) -> Iterator[tuple[str, NDArray[np.bool_]]]:
        """The drivers that must be on a node and are missing on some, with those nodes. Shape (nodes,)."""
        for driver in sorted({driver for driver, _ in volumes}):
            if _must_be_installed(driver, nodes.objects):
                missing = self._installed.column(nodes.objects.of(CSINode), driver, nodes) == 0
                if missing.any():
                    yield driver, missing


def _must_be_installed(driver: str, objects: Objects) -> bool:
    known = objects.of(CSIDriver).get("", driver)
    return known is not None and known.spec.prevent_pod_scheduling_if_missing
