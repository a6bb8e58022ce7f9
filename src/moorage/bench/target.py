"""The interface of clusters that workloads run in: creating objects, and measuring."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from moorage.api.manifests import Manifest
from moorage.bench.pod_watch import PodWatch
from moorage.bench.process_usage import ProcessUsage
from moorage.client.client import Client
from moorage.client.kinds import Kind


class WorkloadFailed(Exception):  # noqa: N818 -- named after what happened
    """A workload cannot go on; the message is one line."""


class PreparedObject(NamedTuple):
    """An object ready to be created, any number of times if it has no name."""

    kind: Kind
    body: Any
    """The object in the target's own form."""


class Target(Protocol):
    """A cluster with a scheduler."""

    client: Client
    """Reads and writes objects directly."""
    pods: PodWatch
    """Tracks the pods."""
    notes: list[str]
    """Notes for the report."""
    concurrency: int
    """Number of tasks that create or delete objects at the same time."""

    async def prepared(self, manifest: Manifest) -> PreparedObject | None:
        """An object ready to be created; None for a kind that the target ignores."""

    async def create(self, prepared: PreparedObject, namespace: str) -> str:
        """Create an object; returns its name."""

    async def update(self, manifest: Manifest, namespace: str, subresources: Sequence[str]) -> None:
        """Replace an object (or a part of it), and then its status."""

    async def delete(self, kind: Kind, namespace: str, name: str, grace_seconds: int | None = None) -> None:
        """Delete an object; RequestError if it does not exist. None: the grace period that it asks for."""

    async def metrics(self) -> str:
        """The scheduler's metrics in Prometheus' text format; empty if not available."""

    def attempts(self) -> Mapping[str, Sequence[float]]:
        """Durations of all attempts so far, by result; empty if only the metrics have them."""

    def usage(self) -> Mapping[str, ProcessUsage]:
        """Usage of scheduler, server and generator so far, as far as they are processes of this run."""
