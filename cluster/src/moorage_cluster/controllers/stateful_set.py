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
from moorage_cluster.controllers.adoption import claim, follow_pods, selects_nothing
from moorage_cluster.controllers.cluster import Cluster
from moorage_cluster.controllers.controller import Controller
from moorage_cluster.controllers.pods import (
    is_available,
    is_deleted,
    is_finished,
    is_namespace_going,
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
        self.follow(STATEFUL_SET)
        follow_pods(self, STATEFUL_SET)
        self.cluster.owned(CONTROLLER_REVISION)
        self.cluster.orphans(CONTROLLER_REVISION)
        self.follow(PERSISTENT_VOLUME_CLAIM, self._claim_changed)

    def _claim_changed(self, type: EventType, claim: Manifest, before: Manifest | None) -> None:
        """A recreated pod waits until its predecessor's claim is deleted."""
        if type == "DELETED":
            for owner in claim["metadata"].get("ownerReferences") or []:
                if owner["kind"] == POD.name and (parent := parent_name(owner["name"])):
                    self.look(claim["metadata"]["namespace"], parent)

    async def reconcile(self, namespace: str, name: str) -> float | None:
        """Advance one set by a step, within its policies, and write its status."""
        obj = self.cluster.informer(STATEFUL_SET).get(namespace, name)
        if obj is None or selects_nothing(obj):
            return None
        await claim(self.cluster, STATEFUL_SET, obj, POD, lambda pod: is_member(obj, pod))
        history = await history_of(self.cluster, STATEFUL_SET, obj, _HASH_LABEL)
        known = status_of(obj).get("currentRevision")
        current = next((each for each in history.revisions if name_of(each) == known), history.update)
        being = _Set(obj, history, current, self.cluster.clock.utc_now())
        refusal: RequestError | None = None
        if not is_deleted(obj):
            try:
                await self._step(being)
            except RequestError as error:
                refusal = error
        pods = self._pods(being)
        await write_status(self.cluster, STATEFUL_SET, obj, _status(being, pods))
        in_use = [name_of(current), name_of(history.update), *map(revision_name, pods)]
        await forget_old(self.cluster, obj, history.revisions, in_use)
        if refusal is not None and not is_namespace_going(refusal):
            raise refusal
        return next_available_seconds(pods, being.min_ready_seconds, self.cluster.clock.utc_now())

    def _pods(self, being: _Set) -> list[Manifest]:
        owned = self.cluster.owned(POD).get(being.obj["metadata"]["uid"])
        return sorted((pod for pod in owned if is_member(being.obj, pod)), key=ordinal_of)

    # -- one step

    async def _step(self, being: _Set) -> None:
        pods = self._pods(being)
        wanted = ordinals(being.obj)
        by_ordinal = {ordinal_of(pod): pod for pod in pods}
        condemned = [pod for pod in reversed(pods) if ordinal_of(pod) not in wanted]

        async def keep(index: int) -> bool:
            return await self._keep(being, wanted[index], by_ordinal.get(wanted[index]))

        if await self._for_all(being, len(wanted), keep):
            return
        for pod in condemned:
            await own_claims(self.cluster, being.obj, pod, self.name)
        replicas = [by_ordinal.get(ordinal) for ordinal in wanted]
        first_broken = next(
            (pod for pod in [*replicas, *reversed(condemned)] if being.is_unavailable(pod)), None
        )

        async def take_away(index: int) -> bool:
            return await self._take_away(being, condemned[index], first_broken)

        if not await self._for_all(being, len(condemned), take_away):
            await self._renew(being)

    async def _for_all(self, being: _Set, count: int, do: Callable[[int], Awaitable[bool]]) -> bool:
        """Call a function for each pod, in order or concurrently; returns whether the rest has to wait."""
        if not being.in_order:
            refusal = await slow_start(count, do)
            if refusal is not None:
                raise refusal
            return False
        for index in range(count):
            if await do(index):
                return True
        return False

    async def _keep(self, being: _Set, ordinal: int, pod: Manifest | None) -> bool:
        """Reconcile the pod of an ordinal; returns whether the pods after it have to wait."""
        if pod is None:
            if not is_stale(self.cluster, being.obj, ordinal):
                await self._create(being, ordinal)
            return True
        if is_finished(pod):
            if not is_deleted(pod):
                await self._delete(being, pod)
            return True
        if phase_of(pod) == "Pending":
            await make_claims(self.cluster, being.obj, ordinal, self.name)
            await own_claims(self.cluster, being.obj, pod, self.name)
        if being.in_order and (phase_of(pod) != "Running" or being.is_unavailable(pod)):
            return True
        await self._correct(being, ordinal, pod)
        return False

    async def _correct(self, being: _Set, ordinal: int, pod: Manifest) -> None:
        labels = identity_labels(being.obj, ordinal)
        if not labels.items() <= labels_of(pod).items():
            await self.cluster.patch(POD, pod, {"metadata": {"labels": labels}})
            await self._tell(being, "Update", pod)
        await own_claims(self.cluster, being.obj, pod, self.name)

    async def _take_away(self, being: _Set, pod: Manifest, first_broken: Manifest | None) -> bool:
        """Delete a surplus pod; returns whether the next one has to wait."""
        if is_deleted(pod):
            return being.in_order
        if being.in_order and being.is_unavailable(pod) and pod is not first_broken:
            return True
        await self._delete(being, pod)
        return True

    async def _renew(self, being: _Set) -> None:
        """Delete the last pod that is not of the newest revision, once those after it are available."""
        strategy = being.obj["spec"].get("updateStrategy") or {}
        if strategy.get("type", "RollingUpdate") == "OnDelete":
            return
        partition = int((strategy.get("rollingUpdate") or {}).get("partition") or 0)
        by_ordinal = {ordinal_of(pod): pod for pod in self._pods(being)}
        wanted = ordinals(being.obj)
        for ordinal in reversed(wanted[partition:]):
            pod = by_ordinal.get(ordinal)
            if (
                pod is not None
                and not is_deleted(pod)
                and revision_name(pod) != name_of(being.history.update)
            ):
                await self._delete(being, pod)
                return
            if being.is_unavailable(pod):
                return

    # -- pods

    async def _create(self, being: _Set, ordinal: int) -> None:
        strategy = being.obj["spec"].get("updateStrategy") or {}
        partition = int((strategy.get("rollingUpdate") or {}).get("partition") or 0)
        is_old = ordinal < ordinals(being.obj).start + partition
        revision = being.current if is_old else being.history.update
        pod = new_pod(being.obj, revision, ordinal)
        try:
            await make_claims(self.cluster, being.obj, ordinal, self.name)
            made = await self.cluster.create(POD, being.obj["metadata"]["namespace"], pod)
        except RequestError as error:
            if not error.already_exists:
                await self._tell(being, "Create", pod, error)
            raise
        await own_claims(self.cluster, being.obj, made, self.name)
        await self._tell(being, "Create", pod)

    async def _delete(self, being: _Set, pod: Manifest) -> None:
        try:
            await self.cluster.delete(POD, pod)
        except RequestError as error:
            await self._tell(being, "Delete", pod, error)
            raise
        await self._tell(being, "Delete", pod)

    async def _tell(self, being: _Set, verb: str, pod: Manifest, error: RequestError | None = None) -> None:
        subject = f"{verb} Pod {name_of(pod)} in StatefulSet {name_of(being.obj)}"
        if error is None:
            type, reason, message = "Normal", f"Successful{verb}", f"{subject} successful"
        else:
            type, reason, message = "Warning", f"Failed{verb}", f"{subject} failed error: {error}"
        await self.cluster.event(being.obj, type, reason, message, self.name)


def _status(being: _Set, pods: list[Manifest]) -> Manifest:
    spec = being.obj["spec"]
    update = name_of(being.history.update)
    revisions = [revision_name(pod) for pod in pods if not is_deleted(pod)]
    ready = [pod for pod in pods if phase_of(pod) == "Running" and is_ready(pod)]
    status: Manifest = {
        "observedGeneration": being.obj["metadata"].get("generation", 0),
        "replicas": len(pods),
        "readyReplicas": len(ready),
        "availableReplicas": sum(is_available(pod, being.min_ready_seconds, being.now) for pod in ready),
        "currentReplicas": revisions.count(name_of(being.current)),
        "updatedReplicas": revisions.count(update),
        "currentRevision": name_of(being.current),
        "updateRevision": update,
        "collisionCount": being.history.collisions,
    }
    is_rolling = (spec.get("updateStrategy") or {}).get("type", "RollingUpdate") == "RollingUpdate"
    counts = (status["updatedReplicas"], status["readyReplicas"], status["replicas"])
    if is_rolling and all(count == spec.get("replicas", 1) for count in counts):
        status |= {"currentReplicas": status["updatedReplicas"], "currentRevision": update}
    return status
