"""Deletion of the content of terminating namespaces: pods first, then everything else.

An attempt is made when the deletion begins, when the last object of a kind is deleted, and after a
delay; its outcome is in the namespace's conditions. The namespace is deleted when nothing is left.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from datetime import datetime
from typing import Final, NamedTuple

from moorage.api.manifests import Manifest, status_of
from moorage.apimachinery.errors import ApiError
from moorage.backoff import backoff_seconds
from moorage.clock import Clock, Timer
from moorage_cluster.apiserver.deferred_jobs import DeferredJobs
from moorage_cluster.apiserver.kinds.namespaces import FINALIZER, finalize
from moorage_cluster.apiserver.namespace_conditions import DeletionReport, deletion_conditions
from moorage_cluster.apiserver.namespace_defaults import NAMESPACES
from moorage_cluster.apiserver.resources import APIResource, Resources
from moorage_cluster.apiserver.rest.context import Context
from moorage_cluster.apiserver.rest.deletes import DeleteOptions, Deleter
from moorage_cluster.apiserver.rest.writes import Writer, finalizers_of
from moorage_cluster.apiserver.store import Change, Collection, Stored

_PODS: Final = "/pods"
_FINALIZER_SECONDS: Final = 15
"""Estimated time until finalizers are removed, in seconds."""
_INITIAL_BACKOFF_SECONDS: Final = 0.005
_MAX_BACKOFF_SECONDS: Final = 40.96
_POD_HAS_ENDED: Final = ("Succeeded", "Failed")


class _Left(NamedTuple):
    """What is left of one resource after an attempt to delete all of it."""

    number: int = 0
    finalizers: Counter[str] = Counter()
    estimate_seconds: int = 0
    """Seconds until the next attempt, at the latest; 0: no estimate."""
    error: str = ""


class NamespaceDeleter:
    """Deletes the content of terminating namespaces."""

    def __init__(
        self, resources: Resources, writer: Writer, deleter: Deleter, work: DeferredJobs, clock: Clock
    ) -> None:
        self._resources = resources
        self._writer = writer
        self._deleter = deleter
        self._work = work
        self._clock = clock
        self._failures: dict[str, int] = {}
        """Terminating namespaces, and their number of consecutive failures."""
        self._timers: dict[str, Timer] = {}

    def load(self) -> None:
        """Resume the deletions of an earlier run."""
        for stored in self._writer.store.collection(NAMESPACES).items.values():
            if stored.is_being_deleted:
                self._begin(stored.key[1])

    def on_change(self, collection: Collection, change: Change) -> None:
        """Start with a terminating namespace; continue when all its objects of a kind are deleted."""
        namespace, name = change.stored.key
        if collection.name == NAMESPACES:
            if change.type == "DELETED":
                self._forget(name)
            elif change.stored.is_being_deleted and name not in self._failures:
                self._begin(name)
        elif change.type == "DELETED" and namespace in self._failures and not collection.within(namespace):
            self._work.soon(lambda: self._attempt(namespace))

    def _begin(self, name: str) -> None:
        self._failures[name] = 0
        self._work.soon(lambda: self._attempt(name))

    def _forget(self, name: str) -> None:
        self._failures.pop(name, None)
        if timer := self._timers.pop(name, None):
            timer.cancel()

    def _attempt(self, name: str) -> None:
        """Delete all content, and the namespace when nothing is left."""
        stored = self._writer.store.collection(NAMESPACES).get(("", name))
        if stored is None or FINALIZER not in (stored.obj.get("spec") or {}).get("finalizers", ()):
            return
        report, estimate = self._empty(stored)
        self._write_conditions(name, report)
        if report.errors:
            self._failures[name] += 1
            delay = backoff_seconds(self._failures[name], _INITIAL_BACKOFF_SECONDS, _MAX_BACKOFF_SECONDS)
            self._retry(name, delay)
        elif estimate:
            self._failures[name] = 0
            self._retry(name, estimate // 2 + 1)
        else:
            self._finish(name)

    def _retry(self, name: str, delay_seconds: float) -> None:
        if timer := self._timers.pop(name, None):
            timer.cancel()
        self._timers[name] = self._clock.call_later(
            delay_seconds, lambda: self._work.soon(lambda: self._attempt(name))
        )

    def _empty(self, namespace: Stored) -> tuple[DeletionReport, int]:
        """Delete the objects of all kinds; others than pods only when all pods are deleted."""
        report, estimate = DeletionReport(), 0
        for resource in self._deletable():
            left = self._delete_all(resource, namespace)
            estimate = max(estimate, left.estimate_seconds)
            if left.error:
                report.errors.append(left.error)
            if left.number and resource.storage == _PODS:
                return report, estimate
            if left.number:
                report.remaining[f"{resource.plural}.{resource.group}"] = left.number
                report.finalizers.update(left.finalizers)
        return report, estimate

    def _deletable(self) -> list[APIResource]:
        """The namespaced resources that can be deleted, one version of each, pods first."""
        found = {
            (one.group, one.plural): one
            for one in self._resources
            if one.namespaced and "delete" in one.verbs
        }
        return sorted(found.values(), key=lambda one: one.storage != _PODS)

    def _delete_all(self, resource: APIResource, namespace: Stored) -> _Left:
        name = namespace.key[1]
        collection = self._writer.store.collection(resource.storage)
        pods = collection.within(name).values() if resource.storage == _PODS else ()
        estimate = _grace_seconds([stored.obj for stored in pods], namespace.obj, self._writer.now())
        if error := self._delete_each(resource, name, collection):
            return _Left(estimate_seconds=estimate, error=error)
        left = collection.within(name).values()
        if not left:
            return _Left()
        finalizers = Counter(name for stored in left for name in finalizers_of(stored.obj))
        if estimate or finalizers:
            return _Left(len(left), finalizers, estimate or _FINALIZER_SECONDS)
        what = f"{resource.group}/{resource.version}, Resource={resource.plural}"
        error = f"unexpected items still remain in namespace: {name} for gvr: {what}"
        return _Left(len(left), error=error)

    def _delete_each(self, resource: APIResource, namespace: str, collection: Collection) -> str:
        """Delete all objects of a resource; returns the first error."""
        error = ""
        for key in list(collection.within(namespace)):
            try:
                self._deleter.delete(resource, *key, DeleteOptions(policy="Background"), Context())
            except ApiError as refusal:
                error = error or refusal.message
        return error

    def _write_conditions(self, name: str, report: DeletionReport) -> None:
        def changed(namespace: Manifest) -> Manifest:
            status = status_of(namespace)
            conditions = deletion_conditions(status, report, self._writer.now())
            return {**namespace, "status": {**status, "conditions": conditions}}

        self._replace(name, changed)

    def _finish(self, name: str) -> None:
        self._replace(name, finalize)

    def _replace(self, name: str, change: Callable[[Manifest], Manifest]) -> None:
        resource = self._resources.of_kind("v1", "Namespace")
        stored = self._writer.store.collection(NAMESPACES).get(("", name))
        if resource is None or stored is None:
            return
        self._writer.replace(resource, stored, stored.decoded(), change(stored.decoded()), Context())


def _grace_seconds(pods: list[Manifest], namespace: Manifest, now: datetime) -> int:
    """The longest grace period of pods that still run; 0 if it has passed since the deletion began."""
    running = [pod["spec"] for pod in pods if status_of(pod).get("phase") not in _POD_HAS_ENDED]
    longest: int = max((spec.get("terminationGracePeriodSeconds") or 0 for spec in running), default=0)
    begun = datetime.fromisoformat(namespace["metadata"]["deletionTimestamp"])
    return 0 if (now - begun).total_seconds() >= longest else longest
