"""DaemonSets: one pod on each eligible node, also as nodes are added and change."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from moorage.api.conditions import is_ready
from moorage.api.decode import InputError, convert
from moorage.api.manifests import Manifest, annotations_of, labels_of
from moorage.api.node import Node
from moorage.client.informer import EventType
from moorage.client.kinds import CONTROLLER_REVISION, DAEMON_SET, NODE, POD
from moorage.http.errors import RequestError
from moorage_cluster.controllers.adoption import claim, selects_nothing, watch_pods
from moorage_cluster.controllers.cluster import Cluster
from moorage_cluster.controllers.controller import Controller
from moorage_cluster.controllers.daemon_nodes import Daemon, target_node, tied_to, with_tolerations
from moorage_cluster.controllers.daemon_rollout import Changes, Rollout, allows_surge, is_rolling, limits
from moorage_cluster.controllers.pods import (
    BURST,
    create_pod,
    created_at,
    delete_pod,
    is_available,
    is_deleted,
    next_available_seconds,
    node_of,
    phase_of,
    pod_from_template,
    slow_start,
    together,
)
from moorage_cluster.controllers.retries import Retries
from moorage_cluster.controllers.revisions import REVISION_LABEL, forget_old, history_of, name_of
from moorage_cluster.controllers.statuses import write_status

_GENERATION_ANNOTATION: Final = "deprecated.daemonset.template.generation"
_GENERATION_LABEL: Final = "pod-template-generation"


class DaemonSetController(Controller):
    """Keeps a pod of each DaemonSet on every eligible node."""

    name = "daemonset-controller"

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster)
        self._nodes: dict[str, Node] = {}
        self._daemons: dict[str, Daemon] = {}
        self._retries = Retries(first_seconds=1.0, longest_seconds=900.0)
        self.watch(DAEMON_SET, self._daemon_set_changed)
        watch_pods(self, DAEMON_SET)
        self.cluster.owned(CONTROLLER_REVISION)
        self.cluster.orphans(CONTROLLER_REVISION)
        self.watch(NODE, self._node_changed)

    def _daemon_set_changed(self, type: EventType, obj: Manifest, before: Manifest | None) -> None:
        if type == "DELETED":
            self._daemons.pop(obj["metadata"]["uid"], None)
        self.enqueue(obj["metadata"]["namespace"], name_of(obj))

    def _node_changed(self, type: EventType, obj: Manifest, before: Manifest | None) -> None:
        """Most node updates are irrelevant here; only labels and taints count."""
        name = name_of(obj)
        if type == "DELETED":
            self._nodes.pop(name, None)
            for daemon in self._daemons.values():
                daemon.forget(name)
        else:
            if before is not None and name in self._nodes and _place(before) == _place(obj):
                return
            try:
                self._nodes[name] = convert(_place(obj), Node)
            except InputError:
                self._nodes.pop(name, None)
        for namespace, daemon_set in self.cluster.informer(DAEMON_SET).objects:
            self.enqueue(namespace, daemon_set)

    async def reconcile(self, namespace: str, name: str) -> float | None:
        """Reconcile one set's pods with its nodes, advance its update by one step, and write its status."""
        obj = self.cluster.informer(DAEMON_SET).get(namespace, name)
        if obj is None or is_deleted(obj) or selects_nothing(obj):
            return None
        await claim(self.cluster, DAEMON_SET, obj, POD)
        history = await history_of(self.cluster, DAEMON_SET, obj, REVISION_LABEL)
        revision = labels_of(history.update).get(REVISION_LABEL, "")
        daemon = self._daemon(obj)
        changes, again = await self._missing_and_extra(obj, daemon, revision)
        refusal = await self._apply(obj, changes, revision)
        if refusal is None and is_rolling(obj):
            refusal = await self._apply(obj, self._renewed(obj, daemon, revision), revision)
        pods = self._pods(obj)
        live = {labels_of(pod).get(REVISION_LABEL) for pod in pods}
        in_use = [name_of(each) for each in history.old if labels_of(each).get(REVISION_LABEL) in live]
        await forget_old(self.cluster, obj, history.old, in_use)
        now = self.cluster.clock.utc_now()
        counts = self._counts(obj, daemon, revision, now)
        if history.collisions:
            counts["collisionCount"] = history.collisions
        await write_status(self.cluster, DAEMON_SET, obj, counts)
        if refusal is not None:
            raise refusal
        waits = [again, next_available_seconds(pods, _min_ready_seconds(obj), now)]
        return min((wait for wait in waits if wait is not None), default=None)

    # -- actual state

    def _daemon(self, obj: Manifest) -> Daemon:
        uid, generation = obj["metadata"]["uid"], obj["metadata"].get("generation", 0)
        known = self._daemons.get(uid)
        if known is None or known.generation != generation:
            known = self._daemons[uid] = Daemon(obj)
        return known

    def _pods(self, obj: Manifest) -> list[Manifest]:
        return self.cluster.owned(POD).get(obj["metadata"]["uid"])

    def _pods_by_node(self, obj: Manifest) -> dict[str, list[Manifest]]:
        """Pods by the node they are bound to or meant for, the one to keep first."""
        found: dict[str, list[Manifest]] = {}
        for pod in self._pods(obj):
            if node := target_node(pod):
                found.setdefault(node, []).append(pod)
        for pods in found.values():
            pods.sort(key=lambda pod: (not node_of(pod), created_at(pod), name_of(pod)))
        return dict(sorted(found.items()))

    # -- changes

    async def _missing_and_extra(
        self, obj: Manifest, daemon: Daemon, revision: str
    ) -> tuple[Changes, float | None]:
        """Nodes that need a pod and pods to delete, and when to retry those that failed."""
        by_node = self._pods_by_node(obj)
        changes = Changes([], [])
        again: float | None = None
        for name, node in self._nodes.items():
            pods = by_node.get(name, [])
            eligible = daemon.eligibility(node)
            if eligible.runs and not pods:
                changes.create.append(name)
            elif not eligible.stays:
                changes.delete.extend(pod for pod in pods if not is_deleted(pod))
            elif pods:
                wait = await self._tidy(obj, name, pods, revision, eligible.runs, changes)
                again = min(again or wait, wait) if wait is not None else again
        for name, pods in by_node.items():
            if name not in self._nodes:
                changes.delete.extend(pod for pod in pods if not node_of(pod) and not is_deleted(pod))
        return changes, again

    async def _tidy(
        self, obj: Manifest, node: str, pods: list[Manifest], revision: str, runs: bool, changes: Changes
    ) -> float | None:
        """Pods on one node: finished ones are deleted, and of several one is kept, or one old and one new."""
        running: list[Manifest] = []
        again: float | None = None
        for pod in pods:
            if is_deleted(pod):
                continue
            if phase_of(pod) == "Failed":
                key = (obj["metadata"]["uid"], obj["metadata"].get("generation", 0), node)
                again = self._retries.wait(key, self.cluster.clock.now())
                if again is None:
                    await self._record_ended(obj, pod, node)
                    changes.delete.append(pod)
            elif phase_of(pod) == "Succeeded":
                await self._record_ended(obj, pod, node)
                changes.delete.append(pod)
            else:
                running.append(pod)
        if not allows_surge(obj):
            changes.delete.extend(running[1:])
            return again
        if not running:
            if runs:
                changes.create.append(node)
            return again
        new = [pod for pod in running if self._is_new(obj, revision, pod)]
        old = [pod for pod in running if not self._is_new(obj, revision, pod)]
        changes.delete.extend([*new[1:], *old[1:]])
        if new and old and (not is_ready(old[0]) or self._is_available(obj, new[0])):
            changes.delete.append(old[0])
        return again

    async def _record_ended(self, obj: Manifest, pod: Manifest, node: str) -> None:
        subject = f"{pod['metadata']['namespace']}/{name_of(pod)} on node {node}"
        if phase_of(pod) == "Failed":
            event = ("Warning", "FailedDaemonPod", f"Found failed daemon pod {subject}, will try to kill it")
        else:
            message = f"Found succeeded daemon pod {subject}, will try to delete it"
            event = ("Normal", "SucceededDaemonPod", message)
        await self.cluster.record_event(obj, *event, self.name)

    def _renewed(self, obj: Manifest, daemon: Daemon, revision: str) -> Changes:
        desired = sum(daemon.eligibility(node).runs for node in self._nodes.values())
        max_surge, max_unavailable = limits(obj, desired)

        def runs_on(name: str) -> bool:
            node = self._nodes.get(name)
            return node is not None and daemon.eligibility(node).runs

        rollout = Rollout(
            self._pods_by_node(obj),
            lambda pod: self._is_new(obj, revision, pod),
            lambda pod: self._is_available(obj, pod),
            runs_on,
            desired,
        )
        return rollout.new_first(max_surge) if max_surge else rollout.old_first(max_unavailable)

    async def _apply(self, obj: Manifest, changes: Changes, revision: str) -> RequestError | None:
        template = obj["spec"]["template"]
        spec = with_tolerations(template["spec"]) if changes.create else {}

        async def create(index: int) -> None:
            pod = pod_from_template(obj, template)
            pod["spec"] = tied_to(spec, changes.create[index])
            pod["metadata"]["labels"][REVISION_LABEL] = revision
            if generation := annotations_of(obj).get(_GENERATION_ANNOTATION):
                pod["metadata"]["labels"][_GENERATION_LABEL] = generation
            await create_pod(self.cluster, obj, pod, self.name)

        refusal = await slow_start(min(len(changes.create), BURST), create)
        to_delete = changes.delete[:BURST]
        return await together(delete_pod(self.cluster, obj, pod, self.name) for pod in to_delete) or refusal

    # -- pods

    def _is_new(self, obj: Manifest, revision: str, pod: Manifest) -> bool:
        labels = labels_of(pod)
        generation = annotations_of(obj).get(_GENERATION_ANNOTATION)
        by_generation = generation is not None and labels.get(_GENERATION_LABEL) == generation
        return by_generation or labels.get(REVISION_LABEL) == revision

    def _is_available(self, obj: Manifest, pod: Manifest) -> bool:
        return is_available(pod, _min_ready_seconds(obj), self.cluster.clock.utc_now())

    def _counts(self, obj: Manifest, daemon: Daemon, revision: str, now: datetime) -> Manifest:
        by_node = self._pods_by_node(obj)
        desired = misplaced = 0
        first: list[Manifest] = []
        for name, node in self._nodes.items():
            pods = by_node.get(name, [])
            if daemon.eligibility(node).runs:
                desired += 1
                first += pods[:1]
            elif pods:
                misplaced += 1
        available = sum(is_available(pod, _min_ready_seconds(obj), now) for pod in first)
        return {
            "observedGeneration": obj["metadata"].get("generation", 0),
            "desiredNumberScheduled": desired,
            "currentNumberScheduled": len(first),
            "numberMisscheduled": misplaced,
            "numberReady": sum(map(is_ready, first)),
            "updatedNumberScheduled": sum(self._is_new(obj, revision, pod) for pod in first),
            "numberAvailable": available,
            "numberUnavailable": desired - available,
        }


def _min_ready_seconds(obj: Manifest) -> int:
    return int(obj["spec"].get("minReadySeconds", 0))


def _place(node: Manifest) -> Manifest:
    """The fields of a node that decide whether it is eligible for daemons."""
    meta, spec = node["metadata"], node.get("spec") or {}
    return {
        "metadata": {"name": meta["name"], "labels": meta.get("labels") or {}},
        "spec": {"taints": spec.get("taints") or []},
    }
