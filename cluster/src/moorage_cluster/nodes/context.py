"""Shared state of all kubelets of a simulation: the cluster, the clock, the random numbers, the outboxes."""

from __future__ import annotations

from datetime import timedelta
from random import Random

from moorage.api.manifests import Manifest, moment, timestamp
from moorage.clock import Clock
from moorage_cluster.controllers.cluster import Cluster
from moorage_cluster.nodes.claim_readiness import ClaimReadiness
from moorage_cluster.nodes.outbox import Outbox
from moorage_cluster.nodes.settings import KubeletSettings
from moorage_cluster.nodes.thresholds import parse_thresholds
from moorage_cluster.nodes.workload import ContainerRuntime


class NodeContext:
    """The shared state of one simulation."""

    def __init__(
        self,
        cluster: Cluster,
        settings: KubeletSettings,
        random: Random,
        runtime: ContainerRuntime | None = None,
    ) -> None:
        self.cluster = cluster
        self.settings = settings
        self.random = random
        self.runtime = runtime
        """The runtime of containers that are not simulated; None: all are."""
        self.thresholds = parse_thresholds(
            settings.eviction_hard,
            settings.eviction_soft,
            settings.eviction_soft_grace_period,
            settings.eviction_minimum_reclaim,
        )
        self.claims = ClaimReadiness(cluster)
        self.outbox = Outbox(cluster.clock)
        self.heartbeats = Outbox(cluster.clock, workers=1)
        """Separate from other writes, so that heartbeats are not delayed while many pods start."""
        self._events = 0

    @property
    def clock(self) -> Clock:
        """The time."""
        return self.cluster.clock

    def timestamp(self, seconds: float) -> str:
        """A moment of the clock as a timestamp of objects."""
        return timestamp(self.cluster.clock.utc_now() + timedelta(seconds=seconds - self.clock.now()))

    def seconds_of(self, text: str) -> float:
        """A timestamp as a moment of the clock."""
        return self.clock.now() + (moment(text) - self.cluster.clock.utc_now()).total_seconds()

    def latency(self, seconds: float) -> float:
        """A latency in seconds with random jitter."""
        return seconds * (1 + self.settings.jitter * (2 * self.random.random() - 1))

    def container_id(self) -> str:
        """The id of a new container."""
        return f"containerd://{self.random.getrandbits(256):064x}"

    def record_event(self, about: Manifest, type: str, reason: str, message: str) -> None:
        """Record an event about a pod or a node."""
        is_pod = "namespace" in about["metadata"]
        if type == "Normal" and is_pod and not self.settings.normal_events:
            return
        self._events += 1
        # Objects from a list may have no apiVersion and kind.
        subject = {**about, "apiVersion": "v1", "kind": "Pod" if is_pod else "Node"}

        async def write() -> None:
            await self.cluster.record_event(subject, type, reason, message, "kubelet")

        self.outbox.put(("event", self._events), write)
