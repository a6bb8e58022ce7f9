"""A server on a socket with controllers and a stand-in for the kubelets, in a thread: for real clients."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from random import Random
from types import TracebackType
from typing import Self

from moorage.api.manifests import Manifest, timestamp
from moorage.client.client import Client
from moorage.client.kinds import POD
from moorage.clock import LoopClock
from moorage.http.server import HttpServer, listen
from moorage_cluster.apiserver.embedded import EmbeddedServer
from moorage_cluster.apiserver.kubeconfig import write_kubeconfig
from moorage_cluster.controllers.cluster import Cluster, controller_of
from moorage_cluster.controllers.controller import Controller
from moorage_cluster.controllers.manager import ControllerManager
from moorage_cluster.controllers.pods import is_deleted, phase_of
from moorage_cluster.controllers.workload_controllers import WORKLOAD_CONTROLLERS

STARTS_WITHIN_SECONDS = 30


class StandInKubelet(Controller):
    """Runs every pod at once: those of jobs succeed, all others are ready unless their image is broken."""

    name = "kubelet"

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster)
        self.watch(POD)

    async def reconcile(self, namespace: str, name: str) -> float | None:
        pod = self.cluster.informer(POD).get(namespace, name)
        if pod is None:
            return None
        if is_deleted(pod):
            await self.cluster.delete(POD, pod, grace_seconds=0)
        elif phase_of(pod) == "Pending":
            await self.cluster.patch(POD, pod, {"status": self._status(pod)}, "merge", "status")
        return None

    def _status(self, pod: Manifest) -> Manifest:
        owner = controller_of(pod)
        if owner is not None and owner["kind"] == "Job":
            return {"phase": "Succeeded"}
        works = "broken" not in pod["spec"]["containers"][0]["image"]
        ready = {
            "type": "Ready",
            "status": str(works),
            "lastTransitionTime": timestamp(self.cluster.clock.utc_now()),
        }
        return {"phase": "Running", "conditions": [ready]}


class LiveCluster:
    """Everything at once, from when its context is entered until it is left."""

    def __init__(self, folder: Path) -> None:
        self.kubeconfig = folder / "kubeconfig"
        self._started = threading.Event()
        self._stop: asyncio.Event | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()))

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._started.wait(STARTS_WITHIN_SECONDS)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._loop is not None and self._stop is not None:
            self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()

    async def _run(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        with listen("127.0.0.1", 0) as listener:
            embedded = EmbeddedServer()
            url = f"https://127.0.0.1:{listener.getsockname()[1]}"
            write_kubeconfig(self.kubeconfig, url, embedded.token, embedded.certificate.ca_pem)
            server = HttpServer(embedded.api, embedded.certificate.ssl_context())
            client = Client(embedded.api, embedded.token)
            cluster = Cluster(client, LoopClock(), Random(1))
            manager = ControllerManager(cluster, (*WORKLOAD_CONTROLLERS, StandInKubelet))
            serving = asyncio.create_task(server.serve(listener))
            managing = asyncio.create_task(manager.run())
            await server.listens()
            embedded.start()
            self._started.set()
            await self._stop.wait()
            managing.cancel()
            await asyncio.wait([managing])
            server.stop()
            await serving
            embedded.close()
