"""StatefulSets: pods with ordinals, created in ascending order, deleted and updated in descending order."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import NamedTuple

from moorage.api.conditions import is_ready
from moorage.api.manifests import Manifest, labels_of, status_of
from moorage.client.informer import EventType
from moorage.client.kinds import CONTROLLER_REVISION, PERSISTENT_VOLUME_CLAIM, POD, STATEFUL_SET
from moorage.http.errors import RequestError
from moorage_cluster.controllers.adoption import claim, selects_nothing, watch_pods
from moorage_cluster.controllers.cluster import Cluster
from moorage_cluster.controllers.controller import Controller
from moorage_cluster.controllers.pods import (
    is_available,
    is_deleted,
    is_finished,
    is_namespace_terminating,
    next_available_seconds,
    phase_of,
    slow_start,
)
from moorage_cluster.controllers.revisions import History, forget_old, history_of, name_of
from moorage_cluster.controllers.stateful_claims import is_stale, make_claims, own_claims
from moorage_cluster.controllers.stateful_pods import (
    identity_labels,
    is_member,
    new_pod,
    ordinal_of,
    ordinals,
    parent_name,
    revision_name,
)
from moorage_cluster.controllers.statuses import write_status

_HASH_LABEL = "controller.kubernetes.io/hash"


class _Set(NamedTuple):
    """The state of a set during its reconciliation."""

    obj: Manifest
    history: History
    current: Manifest
    now: datetime

    @property
    def in_order(self) -> bool:
        """Whether the pod management policy is ordered."""
        return bool(self.obj["spec"].get("podManagementPolicy", "OrderedReady") == "OrderedReady")

    @property
    def min_ready_seconds(self) -> int:
        """How long a pod must have been ready to be available, in seconds."""
        return int(self.obj["spec"].get("minReadySeconds", 0))

    def is_unavailable(self, pod: Manifest | None) -> bool:
        """Whether a pod is missing, not available or being deleted."""
        return pod is None or is_deleted(pod) or not is_available(pod, self.min_ready_seconds, self.now)


class StatefulSetController(Controller):
    """Keeps the pods and claims of StatefulSets."""

    name = "statefulset-controller"

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster)
        self.watch(STATEFUL_SET)
        watch_pods(self, STATEFUL_SET)
        self.cluster.owned(CONTROLLER_REVISION)
        self.cluster.orphans(CONTROLLER_REVISION)
        self.watch(PERSISTENT_VOLUME_CLAIM, self._claim_changed)

    def _claim_changed(self, type: EventType, claim: Manifest, before: Manifest | None) -> None:
        """A recreated pod waits until its predecessor's claim is deleted."""
        if type == "DELETED":
            for owner in claim["metadata"].get("ownerReferences") or []:
                if owner["kind"] == POD.name and (parent := parent_name(owner["name"])):
                    self.enqueue(claim["metadata"]["namespace"], parent)

    async def reconcile(self, namespace: str, name: str) -> float | None:
        """Advance one set by a step, within its policies, and write its status."""
        obj = self.cluster.informer(STATEFUL_SET).get(namespace, name)
        if obj is None or selects_nothing(obj):
            return None
        await claim(self.cluster, STATEFUL_SET, obj, POD, lambda pod: is_member(obj, pod))
        history = await history_of(self.cluster, STATEFUL_SET, obj, _HASH_LABEL)
        known = status_of(obj).get("currentRevision")
        current = next((each for each in history.revisions if name_of(each) == known), history.update)
        state = _Set(obj, history, current, self.cluster.clock.utc_now())
        refusal: RequestError | None = None
        if not is_deleted(obj):
            try:
                await self._step(state)
            except RequestError as error:
                refusal = error
        pods = self._pods(state)
        await write_status(self.cluster, STATEFUL_SET, obj, _status(state, pods))
        in_use = [name_of(current), name_of(history.update), *map(revision_name, pods)]
        await forget_old(self.cluster, obj, history.revisions, in_use)
        if refusal is not None and not is_namespace_terminating(refusal):
            raise refusal
        return next_available_seconds(pods, state.min_ready_seconds, self.cluster.clock.utc_now())

    def _pods(self, state: _Set) -> list[Manifest]:
        owned = self.cluster.owned(POD).get(state.obj["metadata"]["uid"])
        return sorted((pod for pod in owned if is_member(state.obj, pod)), key=ordinal_of)

    # -- one step

    async def _step(self, state: _Set) -> None:
        pods = self._pods(state)
        wanted = ordinals(state.obj)
        by_ordinal = {ordinal_of(pod): pod for pod in pods}
        condemned = [pod for pod in reversed(pods) if ordinal_of(pod) not in wanted]

        async def keep(index: int) -> bool:
            return await self._keep(state, wanted[index], by_ordinal.get(wanted[index]))

        if await self._for_all(state, len(wanted), keep):
            return
        for pod in condemned:
            await own_claims(self.cluster, state.obj, pod, self.name)
        replicas = [by_ordinal.get(ordinal) for ordinal in wanted]
        first_broken = next(
            (pod for pod in [*replicas, *reversed(condemned)] if state.is_unavailable(pod)), None
        )

        async def take_away(index: int) -> bool:
            return await self._delete_condemned(state, condemned[index], first_broken)

        if not await self._for_all(state, len(condemned), take_away):
            await self._renew(state)

    async def _for_all(self, state: _Set, count: int, do: Callable[[int], Awaitable[bool]]) -> bool:
        """Call a function for each pod, in order or concurrently; returns whether the rest has to wait."""
        if not state.in_order:
            refusal = await slow_start(count, do)
            if refusal is not None:
                raise refusal
            return False
        for index in range(count):
            if await do(index):
                return True
        return False

    async def _keep(self, state: _Set, ordinal: int, pod: Manifest | None) -> bool:
        """Reconcile the pod of an ordinal; returns whether the pods after it have to wait."""
        if pod is None:
            if not is_stale(self.cluster, state.obj, ordinal):
                await self._create(state, ordinal)
            return True
        if is_finished(pod):
            if not is_deleted(pod):
                await self._delete(state, pod)
            return True
        if phase_of(pod) == "Pending":
            await make_claims(self.cluster, state.obj, ordinal, self.name)
            await own_claims(self.cluster, state.obj, pod, self.name)
        if state.in_order and (phase_of(pod) != "Running" or state.is_unavailable(pod)):
            return True
        await self._correct(state, ordinal, pod)
        return False

    async def _correct(self, state: _Set, ordinal: int, pod: Manifest) -> None:
        labels = identity_labels(state.obj, ordinal)
        if not labels.items() <= labels_of(pod).items():
            await self.cluster.patch(POD, pod, {"metadata": {"labels": labels}})
            await self._record_event(state, "Update", pod)
        await own_claims(self.cluster, state.obj, pod, self.name)

    async def _delete_condemned(self, state: _Set, pod: Manifest, first_broken: Manifest | None) -> bool:
        """Delete a surplus pod; returns whether the next one has to wait."""
        if is_deleted(pod):
            return state.in_order
        if state.in_order and state.is_unavailable(pod) and pod is not first_broken:
            return True
        await self._delete(state, pod)
        return True

    async def _renew(self, state: _Set) -> None:
        """Delete the last pod that is not of the newest revision, once those after it are available."""
        strategy = state.obj["spec"].get("updateStrategy") or {}
        if strategy.get("type", "RollingUpdate") == "OnDelete":
            return
        partition = int((strategy.get("rollingUpdate") or {}).get("partition") or 0)
        by_ordinal = {ordinal_of(pod): pod for pod in self._pods(state)}
        wanted = ordinals(state.obj)
        for ordinal in reversed(wanted[partition:]):
            pod = by_ordinal.get(ordinal)
            if (
                pod is not None
                and not is_deleted(pod)
                and revision_name(pod) != name_of(state.history.update)
            ):
                await self._delete(state, pod)
                return
            if state.is_unavailable(pod):
                return

    # -- pods

    async def _create(self, state: _Set, ordinal: int) -> None:
        strategy = state.obj["spec"].get("updateStrategy") or {}
        partition = int((strategy.get("rollingUpdate") or {}).get("partition") or 0)
        is_old = ordinal < ordinals(state.obj).start + partition
        revision = state.current if is_old else state.history.update
        pod = new_pod(state.obj, revision, ordinal)
        try:
            await make_claims(self.cluster, state.obj, ordinal, self.name)
            made = await self.cluster.create(POD, state.obj["metadata"]["namespace"], pod)
        except RequestError as error:
            if not error.already_exists:
                await self._record_event(state, "Create", pod, error)
            raise
        await own_claims(self.cluster, state.obj, made, self.name)
        await self._record_event(state, "Create", pod)

    async def _delete(self, state: _Set, pod: Manifest) -> None:
        try:
            await self.cluster.delete(POD, pod)
        except RequestError as error:
            await self._record_event(state, "Delete", pod, error)
            raise
        await self._record_event(state, "Delete", pod)

    async def _record_event(
        self, state: _Set, verb: str, pod: Manifest, error: RequestError | None = None
    ) -> None:
        subject = f"{verb} Pod {name_of(pod)} in StatefulSet {name_of(state.obj)}"
        if error is None:
            type, reason, message = "Normal", f"Successful{verb}", f"{subject} successful"
        else:
            type, reason, message = "Warning", f"Failed{verb}", f"{subject} failed error: {error}"
        await self.cluster.record_event(state.obj, type, reason, message, self.name)


def _status(state: _Set, pods: list[Manifest]) -> Manifest:
    spec = state.obj["spec"]
    update = name_of(state.history.update)
    revisions = [revision_name(pod) for pod in pods if not is_deleted(pod)]
    ready = [pod for pod in pods if phase_of(pod) == "Running" and is_ready(pod)]
    status: Manifest = {
        "observedGeneration": state.obj["metadata"].get("generation", 0),
        "replicas": len(pods),
        "readyReplicas": len(ready),
        "availableReplicas": sum(is_available(pod, state.min_ready_seconds, state.now) for pod in ready),
        "currentReplicas": revisions.count(name_of(state.current)),
        "updatedReplicas": revisions.count(update),
        "currentRevision": name_of(state.current),
        "updateRevision": update,
        "collisionCount": state.history.collisions,
    }
    is_rolling = (spec.get("updateStrategy") or {}).get("type", "RollingUpdate") == "RollingUpdate"
    counts = (status["updatedReplicas"], status["readyReplicas"], status["replicas"])
    if is_rolling and all(count == spec.get("replicas", 1) for count in counts):
        status |= {"currentReplicas": status["updatedReplicas"], "currentRevision": update}
    return status
