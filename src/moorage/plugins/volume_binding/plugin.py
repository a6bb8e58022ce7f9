"""VolumeBinding: a pod fits where its volumes are; missing volumes are bound or provisioned.

pre_filter   which claims are bound, which wait for the pod, and which should have been bound already
filter       planning: the volumes available on each node
score        scoring: how full the storage would be, if the configuration enables that
reserve      reservation: the choice for the pod's node, assumed
pre_bind     the same, written, and waited for
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from moorage.api.persistent_volumes import is_bound
from moorage.api.pod import Pod
from moorage.api.storage import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
)
from moorage.client import kinds
from moorage.client.kinds import Kind
from moorage.client.permissions import Permission
from moorage.cluster.object_tables import Objects
from moorage.config.args import VolumeBindingArgs
from moorage.framework.interface.cycle_state import CycleState, StateKey
from moorage.framework.interface.dependencies import NOT_CONCERNED, DependsOn
from moorage.framework.interface.events import Action, Interest, Resource, on
from moorage.framework.interface.extension_points import (
    IN_PARALLEL,
    SKIP_IN_PARALLEL,
    PreFlight,
    Scores,
    uniform_scores,
)
from moorage.framework.interface.filter_result import ALL, FilterResult, Reason
from moorage.framework.interface.handle import Handle
from moorage.framework.interface.nodes import Nodes
from moorage.framework.interface.status import SKIP, Code, PluginError, Status, unresolvable
from moorage.plugins.hint_helpers import USES_CLAIM, uses_claim
from moorage.plugins.utilization_shape import on_shape
from moorage.plugins.volume_binding.planning import MIGRATED_PLUGINS, VolumePlanner, reached_everywhere
from moorage.plugins.volume_binding.reservation import Reservation
from moorage.plugins.volume_binding.scoring import score_storage
from moorage.plugins.volumes.persistent_volume_claims import (
    VOLUME_KINDS,
    VolumeError,
    find_claims,
    foreign_claim,
    is_without_storage,
    not_found,
    reject_all_nodes,
    waits_for_consumer,
)

NODE_AFFINITY_CONFLICT = "node(s) didn't match PersistentVolume's node affinity"
NOTHING_TO_BIND = "node(s) didn't find available persistent volumes to bind"
NO_SPACE = "node(s) did not have enough free storage"
VOLUME_MISSING = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"
UNBOUND_IMMEDIATE = "pod has unbound immediate PersistentVolumeClaims"
TIMED_OUT = "context deadline exceeded"

LOST = "Lost"

_PROBLEMS = (NODE_AFFINITY_CONFLICT, NOTHING_TO_BIND, NO_SPACE, VOLUME_MISSING)
_REASONS = tuple(
    Reason(tuple(text for bit, text in enumerate(_PROBLEMS) if code >> bit & 1), Code.UNRESOLVABLE)
    for code in range(1, 1 << len(_PROBLEMS))
)
"""Every combination of problems a node can have; a code has a bit for each."""


@dataclass(frozen=True, slots=True)
class PodClaims:
    """A pod's claims, those that are bound and those that wait for the pod's node to get a volume.

    volumes: the volumes of bound claims, before the first that does not exist.
    """

    volumes: tuple[PersistentVolume, ...]
    is_volume_missing: bool
    waiting: tuple[PersistentVolumeClaim, ...]
    all_nodes: Nodes
    """All nodes of the cycle: the chosen one is among them."""


_CLAIMS: StateKey[PodClaims] = StateKey("VolumeBinding/claims")
_RESERVED: StateKey[Reservation] = StateKey("VolumeBinding/reserved")


class VolumeBinding:
    """Finds volumes for all nodes at once, then binds those of the chosen node."""

    name = "VolumeBinding"
    watched_kinds: tuple[Kind, ...] = (
        *VOLUME_KINDS,
        kinds.CSI_NODE,
        kinds.CSI_DRIVER,
        kinds.CSI_STORAGE_CAPACITY,
    )
    write_permissions: Mapping[str, tuple[Permission, ...]] = {
        "pre_bind": (
            *Permission.on(kinds.PERSISTENT_VOLUME, "patch"),
            *Permission.on(kinds.PERSISTENT_VOLUME_CLAIM, "patch"),
        )
    }

    def __init__(self, args: VolumeBindingArgs, handle: Handle) -> None:
        self._handle = handle
        self._timeout_seconds = args.bind_timeout_seconds
        self._by_percent = (
            np.array([on_shape(args.shape, percent) for percent in range(101)], np.int64)
            if args.shape
            else None
        )
        self._planner = VolumePlanner()

    def events(self) -> tuple[Interest, ...]:
        """Claims, volumes and classes added or updated, and changes of the storage available to nodes."""
        either = Action.ADD | Action.UPDATE
        return (
            on(Resource.STORAGE_CLASS, either, _allows_other_places, per_equivalence_class=True),
            on(
                Resource.PERSISTENT_VOLUME_CLAIM,
                either,
                _is_its_claim,
                per_equivalence_class=True,
                index=USES_CLAIM,
            ),
            on(Resource.PERSISTENT_VOLUME, either),
            on(Resource.NODE, Action.ADD | Action.UPDATE_NODE_LABEL),
            on(Resource.CSI_NODE, either, _migrates_others, per_equivalence_class=True),
            on(Resource.CSI_DRIVER, Action.UPDATE, _stops_counting, per_equivalence_class=True),
            on(Resource.CSI_STORAGE_CAPACITY, either, _offers_more, per_equivalence_class=True),
        )

    def depends_on(self, pod: Pod, objects: Objects) -> DependsOn | None:
        """Does nothing for pods without storage."""
        return NOT_CONCERNED if is_without_storage(pod) else None

    def pre_filter(self, cycle: CycleState, pod: Pod, nodes: Nodes) -> Status | None:
        """Check the pod's claims; one that is unusable, or should be bound and is not, ends the attempt.

        Where all claims are bound and every node reaches their volumes, there is nothing to filter.
        """
        if not find_claims(cycle, pod, nodes.objects):
            return SKIP
        claims = _sort_claims(cycle, pod, nodes)
        if isinstance(claims, Status):
            return claims
        cycle.write(_CLAIMS, claims)
        if claims.waiting or claims.is_volume_missing or not reached_everywhere(claims.volumes):
            return None
        return SKIP

    def filter(self, cycle: CycleState, pod: Pod, nodes: Nodes) -> FilterResult:
        """Reject nodes that cannot reach a bound volume, or have none for an unbound claim."""
        claims = cycle.read(_CLAIMS) or _sort_claims(cycle, pod, nodes)
        if isinstance(claims, Status):
            return reject_all_nodes(self.name, nodes, claims)
        cycle.write(_CLAIMS, claims)
        if not claims.volumes and not claims.is_volume_missing and not claims.waiting:
            return ALL
        try:
            return FilterResult(self._problems(claims, nodes), _REASONS)
        except VolumeError as error:
            self._handle.metrics.volumes_failed("predicate")
            raise PluginError(self.name, "filter", str(error)) from error

    def _problems(self, claims: PodClaims, nodes: Nodes) -> NDArray[np.int8]:
        """The problems of each node, as a code. Shape (nodes,).

        Of bound claims, the first that has a problem on a node decides.
        """
        reachable = self._planner.reachable(claims.volumes, nodes)
        codes: NDArray[np.int8] = (~reachable).view(np.int8)
        if claims.is_volume_missing:
            codes[reachable] = 1 << _PROBLEMS.index(VOLUME_MISSING)
        if claims.waiting:
            plan = self._planner.plan(claims.waiting, nodes)
            codes += plan.unbindable.view(np.int8) << _PROBLEMS.index(NOTHING_TO_BIND)
            codes += plan.short_of_space.view(np.int8) << _PROBLEMS.index(NO_SPACE)
        return codes

    def pre_score(self, cycle: CycleState, pod: Pod, nodes: Nodes) -> Status | None:
        """Skip unless the configuration enables scoring."""
        return SKIP if self._by_percent is None else None

    def score(self, cycle: CycleState, pod: Pod, nodes: Nodes) -> Scores:
        """How well the storage that the pod would use is filled."""
        claims = cycle.read(_CLAIMS)
        if self._by_percent is None or claims is None or not claims.waiting:
            return uniform_scores(0, len(nodes))
        return score_storage(self._planner.plan(claims.waiting, nodes), self._by_percent, len(nodes))

    def reserve(self, cycle: CycleState, pod: Pod, node_name: str) -> Status | None:
        """Assume the volumes and claims of the chosen node."""
        claims = cycle.read(_CLAIMS)
        if claims is None or not claims.waiting:
            return None
        nodes = claims.all_nodes.named((node_name,))
        choice = self._planner.plan(claims.waiting, nodes).at(0) if len(nodes) else None
        if choice is None:
            return _error(f'no pod volume found for node "{node_name}"')
        reservation = Reservation(next(iter(nodes)).node)
        cycle.write(_RESERVED, reservation)
        try:
            reservation.assume(choice, self._handle.objects)
        except VolumeError as error:
            self._handle.metrics.volumes_failed("assume")
            reservation.revert(self._handle.objects)
            return _error(str(error))
        return None

    def unreserve(self, cycle: CycleState, pod: Pod, node_name: str) -> None:
        """Revert what `reserve` assumed, if anything."""
        reservation = cycle.read(_RESERVED)
        if reservation is not None:
            reservation.revert(self._handle.objects)

    def pre_bind_pre_flight(self, cycle: CycleState, pod: Pod, node_name: str) -> PreFlight:
        """Nothing to do where every claim is bound already."""
        return SKIP_IN_PARALLEL if cycle.read(_RESERVED) is None else IN_PARALLEL

    async def pre_bind(self, cycle: CycleState, pod: Pod, node_name: str) -> Status | None:
        """Write what was assumed, then wait until every claim is bound."""
        reservation = cycle.read(_RESERVED)
        if reservation is None:
            return None
        objects, bound = self._handle.objects, False
        try:
            await reservation.write(self._handle.effects)
            bound = await self._handle.wait_until(
                lambda: reservation.complete(objects), self._timeout_seconds
            )
        except VolumeError as error:
            return _error(f"binding volumes: {error}")
        finally:
            if not bound:
                self._handle.metrics.volumes_failed("bind")
        return None if bound else _error(f"binding volumes: {TIMED_OUT}")


def _error(reason: str) -> Status:
    return Status(Code.ERROR, (reason,))


def _sort_claims(cycle: CycleState, pod: Pod, nodes: Nodes) -> PodClaims | Status:
    """A pod's claims, or why it is rejected on all nodes.

    A claim that names its volume without being bound to it is not bound by the scheduler: like one that
    does not wait for the pod's node, it should have been bound already.
    """
    volumes: list[PersistentVolume] = []
    waiting: list[PersistentVolumeClaim] = []
    is_missing, all_ready = False, True
    for name, ephemeral, claim, volume in find_claims(cycle, pod, nodes.objects):
        if claim is None:
            return unresolvable(_missing(name, ephemeral=ephemeral))
        if problem := _problem(pod, claim, ephemeral=ephemeral):
            return unresolvable(problem)
        if is_bound(claim):
            is_missing = is_missing or volume is None
            if volume is not None and not is_missing:
                volumes.append(volume)
        elif not claim.spec.volume_name and waits_for_consumer(claim, nodes.objects):
            waiting.append(claim)
        else:
            all_ready = False
    if not all_ready:
        return unresolvable(UNBOUND_IMMEDIATE)
    return PodClaims(tuple(volumes), is_missing, tuple(waiting), nodes.all)


def _missing(name: str, *, ephemeral: bool) -> str:
    if ephemeral:
        return f'waiting for ephemeral volume controller to create the persistentvolumeclaim "{name}"'
    return not_found("persistentvolumeclaim", name)


def _problem(pod: Pod, claim: PersistentVolumeClaim, *, ephemeral: bool) -> str | None:
    """What makes a claim unusable."""
    if claim.status.phase == LOST:
        volume_name = claim.spec.volume_name
        return f'persistentvolumeclaim "{claim.name}" bound to non-existent persistentvolume "{volume_name}"'
    if claim.metadata.deletion_timestamp is not None:
        return f'persistentvolumeclaim "{claim.name}" is being deleted'
    return foreign_claim(pod, claim) if ephemeral else None


def _allows_other_places(pod: Pod, old: StorageClass | None, new: StorageClass) -> bool:
    return old is None or old.allowed_topologies != new.allowed_topologies


def _is_its_claim(pod: Pod, old: PersistentVolumeClaim | None, new: PersistentVolumeClaim) -> bool:
    return uses_claim(pod, new)


def _migrates_others(pod: Pod, old: CSINode | None, new: CSINode) -> bool:
    if old is None:
        return True
    return old.metadata.annotations.get(MIGRATED_PLUGINS) != new.metadata.annotations.get(MIGRATED_PLUGINS)


def _stops_counting(pod: Pod, old: CSIDriver, new: CSIDriver) -> bool:
    """Whether a driver's storage capacity is not checked any more."""
    return old.spec.storage_capacity and not new.spec.storage_capacity


def _offers_more(pod: Pod, old: CSIStorageCapacity | None, new: CSIStorageCapacity) -> bool:
    return old is None or _largest_volume(new) > _largest_volume(old)


def _largest_volume(storage: CSIStorageCapacity) -> int:
    """In bytes; -1 if not specified."""
    limit = storage.capacity if storage.maximum_volume_size is None else storage.maximum_volume_size
    return -1 if limit is None else limit.value
