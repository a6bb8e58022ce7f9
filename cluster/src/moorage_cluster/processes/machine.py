"""Shared state of all pods with containers that run as processes of this machine."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from moorage.client.client import Client
from moorage.clock import Clock
from moorage_cluster.processes.sweeping import Sweeper
from moorage_cluster.processes.tasks import Tasks


@dataclass(frozen=True, slots=True)
class Machine:
    """The client of the API server, the clock, and the running processes."""

    client: Client
    server: tuple[str, int]
    """Address and port of the API server."""
    clock: Clock
    tasks: Tasks
    sweeper: Sweeper

    @property
    def folder(self) -> Path:
        """The directory of all pods."""
        return self.sweeper.folder

    def service_variables(self) -> dict[str, str]:
        """The variables of the API server's service."""
        host, port = self.server
        return {
            "KUBERNETES_SERVICE_HOST": host,
            "KUBERNETES_SERVICE_PORT": str(port),
            "KUBERNETES_SERVICE_PORT_HTTPS": str(port),
            "KUBERNETES_PORT": f"tcp://{host}:{port}",
        }
