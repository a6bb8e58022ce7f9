"""Deployments: a ReplicaSet for each template they have had; the newest takes over from the others."""

from __future__ import annotations

from typing import Final

from moorage.api.conditions import find_condition
from moorage.api.manifests import Manifest, annotations_of, status_of
from moorage.client.informer import EventType
from moorage.client.kinds import DEPLOYMENT, POD, REPLICA_SET
from moorage.http.errors import RequestError
from moorage_cluster.controllers.adoption import claim, selects_nothing, watch_orphans
from moorage_cluster.controllers.cluster import Cluster, controller_of
from moorage_cluster.controllers.controller import Controller
from moorage_cluster.controllers.deployment_progress import (
    PROGRESSING,
    conditions_after_pausing,
    counted_status,
    deadline_seconds,
    is_complete,
    progressing,
    rollout_status,
    seconds_to_deadline,
)
from moorage_cluster.controllers.deployment_scaling import Sizes, is_resized, new_size, old_sizes, resized
from moorage_cluster.controllers.deployment_sets import (
    HASH_LABEL,
    REVISION,
    Sets,
    changed_annotations,
    counted,
    is_rolling,
    new_set,
    next_revision,
    replica_annotations,
    revision_of,
    size_of,
    sort_out,
)
from moorage_cluster.controllers.pods import is_deleted, is_finished, is_namespace_terminating
from moorage_cluster.controllers.statuses import with_condition, write_status
from moorage_cluster.controllers.templates import without_label

_KEEP_ALL: Final = 2**31 - 1


