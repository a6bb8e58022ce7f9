"""A server has one clock, for timers and for timestamps."""

from __future__ import annotations

from moorage.clock import VirtualClock
from moorage_cluster.apiserver.embedded import EmbeddedServer
from moorage_cluster.local import LocalCluster, LocalSettings
from tests.apiserver.client import START


def created_at(server: EmbeddedServer) -> str:
    stored = server.store.collection("/namespaces").items["", "default"]
    return str(stored.obj["metadata"]["creationTimestamp"])


def test_timestamps_are_of_the_clock_that_timers_have() -> None:
    clock = VirtualClock(epoch=START)
    server, cluster = EmbeddedServer(clock=clock), LocalCluster(LocalSettings(), clock=clock)
    assert created_at(server) == created_at(cluster.server) == "2026-03-01T12:00:00Z"
    server.close()
    cluster.server.close()
