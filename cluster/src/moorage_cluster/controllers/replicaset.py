"""ReplicaSets, and ReplicationControllers, which differ only in what their selectors look like."""

from __future__ import annotations

from datetime import datetime
from typing import ClassVar

from moorage.api.conditions import find_condition, is_ready
from moorage.api.manifests import Manifest, labels_of, status_of
from moorage.client.kinds import POD, REPLICA_SET, REPLICATION_CONTROLLER, Kind
from moorage.http.errors import RequestError
from moorage_cluster.controllers.adoption import (
    claim,
    ready_selector,
    selector_of,
    selects_nothing,
    watch_pods,
)
from moorage_cluster.controllers.cluster import Cluster, controller_of
from moorage_cluster.controllers.controller import Controller
from moorage_cluster.controllers.pod_ranking import pods_to_delete
from moorage_cluster.controllers.pods import (
    BURST,
    create_pod,
    delete_pod,
    is_active,
    is_available,
    is_deleted,
    is_terminating,
    next_available_seconds,
    pod_from_template,
    slow_start,
    together,
)
from moorage_cluster.controllers.statuses import new_condition, without_condition, write_status

_FAILURE = "ReplicaFailure"


class _ReplicasController(Controller):
    """Keeps the desired number of pods of one template."""

    kind: ClassVar[Kind]

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster)
        self.watch(self.kind)
        watch_pods(self, self.kind)

    async def reconcile(self, namespace: str, name: str) -> float | None:
        """Adopt, create or delete pods of one set, and write its status."""
        owner = self.cluster.informer(self.kind).get(namespace, name)
        if owner is None or selects_nothing(owner):
            return None
        pods = await claim(self.cluster, self.kind, owner, POD, is_active)
        error = None if is_deleted(owner) else await self._manage(owner, pods)
        missing = self._wanted(owner) - len(pods)
        now = self.cluster.clock.utc_now()
        # The informer has already seen the pods that were just created, deleted or adopted.
        selector = ready_selector(selector_of(owner))
        pods = [pod for pod in self._owned(owner) if selector.matches(labels_of(pod))]
        active = [pod for pod in pods if is_active(pod)]
        status = self._status(owner, pods, active, now)
        status["conditions"] = self._conditions(owner, error, missing, now)
        await write_status(self.cluster, self.kind, owner, status)
        if error is not None:
            raise error
        return next_available_seconds(active, _min_ready_seconds(owner), now)

    def _wanted(self, owner: Manifest) -> int:
        return int(owner["spec"].get("replicas", 1))

    def _owned(self, owner: Manifest) -> list[Manifest]:
        return self.cluster.owned(POD).get(owner["metadata"]["uid"])

    async def _manage(self, owner: Manifest, pods: list[Manifest]) -> RequestError | None:
        missing = self._wanted(owner) - len(pods)
        if missing > 0:
            template = owner["spec"]["template"]

            async def create(index: int) -> None:
                await create_pod(self.cluster, owner, pod_from_template(owner, template), self.name)

            return await slow_start(min(missing, BURST), create)
        if missing < 0:
            to_delete = pods_to_delete(
                pods, min(-missing, BURST), self._related(owner), self.cluster.clock.utc_now()
            )
            return await together(delete_pod(self.cluster, owner, pod, self.name) for pod in to_delete)
        return None

    def _related(self, owner: Manifest) -> list[Manifest]:
        """The pods of the same workload: a deployment's sets share their nodes."""
        workload = controller_of(owner)
        if workload is None:
            return self._owned(owner)
        siblings = self.cluster.owned(self.kind).get(workload["uid"])
        return [pod for sibling in siblings for pod in self._owned(sibling)]

    def _status(
        self, owner: Manifest, pods: list[Manifest], active: list[Manifest], now: datetime
    ) -> Manifest:
        wanted_labels = labels_of(owner["spec"]["template"]).items()
        min_ready_seconds = _min_ready_seconds(owner)
        return {
            "replicas": len(active),
            "fullyLabeledReplicas": sum(wanted_labels <= labels_of(pod).items() for pod in active),
            "readyReplicas": sum(map(is_ready, active)),
            "availableReplicas": sum(is_available(pod, min_ready_seconds, now) for pod in active),
            "observedGeneration": owner["metadata"].get("generation", 0),
        }

    def _conditions(
        self, owner: Manifest, error: RequestError | None, missing: int, now: datetime
    ) -> list[Manifest]:
        conditions: list[Manifest] = status_of(owner).get("conditions") or []
        known = find_condition(status_of(owner), _FAILURE)
        if error is not None and known is None:
            reason = "FailedCreate" if missing > 0 else "FailedDelete"
            return [*conditions, new_condition(now, _FAILURE, "True", reason, error.message)]
        if error is None and known is not None:
            return without_condition(conditions, _FAILURE)
        return conditions


class ReplicaSetController(_ReplicasController):
    """Keeps the desired number of pods of ReplicaSets."""

    name = "replicaset-controller"
    kind = REPLICA_SET

    def _status(
        self, owner: Manifest, pods: list[Manifest], active: list[Manifest], now: datetime
    ) -> Manifest:
        counts = super()._status(owner, pods, active, now)
        return {**counts, "terminatingReplicas": sum(map(is_terminating, pods))}


class ReplicationManager(_ReplicasController):
    """Keeps the desired number of pods of ReplicationControllers."""

    name = "replication-controller"
    kind = REPLICATION_CONTROLLER


def _min_ready_seconds(owner: Manifest) -> int:
    return int(owner["spec"].get("minReadySeconds", 0))
