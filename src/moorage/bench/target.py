"""Where workloads run: what a cluster must offer to whoever makes objects in it and measures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from moorage.api.manifests import Manifest
from moorage.bench.pods import PodWatch
from moorage.bench.usage import Usage
from moorage.client.kinds import Kind


class WorkloadFailed(Exception):  # noqa: N818 -- it says what happened
    """A workload cannot go on; the message says why in one line."""


class Prepared(NamedTuple):
    """An object ready to be created, any number of times if it has no name."""

    kind: Kind
    body: Any
    """As the target wants it."""


class Target(Protocol):
    """A cluster with a scheduler."""

    pods: PodWatch
    """What becomes of the pods."""
    notes: list[str]
    """What should be said of it beside figures."""

    async def prepared(self, manifest: Manifest) -> Prepared | None:
        """An object ready to be created; None for a kind that the target has no use for."""

    async def create(self, prepared: Prepared, namespace: str) -> str:
        """Create an object; the answer is its name."""

    async def update(self, manifest: Manifest, namespace: str, subresources: Sequence[str]) -> None:
        """Replace an object (or a part of it), and then its status."""

    async def delete(self, kind: Kind, namespace: str, name: str) -> None:
        """Delete an object; RequestError if it is not there."""

    async def metrics(self) -> str:
        """The scheduler's metrics, as Prometheus reads them; empty if they cannot be had."""

    def attempts(self) -> Mapping[str, Sequence[float]]:
        """By result, how long every single attempt took so far; empty where only the metrics know."""

    def usage(self) -> Mapping[str, Usage]:
        """What scheduler, server and generator have used so far, as far as they are processes of ours."""
