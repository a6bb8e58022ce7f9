"""Where new volumes can be made: what a storage class allows, and what its driver has room for."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from moorage.api.persistent_volumes import STORAGE, claim_class
from moorage.api.selectors import NodeTerm, Operator, SelectorError, label_selector, requirement
from moorage.api.storage import CSIDriver, CSIStorageCapacity, PersistentVolumeClaim, StorageClass
from moorage.cluster.columns import COLUMN_MAX
from moorage.framework.interface.nodes import Nodes

NO_PROVISIONER = "kubernetes.io/no-provisioner"
"""Provisioner name of classes whose volumes are created manually."""


@dataclass(frozen=True, slots=True, eq=False)
class Provisioning:
    """Whether and where a volume can be made for a claim. Arrays have shape (nodes,).

    allowed: where the storage class allows it.
    roomy: where its driver has room for it, as far as the driver reports it.
    capacity: the bytes left where the volume would be made; None if the driver does not report it.
    """

    claim: PersistentVolumeClaim
    allowed: NDArray[np.bool_]
    roomy: NDArray[np.bool_]
    capacity: NDArray[np.int64] | None = None


def provisioning(
    claim: PersistentVolumeClaim, nodes: Nodes, capacities: Callable[[str], Collection[CSIStorageCapacity]]
) -> Provisioning:
    """Where a volume for a claim can be made; `capacities`: what drivers report of a storage class."""
    storage_class = nodes.objects.of(StorageClass).get("", claim_class(claim))
    all_nodes = np.ones(len(nodes), bool)
    if storage_class is None or storage_class.provisioner in ("", NO_PROVISIONER):
        return Provisioning(claim, ~all_nodes, all_nodes)
    allowed = _allowed(storage_class, nodes)
    size = claim.spec.resources.requests.get(STORAGE)
    driver = nodes.objects.of(CSIDriver).get("", storage_class.provisioner)
    if size is None or driver is None or not driver.spec.storage_capacity:
        return Provisioning(claim, allowed, all_nodes)
    roomy = np.zeros(len(nodes), bool)
    left = np.zeros(len(nodes), np.int64)
    reported = sorted(capacities(storage_class.name), key=lambda each: (each.namespace, each.name))
    for capacity in reported:
        largest = capacity.capacity if capacity.maximum_volume_size is None else capacity.maximum_volume_size
        if largest is None or largest.value < size.value:
            continue
        here = _reported_for(capacity, nodes) & ~roomy
        left[here] = 0 if capacity.capacity is None else min(capacity.capacity.value, COLUMN_MAX)
        roomy |= here
    return Provisioning(claim, allowed, roomy, left)


def _allowed(storage_class: StorageClass, nodes: Nodes) -> NDArray[np.bool_]:
    """Where a class' topologies allow volumes; a class without any allows them everywhere."""
    if not storage_class.allowed_topologies:
        return np.ones(len(nodes), bool)
    allowed = np.zeros(len(nodes), bool)
    for term in storage_class.allowed_topologies:
        try:
            wanted = tuple(requirement(e.key, Operator.IN, e.values) for e in term.match_label_expressions)
        except SelectorError:
            continue
        if wanted:
            allowed |= nodes.matching_term(NodeTerm(wanted, ()))
    return allowed


def _reported_for(capacity: CSIStorageCapacity, nodes: Nodes) -> NDArray[np.bool_]:
    """The nodes a report applies to; one without a topology, or with a malformed one, applies to none."""
    try:
        selector = label_selector(capacity.node_topology)
    except SelectorError:
        return np.zeros(len(nodes), bool)
    if selector.requirements is None:
        return np.zeros(len(nodes), bool)
    return nodes.matching_term(NodeTerm(selector.requirements, ()))
