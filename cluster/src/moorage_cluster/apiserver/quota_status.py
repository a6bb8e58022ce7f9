"""The status of resource quotas: the usage, updated when an object in their namespace has changed."""

from __future__ import annotations

from moorage_cluster.apiserver.admission.quota.resource_quota import quota_usage
from moorage_cluster.apiserver.admission.quota.tally import RESOURCE_QUOTAS
from moorage_cluster.apiserver.deferred_jobs import DeferredJobs
from moorage_cluster.apiserver.resources import Resources
from moorage_cluster.apiserver.rest.context import Context
from moorage_cluster.apiserver.rest.writes import Writer
from moorage_cluster.apiserver.store import Change, Collection

_NEVER_CHARGED = ("/events", "coordination.k8s.io/leases")


class QuotaStatusUpdater:
    """Tracks all namespaces that have a quota; the others cost nothing."""

    def __init__(self, resources: Resources, writer: Writer, work: DeferredJobs) -> None:
        self._resources = resources
        self._writer = writer
        self._work = work
        self._quotas = writer.store.collection(RESOURCE_QUOTAS)
        self._due: set[str] = set()

    def on_change(self, collection: Collection, change: Change) -> None:
        """Note that a namespace's usage may have changed."""
        namespace = change.stored.key[0]
        if not namespace or namespace in self._due or collection.name in _NEVER_CHARGED:
            return
        if self._quotas.within(namespace):
            self._due.add(namespace)
            self._work.soon(lambda: self._write(namespace))

    def _write(self, namespace: str) -> None:
        self._due.discard(namespace)
        resource = self._resources.of_kind("v1", "ResourceQuota")
        assert resource is not None
        for stored in list(self._quotas.within(namespace).values()):
            old, quota = stored.decoded(), stored.decoded()
            quota["status"] = quota_usage(quota, self._writer.store, self._writer.now())
            self._writer.replace(resource, stored, old, quota, Context())
