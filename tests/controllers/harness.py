"""A server, some controllers and a stand-in for the kubelets, in one process under virtual time.

Nothing runs between calls: `settle` lets everything that has been set going come to rest, `advance` lets
time pass step by step. So a test sees each state that a real cluster would go through.
"""

from __future__ import annotations

import asyncio
import builtins
import logging
from collections.abc import Callable, Coroutine, Iterable
from datetime import UTC, datetime
from random import Random
from types import TracebackType
from typing import Any, TypeVar

from moorage.api.manifests import Manifest, timestamp
from moorage.client.client import Client, PatchType
from moorage.client.kinds import CORE_EVENT, NODE, POD, Kind
from moorage.clock import VirtualClock
from moorage.http.errors import RequestError
from moorage_cluster.apiserver.embedded import EmbeddedServer, Settings
from moorage_cluster.apiserver.store import Change, Collection
from moorage_cluster.controllers.cluster import Cluster
from moorage_cluster.controllers.manager import ControllerManager, MakeController
from tests.logs import add_handler, remove_handler

T = TypeVar("T")

START = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)
_TURNS_PER_ROUND = 40
_MAX_ROUNDS = 5000


class _Failures(logging.Handler):
    """Keeps what controllers logged as errors, which are bugs."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.messages: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.messages.append(logging.Formatter().format(record))


class Harness:
    """A cluster with some controllers; used as a context manager, which ends everything."""

    def __init__(
        self,
        *controllers: MakeController,
        seed: int = 1,
        settings: Settings | None = None,
        run: bool = True,
    ) -> None:
        self.clock = VirtualClock(epoch=START)
        self.runner = asyncio.Runner()
        self._failures = _Failures()
        add_handler(self._failures)
        self._task: asyncio.Task[None] | None = None
        self._controllers = controllers
        self._seed = seed
        self._await(self._make(settings))
        if run:
            self.start()

    async def _make(self, settings: Settings | None) -> None:
        self.server = EmbeddedServer(settings, clock=self.clock, random=Random(self._seed))
        self.server.start()
        self.client = Client(self.server.api, self.server.token)
        self.cluster = Cluster(self.client, self.clock, Random(self._seed + 1))
        self.manager = ControllerManager(self.cluster, self._controllers)

    def start(self) -> None:
        """Set the controllers going; with `run=False` nothing runs before this."""

        async def begin() -> None:
            self._task = asyncio.create_task(self.manager.run())
            await self._settled()

        self._await(begin())

    def restart(self) -> None:
        """End the controllers in the middle of what they do, and start them anew."""

        async def again() -> None:
            await self._end()
            self.cluster = Cluster(self.client, self.clock, Random(self._seed + 2))
            self.manager = ControllerManager(self.cluster, self._controllers)

        self._await(again())
        self.start()

    async def _end(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
            self._task = None

    def __enter__(self) -> Harness:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
        if error is None:
            assert not self._failures.messages, "\n".join(self._failures.messages)

    def close(self) -> None:
        """End everything."""
        remove_handler(self._failures)
        self._await(self._end())
        self.server.close()
        self.runner.close()

    def _await(self, work: Coroutine[Any, Any, T]) -> T:
        return self.runner.run(work)

    # -- time

    def now(self) -> datetime:
        return self.clock.utc_now()

    def settle(self) -> None:
        """Let everything that has been set going come to rest; no time passes."""
        self._await(self._settled())

    async def _settled(self) -> None:
        for _ in range(_MAX_ROUNDS):
            revision = self.server.store.revision
            for _ in range(_TURNS_PER_ROUND):
                await asyncio.sleep(0)
            if self._task is not None and self._task.done():
                self._task.result()
            idle = all(controller.is_idle for controller in self.manager.controllers)
            if idle and self.server.store.revision == revision:
                return
        busy = [controller.name for controller in self.manager.controllers if not controller.is_idle]
        raise AssertionError(f"the cluster does not come to rest; busy: {busy}")

    def advance(
        self, seconds: float, step: float = 1.0, after_step: Callable[[], object] | None = None
    ) -> None:
        """Let time pass, settling after every step."""
        end = self.clock.now() + seconds
        while (left := end - self.clock.now()) > 1e-9:
            self.clock.advance(min(step, left))
            self.settle()
            if after_step is not None:
                after_step()

    # -- requests; each one settles

    def _settling(self, work: Coroutine[Any, Any, T]) -> T:
        result = self._await(work)
        self.settle()
        return result

    def create(self, kind: Kind, obj: Manifest) -> Manifest:
        namespace = obj["metadata"].get("namespace", "default") if kind.namespaced else ""
        whole = {"apiVersion": kind.api_version, "kind": kind.name, **obj}
        return self._settling(self.client.create(kind, namespace, whole))

    def get(self, kind: Kind, name: str, namespace: str = "default") -> Manifest:
        return self._await(self.client.get(kind, namespace if kind.namespaced else "", name))

    def find(self, kind: Kind, name: str, namespace: str = "default") -> Manifest | None:
        """One object, or None if it is not there."""
        try:
            return self.get(kind, name, namespace)
        except RequestError as error:
            if error.is_not_found:
                return None
            raise

    def list(self, kind: Kind, namespace: str = "", **query: str | int) -> builtins.list[Manifest]:
        return self._await(self.client.list(kind, namespace, **query))

    def update(self, kind: Kind, obj: Manifest, subresource: str = "") -> Manifest:
        return self._settling(self.client.update(kind, obj, subresource))

    def patch(
        self,
        kind: Kind,
        name: str,
        patch: Any,
        namespace: str = "default",
        type: PatchType = "merge",
        subresource: str = "",
    ) -> Manifest:
        where = namespace if kind.namespaced else ""
        return self._settling(self.client.patch(kind, where, name, patch, type, subresource))

    def delete(
        self,
        kind: Kind,
        name: str,
        namespace: str = "default",
        grace_seconds: int | None = None,
        propagation: str = "",
    ) -> None:
        where = namespace if kind.namespaced else ""
        self._settling(
            self.client.delete(kind, where, name, grace_seconds=grace_seconds, propagation=propagation)
        )

    # -- what there is

    def names(self, kind: Kind, namespace: str = "") -> builtins.list[str]:
        return sorted(obj["metadata"]["name"] for obj in self.list(kind, namespace))

    def pods(
        self, namespace: str = "", where: Callable[[Manifest], bool] = lambda pod: True
    ) -> builtins.list[Manifest]:
        """The pods that are not on their way out."""
        return [
            pod
            for pod in self.list(POD, namespace)
            if "deletionTimestamp" not in pod["metadata"] and where(pod)
        ]

    def events(self, name: str = "") -> builtins.list[tuple[str, str]]:
        """Reasons and messages of the events about an object, or of all, in order."""
        found = [event for event in self.list(CORE_EVENT) if name in ("", event["involvedObject"]["name"])]
        found.sort(key=lambda event: int(event["metadata"]["resourceVersion"]))
        return [(event["reason"], event["message"]) for event in found]

    def record(self, measure: Callable[[builtins.list[Manifest]], T]) -> builtins.list[T]:
        """Measure all pods after every single change of one from now on; the answer grows as that happens."""
        measured: builtins.list[T] = []

        def on_change(collection: Collection, change: Change) -> None:
            if collection.name == "/pods":
                measured.append(measure([stored.obj for stored in collection.items.values()]))

        self.server.store.listeners.append(on_change)
        return measured

    # -- nodes and kubelets

    def add_node(self, name: str, labels: dict[str, str] | None = None, **spec: Any) -> Manifest:
        """A node that is there and ready."""
        capacity = {"cpu": "8", "memory": "32Gi", "pods": "110"}
        made = self.create(
            NODE,
            {
                "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, **(labels or {})}},
                "spec": spec,
                "status": {
                    "capacity": capacity,
                    "allocatable": capacity,
                    "conditions": [self._condition("Ready", "True")],
                },
            },
        )
        # Admission taints a new node until somebody, here the absent node controller, finds it ready.
        taints = [t for t in made["spec"].get("taints") or [] if t["key"] != "node.kubernetes.io/not-ready"]
        return self.patch(NODE, name, {"spec": {"taints": taints or None}})

    def bind(self, pod: Manifest, node: str) -> None:
        """Put a pod on a node."""
        meta = pod["metadata"]
        binding = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": meta["name"], "namespace": meta["namespace"]},
            "target": {"apiVersion": "v1", "kind": "Node", "name": node},
        }
        self._settling(self.client.create_part(POD, meta["namespace"], meta["name"], "binding", binding))

    def run_pods(
        self,
        phase: str = "Running",
        *,
        ready: bool | None = None,
        namespace: str = "",
        where: Callable[[Manifest], bool] = lambda pod: True,
        limit: int | None = None,
        exit_code: int | None = None,
        reason: str = "",
        conditions: Iterable[Manifest] = (),
    ) -> builtins.list[str]:
        """Do as the kubelets do: pods that have not ended come to be in a phase; the answer is their names.

        Only pods that are not in that state already are changed, at most `limit` of them.
        """
        ready = phase == "Running" if ready is None else ready
        wanted = "True" if ready else "False"
        changed: builtins.list[Manifest] = []
        for pod in self.pods(namespace, where):
            status = pod.get("status") or {}
            known = {each["type"]: each["status"] for each in status.get("conditions") or []}
            if status.get("phase") in ("Succeeded", "Failed"):
                continue
            if status.get("phase") == phase and known.get("Ready") == wanted and not conditions:
                continue
            changed.append(pod)
        changed = changed[:limit]

        async def change() -> None:
            for pod in changed:
                new = self._pod_status(pod, phase, wanted, exit_code, reason, list(conditions))
                meta = pod["metadata"]
                patch = {"status": new}
                await self.client.patch(POD, meta["namespace"], meta["name"], patch, "merge", "status")
            await self._settled()

        self._await(change())
        return [pod["metadata"]["name"] for pod in changed]

    def finish_deletions(self, namespace: str = "", limit: int | None = None) -> builtins.list[str]:
        """Do as the kubelets do with pods that are on their way out: end them."""
        to_delete = [pod for pod in self.list(POD, namespace) if "deletionTimestamp" in pod["metadata"]][
            :limit
        ]

        async def end() -> None:
            for pod in to_delete:
                meta = pod["metadata"]
                await self.client.delete(POD, meta["namespace"], meta["name"], grace_seconds=0)
            await self._settled()

        self._await(end())
        return [pod["metadata"]["name"] for pod in to_delete]

    def _condition(self, type: str, status: str) -> Manifest:
        return {"type": type, "status": status, "lastTransitionTime": timestamp(self.now())}

    def _pod_status(
        self,
        pod: Manifest,
        phase: str,
        ready: str,
        exit_code: int | None,
        reason: str,
        further: builtins.list[Manifest],
    ) -> Manifest:
        before = {each["type"]: each for each in (pod.get("status") or {}).get("conditions") or []}
        for type in ("Initialized", "ContainersReady", "Ready"):
            wanted = "True" if type == "Initialized" else ready
            if before.get(type, {}).get("status") != wanted:
                before[type] = self._condition(type, wanted)
        for each in further:
            before[each["type"]] = {**self._condition(each["type"], each["status"]), **each}
        now = timestamp(self.now())
        state: Manifest = {"running": {"startedAt": now}}
        if phase in ("Succeeded", "Failed"):
            code = exit_code if exit_code is not None else int(phase == "Failed")
            ended = "Error" if code else "Completed"
            state = {"terminated": {"exitCode": code, "reason": ended, "startedAt": now, "finishedAt": now}}
        elif phase == "Pending":
            state = {"waiting": {"reason": "ContainerCreating"}}
        containers = [
            {
                "name": container["name"],
                "image": container["image"],
                "imageID": "",
                "ready": ready == "True",
                "restartCount": 0,
                "state": state,
            }
            for container in pod["spec"]["containers"]
        ]
        status: Manifest = {
            "phase": phase,
            "conditions": list(before.values()),
            "containerStatuses": containers,
        }
        if reason:
            status["reason"] = reason
        if not pod["status"].get("startTime"):
            status["startTime"] = now
        return status
