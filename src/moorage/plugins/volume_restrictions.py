"""VolumeRestrictions: disks that pods cannot share on a node, and claims that one pod may use at a time."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from moorage.api.pod import Pod
from moorage.api.storage import ISCSI, RBD, AWSElasticBlockStore, GCEPersistentDisk, PersistentVolumeClaim
from moorage.client import kinds
from moorage.client.kinds import Kind
from moorage.cluster.object_tables import Objects
from moorage.cluster.pod_table import Disk, PodInfo, disks_of
from moorage.framework.interface.cycle_state import CycleState, StateKey
from moorage.framework.interface.dependencies import NODE_FOR_ANY_POD, DependsOn
from moorage.framework.interface.events import Action, EventIndex, Interest, Resource, on
from moorage.framework.interface.filter_result import ALL, FilterResult, Reason
from moorage.framework.interface.nodes import Nodes
from moorage.framework.interface.status import SKIP, Status, unresolvable
from moorage.plugins.hint_helpers import USES_CLAIM, uses_claim
from moorage.plugins.volumes.claim_users import ClaimUsers
from moorage.plugins.volumes.persistent_volume_claims import (
    find_claims,
    is_without_storage,
    not_found,
    reject_all_nodes,
)

NO_DISK = "node(s) had no available disk"
CLAIM_IN_USE = (
    "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode "
    "already in-use by another pod"
)

READ_WRITE_ONCE_POD = "ReadWriteOncePod"

_REASONS = (Reason((NO_DISK,)), Reason((CLAIM_IN_USE,)))
_RESTRICTED = (GCEPersistentDisk, AWSElasticBlockStore, RBD, ISCSI)


class _RestrictedVolumes(NamedTuple):
    """What a pod cannot share: disks it names itself, and claims (namespace/name) for one pod only."""

    disks: frozenset[Disk]
    claims: tuple[str, ...]


_RESTRICTED_VOLUMES: StateKey[_RestrictedVolumes] = StateKey("VolumeRestrictions/filter")


def conflict(wanted: Disk, used: Disk) -> bool:
    """Whether two pods cannot use these disks on one node; most can be shared for reading."""
    match wanted, used:
        case AWSElasticBlockStore(), AWSElasticBlockStore():
            return wanted.volume_id == used.volume_id
        case GCEPersistentDisk(), GCEPersistentDisk():
            same = wanted.pd_name == used.pd_name
        case ISCSI(), ISCSI():
            same = wanted.iqn == used.iqn
        case RBD(), RBD():
            same = (wanted.pool, wanted.image) == (used.pool, used.image)
            same = same and not set(wanted.monitors).isdisjoint(used.monitors)
        case _:
            return False
    return same and not (wanted.read_only and used.read_only)


class VolumeRestrictions:
    """Evaluates each distinct set of disks in use once, and finds the users of a claim on all nodes."""

    name = "VolumeRestrictions"
    watched_kinds: tuple[Kind, ...] = (kinds.PERSISTENT_VOLUME_CLAIM,)

    def __init__(self) -> None:
        self._claim_users = ClaimUsers()

    def events(self) -> tuple[Interest, ...]:
        """A disk or claim becomes free, a node is added where the disk is, or the claim is created."""
        return (
            on(
                Resource.POD,
                Action.DELETE,
                _frees_volume,
                per_equivalence_class=True,
                index=EventIndex(_claims_wanted, _claims_freed),
            ),
            on(Resource.NODE, Action.ADD),
            on(
                Resource.PERSISTENT_VOLUME_CLAIM,
                Action.ADD,
                _is_its_claim,
                per_equivalence_class=True,
                index=USES_CLAIM,
            ),
        )

    def depends_on(self, pod: Pod, objects: Objects) -> DependsOn | None:
        """Does nothing for pods without storage."""
        return NODE_FOR_ANY_POD if is_without_storage(pod) else None

    def pre_filter(self, cycle: CycleState, pod: Pod, nodes: Nodes) -> Status | None:
        """Find disks and claims that cannot be shared; the claims must exist."""
        wanted = _wanted(cycle, pod, nodes)
        if isinstance(wanted, Status):
            return wanted
        if not wanted.disks and not self._is_used(wanted.claims, nodes):
            return SKIP
        cycle.write(_RESTRICTED_VOLUMES, wanted)
        return None

    def _is_used(self, claims: tuple[str, ...], nodes: Nodes) -> bool:
        return bool(claims) and self._claim_users.has_any(claims, nodes.snapshot)

    def filter(self, cycle: CycleState, pod: Pod, nodes: Nodes) -> FilterResult:
        """Reject nodes with a disk in use, and all nodes while a claim for one pod has a user.

        A node's own users of the claim are what preemption could remove there; users on other nodes stay.
        """
        wanted = cycle.read(_RESTRICTED_VOLUMES) or _wanted(cycle, pod, nodes)
        if isinstance(wanted, Status):
            return reject_all_nodes(self.name, nodes, wanted)
        if not wanted.disks and not wanted.claims:
            return ALL
        codes = np.zeros(len(nodes), np.int8)
        all_nodes = _users(nodes.all, wanted.claims)
        for users in all_nodes.values():
            codes[np.count_nonzero(users) > nodes.pick(users)] = 2
        for users in _users(nodes, wanted.claims).values():
            codes[users] = 2
        if wanted.disks:
            codes[nodes.disks.map_values(lambda used: _any_conflict(wanted.disks, used))] = 1
        return FilterResult(codes, _REASONS)


def _wanted(cycle: CycleState, pod: Pod, nodes: Nodes) -> _RestrictedVolumes | Status:
    exclusive: dict[str, None] = {}
    for name, ephemeral, claim, _ in find_claims(cycle, pod, nodes.objects):
        if ephemeral:
            continue
        if claim is None:
            return unresolvable(not_found("persistentvolumeclaim", name))
        if READ_WRITE_ONCE_POD in claim.spec.access_modes:
            exclusive[f"{pod.namespace}/{name}"] = None
    disks = disks_of(pod)
    if disks:
        disks = frozenset(disk for disk in disks if isinstance(disk, _RESTRICTED))
    return _RestrictedVolumes(disks, tuple(exclusive))


def _users(nodes: Nodes, claims: Iterable[str]) -> dict[str, NDArray[np.bool_]]:
    """On which nodes pods use claims, for those that are used anywhere. Shape (nodes,)."""
    held, wanted = nodes.claims, frozenset(claims)
    codes: dict[str, list[int]] = {}
    for code, used in held.vocabulary.items() if wanted else ():
        for claim in wanted & used:
            codes.setdefault(claim, []).append(code)
    return {claim: np.isin(held.codes, using) for claim, using in codes.items()}


def _any_conflict(wanted: frozenset[Disk], used: frozenset[Disk]) -> bool:
    return any(conflict(disk, other) for disk in wanted for other in used)


def _frees_volume(pod: Pod, old: Pod, new: None) -> bool:
    wanted, freed = PodInfo(pod), PodInfo(old)
    return _any_conflict(wanted.disks, freed.disks) or not wanted.claims.isdisjoint(freed.claims)


def _claims_wanted(pod: Pod) -> frozenset[str] | None:
    """The claims that can be freed for a pod; None where it has disks, which are compared one by one."""
    wanted = PodInfo(pod)
    return None if wanted.disks else wanted.claims


def _claims_freed(old: Pod, new: None) -> frozenset[str]:
    return PodInfo(old).claims


def _is_its_claim(pod: Pod, old: None, new: PersistentVolumeClaim) -> bool:
    return uses_claim(pod, new, ephemeral=False)