class DeploymentController(Controller):
    """Rolls out the templates of Deployments."""

    name = "deployment-controller"

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster)
        self.watch(DEPLOYMENT)
        self.watch_owned(REPLICA_SET, DEPLOYMENT.name)
        watch_orphans(self, REPLICA_SET, DEPLOYMENT)
        self.cluster.owned(POD)
        self.watch(POD, self._pod_changed)

    def _pod_changed(self, type: EventType, pod: Manifest, before: Manifest | None) -> None:
        """A deployment that recreates its pods waits until the last old one has ended."""
        owner = controller_of(pod)
        if owner is None or owner["kind"] != REPLICA_SET.name or not (type == "DELETED" or is_finished(pod)):
            return
        namespace = pod["metadata"]["namespace"]
        replica_set = self.cluster.informer(REPLICA_SET).get(namespace, owner["name"])
        workload = controller_of(replica_set) if replica_set is not None else None
        if workload is None or workload["kind"] != DEPLOYMENT.name:
            return
        deployment = self.cluster.informer(DEPLOYMENT).get(namespace, workload["name"])
        if deployment is not None and not is_rolling(deployment):
            self.enqueue(namespace, workload["name"])

    async def reconcile(self, namespace: str, name: str) -> float | None:
        """Advance one deployment by a step: scale one set up or some down, then write its status."""
        deployment = self.cluster.informer(DEPLOYMENT).get(namespace, name)
        if deployment is None or selects_nothing(deployment):
            return None
        sets = sort_out(deployment, await claim(self.cluster, DEPLOYMENT, deployment, REPLICA_SET))
        now = self.cluster.clock.utc_now()
        if is_deleted(deployment):
            conditions: list[Manifest] = status_of(deployment).get("conditions") or []
            await self._write(deployment, counted_status(deployment, sets, conditions, now))
            return None
        conditions = conditions_after_pausing(deployment, now)
        if sets.new is not None:
            deployment, conditions, sets = await self._sync_revision(deployment, conditions, sets)
        is_paused = bool(deployment["spec"].get("paused"))
        if is_paused or is_resized(deployment, sets):
            await self._scale(deployment, resized(deployment, sets), annotate=True)
            if is_paused:
                await self._clean_up(deployment, sets.old)
            sets = self._refreshed(deployment, sets)
            await self._write(deployment, counted_status(deployment, sets, conditions, now))
            return None
        if is_rolling(deployment):
            deployment, conditions, sets = await self._roll(deployment, conditions, sets)
        else:
            deployment, conditions, sets = await self._recreate(deployment, conditions, sets)
        sets = self._refreshed(deployment, sets)
        status = rollout_status(deployment, sets, conditions, now)
        await self._write(deployment, status)
        return seconds_to_deadline(deployment, status, now)

    async def _write(self, deployment: Manifest, status: Manifest) -> None:
        await write_status(self.cluster, DEPLOYMENT, deployment, status)

    def _refreshed(self, deployment: Manifest, sets: Sets) -> Sets:
        """The sets after the last writes."""
        known = self.cluster.owned(REPLICA_SET).get(deployment["metadata"]["uid"])
        names = {each["metadata"]["name"] for each in sets.all}
        return sort_out(deployment, [each for each in known if each["metadata"]["name"] in names])

    # -- the two strategies

    async def _roll(
        self, deployment: Manifest, conditions: list[Manifest], sets: Sets
    ) -> tuple[Manifest, list[Manifest], Sets]:
        if sets.new is None:
            deployment, conditions, sets = await self._created(deployment, conditions, sets)
        assert sets.new is not None
        grown = await self._scale(deployment, [(sets.new, new_size(deployment, sets))])
        if not grown and not await self._scale(deployment, old_sizes(deployment, sets)):
            await self._clean_up_when_complete(deployment, sets)
        return deployment, conditions, sets

    async def _recreate(
        self, deployment: Manifest, conditions: list[Manifest], sets: Sets
    ) -> tuple[Manifest, list[Manifest], Sets]:
        shrunk = await self._scale(deployment, [(each, 0) for each in sets.old if size_of(each) > 0])
        if shrunk or counted(sets.old, "replicas") > 0 or any(map(self._has_running_pods, sets.old)):
            return deployment, conditions, sets
        if sets.new is None:
            deployment, conditions, sets = await self._created(deployment, conditions, sets)
        assert sets.new is not None
        await self._scale(deployment, [(sets.new, size_of(deployment))])
        await self._clean_up_when_complete(deployment, sets)
        return deployment, conditions, sets

    def _has_running_pods(self, replica_set: Manifest) -> bool:
        pods = self.cluster.owned(POD).get(replica_set["metadata"]["uid"])
        return not all(map(is_finished, pods))

    # -- the new set

    async def _sync_revision(
        self, deployment: Manifest, conditions: list[Manifest], sets: Sets
    ) -> tuple[Manifest, list[Manifest], Sets]:
        """Give the new set the newest revision and the deployment's annotations; update the deployment."""
        new = sets.new
        assert new is not None
        change: Manifest = {}
        if annotations := changed_annotations(deployment, new, next_revision(sets.old)):
            change["metadata"] = {"annotations": annotations}
        min_ready_seconds = deployment["spec"].get("minReadySeconds", 0)
        if new["spec"].get("minReadySeconds", 0) != min_ready_seconds:
            change["spec"] = {"minReadySeconds": min_ready_seconds}
        if change:
            new = await self.cluster.patch(REPLICA_SET, new, change)
        deployment = await self._with_revision(deployment, new)
        if deadline_seconds(deployment) is not None and not find_condition(
            {"conditions": conditions}, PROGRESSING
        ):
            message = f'Found new replica set "{new["metadata"]["name"]}"'
            found = progressing(self.cluster.clock.utc_now(), "True", "FoundNewReplicaSet", message)
            conditions = with_condition(conditions, found)
        return deployment, conditions, Sets(new, sets.old)

    async def _with_revision(self, deployment: Manifest, new: Manifest) -> Manifest:
        revision = annotations_of(new).get(REVISION, "")
        if annotations_of(deployment).get(REVISION) == revision:
            return deployment
        # Through the status subresource: otherwise a new annotation would raise the deployment's generation.
        change = {"metadata": {"annotations": {REVISION: revision}}}
        return await self.cluster.patch(DEPLOYMENT, deployment, change, "merge", "status")

    async def _created(
        self, deployment: Manifest, conditions: list[Manifest], sets: Sets
    ) -> tuple[Manifest, list[Manifest], Sets]:
        """Create the set for the current template."""
        size = new_size(deployment, sets)
        wanted = new_set(deployment, next_revision(sets.old), size)
        name, namespace = wanted["metadata"]["name"], wanted["metadata"]["namespace"]
        now = self.cluster.clock.utc_now()
        has_deadline = deadline_seconds(deployment) is not None
        try:
            new = await self.cluster.create(REPLICA_SET, namespace, wanted)
        except RequestError as error:
            if error.already_exists:
                known = self._same_set(deployment, wanted)
                if known is None:
                    await self._count_collision(deployment)
                    raise
                return await self._with_revision(deployment, known), conditions, Sets(known, sets.old)
            if not is_namespace_terminating(error):
                message = f'Failed to create new replica set "{name}": {error}'
                if has_deadline:
                    failed = progressing(now, "False", "ReplicaSetCreateError", message)
                    await self._write(deployment, {"conditions": with_condition(conditions, failed)})
                await self.cluster.record_event(
                    deployment, "Warning", "ReplicaSetCreateError", message, self.name
                )
            raise
        if size > 0:
            message = f"Scaled up replica set {name} from 0 to {size}"
            await self.cluster.record_event(deployment, "Normal", "ScalingReplicaSet", message, self.name)
        if has_deadline:
            made = progressing(now, "True", "NewReplicaSetCreated", f'Created new replica set "{name}"')
            conditions = with_condition(conditions, made)
        return await self._with_revision(deployment, new), conditions, Sets(new, sets.old)

    def _same_set(self, deployment: Manifest, wanted: Manifest) -> Manifest | None:
        """The set of the wanted name, if it is this deployment's and has its template."""
        meta = wanted["metadata"]
        known = self.cluster.informer(REPLICA_SET).get(meta["namespace"], meta["name"])
        owner = controller_of(known) if known is not None else None
        if known is None or owner is None or owner["uid"] != deployment["metadata"]["uid"]:
            return None
        is_same = without_label(known["spec"]["template"], HASH_LABEL) == without_label(
            deployment["spec"]["template"], HASH_LABEL
        )
        return known if is_same else None

    async def _count_collision(self, deployment: Manifest) -> None:
        """A set of that name has another template: the next attempt generates another name."""
        collisions = int(status_of(deployment).get("collisionCount") or 0) + 1
        await self._write(deployment, {"collisionCount": collisions})

    # -- scaling sets

    async def _scale(self, deployment: Manifest, sizes: Sizes, annotate: bool = False) -> bool:
        """Scale sets; returns whether any has changed. `annotate`: also annotate others with the total."""
        is_scaled = False
        annotated = replica_annotations(deployment)
        for replica_set, size in sizes:
            before, known = size_of(replica_set), annotations_of(replica_set)
            is_annotated = annotated.items() <= known.items()
            if size == before and (is_annotated or not annotate):
                continue
            change = {"metadata": {"annotations": annotated}, "spec": {"replicas": size}}
            await self.cluster.patch(REPLICA_SET, replica_set, change)
            if size == before:
                continue
            is_scaled = True
            direction = "up" if size > before else "down"
            name = replica_set["metadata"]["name"]
            message = f"Scaled {direction} replica set {name} from {before} to {size}"
            await self.cluster.record_event(deployment, "Normal", "ScalingReplicaSet", message, self.name)
        return is_scaled

    async def _clean_up_when_complete(self, deployment: Manifest, sets: Sets) -> None:
        if is_complete(deployment, status_of(deployment)):
            await self._clean_up(deployment, sets.old)

    async def _clean_up(self, deployment: Manifest, old: list[Manifest]) -> None:
        """Delete the oldest sets beyond the revision history limit."""
        limit = deployment["spec"].get("revisionHistoryLimit", _KEEP_ALL)
        alive = sorted((each for each in old if not is_deleted(each)), key=revision_of)
        for each in alive[: max(0, len(alive) - limit)]:
            status = status_of(each)
            is_seen = each["metadata"].get("generation", 0) <= int(status.get("observedGeneration") or 0)
            if is_seen and size_of(each) == 0 and not status.get("replicas"):
                await self.cluster.delete(REPLICA_SET, each)
